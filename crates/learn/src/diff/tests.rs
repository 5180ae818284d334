//! Laws of learning a differential twin, on a sheet that two bones bend and a control puffs up.

use super::fold::{Said, reconstruct};
use super::graph::{Graph, Reconstruction};
use super::nonlinear::Unskinning;
use super::*;
use crate::Recording;
use understudy_core::{
    Affine3A, Bone, Channel, ControlSpec, ControlSpecs, Controls, Face, GlobalPose, JointTransform, Mesh,
    MeshParts, Quat, Random, Skeleton, SkinWeights, Vec3,
};
use understudy_rigs::{Rig, RigPose};
use understudy_runtime::diff::DiffTwin;
use understudy_runtime::{Pose, Precision, Twin};

const SIDE: u32 = 12;

/// A sheet of 22 × 22 cm.
fn sheet() -> Mesh {
    let positions =
        (0..SIDE * SIDE).map(|i| Vec3::new(2.0 * (i % SIDE) as f32, 2.0 * (i / SIDE) as f32, 0.0));
    let quad = |row: u32, column: u32| {
        let a = row * SIDE + column;
        Face::quad(a, a + 1, a + 1 + SIDE, a + SIDE)
    };
    let faces = (0..SIDE - 1).flat_map(|row| (0..SIDE - 1).map(move |column| quad(row, column))).collect();
    MeshParts { positions: positions.collect(), faces, ..MeshParts::default() }.build().expect("a valid mesh")
}

/// Two bones carry the sheet, each vertex both; `puff` lifts its middle before that.
struct Sheet {
    mesh: Mesh,
    skeleton: Skeleton,
    specs: ControlSpecs,
    weights: SkinWeights,
    /// How high `puff` lifts, cm.
    height: f32,
}

impl Sheet {
    fn new(height: f32) -> Self {
        let mesh = sheet();
        let bone = |name: &str, parent, place| Bone {
            name: name.into(),
            parent,
            rest: JointTransform::from_translation(place),
        };
        let skeleton = Skeleton::new(vec![
            bone("root", None, Vec3::ZERO),
            bone("fold", Some(0), Vec3::new(0.0, 11.0, 0.0)),
            bone("tip", Some(1), Vec3::new(3.0, 6.0, 0.0)),
        ])
        .expect("a tree");
        let specs = ControlSpecs::new(vec![
            ControlSpec::joint("turn", "root", Channel::RotateY, -90.0, 90.0),
            ControlSpec::joint("bend", "fold", Channel::RotateX, -80.0, 80.0),
            ControlSpec::joint("curl", "tip", Channel::RotateX, -60.0, 60.0),
            ControlSpec::number("puff", 0.0, 1.0, 0.0),
            ControlSpec::number("dead", 0.0, 1.0, 0.0),
        ])
        .expect("valid controls");
        let row = |p: &Vec3| {
            let along = p.y / 22.0;
            let (low, high) = ((1.0 - 2.0 * along).max(0.0), (2.0 * along - 1.0).max(0.0));
            vec![(0, low), (1, 1.0 - low - high), (2, high)]
        };
        let rows: Vec<Vec<(u16, f32)>> = mesh.positions().iter().map(row).collect();
        let weights = SkinWeights::from_rows(&rows, 3).expect("convex rows");
        Self { mesh, skeleton, specs, weights, height }
    }

    fn record(&self, poses: usize) -> Recording {
        let mut recording = Recording {
            mesh: self.mesh.clone(),
            skeleton: Some(self.skeleton.clone()),
            specs: self.specs.clone(),
            bones: vec![],
            controls: vec![],
            vertices: vec![],
        };
        let mut pose = RigPose::default();
        for index in 0..poses {
            let mut random = Random::stream(5, index as u64);
            let mut controls: Vec<f32> =
                self.specs.iter().map(|spec| random.uniform(spec.low, spec.high)).collect();
            controls[4] = 0.5;
            let controls = Controls(controls);
            self.evaluate(&controls, &mut pose).expect("valid controls");
            recording.bones.extend(&pose.global.0);
            recording.controls.extend(controls.0);
            recording.vertices.extend(&pose.vertices);
        }
        recording
    }
}

