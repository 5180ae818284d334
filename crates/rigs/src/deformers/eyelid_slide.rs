//! Eyelids that travel on an arc around the eyeball and never enter it. Works in the frame of the head,
//! before or after skinning, so that head and jaw may do what they like.

use super::driver::{Driver, RigSize, VertexWeights, check_positive, unknown};
use crate::rig::RigError;
use crate::stack::{Deformer, Frame, Scratch};
use understudy_core::mechanism::twist_angle;
use understudy_core::skeleton::rotation_of;
use understudy_core::{Affine3A, Quat, Vec3};

/// Something that turns lids about the eye: a blink, a wide-open eye, a squint.
#[derive(Debug, Clone, PartialEq)]
pub struct Lid {
    /// How far it has come, usually 0 to 1.
    pub driver: Driver,
    /// Degrees about the eye's axis at driver = 1, a vertex. By the right-hand rule: with the axis
    /// along +X and the face towards +Z, positive turns the upper lid down.
    pub turn: VertexWeights,
}

/// One eye and its lids. Everything is given in the rest pose.
#[derive(Debug, Clone, PartialEq)]
pub struct Eye {
    /// For messages.
    pub name: String,
    /// The bone that turns the eyeball; its rest → pose map carries the centre and the gaze.
    pub eye_bone: Option<usize>,
    /// The bone that carries lids and eye (the head); gaze is measured against it.
    pub head_bone: Option<usize>,
    /// Whether this layer runs after skinning: then vertices are brought into the head's rest frame and
    /// back. Before skinning they already are in it.
    pub posed: bool,
    /// Centre of the eyeball, world, cm.
    pub centre: Vec3,
    /// Unit, horizontal, usually +X.
    pub axis: Vec3,
    /// Unit, usually +Y; gaze to the side is measured about it.
    pub up: Vec3,
    /// Radius of the eyeball, cm.
    pub radius: f32,
    /// Vertices kept outside, with the thickness that stays between them and the eyeball, cm.
    pub contact: VertexWeights,
    /// Over how many cm above contact a vertex is slowed down; 0 stops it at once.
    pub softness: f32,
    /// What turns the lids.
    pub lids: Vec<Lid>,
    /// Share of the gaze's pitch that a vertex follows, 0 to 1.
    pub follow_pitch: VertexWeights,
    /// Share of the gaze's yaw that a vertex follows, 0 to 1.
    pub follow_yaw: VertexWeights,
}

/// Turns lid vertices about the eye's centre, then keeps them outside: with `x` the height over the
/// contact distance, `x ← 0` below, `x²(2k − x)/k²` up to the softness `k`, unchanged above. A vertex
/// that rests nearer than its contact distance keeps its rest distance instead.
pub struct EyelidSlide {
    eyes: Vec<PreparedEye>,
}

struct PreparedEye {
    eye: Eye,
    vertices: Vec<u32>,
    /// For each lid, places among `vertices` with radians.
    turns: Vec<Vec<(u32, f32)>>,
    pitch: Vec<(u32, f32)>,
    yaw: Vec<(u32, f32)>,
    /// Place among `vertices`, least distance, softness.
    contact: Vec<(u32, f32, f32)>,
    /// Place among `vertices`, radians beyond which lids do not turn.
    stops: Vec<(u32, f32)>,
}

impl EyelidSlide {
    /// Checks the eyes. `rest`: the rest vertices, `[V]`.
    pub fn new(eyes: Vec<Eye>, rest: &[Vec3], size: &RigSize) -> Result<Self, RigError> {
        if rest.len() != size.vertices {
            let (got, want) = (rest.len(), size.vertices);
            return Err(RigError::Count { what: "eyelids: rest vertices".into(), got, want });
        }
        let eyes = eyes.into_iter().map(|eye| prepare(eye, rest, size)).collect::<Result<_, RigError>>()?;
        Ok(Self { eyes })
    }

    /// Lets lids stop where they meet: a vertex of eye number `eye` turns no further than `closed`
    /// degrees (positive a most, negative a least; zero is an error), however many lids and gazes add
    /// up. The gaze moves a lid only as far as it is open.
    pub fn stop_at(mut self, eye: usize, closed: &[(u32, f32)]) -> Result<Self, RigError> {
        let eyes = self.eyes.len();
        let Some(prepared) = self.eyes.get_mut(eye) else {
            return Err(unknown("eyelids", format!("eye {eye} of {eyes}")));
        };
        for &(vertex, degrees) in closed {
            let place = prepared.vertices.binary_search(&vertex);
            let place = place.map_err(|_| unknown("eyelids", format!("stop of vertex {vertex}")))?;
            check_positive("eyelids", &format!("size of the stop of vertex {vertex}"), degrees.abs())?;
            prepared.stops.push((place as u32, degrees.to_radians()));
        }
        Ok(self)
    }
}

