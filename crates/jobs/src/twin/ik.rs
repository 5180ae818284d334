//! `learn ik`: teaches a twin to follow points, and writes it with a section `ik`. Which points a face has is told by a
//! file, or known of Mira and of the ICT face. Start at [`learn_ik`].

use super::data::{Loaded, live_rig};
use crate::outputs::check_file;
use crate::{Event, JobError, Silent, Watch, inputs, rigs, threads};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::Instant;
use understudy_learn::ik::{IkError, RegionPoint, learn_moved, movers, movers_of_rig};
pub use understudy_learn::ik::{IkReport, IkSettings};
use understudy_runtime::ik::{ControlPoint, PointIk};
use understudy_runtime::{Precision, Twin};

/// What to teach.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LearnIkConfig {
    /// The twin that is posed; it is not changed.
    pub twin: PathBuf,
    /// Poses, as the twin was learned from.
    pub data: PathBuf,
    /// A file of points; those of the rig where it is left out.
    pub points: Option<PathBuf>,
    /// The twin with its section.
    pub output: PathBuf,
    /// How.
    pub settings: IkSettings,
    /// Weights in 16 bits; in 32 otherwise.
    pub half: bool,
    /// Most poses that are read.
    pub poses: usize,
    /// Threads; the networks do not depend on it.
    pub threads: usize,
}

impl LearnIkConfig {
    /// With what serves users.
    pub fn new(twin: impl Into<PathBuf>, data: impl Into<PathBuf>, output: impl Into<PathBuf>) -> Self {
        Self {
            twin: twin.into(),
            data: data.into(),
            output: output.into(),
            points: None,
            settings: IkSettings::default(),
            half: true,
            poses: 20_000,
            threads: threads::available(),
        }
    }
}

/// What was taught.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LearnIkReport {
    /// The file.
    pub output: PathBuf,
    /// The rig.
    pub rig: String,
    /// Kind of the twin.
    pub kind: &'static str,
    /// Number of points.
    pub points: usize,
    /// Regions: name, number of points, number of controls.
    pub regions: Vec<(String, usize, usize)>,
    /// Poses of the dataset.
    pub poses: usize,
    /// On poses that were held back.
    #[serde(flatten)]
    pub figures: IkReport,
    /// Bytes that the section adds.
    pub bytes: usize,
    /// Duration.
    pub seconds: f64,
}

/// A file of points, as people write it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PointFile {
    /// `[[point]]` with `name`, `vertex` and `region`.
    pub point: Vec<RegionPoint>,
}

/// Teaches it and writes the file.
pub fn learn_ik(config: &LearnIkConfig, watch: &dyn Watch) -> Result<LearnIkReport, JobError> {
    let inputs: Vec<&Path> =
        [config.twin.as_path(), &config.data].into_iter().chain(config.points.as_deref()).collect();
    // The twin may be replaced by itself with the section: that is what it is for.
    check_file(&config.output, &inputs[1..])?;
    let start = Instant::now();
    let bytes = understudy_io::read_bytes(&config.twin)?;
    let twin = Twin::parse(&bytes).map_err(|error| JobError::unusable(&config.twin, error))?;
    if !twin.header().inputs.bones.is_empty() {
        return Err(JobError::unusable(
            &config.twin,
            "is posed by bones and has no gradient by controls, which points need (a differential twin has one where it is \
             learned with --skin none)",
        ));
    }
    let points = match &config.points {
        Some(file) => inputs::toml_file::<PointFile>(file)?.point,
        None => known_points(&twin)?,
    };
    check_points(&points, &twin, config.points.as_deref().unwrap_or(&config.twin))?;
    let loaded = Loaded::read_for(&twin, &config.data, config.poses, watch)?;
    let poses = &loaded.recording;
    let pool = threads::pool(config.threads)?;
    // The rig itself says best which controls move a point.
    let vertices: Vec<u32> = points.iter().map(|point| point.point.vertex).collect();
    let own = twin.header().inputs.controls.iter().map(|spec| &spec.name);
    let rig =
        live_rig(&twin, &config.twin).filter(|rig| own.clone().eq(rig.specs().iter().map(|spec| &spec.name)));
    let (least, seed) = (config.settings.influence_cm, config.settings.seed);
    let moved = match &rig {
        Some(rig) => movers_of_rig(rig.as_ref(), &vertices, least, seed)
            .map_err(|error| JobError::unusable(rig.name(), error))?,
        None => {
            movers(&twin, &vertices, least, seed).map_err(|error| JobError::unusable(&config.twin, error))?
        }
    };
    let steps = config.settings.steps as u64;
    watch.event(Event::Started { what: "learning to follow points", total: steps, unit: "steps" });
    let precision = if config.half { Precision::Half } else { Precision::Single };
    let learned = pool.install(|| {
        learn_moved(&twin, &points, &moved, poses, &config.settings, precision, |step, loss| {
            watch.event(Event::Step { done: step as u64 });
            let message = format!("points are {:.2} mm off, summed over axes", loss * 10.0);
            watch.event(Event::Status { message: &message });
            !watch.should_stop()
        })
    });
    let learned = learned.map_err(|error| match error {
        IkError::Stopped => JobError::Stopped,
        IkError::Setting { what, problem } => JobError::setting(what, problem),
        IkError::Control(_) => JobError::unusable(&config.data, error),
        other => JobError::unusable(&config.twin, other),
    })?;
    watch.event(Event::Finished);
    let whole = learned.ik.file_with(&twin).map_err(|error| JobError::Machine(error.to_string()))?;
    // What we wrote must load.
    let again = PointIk::read(&whole, &twin).map_err(|error| JobError::Machine(error.to_string()))?;
    let ik = again.ok_or_else(|| JobError::Machine("the section is not where it was written".into()))?;
    understudy_io::write_atomic(&config.output, &whole)?;
    let plain = twin.to_bytes().map_or(0, |bytes| bytes.len());
    Ok(LearnIkReport {
        output: config.output.clone(),
        rig: twin.header().rig.clone(),
        kind: twin.method(),
        points: points.len(),
        regions: ik
            .regions()
            .map(|(name, points, controls)| (name.into(), points.len(), controls.len()))
            .collect(),
        poses: poses.len(),
        figures: learned.report,
        bytes: whole.len().saturating_sub(plain),
        seconds: start.elapsed().as_secs_f64(),
    })
}

