//! Brows, eyelids' surroundings, gaze and pupils. The lids themselves turn about the eyeball in the
//! eyelid layer ([`super::super::lids`]); here is what the skin around them does.

use super::Collection;
use crate::mira::mouth_parts::{IRIS_DEGREES, PUPIL_DEGREES};
use crate::mira::sculpt::EYE_CENTRE;
use crate::mira::strokes::Move::{Inflate, Scale, Shift, Turn};
use understudy_core::Vec3;

const HEAD: Vec3 = Vec3::new(0.0, 2.0, -1.5);

pub(super) fn add(all: &mut Collection) {
    let body = all.anatomy;
    let v = Vec3::new;
    // Brow skin slides up and down over the skull: a turn about the ear-to-ear axis.
    let slide = |degrees: f32| Turn { pivot: HEAD, axis: Vec3::X, degrees: -degrees };
    let inner = body.at(1.3, 2.5, 2.3);
    let middle = body.at(3.2, 3.0, 2.3);
    let outer = body.at(4.9, 2.8, 2.4);
    let line = [(1.3, 2.5), (2.2, 2.75), (3.2, 3.0), (4.1, 3.05), (4.9, 2.8)];
    let line = line.map(|(x, y)| body.landmark(super::on_face(x, y)));
    let whole = body.around(&line, 2.1);
    let forehead = body.at(1.8, 5.0, 3.6);
    let socket = body.at(3.2, 1.75, 1.5);
    let glabella = body.at(0.45, 1.6, 1.5);

    let sculpt = all.sculpt().stroke(&inner, slide(6.5)).stroke(&forehead, slide(2.0));
    all.pair("browInnerUp", sculpt);
    let sculpt = all.sculpt().stroke(&inner, slide(-4.8)).stroke(&glabella, slide(-1.5));
    all.pair("browInnerDown", sculpt);
    all.pair("browInnerIn", all.sculpt().stroke(&inner, Shift(v(-0.4, 0.0, 0.06))));
    let sculpt = all.sculpt().stroke(&middle, slide(6.0)).stroke(&socket, slide(1.2));
    all.pair("browMidUp", sculpt);
    let sculpt = all.sculpt().stroke(&middle, slide(-4.6)).stroke(&socket, slide(-1.0));
    all.pair("browMidDown", sculpt);
    all.pair("browOuterUp", all.sculpt().stroke(&outer, slide(7.0)).stroke(&socket, slide(0.8)));
    let sculpt = all.sculpt().stroke(&outer, slide(-5.0)).stroke(&socket, slide(-0.8));
    all.pair("browOuterDown", sculpt);
    let sculpt =
        all.sculpt().stroke(&whole, slide(7.0)).stroke(&forehead, slide(2.5)).stroke(&socket, slide(1.5));
    all.pair("browUp", sculpt);
    let sculpt = all
        .sculpt()
        .stroke(&whole, slide(-4.6))
        .stroke(&inner, Shift(v(-0.22, -0.12, 0.08)))
        .stroke(&socket, slide(-1.4));
    all.pair("browDown", sculpt);
    let sculpt = all.sculpt().stroke(&inner, Shift(v(-0.34, -0.22, 0.12))).stroke(&glabella, Inflate(0.1));
    all.pair("browFurrow", sculpt);
    let around_skull = Turn { pivot: HEAD, axis: Vec3::Y, degrees: -3.0 };
    all.pair("browOuterIn", all.sculpt().stroke(&outer, around_skull));
    let twist = Turn { pivot: super::on_face(3.2, 2.9), axis: Vec3::Z, degrees: 14.0 };
    all.pair("browTwist", all.sculpt().stroke(&whole, twist));

    let crown = body.skin_mask(|vertex| {
        let p = body.model.mesh.positions()[vertex];
        understudy_rigs::deformers::smooth_step(2.6, 5.5, p.y)
            * understudy_rigs::deformers::smooth_step(-4.0, 1.0, p.z)
    });
    let brows = whole.clone().times(|vertex| body.left(vertex, 0.6));
    all.centre(
        "foreheadRaise",
        all.sculpt().stroke(&forehead, slide(4.0)).stroke(&brows, slide(3.0)).both_sides(),
    );
    all.centre("glabellaPinch", all.sculpt().stroke(&glabella, Shift(v(-0.16, -0.1, 0.14))).both_sides());
    all.centre("scalpBack", all.sculpt().stroke(&crown, slide(3.0)).stroke(&brows, slide(1.0)).both_sides());
    all.centre(
        "scalpForward",
        all.sculpt().stroke(&crown, slide(-2.5)).stroke(&brows, slide(-1.2)).both_sides(),
    );

    lids(all);
    pupils(all);
}