fn prepare(eye: Eye, rest: &[Vec3], size: &RigSize) -> Result<PreparedEye, RigError> {
    let part = format!("eye '{}'", eye.name);
    for bone in eye.eye_bone.iter().chain(&eye.head_bone) {
        size.check_bone(&part, *bone)?;
    }
    check_positive(&part, "radius", eye.radius)?;
    for (what, axis) in [("axis", eye.axis), ("up", eye.up)] {
        if !axis.is_normalized() {
            return Err(unknown(&part, format!("{what} = {axis}, which has no unit length")));
        }
    }
    if !eye.centre.is_finite() || !(0.0..=eye.radius).contains(&eye.softness) {
        return Err(unknown(&part, format!("centre {} or softness {}", eye.centre, eye.softness)));
    }
    let mut vertices = Vec::new();
    let lists =
        eye.lids.iter().map(|lid| &lid.turn).chain([&eye.contact, &eye.follow_pitch, &eye.follow_yaw]);
    for list in lists {
        size.check_weights(&part, list)?;
        vertices.extend(list.iter().map(|w| w.0));
    }
    for lid in &eye.lids {
        lid.driver.check(&part, size)?;
    }
    vertices.sort_unstable();
    vertices.dedup();
    let place = |vertex: u32| vertices.partition_point(|v| *v < vertex) as u32;
    let placed = |list: &VertexWeights, scale: f32| -> Vec<(u32, f32)> {
        list.iter().map(|&(v, w)| (place(v), w * scale)).collect()
    };
    let contact = eye.contact.iter().map(|&(vertex, thickness)| {
        let distance = (rest[vertex as usize] - eye.centre).length();
        let least = (eye.radius + thickness).min(distance);
        // Softness reaches up to the rest height at most, so that the rest pose stays what it is.
        (place(vertex), least, eye.softness.min(distance - least))
    });
    Ok(PreparedEye {
        contact: contact.collect(),
        turns: eye.lids.iter().map(|lid| placed(&lid.turn, 1f32.to_radians())).collect(),
        pitch: placed(&eye.follow_pitch, 1.0),
        yaw: placed(&eye.follow_yaw, 1.0),
        stops: Vec::new(),
        vertices,
        eye,
    })
}

impl Deformer for EyelidSlide {
    fn name(&self) -> &str {
        "eyelid slide"
    }

    fn deform(&self, frame: &Frame<'_>, vertices: &mut [Vec3], scratch: &mut Scratch) {
        for eye in &self.eyes {
            eye.deform(frame, vertices, scratch);
        }
    }
}

impl PreparedEye {
    fn deform(&self, frame: &Frame<'_>, vertices: &mut [Vec3], scratch: &mut Scratch) {
        let eye = &self.eye;
        let head = eye.head_bone.map_or(Affine3A::IDENTITY, |bone| frame.matrices[bone]);
        let eye_motion =
            eye.eye_bone.map_or(Affine3A::IDENTITY, |bone| head.inverse() * frame.matrices[bone]);
        let head = if eye.posed { head } else { Affine3A::IDENTITY };
        let to_rest = head.inverse();
        let centre = eye_motion.transform_point3(eye.centre);
        let gaze = rotation_of(&eye_motion);
        let (pitch, yaw) = (twist_angle(gaze, eye.axis), twist_angle(gaze, eye.up));

        let Scratch { numbers: pitches, points, more_points: yaws, .. } = scratch;
        pitches.clear();
        pitches.resize(self.vertices.len(), 0.0);
        for (lid, turns) in eye.lids.iter().zip(&self.turns) {
            let amount = lid.driver.value(frame.controls);
            for &(place, turn) in turns {
                pitches[place as usize] += amount * turn;
            }
        }
        // The gaze has its say on a lid as far as the lid is open.
        let yaws_and_openness = yaws;
        yaws_and_openness.clear();
        yaws_and_openness.resize(self.vertices.len(), Vec3::new(0.0, 1.0, 0.0));
        for &(place, stop) in &self.stops {
            let closed = (pitches[place as usize] / stop).clamp(0.0, 1.0);
            yaws_and_openness[place as usize].y = 1.0 - closed;
        }
        for &(place, share) in &self.pitch {
            pitches[place as usize] += pitch * share * yaws_and_openness[place as usize].y;
        }
        for &(place, stop) in &self.stops {
            let turn = &mut pitches[place as usize];
            *turn = if stop >= 0.0 { turn.min(stop) } else { turn.max(stop) };
        }
        let yaws = yaws_and_openness;
        for &(place, share) in &self.yaw {
            yaws[place as usize].x += yaw * share;
        }
        points.clear();
        for (place, vertex) in self.vertices.iter().enumerate() {
            let offset = to_rest.transform_point3(vertices[*vertex as usize]) - centre;
            let turn = Quat::from_axis_angle(eye.up, yaws[place].x)
                * Quat::from_axis_angle(eye.axis, pitches[place]);
            points.push(turn * offset);
        }
        for &(place, least, softness) in &self.contact {
            let offset = &mut points[place as usize];
            let distance = offset.length().max(1e-6);
            *offset *= keep_out(distance, least, softness) / distance;
        }
        for (vertex, offset) in self.vertices.iter().zip(points) {
            vertices[*vertex as usize] = head.transform_point3(centre + *offset);
        }
    }
}

