//! Eyes as joints and lids that travel around them, found in blendshapes: a sphere through the eyeball
//! gives the joint, the way the lids go in blink and gaze shapes gives their arcs.

use super::EyeHints;
use crate::film::smooth;
use understudy_core::{BlendshapeRig, Mat3, Mesh, Quat, Shape, SparseDeltas, Vec3};
use understudy_rigs::RigError;
use understudy_rigs::deformers::{Driver, Eye, Lid, VertexWeights, smooth_step};

/// Degrees that the eye turns when a gaze shape is fully on.
const LOOK_DOWN: f32 = 30.0;
const LOOK_UP: f32 = 26.0;
const LOOK_IN: f32 = 32.0;
const LOOK_OUT: f32 = 34.0;

/// One eye, found.
pub(super) struct FoundEye {
    /// `_L` or `_R`.
    pub side: &'static str,
    pub centre: Vec3,
    pub radius: f32,
    /// Vertices that turn with the joint.
    pub ball: Vec<u32>,
    /// Degrees at full blink, a vertex.
    blink: VertexWeights,
    follow_pitch: VertexWeights,
    follow_yaw: VertexWeights,
    contact: VertexWeights,
}

/// How a gaze shape turns the eye: name without side, degrees about x, degrees about y of a left eye.
pub(super) const GAZES: [(&str, f32, f32); 4] = [
    ("eyeLookDown", LOOK_DOWN, 0.0),
    ("eyeLookUp", -LOOK_UP, 0.0),
    ("eyeLookIn", 0.0, -LOOK_IN),
    ("eyeLookOut", 0.0, LOOK_OUT),
];

impl FoundEye {
    /// Fits the sphere and reads the lids' arcs off the shapes.
    pub fn fit(
        mesh: &Mesh,
        shapes: &BlendshapeRig,
        hints: &EyeHints,
        skin: &[bool],
    ) -> Result<Self, RigError> {
        let ball = super::vertices_of(mesh, &hints.eyeball)?;
        let missing = || RigError::Unknown { part: format!("eye {}", hints.side), name: "an eyeball".into() };
        let shell = outer_shell(mesh, &ball).ok_or_else(missing)?;
        let (centre, radius) = fit_sphere(&shell).ok_or_else(missing)?;
        let mut attached = vec![false; mesh.vertex_count()];
        for vertex in super::vertices_of(mesh, &hints.attached)? {
            attached[vertex as usize] = true;
        }
        let reach = |vertex: usize, point: &Vec3| {
            if attached[vertex] {
                1.0
            } else if skin[vertex] {
                smooth_step(1.9 * radius, 1.3 * radius, (*point - centre).length())
            } else {
                0.0
            }
        };
        let area: Vec<f32> = mesh.positions().iter().enumerate().map(|(v, p)| reach(v, p)).collect();
        let arcs = |name: &str, axis: Vec3| -> Vec<f32> {
            let moves = dense(shapes, &format!("{name}{}", hints.side), mesh.vertex_count());
            let mut angles: Vec<f32> = (0..area.len())
                .map(|v| area[v] * arc(mesh.positions()[v] - centre, moves[v], axis, radius))
                .collect();
            // A lid turns as one piece: what is uneven is left to the shape.
            let fixed: Vec<bool> = area.iter().map(|area| *area == 0.0).collect();
            smooth(&mesh.adjacency(), &mut angles, &fixed, 2);
            angles
        };
        let sparse = |values: Vec<f32>, gain: f32, least: f32| -> VertexWeights {
            let scaled = (0u32..).zip(values).map(|(v, angle)| (v, angle * gain));
            scaled.filter(|(_, angle)| angle.abs() > least).collect()
        };
        let blink = arcs("eyeBlink", Vec3::X);
        let near = |&(vertex, turn): &(usize, &f32)| {
            let distance = (mesh.positions()[vertex] - centre).length();
            skin[vertex] && turn.abs() > 3.0 && distance < 1.25 * radius
        };
        let contact = blink.iter().enumerate().filter(near).map(|(v, _)| (v as u32, 0.02)).collect();
        let outwards = if hints.side == "_L" { 1.0 } else { -1.0 };
        Ok(Self {
            side: hints.side,
            centre,
            radius,
            follow_pitch: sparse(arcs("eyeLookDown", Vec3::X), 1.0 / LOOK_DOWN, 0.005),
            follow_yaw: sparse(arcs("eyeLookOut", Vec3::Y), outwards / LOOK_OUT, 0.005),
            blink: sparse(blink, 1.0, 0.1),
            contact,
            ball,
        })
    }

