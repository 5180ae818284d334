//! What is decided before networks are trained, and what becomes of them afterwards.

use super::balance::{Balance, landmarks};
use super::components::ways;
use super::coordinates::{Layout, layout};
use super::inputs::Influences;
use super::loss::{Cross, Loss, cross_of};
use super::net::{NetKind, NetSpec};
use super::parameters::enough_units;
use super::pixels::own_pixels;
use super::regions::{self, Centres, Region, Weighted};
use super::segments::{BodyPlan, SegmentKind, SegmentPlan, Sorted, sort};
use super::trainer::NetState;
use super::trainer::Problem;
use super::{FaceLearnError, FaceSettings, Recording};
use understudy_core::{Face, Mesh, Random, Vec2, Vec3};
use understudy_runtime::face::map_decoder::MapShape;
use understudy_runtime::face::sample::stepped;
use understudy_runtime::face::{FaceParts, NetParts, RigidBodyParts, RigidParts, Stage};
use understudy_runtime::{Header, Inputs, MotionParts, Training};

/// Validation poses that suffice.
const MOST_VALIDATION: usize = 96;
/// One glued pair among so many vertices makes a larger map worth its cost.
const CROWDED: usize = 20;
/// Doublings of a coarse map whose vertices need room between them.
const MOST_DOUBLINGS: usize = 3;
/// Ways to move by less, root mean square a vertex, need no number of their own, cm.
const LEAST_WAY: f64 = 1e-3;
/// Regions are where most is to be said: so many times as many numbers that all pixels read.
const REGION_SHARED_FEATURES: usize = 2;
/// Poses that networks begin from.
const START_POSES: usize = 400;
/// Poses by which the size of offsets is measured.
const MOST_POSES: usize = 200;

/// Everything about a twin but what networks learn.
pub struct Plan {
    /// The segments, in the mesh's order.
    pub segments: Vec<SegmentPlan>,
    /// Those that move rigidly with others.
    pub rigid: Vec<RigidParts>,
    /// Those that move rigidly by a motion of their own.
    pub bodies: Vec<BodyPlan>,
    /// The coarse networks.
    pub coarse: Vec<NetSpec>,
    /// Draws the poses of a step.
    pub balance: Balance,
    /// Poses that nothing is learned from.
    pub validation: Vec<usize>,
    /// The vertices that the bins are made by.
    pub landmarks: Vec<u32>,
    /// Poses to learn from, spread evenly, that networks begin from.
    start: Vec<usize>,
    uvs: Vec<Vec2>,
    faces: Vec<[u32; 4]>,
    counted: usize,
}

impl Plan {
    /// Decides. `poses`: the head's motion already taken away.
    pub fn new(
        poses: &Recording,
        influences: &Influences,
        settings: &FaceSettings,
    ) -> Result<Self, FaceLearnError> {
        settings.check()?;
        let uvs = poses.mesh.vertex_uvs().ok_or(FaceLearnError::NoUvs)?;
        let Sorted { mut segments, rigid, bodies } = sort(poses, settings);
        let mut coarse = Vec::new();
        for (index, segment) in segments.iter_mut().enumerate() {
            if segment.kind != SegmentKind::Network {
                continue;
            }
            let vertices = poses.mesh.segments().vertices(index);
            let mut shape =
                MapShape { untied: settings.untied, ..coarse_shape(vertices.len(), settings.fitted_maps) };
            let unit = offset_size(poses, &vertices, None);
            let specify = |shape: MapShape| {
                let vertices = vertices.clone();
                specify(
                    poses,
                    influences,
                    settings,
                    &uvs,
                    &segment.name,
                    Stage::Coarse,
                    vertices,
                    shape,
                    unit,
                )
            };
            let (mut spec, mut layout) = specify(shape);
            // Vertices that move apart but still share pixels: a larger map has room between them.
            let crowded = |layout: &Layout| layout.glued_after * CROWDED > vertices.len();
            while settings.cut && settings.fitted_maps && crowded(&layout) && shape.doublings < MOST_DOUBLINGS
            {
                shape.doublings += 1;
                let glued_before = layout.glued_before;
                let larger = specify(shape);
                if larger.1.glued_after < layout.glued_after {
                    (spec, layout) = larger;
                    layout.glued_before = glued_before;
                }
            }
            segment.inputs = spec.inputs.len();
            segment.glued = [layout.glued_before, layout.glued_after];
            segment.spread_islands = layout.spread_islands;
            coarse.push(spec);
        }
        if coarse.is_empty() {
            return Err(FaceLearnError::NothingMoves);
        }
        let stiff = rigid.iter().map(|r| &r.vertices).chain(bodies.iter().map(|b| &b.vertices));
        let (candidates, faces) = drawn(&poses.mesh, &coarse, stiff.flatten());
        let landmarks = landmarks(poses, &candidates, settings.landmarks);
        let (training, validation) = split(poses.len(), settings);
        let balance = Balance::new(poses, &training, &landmarks, settings.bins);
        let start = spread(&training, START_POSES);
        let counted = candidates.len();
        Ok(Self {
            segments,
            rigid,
            bodies,
            coarse,
            balance,
            validation,
            landmarks,
            start,
            uvs,
            faces,
            counted,
        })
    }

