//! Derivatives against differences, laws of the solver, and a small relief that is found again from its picture.

use super::energy::{Anchor, Energy, LocalMark, moved};
use super::samples::Evaluated;
use super::*;
use crate::render::Light;
use understudy_core::{BlendshapeRig, Corrective, Face, Random, Shape, SparseDeltas};
use understudy_testkit::gradient::directional_miss;

const SIDE: usize = 25;

/// A painted relief of 25 × 25 vertices, 10 cm wide, with six bumps that move; two of them need a third when both are on.
struct Relief {
    rig: BlendshapeRig,
    model: Model,
    truth: Vec<f64>,
}

fn relief(correctives: bool) -> Relief {
    let place = |at: usize| [at % SIDE, at / SIDE].map(|v| v as f32 * 10.0 / (SIDE - 1) as f32 - 5.0);
    let count = SIDE * SIDE;
    let rest: Vec<Vec3> = (0..count)
        .map(|at| {
            let [x, y] = place(at);
            Vec3::new(x, y, 2.0 - 0.06 * (x * x + y * y) + 0.3 * (1.3 * x).sin() * (1.1 * y).cos())
        })
        .collect();
    let faces: Vec<Face> = (0..count)
        .filter(|at| at % SIDE + 1 < SIDE && at / SIDE + 1 < SIDE)
        .map(|at| {
            let at = at as u32;
            let row = SIDE as u32;
            Face::quad(at, at + 1, at + row + 1, at + row)
        })
        .collect();
    let bump = |centre: [f32; 2], delta: Vec3| {
        let of = |at: usize| {
            let [x, y] = place(at);
            delta * (-((x - centre[0]).powi(2) + (y - centre[1]).powi(2)) / 4.0).exp()
        };
        SparseDeltas::from_dense(&(0..count).map(of).collect::<Vec<_>>(), 1e-3)
    };
    let shapes = [
        ([-2.0, -2.0], Vec3::new(0.6, 0.2, 0.5)),
        ([2.0, -2.0], Vec3::new(-0.2, 0.5, 0.9)),
        ([-2.0, 2.0], Vec3::new(0.0, -0.7, 0.3)),
        ([2.0, 2.0], Vec3::new(0.5, 0.5, -0.4)),
        ([0.0, 0.0], Vec3::new(0.0, 0.0, 1.2)),
        ([0.0, -1.0], Vec3::new(0.8, 0.0, 0.0)),
    ];
    let names = ["a", "b", "c", "d", "e", "f"];
    let shapes = names
        .iter()
        .zip(shapes)
        .map(|(name, (centre, delta))| Shape { name: (*name).into(), deltas: bump(centre, delta) });
    let pair = Corrective { shapes: vec![0, 4], deltas: bump([-1.0, -1.0], Vec3::new(0.4, -0.5, 0.6)) };
    let triple = Corrective { shapes: vec![1, 2, 4], deltas: bump([0.0, 1.0], Vec3::new(0.3, 0.3, 0.5)) };
    let correctives = if correctives { vec![pair, triple] } else { Vec::new() };
    let rig = BlendshapeRig::new(rest.clone(), shapes.collect(), correctives).expect("a valid rig");
    let colours = (0..count)
        .map(|at| {
            let [x, y] = place(at);
            [0, 1, 2].map(|c| 0.45 + 0.25 * (1.7 * x + c as f32).sin() * (1.5 * y - c as f32).cos())
        })
        .collect();
    let mut camera = Camera::portrait(DVec3::new(0.0, 0.0, 1.0), 13.0, 40.0, 160);
    camera.centre = [82.0, 79.0];
    let look = Arc::new(Look::plain(&faces, colours, vec![0.9; count]));
    let light = Light::studio();
    let model = Model { look, light, rest, marks: None, region: vec![true; count], camera };
    Relief { rig, model, truth: vec![0.7, 0.3, 0.0, 0.8, 0.6, 0.45] }
}

