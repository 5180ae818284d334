//! Twins of one recording that differ in a setting or two: what does not depend on the setting (the recording in memory, the
//! plan, networks that see the same targets) is made once. A row that an earlier run finished is only weighed again.

use super::Workshop;
use crate::console::{Console, complain};
use crate::kept;
use anyhow::{Context as _, Result};
use rayon::prelude::*;
use serde_json::json;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Instant;
use understudy_io::write_atomic;
use understudy_jobs::twin::diff::{Coordinates, DiffSettings, Loss};
use understudy_jobs::twin::read_recording;
use understudy_learn::Recording;
use understudy_learn::diff::{Plan, TrainedAnchor, Trainer};
use understudy_rigs::Rig;
use understudy_runtime::Precision;
use understudy_runtime::diff::{LayerNumbers, to_bytes};

/// A twin of a study.
#[derive(Debug, Clone, PartialEq)]
pub struct Variation {
    /// How to learn.
    pub settings: DiffSettings,
    /// Chosen anchors in place of found ones.
    pub anchors: Option<Vec<u32>>,
    /// Of the recording, the first so many poses.
    pub poses: usize,
}

impl Variation {
    /// Of so many poses, with anchors that are found.
    pub fn new(settings: DiffSettings, poses: u64) -> Self {
        Self { settings, anchors: None, poses: poses as usize }
    }
}

/// A network that training made worse than none: a row of a table, not an end of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotTrained;

impl std::fmt::Display for NotTrained {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("training diverged")
    }
}

impl std::error::Error for NotTrained {}

/// The recording, and what was made of it so far.
pub struct Study<'a> {
    workshop: &'a Workshop,
    rig: Box<dyn Rig>,
    data: PathBuf,
    loaded: Option<Recording>,
    /// The first plan and the last one: each holds matrices of hundreds of megabytes.
    plans: Vec<(String, Rc<Planned>)>,
    networks: HashMap<String, (Vec<LayerNumbers>, f64)>,
    anchors: HashMap<String, Vec<TrainedAnchor>>,
}

/// A plan and the poses that it is of.
struct Planned {
    plan: Plan,
    /// `None`: the whole recording.
    some: Option<Recording>,
}

impl<'a> Study<'a> {
    /// Of a dataset of a rig; nothing is read before it is needed.
    pub fn new(workshop: &'a Workshop, rig: Box<dyn Rig>, data: &Path) -> Self {
        Self {
            workshop,
            rig,
            data: data.into(),
            loaded: None,
            plans: Vec::new(),
            networks: HashMap::new(),
            anchors: HashMap::new(),
        }
    }

    /// The twin's file. One that was learned from the same data with the same settings is used again.
    pub fn twin(&mut self, name: &str, variation: &Variation) -> Result<PathBuf> {
        let output = self.workshop.at(&format!("{name}.twin"));
        let settings = json!({
            "data": self.data, "settings": variation.settings, "anchors": variation.anchors, "poses": variation.poses,
        });
        if kept::is_kept(&output, &settings) {
            return Ok(output);
        }
        let start = Instant::now();
        let bytes = self.learn(variation).map_err(|error| match error.is::<NotTrained>() {
            true => error,
            false => error.context(format!("'{name}' was not learned")),
        })?;
        write_atomic(&output, &bytes)?;
        let minutes = start.elapsed().as_secs_f64() / 60.0;
        complain(&format!("{name}: {minutes:.1} minutes"));
        kept::keep(&output, &settings, minutes)?;
        Ok(output)
    }

    fn learn(&mut self, variation: &Variation) -> Result<Vec<u8>> {
        if self.loaded.is_none() {
            self.loaded = Some(read_recording(&self.data, &Console)?);
        }
        let settings = &variation.settings;
        let planned = self.plan(variation)?;
        let plan = &planned.plan;
        let key = format!("{} {}", variation.poses, of_network(settings));
        let (layers, miss) = match self.networks.get(&key) {
            Some(known) => known.clone(),
            None => {
                let mut trainer = Trainer::new(plan.problem(), settings);
                trainer.run(trainer.steps());
                let [miss, silent] = trainer.validation();
                if !miss.is_finite() || miss > 2.0 * silent {
                    return Err(NotTrained.into());
                }
                let trained = (trainer.layers(), miss / silent.max(f64::MIN_POSITIVE));
                self.networks.entry(key).or_insert(trained).clone()
            }
        };
        let key = format!("{} {:?} {}", variation.poses, variation.anchors, of_anchors(settings));
        let anchors = match self.anchors.get(&key) {
            Some(known) => known.clone(),
            None => {
                let trained = match settings.single_network && !plan.anchors.is_empty() {
                    true => plan.train_together(settings, || true)?,
                    false => (0..plan.anchors.len())
                        .into_par_iter()
                        .map(|anchor| plan.train_anchor(anchor, settings, || true))
                        .collect::<Result<Vec<_>, _>>()?,
                };
                self.anchors.entry(key).or_insert(trained).clone()
            }
        };
        let all = self.loaded.as_ref().context("the recording was read")?;
        let poses = planned.some.as_ref().unwrap_or(all);
        let (parts, _) = plan.finish(poses, self.rig.name(), &layers, &anchors, miss, settings);
        Ok(to_bytes(&parts, Precision::Half)?)
    }