    /// Takes over the coarse networks and rigid segments of a twin of the same mesh, so that nothing but regions
    /// has to be learned. Gives the states of the networks.
    pub fn keep_coarse(&mut self, twin: &FaceParts) -> Result<Vec<NetState>, FaceLearnError> {
        let coarse = || twin.nets.iter().filter(|net| net.stage == Stage::Coarse);
        let mut states = Vec::new();
        for net in coarse() {
            let Some(map) = net.map.as_ref().filter(|map| map.shape.outputs == 3) else {
                let problem = format!("'{}' draws no map of offsets alone", net.name);
                return Err(FaceLearnError::Kept { problem });
            };
            let dense = net.dense.iter().flat_map(|layer| layer.weights.iter().chain(&layer.bias));
            let parameters: Vec<f32> = dense.chain(&map.parameters).copied().collect();
            let still = vec![0.0; parameters.len()];
            states.push([parameters.clone(), still.clone(), still, parameters]);
        }
        // What is rigid in these poses may be a little more or less than it was in others: the twin decides.
        self.coarse = coarse().map(NetSpec::of).collect();
        self.rigid = twin.rigid.clone();
        self.bodies.clear();
        let stiff = twin.rigid.iter().map(|r| &r.vertices).chain(twin.bodies.iter().map(|b| &b.vertices));
        let (vertices, faces) = drawn(&twin.mesh, &self.coarse, stiff.flatten());
        (self.counted, self.faces) = (vertices.len(), faces);
        Ok(states)
    }