impl Relief {
    fn picture(&self, weights: &[f64], camera: &Camera, head: &HeadPose) -> Image {
        let mut positions = self.model.rest.clone();
        self.rig.evaluate(&weights.iter().map(|w| *w as f32).collect::<Vec<_>>(), &mut positions);
        positions.iter_mut().for_each(|p| *p = head.apply(p.as_dvec3()).as_vec3());
        self.model.look.render(&positions, camera, &self.model.light, [0.0; 3]).image
    }
}

/// The gradient of the objective with some terms on, against differences of the cost.
fn miss(correctives: bool, freedom: Freedom, change: impl Fn(&mut RenderSettings)) -> f64 {
    let relief = relief(correctives);
    let mut settings = RenderSettings { samples: 60, freedom, ..RenderSettings::default() };
    change(&mut settings);
    let mut camera = relief.model.camera;
    (camera.roll, camera.centre) = (0.03, [83.1, 78.2]);
    let head = HeadPose::rest(DVec3::new(0.0, 0.0, -2.0))
        .moved(DVec3::new(0.05, -0.08, 0.02), DVec3::new(0.1, 0.0, 0.3));
    let image = relief.picture(&relief.truth, &camera, &head).smoothed(2);
    let (samples, marks) = {
        let more: Vec<u32> = vec![30, 200, 312, 333, 500];
        let samples = Samples::draw(
            &relief.model.look,
            &relief.model.rest,
            &relief.model.region,
            &relief.model.camera,
            60,
            &more,
            1,
            1,
        );
        let mark = |vertices: [u32; 4], shares: [f32; 4]| {
            samples.local(&MarkPoint { vertices, shares }).expect("chosen")
        };
        let marks: Vec<(LocalMark, [f64; 2])> = vec![
            (mark([30; 4], [1.0, 0.0, 0.0, 0.0]), [60.0, 70.0]),
            (mark([200, 312, 333, 500], [0.1, 0.2, 0.3, 0.4]), [90.0, 75.0]),
        ];
        (samples, marks)
    };
    let anchors = vec![Anchor {
        weights: vec![0.1, 0.9, 0.3, 0.2, 0.5, 0.6],
        stiffness: vec![0.9, 0.1, 0.5, 1.0, 0.3, 0.7],
    }];
    let visible: Vec<u32> = (0..samples.points.len() as u32).collect();
    let energy = Energy {
        samples: &samples,
        light: &relief.model.light,
        image: &image,
        settings: &settings,
        visible: &visible,
        marks: &marks,
        anchors: &anchors,
    };
    let mut shapes = Shapes::new(&relief.rig);
    shapes.choose(&samples.vertices).expect("vertices of the rig");
    let state = State {
        weights: vec![0.4, 0.5, 0.2, 0.6, 0.35, 0.25],
        camera: Camera { centre: [82.3, 79.4], ..camera },
        head,
    };
    let mut at = Evaluated::default();
    energy.cost(&mut shapes, &state, &mut at).expect("evaluates");
    let gradient = energy.quadratic(&mut shapes, &state, &at).expect("evaluates").gradient;
    let zero = vec![0.0; gradient.len()];
    let cost = |step: &[f64]| {
        let state = moved(&state, step, 1.0, freedom, |_| [0.0, 1.0]);
        energy.cost(&mut shapes, &state, &mut Evaluated::default()).expect("evaluates").total()
    };
    directional_miss(cost, &zero, &gradient, 2e-6, 12, 5)
}

#[test]
fn every_term_has_right_derivatives() {
    let alone = |term: usize| {
        move |settings: &mut RenderSettings| {
            let on = |index: usize, value: f64| if index == term { value } else { 0.0 };
            (settings.photo, settings.land) = (on(0, 1.0), on(1, 1e-3));
            (settings.smooth, settings.sparse) = (on(2, 1e-2), on(3, 1e-2));
        }
    };
    for freedom in [Freedom::InPlane, Freedom::Head] {
        for correctives in [false, true] {
            for term in 0..4 {
                let miss = miss(correctives, freedom, alone(term));
                // Rows of derivatives are f32.
                assert!(miss < 2e-4, "term {term}, {freedom:?}, correctives {correctives}: {miss}");
            }
            let all = miss(correctives, freedom, |_| {});
            assert!(all < 2e-4, "{freedom:?}, correctives {correctives}: {all}");
        }
    }
}