impl Rig for Sheet {
    fn name(&self) -> &str {
        "sheet"
    }

    fn specs(&self) -> &ControlSpecs {
        &self.specs
    }

    fn mesh(&self) -> &Mesh {
        &self.mesh
    }

    fn skeleton(&self) -> Option<&Skeleton> {
        Some(&self.skeleton)
    }

    fn skin_weights(&self) -> Option<&SkinWeights> {
        Some(&self.weights)
    }

    fn evaluate_from(&self, rest: &[Vec3], controls: &Controls, out: &mut RigPose) -> Result<(), RigError> {
        let mut joints = self.skeleton.rest_pose();
        let turn = |degrees: f32, axis: Vec3| Quat::from_axis_angle(axis, degrees.to_radians());
        joints.0[0].rotation = turn(controls.0[0], Vec3::Y);
        joints.0[1].rotation = turn(controls.0[1], Vec3::X);
        joints.0[2].rotation = turn(controls.0[2], Vec3::X);
        let mut global = GlobalPose::default();
        self.skeleton.forward(&joints, &mut global)?;
        let mut matrices = Vec::new();
        self.skeleton.skinning_matrices(&global, &mut matrices);
        let lift = |p: &Vec3| {
            let far = (p.truncate() - understudy_core::Vec2::splat(11.0)).length_squared() / 40.0;
            *p + Vec3::Z * self.height * controls.0[3] * (-far).exp() * (1.0 + controls.0[1] / 160.0)
        };
        let lifted: Vec<Vec3> = rest.iter().map(lift).collect();
        out.vertices.resize(rest.len(), Vec3::ZERO);
        self.weights.linear_blend(&matrices, &lifted, &mut out.vertices);
        out.global = global;
        Ok(())
    }
}

/// Small enough for a test.
fn brief() -> DiffSettings {
    DiffSettings {
        widths: vec![32, 32],
        anchor_widths: vec![16, 16],
        anchors_percent: 6.0,
        components_percent: 8.0,
        loss_vertices: 60,
        batch: 32,
        steps: 400,
        anchor_steps: 250,
        rate: 3e-3,
        ..DiffSettings::default()
    }
}

fn trained(
    plan: &Plan,
    settings: &DiffSettings,
) -> (Vec<TrainedAnchor>, Vec<understudy_runtime::diff::LayerNumbers>) {
    let anchors = (0..plan.anchors.len())
        .map(|anchor| plan.train_anchor(anchor, settings, || true).expect("trains"))
        .collect();
    let mut trainer = Trainer::new(plan.problem(), settings);
    trainer.run(settings.steps);
    let [miss, silent] = trainer.validation();
    assert!(miss < 0.35 * silent, "{miss} of {silent}");
    (anchors, trainer.layers())
}

#[test]
fn probed_transforms_equal_the_skins_on_a_linear_skin() {
    let rig = Sheet::new(0.0);
    let probed = skin::probe(&rig).expect("a rig that can be probed");
    let mut pose = RigPose::default();
    let mut random = Random::new(9);
    let mut worst = [0.0f32; 2];
    for _ in 0..20 {
        let controls = Controls(rig.specs.iter().map(|s| random.uniform(s.low, s.high)).collect());
        rig.evaluate(&controls, &mut pose).expect("valid controls");
        let own = |weights: &SkinWeights| Unskinning {
            weights: Some(weights.clone()),
            inverse_bind: rig.skeleton.inverse_bind().to_vec(),
            rest: rig.mesh.positions().to_vec(),
        };
        let (a, b) = (own(&probed), own(&rig.weights));
        let matrices = a.skinning_matrices(&pose.global.0);
        for vertex in 0..rig.mesh.vertex_count() {
            let [a, b] = [&a, &b].map(|own| own.transform(vertex, &matrices).to_cols_array());
            // Lengths of axes are shares of one; places are cm, of which the sheet has some dozens.
            let miss = |numbers: std::ops::Range<usize>| {
                let pairs = a[numbers.clone()].iter().zip(&b[numbers]);
                pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
            };
            worst = [worst[0].max(miss(0..9)), worst[1].max(miss(9..12))];
        }
    }
    assert!(worst[0] < 1e-5 && worst[1] < 1e-5 * 22.0, "{worst:?}");
}

