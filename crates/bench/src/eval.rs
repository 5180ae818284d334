//! How long `eval --train` takes to fit its baselines on a rig of many bones: a synthetic one (dual-quaternion skinned
//! limbs), recorded, and weighed with a twin that is plain linear skinning, so that the baselines are what is timed.

use crate::console::{Console, print, table};
use anyhow::{Context as _, Result};
use clap::Args;
use std::f32::consts::TAU;
use std::path::PathBuf;
use std::time::Instant;
use understudy_core::{
    Bone, Channel, ControlSpec, ControlSpecs, Face, JointTransform, MeshParts, Skeleton, SkinWeights, Vec3,
};
use understudy_io::write_atomic;
use understudy_jobs::sample::{SampleConfig, record};
use understudy_jobs::twin::eval::{EvalConfig, eval};
use understudy_rigs::deformers::{RigSize, Skinning};
use understudy_rigs::{Rig, StackParts, StackRig};
use understudy_runtime::body::{BodyParts, BodyTwin, GroupParts, InputFrame};
use understudy_runtime::{BoneHeader, Header, Inputs, Precision, Training, Twin};

/// What to time.
#[derive(Debug, Args)]
pub struct EvalArguments {
    /// Bones of the rig.
    #[arg(long, value_name = "N", default_value_t = 500)]
    bones: usize,
    /// Vertices of the rig, at least.
    #[arg(long, value_name = "N", default_value_t = 15_000)]
    vertices: usize,
    /// Training poses.
    #[arg(long, value_name = "N", default_value_t = 1600)]
    poses: u64,
    /// Baselines, or `all` [default: the usual ones].
    #[arg(long, value_name = "NAME,NAME", value_delimiter = ',')]
    baselines: Vec<String>,
    /// Folder of the recordings, which are made anew.
    #[arg(long, value_name = "DIR", default_value = "target/bench/eval")]
    folder: PathBuf,
}

/// Records, weighs, and prints what took how long.
pub fn run(arguments: &EvalArguments) -> Result<()> {
    let (rig, weights) = limbs(arguments.bones, arguments.vertices)?;
    let at = |name: &str| arguments.folder.join(name);
    // Fits are kept beside the data: what an earlier run left would be read instead of fitted.
    if arguments.folder.exists() {
        std::fs::remove_dir_all(&arguments.folder).context("the old recordings cannot be removed")?;
    }
    for (name, poses, seed) in [("train", arguments.poses, 1), ("test", 50, 2)] {
        let config = SampleConfig {
            rig: NAME.into(),
            output: at(name),
            poses: Some(poses),
            seed,
            ..SampleConfig::default()
        };
        record(&rig, &config, &|_| Ok(()), &Console)?;
    }
    write_atomic(&at("skin.twin"), &skin_twin(&rig, weights)?.to_bytes()?)?;
    let config = EvalConfig {
        twin: at("skin.twin"),
        test: vec![at("test")],
        train: Some(at("train")),
        baselines: arguments.baselines.clone(),
        ..EvalConfig::default()
    };
    let start = Instant::now();
    let report = eval(&config, &Console)?;
    let seconds = start.elapsed().as_secs_f64();
    let row = |name: &String| {
        let (fit, figures) = (report.fits.get(name), &report.methods[name]);
        vec![
            name.clone(),
            fit.map_or_else(|| "-".into(), |fit| fit.poses.to_string()),
            fit.map_or_else(|| "-".into(), |fit| format!("{:.1}", fit.seconds)),
            format!("{:.3}", figures.mean_mm),
            format!("{:.1}", figures.max_mm),
        ]
    };
    let rows: Vec<Vec<String>> = report.order.iter().map(row).collect();
    print(&format!(
        "{} vertices, {} bones, {} training poses: {seconds:.0} s in all\n{}",
        rig.mesh().vertex_count(),
        arguments.bones,
        arguments.poses,
        table(&["", "fitted to poses", "seconds", "mean mm", "max mm"], &rows)
    ));
    Ok(())
}

const NAME: &str = "limbs";
/// Bones of one limb, the distance between two of them in cm, and vertices around a limb.
const LENGTH: usize = 25;
const STEP: f32 = 4.0;
const AROUND: usize = 15;

