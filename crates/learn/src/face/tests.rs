//! A small face made by formulas: a sheet of skin that bulges and wrinkles, and a tooth that rides on it.

use super::*;
use understudy_core::{ControlSpec, ControlSpecs, Face, Mesh, MeshParts, Quat, Random, Segments, Vec2, Vec3};

/// Vertices along each side of the skin.
pub(crate) const SIDE: usize = 14;

/// A recording that tests change.
pub(crate) struct SmallFace {
    pub mesh: Mesh,
    pub specs: ControlSpecs,
    pub controls: Vec<f32>,
    pub vertices: Vec<Vec3>,
}

impl SmallFace {
    pub fn poses(&self) -> Recording {
        Recording {
            mesh: self.mesh.clone(),
            skeleton: None,
            specs: self.specs.clone(),
            bones: Vec::new(),
            controls: self.controls.clone(),
            vertices: self.vertices.clone(),
        }
    }
}

/// The skin, then a tooth of eight vertices, in two segments.
fn small_mesh() -> Mesh {
    let mut positions = Vec::new();
    let mut uvs = Vec::new();
    for index in 0..SIDE * SIDE {
        let uv = Vec2::new((index % SIDE) as f32, (index / SIDE) as f32) / (SIDE - 1) as f32;
        positions.push(Vec3::new(uv.x * 10.0, uv.y * 10.0, (uv.x * 3.0).sin() + (uv.y * 2.0).cos()));
        uvs.push(uv * 0.8);
    }
    let mut faces = Vec::new();
    for row in 0..SIDE as u32 - 1 {
        for column in 0..SIDE as u32 - 1 {
            let a = row * SIDE as u32 + column;
            faces.push(Face::quad(a, a + 1, a + 1 + SIDE as u32, a + SIDE as u32));
        }
    }
    let first = positions.len() as u32;
    for corner in 0..8u32 {
        let at = Vec3::new((corner & 1) as f32, (corner >> 1 & 1) as f32, (corner >> 2) as f32);
        positions.push(Vec3::new(4.5, 4.5, 3.0) + at);
        uvs.push(Vec2::new(0.9 + 0.05 * at.x, 0.9 + 0.05 * (at.y + 0.5 * at.z)));
    }
    for quad in [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]] {
        let [a, b, c, d] = quad.map(|corner| first + corner);
        faces.push(Face::quad(a, b, c, d));
    }
    let of_vertex = (0..positions.len() as u32).map(|v| u32::from(v >= first)).collect();
    let names = vec!["skin".into(), "tooth".into()];
    let face_uvs = faces.clone();
    MeshParts { positions, faces, uvs, face_uvs, segments: Segments { names, of_vertex } }
        .build()
        .expect("a valid mesh")
}

pub(crate) fn small_specs() -> ControlSpecs {
    let names = ["raise", "bulge_L", "bulge_R", "wrinkle", "twist", "unused"];
    ControlSpecs::new(names.map(|name| ControlSpec::number(name, 0.0, 1.0, 0.0)).to_vec()).expect("valid")
}

/// What the small rig makes of its controls.
pub(crate) fn small_rig(mesh: &Mesh, c: &[f32]) -> Vec<Vec3> {
    let skin = SIDE * SIDE;
    let bump = |p: Vec3, x: f32, y: f32, r: f32| (-((p.x - x).powi(2) + (p.y - y).powi(2)) / (r * r)).exp();
    let move_skin = |p: Vec3| {
        let mut q = p;
        // Above y = 8 the skin rises as one: there a tooth finds whom to follow.
        q.z += 0.8 * c[0] * (p.y / 8.0).min(1.0);
        q += Vec3::new(-0.3, 0.2, 1.0) * c[1] * bump(p, 2.5, 3.0, 2.0);
        q += Vec3::new(0.3, 0.2, 1.0) * c[2] * bump(p, 7.5, 3.0, 2.0);
        // A corrective and a wrinkle.
        q.z += 0.5 * c[1] * c[2] * bump(p, 5.0, 3.0, 1.5);
        q.z += 0.12 * c[3] * (p.x * 3.0).sin() * bump(p, 5.0, 8.0, 2.5);
        let turn = Quat::from_rotation_z(0.1 * c[4]);
        turn * (q - Vec3::new(5.0, 5.0, 0.0)) + Vec3::new(5.0, 5.0, 0.0)
    };
    let mut out: Vec<Vec3> = mesh.positions()[..skin].iter().map(|p| move_skin(*p)).collect();
    // The tooth rises with the upper edge and twists with everything.
    let turn = Quat::from_rotation_z(0.1 * c[4]);
    let middle = Vec3::new(5.0, 5.0, 0.0);
    out.extend(mesh.positions()[skin..].iter().map(|p| {
        let lifted = *p + Vec3::Z * 0.8 * c[0];
        turn * (lifted - middle) + middle
    }));
    out
}

