//! Inverse rendering: the weights whose picture looks like the frame (section 6.3). Photometric error on sampled points of the
//! surface (6.5), landmarks and contours of the lips (6.6), smoothness weighted by optical flow (6.7)–(6.8) and sparsity,
//! minimised by Gauss–Newton with bounds. Start at [`Optimiser`].

mod deformation;
mod energy;
mod qp;
mod samples;
mod settings;
#[cfg(test)]
mod tests;

pub use deformation::{Deformation, Shapes, TwinShapes};
pub use qp::box_qp;
pub use settings::{Ended, FrameReport, Freedom, RenderSettings, SettingsError, Terms};

use crate::actors::Head;
use crate::render::{FlowField, Light, Look};
use crate::{Camera, FaceMarks, HeadPose, Image, MarkPoint};
use energy::{Anchor, Energy, LocalMark};
use samples::{Evaluated, Samples};
use std::sync::Arc;
use thiserror::Error;
use understudy_core::{DVec3, Vec3};
use understudy_report::raster::visibility::SAMPLES;
use understudy_runtime::{PoseError, TwinError};

/// Why a solver could not be made, or could not solve.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum RenderError {
    /// Settings that cannot be meant.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The mesh and what moves it do not go together.
    #[error("{what}: {got} entries, {want} expected")]
    Count {
        /// Which array.
        what: &'static str,
        /// Given.
        got: usize,
        /// Needed.
        want: usize,
    },
    /// Nothing to compare.
    #[error("no part of the face is turned to the camera")]
    Unseen,
    /// What moves the mesh failed.
    #[error(transparent)]
    Pose(#[from] PoseError),
    /// A twin without what is needed.
    #[error(transparent)]
    Twin(#[from] TwinError),
}

/// The face that is fitted: how it looks and what is known of it.
#[derive(Debug, Clone)]
pub struct Model {
    /// Paint.
    pub look: Arc<Look>,
    /// The light of all frames.
    pub light: Light,
    /// Vertices at rest, cm.
    pub rest: Vec<Vec3>,
    /// Landmarks, where they are known.
    pub marks: Option<FaceMarks>,
    /// Which vertices may be compared: the front of the face. Not the eyes, which turn by themselves.
    pub region: Vec<bool>,
    /// The camera before it shakes.
    pub camera: Camera,
}

impl Model {
    /// Of a head: its skin may be compared.
    pub fn of_head(head: &Head, look: Arc<Look>, light: Light, camera: Camera) -> Self {
        let rest = head.mesh.positions().to_vec();
        Self { look, light, rest, marks: Some(head.marks.clone()), region: front_of(head), camera }
    }
}

/// Which vertices are of the front of a face: skin from under the chin to above the brows.
pub fn front_of(head: &Head) -> Vec<bool> {
    let segments = head.mesh.segments();
    let face = segments.find("face").map(|segment| segment as u32);
    let at = |landmark: usize| head.mesh.positions()[head.marks.points[landmark] as usize];
    let (chin, brow, height) = (at(8).y, at(19).y, at(27).y - at(8).y);
    let front = |(vertex, place): (usize, &Vec3)| {
        let level = (chin - 0.12 * height..brow + 0.25 * height).contains(&place.y);
        Some(segments.of_vertex[vertex]) == face && level
    };
    head.mesh.positions().iter().enumerate().map(front).collect()
}

/// What a detector saw in a frame, pixels.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Detected {
    /// [`FaceMarks::fixed`], in that order; a point that was not found is `None`.
    pub fixed: Vec<Option<[f64; 2]>>,
    /// The inner contour of the lips, upper then lower, from the character's right to the left.
    pub inner_lips: Vec<Option<[f64; 2]>>,
    /// Pupils: the character's left, right.
    pub pupils: [Option<[f64; 2]>; 2],
}

impl Detected {
    /// What a perfect detector would see of a pose.
    pub fn exact(marks: &FaceMarks, positions: &[Vec3], camera: &Camera) -> Self {
        let see = |mark: &MarkPoint| camera.project(mark.place(positions));
        let pupil = |side: usize| marks.pupils.and_then(|pupils| see(&MarkPoint::vertex(pupils[side])));
        Self {
            fixed: marks.fixed().iter().map(see).collect(),
            inner_lips: marks.inner_lips(positions, camera).iter().map(see).collect(),
            pupils: [pupil(0), pupil(1)],
        }
    }

    /// All points moved by `shift`.
    pub fn shifted(&self, mut shift: impl FnMut([f64; 2]) -> [f64; 2]) -> Self {
        let mut all = |points: &[Option<[f64; 2]>]| points.iter().map(|p| p.map(&mut shift)).collect();
        let (fixed, inner_lips) = (all(&self.fixed), all(&self.inner_lips));
        let pupils: Vec<Option<[f64; 2]>> = all(&self.pupils);
        Self { fixed, inner_lips, pupils: [pupils[0], pupils[1]] }
    }
}

