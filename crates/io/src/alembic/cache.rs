//! An open cache: one mesh of all its objects, and its frames, read when they are asked for.

use super::archive::{Archive, Object, Property};
use super::mesh::{self, MeshProperties, points};
use super::ogawa::Container;
use super::transform::{self, TIME_TOLERANCE, Transform, moment};
use crate::names::UniqueNames;
use crate::{Axis, Conversion, ParseError, ReadError};
use glam::DAffine3;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use understudy_core::{Face, Mesh, MeshParts, Vec3};

/// How to read a cache.
#[derive(Debug, Clone, PartialEq)]
pub struct AlembicOptions {
    /// Centimetres in one unit of the file; `None` for the unit of the program that wrote it.
    pub cm_per_unit: Option<f32>,
    /// The file's up axis; `None` for Y, which Alembic means.
    pub up: Option<Axis>,
    /// The objects to read, by name or path; all when empty.
    pub objects: Vec<String>,
    /// Whether objects are moved to where they stand in the world; otherwise each is in its own space.
    pub transforms: bool,
}

impl Default for AlembicOptions {
    fn default() -> Self {
        Self { cm_per_unit: None, up: None, objects: Vec::new(), transforms: true }
    }
}

/// An object of the mesh.
#[derive(Debug)]
struct Part {
    positions: Property,
    path: String,
    vertices: usize,
    /// The transforms above it, the nearest first, as places among all of the file.
    above: Vec<usize>,
    /// Where nothing above it is animated.
    fixed: Option<DAffine3>,
}

/// An open Alembic file with the mesh that moves in it. Frames stay in the file until they are asked for.
#[derive(Debug)]
pub struct AlembicCache {
    archive: Archive,
    transforms: Vec<Option<Transform>>,
    parts: Vec<Part>,
    mesh: Mesh,
    times: Vec<f64>,
    conversion: Conversion,
    warnings: Vec<String>,
    /// Memory for one sample: bytes, and numbers of one and the next.
    scratch: Mutex<(Vec<u8>, Vec<f32>, Vec<f32>)>,
}

impl AlembicCache {
    /// Opens a file, which stays open.
    pub fn open(path: &Path, options: &AlembicOptions) -> Result<Self, ReadError> {
        let container =
            Container::open(path).map_err(|source| ReadError::Open { path: path.into(), source })?;
        container.and_then(|container| Self::new(container, options)).map_err(ReadError::content(path))
    }

    /// [`Self::open`] on bytes.
    pub fn parse(bytes: Vec<u8>, options: &AlembicOptions) -> Result<Self, ParseError> {
        Self::new(Container::parse(bytes)?, options)
    }

    fn new(container: Container, options: &AlembicOptions) -> Result<Self, ParseError> {
        let archive = Archive::new(container)?;
        let objects = archive.objects()?;
        let mut warnings = Vec::new();
        let chosen = choose(&archive, &objects, options, &mut warnings)?;
        let mut transforms = Vec::with_capacity(objects.len());
        for object in &objects {
            transforms.push(match options.transforms && object.schema.starts_with(transform::SCHEMA) {
                true => Transform::read(&archive, object)?,
                false => None,
            });
        }
        let mut parts = Vec::new();
        let mut meshes = Vec::new();
        for &index in &chosen {
            let properties = MeshProperties::read(&archive, &objects[index])?;
            let (faces, vertices, mended) = properties.topology(&archive)?;
            properties.check_samples(&archive, vertices)?;
            warnings.extend(mended);
            if vertices == 0 || faces.faces.is_empty() {
                warnings.push(format!("{}: has no faces and is skipped", objects[index].path));
                continue;
            }
            meshes.push((name_of(&objects, &chosen, index), faces));
            let MeshProperties { positions, path, .. } = properties;
            let above = std::iter::successors(objects[index].parent, |above| objects[*above].parent);
            let above = above.filter(|above| transforms[*above].is_some()).collect();
            parts.push(Part { positions, path, vertices, above, fixed: None });
        }
        if parts.is_empty() {
            return Err(ParseError::new("objects", "no mesh has faces"));
        }
        let times = times(&archive, &parts, &transforms)?;
        for part in &mut parts {
            let above = part.above.iter().filter_map(|above| transforms[*above].as_ref());
            if above.clone().all(|transform| transform.animated().next().is_none()) {
                part.fixed = Some(world(&archive, &transforms, &part.above, times[0])?);
            }
        }
        let conversion = conversion(&archive, options, &mut warnings)?;
        let total: usize = parts.iter().map(|part| part.vertices).sum();
        archive.charge("positions", 64 * total as u64)?;
        // The mesh is checked with places of the first frame; a mesh to read them by must be there before.
        let mut cache = Self {
            archive,
            transforms,
            parts,
            mesh: placeholder(),
            times,
            conversion,
            warnings,
            scratch: Mutex::default(),
        };
        let mut first = Vec::new();
        cache.frame(0, &mut first)?;
        cache.mesh = join(meshes, &cache.parts, first)?;
        Ok(cache)
    }

