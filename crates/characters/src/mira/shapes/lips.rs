//! The mouth: corners, lips as a whole, by halves, by quarters and by sections.

use super::Collection;
use crate::mira::anatomy::Mask;
use crate::mira::strokes::Move::{Inflate, Scale, Shift, Turn};
use understudy_core::Vec3;

/// Centre of the arch that lips slide around.
const ARCH: Vec3 = Vec3::new(0.0, -5.6, 2.4);

pub(super) fn add(all: &mut Collection) {
    corners(all);
    whole(all);
    quarters(all);
    sections(all);
}

/// Around the teeth: positive goes to her left.
fn around(degrees: f32) -> crate::mira::strokes::Move {
    Turn { pivot: ARCH, axis: Vec3::Y, degrees }
}

fn corners(all: &mut Collection) {
    let body = all.anatomy;
    let v = Vec3::new;
    let corner = body.corner(3.1);
    let tight = body.corner(1.3);
    let left = |mask: Mask| mask.times(|vertex| body.left(vertex, 0.9));
    let lips = left(body.lips(1.2));
    let upper = left(body.lip(true, 1.5));
    let lower = left(body.lip(false, 1.5));
    let apple = body.at(3.7, -3.1, 2.5);
    let fold = body.at(2.4, -4.3, 1.3);
    let below = body.at(2.6, -7.0, 1.8);
    let below_eye = body.at(3.3, -2.1, 1.3);

    let sculpt = all
        .sculpt()
        .stroke(&corner, around(9.5))
        .stroke(&corner, Shift(v(0.0, 0.62, -0.12)))
        .stroke(&tight, Shift(v(0.03, 0.08, -0.05)))
        .stroke(&lips, around(2.5))
        .stroke(&lips, Shift(v(0.0, 0.0, -0.05)))
        .stroke(&apple, Shift(v(0.06, 0.34, 0.0)))
        .stroke(&apple, Inflate(0.22))
        .stroke(&fold, Inflate(-0.05))
        .stroke(&below_eye, Shift(v(0.0, 0.12, 0.05)));
    all.pair("mouthSmile", sculpt);
    let sculpt = all
        .sculpt()
        .stroke(&corner, around(11.0))
        .stroke(&corner, Shift(v(0.0, 0.95, -0.15)))
        .stroke(&apple, Shift(v(0.1, 0.3, -0.05)))
        .stroke(&apple, Inflate(0.26));
    all.pair("mouthSharpSmile", sculpt);
    let sculpt = all
        .sculpt()
        .stroke(&corner, Shift(v(0.0, -0.6, -0.05)))
        .stroke(&tight, Shift(v(0.02, -0.18, -0.04)))
        .stroke(&corner, around(2.0))
        .stroke(&lower, Shift(v(0.0, 0.06, 0.04)))
        .stroke(&below, Shift(v(0.0, -0.2, 0.02)));
    all.pair("mouthFrown", sculpt);
    let sculpt = all.sculpt().stroke(&corner, around(4.0)).stroke(&tight, Inflate(-0.28));
    all.pair("mouthDimple", sculpt);
    let sculpt = all
        .sculpt()
        .stroke(&corner, around(12.0))
        .stroke(&corner, Shift(v(0.0, -0.34, -0.1)))
        .stroke(&lips, around(3.0))
        .stroke(&below, Shift(v(0.08, -0.14, -0.04)));
    all.pair("mouthStretch", sculpt);
    let sculpt = all
        .sculpt()
        .stroke(&upper, Shift(v(0.0, -0.1, -0.1)))
        .stroke(&lower, Shift(v(0.0, 0.12, -0.12)))
        .stroke(&tight, Inflate(-0.1));
    all.pair("mouthPress", sculpt);
    let sculpt =
        all.sculpt().stroke(&upper, Shift(v(0.0, 0.46, 0.04))).stroke(&fold, Shift(v(0.02, 0.22, 0.06)));
    all.pair("mouthUpperUp", sculpt);
    let sculpt =
        all.sculpt().stroke(&lower, Shift(v(0.0, -0.5, 0.02))).stroke(&below, Shift(v(0.0, -0.12, 0.0)));
    all.pair("mouthLowerDown", sculpt);
    all.pair("cornerUp", all.sculpt().stroke(&corner, Shift(v(0.0, 0.5, -0.04))));
    all.pair("cornerDown", all.sculpt().stroke(&corner, Shift(v(0.0, -0.5, -0.02))));
    all.pair("cornerIn", all.sculpt().stroke(&corner, around(-9.0)));
    all.pair("cornerOut", all.sculpt().stroke(&corner, around(10.0)));
    all.pair("cornerForward", all.sculpt().stroke(&corner, Inflate(0.4)));
    all.pair("cornerBack", all.sculpt().stroke(&corner, Inflate(-0.3)));
    let sculpt = all.sculpt().stroke(&tight, around(-3.0)).stroke(&lips, Shift(v(0.0, 0.0, -0.08)));
    all.pair("mouthTight", sculpt);
}

