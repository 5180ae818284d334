//! Correctives for ARKit-style shapes: what happens where two or three shapes are on at once. Each has
//! a purpose; none is noise. Works on any rig whose shapes have the usual names.

use super::canonical;
use understudy_core::{BlendshapeRig, Corrective, Shape, SparseDeltas, Vec3};
use understudy_rigs::deformers::smooth_step;

/// Shapes that pull the same skin the same way: their sum overshoots. `*` stands for a side.
const OVERLAPS: [[&str; 2]; 14] = [
    ["browInnerUp*", "browOuterUp*"],
    ["browDown*", "noseSneer*"],
    ["eyeSquint*", "cheekSquint*"],
    ["eyeWide*", "eyeLookUp*"],
    ["mouthSmile*", "mouthStretch*"],
    ["mouthSmile*", "mouthDimple*"],
    ["mouthSmile*", "cheekSquint*"],
    ["mouthSmile*", "mouthUpperUp*"],
    ["mouthFrown*", "mouthStretch*"],
    ["mouthUpperUp*", "noseSneer*"],
    ["mouthFunnel", "mouthPucker"],
    ["cheekPuff*", "mouthPucker"],
    ["jawOpen", "mouthLowerDown*"],
    ["jawOpen", "mouthFunnel"],
];

/// Triples of which every pair overlaps: the pairs together take away too much.
const TRIPLES: [[&str; 3]; 4] = [
    ["mouthSmile*", "mouthStretch*", "mouthDimple*"],
    ["mouthSmile*", "mouthUpperUp*", "noseSneer*"],
    ["eyeSquint*", "cheekSquint*", "mouthSmile*"],
    ["jawOpen", "mouthFunnel", "mouthPucker"],
];

/// Shapes that move the lids of a shut eye, where there is nowhere left to go, and how far around the
/// shut lid they are held, cm: a gaze moves the whole lid, a squint has the cheek to move.
const SHUT_EYE: [(&str, f32); 4] =
    [("eyeSquint*", 0.5), ("eyeWide*", 1.2), ("eyeLookDown*", 1.2), ("eyeLookUp*", 1.2)];

/// How much of the smaller of two overlapping movements is taken away.
const DAMPING: f32 = 0.6;
/// Of what three pairs take away together, this share is given back.
const GIVE_BACK: f32 = 0.35;
/// Offsets below this many cm are left out.
const THRESHOLD: f32 = 0.004;

/// Shapes found by name, dense.
struct Shapes<'a> {
    rig: &'a BlendshapeRig,
    names: Vec<String>,
}

impl Shapes<'_> {
    /// The shape of a pattern on a side; shapes without sides answer for both.
    fn find(&self, pattern: &str, side: &str) -> Option<(u32, Vec<Vec3>)> {
        let base = pattern.trim_end_matches('*');
        let sided = format!("{base}{side}");
        let index = self.names.iter().position(|name| *name == sided);
        let index = index.or_else(|| self.names.iter().position(|name| name == base))?;
        let deltas = self.rig.shapes()[index].deltas.to_dense(self.rig.neutral().len());
        Some((index as u32, deltas))
    }
}

/// All correctives that the shapes of a rig allow, but for those of shut eyes.
pub(super) fn correctives(rig: &BlendshapeRig) -> Vec<Corrective> {
    let names = rig.shapes().iter().map(|shape| canonical(&shape.name)).collect();
    let shapes = Shapes { rig, names };
    let mut out: Vec<Corrective> = Vec::new();
    for side in ["_L", "_R"] {
        for [first, second] in OVERLAPS {
            if let (Some((i, a)), Some((j, b))) = (shapes.find(first, side), shapes.find(second, side)) {
                push(&mut out, vec![i, j], overlap(&a, &b));
            }
        }
        for triple in TRIPLES {
            let [Some((i, a)), Some((j, b)), Some((k, c))] = triple.map(|name| shapes.find(name, side))
            else {
                continue;
            };
            let pairs = [overlap(&a, &b), overlap(&b, &c), overlap(&a, &c)];
            let give = (0..a.len()).map(|v| (pairs[0][v] + pairs[1][v] + pairs[2][v]) * -GIVE_BACK);
            push(&mut out, vec![i, j, k], give.collect());
        }
        if let (Some((smile, a)), Some((jaw, b))) =
            (shapes.find("mouthSmile*", side), shapes.find("jawOpen", side))
        {
            push(&mut out, vec![smile, jaw], open_smile(&a, &b));
        }
    }
    out
}

/// Holds shut lids still: what other shapes would do to them is taken back. `rig` has the whole shapes;
/// `layer` may have had a part of them taken out.
pub(super) fn shut_eyes(rig: &BlendshapeRig, layer: &[Shape]) -> Vec<Corrective> {
    let names = rig.shapes().iter().map(|shape| canonical(&shape.name)).collect();
    let shapes = Shapes { rig, names };
    let mut out = Vec::new();
    for side in ["_L", "_R"] {
        let Some((blink, closed)) = shapes.find("eyeBlink*", side) else { continue };
        let distance = distance_to_lid(rig.neutral(), &closed);
        for (name, reach) in SHUT_EYE {
            let Some((index, _)) = shapes.find(name, side) else { continue };
            let touch: Vec<f32> = distance.iter().map(|d| smooth_step(reach, 0.3 * reach, *d)).collect();
            let moves = layer[index as usize].deltas.to_dense(touch.len());
            let held = moves.iter().zip(&touch).map(|(delta, touch)| *delta * -touch);
            push(&mut out, vec![blink, index], held.collect());
        }
    }
    out
}

