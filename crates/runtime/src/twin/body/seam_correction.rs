//! No cracks where groups meet. Two networks err independently, so the error jumps at their border. Every
//! network therefore also says where its neighbours' nearest vertices are (its ghosts). A vertex at a
//! border goes to the mean of all predictions; the correction fades over some rings into the group.

use crate::TwinError;
use understudy_core::{Vec3, Vec3A};

/// Which vertices are corrected, and from what: first those at borders, then ring after ring.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SeamCorrection {
    /// The vertices, `[M]`, each once.
    pub vertices: Vec<u32>,
    /// How many of them lie at a border.
    pub border: usize,
    /// How much of the correction is applied, `[M]`.
    pub shares: Vec<f32>,
    /// Where each vertex's sources start, `[M + 1]`.
    pub offsets: Vec<u32>,
    /// At a border: places in the list of all ghosts, group after group. Beyond: earlier entries of this
    /// list, whose mean is taken.
    pub sources: Vec<u32>,
}

impl SeamCorrection {
    /// Every index is in range and every vertex has a source.
    pub(super) fn check(&self, vertices: usize, ghosts: usize) -> Result<(), TwinError> {
        let entries = self.vertices.len();
        let count = |what: &str, got: usize, want: usize| {
            if got == want { Ok(()) } else { Err(TwinError::Count { what: what.into(), got, want }) }
        };
        let index = |what: &str, index: usize, count: usize| {
            if index < count { Ok(()) } else { Err(TwinError::Index { what: what.into(), index, count }) }
        };
        count("seams: shares", self.shares.len(), entries)?;
        count("seams: offsets", self.offsets.len(), entries + 1)?;
        index("seams: border", self.border, entries + 1)?;
        super::super::shared::check_finite(
            "seams: shares",
            self.shares.iter().map(|share| share.is_finite()),
        )?;
        let mut seen = vec![false; vertices];
        for &vertex in &self.vertices {
            index("seams: vertex", vertex as usize, vertices)?;
            if std::mem::replace(&mut seen[vertex as usize], true) {
                let what = "two entries of the seams".into();
                return Err(TwinError::Cover { vertex: vertex as usize, what });
            }
        }
        count("seams: first offset", self.offsets[0] as usize, 0)?;
        count("seams: sources", self.sources.len(), self.offsets[entries] as usize)?;
        for (entry, pair) in self.offsets.windows(2).enumerate() {
            index("seams: offset", pair[0] as usize, pair[1] as usize)?;
            index("seams: offset", pair[1] as usize, self.sources.len() + 1)?;
            let limit = if entry < self.border { ghosts } else { entry };
            for &source in &self.sources[pair[0] as usize..pair[1] as usize] {
                index("seams: source", source as usize, limit)?;
            }
        }
        Ok(())
    }
}

/// A [`SeamCorrection`] as evaluation wants it: nothing to divide, and an entry that only repeats another's correction
/// has none of its own.
#[derive(Debug, Clone)]
pub(super) struct PackedSeams {
    /// Vertices at borders.
    border: Vec<Mean>,
    /// Corrections that are means of several, each of earlier ones.
    means: Vec<Mean>,
    /// Of borders first, then of means.
    sources: Vec<u32>,
    /// What is added where, beyond the borders, in the order of the vertices.
    changes: Vec<Change>,
}

#[derive(Debug, Clone, Copy)]
struct Mean {
    /// At a border: the vertex, and how much of the correction it takes.
    vertex: u32,
    share: f32,
    /// Where its sources end.
    end: u32,
    /// One over the number of predictions.
    weight: f32,
}

#[derive(Debug, Clone, Copy)]
struct Change {
    vertex: u32,
    correction: u32,
    share: f32,
}

impl PackedSeams {
    /// Of a seams that was checked.
    pub fn new(seams: &SeamCorrection) -> Self {
        let mut out =
            Self { border: Vec::new(), means: Vec::new(), sources: Vec::new(), changes: Vec::new() };
        // The correction of every entry, so far.
        let mut place: Vec<u32> = Vec::with_capacity(seams.vertices.len());
        for (index, (&vertex, &share)) in seams.vertices.iter().zip(&seams.shares).enumerate() {
            let sources = &seams.sources[seams.offsets[index] as usize..seams.offsets[index + 1] as usize];
            let next = (out.border.len() + out.means.len()) as u32;
            if index < seams.border {
                out.sources.extend_from_slice(sources);
                // At a border the own prediction counts too.
                let weight = 1.0 / (sources.len() + 1) as f32;
                out.border.push(Mean { vertex, share, end: out.sources.len() as u32, weight });
                place.push(next);
                continue;
            }
            let correction = match sources {
                [one] => place[*one as usize],
                several => {
                    out.sources.extend(several.iter().map(|source| place[*source as usize]));
                    let weight = 1.0 / several.len() as f32;
                    out.means.push(Mean { vertex, share, end: out.sources.len() as u32, weight });
                    next
                }
            };
            place.push(correction);
            out.changes.push(Change { vertex, correction, share });
        }
        out.changes.sort_unstable_by_key(|change| change.vertex);
        out
    }

    /// Corrections that [`Self::apply`] keeps.
    pub fn working_size(&self) -> usize {
        self.border.len() + self.means.len()
    }

    /// Corrects the vertices of one pose. `ghosts`: all groups' predictions. `corrections`: working memory.
    pub fn apply(&self, ghosts: &[Vec3], corrections: &mut [Vec3A], out: &mut [Vec3]) {
        let mut start = 0;
        for (entry, correction) in self.border.iter().zip(&mut *corrections) {
            let place = &mut out[entry.vertex as usize];
            let (own, sources) = (Vec3A::from(*place), &self.sources[start..entry.end as usize]);
            let sum: Vec3A = sources.iter().map(|ghost| Vec3A::from(ghosts[*ghost as usize]) - own).sum();
            *correction = sum * entry.weight;
            *place = Vec3::from(own + *correction * entry.share);
            start = entry.end as usize;
        }
        for (index, entry) in self.means.iter().enumerate() {
            let sources = &self.sources[start..entry.end as usize];
            let sum: Vec3A = sources.iter().map(|source| corrections[*source as usize]).sum();
            corrections[self.border.len() + index] = sum * entry.weight;
            start = entry.end as usize;
        }
        for change in &self.changes {
            let place = &mut out[change.vertex as usize];
            let moved = Vec3A::from(*place) + corrections[change.correction as usize] * change.share;
            *place = Vec3::from(moved);
        }
    }
}
