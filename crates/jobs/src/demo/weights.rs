//! Skinning weights in the demo: points on Mira's face that learn from three of her poses, and her lids dragged shut by them.

use super::DemoConfig;
use super::cast::save;
use crate::stage::{Shot, Stage, View};
use crate::weights::session::WeightsSession;
use crate::weights::{ExampleSettings, WeightSettings, WeightsConfig, WeightsReport, weights};
use crate::{JobError, Watch, rigs};
use understudy_core::{Mesh, Vec3};
use understudy_io::handles::{HandleFile, PointEntry};
use understudy_io::npz::NpzWriter;
use understudy_report::html::{Cell, Column, Section, Table};
use understudy_report::raster::{Actor, Camera, RenderSettings, render};
use understudy_report::{HeatScale, Sheet};
use understudy_rigs::{Rig, RigPose};

/// Controls whose places of most movement get a point.
const MOVING: [(&str, &str); 3] = [("lid L", "eyeBlink_L"), ("lid R", "eyeBlink_R"), ("chin", "jawOpen")];
/// Poses to learn from: values of those controls.
const LEARNED: [[f32; 3]; 3] = [[1.0, 1.0, 0.0], [0.0, 0.0, 0.7], [0.5, 0.5, 0.35]];
/// One that is not among them.
const UNSEEN: [f32; 3] = [0.8, 0.8, 0.2];
/// Few enough to wait for.
const ROUNDS: usize = 6;

pub(super) fn show(config: &DemoConfig, watch: &dyn Watch) -> Result<(WeightsReport, Section), JobError> {
    let rig = rigs::open("mira", watch)?.rig;
    let pose = |values: [f32; 3]| pose(rig.as_ref(), values);
    let rest = pose([0.0; 3])?;
    let folder = config.output.join("weights");
    std::fs::create_dir_all(&folder).map_err(|error| JobError::unusable(&folder, error))?;
    let mut points = Vec::new();
    for (place, (name, _)) in MOVING.iter().enumerate() {
        let mut only = [0.0; 3];
        only[place] = 1.0;
        let moved = pose(only)?;
        points.push((*name, largest(&rest, |v, p| p.distance(moved[v]))));
    }
    type Reach = fn(&Vec3) -> f32;
    let still: [(&str, Reach); 5] =
        [("crown", |p| p.y), ("neck", |p| -p.y), ("nose", |p| p.z), ("ear L", |p| p.x), ("ear R", |p| -p.x)];
    points.extend(still.map(|(name, far)| (name, largest(&rest, |_, p| far(p)))));
    let entry = |(name, vertex): &(&str, u32)| PointEntry {
        name: (*name).into(),
        vertex: Some(*vertex),
        position: None,
    };
    let file = HandleFile { point: points.iter().map(entry).collect(), ..HandleFile::default() };
    let handles = folder.join("handles.toml");
    understudy_io::handles::write(&handles, &file)?;
    let examples = folder.join("examples.npz");
    let learned: Vec<f32> = LEARNED
        .iter()
        .map(|values| Ok(pose(*values)?.iter().flat_map(|p| p.to_array()).collect::<Vec<f32>>()))
        .collect::<Result<Vec<_>, JobError>>()?
        .concat();
    let mut npz = NpzWriter::new();
    npz.f32("vertices", &[LEARNED.len(), rest.len(), 3], &learned);
    npz.write(&examples)?;
    let arrays = folder.join("mira.npz");
    let report = weights(
        &WeightsConfig {
            mesh: "mira".into(),
            handles,
            examples: vec![examples],
            output: folder.join("mira.glb"),
            npz: Some(arrays.clone()),
            report: Some(folder.join("weights.html")),
            settings: WeightSettings::default(),
            example_settings: ExampleSettings { rounds: ROUNDS, ..ExampleSettings::default() },
            threads: config.threads,
            command: config.command.clone(),
            ..WeightsConfig::default()
        },
        watch,
    )?;
    let session = WeightsSession::of_mesh(rig.mesh().clone(), &arrays)?;
    let truth = pose(UNSEEN)?;
    let targets: Vec<Vec3> = points.iter().map(|(_, v)| truth[*v as usize]).collect();
    let mut dragged = Vec::new();
    session.drag(&[])?.update(&targets, &mut dragged)?;
    let stage = Stage { mesh: rig.mesh(), colours: rig.colours(), size: config.size, dark: false };
    let shots = [
        ("rest", rest.clone()),
        ("an unseen pose", truth.clone()),
        ("the points dragged there", dragged.clone()),
    ];
    let shots = shots.map(|(caption, vertices)| Shot { vertices, caption: caption.into() });
    let sheet = stage.sheet("Mira by eight points", "", &shots, &[View::named("front")]);
    save(&config.output, "mira-weights", &sheet)?;
    let error = |vertices: &[Vec3]| {
        let squared: f64 = vertices.iter().zip(&truth).map(|(a, b)| f64::from(a.distance_squared(*b))).sum();
        10.0 * (squared / truth.len() as f64).sqrt()
    };
    let mut table = Table::new([
        Column::text("points put where they are in the unseen pose"),
        Column::number("RMSE, mm", 3).lowest_is_best(),
    ]);
    table = table.row([Cell::from("rest, for comparison"), Cell::from(error(&rest))]);
    table = table.row([Cell::from("dragged by the learned weights"), Cell::from(error(&dragged))]);
    let section = Section::new("Skinning weights")
        .paragraph(format!(
            "Eight points on Mira, {} example poses, {:.0} s: a plain skinned GLB that is dragged by its points. Maps, energy and \
             every point dragged are in weights/weights.html.",
            LEARNED.len(),
            report.seconds + report.examples.as_ref().map_or(0.0, |examples| examples.seconds)
        ))
        .picture(&maps(rig.mesh(), &session), "Weights of the lids and the chin.")
        .picture(&sheet, "")
        .table(table);
    Ok((report, section))
}

fn maps(mesh: &Mesh, session: &WeightsSession) -> understudy_report::Picture {
    let scale = HeatScale::new(0.0, 1.0, "weight");
    let view = View::named("front");
    let camera = Camera::framing_points(mesh.positions(), view.yaw_degrees, view.pitch_degrees, 1.0);
    let settings = RenderSettings { width: 320, height: 320, ..RenderSettings::default() };
    let mut sheet = Sheet::new(MOVING.len()).colour_bar(&scale);
    for handle in 0..MOVING.len() {
        let values: Vec<f32> = session.map(handle).map_or_else(Vec::new, Iterator::collect);
        let actor = Actor::new(mesh.faces(), mesh.positions()).heat(&values, &scale);
        sheet = sheet.cell(render(&[actor], &camera, &settings), session.names()[handle].clone());
    }
    sheet.build()
}

fn pose(rig: &dyn Rig, values: [f32; 3]) -> Result<Vec<Vec3>, JobError> {
    let mut controls = rig.specs().defaults();
    for ((_, control), value) in MOVING.iter().zip(values) {
        let place = rig.specs().find(control);
        let place = place.ok_or_else(|| JobError::Machine(format!("mira has no control '{control}'")))?;
        controls.0[place] = value;
    }
    let mut out = RigPose::default();
    rig.evaluate(&controls, &mut out).map_err(JobError::rig("mira"))?;
    Ok(out.vertices)
}

/// The vertex where a value is largest.
fn largest(vertices: &[Vec3], value: impl Fn(usize, &Vec3) -> f32) -> u32 {
    let all = vertices.iter().enumerate();
    all.max_by(|a, b| value(a.0, a.1).total_cmp(&value(b.0, b.1))).map_or(0, |(v, _)| v as u32)
}