/// Limbs in a row, each a chain of bones with a tube around it; every bone turns about three axes.
fn limbs(bones: usize, vertices: usize) -> Result<(StackRig, SkinWeights)> {
    let (mut chain, mut controls, mut rows) = (Vec::new(), Vec::new(), Vec::new());
    let mut parts = MeshParts::default();
    let rings = vertices.div_ceil(AROUND * bones.max(1)).max(1);
    for bone in 0..bones {
        let (limb, place) = (bone / LENGTH, bone % LENGTH);
        let root = Vec3::X * (30.0 * limb as f32);
        let name = format!("bone_{bone:03}");
        let (parent, offset) = if place == 0 { (None, root) } else { (Some(bone - 1), Vec3::Y * STEP) };
        for (axis, channel) in [("x", Channel::RotateX), ("y", Channel::RotateY), ("z", Channel::RotateZ)] {
            controls.push(ControlSpec::joint(format!("{name}_{axis}"), &name, channel, -25.0, 25.0));
        }
        chain.push(Bone { name, parent, rest: JointTransform::from_translation(offset) });
        for ring in 0..rings {
            let along = ring as f32 / rings as f32;
            let first = parts.positions.len() as u32;
            for step in 0..AROUND {
                let angle = TAU * step as f32 / AROUND as f32;
                let height = STEP * (place as f32 + along);
                parts.positions.push(root + Vec3::new(3.0 * angle.cos(), height, 3.0 * angle.sin()));
                rows.push(match parent {
                    // A vertex follows the bone below it, and near its root the one before.
                    Some(before) if along < 0.5 => {
                        vec![(before as u16, 0.5 - along), (bone as u16, 0.5 + along)]
                    }
                    _ => vec![(bone as u16, 1.0)],
                });
            }
            if ring > 0 || place > 0 {
                let around = AROUND as u32;
                let quad = |step: u32| {
                    let (a, b) = (first + step, first + (step + 1) % around);
                    Face::quad(a - around, a, b, b - around)
                };
                parts.faces.extend((0..around).map(quad));
            }
        }
    }
    let mesh = parts.build()?;
    let (skeleton, specs) = (Skeleton::new(chain)?, ControlSpecs::new(controls)?);
    let weights = SkinWeights::from_rows(&rows, bones)?;
    let size = RigSize::new(&mesh, Some(&skeleton), &specs);
    let skinning = Skinning::new(weights.clone(), vec![1.0; mesh.vertex_count()], &size)?;
    let stack = StackParts {
        skeleton: Some(skeleton),
        weights: Some(weights.clone()),
        deformers: vec![Box::new(skinning)],
        ..StackParts::default()
    };
    Ok((StackRig::new(NAME, mesh, specs, stack)?, weights))
}

/// A twin without networks: linear blend skinning with the rig's own weights.
fn skin_twin(rig: &StackRig, weights: SkinWeights) -> Result<Twin> {
    let (mesh, skeleton) = (rig.mesh(), rig.skeleton().context("limbs have bones")?);
    let mut vertices = vec![Vec::new(); skeleton.len()];
    for vertex in 0..mesh.vertex_count() {
        let strongest =
            weights.row(vertex).max_by(|a, b| a.1.total_cmp(&b.1)).context("every row has a bone")?;
        vertices[strongest.0].push(vertex as u32);
    }
    let group = |(bone, vertices): (usize, Vec<u32>)| GroupParts {
        bone,
        vertices,
        ghosts: Vec::new(),
        inputs: Vec::new(),
        mean: Vec::new(),
        scale: Vec::new(),
        layers: Vec::new(),
    };
    let bones =
        skeleton.bones().iter().map(|b| BoneHeader { name: b.name.clone(), parent: b.parent }).collect();
    let parts = BodyParts {
        header: Header {
            rig: NAME.into(),
            topology_hash: mesh.topology_hash(),
            units: "cm".into(),
            inputs: Inputs { bones, controls: ControlSpecs::new(Vec::new())? },
            training: Training::default(),
        },
        frame: InputFrame::default(),
        rigid_frames: false,
        rest_vertices: mesh.positions().to_vec(),
        rest_bones: skeleton.rest_global().to_vec(),
        base: Some(weights),
        faces: mesh.faces().to_vec(),
        groups: vertices.into_iter().enumerate().map(group).collect(),
        seams: None,
    };
    Ok(BodyTwin::new(parts, Precision::Single)?.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_rig_is_recorded_weighed_and_all_baselines_are_fitted() {
        let folder = tempfile::tempdir().expect("a scratch folder");
        let (rig, weights) = limbs(30, 900).expect("a rig");
        assert_eq!((rig.mesh().vertex_count(), rig.skeleton().map(Skeleton::len)), (900, Some(30)));
        let mut out = vec![Vec3::ZERO; 900];
        let twin = skin_twin(&rig, weights).expect("a twin");
        let rest = understudy_runtime::Pose::Bones { bones: twin.rest_bones(), extras: &[] };
        twin.player(1).pose(rest, &mut out).expect("it plays");
        let moved = out.iter().zip(rig.mesh().positions()).map(|(a, b)| a.distance(*b)).fold(0.0, f32::max);
        assert!(moved < understudy_testkit::Tol::position_cm(30), "at rest a vertex moves by {moved} cm");
        let arguments = EvalArguments {
            bones: 30,
            vertices: 900,
            poses: 60,
            baselines: Vec::new(),
            folder: folder.path().join("eval"),
        };
        run(&arguments).expect("it is weighed");
        run(&arguments).expect("and again, from nothing");
    }
}