/// The distance after contact: never below `least`, unchanged from `least + softness` on.
fn keep_out(distance: f32, least: f32, softness: f32) -> f32 {
    let height = distance - least;
    if height <= 0.0 {
        least
    } else if height >= softness {
        distance
    } else {
        least + height * height * (2.0 * softness - height) / (softness * softness)
    }
}

/// The elevation of a point seen from an eye's centre, degrees: rotation about `axis` from the plane
/// of `axis` and `forward`; a point straight above is at 90. Turning a lid vertex about `axis` by
/// `elevation − target` brings it to the elevation `target`.
pub fn elevation_degrees(point: Vec3, centre: Vec3, axis: Vec3, forward: Vec3) -> f32 {
    let offset = point - centre;
    let up = forward.cross(axis);
    offset.dot(up).atan2(offset.dot(forward)).to_degrees()
}

#[cfg(test)]
mod tests {
    use super::super::Skinning;
    use super::super::test_support::*;
    use super::*;
    use crate::rig::Rig;
    use understudy_core::{Face, Mesh, MeshParts, SkinWeights};

    const CENTRE: Vec3 = Vec3::new(0.0, 20.0, 0.0);
    const RADIUS: f32 = 1.2;
    const COLUMNS: u32 = 9;
    const ROWS: u32 = 7;

    /// An upper lid: rows from 20° to 80° of elevation, 0.1 cm over the eyeball at the edge, more above.
    fn lid() -> Mesh {
        let mut parts = MeshParts::default();
        for row in 0..ROWS {
            for column in 0..COLUMNS {
                let elevation = (20.0 + 10.0 * row as f32).to_radians();
                let azimuth = (-40.0 + 10.0 * column as f32).to_radians();
                let distance = RADIUS + 0.1 + 0.02 * row as f32;
                let way = Vec3::new(
                    azimuth.sin() * elevation.cos(),
                    elevation.sin(),
                    azimuth.cos() * elevation.cos(),
                );
                parts.positions.push(CENTRE + way * distance);
            }
        }
        for row in 0..ROWS - 1 {
            for column in 0..COLUMNS - 1 {
                let a = row * COLUMNS + column;
                parts.faces.push(Face::quad(a, a + 1, a + COLUMNS + 1, a + COLUMNS));
            }
        }
        parts.build().expect("a lid is valid")
    }

    fn eye(posed: bool) -> Eye {
        let mesh = lid();
        let count = mesh.vertex_count() as u32;
        let close = |vertex: u32| 45.0 * (1.0 - (vertex / COLUMNS) as f32 / ROWS as f32);
        Eye {
            name: "left".into(),
            eye_bone: Some(2),
            head_bone: Some(0),
            posed,
            centre: CENTRE,
            axis: Vec3::X,
            up: Vec3::Y,
            radius: RADIUS,
            contact: (0..count).map(|v| (v, 0.05)).collect(),
            softness: 0.05,
            lids: vec![Lid {
                driver: Driver::control(control("a")),
                turn: (0..count).map(|v| (v, close(v))).collect(),
            }],
            follow_pitch: (0..count).map(|v| (v, 0.5)).collect(),
            follow_yaw: (0..COLUMNS).map(|v| (v, 0.2)).collect(),
        }
    }

    /// A blendshape-like push of the lid into the eye comes before.
    struct PushIn;

    impl Deformer for PushIn {
        fn name(&self) -> &str {
            "push"
        }

        fn deform(&self, frame: &Frame<'_>, vertices: &mut [Vec3], _scratch: &mut Scratch) {
            for vertex in vertices {
                *vertex -= Vec3::Z * (0.8 * frame.controls[control("b")]);
            }
        }
    }