#[test]
fn displacements_come_back_through_the_skin_and_singular_blends_are_counted() {
    let rig = Sheet::new(4.0);
    let recording = rig.record(40);
    let own = Unskinning {
        weights: Some(rig.weights.clone()),
        inverse_bind: rig.skeleton.inverse_bind().to_vec(),
        rest: rig.mesh.positions().to_vec(),
    };
    for pose in 0..recording.len() {
        let (moved, singular) = own.displacements(recording.bones_of(pose), recording.vertices_of(pose));
        assert_eq!(singular, 0);
        let matrices = own.skinning_matrices(recording.bones_of(pose));
        for (vertex, displacement) in moved.iter().enumerate() {
            let back = own.transform(vertex, &matrices).transform_point3(own.rest[vertex] + *displacement);
            assert!(back.distance(recording.vertices_of(pose)[vertex]) < 1e-3);
        }
    }
    // Half of each of two opposite turns: the blend flattens everything onto a line.
    let opposite = [Affine3A::IDENTITY, Affine3A::from_quat(Quat::from_rotation_x(std::f32::consts::PI))];
    let flat = Unskinning {
        weights: Some(SkinWeights::from_rows(&[vec![(0, 0.5), (1, 0.5)]], 2).expect("convex")),
        inverse_bind: vec![Affine3A::IDENTITY; 2],
        rest: vec![Vec3::new(1.0, 2.0, 3.0)],
    };
    let (moved, singular) = flat.displacements(&opposite, &[Vec3::new(1.5, 7.0, -4.0)]);
    assert_eq!(singular, 1);
    assert!(moved[0].is_finite() && moved[0].length() < 2.0, "{}", moved[0]);
}

#[test]
fn a_fold_that_keeps_its_limits_says_nothing_and_another_says_which() {
    let report =
        |within_limit, max_mm| FoldReport { rank: 9, run_rank: 4.0, poses: 800, within_limit, max_mm };
    assert_eq!(report(0.9995, 0.4).missed(), None);
    let far = report(0.9995, 0.62).missed().expect("a vertex is too far");
    assert!(far.contains("0.620 mm") && far.contains("0.5 at most"), "{far}");
    let many = report(0.98, 0.4).missed().expect("too many are far");
    assert!(many.contains("98.000 %") && many.contains("800 poses") && many.contains("99.9 %"), "{many}");
}

#[test]
fn controls_that_move_nothing_are_named() {
    // On the live rig: `dead` is one value in all recorded poses of the sheet, here it varies as the others do.
    let rig = Sheet::new(4.0);
    let mut recording = rig.record(80);
    let controls = rig.specs.len();
    let mut random = Random::new(3);
    recording.controls.chunks_exact_mut(controls).for_each(|pose| pose[4] = random.uniform(0.0, 1.0));
    let plan = Plan::new(&recording, Some(&rig), None, &brief()).expect("it can be learned");
    assert_eq!(plan.idle, [4]);
    // A sheet that does not puff up is all skin: of the controls that are no joints, none moves anything.
    let flat = Sheet::new(0.0);
    let probed =
        influence::probe(&flat, &plan.unskinning, &plan.parents, &plan.features, &plan.anchors, &brief());
    assert_eq!(probed.expect("valid controls").idle, [3, 4]);
    // Without the rig the poses tell.
    let plan = Plan::new(&recording, None, None, &brief()).expect("it can be learned");
    assert_eq!(plan.idle, [4]);
}

