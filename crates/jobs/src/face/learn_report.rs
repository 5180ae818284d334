//! What [`super::learn`] says when it is done.

use serde::Serialize;
use std::path::PathBuf;
use understudy_learn::HeldBack;
use understudy_learn::face::SegmentPlan;
use understudy_learn::face::schedule::End;
use understudy_runtime::Distances;

/// How one stage of training went.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StageReport {
    /// Networks that were trained together.
    pub networks: usize,
    /// Steps in all.
    pub steps: usize,
    /// Steps at each learning rate, and why each ended.
    pub rates: Vec<(usize, End)>,
    /// Loss (3.1) of the validation poses, positions in cm.
    pub validation: f64,
    /// Multiply-adds of a pose, forwards.
    pub multiply_adds: usize,
    /// Steps a second in this run; `None` where an earlier run did all.
    pub steps_per_second: Option<f64>,
}

/// How the head's motion was learned.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FrameReport {
    /// Mean motion of a vertex in the world, mm.
    pub motion_mm: f64,
    /// Mean motion of a vertex when the skull holds still, mm.
    pub left_mm: f64,
    /// Error of the network at ten centimetres from the pivot, root mean square, mm.
    pub error_mm: f64,
    /// Controls that it sees.
    pub inputs: usize,
}

/// What was learned.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LearnFaceReport {
    /// The twin's file.
    pub output: PathBuf,
    /// The rig.
    pub rig: String,
    /// Poses in the dataset.
    pub poses: usize,
    /// How far the whole twin is from the poses that were held back, and a face at rest.
    pub held_back: HeldBack,
    /// Whether inputs were found on the live rig or estimated from the poses.
    pub inputs_probed: bool,
    /// How each segment moves.
    pub segments: Vec<SegmentPlan>,
    /// The head's motion, where it was taken out.
    pub frame: Option<FrameReport>,
    /// The coarse networks.
    pub coarse: StageReport,
    /// The refinement networks.
    pub refinement: Option<StageReport>,
    /// The channels of normals, where maps carry them.
    pub normals: Option<StageReport>,
    /// Mean angles to the true normals on validation poses, degrees: drawn, and computed from faces.
    pub normal_angles_deg: Option<[f64; 2]>,
    /// What 16-bit weights cost against 32 bits: mean and largest, mm.
    pub half_error_mm: Option<Distances>,
    /// Size of the file.
    pub bytes: usize,
    /// The limit of time, minutes, where there was one.
    pub minutes: Option<f64>,
    /// Whether all stages went on until nothing was gained any more.
    pub converged: bool,
    /// Duration, with that of interrupted runs where time was limited.
    pub seconds: f64,
}