pub(crate) fn small_face(seed: u64, count: usize) -> SmallFace {
    let mesh = small_mesh();
    let specs = small_specs();
    let (mut controls, mut vertices) = (Vec::new(), Vec::new());
    for pose in 0..count {
        let mut random = Random::stream(seed, pose as u64);
        // Most poses are near rest, as in animation.
        let mut values: Vec<f32> = (0..specs.len()).map(|_| random.uniform(0.0, 1.0).powi(2)).collect();
        values[5] = 0.0;
        vertices.extend(small_rig(&mesh, &values));
        controls.extend(values);
    }
    SmallFace { mesh, specs, controls, vertices }
}

mod training {
    //! Derivatives, threads and a small twin from end to end.

    use super::super::net::{NetKind, NetSpec};
    use super::super::parameters::ParameterLayout;
    use super::super::trainer::Trainer;
    use super::super::{frame, inputs::Influences, schedule};
    use super::*;
    use understudy_core::DVec3;
    use understudy_runtime::face::map_decoder::MapShape;
    use understudy_runtime::face::{FaceTwin, LEAK, Stage};
    use understudy_runtime::{Pose, Precision, Training, Twin};
    use understudy_testkit::gradient::directional_miss;

    fn leak(x: f64) -> f64 {
        if x > 0.0 { x } else { x * f64::from(LEAK) }
    }

    /// Offsets of a network in f64, from its flat parameters, drawn pixel by pixel.
    fn slow_offsets(spec: &NetSpec, hidden: usize, p: &[f64], controls: &[f32]) -> Vec<DVec3> {
        let mut rest = p;
        let mut take = |count: usize| {
            let (a, b) = rest.split_at(count);
            rest = b;
            a
        };
        let normal = |((i, m), s): ((&u32, &f32), &f32)| f64::from((controls[*i as usize] - m) * s);
        let mut x: Vec<f64> = spec.inputs.iter().zip(&spec.mean).zip(&spec.scale).map(normal).collect();
        let sizes = match &spec.kind {
            NetKind::Map { shape, .. } => vec![hidden, shape.dense_numbers()],
            NetKind::Dense => vec![hidden, hidden, 3 * spec.vertices.len()],
        };
        for (layer, size) in sizes.iter().enumerate() {
            let (weights, bias) = (take(x.len() * size), take(*size));
            let straight = match &spec.kind {
                _ if layer + 1 < sizes.len() => usize::MAX,
                NetKind::Map { shape, .. } => shape.first_image(),
                NetKind::Dense => 0,
            };
            let unit = |row: usize| {
                let own = &weights[row * x.len()..(row + 1) * x.len()];
                let sum = bias[row] + own.iter().zip(&x).map(|(w, x)| w * x).sum::<f64>();
                if row >= straight { sum } else { leak(sum) }
            };
            x = (0..*size).map(unit).collect();
        }
        let scale = f64::from(spec.unit);
        let NetKind::Map { shape, coordinates } = &spec.kind else {
            return x.chunks_exact(3).map(|three| DVec3::from_slice(three) * scale).collect();
        };
        let common = x.split_off(shape.first_image());
        let (mut side, mut channels) = (shape.side, shape.channels);
        for convolution in 0..shape.convolutions() {
            let doubled = usize::from(convolution < shape.doublings) + 1;
            let small = side;
            side *= doubled;
            let (weights, bias) = (take(shape.hidden * channels * 9), take(shape.hidden));
            let at = |row: i64, column: i64, channel: usize| {
                let inside = |v: i64| (0..side as i64).contains(&v);
                match inside(row) && inside(column) {
                    true => {
                        x[(row as usize / doubled * small + column as usize / doubled) * channels + channel]
                    }
                    false => 0.0,
                }
            };
            let mut out = Vec::new();
            for pixel in 0..side * side {
                for output in 0..shape.hidden {
                    let mut sum = bias[output];
                    for tap in 0..9 {
                        let (row, column) =
                            ((pixel / side + tap / 3) as i64 - 1, (pixel % side + tap % 3) as i64 - 1);
                        for c in 0..channels {
                            sum += weights[(output * channels + c) * 9 + tap] * at(row, column, c);
                        }
                    }
                    out.push(leak(sum));
                }
            }
            (x, channels) = (out, shape.hidden);
        }
        let reads = shape.reads();
        let (weights, bias) = (take(shape.sets() * 3 * reads), take(shape.sets() * 3));
        let pixel = |index: usize| {
            let sum = |o: usize| {
                let row = if shape.untied { 3 * index + o } else { o };
                let read = x[index * channels..(index + 1) * channels].iter().chain(&common);
                let own = read.enumerate().map(|(c, x)| weights[row * reads + c] * x);
                bias[row] + own.sum::<f64>()
            };
            DVec3::new(sum(0), sum(1), sum(2))
        };
        let sample = |c: &Vec2| {
            let corner = c.floor().min(Vec2::splat((side - 2) as f32));
            let (f, first) = ((*c - corner).as_dvec2(), corner.y as usize * side + corner.x as usize);
            let low = pixel(first) * (1.0 - f.x) + pixel(first + 1) * f.x;
            let high = pixel(first + side) * (1.0 - f.x) + pixel(first + side + 1) * f.x;
            (low * (1.0 - f.y) + high * f.y) * scale
        };
        coordinates.iter().map(sample).collect()
    }