    /// All objects as one mesh, a segment each, in the first frame.
    pub fn mesh(&self) -> &Mesh {
        &self.mesh
    }

    /// Number of frames: the moments at which some object has a sample.
    pub fn len(&self) -> usize {
        self.times.len()
    }

    /// Never: a file without a sample is refused.
    pub fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    /// When the frames are, seconds, ascending.
    pub fn times(&self) -> &[f64] {
        &self.times
    }

    /// Frames per second: a whole number where it is nearly one. `None` for a single frame.
    pub fn rate(&self) -> Option<f32> {
        let span = self.times[self.times.len() - 1] - self.times[0];
        let rate = (self.times.len() - 1) as f64 / span;
        let whole = rate.round();
        let rate = if (rate - whole).abs() < 1e-3 * whole { whole } else { rate };
        (span > 0.0 && rate.is_finite()).then_some(rate as f32)
    }

    /// The program that wrote the file, as it calls itself.
    pub fn application(&self) -> Option<&str> {
        self.archive.note("_ai_Application").filter(|name| !name.is_empty())
    }

    /// What was done to lengths and axes.
    pub fn conversion(&self) -> &Conversion {
        &self.conversion
    }

    /// What was skipped or mended.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Reads a frame, `[V]` cm, into memory that is used again.
    ///
    /// # Panics
    /// When there is no such frame.
    pub fn frame(&self, frame: usize, out: &mut Vec<Vec3>) -> Result<(), ParseError> {
        let time = self.times[frame];
        out.clear();
        let mut scratch = self.scratch.lock().unwrap_or_else(PoisonError::into_inner);
        let (bytes, now, next) = &mut *scratch;
        for part in &self.parts {
            let (sample, share) = moment(&self.archive, &part.positions, time);
            self.archive.floats_into(&part.positions, sample, bytes, now)?;
            if share > 0.0 {
                self.archive.floats_into(&part.positions, sample + 1, bytes, next)?;
                now.iter_mut().zip(&*next).for_each(|(a, b)| *a += (b - *a) * share as f32);
            }
            let world = match part.fixed {
                Some(world) => world,
                None => world(&self.archive, &self.transforms, &part.above, time)?,
            };
            let still = world == DAffine3::IDENTITY;
            let place = |p: Vec3| if still { p } else { world.transform_point3(p.as_dvec3()).as_vec3() };
            let before = out.len();
            out.extend(points(now).map(|p| self.conversion.apply(place(p))));
            let fail = |problem: String| {
                Err(ParseError::new(format!("{}: frame {frame} at {time:.4} s", part.path), problem))
            };
            if out.len() - before != part.vertices {
                return fail(format!("has {} vertices, {} expected", out.len() - before, part.vertices));
            }
            if let Some(vertex) = out[before..].iter().position(|p| !p.is_finite()) {
                return fail(format!("vertex {vertex} is not finite"));
            }
        }
        Ok(())
    }
}