    fn plan(&mut self, variation: &Variation) -> Result<Rc<Planned>> {
        let key = format!("{} {:?} {}", variation.poses, variation.anchors, of_plan(&variation.settings));
        if let Some((_, plan)) = self.plans.iter().find(|(known, _)| *known == key) {
            return Ok(Rc::clone(plan));
        }
        self.plans.truncate(1);
        let all = self.loaded.as_ref().context("the recording was read")?;
        let some = (variation.poses < all.len()).then(|| first_poses(all, variation.poses));
        let poses = some.as_ref().unwrap_or(all);
        let plan =
            Plan::new(poses, Some(self.rig.as_ref()), variation.anchors.as_deref(), &variation.settings)?;
        let planned = Rc::new(Planned { plan, some });
        self.plans.push((key, Rc::clone(&planned)));
        Ok(planned)
    }
}

/// The first poses of a recording: every pose has a random stream of its own, so this is a shorter recording.
fn first_poses(all: &Recording, count: usize) -> Recording {
    Recording {
        mesh: all.mesh.clone(),
        skeleton: all.skeleton.clone(),
        specs: all.specs.clone(),
        bones: (0..count).flat_map(|pose| all.bones_of(pose)).copied().collect(),
        controls: (0..count).flat_map(|pose| all.controls_of(pose)).copied().collect(),
        vertices: (0..count).flat_map(|pose| all.vertices_of(pose)).copied().collect(),
    }
}

/// Settings on which a plan depends; those of training are as by default.
fn of_plan(settings: &DiffSettings) -> String {
    let usual = DiffSettings::default();
    let own = DiffSettings {
        anchor_weight: None,
        widths: usual.widths,
        anchor_widths: usual.anchor_widths,
        activation: usual.activation,
        loss: usual.loss,
        loss_vertices: usual.loss_vertices,
        optimiser: usual.optimiser,
        schedule: usual.schedule,
        rate: usual.rate,
        batch: usual.batch,
        steps: usual.steps,
        anchor_steps: usual.anchor_steps,
        epochs: usual.epochs,
        ..settings.clone()
    };
    json!(own).to_string()
}

/// Settings on which the differential network depends: not those of anchors.
fn of_network(settings: &DiffSettings) -> String {
    let usual = DiffSettings::default();
    let own = DiffSettings {
        anchors_percent: usual.anchors_percent,
        anchor_weight: None,
        anchor_widths: usual.anchor_widths,
        anchor_steps: usual.anchor_steps,
        single_network: false,
        probe_poses: usual.probe_poses,
        ..settings.clone()
    };
    json!(own).to_string()
}

