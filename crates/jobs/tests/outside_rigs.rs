//! Body twins of rigs that somebody else recorded: bones with scale and shear, bones without parents, bones in another
//! order, controls that move no bone, and no rig to ask. A bending, bulging tube stands for all of them.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use understudy_core::{
    Affine3A, Bone, ControlSpec, ControlSpecs, Controls, Face, GlobalPose, JointTransform, Mesh, MeshParts,
    Quat, Random, Skeleton, Vec3,
};
use understudy_io::dataset::{Chunk, ChunkShape, DatasetHeader, DatasetRest, DatasetWriter};
use understudy_jobs::twin::body::{BodyDetails, BodyLearning};
use understudy_jobs::twin::eval::{EvalConfig, MethodFigures, eval};
use understudy_jobs::twin::learn::{LearnConfig, LearnReport, learn};
use understudy_jobs::twin::{LearnDetails, Learning};
use understudy_jobs::{Event, JobError, Watch};

const RINGS: u32 = 19;
const AROUND: u32 = 10;
/// Heights of the three bones.
const JOINTS: [f32; 3] = [0.0, 20.0, 40.0];

/// What kind of rig was recorded.
#[derive(Clone)]
struct Tube {
    /// Scale that the armature's node carries: every bone has it.
    armature: f32,
    /// How much bones squash and stretch from pose to pose.
    squash: f32,
    /// Scale of the whole scene, bones and mesh: shears bones that are turned.
    scene: Vec3,
    /// Whether the file names parents.
    parents: bool,
    /// Whether the control that puffs the tube up is recorded.
    puff: bool,
    /// Which bone stands where in the file.
    order: [usize; 3],
    /// Size of everything.
    size: f32,
    /// What recorded vertices are multiplied with: a recording gone wrong.
    broken: f32,
}

impl Default for Tube {
    fn default() -> Self {
        Self {
            armature: 1.0,
            squash: 0.0,
            scene: Vec3::ONE,
            parents: true,
            puff: true,
            order: [0, 1, 2],
            size: 1.0,
            broken: 1.0,
        }
    }
}

fn mesh(tube: &Tube) -> Mesh {
    let ring = |i: u32| {
        (0..AROUND).map(move |k| {
            let angle = k as f32 / AROUND as f32 * std::f32::consts::TAU;
            Vec3::new(8.0 * angle.cos(), i as f32 * 60.0 / (RINGS - 1) as f32, 8.0 * angle.sin())
        })
    };
    let at = |i: u32, k: u32| i * AROUND + k % AROUND;
    let quad = |i: u32, k: u32| Face::quad(at(i, k), at(i + 1, k), at(i + 1, k + 1), at(i, k + 1));
    MeshParts {
        positions: (0..RINGS).flat_map(ring).map(|v| v * tube.scene * tube.size).collect(),
        faces: (0..RINGS - 1)
            .flat_map(|i| (0..AROUND).map(move |k| (i, k)))
            .map(|(i, k)| quad(i, k))
            .collect(),
        ..MeshParts::default()
    }
    .build()
    .expect("a tube")
}

/// The bones at rest without any scale.
fn rest_bone(bone: usize) -> Affine3A {
    Affine3A::from_translation(Vec3::Y * JOINTS[bone])
}

