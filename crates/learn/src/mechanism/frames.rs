//! In whose frame a bone is learned. A twin's tree says which bone carries which; what a bone does may be simpler elsewhere:
//! a hand under inverse kinematics is still in the frame of what it reaches for, whatever the chest does. Start at [`choose`].

use super::PosedBones;
use super::fit::{Design, families_of, held_error};
use super::inputs::Probes;
use super::targets::Target;
use rayon::prelude::*;
use understudy_core::{Affine3A, Vec3};
use understudy_runtime::mechanism::learned::{AIM_INPUTS, Aim};

/// How a bone is learned.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Placing {
    pub parent: Option<usize>,
    pub aim: Option<Aim>,
    /// What it sees, the strongest first.
    pub inputs: Vec<u32>,
}

/// Bones at rest that are compared with each besides guides and neighbours in the tree.
const NEAREST: usize = 32;
/// A control that turns a bone by so much, radians, over its whole range counts half of one that turns it far.
const SOFT: f32 = 0.02;
/// What a quick fit may leave (radians, lengths from [`super::LEVER_CM`]) before a goal is looked for.
const HARD: f64 = 3e-3;
/// A goal is taken where it leaves at most this share.
const WORTH: f64 = 0.6;
/// A place strays so far in a frame, as a share of the character's size, and still counts as fixed.
const FIXED: f32 = 1.5e-3;
/// Poses of quick fits, controls that they see, terms.
const QUICK: (usize, usize, usize) = (900, 12, 90);
/// Controls that a limb sees besides its goal.
const BESIDES: usize = 8;

/// The frame, the goal and the controls of every bone.
pub(super) fn choose(poses: &PosedBones, probes: &Probes) -> Vec<Placing> {
    let (order, mut placings) = tree(poses, probes);
    let size = size_of(poses);
    let rows: Vec<usize> = spread(poses.len(), QUICK.0);
    let plain: Vec<(f64, Vec<u32>)> = (0..placings.len())
        .into_par_iter()
        .map(|bone| {
            let inputs = probes.controls(bone, placings[bone].parent);
            let target = Target::new(poses, bone, placings[bone].parent, None);
            let seen = &inputs[..inputs.len().min(QUICK.1)];
            (quick(poses, &target, seen, &rows), inputs)
        })
        .collect();
    for (placing, (_, inputs)) in placings.iter_mut().zip(&plain) {
        placing.inputs = inputs.clone();
    }
    // In the order in which bones were placed: what a limb reaches for is there before it.
    let mut placed = Vec::new();
    let mut taken: Vec<(Option<usize>, Aim)> = Vec::new();
    for bone in order {
        let (left, _) = plain[bone];
        if left > HARD {
            let hubs = hubs(poses, &placings, &placed);
            let tried = candidates(poses, &placings, bone, &placed, &hubs, &taken, size);
            let errors = tried.par_iter().map(|(parent, aim)| {
                let target = Target::new(poses, bone, *parent, Some(aim.clone()));
                quick(poses, &target, &aim_inputs(poses), &rows)
            });
            let errors: Vec<f64> = errors.collect();
            let best = errors.iter().enumerate().min_by(|a, b| a.1.total_cmp(b.1));
            if let Some((place, error)) = best.filter(|(_, error)| **error < WORTH * left) {
                let (parent, aim) = tried[place].clone();
                tracing(poses, bone, &parent, &aim, left, *error);
                placings[bone] = with_goal(poses, probes, bone, parent, aim.clone());
                if !taken.contains(&(parent, aim.clone())) {
                    taken.push((parent, aim));
                }
            }
        }
        placed.push(bone);
    }
    placings
}

/// What is seen of a goal, the distance first.
fn aim_inputs(poses: &PosedBones) -> Vec<u32> {
    let first = poses.specs.len() as u32;
    (first..first + AIM_INPUTS as u32).collect()
}

