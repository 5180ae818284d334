//! Clips that motion is learned from: three or four of every label, made as an animator makes them. Start at [`all`].
//! `take` turns keyed poses into curves (each part of the face in its own time, overshoot, moving holds, blinks),
//! `faces` holds the poses, `moods` and `acts` the clips.

mod acts;
mod faces;
mod moods;
mod take;

use understudy_core::{Clip, ControlSpecs};

/// All of them, label after label; named `motion/LABEL_N`.
pub(super) fn all(specs: &ControlSpecs) -> Vec<Clip> {
    let takes = moods::all().into_iter().chain(acts::all());
    takes.map(|take| take.clip(specs)).collect()
}
