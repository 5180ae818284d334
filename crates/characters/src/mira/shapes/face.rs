//! Cheeks, nose, chin, jaw's surroundings, throat, ears and hair.

use super::Collection;
use crate::mira::strokes::Move::{Inflate, Scale, Shift, Turn};
use understudy_core::Vec3;
use understudy_rigs::deformers::smooth_step;

pub(super) fn add(all: &mut Collection) {
    cheeks(all);
    nose(all);
    jaw(all);
    throat_ears_hair(all);
}

fn cheeks(all: &mut Collection) {
    let body = all.anatomy;
    let v = Vec3::new;
    let apple = body.at(3.5, -2.8, 2.6);
    let hollow = body.at(3.6, -5.0, 3.1);
    let side = body.near(v(5.4, -4.2, 2.2), 2.6);
    let below_eye = body.at(3.3, -2.1, 1.4);
    let fold = body
        .around(&[body.landmark(super::on_face(1.75, -3.6)), body.landmark(super::on_face(2.5, -4.6))], 1.1);
    let round = |degrees: f32| Turn { pivot: v(0.0, -3.0, 0.5), axis: Vec3::X, degrees: -degrees };
    let sculpt = all
        .sculpt()
        .stroke(&apple, round(3.6))
        .stroke(&apple, Inflate(0.26))
        .stroke(&below_eye, Shift(v(0.0, 0.2, 0.08)));
    all.pair("cheekSquint", sculpt);
    let sculpt = all.sculpt().stroke(&apple, round(4.4)).stroke(&apple, Inflate(0.16));
    all.pair("cheekRaise", sculpt);
    let puffed = body.lips(1.8).times(|vertex| body.left(vertex, 1.0));
    let sculpt = all
        .sculpt()
        .stroke(&body.at(3.5, -5.2, 3.6), Inflate(0.8))
        .stroke(&side, Inflate(0.3))
        .stroke(&puffed, Shift(v(0.0, 0.0, 0.22)));
    all.pair("cheekPuff", sculpt);
    let sculpt = all.sculpt().stroke(&hollow, Inflate(-0.65)).stroke(&side, Inflate(-0.2));
    all.pair("cheekSuck", sculpt);
    all.pair("cheekOuterPuff", all.sculpt().stroke(&side, Inflate(0.5)));
    let back = Turn { pivot: v(0.0, -4.0, 1.0), axis: Vec3::Y, degrees: 5.0 };
    all.pair("cheekBack", all.sculpt().stroke(&hollow, back).stroke(&apple, back));
    let sculpt = all.sculpt().stroke(&fold, Inflate(-0.16)).stroke(&apple, Inflate(0.08));
    all.pair("nasolabialDeepen", sculpt);
    all.pair(
        "cheekLower",
        all.sculpt().stroke(&apple, round(-2.8)).stroke(&hollow, Shift(v(0.0, -0.2, 0.0))),
    );
}

fn nose(all: &mut Collection) {
    let body = all.anatomy;
    let v = Vec3::new;
    let wing = body.near(v(1.15, -3.05, 7.3), 1.15);
    let wing_tight = body.near(v(1.15, -3.1, 7.3), 0.8);
    let bridge_side = body.at(0.75, -0.9, 1.3);
    let tip = body.near(v(0.0, -2.8, 8.7), 1.5);
    let bridge = body.at(0.0, -0.4, 1.4);
    let lip = body.at(1.2, -4.4, 1.2);
    let sculpt = all
        .sculpt()
        .stroke(&wing, Shift(v(0.06, 0.34, -0.06)))
        .stroke(&bridge_side, Inflate(0.07))
        .stroke(&lip, Shift(v(0.0, 0.22, 0.02)));
    all.pair("noseSneer", sculpt);
    all.pair("noseFlare", all.sculpt().stroke(&wing_tight, Shift(v(0.24, 0.04, -0.02))));
    let sculpt = all
        .sculpt()
        .stroke(&bridge_side, Shift(v(-0.04, 0.16, 0.08)))
        .stroke(&wing, Shift(v(0.0, 0.14, 0.0)));
    all.pair("noseWrinkle", sculpt);
    all.pair("nostrilPinch", all.sculpt().stroke(&wing_tight, Shift(v(-0.2, 0.0, 0.03))));
    all.pair("noseWingUp", all.sculpt().stroke(&wing_tight, Shift(v(0.0, 0.22, -0.04))));
    let about = |axis: Vec3, degrees: f32| Turn { pivot: v(0.0, -1.6, 6.3), axis, degrees };
    all.centre("noseTipUp", all.sculpt().stroke(&tip, about(Vec3::X, -9.0)));
    all.centre("noseTipDown", all.sculpt().stroke(&tip, about(Vec3::X, 8.0)));
    all.centre("noseTipLeft", all.sculpt().stroke(&tip, about(Vec3::Y, 8.0)));
    all.centre("noseTipRight", all.sculpt().stroke(&tip, about(Vec3::Y, -8.0)));
    all.centre("noseBridgeWrinkle", all.sculpt().stroke(&bridge, Shift(v(0.0, 0.14, 0.08))));
    let long = Scale { centre: v(0.0, -1.0, 6.8), by: v(-0.06, 0.16, 0.03) };
    all.centre("noseLengthen", all.sculpt().stroke(&tip, long));
}

