//! How many bones may move a vertex of a file: glTF guarantees four, and many engines play no more. What a skin loses
//! is measured and said. Start at [`Influences::new`].

use std::borrow::Cow;
use understudy_core::{GlobalPose, JointClip, Skeleton, SkinWeights, Vec3};

/// What every engine plays.
const GUARANTEED: usize = 4;
/// Frames per clip on which the difference is measured.
const FRAMES: usize = 32;

/// The weights that go into the file, and what was done to them.
pub(super) struct Influences<'a> {
    weights: Cow<'a, SkinWeights>,
    line: Option<String>,
}

impl<'a> Influences<'a> {
    /// Keeps the `wanted` largest influences per vertex, four where nothing is said. `clips` is called only where a
    /// vertex has more than four.
    pub fn new(
        skeleton: &Skeleton,
        weights: &'a SkinWeights,
        rest: &[Vec3],
        wanted: Option<usize>,
        clips: impl FnOnce() -> Vec<JointClip>,
    ) -> Self {
        let (has, keep) = (weights.max_influences(), wanted.unwrap_or(GUARANTEED));
        if has <= keep.min(GUARANTEED) {
            return Self { weights: Cow::Borrowed(weights), line: None };
        }
        let cut = weights.strongest(keep.min(GUARANTEED));
        let shown = match difference(skeleton, weights, &cut, rest, &clips()) {
            Some([rms, max]) => {
                format!("{rms:.3} mm (RMS) and {max:.2} mm (max) from the whole skin in its clips")
            }
            None => "somewhere else, which no clip is there to measure".to_owned(),
        };
        if has <= keep {
            let line = format!("{has} influences per vertex; engines that play four show vertices {shown}");
            return Self { weights: Cow::Borrowed(weights), line: Some(line) };
        }
        let cut = if keep > GUARANTEED { weights.strongest(keep) } else { cut };
        let line = format!(
            "the {keep} largest of up to {has} influences per vertex; with {} vertices are {shown} (--influences {has} keeps all)",
            keep.min(GUARANTEED)
        );
        Self { weights: Cow::Owned(cut), line: Some(line) }
    }

    /// What the file holds.
    pub fn weights(&self) -> &SkinWeights {
        &self.weights
    }

    /// What a person should know of it; nothing where all is as it was and every engine plays it.
    pub fn line(&self) -> Option<String> {
        self.line.clone()
    }
}

/// Root mean square and largest distance, mm, between two skins over frames of clips; `None` without any frame.
fn difference(
    skeleton: &Skeleton,
    whole: &SkinWeights,
    cut: &SkinWeights,
    rest: &[Vec3],
    clips: &[JointClip],
) -> Option<[f64; 2]> {
    let (mut global, mut matrices) = (GlobalPose::default(), Vec::new());
    let (mut a, mut b) = (vec![Vec3::ZERO; rest.len()], vec![Vec3::ZERO; rest.len()]);
    let (mut squared, mut max, mut frames) = (0.0f64, 0.0f64, 0usize);
    for clip in clips {
        for pose in clip.poses.iter().step_by(clip.poses.len().div_ceil(FRAMES).max(1)) {
            if skeleton.forward(pose, &mut global).is_err() {
                continue;
            }
            skeleton.skinning_matrices(&global, &mut matrices);
            whole.linear_blend(&matrices, rest, &mut a);
            cut.linear_blend(&matrices, rest, &mut b);
            for (a, b) in a.iter().zip(&b) {
                let distance = f64::from(a.distance(*b)) * 10.0;
                squared += distance * distance;
                max = max.max(distance);
            }
            frames += 1;
        }
    }
    (frames > 0).then(|| [(squared / (frames * rest.len().max(1)) as f64).sqrt(), max])
}