/// Settings on which mini-networks depend: not those of differential coordinates, but whether there are some.
fn of_anchors(settings: &DiffSettings) -> String {
    let usual = DiffSettings::default();
    let coordinates = match settings.coordinates {
        Coordinates::Local => Coordinates::Local,
        Coordinates::Uniform | Coordinates::Cotangent => Coordinates::Uniform,
    };
    let own = DiffSettings {
        coordinates,
        components_percent: usual.components_percent,
        components_mm: None,
        anchor_weight: None,
        widths: usual.widths,
        loss: Loss::L1,
        loss_vertices: usual.loss_vertices,
        steps: usual.steps,
        ..settings.clone()
    };
    json!(own).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use understudy_core::{ControlSpec, ControlSpecs, Face, MeshParts, Random, Vec3};
    use understudy_core::{Controls, GlobalPose};
    use understudy_io::dataset::{Chunk, DatasetHeader, DatasetRest, DatasetWriter};
    use understudy_jobs::twin::open_twin;

    #[test]
    fn what_is_shared_changes_no_twin() {
        let folder = tempfile::tempdir().expect("a scratch folder");
        let workshop = |name: &str| Workshop { folder: folder.path().join(name) };
        let data = folder.path().join("data");
        record(&data);
        let settings = DiffSettings {
            widths: vec![16],
            anchor_widths: vec![8],
            components_percent: 10.0,
            anchors_percent: 8.0,
            steps: 40,
            anchor_steps: 20,
            ..DiffSettings::default()
        };
        let variation = |settings: DiffSettings| Variation { settings, anchors: None, poses: 60 };
        let usual = variation(settings.clone());
        let heavy = variation(DiffSettings { anchor_weight: Some(1.0), ..settings.clone() });
        let few = Variation { poses: 45, ..usual.clone() };
        let fresh = |name: &str, wanted: &Variation| {
            let workshop = workshop(name);
            let twin = Study::new(&workshop, Box::new(Sheet::new()), &data)
                .twin("one", wanted)
                .expect("it is learned");
            std::fs::read(twin).expect("was written")
        };
        let together = workshop("together");
        let mut study = Study::new(&together, Box::new(Sheet::new()), &data);
        let mut of = |name: &str, wanted: &Variation| {
            std::fs::read(study.twin(name, wanted).expect("it is learned")).expect("was written")
        };
        let (a, b, c) = (of("usual", &usual), of("heavy", &heavy), of("few", &few));
        assert!(a != b && a != c && b != c, "settings change nothing");
        assert!(a == fresh("a", &usual) && b == fresh("b", &heavy) && c == fresh("c", &few));
        open_twin(&together.at("few.twin")).expect("it loads");
        // Kept: the data may be gone.
        std::fs::remove_dir_all(&data).expect("it was there");
        Study::new(&together, Box::new(Sheet::new()), &data)
            .twin("usual", &usual)
            .expect("it is still there");
    }

    const SIDE: u32 = 8;

    /// A sheet with a bump that is lifted, and a square one.
    struct Sheet {
        mesh: understudy_core::Mesh,
        specs: ControlSpecs,
    }

    impl Sheet {
        fn new() -> Self {
            let mut parts = MeshParts::default();
            let place = |v: u32| Vec3::new((v % SIDE) as f32, (v / SIDE) as f32, 0.0);
            parts.positions = (0..SIDE * SIDE).map(place).collect();
            for v in (0..SIDE * (SIDE - 1)).filter(|v| v % SIDE + 1 < SIDE) {
                parts.faces.push(Face::quad(v, v + 1, v + 1 + SIDE, v + SIDE));
            }
            let spec = |name: &str| ControlSpec::number(name, -1.0, 1.0, 0.0);
            let specs = ControlSpecs::new(vec![spec("lift"), spec("bulge")]).expect("valid");
            Self { mesh: parts.build().expect("a sheet"), specs }
        }
    }

    impl Rig for Sheet {
        fn name(&self) -> &str {
            "sheet"
        }

        fn specs(&self) -> &ControlSpecs {
            &self.specs
        }

        fn mesh(&self) -> &understudy_core::Mesh {
            &self.mesh
        }

        fn evaluate_from(
            &self,
            rest: &[Vec3],
            controls: &Controls,
            out: &mut understudy_rigs::RigPose,
        ) -> Result<(), understudy_rigs::RigError> {
            let c = &controls.0;
            let bump = |p: &Vec3| (-(p.x - 4.0).powi(2) - (p.y - 3.0).powi(2)).exp();
            out.vertices = rest
                .iter()
                .map(|p| *p + Vec3::Z * (c[0] * bump(p) + c[1] * c[1] * bump(&p.with_x(6.0 - p.x))))
                .collect();
            Ok(())
        }
    }

    fn record(folder: &Path) {
        let sheet = Sheet::new();
        let header = DatasetHeader {
            rig: "sheet".into(),
            rig_file: None,
            method: "uniform".into(),
            seed: 1,
            settings: Default::default(),
            controls: sheet.specs.clone(),
            poses: 60,
            chunk_size: 60,
        };
        let rest = DatasetRest { mesh: sheet.mesh.clone(), skeleton: None, weights: None };
        let writer = DatasetWriter::create(folder, &header, &rest).expect("an empty folder");
        let mut chunk = Chunk::with_capacity(writer.shape(), 60);
        let mut pose = understudy_rigs::RigPose::default();
        for index in 0..60 {
            let mut random = Random::stream(1, index);
            let controls = Controls((0..2).map(|_| random.uniform(-1.0, 1.0)).collect());
            sheet.evaluate(&controls, &mut pose).expect("a valid pose");
            chunk.push(&controls, &GlobalPose(vec![]), &pose.vertices).expect("fits");
        }
        writer.write_chunk(0, &chunk).expect("can be written");
        writer.finish().expect("all chunks are there");
    }
}