    fn lids(posed: bool) -> crate::StackRig {
        let mesh = lid();
        let head = vec![vec![(0, 1.0)]; mesh.vertex_count()];
        let weights = SkinWeights::from_rows(&head, 3).expect("rows sum to one");
        let skinning = Box::new(Skinning::linear(weights, &size(&mesh)).expect("fits"));
        let slide = EyelidSlide::new(vec![eye(posed)], mesh.positions(), &size(&mesh)).expect("fits");
        let layers: Vec<Box<dyn Deformer>> = if posed {
            vec![Box::new(PushIn), skinning, Box::new(slide)]
        } else {
            vec![Box::new(PushIn), Box::new(slide), skinning]
        };
        rig(mesh, layers)
    }

    #[test]
    fn identity_at_rest_and_continuous() {
        for posed in [false, true] {
            let rig = lids(posed);
            assert_identity_at_rest(&rig, 1e-4);
            assert_continuous(&rig, 0.06);
        }
    }

    /// Before or after skinning, whatever the head does: the same lids, never inside the eyeball.
    #[test]
    fn lids_never_enter_the_eyeball_and_do_not_care_about_the_head() {
        let (before, after) = (lids(false), lids(true));
        let mut random = understudy_core::Random::new(3);
        for _ in 0..200 {
            let controls = random_controls(before.specs(), &mut random);
            let (a, b) = (evaluate(&before, &controls), evaluate(&after, &controls));
            assert!(largest_difference(&a, &b) < 1e-3);
            let swing = Quat::from_rotation_x(controls.0[control("swing")].to_radians());
            let centre = swing * CENTRE + Vec3::Z * controls.0[control("shift")];
            for vertex in &b {
                let distance = (*vertex - centre).length();
                assert!(distance > RADIUS + 0.05 - 1e-4, "{distance}");
            }
        }
    }

    #[test]
    fn a_blink_travels_on_an_arc() {
        let rig = lids(true);
        let edge = (COLUMNS / 2) as usize;
        let rest = (lid().positions()[edge] - CENTRE).length();
        for step in 0..=10 {
            let blink = step as f32 / 10.0;
            let vertex = pose(&rig, &[("a", blink)])[edge];
            assert!(((vertex - CENTRE).length() - rest).abs() < 1e-4);
            let elevation = elevation_degrees(vertex, CENTRE, Vec3::X, Vec3::Z);
            assert!((elevation - (20.0 - 45.0 * blink)).abs() < 1e-2, "{elevation}");
        }
    }

    #[test]
    fn lids_follow_the_gaze_by_their_share() {
        let edge = (COLUMNS / 2) as usize;
        let down = pose(&lids(true), &[("look_x", 20.0)])[edge];
        assert!((elevation_degrees(down, CENTRE, Vec3::X, Vec3::Z) - 10.0).abs() < 1e-2);
        let aside = pose(&lids(true), &[("look_y", 30.0)])[edge] - CENTRE;
        assert!((aside.x.atan2(aside.z).to_degrees() - 6.0).abs() < 1e-2, "{aside}");
    }

    #[test]
    fn lids_stop_where_they_meet() {
        let mesh = lid();
        let slide = EyelidSlide::new(vec![eye(true)], mesh.positions(), &size(&mesh)).expect("fits");
        let closed: Vec<(u32, f32)> = (0..COLUMNS).map(|v| (v, 45.0)).collect();
        let slide = slide.stop_at(0, &closed).expect("lid vertices");
        let rig = rig(mesh, vec![Box::new(slide)]);
        let edge = (COLUMNS / 2) as usize;
        // Shut, the gaze does nothing; half open, half of its share; beyond shut, nothing more.
        for (blink, look, elevation) in [(1.0, 20.0, -25.0), (1.0, -20.0, -25.0), (0.5, 20.0, -7.5)] {
            let vertex = pose(&rig, &[("a", blink), ("look_x", look)])[edge];
            assert!((elevation_degrees(vertex, CENTRE, Vec3::X, Vec3::Z) - elevation).abs() < 1e-2);
        }
        let slide = EyelidSlide::new(vec![eye(true)], lid().positions(), &size(&lid())).expect("fits");
        assert!(slide.stop_at(1, &closed).is_err());
    }

    #[test]
    fn bad_eyes_are_named() {
        let mesh = lid();
        let new = |eye| EyelidSlide::new(vec![eye], mesh.positions(), &size(&mesh)).err().expect("must fail");
        assert!(new(Eye { axis: Vec3::X * 2.0, ..eye(true) }).to_string().contains("unit length"));
        assert!(new(Eye { radius: f32::NAN, ..eye(true) }).to_string().contains("radius"));
        assert!(new(Eye { head_bone: Some(5), ..eye(true) }).to_string().contains("bone 5"));
    }
}
