//! Correctives: what combinations of shapes need beyond their sum. Each has a purpose, said beside it.
//! Left ones are authored, right ones mirrored.

use super::Collection;
use crate::mira::anatomy::Mask;
use crate::mira::rigging::{JAW_OPEN_DEGREES, JAW_PIVOT};
use crate::mira::strokes::Move::{Inflate, Shift, Turn};
use crate::mira::strokes::Sculpture;
use understudy_core::Vec3;
use understudy_rigs::RigError;

/// Names with `_*` get a side; the others have none.
fn sided(names: &[&str], side: &str) -> Vec<String> {
    names.iter().map(|name| name.replace("_*", side)).collect()
}

fn pair(all: &mut Collection, names: &[&str], sculpture: Sculpture) -> Result<(), RigError> {
    let (left, right) = sculpture.finish();
    all.correct(&sided(names, "_L"), left)?;
    all.correct(&sided(names, "_R"), right)
}

fn centre(all: &mut Collection, names: &[&str], sculpture: Sculpture) -> Result<(), RigError> {
    let (deltas, _) = sculpture.finish();
    all.correct(&sided(names, ""), deltas)
}

pub(super) fn add(all: &mut Collection) -> Result<(), RigError> {
    mouth(all)?;
    eyes(all)?;
    triples(all)?;
    quadruples(all)
}

fn around(degrees: f32) -> crate::mira::strokes::Move {
    Turn { pivot: Vec3::new(0.0, -5.6, 2.4), axis: Vec3::Y, degrees }
}