#[test]
fn the_solve_gives_back_what_was_put_in_and_islands_and_duplicates_are_held() {
    // Two copies of the sheet far apart, and a vertex that doubles another.
    let mut parts = sheet().into_parts();
    let count = parts.positions.len() as u32;
    let far: Vec<Vec3> = parts.positions.iter().map(|p| *p + Vec3::X * 100.0).collect();
    parts.positions.extend(far);
    let copies: Vec<Face> = parts.faces.iter().map(|face| face.map(|v| v + count)).collect();
    parts.faces.extend(copies);
    parts.positions.push(parts.positions[5]);
    parts.segments = Default::default();
    let mesh = parts.build().expect("a valid mesh");
    let graph = Graph::new(&mesh, Coordinates::Uniform);
    assert_eq!((graph.islands, graph.joined), (2, 1), "the double joined its own");
    assert!(Reconstruction::new(&graph, &[(3, 1.0)]).is_none(), "an island without an anchor");
    let mut random = Random::new(4);
    let truth: Vec<f64> = (0..mesh.vertex_count()).map(|_| random.normal()).collect();
    let anchors = [(3u32, 0.5), (40, 2.0), (count + 7, 1.0)];
    let system = Reconstruction::new(&graph, &anchors).expect("both islands are held");
    let places: Vec<f64> = anchors.iter().map(|(v, _)| truth[*v as usize]).collect();
    let mut columns = [system.right_side(&graph.laplacian(&truth, 1), &places)];
    system.solve(&mut columns);
    let worst = columns[0].iter().zip(&truth).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(worst < 1e-6, "{worst}");
    assert!(system.condition() > 10.0);
}

#[test]
fn all_coordinates_give_back_what_was_put_in_and_cotangents_know_shapes() {
    let mesh = sheet();
    let mut random = Random::new(8);
    let truth: Vec<f64> = (0..mesh.vertex_count()).map(|_| random.normal()).collect();
    for coordinates in [Coordinates::Uniform, Coordinates::Cotangent, Coordinates::Local] {
        let graph = Graph::new(&mesh, coordinates);
        let anchors: &[(u32, f64)] = if graph.needs_anchors() { &[(3, 1.0), (90, 0.5)] } else { &[] };
        let system = Reconstruction::new(&graph, anchors).expect("held");
        let places: Vec<f64> = anchors.iter().map(|(v, _)| truth[*v as usize]).collect();
        let mut columns = [system.right_side(&graph.laplacian(&truth, 1), &places)];
        system.solve(&mut columns);
        let worst = columns[0].iter().zip(&truth).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(worst < 1e-6, "{coordinates:?}: {worst}");
        let alone = (system.condition() - 1.0).abs() < 1e-9;
        assert_eq!(alone, coordinates == Coordinates::Local, "the identity is perfectly conditioned");
    }
    // Quads twice as high as wide: the angles that see a short edge have four times the cotangent of the others'.
    let mut parts = sheet().into_parts();
    parts.positions.iter_mut().for_each(|place| place.y *= 2.0);
    parts.segments = Default::default();
    let graph = Graph::new(&parts.build().expect("a valid mesh"), Coordinates::Cotangent);
    let middle = (5 * SIDE + 5) as usize;
    let mut impulse = vec![0.0f64; graph.len()];
    impulse[middle] = 1.0;
    let spread = graph.laplacian(&impulse, 1);
    let ratio = spread[middle + 1] / spread[middle + SIDE as usize];
    assert!((ratio - 4.0).abs() < 1e-4, "{ratio}");
}

/// Features as columns, and their powers: what is linear in them is found, whatever else there is.
#[test]
fn the_linear_part_is_found_and_left_out_where_there_is_none() {
    let rig = Sheet::new(4.0);
    let recording = rig.record(300);
    let with = Plan::new(&recording, Some(&rig), None, &brief()).expect("a plan");
    let without =
        Plan::new(&recording, Some(&rig), None, &DiffSettings { linear: false, ..brief() }).expect("a plan");
    assert!(with.linear.left < 0.5 && without.linear.left == 1.0 && without.linear.weights.is_empty());
    // The puffed sheet is `puff · (1 + bend / 160)`: nearly linear in `puff`, which is feature after those of bones.
    let remainder = |plan: &Plan| {
        let Plan { unskinning, features, linear, .. } = plan;
        let rows = linear::Remainder { poses: &recording, unskinning, features, linear }.of(&plan.held).0;
        rows.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>()
    };
    assert!(remainder(&with) < 0.25 * remainder(&without), "{} of {}", remainder(&with), remainder(&without));
    // Noise is linear in nothing.
    let mut noise = recording.clone();
    let mut random = Random::new(3);
    noise.skeleton = None;
    noise.bones.clear();
    noise.vertices.iter_mut().for_each(|v| *v = Vec3::from_array([0; 3].map(|_| random.uniform(-1.0, 1.0))));
    let plan = Plan::new(&noise, None, None, &brief()).expect("a plan");
    assert_eq!(plan.linear, linear::Linear::none());
}