/// The meshes to read, as places among the objects.
fn choose(
    archive: &Archive,
    objects: &[Object],
    options: &AlembicOptions,
    warnings: &mut Vec<String>,
) -> Result<Vec<usize>, ParseError> {
    let is_mesh = |object: &Object| mesh::SCHEMAS.iter().any(|schema| object.schema.starts_with(schema));
    let meshes: Vec<usize> = (0..objects.len()).filter(|index| is_mesh(&objects[*index])).collect();
    let others: Vec<&str> = objects
        .iter()
        .filter(|object| !is_mesh(object) && !object.schema.starts_with(transform::SCHEMA))
        .filter(|object| !object.schema.is_empty())
        .map(|object| object.path.as_str())
        .collect();
    if let Some(first) = others.first() {
        warnings.push(format!("{} objects that are no meshes are skipped ('{first}' first)", others.len()));
    }
    let instances =
        objects.iter().filter(|o| o.properties.iter().any(|p| p.name == ".instanceSource")).count();
    if instances > 0 {
        warnings
            .push(format!("{instances} instances of other objects are skipped; export without instancing"));
    }
    if meshes.is_empty() {
        let written = archive.note("_ai_Application").unwrap_or("an unknown program");
        let problem = format!("there is no mesh among {} objects (written by {written})", objects.len());
        return Err(ParseError::new("objects", problem));
    }
    if options.objects.is_empty() {
        return Ok(meshes);
    }
    let mut chosen = Vec::new();
    for wanted in &options.objects {
        let named = |index: &&usize| {
            let path = &objects[**index].path;
            path == wanted || path.split('/').any(|name| name == wanted)
        };
        let found: Vec<usize> = meshes.iter().filter(named).copied().collect();
        if found.is_empty() {
            let known: Vec<&str> =
                meshes.iter().take(20).map(|index| objects[*index].path.as_str()).collect();
            let problem = format!("there is no mesh of that name; there are {}", known.join(", "));
            return Err(ParseError::new(format!("object '{wanted}'"), problem));
        }
        chosen.extend(found);
    }
    chosen.sort_unstable();
    chosen.dedup();
    Ok(chosen)
}

/// What people call a mesh: the object that moves it, where it moves no other; its own name otherwise.
fn name_of(objects: &[Object], meshes: &[usize], index: usize) -> String {
    let own = |index: usize| objects[index].path.rsplit('/').next().unwrap_or_default().to_owned();
    let Some(parent) = objects[index].parent else { return own(index) };
    let alone = meshes.iter().filter(|mesh| objects[**mesh].parent == Some(parent)).count() == 1;
    let transform = objects[parent].schema.starts_with(transform::SCHEMA);
    if alone && transform { own(parent) } else { own(index) }
}

/// All moments at which something has a sample, once each.
fn times(
    archive: &Archive,
    parts: &[Part],
    transforms: &[Option<Transform>],
) -> Result<Vec<f64>, ParseError> {
    // The most samples of every time sampling.
    let mut samples = vec![0u32; archive.samplings.len()];
    let mut note = |property: &Property| {
        let most = &mut samples[property.sampling];
        *most = (*most).max(if property.is_constant() { 1 } else { property.samples });
    };
    let mut above = vec![false; transforms.len()];
    for part in parts {
        note(&part.positions);
        part.above.iter().for_each(|index| above[*index] = true);
    }
    let moving = transforms.iter().zip(&above).filter(|(_, used)| **used).filter_map(|(t, _)| t.as_ref());
    moving.flat_map(Transform::animated).for_each(&mut note);
    let animated = samples.iter().any(|samples| *samples > 1);
    let mut times = Vec::new();
    for (sampling, &count) in archive.samplings.iter().zip(&samples) {
        // What stands still has one sample, whose time means nothing where other things move.
        if count > 1 || (count == 1 && !animated) {
            archive.charge("time samplings", 32 * u64::from(count))?;
            times.extend((0..count).map(|sample| sampling.time(sample)));
        }
    }
    times.sort_by(f64::total_cmp);
    times.dedup_by(|later, earlier| *later - *earlier < TIME_TOLERANCE);
    match times.iter().all(|time| time.is_finite()) {
        true => Ok(times),
        false => Err(ParseError::new("time samplings", "a time is not finite")),
    }
}