/// What skin outside the lids does with them.
fn lids(all: &mut Collection) {
    let body = all.anatomy;
    let v = Vec3::new;
    let below = body.at(3.3, -2.2, 1.5);
    let outside = body.at(5.25, 0.1, 1.5);
    let inside = body.at(1.25, -0.1, 1.1);
    let above = body.at(3.2, 1.95, 1.2);
    let bag = body.at(3.1, -2.0, 0.9);
    let cheek = body.at(3.7, -2.9, 2.2);
    let shapes = [
        ("eyeBlink", vec![(&above, Shift(v(0.0, -0.12, 0.02))), (&below, Shift(v(0.0, 0.05, 0.0)))]),
        ("eyeWide", vec![(&above, Shift(v(0.0, 0.14, -0.03))), (&below, Shift(v(0.0, -0.06, 0.0)))]),
        (
            "eyeSquint",
            vec![
                (&below, Shift(v(0.0, 0.22, 0.06))),
                (&outside, Shift(v(-0.12, 0.02, 0.02))),
                (&cheek, Shift(v(0.0, 0.12, 0.03))),
            ],
        ),
        ("lidUpperUp", vec![(&above, Shift(v(0.0, 0.08, 0.0)))]),
        ("lidUpperDown", vec![(&above, Shift(v(0.0, -0.1, 0.02)))]),
        ("lidLowerUp", vec![(&below, Shift(v(0.0, 0.1, 0.02)))]),
        ("lidLowerDown", vec![(&below, Shift(v(0.0, -0.1, 0.0)))]),
        ("lidUpperInner", vec![(&inside, Shift(v(0.0, 0.05, 0.0)))]),
        ("lidUpperOuter", vec![(&outside, Shift(v(0.0, 0.08, 0.0)))]),
        ("lidLowerInner", vec![(&inside, Shift(v(0.0, -0.04, 0.0)))]),
        ("lidLowerOuter", vec![(&outside, Shift(v(0.0, -0.06, 0.0)))]),
        ("lidPinch", vec![(&above, Inflate(-0.12)), (&below, Inflate(-0.06))]),
        ("lidUpperPuff", vec![(&above, Inflate(0.16))]),
        ("eyeBagPuff", vec![(&bag, Inflate(0.18))]),
        ("lidCornerInnerPull", vec![(&inside, Shift(v(-0.12, -0.03, -0.04)))]),
        ("lidCornerOuterPull", vec![(&outside, Shift(v(0.2, 0.04, -0.14)))]),
        ("eyeLookUp", vec![(&above, Shift(v(0.0, 0.06, 0.02))), (&below, Shift(v(0.0, 0.04, 0.0)))]),
        ("eyeLookDown", vec![(&above, Shift(v(0.0, -0.06, 0.0))), (&below, Shift(v(0.0, -0.04, 0.02)))]),
        ("eyeLookIn", vec![(&inside, Inflate(0.04))]),
        ("eyeLookOut", vec![(&outside, Inflate(0.05))]),
    ];
    for (name, strokes) in shapes {
        let sculpt = strokes.into_iter().fold(all.sculpt(), |sculpt, (mask, way)| sculpt.stroke(mask, way));
        all.pair(name, sculpt);
    }
}

/// Pupil and iris grow and shrink on the sphere: each vertex turns towards or away from the eye's axis.
fn pupils(all: &mut Collection) {
    let body = all.anatomy;
    let positions = body.model.mesh.positions();
    // (name, radial factor at the pupil's edge, whether the iris' edge moves too)
    for (name, factor, whole) in
        [("pupilDilate", 0.55, false), ("pupilContract", -0.5, false), ("irisGrow", 0.16, true)]
    {
        let mask = body.part("eye_L", |p| {
            let offset = p - EYE_CENTRE;
            let degrees = offset.truncate().length().atan2(offset.z).to_degrees();
            let fall = |from: f32, to: f32| understudy_rigs::deformers::smooth_step(to, from, degrees);
            if whole {
                fall(IRIS_DEGREES, IRIS_DEGREES * 1.8)
            } else {
                fall(PUPIL_DEGREES, IRIS_DEGREES - 1.0)
            }
        });
        let flat =
            all.sculpt().stroke(&mask, Scale { centre: EYE_CENTRE, by: Vec3::new(factor, factor, 0.0) });
        // Back onto the sphere: the sideways move above needs a matching move in depth.
        let depth = |vertex: usize| {
            let offset = positions[vertex] - EYE_CENTRE;
            let wide = (offset.truncate() * (1.0 + factor * mask.0[vertex])).length_squared();
            let radius = offset.length();
            (radius * radius - wide).max(0.0).sqrt() - offset.z
        };
        let mut depths = mask.clone();
        depths.0.iter_mut().enumerate().for_each(|(vertex, weight)| {
            *weight = if *weight != 0.0 { depth(vertex) } else { 0.0 };
        });
        all.pair(name, flat.stroke(&depths, Shift(Vec3::Z)));
    }
}