/// A limb sees its goal and the controls that move it but not its goal.
fn with_goal(poses: &PosedBones, probes: &Probes, bone: usize, parent: Option<usize>, aim: Aim) -> Placing {
    let through = probes.controls(aim.target, parent);
    let mut own = probes.controls(bone, parent);
    own.retain(|control| !through.contains(control));
    own.truncate(BESIDES);
    let seen = aim_inputs(poses);
    let (first, rest) = seen.split_at(5);
    Placing { parent, aim: Some(aim), inputs: [first, &own, rest].concat() }
}

fn size_of(poses: &PosedBones) -> f32 {
    poses.rest.iter().map(|bone| bone.translation.length()).fold(1.0, f32::max)
}

fn spread(count: usize, most: usize) -> Vec<usize> {
    let most = most.min(count);
    (0..most).map(|row| row * count / most).collect()
}

/// What the closed form leaves on every fifth of some poses.
fn quick(poses: &PosedBones, target: &Target, inputs: &[u32], rows: &[usize]) -> f64 {
    if target.width() == 0 {
        return 0.0;
    }
    let (held, training): (Vec<(usize, usize)>, Vec<_>) =
        rows.iter().copied().enumerate().partition(|(place, _)| place % 5 == 2);
    let [held, training] =
        [held, training].map(|rows| rows.into_iter().map(|(_, row)| row).collect::<Vec<_>>());
    let families: Vec<_> = inputs.iter().map(|input| families_of(&poses.specs, *input)[0]).collect();
    let design = Design::new(poses, target, inputs, &families, QUICK.2.min(training.len() / 4));
    held_error(poses, target, &design, &training, &held)
}

/// The tree in which the fewest controls move bones in their parents' frames (Prim), and the order in which it grew.
fn tree(poses: &PosedBones, probes: &Probes) -> (Vec<usize>, Vec<Placing>) {
    let count = poses.names.len();
    let size = size_of(poses);
    let posed = count - poses.guides;
    let away = |a: usize, b: usize| poses.rest[a].translation.distance(poses.rest[b].translation);
    let near = |bone: usize| -> Vec<usize> {
        let mut others: Vec<usize> = (0..posed).filter(|other| *other != bone).collect();
        others.sort_by(|a, b| away(bone, *a).total_cmp(&away(bone, *b)));
        others.truncate(NEAREST);
        others.extend((posed..count).filter(|guide| *guide != bone));
        others.extend(poses.parents[bone]);
        others
    };
    let price = |bone: usize, frame: Option<usize>| -> f32 {
        let soft: f32 = probes
            .strengths(bone, frame)
            .iter()
            .map(|(strength, _)| strength / (strength + SOFT) + 0.02)
            .sum();
        let far = frame.map_or(1.0, |frame| away(bone, frame) / size);
        soft + 1e-3 * far
    };
    let rows: Vec<Vec<(usize, f32)>> = (0..count)
        .into_par_iter()
        .map(|bone| near(bone).into_iter().map(|other| (other, price(bone, Some(other)))).collect())
        .collect();
    let mut prices: Vec<Vec<(usize, f32)>> = vec![Vec::new(); count];
    for (bone, row) in rows.into_iter().enumerate() {
        for (other, price) in row {
            prices[bone].push((other, price));
            prices[other].push((bone, price));
        }
    }
    let world: Vec<f32> = (0..count).into_par_iter().map(|bone| price(bone, None)).collect();
    let mut best: Vec<(f32, Option<usize>)> = world.into_iter().map(|price| (price, None)).collect();
    let mut waiting = vec![true; count];
    let mut order = Vec::with_capacity(count);
    let mut placings = vec![Placing::default(); count];
    for _ in 0..count {
        let next = (0..count).filter(|bone| waiting[*bone]).min_by(|a, b| best[*a].0.total_cmp(&best[*b].0));
        let Some(next) = next else { break };
        waiting[next] = false;
        placings[next].parent = best[next].1;
        order.push(next);
        for (other, price) in &prices[next] {
            if waiting[*other] && *price < best[*other].0 {
                best[*other] = (*price, Some(next));
            }
        }
    }
    (order, placings)
}

/// Bones that limbs may reach for: guides, and what hangs on guides or in the world.
fn hubs(poses: &PosedBones, placings: &[Placing], placed: &[usize]) -> Vec<usize> {
    let posed = poses.names.len() - poses.guides;
    let is_hub = |bone: &usize| *bone >= posed || placings[*bone].parent.is_none_or(|parent| parent >= posed);
    placed.iter().copied().filter(is_hub).collect()
}