    #[test]
    fn derivatives_by_all_parameters_meet_the_checker() {
        let face = small_face(1, 12);
        let poses = face.poses();
        let settings = FaceSettings { batch: 3, hidden: 6, frame: false, ..FaceSettings::default() };
        let influences = Influences::new(&poses, None).expect("enough poses");
        let plan = Plan::new(&poses, &influences, &settings).expect("something moves");
        for (dense, untied, common) in
            [(false, false, 0), (false, true, 0), (false, true, 5), (true, false, 0)]
        {
            let mut specs = plan.coarse.clone();
            let shape = MapShape {
                side: 2,
                channels: 3,
                hidden: 5,
                doublings: 2,
                outputs: 3,
                untied,
                shared_features: common,
            };
            let uvs = poses.mesh.vertex_uvs().expect("has UVs");
            for spec in &mut specs {
                let place = |v: &u32| uvs[*v as usize] * 1.2 * (shape.map_side() - 1) as f32;
                let coordinates = spec.vertices.iter().map(|v| place(v).min(Vec2::splat(7.0))).collect();
                spec.kind = if dense { NetKind::Dense } else { NetKind::Map { shape, coordinates } };
            }
            let problem = plan.coarse_problem(&poses, &settings);
            let (members, loss) = (problem.members.clone(), problem.loss.clone());
            let trainer = Trainer::new(problem, specs.clone(), 6, 3, 5, 2).expect("threads start");
            // Away from the start: it is the mean of the poses, and what never moves is at the kink of its loss there.
            let mut state = trainer.state();
            let mut random = Random::new(9);
            state[0][0].iter_mut().for_each(|p| *p += random.uniform(-0.05, 0.05));
            assert!(trainer.set_state(&state));
            let batch = [1, 4, 7];
            // Almost no step: parameters stay, and the first moment is a tenth of the gradient.
            let before = trainer.step(&batch, 1, 1e-30);
            let state = trainer.state();
            assert_eq!(state.len(), 1, "one network, the tooth is rigid");
            let wide = |n: &[f32], f: f64| n.iter().map(|n| f64::from(*n) * f).collect::<Vec<f64>>();
            let (parameters, gradient) = (wide(&state[0][0], 1.0), wide(&state[0][1], 10.0));
            let cost = |p: &[f64]| {
                let mut total = 0.0;
                for &pose in &batch {
                    let rest = poses.mesh.positions();
                    let mut now: Vec<DVec3> = members.iter().map(|v| rest[*v as usize].as_dvec3()).collect();
                    let offsets = slow_offsets(&specs[0], 6, p, poses.controls_of(pose));
                    for (vertex, offset) in specs[0].vertices.iter().zip(offsets) {
                        let local = members.binary_search(vertex).expect("is a member");
                        now[local] += offset;
                    }
                    let truth: Vec<DVec3> =
                        members.iter().map(|v| poses.vertices_of(pose)[*v as usize].as_dvec3()).collect();
                    let l1 = |v: DVec3| v.abs().element_sum();
                    let positions: f64 =
                        loss.counted.iter().map(|v| l1(now[*v as usize] - truth[*v as usize])).sum();
                    let normal = |p: &[DVec3], [a, b, c, d]: [u32; 4]| {
                        let at = |v: u32| p[v as usize];
                        (at(b) - at(a)).cross(at(d) - at(c)).normalize()
                    };
                    let normals: f64 =
                        loss.faces.iter().map(|f| l1(normal(&now, *f) - normal(&truth, *f))).sum();
                    total += positions / loss.vertex_total as f64
                        + f64::from(loss.normal_weight) * normals / loss.face_total as f64;
                }
                total / batch.len() as f64
            };
            assert!((cost(&parameters) - before.total()).abs() < 1e-5 * before.total().max(1.0));
            let miss = directional_miss(cost, &parameters, &gradient, 1e-7, 25, 3);
            assert!(miss < 2e-3, "dense {dense}, untied {untied}, common {common}: {miss}");
        }
    }