    /// What the coarse networks learn.
    pub fn coarse_problem<'a>(&self, poses: &'a Recording, settings: &FaceSettings) -> Problem<'a> {
        let problem = self.problem(poses, &self.coarse, settings);
        let rest = poses.mesh.positions();
        let base = problem.members.iter().map(|v| rest[*v as usize]).collect();
        Problem { base, ..problem }
    }

    /// The networks that refine regions. `left`: what the coarse networks leave of every vertex of the mesh,
    /// where it was measured; the paper's estimate of what their maps must leave (3.2) otherwise.
    pub fn refinement(
        &self,
        poses: &Recording,
        influences: &Influences,
        settings: &FaceSettings,
        left: Option<&[f64]>,
    ) -> (Vec<NetSpec>, Vec<Region>) {
        let mut points = Vec::new();
        for (segment, spec) in self.coarse.iter().enumerate() {
            let NetKind::Map { shape, coordinates } = &spec.kind else { continue };
            let weights = match left {
                Some(left) => spec.vertices.iter().map(|vertex| left[*vertex as usize]).collect(),
                None => regions::map_error(poses, &spec.vertices, coordinates, shape.map_side()),
            };
            points.extend(spec.vertices.iter().zip(weights).map(|(vertex, weight)| Weighted {
                vertex: *vertex,
                segment,
                uv: self.uvs[*vertex as usize],
                weight,
            }));
        }
        let width = |spec: &NetSpec| {
            let own = || spec.vertices.iter().map(|v| self.uvs[*v as usize]);
            let (low, high) =
                (own().fold(Vec2::INFINITY, Vec2::min), own().fold(Vec2::NEG_INFINITY, Vec2::max));
            (high - low).max_element()
        };
        let widths: Vec<f32> = self.coarse.iter().map(width).collect();
        let centres = if left.is_some() { Centres::Greedy } else { Centres::Means };
        // The paper's maps of 64×64 for its regions; ours are so small that 32×32 have a pixel per vertex.
        let whole = match centres {
            Centres::Greedy if settings.fitted_maps => MapShape::default(),
            _ => MapShape::refinement(),
        };
        let room = whole.map_side().pow(2);
        let found = regions::find(&points, settings.most_regions, &widths, room, centres);
        let specs = found.iter().enumerate().map(|(index, region)| {
            let name = format!("{} {}", self.coarse[region.segment].name, index + 1);
            let vertices = region.vertices.clone();
            let shape = MapShape { untied: settings.untied, ..whole };
            // Residuals are a small part of the offsets; the first steps find the scale.
            let unit = 0.1 * self.coarse[region.segment].unit;
            specify(poses, influences, settings, &self.uvs, &name, Stage::Refinement, vertices, shape, unit).0
        });
        (specs.collect(), found)
    }

    /// What refinement networks learn, before its `base` is filled in: the coarse networks' vertices.
    pub fn refinement_problem<'a>(
        &self,
        poses: &'a Recording,
        specs: &[NetSpec],
        settings: &FaceSettings,
    ) -> Problem<'a> {
        let mut problem = self.problem(poses, specs, settings);
        problem.loss.normal_weight = settings.refinement_normal_weight;
        problem
    }

    fn problem<'a>(&self, poses: &'a Recording, specs: &[NetSpec], settings: &FaceSettings) -> Problem<'a> {
        let count = poses.mesh.vertex_count();
        let mut moved = vec![false; count];
        specs.iter().flat_map(|spec| &spec.vertices).for_each(|v| moved[*v as usize] = true);
        let touched = |face: &&Cross| face.iter().any(|v| moved[*v as usize]);
        let faces: Vec<Cross> = self.faces.iter().filter(touched).copied().collect();
        let mut seen = moved.clone();
        faces.iter().flatten().for_each(|v| seen[*v as usize] = true);
        let members: Vec<u32> = (0..count as u32).filter(|v| seen[*v as usize]).collect();
        let mut local = vec![0u32; count];
        for (index, vertex) in (0u32..).zip(&members) {
            local[*vertex as usize] = index;
        }
        let loss = Loss {
            faces: faces.iter().map(|face| face.map(|v| local[v as usize])).collect(),
            counted: members.iter().filter(|v| moved[**v as usize]).map(|v| local[*v as usize]).collect(),
            normal_weight: settings.normal_weight,
            vertex_total: self.counted,
            face_total: self.faces.len(),
        };
        Problem { poses, members, base: Vec::new(), loss, start: self.start.clone() }
    }

    /// Puts the trained networks together.
    pub fn finish(
        &self,
        poses: &Recording,
        rig_name: &str,
        frame: Option<MotionParts>,
        nets: Vec<NetParts>,
        bodies: Vec<RigidBodyParts>,
        training: Training,
    ) -> FaceParts {
        FaceParts {
            header: Header {
                rig: rig_name.into(),
                topology_hash: poses.mesh.topology_hash(),
                units: "cm".into(),
                inputs: Inputs { bones: Vec::new(), controls: poses.specs.clone() },
                training,
            },
            mesh: poses.mesh.clone(),
            frame,
            nets,
            bodies,
            rigid: self.rigid.clone(),
        }
    }
}

/// The vertices that networks draw, and the faces whose normals they learn: those that they touch, but for those
/// at rigid vertices.
fn drawn<'a>(mesh: &Mesh, nets: &[NetSpec], stiff: impl Iterator<Item = &'a u32>) -> (Vec<u32>, Vec<Cross>) {
    let mut moved = vec![false; mesh.vertex_count()];
    nets.iter().flat_map(|spec| &spec.vertices).for_each(|v| moved[*v as usize] = true);
    let mut still = vec![false; moved.len()];
    stiff.for_each(|v| still[*v as usize] = true);
    let learned = |face: &&Face| {
        let corners = face.corners();
        corners.iter().any(|v| moved[*v as usize]) && !corners.iter().any(|v| still[*v as usize])
    };
    let faces = mesh.faces().iter().filter(learned).map(cross_of).collect();
    ((0..moved.len() as u32).filter(|v| moved[*v as usize]).collect(), faces)
}