/// Adds a corrective unless it is empty or there already (shapes without sides meet twice).
fn push(out: &mut Vec<Corrective>, mut shapes: Vec<u32>, dense: Vec<Vec3>) {
    shapes.sort_unstable();
    shapes.dedup();
    let deltas = SparseDeltas::from_dense(&dense, THRESHOLD);
    if shapes.len() >= 2 && !deltas.is_empty() && out.iter().all(|other| other.shapes != shapes) {
        out.push(Corrective { shapes, deltas });
    }
}

/// Where two movements agree, a share of the smaller one is taken away along their sum.
fn overlap(a: &[Vec3], b: &[Vec3]) -> Vec<Vec3> {
    let each = |(a, b): (&Vec3, &Vec3)| {
        let (long, short) = (a.length().max(b.length()), a.length().min(b.length()));
        if short < 1e-5 {
            return Vec3::ZERO;
        }
        let agree = (a.dot(*b) / (long * short)).max(0.0);
        (*a + *b).normalize_or_zero() * (-DAMPING * agree * short)
    };
    a.iter().zip(b).map(each).collect()
}

/// How far each vertex lies from where the shut upper lid comes to rest, cm.
fn distance_to_lid(rest: &[Vec3], closed: &[Vec3]) -> Vec<f32> {
    let furthest = closed.iter().map(|d| d.length()).fold(0.0, f32::max);
    let lid = rest.iter().zip(closed).filter(|(_, d)| d.length() > 0.5 * furthest);
    let lid: Vec<Vec3> = lid.map(|(p, d)| *p + *d).collect();
    let near = |(rest, delta): (&Vec3, &Vec3)| {
        let here = *rest + *delta;
        lid.iter().map(|l| l.distance_squared(here)).fold(f32::INFINITY, f32::min).sqrt()
    };
    rest.iter().zip(closed).map(near).collect()
}

/// With the jaw down, the corner of a smile goes less far up and further back round the teeth.
fn open_smile(smile: &[Vec3], jaw: &[Vec3]) -> Vec<Vec3> {
    let most = jaw.iter().map(|d| d.length()).fold(1e-6, f32::max);
    let each = |(smile, jaw): (&Vec3, &Vec3)| {
        let both = smile.length() * smooth_step(0.0, 0.5, jaw.length() / most);
        Vec3::new(0.0, -0.25 * smile.y.max(0.0), 0.0) + Vec3::new(0.0, 0.0, -0.22 * both)
    };
    smile.iter().zip(jaw).map(each).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rig(shapes: &[(&str, Vec3)]) -> BlendshapeRig {
        let rest = vec![Vec3::ZERO, Vec3::X * 10.0];
        let shape = |(name, way): &(&str, Vec3)| Shape {
            name: (*name).into(),
            deltas: SparseDeltas { vertices: vec![0], deltas: vec![*way] },
        };
        BlendshapeRig::new(rest, shapes.iter().map(shape).collect(), vec![]).expect("valid shapes")
    }

    #[test]
    fn agreeing_shapes_are_damped_and_opposed_ones_left() {
        let agree = rig(&[("mouthSmileLeft", Vec3::X), ("mouthStretchLeft", Vec3::X * 0.5)]);
        let found = correctives(&agree);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].shapes, [0, 1]);
        assert!((found[0].deltas.deltas[0] - Vec3::X * -0.3).length() < 1e-6);
        let opposed = rig(&[("mouthSmileLeft", Vec3::X), ("mouthStretchLeft", -Vec3::X)]);
        assert!(correctives(&opposed).is_empty());
    }

    /// A shut lid stays shut: blink and squint together are the blink.
    #[test]
    fn a_shut_eye_ignores_squinting() {
        let shapes = rig(&[("eyeBlink_L", -Vec3::Y), ("eyeSquint_L", Vec3::Y * 0.3)]);
        let found = shut_eyes(&shapes, shapes.shapes());
        let with =
            BlendshapeRig::new(shapes.neutral().to_vec(), shapes.shapes().to_vec(), found).expect("valid");
        let mut out = vec![Vec3::ZERO; 2];
        with.evaluate(&[1.0, 1.0], &mut out);
        assert!((out[0] + Vec3::Y).length() < 1e-6);
    }

    #[test]
    fn triples_give_back_and_sides_do_not_mix() {
        let way = Vec3::Y * 0.5;
        let shapes = rig(&[
            ("mouthSmile_R", way),
            ("mouthUpperUp_R", way),
            ("noseSneer_R", way),
            ("mouthStretch_L", way),
        ]);
        let found = correctives(&shapes);
        let triple = found.iter().find(|c| c.shapes == [0, 1, 2]).expect("a triple");
        assert!(triple.deltas.deltas[0].y > 0.2);
        assert!(found.iter().all(|c| !c.shapes.contains(&3)));
    }
}