/// What the paper compares with: local offsets, another Laplacian, one network for all anchors.
#[test]
fn every_form_that_is_compared_makes_a_twin() {
    let rig = Sheet::new(4.0);
    let recording = rig.record(200);
    for settings in [
        DiffSettings { coordinates: Coordinates::Local, ..brief() },
        DiffSettings { coordinates: Coordinates::Cotangent, ..brief() },
        DiffSettings { single_network: true, ..brief() },
    ] {
        let plan = Plan::new(&recording, Some(&rig), None, &settings).expect("a plan");
        let local = settings.coordinates == Coordinates::Local;
        assert_eq!(plan.anchors.is_empty(), local);
        let (mut anchors, layers) = trained(&plan, &settings);
        if settings.single_network {
            anchors = plan.train_together(&settings, || true).expect("trains");
            let hidden = |anchor: &TrainedAnchor| anchor.layers[..anchor.layers.len() - 1].to_vec();
            assert!(anchors.iter().all(|anchor| hidden(anchor) == hidden(&anchors[0])));
            assert!(anchors.iter().all(|anchor| anchor.layers[0].weights.len() % plan.features.count() == 0));
        }
        let (parts, report) = plan.finish(&recording, "sheet", &layers, &anchors, 0.1, &settings);
        assert!(report.fold.within_limit >= 0.999 && (report.condition < 1.1) == local, "{report:?}");
        let held = held_back(&recording, &plan, &parts, Precision::Single).expect("valid poses");
        assert!(held.mean_mm < 0.4 * held.base_mean_mm, "{settings:?}: {held:?}");
    }
}

#[test]
fn anchors_go_where_there_is_motion_and_onto_every_island() {
    let mut parts = sheet().into_parts();
    parts.positions.push(Vec3::splat(-50.0));
    parts.segments = Default::default();
    let mesh = parts.build().expect("a valid mesh");
    let graph = Graph::new(&mesh, Coordinates::Uniform);
    let busy = |p: &Vec3| if p.x > 11.0 { 1.0 } else { 0.0 };
    let energy: Vec<f64> = mesh.positions().iter().map(busy).collect();
    let chosen = anchors::choose(&graph, mesh.positions(), &energy, 20);
    assert_eq!(chosen.len(), 20);
    assert!(chosen.contains(&(SIDE * SIDE)), "the loose vertex is an island");
    let moving = chosen.iter().filter(|v| energy[**v as usize] > 0.0).count();
    assert!((12..20).contains(&moving), "{moving} of 20 where it moves");
    let (all, added) = anchors::complete(&graph, &energy, &[7, 7, 3]).expect("vertices of the mesh");
    assert_eq!((all, added), (vec![3, 7, SIDE * SIDE], 1));
    assert!(matches!(anchors::complete(&graph, &energy, &[999]), Err(DiffLearnError::Anchor { .. })));
}