/// The points of a rig that we know.
pub(crate) fn known_points(twin: &Twin) -> Result<Vec<RegionPoint>, JobError> {
    let rig = &twin.header().rig;
    let point = |name: String, region: &str, vertex: u32| RegionPoint {
        point: ControlPoint { name, vertex },
        region: region.into(),
    };
    let points: Vec<RegionPoint> = match rig.as_str() {
        "mira" => {
            let landmarks = understudy_characters::mira::landmarks().map_err(JobError::rig(rig))?;
            landmarks.into_iter().map(|(name, region, vertex)| point(name, region, vertex)).collect()
        }
        "ict" => {
            let path = rigs::source_file(rig);
            let landmarks = understudy_io::real::ict(&path)?.landmarks;
            multi_pie()
                .into_iter()
                .map(|(index, name, region)| point(name, region, landmarks[index]))
                .collect()
        }
        _ => {
            let problem = format!("the points of '{rig}' are not known: name them in a file with --points");
            return Err(JobError::setting("points", problem));
        }
    };
    // A transferred twin, or one of a file that happens to be called so, has the rig's name, but other vertices.
    let own = rigs::open(rig, &Silent)?.rig.mesh().topology_hash();
    match twin.header().training.transferred_from {
        None if twin.header().topology_hash == own => Ok(points),
        None => Err(JobError::setting(
            "points",
            format!(
                "the twin has another mesh than the '{rig}' whose points are known: name its points in a file with --points"
            ),
        )),
        Some(_) => Err(JobError::setting(
            "points",
            "the twin was moved to another mesh: name its points in a file with --points",
        )),
    }
}

