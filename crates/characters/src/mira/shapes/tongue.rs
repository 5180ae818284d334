//! The tongue bends along its length: every shape is a turn or shift that grows from the root to the tip.

use super::Collection;
use crate::mira::strokes::Move::{Scale, Shift, Turn};
use understudy_core::Vec3;
use understudy_rigs::deformers::smooth_step;

pub(super) fn add(all: &mut Collection) {
    let body = all.anatomy;
    let v = Vec3::new;
    let grow = body.part("tongue", |p| smooth_step(1.4, 5.7, p.z));
    let tip = body.part("tongue", |p| smooth_step(3.6, 5.7, p.z));
    let middle = body.part("tongue", |p| smooth_step(1.2, 3.2, p.z) * smooth_step(5.6, 3.6, p.z));
    let free = body.part("tongue", |p| smooth_step(1.2, 2.6, p.z));
    let edges = body.part("tongue", |p| smooth_step(1.4, 3.0, p.z) * smooth_step(0.3, 1.2, p.x.abs()));
    let root = v(0.0, -6.6, 1.6);
    let bend = |axis: Vec3, degrees: f32| Turn { pivot: root, axis, degrees };
    let curl = |degrees: f32| Turn { pivot: v(0.0, -6.2, 4.4), axis: Vec3::X, degrees };
    all.centre(
        "tongueOut",
        all.sculpt().stroke(&grow, Shift(v(0.0, 0.12, 2.3))).stroke(&tip, Shift(v(0.0, -0.25, 0.3))),
    );
    all.centre(
        "tongueBack",
        all.sculpt().stroke(&grow, Shift(v(0.0, 0.1, -0.9))).stroke(&middle, Shift(v(0.0, 0.2, 0.0))),
    );
    all.centre("tongueUp", all.sculpt().stroke(&grow, bend(Vec3::X, -16.0)));
    all.centre("tongueDown", all.sculpt().stroke(&grow, bend(Vec3::X, 7.0)));
    all.centre("tongueLeft", all.sculpt().stroke(&grow, bend(Vec3::Y, 18.0)));
    all.centre("tongueRight", all.sculpt().stroke(&grow, bend(Vec3::Y, -18.0)));
    all.centre("tongueCurlUp", all.sculpt().stroke(&tip, curl(-60.0)));
    all.centre("tongueCurlDown", all.sculpt().stroke(&tip, curl(45.0)));
    all.centre(
        "tongueRoll",
        all.sculpt()
            .stroke(&edges, Shift(v(0.0, 0.5, 0.0)))
            .stroke(&free, Scale { centre: root, by: v(-0.28, 0.0, 0.0) }),
    );
    all.centre(
        "tongueNarrow",
        all.sculpt().stroke(&free, Scale { centre: v(0.0, -6.3, 4.0), by: v(-0.35, 0.25, 0.06) }),
    );
    all.centre(
        "tongueWide",
        all.sculpt().stroke(&free, Scale { centre: v(0.0, -6.3, 4.0), by: v(0.22, -0.25, 0.0) }),
    );
    all.centre(
        "tongueThick",
        all.sculpt().stroke(&middle, Scale { centre: v(0.0, -6.3, 3.4), by: v(0.0, 0.7, 0.0) }),
    );
    all.centre(
        "tongueTwist",
        all.sculpt().stroke(&grow, Turn { pivot: v(0.0, -6.3, 3.0), axis: Vec3::Z, degrees: 32.0 }),
    );
    all.centre(
        "tonguePressRoof",
        all.sculpt().stroke(&middle, Shift(v(0.0, 0.85, 0.1))).stroke(&tip, Shift(v(0.0, 0.5, 0.0))),
    );
}