    fn quick() -> FaceSettings {
        let brief = |caps: Vec<usize>| Schedule { caps, check_every: 50, ..Schedule::default() };
        FaceSettings {
            hidden: 32,
            coarse: brief(vec![250, 60, 20]),
            refinement: brief(vec![150, 40, 10]),
            most_regions: 3,
            bodies: false,
            ..FaceSettings::default()
        }
    }

    /// Trains a twin; gives its parts and the coarse trainer's last validation loss.
    fn learn(
        face: &SmallFace,
        settings: &FaceSettings,
        threads: usize,
    ) -> understudy_runtime::face::FaceParts {
        let mut poses = face.poses();
        check(&poses).expect("good poses");
        let influences = Influences::new(&poses, None).expect("enough poses");
        let mut frame_parts = None;
        let all: Vec<u32> = (0..poses.mesh.vertex_count() as u32).collect();
        if let Some(skull) = settings.frame.then(|| frame::find_skull(&poses, &all)).flatten() {
            let seen = influences.of(&poses, &skull.vertices);
            let trained =
                motion::learn(&poses, &skull.vertices, seen, motion::Size::body(1, 5000), 1, |_| true)
                    .expect("not stopped");
            frame::take_away(&mut poses, &trained.parts);
            frame_parts = Some(trained.parts);
        }
        let plan = Plan::new(&poses, &influences, settings).expect("something moves");
        let problem = plan.coarse_problem(&poses, settings);
        let coarse = Trainer::new(problem, plan.coarse.clone(), settings.hidden, settings.batch, 1, threads)
            .expect("threads start");
        let mut progress = Progress::default();
        schedule::run(
            &coarse,
            &plan.balance,
            &plan.validation,
            &settings.coarse,
            settings.batch,
            1,
            &mut progress,
            |_, _| true,
        )
        .expect("converges");
        let mut nets = coarse.parts();
        let (specs, _) = plan.refinement(&poses, &influences, settings, None);
        if settings.refine && !specs.is_empty() {
            let mut problem = plan.refinement_problem(&poses, &specs, settings);
            let members = coarse.locals(&problem.members);
            problem.base = coarse.predict(&members, &mut |_| true).expect("not stopped");
            let fine = Trainer::new(problem, specs, settings.hidden, settings.batch, 2, threads)
                .expect("threads start");
            let mut progress = Progress::default();
            schedule::run(
                &fine,
                &plan.balance,
                &plan.validation,
                &settings.refinement,
                settings.batch,
                2,
                &mut progress,
                |_, _| true,
            )
            .expect("converges");
            nets.extend(fine.parts());
        }
        let bodies = segments::learn_bodies(&poses, &plan.bodies, &influences, 1, &|_| true)
            .expect("not stopped")
            .into_iter()
            .map(|(body, _)| body);
        plan.finish(&poses, "small", frame_parts, nets, bodies.collect(), Training::default())
    }