/// The whole way: the folded twin is the solve to 0.05 mm, with anchors spread and on half of the sheet, and it is far
/// better than skinning alone.
#[test]
fn the_folded_twin_equals_the_solve() {
    let rig = Sheet::new(4.0);
    let recording = rig.record(300);
    let settings = brief();
    let half: Vec<u32> = (0..SIDE * SIDE / 2).step_by(9).collect();
    for chosen in [None, Some(&half[..])] {
        let plan = Plan::new(&recording, Some(&rig), chosen, &settings).expect("a plan");
        assert_eq!((plan.source, plan.singular), (SkinSource::Rig, 0));
        assert!(
            plan.features.controls == [3],
            "only 'puff' matters beside bones: {:?}",
            plan.features.controls
        );
        let (anchors, layers) = trained(&plan, &settings);
        let (parts, report) = plan.finish(&recording, "sheet", &layers, &anchors, 0.1, &settings);
        assert!(report.still_controls == ["dead"] && report.condition > 1.0);
        assert!(report.fold.within_limit >= 0.999 && report.fold.max_mm <= 0.5, "{:?}", report.fold);
        let weights = plan.weights(report.anchor_weight, &anchors);
        let system = Reconstruction::new(&plan.graph, &weights).expect("held");
        let mut player =
            Twin::from(DiffTwin::new(parts.clone(), Precision::Single).expect("valid parts")).player(1);
        let mut out = vec![Vec3::ZERO; recording.mesh.vertex_count()];
        let (mut near, mut all) = (0, 0);
        for pose in plan.trained.iter().step_by(7) {
            let said: Said = plan.said(*pose, &layers, &anchors, settings.activation);
            let mut solved = reconstruct(&system, std::slice::from_ref(&said));
            plan.linear.add(&plan.features, &[*pose], 1.0, &mut solved);
            let extras = [recording.controls_of(*pose)[3]];
            let bones = recording.bones_of(*pose);
            player.pose(Pose::Bones { bones, extras: &extras }, &mut out).expect("a valid pose");
            let matrices = plan.unskinning.skinning_matrices(bones);
            for (vertex, displacement) in solved.chunks_exact(3).enumerate() {
                let place = plan.unskinning.rest[vertex] + Vec3::from_slice(displacement);
                let truth = plan.unskinning.transform(vertex, &matrices).transform_point3(place);
                near += usize::from(10.0 * truth.distance(out[vertex]) <= 0.05 + 1e-3);
                all += 1;
            }
        }
        assert!(near as f64 >= 0.999 * f64::from(all), "{near} of {all}");
        let held = held_back(&recording, &plan, &parts, Precision::Half).expect("valid poses");
        assert!(held.mean_mm < 0.4 * held.base_mean_mm, "{held:?}");
        assert!(plan.half_error(&recording, &parts).expect("valid parts").max < 0.2);
    }
}

#[test]
fn training_goes_on_where_it_stopped_and_a_subset_of_vertices_learns_as_all_do() {
    let rig = Sheet::new(4.0);
    let recording = rig.record(120);
    let settings = DiffSettings { skin: SkinSource::Fit, ..brief() };
    let plan = Plan::new(&recording, None, None, &settings).expect("a plan");
    assert!(plan.source == SkinSource::Fit && !plan.probed);
    let mut whole = Trainer::new(plan.problem(), &settings);
    whole.run(60);
    let mut first = Trainer::new(plan.problem(), &settings);
    first.run(25);
    let mut second =
        Trainer::new(plan.problem(), &settings).restore(first.state()).expect("the same network");
    second.run(35);
    assert!(whole.state() == second.state());
    let misses = [60, 0].map(|loss_vertices| {
        let settings = DiffSettings { loss_vertices, ..settings.clone() };
        let mut trainer = Trainer::new(plan.problem(), &settings);
        trainer.run(settings.steps);
        trainer.validation()[0]
    });
    assert!(misses[0] < 1.25 * misses[1], "some {}, all {}", misses[0], misses[1]);
}

#[test]
fn recordings_that_teach_nothing_are_refused() {
    let rig = Sheet::new(4.0);
    let plan = |recording: &Recording| Plan::new(recording, None, None, &brief()).map(|_| ());
    let refused = plan(&rig.record(2));
    assert!(matches!(refused, Err(DiffLearnError::Recording(RecordingError::TooFewPoses { .. }))));
    let one = rig.record(1);
    let mut constant = one.clone();
    for _ in 1..40 {
        constant.bones.extend(&one.bones);
        constant.controls.extend(&one.controls);
        constant.vertices.extend(&one.vertices);
    }
    assert_eq!(plan(&constant), Err(DiffLearnError::NothingSeen));
    // Controls move, the mesh does not.
    let mut still = rig.record(40);
    still.skeleton = None;
    still.bones.clear();
    let rest = rig.mesh.positions();
    still.vertices = (0..40).flat_map(|_| rest.to_vec()).collect();
    assert_eq!(plan(&still), Err(DiffLearnError::NothingMoves));
    let asked = DiffSettings { skin: SkinSource::Probe, ..brief() };
    let refused = Plan::new(&rig.record(40), None, None, &asked).map(|_| ());
    assert!(matches!(refused, Err(DiffLearnError::Skin { .. })));
}