fn mouth(all: &mut Collection) -> Result<(), RigError> {
    let body = all.anatomy;
    let v = Vec3::new;
    let left = |mask: Mask| mask.times(|vertex| body.left(vertex, 0.8));
    let corner = body.corner(2.4);
    let tight = body.corner(1.2);
    let (upper, lower) = (body.lip(true, 1.4), body.lip(false, 1.4));
    let (upper_left, lower_left) = (left(upper.clone()), left(lower.clone()));
    let apple = body.at(3.7, -3.1, 2.4);
    let hollow = body.near(v(4.2, -4.6, 4.2), 2.4);
    let middle_up = body.at(0.0, -4.6, 1.3);
    let s = || all.sculpt();

    // An open smile squares the lips: upper lip off the teeth, corner drawn less far up.
    let open_smile = s()
        .stroke(&upper_left, Shift(v(0.0, 0.16, -0.04)))
        .stroke(&corner, Shift(v(-0.06, -0.2, -0.06)))
        .stroke(&hollow, Inflate(-0.12));
    // Both sides smile: the middle of the upper lip is pulled flat against the teeth and up.
    let both_smile = s().stroke(&middle_up, Shift(v(0.0, 0.12, -0.12)));
    // Smile over frown cancels in height but presses the corner in.
    let smile_frown = s().stroke(&tight, Inflate(-0.22));
    // A stretched and open mouth pulls the corner down with the jaw.
    let stretch_open =
        s().stroke(&corner, Shift(v(0.05, -0.25, -0.1))).stroke(&lower_left, Shift(v(0.0, -0.1, 0.0)));
    // Funnel and pucker together would go too far out and too narrow.
    let round_round = s().stroke(&body.lips(2.0), Shift(v(0.0, 0.0, -0.4)));
    let funnel_open = s().stroke(&upper, Shift(v(0.0, 0.12, 0.1))).stroke(&lower, Shift(v(0.0, -0.05, 0.16)));
    let pucker_open = s().stroke(&body.lips(1.6), Shift(v(0.0, 0.0, 0.14)));
    let smile_funnel = s().stroke(&corner, around(-3.5)).stroke(&corner, Shift(v(0.0, -0.18, 0.05)));
    let smile_pucker = s()
        .stroke(&corner, around(-4.5))
        .stroke(&corner, Shift(v(0.0, -0.2, 0.08)))
        .stroke(&apple, Inflate(-0.08));
    let smile_stretch = s().stroke(&corner, around(-8.0)).stroke(&corner, Shift(v(0.0, 0.1, 0.05)));
    let smile_sharp = s()
        .stroke(&corner, around(-7.0))
        .stroke(&corner, Shift(v(0.0, -0.5, 0.1)))
        .stroke(&apple, Inflate(-0.2));
    let smile_squint =
        s().stroke(&body.at(3.3, -2.0, 1.4), Inflate(0.1)).stroke(&apple, Shift(v(0.0, -0.08, 0.0)));
    let smile_puff =
        s().stroke(&body.at(3.9, -5.2, 2.6), Inflate(-0.3)).stroke(&corner, Shift(v(-0.05, -0.15, 0.0)));
    let smile_dimple = s().stroke(&tight, Inflate(-0.15)).stroke(&corner, around(-2.0));
    let smile_upper = s().stroke(&upper_left, Shift(v(0.0, -0.12, -0.06)));
    let frown_open = s().stroke(&corner, Shift(v(0.0, 0.18, 0.0)));
    let frown_shrug = s().stroke(&lower_left, Shift(v(0.0, 0.1, 0.08))).stroke(&tight, Inflate(-0.1));
    let sneer_upper = s().stroke(&upper_left, Shift(v(0.0, -0.16, 0.0)));
    let press_open =
        s().stroke(&upper_left, Shift(v(0.0, -0.1, 0.0))).stroke(&lower_left, Shift(v(0.0, 0.14, 0.0)));
    let left_open = s().stroke(&lower, around(2.5));
    let right_open = s().stroke(&lower, around(-2.5));
    let roll_both = s().stroke(&body.lips(0.9), Shift(v(0.0, 0.0, 0.08)));
    // Lips meet although the jaw is open: each comes half way along the jaw's arc.
    let arc = |degrees: f32| Turn { pivot: JAW_PIVOT, axis: Vec3::X, degrees };
    let close = s()
        .stroke(&body.lip(true, 2.2), arc(JAW_OPEN_DEGREES * 0.42))
        .stroke(&body.lip(false, 2.6), arc(-JAW_OPEN_DEGREES * 0.56));
    let puff_pair = s().stroke(&body.lips(1.6), Shift(v(0.0, 0.0, 0.12)));
    let lower_open = s().stroke(&lower_left, Shift(v(0.0, 0.14, 0.04)));

    pair(all, &["jawOpen", "mouthSmile_*"], open_smile)?;
    centre(all, &["mouthSmile_L", "mouthSmile_R"], both_smile)?;
    pair(all, &["mouthSmile_*", "mouthFrown_*"], smile_frown)?;
    pair(all, &["jawOpen", "mouthStretch_*"], stretch_open)?;
    centre(all, &["mouthFunnel", "mouthPucker"], round_round)?;
    centre(all, &["jawOpen", "mouthFunnel"], funnel_open)?;
    centre(all, &["jawOpen", "mouthPucker"], pucker_open)?;
    pair(all, &["mouthFunnel", "mouthSmile_*"], smile_funnel)?;
    pair(all, &["mouthPucker", "mouthSmile_*"], smile_pucker)?;
    pair(all, &["mouthSmile_*", "mouthStretch_*"], smile_stretch)?;
    pair(all, &["mouthSmile_*", "mouthSharpSmile_*"], smile_sharp)?;
    pair(all, &["cheekSquint_*", "mouthSmile_*"], smile_squint)?;
    pair(all, &["cheekPuff_*", "mouthSmile_*"], smile_puff)?;
    pair(all, &["mouthDimple_*", "mouthSmile_*"], smile_dimple)?;
    pair(all, &["mouthSmile_*", "mouthUpperUp_*"], smile_upper)?;
    pair(all, &["jawOpen", "mouthFrown_*"], frown_open)?;
    pair(all, &["mouthFrown_*", "mouthShrugLower"], frown_shrug)?;
    pair(all, &["mouthUpperUp_*", "noseSneer_*"], sneer_upper)?;
    pair(all, &["jawOpen", "mouthPress_*"], press_open)?;
    centre(all, &["jawOpen", "mouthLeft"], left_open)?;
    centre(all, &["jawOpen", "mouthRight"], right_open)?;
    centre(all, &["mouthRollLower", "mouthRollUpper"], roll_both)?;
    centre(all, &["jawOpen", "mouthClose"], close)?;
    centre(all, &["cheekPuff_L", "cheekPuff_R"], puff_pair)?;
    pair(all, &["jawOpen", "mouthLowerDown_*"], lower_open)
}