/// A pose: plain bones, the bones as recorded (in the tube's order), controls and vertices.
fn pose(tube: &Tube, seed: u64, index: u64) -> (Vec<Affine3A>, Vec<f32>, Vec<Vec3>) {
    let mut random = Random::stream(seed, index);
    let mut turn =
        |most: f32| Quat::from_scaled_axis(Vec3::from_array([0; 3].map(|_| random.uniform(-most, most))));
    let turns = [turn(1.5), turn(0.8), turn(0.8)];
    let place = Vec3::from_array([0; 3].map(|_| random.uniform(-30.0, 30.0)));
    let puff = random.uniform(0.0, 1.0);
    let stretch: Vec<Vec3> = (0..3)
        .map(|_| Vec3::from_array([0; 3].map(|_| 1.0 + tube.squash * random.uniform(-1.0, 1.0))))
        .collect();
    let mut plain = vec![Affine3A::from_rotation_translation(turns[0], place)];
    for bone in 1..3 {
        let local =
            Affine3A::from_rotation_translation(turns[bone], Vec3::Y * (JOINTS[bone] - JOINTS[bone - 1]));
        plain.push(plain[bone - 1] * local);
    }
    let scene = Affine3A::from_scale(tube.scene * tube.size);
    let posed: Vec<Affine3A> =
        plain.iter().zip(&stretch).map(|(bone, s)| scene * *bone * Affine3A::from_scale(*s)).collect();
    let carriers: Vec<Affine3A> =
        posed.iter().enumerate().map(|(bone, m)| *m * (scene * rest_bone(bone)).inverse()).collect();
    let vertices: Vec<Vec3> = mesh(tube)
        .positions()
        .iter()
        .map(|rest| {
            let height = rest.y / (tube.scene.y * tube.size);
            let upper = ((height - 30.0) / 10.0).clamp(0.0, 1.0);
            let lower = ((height - 10.0) / 10.0).clamp(0.0, 1.0);
            let weights = [1.0 - lower, lower - upper, upper];
            let linear: Vec3 = carriers.iter().zip(weights).map(|(c, w)| c.transform_point3(*rest) * w).sum();
            // What skinning cannot do: a bulge that grows with the square of the bend, and one that a control makes.
            let outward = Vec3::new(rest.x, 0.0, rest.z).normalize() * tube.size;
            let near = |y: f32| (-((height - y) / 8.0).powi(2)).exp();
            let bend = |bone: usize| 1.0 - turns[bone].w.abs();
            let bulge = 12.0 * (bend(1) * near(20.0) + bend(2) * near(40.0)) + 2.0 * puff * puff * near(50.0);
            linear
                + (scene * plain[if height < 30.0 { 1 } else { 2 }])
                    .transform_vector3(outward * bulge / tube.size)
        })
        .collect();
    let recorded = tube.order.map(|bone| posed[bone] * Affine3A::from_scale(Vec3::splat(tube.armature)));
    (
        recorded.to_vec(),
        if tube.puff { vec![puff] } else { vec![] },
        vertices.iter().map(|v| *v * tube.broken).collect(),
    )
}

fn rest(tube: &Tube) -> DatasetRest {
    let place =
        |bone: usize| tube.order.iter().position(|other| *other == bone).expect("every bone is there");
    let bone = |bone: &usize| {
        let parent = (tube.parents && *bone > 0).then(|| bone - 1);
        let whole = tube.scene * tube.size;
        let scale = if parent.is_some() { Vec3::ONE } else { whole * tube.armature };
        let offset = JOINTS[*bone] - parent.map_or(0.0, |parent| JOINTS[parent]);
        let unit = if parent.is_some() { Vec3::splat(1.0 / tube.armature) } else { whole };
        Bone {
            name: ["hip", "waist", "chest"][*bone].into(),
            parent: parent.map(place),
            rest: JointTransform { rotation: Quat::IDENTITY, translation: Vec3::Y * offset * unit, scale },
        }
    };
    let skeleton = Skeleton::new(tube.order.iter().map(bone).collect()).expect("a chain");
    DatasetRest { mesh: mesh(tube), skeleton: Some(skeleton), weights: None }
}

fn write(folder: &Path, tube: &Tube, poses: &[(u64, u64)]) {
    let specs = if tube.puff { vec![ControlSpec::number("puff", 0.0, 1.0, 0.0)] } else { vec![] };
    let header = DatasetHeader {
        rig: "a rig of another program".into(),
        rig_file: None,
        method: "outside".into(),
        seed: 1,
        settings: Default::default(),
        controls: ControlSpecs::new(specs).expect("a valid control"),
        poses: poses.len(),
        chunk_size: poses.len(),
    };
    let rest = rest(tube);
    let writer = DatasetWriter::create(folder, &header, &rest).expect("a new folder");
    let shape = ChunkShape { controls: header.controls.len(), bones: 3, vertices: rest.mesh.vertex_count() };
    let mut chunk = Chunk::with_capacity(shape, poses.len());
    for (seed, index) in poses {
        let (bones, controls, vertices) = pose(tube, *seed, *index);
        chunk.push(&Controls(controls), &GlobalPose(bones), &vertices).expect("shapes fit");
    }
    writer.write_chunk(0, &chunk).expect("written");
    writer.finish().expect("complete");
}

