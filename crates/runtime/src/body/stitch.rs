//! No cracks where groups meet. Two networks err independently, so the error jumps at their border. Every
//! network therefore also says where its neighbours' nearest vertices are (its ghosts). A vertex at a
//! border goes to the mean of all opinions; the correction fades over some rings into the group.

use super::TwinError;
use understudy_core::{Vec3, Vec3A};

/// Which vertices are corrected, and from what: first those at borders, then ring after ring.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Stitch {
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

impl Stitch {
    /// Every index is in range and every vertex has a source.
    pub(super) fn check(&self, vertices: usize, ghosts: usize) -> Result<(), TwinError> {
        let entries = self.vertices.len();
        let count = |what: &str, got: usize, want: usize| {
            if got == want { Ok(()) } else { Err(TwinError::Count { what: what.into(), got, want }) }
        };
        let index = |what: &str, index: usize, count: usize| {
            if index < count { Ok(()) } else { Err(TwinError::Index { what: what.into(), index, count }) }
        };
        count("stitch: shares", self.shares.len(), entries)?;
        count("stitch: offsets", self.offsets.len(), entries + 1)?;
        index("stitch: border", self.border, entries + 1)?;
        super::check_finite("stitch: shares", self.shares.iter().map(|share| share.is_finite()))?;
        let mut seen = vec![false; vertices];
        for &vertex in &self.vertices {
            index("stitch: vertex", vertex as usize, vertices)?;
            if std::mem::replace(&mut seen[vertex as usize], true) {
                return Err(TwinError::Cover { vertex: vertex as usize, groups: 2 });
            }
        }
        count("stitch: first offset", self.offsets[0] as usize, 0)?;
        count("stitch: sources", self.sources.len(), self.offsets[entries] as usize)?;
        for (entry, pair) in self.offsets.windows(2).enumerate() {
            index("stitch: offset", pair[0] as usize, pair[1] as usize)?;
            index("stitch: offset", pair[1] as usize, self.sources.len() + 1)?;
            let limit = if entry < self.border { ghosts } else { entry };
            for &source in &self.sources[pair[0] as usize..pair[1] as usize] {
                index("stitch: source", source as usize, limit)?;
            }
        }
        Ok(())
    }
}

/// A [`Stitch`] as evaluation wants it: one entry after another, nothing to divide.
#[derive(Debug, Clone)]
pub(super) struct Needle {
    border: usize,
    entries: Vec<Entry>,
    sources: Vec<u32>,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    vertex: u32,
    /// Where its sources end.
    end: u32,
    /// One over the number of opinions.
    weight: f32,
    share: f32,
}

impl Needle {
    /// Of a stitch that was checked.
    pub fn new(stitch: &Stitch) -> Self {
        let entry = |index: usize| {
            let sources = stitch.offsets[index + 1] - stitch.offsets[index];
            // At a border one's own opinion counts too.
            let opinions = sources + u32::from(index < stitch.border);
            Entry {
                vertex: stitch.vertices[index],
                end: stitch.offsets[index + 1],
                weight: 1.0 / opinions as f32,
                share: stitch.shares[index],
            }
        };
        let entries = (0..stitch.vertices.len()).map(entry).collect();
        Self { border: stitch.border, entries, sources: stitch.sources.clone() }
    }

    /// Corrects the vertices of one pose. `ghosts`: all groups' opinions. `corrections`: working memory of
    /// `[M]`.
    pub fn apply(&self, ghosts: &[Vec3], corrections: &mut [Vec3A], out: &mut [Vec3]) {
        let (border, beyond) = self.entries.split_at(self.border);
        let mut start = 0;
        for (entry, correction) in border.iter().zip(&mut *corrections) {
            let place = &mut out[entry.vertex as usize];
            let (own, sources) = (Vec3A::from(*place), &self.sources[start..entry.end as usize]);
            let sum: Vec3A = sources.iter().map(|ghost| Vec3A::from(ghosts[*ghost as usize]) - own).sum();
            *correction = sum * entry.weight;
            *place = Vec3::from(own + *correction * entry.share);
            start = entry.end as usize;
        }
        for (index, entry) in beyond.iter().enumerate() {
            let sources = &self.sources[start..entry.end as usize];
            let sum: Vec3A = sources.iter().map(|source| corrections[*source as usize]).sum();
            let correction = sum * entry.weight;
            corrections[self.border + index] = correction;
            out[entry.vertex as usize] += Vec3::from(correction * entry.share);
            start = entry.end as usize;
        }
    }
}