fn eyes(all: &mut Collection) -> Result<(), RigError> {
    let body = all.anatomy;
    let v = Vec3::new;
    let below = body.at(3.3, -2.1, 1.3);
    let above = body.at(3.2, 2.0, 1.2);
    let outside = body.at(5.25, 0.1, 1.4);
    let inner = body.at(1.3, 2.5, 1.8);
    let outer = body.at(4.9, 2.8, 2.0);
    let glabella = body.at(0.45, 1.6, 1.4);
    let s = || all.sculpt();
    // A squeezed eye bunches the skin at its outer corner.
    let squeeze = s().stroke(&outside, Inflate(0.12)).stroke(&below, Inflate(0.08));
    let blink_down = s().stroke(&above, Inflate(0.1)).stroke(&inner, Shift(v(0.0, 0.08, 0.0)));
    let wide_up = s().stroke(&above, Inflate(-0.08));
    let squint_cheek = s().stroke(&below, Shift(v(0.0, -0.08, 0.06)));
    // Inner brow up while the brow is drawn down: the oblique brow of grief.
    let grief = s().stroke(&inner, Shift(v(-0.1, 0.12, 0.04))).stroke(&outer, Shift(v(0.0, -0.1, 0.0)));
    let furrow = s().stroke(&glabella, Inflate(0.1)).both_sides();
    let raise_outer = s().stroke(&outer, Shift(v(0.0, -0.28, 0.0)));
    let raise_inner = s().stroke(&inner, Shift(v(0.0, -0.3, 0.0)));
    let up_down = s().stroke(&outer, Inflate(0.06)).stroke(&inner, Inflate(0.06));
    let sneer_down = s().stroke(&glabella, Shift(v(0.0, -0.08, 0.06)));
    let wide_squint = s().stroke(&below, Inflate(0.05)).stroke(&above, Shift(v(0.0, -0.05, 0.0)));
    pair(all, &["eyeBlink_*", "eyeSquint_*"], squeeze)?;
    pair(all, &["browDown_*", "eyeBlink_*"], blink_down)?;
    pair(all, &["browUp_*", "eyeWide_*"], wide_up)?;
    pair(all, &["cheekSquint_*", "eyeSquint_*"], squint_cheek)?;
    pair(all, &["browDown_*", "browInnerUp_*"], grief)?;
    centre(all, &["browDown_L", "browDown_R"], furrow)?;
    pair(all, &["browOuterUp_*", "browUp_*"], raise_outer)?;
    pair(all, &["browInnerUp_*", "browUp_*"], raise_inner)?;
    pair(all, &["browDown_*", "browUp_*"], up_down)?;
    pair(all, &["browDown_*", "noseSneer_*"], sneer_down)?;
    pair(all, &["eyeSquint_*", "eyeWide_*"], wide_squint)
}