/// Frames with places that are fixed in them, and goals that move in them.
fn candidates(
    poses: &PosedBones,
    placings: &[Placing],
    bone: usize,
    placed: &[usize],
    hubs: &[usize],
    taken: &[(Option<usize>, Aim)],
    size: f32,
) -> Vec<(Option<usize>, Aim)> {
    /// Frames that are tried, nearest first, besides parents.
    const FRAMES: usize = 6;
    let rows = spread(poses.len(), 120);
    let own = poses.rest[bone].translation;
    let mut frames: Vec<usize> = Vec::new();
    let mut above = placings[bone].parent;
    while let Some(parent) = above.filter(|_| frames.len() < 3) {
        frames.push(parent);
        above = placings[parent].parent;
    }
    let mut near: Vec<usize> = placed.to_vec();
    let away = |other: &usize| poses.rest[*other].translation.distance(own);
    near.sort_by(|a, b| away(a).total_cmp(&away(b)));
    let near = near.into_iter().filter(|frame| !frames.contains(frame)).take(FRAMES).collect::<Vec<_>>();
    frames.extend(near);
    // Where a bone's origin is in a frame over the poses: mean and how far it strays.
    let track = |frame: usize, bone: usize| -> (Vec3, f32) {
        let places: Vec<Vec3> = rows
            .iter()
            .map(|pose| {
                let bones = poses.bones_of(*pose);
                Vec3::from(bones[frame].inverse().transform_point3a(bones[bone].translation))
            })
            .collect();
        let mean = places.iter().sum::<Vec3>() / places.len().max(1) as f32;
        let strays = places.iter().map(|place| place.distance_squared(mean)).sum::<f32>();
        (mean, (strays / places.len().max(1) as f32).sqrt())
    };
    let mut out = Vec::new();
    for frame in frames {
        let (base, strays) = track(frame, bone);
        if strays > FIXED * size {
            continue;
        }
        let goals = hubs.iter().filter(|goal| **goal != frame && **goal != bone);
        let goals = goals.filter(|goal| track(frame, **goal).1 > 10.0 * FIXED * size);
        out.extend(goals.filter_map(|goal| Some((Some(frame), aim(poses, &rows, frame, base, *goal)?))));
    }
    // The lower parts of a limb point as its upper one does.
    out.extend(taken.iter().filter(|(_, aim)| aim.target != bone).cloned());
    out
}

/// A frame that points from a place in a frame to a goal.
fn aim(poses: &PosedBones, rows: &[usize], frame: usize, base: Vec3, target: usize) -> Option<Aim> {
    let rest: &Affine3A = &poses.rest[frame];
    let place = rest.transform_point3a(base.into());
    let (turn, _) = understudy_runtime::mechanism::learned::rotation_and_stretch(&rest.matrix3)?;
    let axis = turn.transpose() * (poses.rest[target].translation - place);
    let axis = Vec3::from(axis).try_normalize()?;
    let mut aim = Aim { base, axis, reach: 0.0, target };
    // Beyond the longest but for a few, limbs are stretched.
    let mut far: Vec<f32> = rows
        .iter()
        .map(|pose| aim.look(&poses.bones_of(*pose)[frame], &poses.bones_of(*pose)[target]).1[0])
        .collect();
    far.sort_by(f32::total_cmp);
    aim.reach = *far.last()?;
    Some(aim)
}

/// For whoever wants to know why: `RUST_LOG` has no place in a library, so this speaks in debug builds of tests alone.
fn tracing(poses: &PosedBones, bone: usize, parent: &Option<usize>, aim: &Aim, plain: f64, goal: f64) {
    if std::env::var_os("UNDERSTUDY_FRAMES").is_some() {
        let parent = parent.map_or("the world", |parent| poses.names[parent].as_str());
        let (bone, target) = (&poses.names[bone], &poses.names[aim.target]);
        eprintln!("{bone}: in {parent}, to {target}: {plain:.5} → {goal:.5}");
    }
}