/// 54 of the 68 landmarks of Multi-PIE: number, name, region. Of the jaw's contour only three are left.
pub(super) fn multi_pie() -> Vec<(usize, String, &'static str)> {
    let mut out: Vec<(usize, String, &'static str)> = Vec::new();
    for (index, name) in [(6, "jaw_R"), (8, "chin"), (10, "jaw_L")] {
        out.push((index, name.into(), "mouth"));
    }
    for place in 0..5 {
        // From her right ear to her left one.
        out.push((17 + place, format!("brow_R_{}", 5 - place), "brow_R"));
        out.push((22 + place, format!("brow_L_{}", place + 1), "brow_L"));
    }
    let nose = ["nose_bridge_1", "nose_bridge_2", "nose_bridge_3", "nose_tip"].into_iter();
    let base = ["nose_base_2_R", "nose_base_1_R", "nose_base", "nose_base_1_L", "nose_base_2_L"];
    out.extend(nose.chain(base).enumerate().map(|(place, name)| (27 + place, name.into(), "nose")));
    let right = ["outer", "upper_outer", "upper_inner", "inner", "lower_inner", "lower_outer"];
    let left = ["inner", "upper_inner", "upper_outer", "outer", "lower_outer", "lower_inner"];
    out.extend(right.iter().enumerate().map(|(place, name)| (36 + place, format!("eye_R_{name}"), "eye_R")));
    out.extend(left.iter().enumerate().map(|(place, name)| (42 + place, format!("eye_L_{name}"), "eye_L")));
    let mouth = [
        "mouth_corner_R",
        "lip_upper_2_R",
        "lip_upper_1_R",
        "lip_upper",
        "lip_upper_1_L",
        "lip_upper_2_L",
        "mouth_corner_L",
        "lip_lower_2_L",
        "lip_lower_1_L",
        "lip_lower",
        "lip_lower_1_R",
        "lip_lower_2_R",
        "mouth_inner_R",
        "lip_upper_inner_1_R",
        "lip_upper_inner",
        "lip_upper_inner_1_L",
        "mouth_inner_L",
        "lip_lower_inner_1_L",
        "lip_lower_inner",
        "lip_lower_inner_1_R",
    ];
    out.extend(mouth.iter().enumerate().map(|(place, name)| (48 + place, (*name).into(), "mouth")));
    out
}

fn check_points(points: &[RegionPoint], twin: &Twin, file: &Path) -> Result<(), JobError> {
    if points.is_empty() {
        return Err(JobError::unusable(file, "names no points"));
    }
    for (index, point) in points.iter().enumerate() {
        let (name, vertex) = (&point.point.name, point.point.vertex);
        if vertex as usize >= twin.vertex_count() {
            let problem = format!("point '{name}' is vertex {vertex}, the twin has {}", twin.vertex_count());
            return Err(JobError::unusable(file, problem));
        }
        if name.is_empty() || point.region.is_empty() {
            return Err(JobError::unusable(file, format!("point {index} has no name or no region")));
        }
        let before = &points[..index];
        if let Some(other) =
            before.iter().find(|other| other.point.name == *name || other.point.vertex == vertex)
        {
            let problem = format!("'{name}' and '{}' have one name or one vertex", other.point.name);
            return Err(JobError::unusable(file, problem));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use understudy_core::{ControlSpec, ControlSpecs, Face, SkinWeights, Vec3};
    use understudy_runtime::skin::{BONE_NUMBERS, SkinParts, SkinTwin};
    use understudy_runtime::{DenseParts, Header, Inputs, Training};
    use understudy_testkit::shared_data;

    /// A triangle whose header says that it is another rig.
    fn pretender(rig: &str, topology_hash: u64) -> Twin {
        let controls = vec![ControlSpec::number("c", -1.0, 1.0, 0.0)];
        let parts = SkinParts {
            header: Header {
                rig: rig.into(),
                topology_hash,
                units: "cm".into(),
                inputs: Inputs {
                    bones: Vec::new(),
                    controls: ControlSpecs::new(controls).expect("valid controls"),
                },
                training: Training::default(),
            },
            rest_vertices: vec![Vec3::ZERO, Vec3::X, Vec3::Y],
            faces: vec![Face::triangle(0, 1, 2)],
            weights: SkinWeights::from_rows(&vec![vec![(0, 1.0)]; 3], 1).expect("convex rows"),
            centres: vec![Vec3::ZERO],
            frame: None,
            inputs: vec![0],
            mean: vec![0.0],
            scale: vec![1.0],
            hidden: Vec::new(),
            output: DenseParts { weights: vec![0.1; BONE_NUMBERS], bias: vec![0.0; BONE_NUMBERS] },
            components: Vec::new(),
        };
        SkinTwin::new(parts, Precision::Half).expect("valid").into()
    }

    #[test]
    fn points_are_known_of_the_rig_itself_and_of_no_other_of_its_name() {
        let hash = |rig: &str| rigs::open(rig, &Silent).expect("a rig").rig.mesh().topology_hash();
        let mira = hash("mira");
        assert_eq!(known_points(&pretender("mira", mira)).expect("her points").len(), 54);
        let refused = |rig: &str, hash: u64| {
            let error = known_points(&pretender(rig, hash)).expect_err("another mesh");
            assert!(error.is_bad_input());
            error.to_string()
        };
        assert!(refused("mira", mira ^ 1).contains("--points"));
        assert!(refused("somebody", mira).contains("not known"));
    }

    #[test]
    fn points_of_the_ict_face_lie_on_their_sides() {
        if shared_data().is_none() {
            return;
        }
        let rig = rigs::open("ict", &Silent).expect("a rig").rig;
        let twin = pretender("ict", rig.mesh().topology_hash());
        let points = known_points(&twin).expect("its points");
        assert_eq!(points.len(), 54);
        let place = |name: &str| {
            let point = points.iter().find(|point| point.point.name == name).expect("a point");
            rig.mesh().positions()[point.point.vertex as usize]
        };
        for (left, right) in
            [("mouth_corner_L", "mouth_corner_R"), ("eye_L_outer", "eye_R_outer"), ("brow_L_3", "brow_R_3")]
        {
            let (left, right) = (place(left), place(right));
            assert!(left.x > 1.0 && right.x < -1.0 && (left.y - right.y).abs() < 1.0, "{left} {right}");
        }
        let [chin, lip, nose, brow] = ["chin", "lip_upper", "nose_tip", "brow_L_3"].map(place);
        assert!(chin.y < lip.y && lip.y < nose.y && nose.y < brow.y && nose.z > chin.z);
        let mut vertices: Vec<u32> = points.iter().map(|point| point.point.vertex).collect();
        vertices.sort_unstable();
        vertices.dedup();
        assert_eq!(vertices.len(), 54);
    }

    #[test]
    fn the_scheme_has_54_points_of_different_names() {
        let points = multi_pie();
        assert_eq!(points.len(), 54);
        let mut names: Vec<&String> = points.iter().map(|(_, name, _)| name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), 54);
        // Mira's points have the same names.
        let mira = understudy_characters::mira::landmarks().expect("a model");
        for (name, region, _) in mira {
            let found = points.iter().find(|(_, other, _)| *other == name);
            assert_eq!(found.map(|(.., region)| *region), Some(region), "{name}");
        }
    }
}
