//! What [`super::learn`] says when it is done.

use serde::Serialize;
use understudy_learn::face::SegmentPlan;
use understudy_learn::face::schedule::End;
use understudy_learn::face::segments::SegmentKind;

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

/// What only faces report.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FaceDetails {
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
    /// The limit of time, minutes, where there was one.
    pub minutes: Option<f64>,
    /// Whether all stages went on until nothing was gained any more.
    pub converged: bool,
}

impl FaceDetails {
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut lines = vec![self.coarse.line("coarse")];
        lines.extend(self.refinement.iter().map(|stage| stage.line("refinement")));
        if let (Some(normals), Some([drawn, computed])) = (&self.normals, self.normal_angles_deg) {
            lines.push(normals.line("normals"));
            lines.push(format!("normals from maps are {drawn:.2}° off, normals from faces {computed:.2}°"));
        }
        let rigid = self.segments.iter().filter(|s| s.follow_mm.is_some() && s.inputs == 0).count();
        let bodies = self.segments.iter().filter(|s| s.kind == SegmentKind::Body).count();
        lines.push(format!("segments that move rigidly: {bodies} by themselves, {rigid} with others"));
        lines.push(match (self.converged, self.minutes) {
            (true, _) => "nothing was gained any more: more poses would help, more time would not".into(),
            (false, Some(minutes)) => format!(
                "the time was up before all was gained: --minutes {:.0} would make it more accurate",
                (3.0 * minutes).max(1.0)
            ),
            (false, None) => {
                "the steps were up before all was gained: more of them would make it more accurate".into()
            }
        });
        lines
    }
}

impl StageReport {
    fn line(&self, name: &str) -> String {
        let pace = self.steps_per_second.map_or_else(|| "-".into(), |pace| format!("{pace:.1}"));
        format!(
            "{name}: {} networks, {} steps at {pace} steps/s, validation loss {:.4}",
            self.networks, self.steps, self.validation
        )
    }
}