    /// Mean distance on fresh poses, cm: of the twin, of its coarse part, of the rest pose.
    fn errors(face: &SmallFace, parts: understudy_runtime::face::FaceParts) -> [f64; 3] {
        let twin = FaceTwin::new(parts, Precision::Half).expect("a valid twin");
        let test = small_face(77, 40);
        let poses = test.poses();
        let mut sums = [0.0; 3];
        let mut out = vec![Vec3::ZERO; twin.vertex_count()];
        let mut players = [twin.coarse(), twin].map(|twin| Twin::from(twin).player(1));
        players.reverse();
        for pose in 0..poses.len() {
            let truth = poses.vertices_of(pose);
            for (slot, player) in players.iter_mut().enumerate() {
                player.pose(Pose::Controls(poses.controls_of(pose)), &mut out).expect("a valid pose");
                sums[slot] += out.iter().zip(truth).map(|(a, b)| f64::from(a.distance(*b))).sum::<f64>();
            }
            let rest = face.mesh.positions().iter();
            sums[2] += rest.zip(truth).map(|(a, b)| f64::from(a.distance(*b))).sum::<f64>();
        }
        sums.map(|sum| sum / (poses.len() * out.len()) as f64)
    }

    #[test]
    fn a_small_twin_learns_and_threads_leave_no_trace() {
        let face = small_face(5, 300);
        let one = learn(&face, &quick(), 1);
        let two = learn(&face, &quick(), 2);
        assert!(one == two, "threads changed the twin");
        assert_eq!(one.rigid.len(), 1, "the tooth is rigid");
        assert_eq!(one.rigid[0].name, "tooth");
        assert!(one.nets.iter().any(|net| net.stage == Stage::Refinement));
        let inputs = &one.nets[0].inputs;
        assert!(!inputs.contains(&5), "a control that never moves is no input");
        let [twin, coarse, rest] = errors(&face, one);
        assert!(twin < 0.2 * rest && twin <= coarse * 1.05, "twin {twin}, coarse {coarse}, rest {rest}");
    }

    #[test]
    fn a_tooth_has_a_motion_of_its_own_and_leads_what_moves_with_it() {
        let mut face = small_face(5, 300);
        let mut parts = face.mesh.clone().into_parts();
        // Half of the tooth is now a second one, which moves with it.
        let first = SIDE * SIDE;
        parts.segments.names.push("neighbour".into());
        parts.segments.of_vertex[first + 4..].fill(2);
        face.mesh = parts.build().expect("a valid mesh");
        let short = Schedule { caps: vec![20, 1, 1], ..Schedule::default() };
        let settings = FaceSettings { bodies: true, refine: false, coarse: short, ..quick() };
        let twin = learn(&face, &settings, 1);
        assert_eq!(twin.bodies.iter().map(|body| body.name.as_str()).collect::<Vec<_>>(), ["tooth"]);
        assert_eq!(twin.rigid.iter().map(|part| part.name.as_str()).collect::<Vec<_>>(), ["neighbour"]);
        assert!(twin.rigid[0].follows.iter().all(|v| twin.bodies[0].vertices.contains(v)));
        let test = small_face(77, 40);
        let poses = test.poses();
        let twin = Twin::from(FaceTwin::new(twin, Precision::Half).expect("a valid twin"));
        let mut player = twin.player(1);
        let mut out = vec![Vec3::ZERO; twin.vertex_count()];
        let (mut miss, mut motion) = (0.0, 0.0);
        for pose in 0..poses.len() {
            player.pose(Pose::Controls(poses.controls_of(pose)), &mut out).expect("a valid pose");
            for vertex in first..out.len() {
                let truth = poses.vertices_of(pose)[vertex];
                miss += out[vertex].distance(truth);
                motion += truth.distance(face.mesh.positions()[vertex]);
            }
        }
        assert!(miss < 0.1 * motion, "{miss} of {motion}");
    }