/// A frame to solve.
#[derive(Debug, Clone, Copy)]
pub struct Observation<'a> {
    /// The picture, linear light.
    pub image: &'a Image,
    /// Landmarks in it.
    pub detected: &'a Detected,
    /// Motion from the frame before to this one; without it weights are held as if nothing had moved half a σ.
    pub flow: Option<&'a FlowField>,
}

/// What is known after a frame.
#[derive(Debug, Clone, PartialEq)]
pub struct State {
    /// Weights.
    pub weights: Vec<f64>,
    /// With in-plane rotation and centre of projection as solved.
    pub camera: Camera,
    /// Of the head, where it may turn.
    pub head: HeadPose,
}

/// Solves frame after frame.
pub struct Optimiser<D: Deformation> {
    deformation: D,
    model: Model,
    settings: RenderSettings,
    samples: Samples,
    fixed: Vec<LocalMark>,
    /// (6.7), `[weights][points]`.
    influence: Vec<Vec<f64>>,
    /// Triangles that may hide a point, and the look that draws them.
    occluders: Look,
    state: State,
    first: bool,
    whole: Vec<Vec3>,
}

impl<D: Deformation> Optimiser<D> {
    /// Draws the points and prepares their tables.
    pub fn prepare(mut deformation: D, model: Model, settings: RenderSettings) -> Result<Self, RenderError> {
        settings.check()?;
        let want = model.rest.len();
        let counts = [("region", model.region.len()), ("openness", model.look.openness.len())];
        for (what, got) in counts {
            if got != want {
                return Err(RenderError::Count { what, got, want });
            }
        }
        let more = model.marks.as_ref().map(FaceMarks::vertices).unwrap_or_default();
        let samples = Samples::draw(
            &model.look,
            &model.rest,
            &model.region,
            &model.camera,
            settings.samples,
            &more,
            settings.smoothing,
            settings.seed,
        );
        if samples.points.is_empty() {
            return Err(RenderError::Unseen);
        }
        deformation.choose(&samples.vertices)?;
        let count = deformation.count();
        let weights: Vec<f64> =
            (0..count).map(|k| 0.0f64.clamp(deformation.range(k)[0], deformation.range(k)[1])).collect();
        let influence = samples.influence(&mut deformation, &weights)?;
        let fixed = model.marks.as_ref().map(FaceMarks::fixed).unwrap_or_default();
        let fixed = fixed.iter().filter_map(|mark| samples.local(mark)).collect();
        let occluders = front_half(&model);
        let pivot = model.rest.iter().map(|p| p.as_dvec3()).sum::<DVec3>() / want as f64;
        let state = State { weights, camera: model.camera, head: HeadPose::rest(pivot) };
        let whole = model.rest.clone();
        Ok(Self {
            deformation,
            model,
            settings,
            samples,
            fixed,
            influence,
            occluders,
            state,
            first: true,
            whole,
        })
    }

    /// What is known after the last frame.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// What is fitted.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// What moves it.
    pub fn deformation(&mut self) -> &mut D {
        &mut self.deformation
    }

    /// Starts from another state, as if the last frame had ended there.
    pub fn restart(&mut self, state: State) {
        self.state = state;
        self.first = false;
    }

    /// Solves the next frame of a sequence, from where the last one ended.
    pub fn solve(&mut self, frame: &Observation<'_>) -> Result<FrameReport, RenderError> {
        let anchors = match self.first {
            true => Vec::new(),
            false => vec![self.anchor(&self.state.weights.clone(), frame.flow)?],
        };
        let most = if self.first { self.settings.first_iterations } else { self.settings.iterations };
        let report = self.descend(frame, anchors, most)?;
        self.first = false;
        Ok(report)
    }

    /// Solves one frame again between the weights of its neighbours: a window in time. `flows` lead to the frame and away
    /// from it.
    pub fn solve_between(
        &mut self,
        frame: &Observation<'_>,
        start: State,
        neighbours: [Option<(&[f64], Option<&FlowField>)>; 2],
    ) -> Result<FrameReport, RenderError> {
        self.restart(start);
        let mut anchors = Vec::new();
        for (weights, flow) in neighbours.into_iter().flatten() {
            anchors.push(self.anchor(weights, flow)?);
        }
        self.descend(frame, anchors, self.settings.iterations)
    }