const POSES: u64 = 300;

fn train_poses() -> Vec<(u64, u64)> {
    (0..POSES).map(|index| (1, index)).collect()
}

fn body() -> BodyLearning {
    let mut body = BodyLearning::default();
    let train = &mut body.settings.train;
    (train.epochs, train.batch, train.rate, train.validation) = (80, 16, 0.006, 0.15);
    body
}

fn config(folder: &Path, body: BodyLearning) -> LearnConfig {
    LearnConfig::new(folder.join("train"), folder.join("tube.twin"), Learning::Body(body))
}

/// Remembers what was said aloud.
#[derive(Default)]
struct Ears(Mutex<Vec<String>>);

impl Watch for Ears {
    fn event(&self, event: Event<'_>) {
        if let Event::Warning { message } | Event::Note { message } = event {
            self.0.lock().expect("one listener").push(message.to_owned());
        }
    }
}

impl Ears {
    fn heard(&self, words: &str) -> bool {
        self.0.lock().expect("one listener").iter().any(|message| message.contains(words))
    }
}

struct Learned {
    folder: tempfile::TempDir,
    report: LearnReport,
    body: BodyDetails,
    ears: Ears,
}

impl Learned {
    fn new(tube: &Tube) -> Self {
        let folder = tempfile::tempdir().expect("a scratch folder");
        write(&folder.path().join("train"), tube, &train_poses());
        let ears = Ears::default();
        let report = learn(&config(folder.path(), body()), &ears).expect("a twin is learned");
        let LearnDetails::Body(body) = report.details.clone() else { panic!("a body was learned") };
        Self { folder, report, body, ears }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn eval(&self, set: &str) -> Result<MethodFigures, JobError> {
        let config =
            EvalConfig { twin: self.path("tube.twin"), test: vec![self.path(set)], ..EvalConfig::default() };
        eval(&config, &Ears::default()).map(|report| report.methods["twin"].clone())
    }

    /// What `eval` says of the very poses that `learn` held back, mm.
    fn eval_held_back(&self, tube: &Tube) -> f64 {
        let held = body().settings.train.held_back(POSES as usize);
        let poses: Vec<(u64, u64)> = held.iter().map(|index| (1, u64::from(*index))).collect();
        write(&self.path("held"), tube, &poses);
        self.eval("held").expect("the same rig").mean_mm
    }
}

#[test]
fn errors_are_millimetres_of_the_world_whatever_the_armature_scales() {
    let errors = [1.0, 0.01, 100.0].map(|armature| {
        let tube = Tube { armature, ..Tube::default() };
        let learned = Learned::new(&tube);
        let held = &learned.report.held_back;
        let eval = learned.eval_held_back(&tube);
        assert!((held.mean_mm / eval - 1.0).abs() < 0.01, "learn {held:?}, eval {eval}");
        assert!(held.mean_mm < 0.3 * held.base_mean_mm, "{held:?}");
        for network in &learned.body.networks {
            assert!(network.validation_cm < 0.1, "in the world's unit: {network:?}");
        }
        held.mean_mm
    });
    for error in errors {
        assert!((error / errors[0] - 1.0).abs() < 0.01, "{errors:?}");
    }
}

#[test]
fn learn_and_eval_agree_where_bones_stretch_and_shear() {
    for tube in [
        Tube { squash: 0.3, ..Tube::default() },
        Tube { scene: Vec3::new(1.0, 0.7, 1.6), parents: false, ..Tube::default() },
        Tube {
            scene: Vec3::new(2.0, 1.0, 0.5),
            parents: false,
            squash: 0.2,
            armature: 0.03,
            ..Tube::default()
        },
    ] {
        let learned = Learned::new(&tube);
        let (held, eval) = (&learned.report.held_back, learned.eval_held_back(&tube));
        assert!((held.mean_mm / eval - 1.0).abs() < 0.01, "learn {held:?}, eval {eval}");
        assert!(held.mean_mm < 0.5 * held.base_mean_mm, "{held:?}");
    }
}

#[test]
fn bones_without_parents_and_controls_that_move_no_bone_are_found() {
    let tree = Learned::new(&Tube::default());
    let flat = Learned::new(&Tube { parents: false, ..Tube::default() });
    assert!(!flat.report.inputs_probed && flat.ears.heard("the rig of"), "the rig's absence is said");
    assert!(flat.ears.heard("given parents by how they move"));
    assert!(flat.body.unexplained.is_empty(), "{:?}", flat.body.unexplained);
    let [tree, flat] = [tree, flat].map(|learned| learned.report.held_back);
    assert!(flat.mean_mm < 1.2 * tree.mean_mm, "side by side {flat:?}, in a tree {tree:?}");
    assert!(flat.mean_mm < 0.3 * flat.base_mean_mm, "{flat:?}");
    // Without the control nothing tells how far the tube is puffed up, and that is said.
    let blind = Learned::new(&Tube { puff: false, ..Tube::default() });
    let unexplained = &blind.body.unexplained;
    assert!(!unexplained.is_empty(), "{:?}", blind.report.held_back);
    assert!(blind.ears.heard("no recorded bone or control explains"), "{unexplained:?}");
}

#[test]
fn bones_are_matched_by_name() {
    let learned = Learned::new(&Tube::default());
    let test: Vec<(u64, u64)> = (0..20).map(|index| (2, index)).collect();
    write(&learned.path("same"), &Tube::default(), &test);
    write(&learned.path("other"), &Tube { order: [2, 0, 1], ..Tube::default() }, &test);
    let figures = ["same", "other"].map(|set| learned.eval(set).expect("the same bones"));
    assert!((figures[0].mean_mm - figures[1].mean_mm).abs() < 1e-3, "{figures:?}");
    // A control that the twin needs, and bones with other axes.
    write(&learned.path("mute"), &Tube { puff: false, ..Tube::default() }, &test);
    let error = learned.eval("mute").expect_err("no control");
    assert!(error.is_bad_input() && error.to_string().contains("puff"), "{error}");
    write(&learned.path("scaled"), &Tube { armature: 0.01, ..Tube::default() }, &test);
    let error = learned.eval("scaled").expect_err("another skeleton");
    assert!(error.is_bad_input() && error.to_string().contains("'hip'"), "{error}");
}

/// What goes wrong, and that nothing is written then.
fn refused(tube: &Tube, poses: &[(u64, u64)], change: impl Fn(&mut BodyLearning)) -> JobError {
    let folder = tempfile::tempdir().expect("a scratch folder");
    write(&folder.path().join("train"), tube, poses);
    let mut body = body();
    change(&mut body);
    let error = learn(&config(folder.path(), body), &Ears::default()).expect_err("nonsense");
    let names: Vec<_> = std::fs::read_dir(folder.path()).expect("readable").flatten().collect();
    assert_eq!(names.len(), 1, "{names:?}");
    assert!(error.is_bad_input(), "{error}");
    error
}

#[test]
fn nonsense_is_called_by_its_name() {
    for count in [1, 2, 29] {
        let error = refused(&Tube::default(), &train_poses()[..count], |_| ());
        assert!(error.to_string().contains(&format!("{count} poses are too few")), "{error}");
    }
    for rate in [1e30, 1e4] {
        let error = refused(&Tube::default(), &train_poses(), |body| body.settings.train.rate = rate);
        assert!(error.to_string().contains("diverged"), "{error}");
    }
    for broken in [1e20, 1e36] {
        let error = refused(&Tube { broken, ..Tube::default() }, &train_poses()[..40], |_| ());
        assert!(error.to_string().contains("train") && error.to_string().contains("cm"), "{error}");
    }
}

#[test]
fn weights_beyond_sixteen_bits_are_kept_in_more() {
    let tube = Tube { size: 3e6, ..Tube::default() };
    let folder = tempfile::tempdir().expect("a scratch folder");
    write(&folder.path().join("train"), &tube, &train_poses());
    let report = learn(&config(folder.path(), body()), &Ears::default()).expect("32 bits hold them");
    assert!(report.held_back.mean_mm.is_finite() && !report.held_back.is_useless(), "{:?}", report.held_back);
    let twin = understudy_jobs::twin::open_twin(&report.output).expect("what was written");
    assert!(twin.header().training.weights_in_32_bits > 0);
}
