//! Fine folds that appear where skin is compressed: grooves with raised banks along lines drawn on the
//! rest surface, moved along the normals of the pose. Runs after everything that moves the skin.

use super::driver::{Driver, Response, RigSize, check_finite, check_positive, smooth_step, unknown};
use super::patch::PatchNormals;
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

    /// Number of vertices that any fold moves.
    pub fn moved_vertices(&self) -> usize {
        self.normals.vertices.len()
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
