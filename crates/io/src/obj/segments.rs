//! Groups of an OBJ file as segments, and the notes that keep segments which groups cannot say: a face
//! that spans two, a vertex without a face, an empty segment.

use std::collections::HashMap;
use understudy_core::{Face, Mesh, Segments};

/// The kinds of statement that name a group, the strongest first.
const KINDS: [&str; 3] = ["g", "o", "usemtl"];

/// Names in force at each polygon, by each kind of statement.
#[derive(Default)]
pub(super) struct Labels {
    names: Vec<String>,
    known: HashMap<String, u32>,
    current: [Option<u32>; 3],
    used: [bool; 3],
    of_polygon: Vec<[Option<u32>; 3]>,
}

impl Labels {
    /// A statement `g`, `o` or `usemtl`.
    pub fn name(&mut self, keyword: &str, rest: &str) {
        let name = rest.split_whitespace().collect::<Vec<_>>().join(" ");
        let name = if name.is_empty() { "default".to_owned() } else { name };
        let next = self.names.len() as u32;
        let label = *self.known.entry(name.clone()).or_insert(next);
        if label == next {
            self.names.push(name);
        }
        if let Some(kind) = KINDS.iter().position(|kind| *kind == keyword) {
            self.current[kind] = Some(label);
        }
    }

    /// A polygon.
    pub fn face(&mut self) {
        for (used, current) in self.used.iter_mut().zip(&self.current) {
            *used |= current.is_some();
        }
        self.of_polygon.push(self.current);
    }

    /// A vertex is in the group of its first face, one without a face in the first group. `g` counts
    /// where there is any, else `o`, else `usemtl`; without any the mesh is one segment.
    pub fn segments(&self, faces: &[Face], polygon_of: &[usize], vertex_count: usize) -> Segments {
        let Some(kind) = self.used.iter().position(|used| *used) else { return Segments::default() };
        let mut segments = Segments { names: Vec::new(), of_vertex: vec![u32::MAX; vertex_count] };
        let mut segment_of: HashMap<Option<u32>, u32> = HashMap::new();
        for (face, polygon) in faces.iter().zip(polygon_of) {
            let label = self.of_polygon[*polygon][kind];
            let segment = *segment_of.entry(label).or_insert_with(|| {
                let name = label.map_or("default", |label| self.names[label as usize].as_str());
                segments.names.push(name.into());
                segments.names.len() as u32 - 1
            });
            for &corner in face.corners() {
                let slot = &mut segments.of_vertex[corner as usize];
                if *slot == u32::MAX {
                    *slot = segment;
                }
            }
        }
        segments.of_vertex.iter_mut().filter(|slot| **slot == u32::MAX).for_each(|slot| *slot = 0);
        segments
    }
}

/// Comment lines of our own: `#! segment NAME` in order, then `#! vertices COUNT SEGMENT` in runs.
#[derive(Default)]
pub(super) struct Notes {
    names: Vec<String>,
    runs: Vec<(usize, u32)>,
}

impl Notes {
    pub const PREFIX: &str = "#! ";

    /// What follows the prefix.
    pub fn read(&mut self, note: &str) -> Result<(), String> {
        if let Some(name) = note.strip_prefix("segment ") {
            self.names.push(name.to_owned());
            return Ok(());
        }
        let Some(run) = note.strip_prefix("vertices ") else { return Ok(()) };
        let mut words = run.split_whitespace().map(str::parse::<u32>);
        match (words.next(), words.next(), words.next()) {
            (Some(Ok(count)), Some(Ok(segment)), None) => self.runs.push((count as usize, segment)),
            _ => return Err("two numbers expected".into()),
        }
        Ok(())
    }

    /// The segments that the notes say, `None` without notes.
    pub fn segments(self, vertex_count: usize) -> Option<Result<Segments, String>> {
        if self.names.is_empty() {
            return None;
        }
        let total = self.runs.iter().fold(0usize, |sum, (count, _)| sum.saturating_add(*count));
        if total != vertex_count {
            return Some(Err(format!("for {total} vertices, but there are {vertex_count}")));
        }
        let of_vertex =
            self.runs.iter().flat_map(|(count, segment)| std::iter::repeat_n(*segment, *count)).collect();
        Some(Ok(Segments { names: self.names, of_vertex }))
    }

    /// Writes the notes for a mesh.
    pub fn write(names: &[String], of_vertex: &[u32], out: &mut String) {
        for name in names {
            out.push_str(&format!("{}segment {name}\n", Self::PREFIX));
        }
        for run in of_vertex.chunk_by(|a, b| a == b) {
            out.push_str(&format!("{}vertices {} {}\n", Self::PREFIX, run.len(), run[0]));
        }
    }
}

/// A name that survives a line of text: single spaces, no line break, no continuation.
pub(super) fn line_name(name: &str) -> String {
    let name = name.replace('\\', "/").split_whitespace().collect::<Vec<_>>().join(" ");
    if name.is_empty() { "default".into() } else { name }
}

/// What [`Labels`] would make of the mesh when every face is written under the group of its first corner.
pub(super) fn inferred(mesh: &Mesh, names: &[String]) -> Segments {
    let mut labels = Labels::default();
    for face in mesh.faces() {
        labels.name("g", &names[mesh.segments().of_vertex[face.corners()[0] as usize] as usize]);
        labels.face();
    }
    let polygons: Vec<usize> = (0..mesh.faces().len()).collect();
    labels.segments(mesh.faces(), &polygons, mesh.vertex_count())
}