fn whole(all: &mut Collection) {
    let body = all.anatomy;
    let v = Vec3::new;
    let lips = body.lips(2.2);
    let near = body.lips(1.0);
    let (upper, lower) = (body.lip(true, 1.6), body.lip(false, 1.6));
    let (rim_up, rim_down) = (body.lip(true, 0.7), body.lip(false, 0.7));
    let corner = body.corner(1.8);
    let mirrored = Mask(body.mirror.iter().map(|image| corner.0[*image as usize]).collect());
    let corners = corner.or(&mirrored);
    let narrow = |by: f32| Scale { centre: v(0.0, -5.6, 6.6), by: v(-by, 0.0, 0.0) };
    let sculpt = all
        .sculpt()
        .stroke(&lips, narrow(0.26))
        .stroke(&lips, Shift(v(0.0, 0.0, 0.5)))
        .stroke(&corners, Shift(v(0.0, 0.0, 0.35)))
        .stroke(&rim_up, Shift(v(0.0, 0.3, 0.22)))
        .stroke(&rim_down, Shift(v(0.0, -0.32, 0.22)));
    all.centre("mouthFunnel", sculpt);
    let sculpt = all
        .sculpt()
        .stroke(&lips, narrow(0.42))
        .stroke(&lips, Shift(v(0.0, 0.0, 0.42)))
        .stroke(&corners, Shift(v(0.0, 0.0, 0.45)))
        .stroke(&near, Inflate(0.1));
    all.centre("mouthPucker", sculpt);
    let away = body.lips(3.0);
    all.centre("mouthLeft", all.sculpt().stroke(&away, around(9.0)));
    all.centre("mouthRight", all.sculpt().stroke(&away, around(-9.0)));
    all.centre("mouthUp", all.sculpt().stroke(&away, Shift(v(0.0, 0.4, 0.02))));
    all.centre("mouthDown", all.sculpt().stroke(&away, Shift(v(0.0, -0.4, 0.0))));
    let roll = |degrees: f32| Turn { pivot: v(0.0, -5.6, 6.9), axis: Vec3::X, degrees };
    let sculpt = all.sculpt().stroke(&rim_up, roll(38.0)).stroke(&rim_up, Shift(v(0.0, -0.1, -0.12)));
    all.centre("mouthRollUpper", sculpt);
    let sculpt = all.sculpt().stroke(&rim_down, roll(-38.0)).stroke(&rim_down, Shift(v(0.0, 0.1, -0.14)));
    all.centre("mouthRollLower", sculpt);
    all.centre("mouthShrugUpper", all.sculpt().stroke(&upper, Shift(v(0.0, 0.34, 0.16))));
    all.centre("mouthShrugLower", all.sculpt().stroke(&lower, Shift(v(0.0, 0.34, 0.2))));
    // With the jaw shut there is nothing to close: its work is a corrective with the open jaw.
    let sculpt =
        all.sculpt().stroke(&rim_up, Shift(v(0.0, -0.03, 0.02))).stroke(&rim_down, Shift(v(0.0, 0.03, 0.02)));
    all.centre("mouthClose", sculpt);
    let sculpt = all.sculpt().stroke(&near, Inflate(0.14));
    all.centre("mouthPuff", sculpt);
}

/// Upper left, lower left and their mirror images.
fn quarters(all: &mut Collection) {
    let body = all.anatomy;
    let v = Vec3::new;
    for (place, above) in [("Upper", true), ("Lower", false)] {
        let sign = if above { 1.0 } else { -1.0 };
        let quarter = |reach: f32| body.lip(above, reach).times(|vertex| body.left(vertex, 0.6));
        let (wide, rim) = (quarter(1.7), quarter(0.75));
        let narrow = Scale { centre: v(0.0, -5.6, 6.6), by: v(-0.22, 0.0, 0.0) };
        let roll = Turn { pivot: v(0.0, -5.6, 6.9), axis: Vec3::X, degrees: sign * 32.0 };
        let sculpt =
            all.sculpt().stroke(&wide, Shift(v(0.0, 0.0, 0.3))).stroke(&rim, Shift(v(0.0, sign * 0.34, 0.2)));
        all.pair(&format!("lipFunnel{place}"), sculpt);
        all.pair(
            &format!("lipPucker{place}"),
            all.sculpt().stroke(&wide, narrow).stroke(&wide, Shift(v(0.0, 0.0, 0.36))),
        );
        let sculpt = all.sculpt().stroke(&rim, roll).stroke(&rim, Shift(v(0.0, sign * -0.08, -0.12)));
        all.pair(&format!("lipRoll{place}"), sculpt);
        all.pair(&format!("lipPress{place}"), all.sculpt().stroke(&rim, Shift(v(0.0, sign * -0.06, -0.16))));
        all.pair(&format!("lipPuff{place}"), all.sculpt().stroke(&rim, Inflate(0.16)));
    }
}

/// Left, middle and right of each lip, in four directions.
fn sections(all: &mut Collection) {
    let body = all.anatomy;
    let v = Vec3::new;
    for (place, above) in [("Upper", true), ("Lower", false)] {
        let left = body.lip_section(above, 1.15, 1.5);
        let middle = body.lip_section(above, 0.0, 1.4);
        let ways = [
            ("Up", v(0.0, 0.4, 0.03)),
            ("Down", v(0.0, -0.4, 0.03)),
            ("Out", v(0.0, 0.0, 0.34)),
            ("In", v(0.0, 0.0, -0.22)),
        ];
        for (way, shift) in ways {
            let lean = if above { v(0.03, 0.0, 0.0) } else { v(0.02, 0.0, 0.0) };
            all.pair(&format!("lip{place}{way}"), all.sculpt().stroke(&left, Shift(shift + lean)));
            all.centre(&format!("lip{place}Mid{way}"), all.sculpt().stroke(&middle, Shift(shift)));
        }
    }
}
