//! A small face whose points follow controls in a known way: networks learn to pose it, rivals solve it, mistakes are named.

use super::*;
use understudy_core::{ControlSpec, ControlSpecs, Face, MeshParts};
use understudy_runtime::face::{FaceParts, FaceTwin, NetParts, Stage};
use understudy_runtime::{Header, Inputs, Training};

const VERTICES: usize = 12;
const CONTROLS: usize = 9;

/// Controls 0 to 3 move the first six vertices, 4 to 6 the last six, 7 all of them, 8 none; leaky rectifiers between.
fn twin() -> Twin {
    let mut random = Random::new(5);
    let hidden = 2 * CONTROLS;
    let mut first = vec![0.0; hidden * CONTROLS];
    // Units in pairs of opposite sign: together they are bent, not linear.
    for unit in 0..hidden {
        first[unit * CONTROLS + unit / 2] = if unit % 2 == 0 { 1.0 } else { -1.0 };
    }
    let moves = |vertex: usize, control: usize| match control {
        0..=3 => vertex < 6,
        4..=6 => vertex >= 6,
        7 => true,
        _ => false,
    };
    let mut second = vec![0.0; 3 * VERTICES * hidden];
    for row in 0..3 * VERTICES {
        for unit in 0..hidden {
            let weight = if unit % 2 == 0 { random.uniform(-0.8, 0.8) } else { random.uniform(-0.15, 0.15) };
            second[row * hidden + unit] = if moves(row / 3, unit / 2) { weight } else { 0.0 };
        }
    }
    let specs = (0..CONTROLS).map(|c| ControlSpec::number(format!("c{c}"), -1.0, 1.0, 0.0)).collect();
    let mesh = MeshParts {
        positions: (0..VERTICES).map(|v| Vec3::new(v as f32, (v % 3) as f32, 0.2 * (v % 2) as f32)).collect(),
        faces: (2..VERTICES as u32).map(|v| Face::triangle(v - 2, v - 1, v)).collect(),
        ..MeshParts::default()
    };
    let mesh = mesh.build().expect("a mesh");
    let parts = FaceParts {
        header: Header {
            rig: "small".into(),
            topology_hash: mesh.topology_hash(),
            units: "cm".into(),
            inputs: Inputs { bones: Vec::new(), controls: ControlSpecs::new(specs).expect("controls") },
            training: Training::default(),
        },
        mesh,
        frame: None,
        nets: vec![NetParts {
            name: "all".into(),
            stage: Stage::Coarse,
            vertices: (0..VERTICES as u32).collect(),
            inputs: (0..CONTROLS as u32).collect(),
            mean: vec![0.0; CONTROLS],
            scale: vec![1.0; CONTROLS],
            dense: vec![
                DenseParts { weights: first, bias: vec![0.0; hidden] },
                DenseParts { weights: second, bias: vec![0.0; 3 * VERTICES] },
            ],
            map: None,
        }],
        bodies: Vec::new(),
        rigid: Vec::new(),
    };
    FaceTwin::new(parts, Precision::Single).expect("a twin").into()
}

fn recording(twin: &Twin, poses: usize) -> Recording {
    let Twin::Face(face) = twin else { panic!("a face") };
    let mut random = Random::new(8);
    let mut player = twin.player(1);
    let (mut controls, mut vertices) = (Vec::new(), Vec::new());
    for _ in 0..poses {
        let pose: Vec<f32> = (0..CONTROLS).map(|_| random.uniform(-1.0, 1.0)).collect();
        let mut out = vec![Vec3::ZERO; VERTICES];
        player.pose(Pose::Controls(&pose), &mut out).expect("a pose");
        controls.extend(pose);
        vertices.extend(out);
    }
    Recording {
        mesh: face.mesh().clone(),
        skeleton: None,
        specs: twin.header().inputs.controls.clone(),
        bones: Vec::new(),
        controls,
        vertices,
    }
}