/// The coarse networks of a finished twin as a problem of their own: what a race of training runs on.
pub fn coarse_problem_of<'a>(
    twin: &FaceParts,
    poses: &'a Recording,
    normal_weight: f32,
) -> (Problem<'a>, Vec<NetSpec>) {
    let coarse = twin.nets.iter().filter(|net| net.stage == Stage::Coarse);
    let specs: Vec<NetSpec> = coarse.map(NetSpec::of).collect();
    let mut moved = vec![false; poses.mesh.vertex_count()];
    specs.iter().flat_map(|spec| &spec.vertices).for_each(|v| moved[*v as usize] = true);
    let learned = |face: &&Face| face.corners().iter().all(|v| moved[*v as usize]);
    let faces: Vec<Cross> = poses.mesh.faces().iter().filter(learned).map(cross_of).collect();
    let counted: Vec<u32> = (0..moved.len() as u32).filter(|v| moved[*v as usize]).collect();
    let loss = Loss { vertex_total: counted.len(), face_total: faces.len(), faces, counted, normal_weight };
    let members = (0..moved.len() as u32).collect();
    (Problem { poses, members, base: poses.mesh.positions().to_vec(), loss, start: Vec::new() }, specs)
}

/// A map of 32×32; one of 16×16 has a pixel per vertex for small segments, at a quarter of the work, and grows out of a
/// quarter of the first image: the dense layer that gives that image is most of a small network.
fn coarse_shape(vertices: usize, fitted: bool) -> MapShape {
    let whole = MapShape::default();
    if !fitted {
        return whole;
    }
    let small = MapShape { side: whole.side / 2, ..whole };
    if vertices <= small.map_side().pow(2) { small } else { whole }
}

/// One network: what it sees, where its vertices sample.
fn specify(
    poses: &Recording,
    influences: &Influences,
    settings: &FaceSettings,
    uvs: &[Vec2],
    name: &str,
    stage: Stage,
    vertices: Vec<u32>,
    mut shape: MapShape,
    unit: f32,
) -> (NetSpec, Layout) {
    let (inputs, mean, scale) = influences.of(poses, &vertices);
    if shape.untied {
        let most = match stage {
            Stage::Coarse => settings.shared_features,
            Stage::Refinement => settings.shared_features * REGION_SHARED_FEATURES,
        };
        shape.shared_features = most.min(ways(poses, &vertices, LEAST_WAY));
    }
    let mut layout = layout(poses, uvs, &vertices, shape.map_side(), settings.cut);
    // Measured regions are chosen to hold no more vertices than their maps have pixels; many segments do not either.
    // Regions by the paper's estimate keep its coordinates.
    if settings.cut
        && (stage == Stage::Coarse || settings.measured_regions)
        && let Some(own) = own_pixels(&layout.coordinates, shape.map_side())
    {
        (layout.coordinates, layout.glued_after) = (own, 0);
    }
    layout.coordinates.iter_mut().for_each(|place| *place = stepped(*place));
    let kind = match settings.dense {
        true => NetKind::Dense,
        false => NetKind::Map { shape, coordinates: layout.coordinates.clone() },
    };
    let most_units = if settings.narrow { enough_units(inputs.len()) } else { usize::MAX };
    (NetSpec { name: name.into(), stage, vertices, inputs, mean, scale, unit, most_units, kind }, layout)
}

/// Root mean square of offsets from the rest pose (or another base) a component, cm.
fn offset_size(poses: &Recording, vertices: &[u32], base: Option<&[Vec3]>) -> f32 {
    let base = base.unwrap_or(poses.mesh.positions());
    let chosen = poses.spread(MOST_POSES);
    let mut sum = 0.0f64;
    for &pose in &chosen {
        let now = poses.vertices_of(pose);
        let square = |v: &u32| f64::from(now[*v as usize].distance_squared(base[*v as usize]));
        sum += vertices.iter().map(square).sum::<f64>();
    }
    let count = (3 * chosen.len() * vertices.len()).max(1) as f64;
    ((sum / count).sqrt() as f32).max(1e-3)
}

/// At most `most` of some poses, spread evenly.
fn spread(poses: &[u32], most: usize) -> Vec<usize> {
    let count = poses.len().min(most);
    (0..count).map(|i| poses[i * poses.len() / count] as usize).collect()
}

/// Training and validation poses, drawn by the seed. Of the latter at most so many that looking at them takes no time.
pub(super) fn split(poses: usize, settings: &FaceSettings) -> (Vec<u32>, Vec<usize>) {
    let held = |pose: &usize| {
        Random::stream(settings.seed ^ 0x5b11, *pose as u64).unit() < f64::from(settings.validation)
    };
    let mut validation: Vec<usize> = (0..poses).filter(held).collect();
    if validation.is_empty() {
        validation.push(poses - 1);
    }
    let training = (0..poses).filter(|p| validation.binary_search(p).is_err()).map(|p| p as u32).collect();
    let count = validation.len();
    let most = count.min(MOST_VALIDATION);
    (training, (0..most).map(|i| validation[i * count / most]).collect())
}