fn triples(all: &mut Collection) -> Result<(), RigError> {
    let body = all.anatomy;
    let v = Vec3::new;
    let corner = body.corner(2.4);
    let (upper, lower) = (body.lip(true, 1.4), body.lip(false, 1.4));
    let apple = body.at(3.7, -3.1, 2.4);
    let below = body.at(3.3, -2.1, 1.3);
    let glabella = body.at(0.45, 1.6, 1.4);
    let s = || all.sculpt();
    // A laugh: both corners and the jaw; the upper lip stays on the teeth and the lower flattens.
    let laugh = s().stroke(&upper, Shift(v(0.0, 0.1, -0.1))).stroke(&lower, Shift(v(0.0, -0.12, -0.08)));
    let shout = s().stroke(&corner, Shift(v(-0.12, 0.1, 0.12)));
    let ooh = s().stroke(&body.lips(1.8), Shift(v(0.0, 0.0, -0.18)));
    let grin = s().stroke(&below, Inflate(0.08)).stroke(&apple, Inflate(0.06));
    let snarl = s().stroke(&glabella, Inflate(0.06)).stroke(&body.at(0.75, -0.9, 1.2), Inflate(0.08));
    let scream = s().stroke(&lower, Shift(v(0.0, -0.14, 0.0))).stroke(&upper, Shift(v(0.0, 0.06, 0.0)));
    let mumble = s().stroke(&corner, around(-1.5));
    let wince =
        s().stroke(&below, Inflate(0.07)).stroke(&body.at(5.25, 0.1, 1.3), Shift(v(-0.06, 0.0, 0.05)));
    pair(all, &["jawOpen", "mouthFunnel", "mouthSmile_*"], shout)?;
    centre(all, &["jawOpen", "mouthSmile_L", "mouthSmile_R"], laugh)?;
    centre(all, &["jawOpen", "mouthFunnel", "mouthPucker"], ooh)?;
    pair(all, &["cheekSquint_*", "eyeSquint_*", "mouthSmile_*"], grin)?;
    pair(all, &["browDown_*", "mouthUpperUp_*", "noseSneer_*"], snarl)?;
    centre(all, &["jawOpen", "mouthStretch_L", "mouthStretch_R"], scream)?;
    pair(all, &["jawOpen", "mouthPucker", "mouthSmile_*"], mumble)?;
    pair(all, &["browDown_*", "eyeBlink_*", "eyeSquint_*"], wince)
}

fn quadruples(all: &mut Collection) -> Result<(), RigError> {
    let body = all.anatomy;
    let v = Vec3::new;
    let (upper, lower) = (body.lip(true, 1.4), body.lip(false, 1.4));
    let corner = body.corner(2.2);
    let glabella = body.at(0.45, 1.6, 1.4);
    let s = || all.sculpt();
    // A laugh that rounds: corners of both sides come forward again.
    let round_laugh = s().stroke(&corner, Shift(v(-0.08, 0.0, 0.14))).both_sides();
    let belly_laugh = s().stroke(&body.at(3.6, -2.8, 2.2), Inflate(0.12)).both_sides();
    let roar = s().stroke(&upper, Shift(v(0.0, 0.12, -0.04))).stroke(&lower, Shift(v(0.0, -0.1, 0.0)));
    let rage = s().stroke(&glabella, Shift(v(0.0, -0.08, 0.1))).both_sides();
    let grin = s().stroke(&upper, Shift(v(0.0, 0.05, -0.06)));
    let squeeze = s().stroke(&body.at(5.25, 0.1, 1.4), Inflate(0.08));
    centre(all, &["jawOpen", "mouthFunnel", "mouthSmile_L", "mouthSmile_R"], round_laugh)?;
    centre(all, &["cheekSquint_L", "cheekSquint_R", "mouthSmile_L", "mouthSmile_R"], belly_laugh)?;
    centre(all, &["jawOpen", "mouthUpperUp_L", "mouthUpperUp_R", "mouthStretch_L"], roar)?;
    centre(all, &["browDown_L", "browDown_R", "noseSneer_L", "noseSneer_R"], rage)?;
    centre(all, &["mouthSmile_L", "mouthSmile_R", "mouthUpperUp_L", "mouthUpperUp_R"], grin)?;
    pair(all, &["browDown_*", "cheekSquint_*", "eyeBlink_*", "eyeSquint_*"], squeeze)
}
