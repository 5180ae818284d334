//! Free-form deformation (Sederberg and Parry 1986): a box of control points around the character that
//! squashes, stretches, bends, twists and tapers, and bears single handles. Usually the last layer.

use super::driver::{Driver, RigSize, check_finite, unknown};
use crate::rig::RigError;
use crate::stack::{Deformer, Frame, Scratch};
use understudy_core::rotation::fit_rigid;
use understudy_core::{Affine3A, Quat, Vec3, Vec3A};

/// Control points that move along given directions.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LatticeHandle {
    /// How far.
    pub driver: Driver,
    /// Control point (x, y, z) and where it goes at driver = 1, cm.
    pub moves: Vec<([usize; 3], Vec3)>,
}

/// Settings of a [`Lattice`]. Drivers left at their default do nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct LatticeConfig {
    /// Lower corner of the box in the rest pose, cm. The box should hold every vertex in every pose:
    /// outside, a vertex moves as the nearest point of the box does.
    pub low: Vec3,
    /// Upper corner.
    pub high: Vec3,
    /// Control points along x, y and z, 2 to 8 each.
    pub counts: [usize; 3],
    /// The bone that carries the box, for a lattice after skinning. `None`: the box stays where it is.
    pub bone: Option<usize>,
    /// What stands still: stretching and bending start here.
    pub pivot: Vec3,
    /// Height grows by `2^stretch`, so −1 halves it and 1 doubles it.
    pub stretch: Driver,
    /// How much of the volume stretching keeps: 1 all of it, 0 none.
    pub volume: f32,
    /// Width at the top grows by `2^taper`, at the pivot not at all.
    pub taper: Driver,
    /// Degrees about +X from the pivot to the top: positive leans to +Z, forward.
    pub bend_front: Driver,
    /// Degrees about +Z from the pivot to the top: positive leans to −X.
    pub bend_side: Driver,
    /// Degrees about +Y from the pivot to the top.
    pub twist: Driver,
    /// Single control points.
    pub handles: Vec<LatticeHandle>,
    /// How much each vertex follows, `[V]`; empty means all of it.
    pub mask: Vec<f32>,
}

impl Default for LatticeConfig {
    fn default() -> Self {
        let none = Driver::default;
        Self {
            low: Vec3::ZERO,
            high: Vec3::ONE,
            counts: [4, 4, 4],
            bone: None,
            pivot: Vec3::ZERO,
            stretch: none(),
            volume: 1.0,
            taper: none(),
            bend_front: none(),
            bend_side: none(),
            twist: none(),
            handles: Vec::new(),
            mask: Vec::new(),
        }
    }
}

/// `v += mask · Σ B_i(u) B_j(v) B_k(w) d_ijk` with Bernstein polynomials of the vertex's place in the
/// box (in the carrying bone's rest frame) and the displacements `d` of the control points.
pub struct Lattice {
    config: LatticeConfig,
    /// Sets of vertices that are moved without being deformed.
    rigid: Vec<Vec<u32>>,
}

impl Lattice {
    /// The most control points along an axis.
    pub const MAX_COUNT: usize = 8;

    /// Checks the settings.
    pub fn new(config: LatticeConfig, size: &RigSize) -> Result<Self, RigError> {
        const PART: &str = "lattice";
        let extent = config.high - config.low;
        if !(config.low.is_finite() && extent.is_finite() && extent.min_element() > 0.0) {
            return Err(unknown(PART, format!("box {} to {}", config.low, config.high)));
        }
        if !config.counts.iter().all(|count| (2..=Self::MAX_COUNT).contains(count)) {
            return Err(unknown(PART, format!("{:?} control points", config.counts)));
        }
        let height = config.high.y - config.pivot.y;
        if !config.pivot.is_finite() || height <= 0.0 {
            return Err(unknown(PART, format!("pivot {} at or above the box's top", config.pivot)));
        }
        if let Some(bone) = config.bone {
            size.check_bone(PART, bone)?;
        }
        check_finite(PART, "volume", config.volume)?;
        let LatticeConfig { stretch, taper, bend_front, bend_side, twist, .. } = &config;
        for driver in [stretch, taper, bend_front, bend_side, twist] {
            driver.check(PART, size)?;
        }
        for handle in &config.handles {
            handle.driver.check(PART, size)?;
            for (place, way) in &handle.moves {
                let outside = place.iter().zip(&config.counts).any(|(place, count)| place >= count);
                if outside || !way.is_finite() {
                    return Err(unknown(PART, format!("control point {place:?} moved by {way}")));
                }
            }
        }
        if !config.mask.is_empty() && config.mask.len() != size.vertices {
            let (got, want) = (config.mask.len(), size.vertices);
            return Err(RigError::Count { what: "lattice: mask".into(), got, want });
        }
        if let Some(vertex) = config.mask.iter().position(|weight| !weight.is_finite()) {
            return Err(unknown(PART, format!("mask of vertex {vertex} = {}", config.mask[vertex])));
        }
        Ok(Self { config, rigid: Vec::new() })
    }