fn world(
    archive: &Archive,
    transforms: &[Option<Transform>],
    above: &[usize],
    time: f64,
) -> Result<DAffine3, ParseError> {
    let mut world = DAffine3::IDENTITY;
    for transform in above.iter().filter_map(|index| transforms[*index].as_ref()) {
        world = transform.at(archive, time)? * world;
        if !transform.inherits(archive, time)? {
            break;
        }
    }
    Ok(world)
}

/// Alembic names no unit: programs write numbers in their own.
const PROGRAMS: [(&str, f32, &str); 6] = [
    ("maya", 1.0, "centimetres"),
    ("blender", 100.0, "metres"),
    ("houdini", 100.0, "metres"),
    ("cinema 4d", 1.0, "centimetres"),
    ("unreal", 1.0, "centimetres"),
    ("modo", 100.0, "metres"),
];

fn conversion(
    archive: &Archive,
    options: &AlembicOptions,
    warnings: &mut Vec<String>,
) -> Result<Conversion, ParseError> {
    let up = options.up.unwrap_or(Axis::Y);
    if let Some(scale) = options.cm_per_unit {
        if !(scale.is_finite() && scale > 0.0) {
            return Err(ParseError::new("unit", format!("{scale} cm is not a unit of length")));
        }
        return Ok(Conversion { scale, up, reason: "given by the caller".into() });
    }
    let written = archive.note("_ai_Application").unwrap_or_default();
    let named = written.to_ascii_lowercase();
    let known = PROGRAMS.iter().find(|(program, ..)| named.contains(program));
    Ok(match known {
        Some((_, scale, unit)) => {
            Conversion { scale: *scale, up, reason: format!("{written} writes {unit}") }
        }
        None => {
            let by = if written.is_empty() { "the file names no program" } else { written };
            let reason = format!("Alembic has no units ({by}): centimetres assumed");
            warnings.push(format!("{reason}; give the scale"));
            Conversion { scale: 1.0, up, reason }
        }
    })
}

/// Stands in until the first frame is read.
fn placeholder() -> Mesh {
    let parts = MeshParts {
        positions: vec![Vec3::ZERO, Vec3::X, Vec3::Y],
        faces: vec![Face::triangle(0, 1, 2)],
        ..MeshParts::default()
    };
    parts.build().expect("a triangle is a mesh")
}

/// One mesh of several, a segment each.
fn join(meshes: Vec<(String, MeshParts)>, parts: &[Part], positions: Vec<Vec3>) -> Result<Mesh, ParseError> {
    let mut names = UniqueNames::default();
    let mut all = MeshParts { positions, ..MeshParts::default() };
    let textured = meshes.iter().any(|(_, mesh)| !mesh.face_uvs.is_empty());
    let mut first = 0;
    for ((name, mesh), part) in meshes.into_iter().zip(parts) {
        let segment = all.segments.names.len() as u32;
        all.segments.names.push(names.take(&name));
        all.segments.of_vertex.extend(std::iter::repeat_n(segment, part.vertices));
        all.faces.extend(mesh.faces.iter().map(|face| face.map(|corner| corner + first)));
        first += part.vertices as u32;
        if textured {
            let table = all.uvs.len() as u32;
            if mesh.face_uvs.is_empty() {
                // A mesh without coordinates among meshes with them: all its corners share one.
                all.uvs.push(understudy_core::Vec2::ZERO);
                all.face_uvs.extend(mesh.faces.iter().map(|face| face.map(|_| table)));
            } else {
                all.uvs.extend(mesh.uvs);
                all.face_uvs.extend(mesh.face_uvs.iter().map(|face| face.map(|uv| uv + table)));
            }
        }
    }
    all.build().map_err(|error| ParseError::new("mesh", error))
}
