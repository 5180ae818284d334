//! Laws that every rig keeps, embedded or real: random poses stay finite and near the body, and every
//! control moves something. The figures are printed (`cargo test -- --nocapture`).

use rayon::prelude::*;
use understudy_core::Vec3;
use understudy_jobs::rigs::{Names, open, open_real_in};
use understudy_jobs::{Event, Silent, Watch};
use understudy_rigs::probe::{ProbeConfig, probe};
use understudy_rigs::sampling::{Method, SamplingConfig};
use understudy_rigs::{Rig, RigPose};
use understudy_testkit::shared_data;

/// The rigs that can be opened here.
fn rigs() -> Vec<Box<dyn Rig>> {
    let mut rigs: Vec<Box<dyn Rig>> =
        Names::EMBEDDED.iter().map(|name| open(name, &Silent).expect("it opens").rig).collect();
    if let Some(data) = shared_data() {
        rigs.extend(Names::REAL.iter().map(|name| open_real_in(name, &data, &Silent).expect("it opens").rig));
    }
    rigs
}

fn centre(vertices: &[Vec3]) -> Vec3 {
    vertices.iter().sum::<Vec3>() / vertices.len() as f32
}

fn reach(vertices: &[Vec3]) -> f32 {
    let centre = centre(vertices);
    vertices.iter().map(|v| v.distance(centre)).fold(0.0, f32::max)
}

/// Evaluates poses of all random methods; no vertex may leave the body by more than its height.
fn check_random_poses(rig: &dyn Rig, poses: u64) {
    let (low, high) = rig.mesh().bounds();
    let height = high.y - low.y;
    let bound = reach(rig.mesh().positions()) + height;
    let source = |method| {
        let config = SamplingConfig { method, seed: 77, ..SamplingConfig::default() };
        config.build(rig.specs(), rig.clips()).expect("valid")
    };
    let sources = [Method::Gaussian, Method::Uniform, Method::Noise].map(source);
    let evaluate = |pose: &mut RigPose, index: u64| {
        let controls = sources[(index % 3) as usize].pose(index);
        rig.evaluate(&controls, pose).unwrap_or_else(|error| panic!("pose {index}: {error}"));
        assert!(pose.vertices.iter().all(|v| v.is_finite()));
        reach(&pose.vertices)
    };
    let furthest = (0..poses).into_par_iter().map_init(RigPose::default, evaluate).reduce(|| 0.0, f32::max);
    eprintln!(
        "{}: {poses} random poses, no vertex beyond {furthest:.1} cm of the middle (at rest {:.1}, bound {bound:.1})",
        rig.name(),
        bound - height
    );
    assert!(furthest <= bound, "{}: a vertex is {furthest} cm from the middle, bound {bound}", rig.name());
}

#[test]
fn random_poses_stay_finite_and_near_the_body() {
    rigs().iter().for_each(|rig| check_random_poses(rig.as_ref(), 150));
}

#[test]
#[ignore = "minutes: the full ten thousand poses of every rig"]
fn ten_thousand_random_poses_stay_finite_and_near_the_body() {
    rigs().iter().for_each(|rig| check_random_poses(rig.as_ref(), 10_000));
}

#[test]
fn every_control_moves_something() {
    for rig in rigs() {
        let config = ProbeConfig { poses: 1, random_steps: 0, ..ProbeConfig::default() };
        let influence = probe(rig.as_ref(), &config).expect("a good rig");
        let share = influence.vertices.entry_count() as f64
            / (influence.vertices.row_count() * influence.vertices.column_count()) as f64;
        eprintln!("{}: a control moves {:.1} % of the vertices on average", rig.name(), share * 100.0);
        for (control, spec) in rig.specs().iter().enumerate() {
            let strongest = influence.vertices.row(control).map(|(_, s)| s).fold(0.0, f32::max);
            // The body of MakeHuman has the shape but not the tongue.
            let excused = rig.name() == "human" && spec.name == "tongueOut";
            assert!(strongest > 0.01 || excused, "{}: '{}' moves {strongest} cm", rig.name(), spec.name);
        }
        // A control never drives a bone without moving it in the world.
        for control in 0..rig.specs().len() {
            for (bone, _) in influence.bones_local.row(control) {
                assert!(influence.bones_global.strength(control, bone) > 0.0);
            }
        }
    }
}

#[test]
fn absent_data_is_explained() {
    struct Notes(std::sync::Mutex<Vec<String>>);
    impl Watch for Notes {
        fn event(&self, event: Event<'_>) {
            if let Event::Note { message } = event {
                self.0.lock().expect("one listener").push(message.into());
            }
        }
    }
    let notes = Notes(std::sync::Mutex::default());
    let names = Names::present(&notes);
    let notes = notes.0.into_inner().expect("one listener");
    assert_eq!(names.len() + notes.len(), 4, "every rig is there or explained");
    assert!(notes.iter().all(|note| note.contains("UNDERSTUDY_DATA")), "{notes:?}");
    let error = open("nobody", &Silent).err().expect("no such rig").to_string();
    assert!(error.contains("rook, mira, human, ict"), "{error}");
}
