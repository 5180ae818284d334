//! Rook: differential twins beside body twins, the paper's case of a joint that moves only in the test (figure 9), and how
//! far probed skinning is from the rig's own.

use super::{DiffArguments, Workshop, all_methods, reconstruction};
use crate::console::{Console, print};
use anyhow::{Context as _, Result};
use std::path::{Path, PathBuf};
use understudy_core::{Affine3A, Clip, ControlSpecs, Controls, Mesh, Random, Skeleton, SkinWeights, Vec3};
use understudy_jobs::sample::{Method, SampleConfig, record};
use understudy_jobs::twin::Learning;
use understudy_jobs::twin::eval::{EvalConfig, eval};
use understudy_jobs::{Silent, rigs};
use understudy_learn::diff::skin::probe;
use understudy_rigs::{Rig, RigError, RigPose};

const CLIPS: [&str; 3] = ["walk", "reach", "kick"];
/// The control that training holds still, and where the test holds it: a share of its range.
const HELD: &str = "spine_3.turn";
const MOVED: f32 = 0.6;

/// A rig one of whose controls does not obey.
struct Pinned<'a> {
    rig: &'a dyn Rig,
    control: usize,
    value: f32,
}

impl Rig for Pinned<'_> {
    fn name(&self) -> &str {
        self.rig.name()
    }

    fn specs(&self) -> &ControlSpecs {
        self.rig.specs()
    }

    fn mesh(&self) -> &Mesh {
        self.rig.mesh()
    }

    fn skeleton(&self) -> Option<&Skeleton> {
        self.rig.skeleton()
    }

    fn skin_weights(&self) -> Option<&SkinWeights> {
        self.rig.skin_weights()
    }

    fn clips(&self) -> &[Clip] {
        self.rig.clips()
    }

    fn evaluate_from(&self, rest: &[Vec3], controls: &Controls, out: &mut RigPose) -> Result<(), RigError> {
        let mut controls = controls.clone();
        controls.0[self.control] = self.value;
        self.rig.evaluate_from(rest, &controls, out)
    }
}

/// Everything about Rook.
pub fn rook(workshop: &Workshop, arguments: &DiffArguments) -> Result<()> {
    let poses = arguments.rook_poses;
    let rig = rigs::open("rook", &Silent)?.rig;
    probed_skin(rig.as_ref())?;
    let config = SampleConfig {
        rig: "rook".into(),
        poses: Some(poses),
        method: Some(Method::Sparse),
        ..SampleConfig::default()
    };
    let train = workshop.record(&format!("rook-{poses}"), config.clone())?;
    let test = CLIPS
        .iter()
        .map(|clip| {
            let clips = vec![(*clip).to_owned()];
            let frames = SampleConfig { rig: "rook".into(), clips, ..SampleConfig::default() };
            workshop.record(&format!("rook-{clip}"), frames)
        })
        .collect::<Result<Vec<_>>>()?;
    let report = against_bodies(workshop, arguments, &format!("rook-{poses}"), &train, test)?;
    print(&format!("rook, {poses} poses, {}\n{report}", CLIPS.join(", ")));

    let control = rig.specs().find(HELD).with_context(|| format!("rook has no control '{HELD}'"))?;
    let spec = rig.specs().get(control);
    let pinned = |name: &str, value: f32, config: SampleConfig| -> Result<PathBuf> {
        let output = workshop.at(name);
        let rig = Pinned { rig: rig.as_ref(), control, value };
        record(&rig, &SampleConfig { output: output.clone(), ..config }, &|_| Ok(()), &Console)?;
        Ok(output)
    };
    let train = pinned(&format!("rook-still-{poses}"), spec.default, config.clone())?;
    let few = SampleConfig { poses: Some(200), seed: 2, ..config };
    let test = pinned("rook-moved", spec.default + MOVED * (spec.high - spec.default), few)?;
    let report = against_bodies(workshop, arguments, &format!("rook-still-{poses}"), &train, vec![test])?;
    print(&format!(
        "rook, {poses} poses that hold {HELD} still, 200 that hold it at {:.0} % of its range\n{report}",
        100.0 * MOVED
    ));
    Ok(())
}

/// All twins on the same tests: errors, and jumps of the error across the groups of the body twin in the paper's recipe.
fn against_bodies(
    workshop: &Workshop,
    arguments: &DiffArguments,
    name: &str,
    train: &Path,
    test: Vec<PathBuf>,
) -> Result<String> {
    let mut against = Vec::new();
    for (body, learning) in arguments.bodies() {
        against.push((body.to_owned(), workshop.learn(&format!("{name}-{body}"), train, learning)?));
    }
    let ours = workshop.learn(&format!("{name}-diff"), train, Learning::Diff(arguments.full_size()))?;
    // The twin in the paper's recipe comes first: groups are asked of that one.
    let (_, twin) = against.remove(0);
    let fold = reconstruction(&ours)?;
    against.push(("diff".into(), ours));
    let report = eval(&EvalConfig { twin, test, against, ..EvalConfig::default() }, &Console)?;
    let seams: Vec<&String> = report.lines.iter().filter(|line| line.starts_with("seams")).collect();
    let seams = seams.into_iter().cloned().collect::<Vec<_>>().join("\n");
    let methods = all_methods(&report);
    Ok(format!("'twin' is the body twin in the paper's recipe\n{methods}\n{seams}\n{fold}"))
}

/// How far weights fitted to probes are from the rig's own, as transforms of vertices in random poses.
fn probed_skin(rig: &dyn Rig) -> Result<()> {
    let own = rig.skin_weights().context("rook shows his skin")?;
    let (probed, skeleton) = (probe(rig)?, rig.skeleton().context("rook has bones")?);
    let blend = |weights: &SkinWeights, vertex: usize, matrices: &[Affine3A]| {
        let mut sum = [0.0f32; 12];
        for (bone, weight) in weights.row(vertex) {
            let numbers = matrices[bone].to_cols_array();
            sum.iter_mut().zip(numbers).for_each(|(sum, n)| *sum += weight * n);
        }
        Affine3A::from_cols_array(&sum)
    };
    let (mut linear, mut places, mut matrices) = (Vec::new(), Vec::new(), Vec::new());
    let mut pose = RigPose::default();
    for index in 0..20 {
        let mut random = Random::stream(0x9a5e, index);
        let controls = rig.specs().iter().map(|s| random.truncated_normal(s.low, s.high)).collect();
        rig.evaluate(&Controls(controls), &mut pose)?;
        skeleton.skinning_matrices(&pose.global, &mut matrices);
        for (vertex, rest) in rig.mesh().positions().iter().enumerate() {
            let [a, b] = [own, &probed].map(|weights| blend(weights, vertex, &matrices));
            let numbers = a.to_cols_array().into_iter().zip(b.to_cols_array()).take(9);
            linear.push(numbers.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max));
            places.push(10.0 * a.transform_point3(*rest).distance(b.transform_point3(*rest)));
        }
    }
    let show = |mut numbers: Vec<f32>| {
        numbers.sort_unstable_by(f32::total_cmp);
        let mean = numbers.iter().map(|n| f64::from(*n)).sum::<f64>() / numbers.len() as f64;
        let at = |share: usize| numbers[(numbers.len() - 1) * share / 100];
        format!("mean {mean:.5}, median {:.5}, 95 % {:.5}, max {:.5}", at(50), at(95), at(100))
    };
    print(&format!(
        "rook's probed skin beside his own in 20 random poses: largest number of the linear part {}\nvertices that \
         these move apart, mm: {}",
        show(linear),
        show(places)
    ));
    Ok(())
}