    /// Teeth and buckles do not squash: each of these sets of vertices is moved by the rigid motion
    /// that comes nearest to what the lattice does to it.
    pub fn with_rigid_parts(mut self, parts: Vec<Vec<u32>>, size: &RigSize) -> Result<Self, RigError> {
        for part in &parts {
            size.check_vertices("lattice: rigid part", part.iter().copied())?;
        }
        self.rigid = parts;
        Ok(self)
    }

    /// Displacements of all control points, x fastest. Returns whether any moves.
    fn control_points(&self, controls: &[f32], out: &mut Vec<Vec3>) -> bool {
        let config = &self.config;
        let [stretch, taper, front, side, twist] =
            [&config.stretch, &config.taper, &config.bend_front, &config.bend_side, &config.twist]
                .map(|driver| driver.value(controls));
        let rod = Rod {
            height: config.high.y - config.pivot.y,
            stretch: stretch.exp2(),
            width: (-0.5 * config.volume * stretch).exp2(),
            taper,
            turn: Vec3::new(front, twist, side) * 1f32.to_radians(),
        };
        let still = stretch == 0.0 && taper == 0.0 && rod.turn == Vec3::ZERO;
        let [nx, ny, nz] = config.counts;
        out.clear();
        out.resize(nx * ny * nz, Vec3::ZERO);
        let step = (config.high - config.low) / Vec3::new(nx as f32 - 1.0, ny as f32 - 1.0, nz as f32 - 1.0);
        if !still {
            for (index, out) in out.iter_mut().enumerate() {
                let place =
                    Vec3::new((index % nx) as f32, (index / nx % ny) as f32, (index / nx / ny) as f32);
                let offset = config.low + place * step - config.pivot;
                *out = rod.carry(offset) - offset;
            }
        }
        let mut any = !still;
        for handle in &config.handles {
            let amount = handle.driver.value(controls);
            any |= amount != 0.0;
            for ([x, y, z], way) in &handle.moves {
                out[x + nx * (y + ny * z)] += *way * amount;
            }
        }
        any
    }
}

/// An elastic rod that stands on the pivot: bent and twisted by a rotation vector over its height.
struct Rod {
    height: f32,
    stretch: f32,
    width: f32,
    taper: f32,
    turn: Vec3,
}

impl Rod {
    /// Where an offset from the pivot goes. The centre line is `H ∫ exp(τω) ŷ dτ` in closed form.
    fn carry(&self, offset: Vec3) -> Vec3 {
        let t = offset.y / self.height;
        let angle = self.turn.length();
        let across = Vec3::new(offset.x, 0.0, offset.z) * (self.width * (self.taper * t).exp2());
        let length = self.height * self.stretch;
        if angle < 1e-6 {
            // First order, so that the limit is reached without a jump.
            let lean = self.turn.cross(Vec3::Y) * (0.5 * t * t);
            return across + self.turn.cross(across) * t + (Vec3::Y * t + lean) * length;
        }
        let axis = self.turn / angle;
        let (sin, cos) = (angle * t).sin_cos();
        let first = axis.cross(Vec3::Y);
        let line = Vec3::Y * t + first * ((1.0 - cos) / angle) + axis.cross(first) * (t - sin / angle);
        Quat::from_axis_angle(axis, angle * t) * across + line * length
    }
}

/// Bernstein polynomials of degree `count − 1` at `t`, by the triangle scheme.
fn bernstein(count: usize, t: f32, out: &mut [f32; Lattice::MAX_COUNT]) {
    out[0] = 1.0;
    for degree in 1..count {
        out[degree] = out[degree - 1] * t;
        for index in (1..degree).rev() {
            out[index] = out[index - 1] * t + out[index] * (1.0 - t);
        }
        out[0] *= 1.0 - t;
    }
}

impl Deformer for Lattice {
    fn name(&self) -> &str {
        "lattice"
    }