    /// Degrees about x and y that the eye turns for a gaze shape.
    pub fn gaze(&self, pitch: f32, yaw: f32) -> (f32, f32) {
        (pitch, if self.side == "_L" { yaw } else { -yaw })
    }

    /// The layer's settings: blink by `control`, gaze by the eye's bone.
    pub fn layer(&self, control: usize, eye_bone: usize, head_bone: usize) -> Eye {
        Eye {
            name: self.side.trim_start_matches('_').into(),
            eye_bone: Some(eye_bone),
            head_bone: Some(head_bone),
            posed: false,
            centre: self.centre,
            axis: Vec3::X,
            up: Vec3::Y,
            radius: self.radius,
            contact: self.contact.clone(),
            softness: 0.02,
            lids: vec![Lid { driver: Driver::control(control), turn: self.blink.clone() }],
            follow_pitch: self.follow_pitch.clone(),
            follow_yaw: self.follow_yaw.clone(),
        }
    }

    /// Where lids stop: as far as a blink or a gaze by itself takes them.
    pub fn stops(&self) -> VertexWeights {
        let share = |vertex: u32| {
            let found = self.follow_pitch.binary_search_by_key(&vertex, |(vertex, _)| *vertex);
            found.map_or(0.0, |place| self.follow_pitch[place].1)
        };
        let stop = |&(vertex, turn): &(u32, f32)| {
            let (down, up) = (share(vertex) * LOOK_DOWN, -share(vertex) * LOOK_UP);
            (vertex, if turn > 0.0 { turn.max(down).max(up) } else { turn.min(down).min(up) })
        };
        self.blink.iter().filter(|(_, turn)| turn.abs() > 2.0).map(stop).collect()
    }

    /// Takes out of this eye's blink and gaze shapes what the joint and the arcs do.
    pub fn take_out(&self, rest: &[Vec3], shapes: &mut [Shape]) {
        for shape in shapes {
            let Some(base) = shape.name.strip_suffix(self.side) else { continue };
            let gaze =
                GAZES.iter().find(|(name, ..)| *name == base).map(|(_, pitch, yaw)| self.gaze(*pitch, *yaw));
            let turns: Vec<(f32, f32)> = match (base, gaze) {
                ("eyeBlink", _) => turns(rest.len(), [(&self.blink, 1.0), (&self.follow_yaw, 0.0)]),
                (_, Some((pitch, yaw))) => {
                    turns(rest.len(), [(&self.follow_pitch, pitch), (&self.follow_yaw, yaw)])
                }
                _ => continue,
            };
            let mut moves = shape.deltas.to_dense(rest.len());
            for ((delta, rest), (pitch, yaw)) in moves.iter_mut().zip(rest).zip(&turns) {
                if *pitch != 0.0 || *yaw != 0.0 {
                    let turn =
                        Quat::from_rotation_y(yaw.to_radians()) * Quat::from_rotation_x(pitch.to_radians());
                    let wanted = *rest + *delta - self.centre;
                    *delta = self.centre + turn.inverse() * wanted - *rest;
                }
            }
            for vertex in &self.ball {
                moves[*vertex as usize] = Vec3::ZERO;
            }
            shape.deltas = SparseDeltas::from_dense(&moves, 1e-4);
        }
    }
}

/// Pitch and yaw of every vertex.
fn turns(count: usize, lists: [(&VertexWeights, f32); 2]) -> Vec<(f32, f32)> {
    let mut out = vec![(0.0, 0.0); count];
    for &(vertex, share) in lists[0].0 {
        out[vertex as usize].0 += share * lists[0].1;
    }
    for &(vertex, share) in lists[1].0 {
        out[vertex as usize].1 += share * lists[1].1;
    }
    out
}

