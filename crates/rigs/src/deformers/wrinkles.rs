//! Fine folds that appear where skin is compressed: grooves with raised banks along lines drawn on the
//! rest surface, moved along the normals of the pose. Runs after everything that moves the skin.

use super::driver::{Driver, Response, RigSize, check_finite, check_positive, unknown};
use super::patch::PatchNormals;
use super::smooth_step;
use crate::rig::RigError;
use crate::stack::{Deformer, Frame, Scratch};
use understudy_core::{Mesh, Vec3};

/// One fold: a line on the rest surface.
#[derive(Debug, Clone, PartialEq)]
pub struct Wrinkle {
    /// Two or more points, cm.
    pub path: Vec<Vec3>,
    /// From the groove to the crest of its bank, cm. At least the length of the mesh's edges there.
    pub width: f32,
    /// Depth of the groove in the middle of the line, cm; the banks rise by 0.36 of it. Negative makes
    /// a ridge.
    pub depth: f32,
}

/// What makes folds appear.
#[derive(Debug, Clone, PartialEq)]
pub enum Activation {
    /// Controls.
    Driver(Driver),
    /// How much shorter a set of vertex pairs has become together: `response(1 − Σ|now| / Σ|rest|)`.
    Compression {
        /// Pairs across the folds.
        pairs: Vec<(u32, u32)>,
        /// From compression to 0–1.
        response: Response,
    },
}

/// Folds that come and go together.
#[derive(Debug, Clone, PartialEq)]
pub struct WrinkleGroup {
    /// For messages.
    pub name: String,
    /// The folds.
    pub wrinkles: Vec<Wrinkle>,
    /// What makes them appear.
    pub activation: Activation,
    /// Vertices that may move (the skin, not the eye behind it); empty means all.
    pub region: Vec<u32>,
}

/// `v += Σ_g a_g h_g(v) n(v)`: heights are laid down once on the rest mesh, normals are the pose's.
pub struct Wrinkles {
    groups: Vec<(Activation, Vec<(u32, f32)>)>,
    normals: PatchNormals,
}

impl Wrinkles {
    /// Checks the folds and lays them down on the mesh.
    pub fn new(groups: Vec<WrinkleGroup>, mesh: &Mesh, size: &RigSize) -> Result<Self, RigError> {
        size.check_mesh("wrinkles", mesh)?;
        let mut heights = Vec::with_capacity(groups.len());
        for group in groups {
            let part = format!("wrinkles '{}'", group.name);
            size.check_vertices(&part, group.region.iter().copied())?;
            match &group.activation {
                Activation::Driver(driver) => driver.check(&part, size)?,
                Activation::Compression { pairs, response } => {
                    size.check_vertices(&part, pairs.iter().flat_map(|p| [p.0, p.1]))?;
                    response.check(&part)?;
                    if pairs.is_empty() {
                        return Err(unknown(&part, "compression without pairs".into()));
                    }
                }
            }
            for wrinkle in &group.wrinkles {
                check_positive(&part, "width", wrinkle.width)?;
                check_finite(&part, "depth", wrinkle.depth)?;
                if wrinkle.path.len() < 2 || wrinkle.path.iter().any(|p| !p.is_finite()) {
                    return Err(unknown(&part, format!("a path of {} points", wrinkle.path.len())));
                }
            }
            let region =
                if group.region.is_empty() { (0..size.vertices as u32).collect() } else { group.region };
            let height = |vertex: &u32| -> f32 {
                let point = mesh.positions()[*vertex as usize];
                group.wrinkles.iter().map(|wrinkle| fold_height(wrinkle, point)).sum()
            };
            let laid: Vec<(u32, f32)> =
                region.iter().map(|v| (*v, height(v))).filter(|(_, h)| h.abs() > 1e-5).collect();
            heights.push((group.activation, laid));
        }
        let moved = heights.iter().flat_map(|(_, laid)| laid.iter().map(|l| l.0)).collect();
        let normals = PatchNormals::new(mesh, moved);
        for (_, laid) in &mut heights {
            for (vertex, _) in laid {
                *vertex = normals.slot(*vertex).expect("every moved vertex is in the patch");
            }
        }
        Ok(Self { groups: heights, normals })
    }
}

/// Height of one fold at a rest point: `depth · profile(distance / width) · taper`. The profile
/// `(1.75 x² − 1) e^(−x²)` is a groove of depth 1 with banks of 0.36 at `x = 1.25`, cut off smoothly
/// between 1.5 and 2.5 widths.
fn fold_height(wrinkle: &Wrinkle, point: Vec3) -> f32 {
    let length: f32 = wrinkle.path.windows(2).map(|pair| (pair[1] - pair[0]).length()).sum();
    let (mut best, mut place, mut walked) = (f32::INFINITY, 0.0, 0.0);
    for pair in wrinkle.path.windows(2) {
        let along = pair[1] - pair[0];
        let t = ((point - pair[0]).dot(along) / along.length_squared().max(1e-12)).clamp(0.0, 1.0);
        let distance = (point - pair[0] - along * t).length();
        if distance < best {
            best = distance;
            place = walked + t * along.length();
        }
        walked += along.length();
    }
    let along = place / length.max(1e-6);
    let taper = smooth_step(0.0, 0.3, along) * smooth_step(1.0, 0.7, along);
    let x = best / wrinkle.width;
    let profile = (1.75 * x * x - 1.0) * (-x * x).exp() * smooth_step(2.5, 1.5, x);
    wrinkle.depth * taper * profile
}

impl Deformer for Wrinkles {
    fn name(&self) -> &str {
        "wrinkles"
    }

