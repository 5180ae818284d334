//! A head that can be posed and drawn, and the people who have one.

use super::HeadParts;
use super::canvas::{Canvas, Painted, canvases};
use super::eyes::{Eye, Gaze, without_eyes};
use super::paint::{Complexion, Painter};
use crate::Camera;
use crate::marks::{FaceMarks, MarkError};
use crate::render::{Light, Look, Texture};
use std::sync::Arc;
use thiserror::Error;
use understudy_core::{BlendshapeError, BlendshapeRig, DVec3, Mesh, MeshError, Random, Vec3};
use understudy_report::raster::vertex_openness;

/// What a head model lacks.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum CastError {
    /// A part that must be there.
    #[error("the head model has no part '{0}'")]
    Part(&'static str),
    /// An identity mode of another size.
    #[error("identity mode {mode} moves {got} vertices, the head has {want}")]
    Mode {
        /// Which.
        mode: usize,
        /// Given.
        got: usize,
        /// Needed.
        want: usize,
    },
    /// A mode that holds something else than numbers.
    #[error("identity mode {mode} is not finite at vertex {vertex}")]
    NonFinite {
        /// Which.
        mode: usize,
        /// Where.
        vertex: usize,
    },
    /// The landmarks do not fit the mesh.
    #[error(transparent)]
    Marks(#[from] MarkError),
    /// The mesh is not valid.
    #[error(transparent)]
    Mesh(#[from] MeshError),
    /// The shapes are not valid.
    #[error(transparent)]
    Shapes(#[from] BlendshapeError),
}

/// Spread of identity modes: people who are neither twins nor caricatures.
const SPREAD: f64 = 0.7;

/// Parts that real-time renderers draw transparent, or cut into hairs by a texture: drawn whole they hide the eye.
const UNDRAWN: [&str; 8] = [
    "eye_blend_left",
    "eye_blend_right",
    "eye_occlusion_left",
    "eye_occlusion_right",
    "eyelashes_left",
    "eyelashes_right",
    "lacrimal_left",
    "lacrimal_right",
];

/// A person's head: neutral, expressions, eyes, landmarks.
#[derive(Debug, Clone)]
pub struct Head {
    /// At rest.
    pub mesh: Mesh,
    /// Expressions of the skin; eyes turn by themselves.
    pub shapes: BlendshapeRig,
    /// The 68 points, the contours of the lips and the pupils.
    pub marks: FaceMarks,
    /// The character's left, right.
    pub eyes: [Eye; 2],
}

impl Head {
    /// Vertices of a pose, `[V]` cm; without `gaze` the eyes look where the weights say.
    pub fn pose(&self, weights: &[f32], gaze: Option<[Gaze; 2]>, out: &mut [Vec3]) {
        self.shapes.evaluate(weights, out);
        for (side, eye) in self.eyes.iter().enumerate() {
            let gaze = gaze.map_or_else(|| eye.gaze(weights), |gaze| gaze[side]);
            let rest = out.to_vec();
            eye.turn(gaze, &rest, out);
        }
    }
}

/// Everyone who can be made from one head model.
pub struct Cast {
    parts: HeadParts,
    canvases: Vec<Canvas>,
    painted: Vec<Painted>,
    drawn: Vec<bool>,
    mean: Head,
}

/// A person: head, paint, light, camera.
#[derive(Clone)]
pub struct Actor {
    /// Whose.
    pub seed: u64,
    /// Weights of the identity modes, in standard deviations.
    pub identity: Vec<f64>,
    /// Geometry.
    pub head: Head,
    /// Paint.
    pub look: Arc<Look>,
    /// The room.
    pub light: Light,
    /// Where the camera hangs, before it shakes.
    pub camera: Camera,
}

impl Cast {
    /// Checks a head model and lays out its texture maps.
    pub fn new(parts: HeadParts) -> Result<Self, CastError> {
        let want = parts.mesh.vertex_count();
        for (mode, deltas) in parts.identities.iter().enumerate() {
            if deltas.len() != want {
                return Err(CastError::Mode { mode, got: deltas.len(), want });
            }
            if let Some(vertex) = deltas.iter().position(|delta| !delta.is_finite()) {
                return Err(CastError::NonFinite { mode, vertex });
            }
        }
        let segments = parts.mesh.segments();
        let undrawn: Vec<Option<usize>> = UNDRAWN.iter().map(|name| segments.find(name)).collect();
        let is_drawn = |vertex: u32| !undrawn.contains(&Some(segments.of_vertex[vertex as usize] as usize));
        let drawn = parts.mesh.triangles().iter().map(|t| is_drawn(t[0])).collect();
        let (canvases, painted) = canvases(&parts);
        let mean = head(&parts, parts.mesh.positions().to_vec())?;
        Ok(Self { parts, canvases, painted, drawn, mean })
    }

    /// The mean person: whom a rig on this model shows.
    pub fn mean(&self) -> &Head {
        &self.mean
    }

    /// Names of the shapes.
    pub fn shape_names(&self) -> Vec<String> {
        self.mean.shapes.shapes().iter().map(|shape| shape.name.clone()).collect()
    }

    /// Someone, by number: the same number is always the same person in the same room.
    pub fn actor(&self, seed: u64, side: usize) -> Result<Actor, CastError> {
        let mut random = Random::stream(0x6163_746f_7273, seed);
        let identity: Vec<f64> = self.parts.identities.iter().map(|_| random.normal() * SPREAD).collect();
        let mut positions = self.parts.mesh.positions().to_vec();
        for (mode, weight) in self.parts.identities.iter().zip(&identity) {
            for (position, delta) in positions.iter_mut().zip(mode) {
                *position += *delta * *weight as f32;
            }
        }
        let head = head(&self.parts, positions)?;
        let complexion = Complexion::random(&mut random);
        let light = Light::room(&mut random);
        let look = Arc::new(self.look(&head, &complexion));
        let camera = self.camera(&head, side);
        Ok(Actor { seed, identity, head, look, light, camera })
    }

    /// The mean person in the rendered style: house paint, studio light, the camera that never changes.
    pub fn rendered(&self, side: usize) -> Actor {
        let head = self.mean.clone();
        let look = Arc::new(self.look(&head, &Complexion::house()));
        let camera = self.camera(&head, side);
        Actor {
            seed: 0,
            identity: vec![0.0; self.parts.identities.len()],
            head,
            look,
            light: Light::studio(),
            camera,
        }
    }

    /// The camera on the helmet: the face fills the picture.
    fn camera(&self, head: &Head, side: usize) -> Camera {
        let at = |landmark: usize| head.mesh.positions()[head.marks.points[landmark] as usize].as_dvec3();
        let (chin, bridge) = (at(8), at(27));
        let height = (bridge.y - chin.y).abs().max(1.0);
        let middle = DVec3::new(0.0, chin.y + 0.80 * height, at(30).z - 3.0);
        Camera::portrait(middle, 2.05 * height, 5.0 * height, side)
    }

    /// Paint and openness of a head. Parts inside the mouth are as open as they are with the mouth open.
    fn look(&self, head: &Head, complexion: &Complexion) -> Look {
        let mesh = &head.mesh;
        let painter = Painter::new(&self.parts, complexion);
        let textures = self.canvases.iter().map(|canvas| Texture::new(painter.paint(canvas))).collect();
        let keep = |at: &usize| self.drawn[*at];
        let triangles = mesh.triangles();
        let kept: Vec<usize> = (0..triangles.len()).filter(keep).collect();
        let faces: Vec<_> =
            mesh.faces().iter().filter(|face| self.is_drawn_face(face.corners()[0])).copied().collect();
        let mut openness = vertex_openness(mesh.positions(), &faces);
        let mut weights = vec![0.0; head.shapes.shapes().len()];
        for (name, weight) in [
            ("jawOpen", 0.7),
            ("mouthUpperUp_L", 0.6),
            ("mouthUpperUp_R", 0.6),
            ("eyeWide_L", 0.7),
            ("eyeWide_R", 0.7),
        ] {
            if let Some(shape) = head.shapes.find(name) {
                weights[shape] = weight;
            }
        }
        let mut open = mesh.positions().to_vec();
        head.pose(&weights, None, &mut open);
        for (value, open) in openness.iter_mut().zip(vertex_openness(&open, &faces)) {
            *value = value.max(open);
        }
        // Lit skin lights the skin beside it: a crease is not as dark as the sky alone would leave it.
        openness.iter_mut().for_each(|value| *value = 0.25 + 0.75 * *value);
        Look {
            faces: mesh.faces().to_vec(),
            triangles: kept.iter().map(|at| triangles[*at]).collect(),
            painted: kept.iter().map(|at| self.painted[*at]).collect(),
            textures,
            colours: vec![[0.5; 3]; mesh.vertex_count()],
            openness,
        }
    }

    fn is_drawn_face(&self, corner: u32) -> bool {
        let segments = self.parts.mesh.segments();
        let name = &segments.names[segments.of_vertex[corner as usize] as usize];
        !UNDRAWN.contains(&name.as_str())
    }
}

/// The head of a person whose neutral is `positions`.
fn head(parts: &HeadParts, positions: Vec<Vec3>) -> Result<Head, CastError> {
    let mesh = parts.mesh.with_positions(&positions)?;
    let shapes =
        BlendshapeRig::new(positions, parts.shapes.shapes().to_vec(), parts.shapes.correctives().to_vec())?;
    let eye = |part: &'static str, suffix: &str| {
        let segment = mesh.segments().find(part).ok_or(CastError::Part(part))?;
        Eye::find(&mesh, mesh.segments().vertices(segment), suffix, &shapes).ok_or(CastError::Part(part))
    };
    let eyes = [eye("eyeball_left", "_L")?, eye("eyeball_right", "_R")?];
    let skin = mesh.segments().find("face").ok_or(CastError::Part("face"))?;
    let without = without_eyes(&shapes, &eyes);
    let shapes = BlendshapeRig::new(shapes.neutral().to_vec(), without, shapes.correctives().to_vec())?;
    let pupils = [eyes[0].pupil, eyes[1].pupil];
    let marks = FaceMarks::new(&mesh, parts.landmarks, Some(skin as u32), Some(pupils))?;
    Ok(Head { mesh, shapes, marks, eyes })
}