#[test]
fn a_relief_is_found_again_and_the_cost_never_rises() {
    // A head that may turn makes up for some of its bumps by leaning in a picture of 160 pixels without landmarks, and more of
    // it where the picture is smoothed first.
    for (correctives, freedom, smoothing, near) in [
        (false, Freedom::InPlane, 1, 0.04),
        (true, Freedom::InPlane, 1, 0.04),
        (false, Freedom::Head, 0, 0.07),
    ] {
        let relief = relief(correctives);
        let settings = RenderSettings {
            samples: 400,
            iterations: 60,
            first_iterations: 60,
            smoothing,
            tolerance: 1e-7,
            sparse: 1e-7,
            freedom,
            ..RenderSettings::default()
        };
        let mut optimiser =
            Optimiser::prepare(Shapes::new(&relief.rig), relief.model.clone(), settings).expect("a face");
        let mut camera = relief.model.camera;
        let mut head = optimiser.state().head;
        match freedom {
            Freedom::InPlane => (camera.roll, camera.centre) = (0.015, [82.6, 79.5]),
            Freedom::Head => head = head.moved(DVec3::new(0.01, -0.02, 0.01), DVec3::new(0.05, -0.04, 0.1)),
        }
        let mut random = Random::new(4);
        for scale in [0.5, 1.0] {
            let truth: Vec<f64> = relief.truth.iter().map(|weight| weight * scale).collect();
            let mut image = relief.picture(&truth, &camera, &head);
            for value in image.pixels_mut().iter_mut().flatten() {
                *value += 0.004 * random.normal() as f32;
            }
            let detected = Detected::default();
            let report = optimiser
                .solve(&Observation { image: &image, detected: &detected, flow: None })
                .expect("solves");
            assert!(report.costs.windows(2).all(|pair| pair[1] <= pair[0]), "{:?}", report.costs);
            assert!(report.visible > 300);
        }
        for (found, truth) in optimiser.state().weights.iter().zip(&relief.truth) {
            assert!(
                (found - truth).abs() < near,
                "{freedom:?}: {:?} {:?}",
                optimiser.state().weights,
                relief.truth
            );
        }
    }
}

#[test]
fn what_does_not_fit_is_told() {
    let relief = relief(false);
    let prepare = |model: Model, settings: RenderSettings| {
        Optimiser::prepare(Shapes::new(&relief.rig), model, settings).err()
    };
    let short = Model { region: vec![true; 3], ..relief.model.clone() };
    assert!(matches!(
        prepare(short, RenderSettings::default()),
        Some(RenderError::Count { what: "region", .. })
    ));
    let unseen = Model { region: vec![false; SIDE * SIDE], ..relief.model.clone() };
    assert_eq!(prepare(unseen, RenderSettings::default()), Some(RenderError::Unseen));
    for change in [
        RenderSettings { photo: f64::NAN, ..RenderSettings::default() },
        RenderSettings { photo: 0.0, land: 0.0, ..RenderSettings::default() },
        RenderSettings { samples: 0, ..RenderSettings::default() },
        RenderSettings { corner: 0.0, ..RenderSettings::default() },
    ] {
        assert!(matches!(prepare(relief.model.clone(), change), Some(RenderError::Settings(_))));
    }
}

#[test]
fn equal_pictures_are_fitted_to_the_last_bit_alike() {
    let relief = relief(true);
    let solve = || {
        let mut optimiser =
            Optimiser::prepare(Shapes::new(&relief.rig), relief.model.clone(), RenderSettings::default())
                .expect("a face");
        let image = relief.picture(&relief.truth, &relief.model.camera, &HeadPose::rest(DVec3::ZERO));
        optimiser
            .solve(&Observation { image: &image, detected: &Detected::default(), flow: None })
            .expect("solves");
        optimiser.state().weights.clone()
    };
    assert_eq!(solve(), solve());
}