    #[test]
    fn the_papers_recipe_has_its_map_sizes_weights_and_rates() {
        let face = small_face(6, 60);
        let poses = face.poses();
        let settings = FaceSettings::paper();
        settings.check().expect("its numbers make sense");
        assert_eq!(settings.coarse.rates, [1e-3, 1e-4, 1e-5]);
        assert_eq!(settings.refinement.rates, settings.coarse.rates);
        assert_eq!((settings.hidden, settings.batch, settings.bins, settings.landmarks), (256, 8, 16, 25));
        assert_eq!((settings.normal_weight, settings.refinement_normal_weight), (5.0, 5.0));
        assert_eq!((settings.rigid_mm, settings.follows, settings.spread_follows), (0.3, 10, false));
        assert!(!(settings.frame || settings.cut || settings.bodies || settings.measured_regions));
        let influences = Influences::new(&poses, None).expect("enough poses");
        let plan = Plan::new(&poses, &influences, &settings).expect("something moves");
        let (regions, _) = plan.refinement(&poses, &influences, &settings, None);
        assert!(!plan.coarse.is_empty() && plan.bodies.is_empty());
        for (specs, side) in [(&plan.coarse, 32), (&regions, 64)] {
            for spec in specs {
                let NetKind::Map { shape, .. } = &spec.kind else { panic!("{} draws a map", spec.name) };
                assert_eq!((shape.map_side(), shape.untied, shape.shared_features), (side, false, 0));
                let layout = ParameterLayout::new(spec, settings.hidden);
                assert_eq!(layout.sizes[1], 256, "{} sees {} controls", spec.name, spec.inputs.len());
            }
        }
        // Ours has a small map for as few vertices.
        let ours = Plan::new(&poses, &influences, &FaceSettings::default()).expect("something moves");
        let NetKind::Map { shape, .. } = &ours.coarse[0].kind else { panic!("draws a map") };
        assert!(shape.map_side() < 32 && shape.untied);
        assert_eq!(ParameterLayout::new(&ours.coarse[0], 256).sizes[1], 64);
    }

    #[test]
    fn the_papers_rigid_segments_follow_the_vertices_that_fit_them_best() {
        let face = small_face(6, 60);
        let poses = face.poses();
        let (skin, count) = (SIDE * SIDE, face.mesh.vertex_count());
        let tooth: Vec<u32> = (skin as u32..count as u32).collect();
        let candidates: Vec<u32> = (0..skin as u32).collect();
        let follow = |settings: &FaceSettings| rigid::follow(&poses, "tooth", &tooth, &candidates, settings);
        let (best, _) = follow(&FaceSettings::paper());
        // How far each candidate is from where the tooth's own motion would put it, plainly.
        let all: Vec<usize> = (0..poses.len()).collect();
        let (fits, _) = rigid::fit(&poses, &all, &tooth);
        let miss = |vertex: u32| -> f64 {
            let at = face.mesh.positions()[vertex as usize];
            let far =
                |pose: usize| fits[pose].apply(at).distance_squared(poses.vertices_of(pose)[vertex as usize]);
            all.iter().map(|pose| f64::from(far(*pose))).sum()
        };
        assert_eq!(best.follows.len(), 10);
        let worst = best.follows.iter().map(|v| miss(*v)).fold(0.0, f64::max);
        let better = candidates.iter().filter(|v| !best.follows.contains(v) && miss(**v) < worst * 0.999);
        assert_eq!(better.count(), 0);
        // Ours may take worse ones that lie apart, never better ones.
        let (apart, _) = follow(&FaceSettings::default());
        let sum = |follows: &[u32]| follows.iter().map(|v| miss(*v)).sum::<f64>();
        assert!(sum(&apart.follows) >= sum(&best.follows) * 0.999);
    }