    fn deform(&self, frame: &Frame<'_>, vertices: &mut [Vec3], scratch: &mut Scratch) {
        let Scratch { points: normals, numbers, .. } = scratch;
        numbers.clear();
        numbers.resize(self.normals.vertices.len(), 0.0);
        let mut any = false;
        for (activation, laid) in &self.groups {
            let amount = activation.value(frame, vertices);
            if amount != 0.0 {
                any = true;
                for &(slot, height) in laid {
                    numbers[slot as usize] += amount * height;
                }
            }
        }
        if !any {
            return;
        }
        self.normals.compute(vertices, normals);
        for ((vertex, normal), height) in self.normals.vertices.iter().zip(normals).zip(numbers) {
            vertices[*vertex as usize] += *normal * *height;
        }
    }
}

impl Activation {
    fn value(&self, frame: &Frame<'_>, vertices: &[Vec3]) -> f32 {
        match self {
            Self::Driver(driver) => driver.value(frame.controls),
            Self::Compression { pairs, response } => {
                let length = |points: &[Vec3]| -> f32 {
                    pairs.iter().map(|(a, b)| (points[*a as usize] - points[*b as usize]).length()).sum()
                };
                response.at(1.0 - length(vertices) / length(frame.rest).max(1e-6))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_support::*;
    use super::*;
    use understudy_core::{Face, MeshParts};

    const SIDE: u32 = 41;

    /// A forehead: a sheet of 10 × 10 cm in the xy plane, normals towards +z.
    fn sheet() -> Mesh {
        let at = |i: u32| Vec3::new((i % SIDE) as f32 * 0.25, (i / SIDE) as f32 * 0.25, 0.0);
        let positions = (0..SIDE * SIDE).map(at).collect();
        let quad = |i: u32| (i % SIDE < SIDE - 1).then(|| Face::quad(i, i + 1, i + SIDE + 1, i + SIDE));
        let faces = (0..SIDE * (SIDE - 1)).filter_map(quad).collect();
        MeshParts { positions, faces, ..MeshParts::default() }.build().expect("a sheet is valid")
    }

    fn group(activation: Activation) -> WrinkleGroup {
        let path = vec![Vec3::new(1.0, 5.0, 0.0), Vec3::new(5.0, 5.5, 0.0), Vec3::new(9.0, 5.0, 0.0)];
        let wrinkle = Wrinkle { path, width: 0.5, depth: 0.2 };
        WrinkleGroup { name: "brow".into(), wrinkles: vec![wrinkle], activation, region: Vec::new() }
    }

    fn brow(activation: Activation) -> crate::StackRig {
        let mesh = sheet();
        let wrinkles = Wrinkles::new(vec![group(activation)], &mesh, &size(&mesh)).expect("fits");
        rig(mesh, vec![Box::new(Squeeze), Box::new(wrinkles)])
    }

    /// Control `b` presses the sheet together along y.
    struct Squeeze;

    impl Deformer for Squeeze {
        fn name(&self) -> &str {
            "squeeze"
        }

        fn deform(&self, frame: &Frame<'_>, vertices: &mut [Vec3], _scratch: &mut Scratch) {
            for vertex in vertices {
                vertex.y *= 1.0 - 0.3 * frame.controls[control("b")];
            }
        }
    }

    fn driven() -> Activation {
        Activation::Driver(Driver::control(control("a")).through(Response::Smooth { from: 0.2, to: 1.0 }))
    }

    #[test]
    fn identity_at_rest_continuous_and_bounded() {
        let rig = brow(driven());
        assert_identity_at_rest(&rig, 0.0);
        assert_continuous(&rig, 0.001);
        let moved = largest_difference(&pose(&rig, &[("a", 1.0)]), sheet().positions());
        assert!(moved > 0.15 && moved <= 0.2, "{moved}");
    }

    #[test]
    fn a_groove_between_two_banks() {
        let heights = pose(&brow(driven()), &[("a", 1.0)]);
        let column = |y: f32| heights[((y / 0.25) as u32 * SIDE + 20) as usize].z;
        assert!(column(5.5) < -0.17, "{}", column(5.5));
        assert!(column(6.25) > 0.03 && column(4.75) > 0.03, "{} {}", column(6.25), column(4.75));
        assert_eq!(column(8.5), 0.0);
    }

    #[test]
    fn compression_makes_folds() {
        let pairs = (0..SIDE).map(|x| (16 * SIDE + x, 28 * SIDE + x)).collect();
        let activation =
            Activation::Compression { pairs, response: Response::Smooth { from: 0.02, to: 0.2 } };
        let rig = brow(activation);
        assert_identity_at_rest(&rig, 0.0);
        let deepest = |b: f32| pose(&rig, &[("b", b)]).iter().map(|v| v.z).fold(0.0, f32::min);
        assert!(deepest(0.05) > -1e-6 && deepest(0.4) < -0.01 && deepest(1.0) < deepest(0.4));
        assert_continuous(&rig, 0.002);
    }

    #[test]
    fn regions_bound_the_folds_and_bad_ones_are_named() {
        let mesh = sheet();
        let mut half = group(driven());
        half.region = (0..22 * SIDE).collect();
        let wrinkles = Wrinkles::new(vec![half], &mesh, &size(&mesh)).expect("fits");
        let whole = Wrinkles::new(vec![group(driven())], &mesh, &size(&mesh)).expect("fits");
        let moved = |wrinkles: &Wrinkles| wrinkles.normals.vertices.len();
        assert!(moved(&wrinkles) > 100 && moved(&wrinkles) < moved(&whole));
        let mut short = group(driven());
        short.wrinkles[0].path.truncate(1);
        let error = Wrinkles::new(vec![short], &mesh, &size(&mesh)).err().expect("must fail");
        assert!(error.to_string().contains("wrinkles 'brow' names 'a path of 1 points'"));
    }
}
