//! `deform`: drags and turns handles of a skinned mesh and writes the posed mesh or a picture of it. What is not dragged,
//! turned or released stays where it rests.

use crate::names::unknown;
use crate::outputs::check_file;
use crate::stage::{Shot, Stage, View};
use crate::watch::Remember;
use crate::{JobError, Watch, inputs};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::Instant;
use understudy_core::{Affine3A, Mesh, Quat, Vec3};
use understudy_io::{Format, Scene, obj};
use understudy_runtime::drag::{DragRig, DragSettings};

/// What to drag.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DeformConfig {
    /// A skinned mesh, as `weights` writes it.
    pub input: PathBuf,
    /// Handles and where they go, cm.
    pub drags: Vec<(String, [f32; 3])>,
    /// Handles that turn about an axis through themselves: its direction, then degrees. One that is dragged, too, turns
    /// where it goes.
    pub turns: Vec<(String, [f32; 4])>,
    /// Handles that may move as they like.
    pub free: Vec<String>,
    /// The posed mesh (.obj) or a picture of it (.png).
    pub output: PathBuf,
    /// Iterations of the solver.
    pub iterations: usize,
    /// Of a picture: a name or `YAW,PITCH`.
    pub view: String,
    /// Side of a picture, pixels.
    pub size: usize,
}

impl Default for DeformConfig {
    fn default() -> Self {
        Self {
            input: PathBuf::new(),
            drags: Vec::new(),
            turns: Vec::new(),
            free: Vec::new(),
            output: PathBuf::new(),
            iterations: 50,
            view: "three-quarter".into(),
            size: 768,
        }
    }
}

/// What came out.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DeformReport {
    /// The file.
    pub output: PathBuf,
    /// Vertices of the mesh.
    pub vertices: usize,
    /// Handles: dragged or turned, held at rest, free.
    pub handles: [usize; 3],
    /// How far any vertex moved at most, cm.
    pub most_cm: f32,
    /// Milliseconds of the update.
    pub milliseconds: f64,
    /// What readers converted or skipped.
    pub notes: Vec<String>,
}

/// Drags and writes.
pub fn deform(config: &DeformConfig, watch: &dyn Watch) -> Result<DeformReport, JobError> {
    let picture = config.output.extension().is_some_and(|e| e.eq_ignore_ascii_case("png"));
    if !picture && Format::of(&config.output) != Some(Format::Obj) {
        return Err(JobError::unusable(&config.output, "a posed mesh is written as .obj, a picture as .png"));
    }
    if !(16..=8192).contains(&config.size) {
        return Err(JobError::setting("size", format!("{} is not between 16 and 8192 pixels", config.size)));
    }
    if !(1..=100_000).contains(&config.iterations) {
        let problem = format!("{} is not between 1 and 100000", config.iterations);
        return Err(JobError::setting("iterations", problem));
    }
    let view = View::parse(&config.view)?;
    check_file(&config.output, &[&config.input])?;
    let watch = Remember::new(watch);
    const WANTED: &str = "a skinned .glb or .gltf";
    let scene = inputs::open(&config.input, WANTED, &watch)?;
    let Scene::Model(model) = &scene else { return Err(inputs::wrong_kind(&config.input, &scene, WANTED)) };
    let Some((skeleton, skin)) = model.bound() else {
        return Err(inputs::wrong_kind(&config.input, &scene, WANTED));
    };
    // A model may rest in another pose than it is bound in: handles drag what is seen.
    let rest = model.rest_vertices();
    let mesh = model.mesh.with_positions(&rest).map_err(|error| JobError::unusable(&config.input, error))?;
    let places: Vec<Vec3> = skeleton.rest_global().iter().map(|g| Vec3::from(g.translation)).collect();
    let find = |name: &String| {
        let known = || skeleton.bones().iter().map(|bone| bone.name.as_str());
        let found = known().position(|bone| bone == name);
        found.ok_or_else(|| unknown("handle", name, &config.input.display().to_string(), known()))
    };
    let mut dragged = Vec::new();
    let mut targets = Vec::new();
    for (name, to) in &config.drags {
        dragged.push(find(name)?);
        let to = Vec3::from_array(*to);
        if !to.is_finite() {
            return Err(JobError::setting(format!("drag '{name}'"), "the position is not finite"));
        }
        targets.push(to);
    }
    let free: Vec<usize> = config.free.iter().map(find).collect::<Result<_, _>>()?;
    let (mut turned, mut transforms) = (Vec::new(), Vec::new());
    for (name, [x, y, z, degrees]) in &config.turns {
        let bone = find(name)?;
        let setting = format!("turn '{name}'");
        let Some(axis) = Vec3::new(*x, *y, *z).try_normalize().filter(|_| degrees.is_finite()) else {
            return Err(JobError::setting(setting, "an axis with a length and a finite angle are wanted"));
        };
        if free.contains(&bone) {
            return Err(JobError::setting(setting, "a handle that turns cannot be free"));
        }
        // Where it is dragged, it turns there.
        let to = match dragged.iter().position(|other| *other == bone) {
            Some(place) => {
                dragged.remove(place);
                targets.remove(place)
            }
            None => places[bone],
        };
        let turn = Affine3A::from_quat(Quat::from_axis_angle(axis, degrees.to_radians()));
        turned.push(bone);
        transforms.push(Affine3A::from_translation(to) * turn * Affine3A::from_translation(-places[bone]));
    }
    let moved = dragged.len() + turned.len();
    for bone in 0..skeleton.len() {
        if !dragged.contains(&bone) && !turned.contains(&bone) && !free.contains(&bone) {
            dragged.push(bone);
            targets.push(places[bone]);
        }
    }
    let settings = DragSettings { iterations: config.iterations, ..DragSettings::default() };
    let failed = |error| JobError::unusable(&config.input, error);
    let rig = DragRig::with_turned(&mesh, skin, &places, &dragged, &turned, &settings).map_err(failed)?;
    let mut drag = rig.start();
    let mut vertices = vec![Vec3::ZERO; mesh.vertex_count()];
    let start = Instant::now();
    drag.update_turned(&rig, &targets, &transforms, &mut vertices).map_err(failed)?;
    let milliseconds = start.elapsed().as_secs_f64() * 1e3;
    let most_cm = rest.iter().zip(&vertices).fold(0.0f32, |most, (a, b)| most.max(a.distance(*b)));
    write(config, picture, &view, &mesh, vertices)?;
    Ok(DeformReport {
        output: config.output.clone(),
        vertices: mesh.vertex_count(),
        handles: [moved, dragged.len() + turned.len() - moved, free.len()],
        most_cm,
        milliseconds,
        notes: watch.messages(),
    })
}

fn write(
    config: &DeformConfig,
    picture: bool,
    view: &View,
    mesh: &Mesh,
    vertices: Vec<Vec3>,
) -> Result<(), JobError> {
    if !picture {
        let posed = mesh.with_positions(&vertices);
        let posed = posed.map_err(|error| JobError::unusable(&config.input, error))?;
        return Ok(obj::write(&config.output, &posed)?);
    }
    let stage = Stage { mesh, colours: None, size: config.size, dark: false };
    let shot = Shot { vertices, caption: String::new() };
    let pictures = stage.pictures(&[shot], view);
    let png = pictures.first().map(understudy_report::Picture::to_png).unwrap_or_default();
    understudy_io::write_atomic(Path::new(&config.output), &png)?;
    Ok(())
}