    #[test]
    fn training_goes_on_where_it_stopped_to_the_same_numbers() {
        let face = small_face(6, 60);
        let poses = face.poses();
        let settings = quick();
        let influences = Influences::new(&poses, None).expect("enough poses");
        let plan = Plan::new(&poses, &influences, &settings).expect("something moves");
        let trainer = || {
            let problem = plan.coarse_problem(&poses, &settings);
            Trainer::new(problem, plan.coarse.clone(), 16, 4, 9, 1).expect("threads start")
        };
        let schedule = Schedule { caps: vec![30, 20, 5], check_every: 7, ..Schedule::default() };
        let go = |trainer: &Trainer<'_>, progress: &mut Progress, stop: usize| {
            let balance = (&plan.balance, &plan.validation[..1]);
            schedule::run(trainer, balance.0, balance.1, &schedule, 4, 3, progress, |p, _| p.steps != stop)
        };
        let (whole, mut progress) = (trainer(), Progress::default());
        go(&whole, &mut progress, usize::MAX).expect("runs to its end");
        let (first, mut kept) = (trainer(), Progress::default());
        assert_eq!(go(&first, &mut kept, 33), Err(FaceLearnError::Stopped));
        let text = serde_json::to_string(&kept).expect("JSON");
        let mut kept: Progress = serde_json::from_str(&text).expect("what we wrote");
        let second = trainer();
        assert!(second.set_state(&first.state()));
        assert!(!second.set_state(&[]));
        go(&second, &mut kept, usize::MAX).expect("runs to its end");
        assert_eq!(kept, progress);
        assert!(whole.parts() == second.parts());
    }

    #[test]
    fn a_turning_head_is_taken_away() {
        let mut face = small_face(8, 200);
        let count = face.mesh.vertex_count();
        let width = face.specs.len();
        for pose in 0..200 {
            let turn = Random::stream(3, pose as u64).uniform(0.0, 1.0);
            face.controls[pose * width + 5] = turn;
            let rotation = Quat::from_rotation_y(0.6 * turn);
            face.vertices[pose * count..(pose + 1) * count].iter_mut().for_each(|v| *v = rotation * *v);
            // The skin itself moves little here: a skull with a twitch.
            let rest = face.mesh.positions().to_vec();
            for (v, rest) in face.vertices[pose * count..].iter_mut().zip(&rest) {
                let local = rotation.inverse() * *v;
                *v = rotation * rest.lerp(local, 0.2);
            }
        }
        let mut poses = face.poses();
        let all: Vec<u32> = (0..count as u32).collect();
        let skull = frame::find_skull(&poses, &all).expect("the head turns");
        assert!(skull.left_cm < 0.3 * skull.motion_cm, "{skull:?}");
        let influences = Influences::new(&poses, None).expect("enough poses");
        let seen = influences.of(&poses, &skull.vertices);
        let trained = motion::learn(&poses, &skull.vertices, seen, motion::Size::body(1, 5000), 1, |_| true)
            .expect("not stopped");
        frame::take_away(&mut poses, &trained.parts);
        let left: f64 = (0..200)
            .flat_map(|pose| poses.vertices_of(pose).iter().zip(face.mesh.positions()).collect::<Vec<_>>())
            .map(|(a, b)| f64::from(a.distance(*b)))
            .sum::<f64>()
            / (200 * count) as f64;
        assert!(left < 0.4 * skull.motion_cm, "{left} of {}", skull.motion_cm);
        let still = small_face(8, 50);
        assert!(frame::find_skull(&still.poses(), &all).is_none() || skull.vertices.len() >= 3);
    }

    #[test]
    fn bad_data_is_named() {
        let face = small_face(1, 20);
        let few = Recording { vertices: face.vertices[..face.mesh.vertex_count()].to_vec(), ..face.poses() };
        assert!(matches!(
            check(&few),
            Err(FaceLearnError::Recording(RecordingError::TooFewPoses { got: 1, .. }))
        ));
        let mut bare = face.mesh.clone().into_parts();
        (bare.uvs, bare.face_uvs) = (vec![], vec![]);
        let bare = bare.build().expect("a valid mesh");
        let poses = Recording { mesh: bare, ..face.poses() };
        assert_eq!(check(&poses), Err(FaceLearnError::NoUvs));
        let mut far = face.poses();
        far.vertices[5].y = -1e20;
        assert!(matches!(
            check(&far),
            Err(FaceLearnError::Recording(RecordingError::TooFar { pose: 0, .. }))
        ));
        let mut broken = face.poses();
        broken.vertices[300].y = f32::NAN;
        assert!(matches!(check(&broken), Err(FaceLearnError::Recording(RecordingError::NonFinite { .. }))));
        let mut still = face.poses();
        for pose in still.vertices.chunks_exact_mut(face.mesh.vertex_count()) {
            pose.copy_from_slice(face.mesh.positions());
        }
        let influences = Influences::new(&still, None).expect("enough poses");
        let plan = Plan::new(&still, &influences, &FaceSettings::default());
        assert!(matches!(plan, Err(FaceLearnError::NothingMoves)));
        let bad = FaceSettings { normal_weight: f32::NAN, ..FaceSettings::default() };
        assert!(matches!(bad.check(), Err(FaceLearnError::Setting { .. })));
    }
}