    /// Where weights were, and how firmly each is held there (6.8).
    fn anchor(&mut self, weights: &[f64], flow: Option<&FlowField>) -> Result<Anchor, RenderError> {
        let scale = self.model.camera.size[1] as f64 / 512.0;
        let sigma = self.settings.still;
        let stiffness = match flow {
            None => vec![(-0.5f64).exp(); weights.len()],
            Some(flow) => {
                let mut at = Evaluated::default();
                at.places.resize(self.samples.vertices.len(), DVec3::ZERO);
                self.deformation.places(weights, &mut at.places)?;
                let motion: Vec<f64> = self
                    .samples
                    .points
                    .iter()
                    .map(|point| {
                        let place = self.state.head.apply(Samples::place(point, &at));
                        self.state.camera.project(place).map_or(0.0, |place| flow.length_at(place) / scale)
                    })
                    .collect();
                let firm = |influence: &Vec<f64>| {
                    let moved: f64 =
                        influence.iter().zip(&motion).map(|(share, motion)| share * motion).sum();
                    (-moved / sigma).exp()
                };
                self.influence.iter().map(firm).collect()
            }
        };
        Ok(Anchor { weights: weights.to_vec(), stiffness })
    }

    fn descend(
        &mut self,
        frame: &Observation<'_>,
        anchors: Vec<Anchor>,
        most: usize,
    ) -> Result<FrameReport, RenderError> {
        self.deformation.pose(&self.state.weights, &mut self.whole)?;
        for place in &mut self.whole {
            *place = self.state.head.apply(place.as_dvec3()).as_vec3();
        }
        let visible = self.visible();
        let silhouette =
            self.model.marks.as_ref().map(|marks| marks.inner_lips(&self.whole, &self.state.camera));
        let inner: Vec<LocalMark> =
            silhouette.unwrap_or_default().iter().filter_map(|mark| self.samples.local(mark)).collect();
        let mut marks = Vec::new();
        let seen =
            self.fixed.iter().zip(&frame.detected.fixed).chain(inner.iter().zip(&frame.detected.inner_lips));
        for (mark, place) in seen {
            if let Some(place) = place.filter(|place| place.iter().all(|value| value.is_finite())) {
                marks.push((*mark, place));
            }
        }
        let smoothed;
        let image = match self.settings.smoothing {
            0 => frame.image,
            times => {
                smoothed = frame.image.smoothed(times);
                &smoothed
            }
        };
        let mut energy = Energy {
            samples: &self.samples,
            light: &self.model.light,
            image,
            settings: &self.settings,
            visible: &visible,
            marks: &marks,
            anchors: &anchors,
        };
        energy.minimise(&mut self.deformation, &mut self.state, most)
    }

    /// Which points are seen from the camera in the frame's first state: turned to it, and hidden by nothing.
    fn visible(&self) -> Vec<u32> {
        let camera = self.state.camera.scaled(192.0 / self.state.camera.size[1].max(1) as f64);
        let [width, height] = camera.size;
        let seen = self.occluders.visibility(&self.whole, &camera);
        let places =
            self.samples.vertices.iter().map(|vertex| self.whole[*vertex as usize].as_dvec3()).collect();
        let mut at = Evaluated { places, ..Evaluated::default() };
        self.samples.shape(&mut at);
        let is_seen = |(_, point): &(u32, &samples::SamplePoint)| {
            let place = Samples::place(point, &at);
            let towards = (camera.position - place).normalize_or_zero();
            if Samples::normal(point, &at).0.dot(towards) < 0.15 {
                return false;
            }
            let depth = camera.to_camera(place).z as f32;
            let Some([x, y]) = camera.project(place).filter(|[x, y]| *x >= 0.0 && *y >= 0.0) else {
                return false;
            };
            let (column, row) = (x as usize, y as usize);
            if column >= width || row >= height {
                return false;
            }
            let samples = &seen.samples[(row * width + column) * SAMPLES..][..SAMPLES];
            // A pixel of the small picture is a millimetre wide: what is half a centimetre nearer hides.
            samples.iter().filter(|s| s.inverse_depth * depth < 1.0 + 0.25 / depth).count() > SAMPLES / 2
        };
        (0u32..).zip(&self.samples.points).filter(is_seen).map(|(index, _)| index).collect()
    }
}

/// The look's triangles without the back of the head, which hides nothing that a camera before the face sees.
fn front_half(model: &Model) -> Look {
    let eye = |vertex: u32| model.camera.to_camera(model.rest[vertex as usize].as_dvec3()).z;
    let depths: Vec<f64> = model.look.triangles.iter().map(|t| eye(t[0])).collect();
    let near = depths.iter().copied().fold(f64::INFINITY, f64::min);
    let far = depths.iter().copied().fold(0.0, f64::max);
    let limit = near + 0.55 * (far - near);
    let kept: Vec<usize> = (0..depths.len()).filter(|at| depths[*at] < limit).collect();
    Look {
        faces: Vec::new(),
        triangles: kept.iter().map(|at| model.look.triangles[*at]).collect(),
        painted: vec![None; kept.len()],
        textures: Vec::new(),
        colours: Vec::new(),
        openness: Vec::new(),
    }
}