fn points() -> Vec<RegionPoint> {
    let point = |vertex: u32| RegionPoint {
        point: ControlPoint { name: format!("p{vertex}"), vertex },
        region: if vertex < 6 { "left" } else { "right" }.into(),
    };
    [0, 2, 4, 7, 9, 11].map(point).to_vec()
}

fn quick() -> IkSettings {
    IkSettings {
        widths: vec![48, 48],
        steps: 900,
        batch: 16,
        noise_cm: 0.05,
        regularisation: 1e-5,
        ..IkSettings::default()
    }
}

#[test]
fn controls_that_move_a_point_are_found() {
    assert_eq!(movers(&twin(), &[0, 7], 0.03, 1).expect("poses"), [vec![0, 1, 2, 3, 7], vec![4, 5, 6, 7]]);
}

#[test]
fn networks_learn_to_pose_by_points_without_being_told_controls() {
    let twin = twin();
    let poses = recording(&twin, 600);
    let learned = learn(&twin, &points(), &poses, &quick(), Precision::Single, |_, _| true).expect("learned");
    let report = &learned.report;
    assert_eq!(report.controls, [8, 1], "one control is given by both regions");
    assert!(report.network_mm < 0.25 * report.rest_mm, "{report:?}");
    assert!(report.hybrid_mm < 0.3 * report.network_mm, "{report:?}");
    // The same seed gives the same networks.
    let again = learn(&twin, &points(), &poses, &quick(), Precision::Single, |_, _| true).expect("learned");
    assert_eq!(again.ik.parts(), learned.ik.parts());
}

#[test]
fn points_on_a_screen_are_learned_too() {
    let twin = twin();
    let poses = recording(&twin, 400);
    let settings = IkSettings { dimensions: 2, ..quick() };
    let report =
        learn(&twin, &points(), &poses, &settings, Precision::Half, |_, _| true).expect("learned").report;
    assert!(report.network_mm < 0.3 * report.rest_mm, "{report:?}");
}

#[test]
fn every_rival_comes_near() {
    let twin = twin();
    let poses = recording(&twin, 60);
    let settings = IkSettings { steps: 20, ..quick() };
    let learned =
        learn(&twin, &points(), &poses, &settings, Precision::Single, |_, _| true).expect("learned");
    let mut solver = learned.ik.solver();
    let mut targets = vec![Vec3::ZERO; 6];
    let truth: Vec<f32> = (0..CONTROLS).map(|c| 0.3 - 0.07 * c as f32).collect();
    solver.points(&truth, &mut targets).expect("points");
    let rest = distance(learned.ik.rest(), &targets, 3);
    for rival in Rival::ALL {
        let mut controls = vec![0.0; CONTROLS];
        let report = solve_by(rival, &mut solver, &targets, &mut controls).expect("solved");
        let mut places = vec![Vec3::ZERO; 6];
        solver.points(&controls, &mut places).expect("points");
        let left = distance(&places, &targets, 3);
        assert!(left < 0.05 * rest, "{}: {left} of {rest}, {report:?}", rival.title());
    }
}

#[test]
fn what_cannot_be_learned_is_named() {
    let twin = twin();
    let poses = recording(&twin, 40);
    let failed = |points: &[RegionPoint], settings: IkSettings| {
        learn(&twin, points, &poses, &settings, Precision::Half, |_, _| true)
            .expect_err("refused")
            .to_string()
    };
    assert!(failed(&points(), IkSettings { dimensions: 1, ..quick() }).contains("dimensions"));
    assert!(failed(&points(), IkSettings { noise_cm: f32::NAN, ..quick() }).contains("noise"));
    assert!(failed(&points(), IkSettings { steps: 0, ..quick() }).contains("steps"));
    let mut twice = points();
    twice[1].point.vertex = 0;
    assert!(failed(&twice, quick()).contains("two points"));
    assert!(failed(&points(), IkSettings { influence_cm: 1e6, ..quick() }).contains("no control moves"));
    let stopped = learn(&twin, &points(), &poses, &quick(), Precision::Half, |_, _| false);
    assert!(matches!(stopped, Err(IkError::Stopped)));
}