    fn deform(&self, frame: &Frame<'_>, vertices: &mut [Vec3], scratch: &mut Scratch) {
        if !self.control_points(frame.controls, &mut scratch.points) {
            return;
        }
        let config = &self.config;
        let wide = &mut scratch.wide;
        wide.clear();
        wide.extend(scratch.points.iter().map(|d| Vec3A::from(*d)));
        let carry = config.bone.map_or(Affine3A::IDENTITY, |bone| frame.matrices[bone]);
        let to_rest = carry.inverse();
        let scale = Vec3A::ONE / Vec3A::from(config.high - config.low);
        let low = Vec3A::from(config.low);
        let [nx, ny, nz] = config.counts;
        let before = &mut scratch.more_points;
        before.clear();
        before.extend(self.rigid.iter().flatten().map(|vertex| vertices[*vertex as usize]));
        let mut basis = [[0.0f32; Self::MAX_COUNT]; 3];
        for (index, vertex) in vertices.iter_mut().enumerate() {
            let weight = config.mask.get(index).copied().unwrap_or(1.0);
            if weight == 0.0 {
                continue;
            }
            let place = (to_rest.transform_point3a((*vertex).into()) - low) * scale;
            let place = place.clamp(Vec3A::ZERO, Vec3A::ONE);
            bernstein(nx, place.x, &mut basis[0]);
            bernstein(ny, place.y, &mut basis[1]);
            bernstein(nz, place.z, &mut basis[2]);
            let mut sum = Vec3A::ZERO;
            for (layer, &bz) in wide.chunks_exact(nx * ny).zip(&basis[2][..nz]) {
                for (line, &by) in layer.chunks_exact(nx).zip(&basis[1][..ny]) {
                    let mut row = Vec3A::ZERO;
                    for (point, &bx) in line.iter().zip(&basis[0][..nx]) {
                        row += *point * bx;
                    }
                    sum += row * (by * bz);
                }
            }
            *vertex += Vec3::from(carry.transform_vector3a(sum)) * weight;
        }
        let after = &mut scratch.points;
        let mut start = 0;
        for part in &self.rigid {
            after.clear();
            after.extend(part.iter().map(|vertex| vertices[*vertex as usize]));
            let before = &before[start..start + part.len()];
            let motion = fit_rigid(before, after);
            for (vertex, before) in part.iter().zip(before) {
                vertices[*vertex as usize] = motion.apply(*before);
            }
            start += part.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Skinning;
    use super::super::test_support::*;
    use super::*;

    fn config() -> LatticeConfig {
        LatticeConfig {
            low: Vec3::new(-6.0, -1.0, -6.0),
            high: Vec3::new(6.0, 41.0, 6.0),
            counts: [3, 5, 3],
            ..LatticeConfig::default()
        }
    }

    fn boxed(config: LatticeConfig) -> crate::StackRig {
        let mesh = tube();
        let lattice = Lattice::new(config, &size(&mesh)).expect("fits");
        rig(mesh, vec![Box::new(lattice)])
    }

    fn full() -> LatticeConfig {
        LatticeConfig {
            stretch: Driver::control(control("c")),
            taper: Driver::control(control("a")),
            bend_front: Driver::scaled(control("b"), 60.0),
            bend_side: Driver::scaled(control("c"), 30.0),
            twist: Driver::scaled(control("a"), 90.0),
            ..config()
        }
    }

    #[test]
    fn bernstein_polynomials_sum_to_one_and_have_affine_precision() {
        for count in 2..=Lattice::MAX_COUNT {
            for step in 0..=20 {
                let t = step as f32 / 20.0;
                let mut basis = [0.0; Lattice::MAX_COUNT];
                bernstein(count, t, &mut basis);
                let mean = |(i, b): (usize, &f32)| b * i as f32 / (count - 1) as f32;
                assert!((basis[..count].iter().sum::<f32>() - 1.0).abs() < 1e-6);
                assert!((basis[..count].iter().enumerate().map(mean).sum::<f32>() - t).abs() < 1e-6);
            }
        }
    }

    /// Control points moved by an affine map move every vertex by that map.
    #[test]
    fn handles_have_affine_precision() {
        let map = |p: Vec3| Vec3::new(0.3 * p.y - 2.0, 0.1 * p.x + 0.5 * p.z, -0.2 * p.y + 1.0);
        let LatticeConfig { low, high, counts, .. } = config();
        let mut moves = Vec::new();
        for x in 0..counts[0] {
            for y in 0..counts[1] {
                for z in 0..counts[2] {
                    let place = Vec3::new(x as f32 / 2.0, y as f32 / 4.0, z as f32 / 2.0);
                    moves.push(([x, y, z], map(low + (high - low) * place)));
                }
            }
        }
        let handle = LatticeHandle { driver: Driver::control(control("a")), moves };
        let rig = boxed(LatticeConfig { handles: vec![handle], ..config() });
        let expected: Vec<Vec3> = tube().positions().iter().map(|p| *p + map(*p) * 0.5).collect();
        assert!(largest_difference(&pose(&rig, &[("a", 0.5)]), &expected) < 1e-4);
        assert_identity_at_rest(&rig, 0.0);
    }

    #[test]
    fn identity_at_rest_and_continuous() {
        let rig = boxed(full());
        assert_identity_at_rest(&rig, 0.0);
        assert_continuous(&rig, 0.05);
    }

    #[test]
    fn stretching_keeps_the_volume() {
        let rig = boxed(LatticeConfig { stretch: Driver::control(control("c")), ..config() });
        for amount in [-1.0, -0.4, 0.7, 1.0] {
            let vertices = pose(&rig, &[("c", amount)]);
            let height = vertices[(20 * AROUND) as usize].y - vertices[0].y;
            let radius = vertices[(10 * AROUND) as usize].with_y(0.0).length();
            assert!((height / 40.0 - amount.exp2()).abs() < 1e-4, "{height}");
            assert!((height * radius * radius / (40.0 * 25.0) - 1.0).abs() < 1e-3);
        }
    }

    #[test]
    fn bends_and_twists_turn_the_top() {
        let rig = boxed(LatticeConfig { bend_front: Driver::scaled(control("b"), 60.0), ..config() });
        let bent = pose(&rig, &[("b", 1.0)]);
        let top = bent[(20 * AROUND) as usize..].iter().sum::<Vec3>() / AROUND as f32;
        // The curve of a lattice smooths its control points: less bend than the handles say, never more.
        assert!(top.z > 10.0 && top.z < 20.5 && top.y < 38.5, "{top}");
        let rig = boxed(LatticeConfig { twist: Driver::scaled(control("b"), 60.0), ..config() });
        let twisted = pose(&rig, &[("b", 1.0)])[(20 * AROUND) as usize];
        assert!(twisted.z < -2.5 && twisted.x > 0.0, "{twisted}");
    }

    /// Carried by a bone, the box goes where the bone goes.
    #[test]
    fn a_carried_box_commutes_with_its_bone() {
        let mesh = tube();
        let weights = understudy_core::SkinWeights::from_rows(&vec![vec![(0, 1.0)]; mesh.vertex_count()], 3);
        let skinning = Skinning::linear(weights.expect("rows sum to one"), &size(&mesh)).expect("fits");
        let lattice = Lattice::new(LatticeConfig { bone: Some(0), ..full() }, &size(&mesh)).expect("fits");
        let rig = rig(mesh, vec![Box::new(skinning), Box::new(lattice)]);
        let squash = [("a", 0.6), ("b", 0.3), ("c", -0.5)];
        let here = pose(&rig, &squash);
        let moved = pose(&rig, &[squash[0], squash[1], squash[2], ("swing", 50.0), ("shift", 9.0)]);
        let turn = Quat::from_rotation_x(50f32.to_radians());
        let expected: Vec<Vec3> = here.iter().map(|v| turn * *v + Vec3::Z * 9.0).collect();
        assert!(largest_difference(&moved, &expected) < 1e-3);
    }

    #[test]
    fn rigid_parts_keep_their_shape() {
        let mesh = tube();
        let part: Vec<u32> = (5 * AROUND..8 * AROUND).collect();
        let lattice = Lattice::new(full(), &size(&mesh)).expect("fits");
        let lattice = lattice.with_rigid_parts(vec![part.clone()], &size(&mesh)).expect("fits");
        let rig = rig(mesh, vec![Box::new(lattice)]);
        assert_identity_at_rest(&rig, 0.0);
        assert_continuous(&rig, 0.05);
        let squashed = pose(&rig, &[("a", 0.7), ("b", 0.5), ("c", -0.8)]);
        let rest = tube().positions().to_vec();
        let length = |points: &[Vec3], a: u32, b: u32| (points[a as usize] - points[b as usize]).length();
        for pair in part.windows(2) {
            assert!((length(&squashed, pair[0], pair[1]) - length(&rest, pair[0], pair[1])).abs() < 1e-4);
        }
        assert!((squashed[part[0] as usize] - rest[part[0] as usize]).length() > 1.0);
    }

    #[test]
    fn masks_hold_vertices_and_bad_settings_are_named() {
        let mut mask = vec![1.0; tube().vertex_count()];
        mask[0] = 0.0;
        let rig = boxed(LatticeConfig { mask, ..full() });
        assert_eq!(pose(&rig, &[("a", 1.0)])[0], tube().positions()[0]);
        let mesh = tube();
        let new = |config| Lattice::new(config, &size(&mesh)).err().expect("must fail").to_string();
        assert!(new(LatticeConfig { counts: [1, 4, 4], ..config() }).contains("[1, 4, 4]"));
        assert!(new(LatticeConfig { high: Vec3::NAN, ..config() }).contains("box"));
        let handle = LatticeHandle { driver: Driver::constant(1.0), moves: vec![([3, 0, 0], Vec3::X)] };
        assert!(new(LatticeConfig { handles: vec![handle], ..config() }).contains("[3, 0, 0]"));
    }
}