fn dense(shapes: &BlendshapeRig, name: &str, count: usize) -> Vec<Vec3> {
    shapes.find(name).map_or(vec![Vec3::ZERO; count], |shape| shapes.shapes()[shape].deltas.to_dense(count))
}

/// Degrees about `axis` that carry an offset the way `delta` does; small where the offset lies along
/// the axis, for there is no arc to speak of.
fn arc(offset: Vec3, delta: Vec3, axis: Vec3, radius: f32) -> f32 {
    let (from, to) = (offset.reject_from_normalized(axis), (offset + delta).reject_from_normalized(axis));
    let angle = axis.dot(from.cross(to)).atan2(from.dot(to));
    let lever = from.length_squared();
    angle.to_degrees() * lever / (lever + 0.1 * radius * radius)
}

/// The largest connected piece of an eyeball: its outside.
fn outer_shell(mesh: &Mesh, ball: &[u32]) -> Option<Vec<Vec3>> {
    let (island, count) = mesh.islands();
    let mut pieces: Vec<Vec<Vec3>> = vec![Vec::new(); count];
    for &vertex in ball {
        pieces[island[vertex as usize] as usize].push(mesh.positions()[vertex as usize]);
    }
    let extent = |piece: &Vec<Vec3>| {
        let low = piece.iter().copied().reduce(Vec3::min).unwrap_or_default();
        let high = piece.iter().copied().reduce(Vec3::max).unwrap_or_default();
        (high - low).length()
    };
    pieces.into_iter().max_by(|a, b| extent(a).total_cmp(&extent(b))).filter(|piece| piece.len() >= 10)
}

/// Centre and radius of the sphere through points (algebraic least squares); the fifth that fits worst
/// (the cornea) is left out.
fn fit_sphere(points: &[Vec3]) -> Option<(Vec3, f32)> {
    let mut kept = points.to_vec();
    let mut found = None;
    for _ in 0..6 {
        let mean = kept.iter().sum::<Vec3>() / kept.len() as f32;
        let (mut spread, mut pull) = (Mat3::ZERO, Vec3::ZERO);
        for point in &kept {
            let p = *point - mean;
            spread += Mat3::from_cols(p * p.x, p * p.y, p * p.z) * 2.0;
            pull += p * p.length_squared();
        }
        if spread.determinant().abs() < 1e-6 {
            return None;
        }
        let centre = mean + spread.inverse() * pull;
        let radius =
            (kept.iter().map(|p| p.distance_squared(centre)).sum::<f32>() / kept.len() as f32).sqrt();
        found = Some((centre, radius));
        let miss = |p: &Vec3| (p.distance(centre) - radius).abs();
        kept = points.to_vec();
        kept.sort_by(|a, b| miss(a).total_cmp(&miss(b)));
        kept.truncate(points.len() * 4 / 5);
    }
    found.filter(|(centre, radius)| centre.is_finite() && *radius > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sphere_with_a_cornea_is_found() {
        let centre = Vec3::new(3.0, 4.0, 8.0);
        let mut points = Vec::new();
        for ring in 0..20 {
            for step in 0..24 {
                let (theta, phi) = (ring as f32 * 0.15, step as f32 * 0.2618);
                let way = Vec3::new(theta.sin() * phi.cos(), theta.sin() * phi.sin(), theta.cos());
                let cornea = 0.15 * smooth_step(0.45, 0.0, theta);
                points.push(centre + way * (1.5 + cornea));
            }
        }
        let (found, radius) = fit_sphere(&points).expect("a sphere");
        assert!((found - centre).length() < 0.02 && (radius - 1.5).abs() < 0.02, "{found} {radius}");
        assert!(fit_sphere(&vec![Vec3::ONE; 20]).is_none());
    }

    #[test]
    fn arcs_are_right_handed() {
        let down = arc(Vec3::new(0.0, 0.6, 1.4), Vec3::new(0.0, -0.5, 0.1), Vec3::X, 1.5);
        assert!(down > 10.0, "{down}");
        assert!(arc(Vec3::X * 1.5, Vec3::Y * 0.1, Vec3::X, 1.5).abs() < 3.0);
    }
}