/// The joint moves the jaw; these are the soft parts that follow in their own way.
fn jaw(all: &mut Collection) {
    let body = all.anatomy;
    let v = Vec3::new;
    let hollow = body.near(v(4.2, -4.6, 4.2), 2.6);
    let masseter = body.near(v(4.9, -5.6, 1.6), 2.2);
    let chin = body.at(0.0, -8.0, 1.9);
    let chin_side = body.at(1.5, -7.9, 1.6);
    let throat = body.near(v(0.0, -9.6, 3.6), 2.4);
    let corner = body.corner(2.0);
    let sculpt = all
        .sculpt()
        .stroke(&hollow, Inflate(-0.3))
        .stroke(&masseter, Inflate(-0.12))
        .stroke(&corner, Shift(v(-0.22, 0.0, 0.06)))
        .both_sides();
    all.centre("jawOpen", sculpt.stroke(&throat, Shift(v(0.0, 0.1, -0.2))));
    all.centre("jawForward", all.sculpt().stroke(&throat, Shift(v(0.0, 0.14, 0.1))));
    all.centre("jawBack", all.sculpt().stroke(&throat, Inflate(0.22)));
    let (shift_left, shift_right) = {
        let left = all.sculpt().stroke(&hollow, Inflate(0.14)).stroke(&masseter, Inflate(0.1));
        left.finish()
    };
    all.shapes.push(understudy_core::Shape { name: "jawLeft".into(), deltas: shift_left });
    all.shapes.push(understudy_core::Shape { name: "jawRight".into(), deltas: shift_right });
    all.pair("jawClench", all.sculpt().stroke(&masseter, Inflate(0.32)));
    let up = body.lip(false, 1.0);
    let sculpt = all.sculpt().stroke(&chin, Shift(v(0.0, 0.4, 0.06))).stroke(&up, Shift(v(0.0, 0.16, 0.06)));
    all.centre("chinRaise", sculpt);
    all.centre("chinPush", all.sculpt().stroke(&chin, Shift(v(0.0, 0.05, 0.32))));
    all.centre("chinDimple", all.sculpt().stroke(&body.at(0.0, -8.1, 0.8), Inflate(-0.22)));
    all.centre("chinLower", all.sculpt().stroke(&chin, Shift(v(0.0, -0.26, 0.0))));
    all.pair("chinPull", all.sculpt().stroke(&chin_side, Shift(v(0.26, 0.0, -0.1))));
}

fn throat_ears_hair(all: &mut Collection) {
    let body = all.anatomy;
    let v = Vec3::new;
    let larynx = body.near(v(0.0, -12.2, -0.2), 2.0);
    let throat = body.near(v(0.0, -10.2, 2.2), 2.6);
    let cord = body.around(
        &[
            body.landmark(v(2.6, -10.6, -1.0)),
            body.landmark(v(2.2, -12.6, -0.8)),
            body.landmark(v(1.6, -14.4, -0.6)),
        ],
        1.3,
    );
    let side = body.near(v(3.0, -12.0, -3.0), 2.6);
    let sculpt =
        all.sculpt().stroke(&larynx, Shift(v(0.0, 0.55, 0.06))).stroke(&throat, Shift(v(0.0, 0.12, -0.12)));
    all.centre("throatSwallow", sculpt);
    all.centre(
        "throatDown",
        all.sculpt().stroke(&larynx, Shift(v(0.0, -0.45, 0.05))).stroke(&throat, Shift(v(0.0, -0.3, -0.05))),
    );
    all.centre("throatPuff", all.sculpt().stroke(&throat, Inflate(0.6)));
    all.pair("neckTense", all.sculpt().stroke(&cord, Inflate(0.3)).stroke(&side, Inflate(-0.1)));
    all.pair("neckFlare", all.sculpt().stroke(&side, Inflate(0.35)));

    let ear = body.part("ear_L", |_| 1.0);
    let root = v(6.3, -1.2, -0.6);
    let behind = body.near(v(6.4, -0.6, -0.6), 1.6);
    all.pair(
        "earUp",
        all.sculpt().stroke(&ear, Shift(v(0.0, 0.22, -0.04))).stroke(&behind, Shift(v(0.0, 0.12, 0.0))),
    );
    all.pair(
        "earBack",
        all.sculpt()
            .stroke(&ear, Turn { pivot: root, axis: Vec3::Y, degrees: 9.0 })
            .stroke(&behind, Shift(v(0.0, 0.0, -0.12))),
    );
    all.pair("earForward", all.sculpt().stroke(&ear, Turn { pivot: root, axis: Vec3::Y, degrees: -11.0 }));

    // Loose strands at the temples swing from their roots; the fringe lifts off the forehead.
    let strand =
        body.part("hair_locks", |p| if p.x > 5.0 && p.z > 1.3 { smooth_step(1.5, -6.0, p.y) } else { 0.0 });
    let swing = |axis: Vec3, degrees: f32| Turn { pivot: v(6.4, 2.4, 2.4), axis, degrees };
    all.pair("strandOut", all.sculpt().stroke(&strand, swing(Vec3::Z, 14.0)));
    all.pair("strandForward", all.sculpt().stroke(&strand, swing(Vec3::X, -14.0)));
    let fringe = body.part("hair_locks", |p| {
        smooth_step(9.2, 6.5, p.y) * smooth_step(1.0, 4.0, p.y) * smooth_step(2.0, 5.0, p.z)
    });
    all.centre("fringeLift", all.sculpt().stroke(&fringe, Shift(v(0.0, 0.35, 0.3))));
    let volume = body
        .part("hair", |p| smooth_step(1.0, 7.0, p.y))
        .or(&body.part("hair_locks", |p| smooth_step(3.0, 8.0, p.y)));
    all.centre(
        "hairVolume",
        all.sculpt().stroke(&volume, Scale { centre: v(0.0, 2.0, -1.0), by: Vec3::splat(0.06) }),
    );
}
