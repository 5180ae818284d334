//! Do borders between groups of vertices show? How much the error jumps along edges, across borders and inside groups.

use super::figures::{Figures, Findings, Posed, Study};
use super::pictures::{Exhibit, SIZE};
use serde::Serialize;
use std::collections::BTreeMap;
use understudy_core::metrics::percentile;
use understudy_core::{Mesh, Random, Vec3};
use understudy_report::html::Section;
use understudy_report::raster::{Actor, Camera, RenderSettings, render};
use understudy_report::{HeatScale, Picture, Sheet};

/// How much the error jumps along edges, mm: across borders of groups and inside them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Seams {
    /// Mean over edges between groups.
    pub border_mm: f64,
    /// Mean over edges inside groups.
    pub inside_mm: f64,
    /// Their ratio: each border against the insides of the two groups that meet there. Where a rig is hard to
    /// follow groups are small and borders many; only neighbours compare.
    pub ratio: f64,
    /// The plain ratio of the two means.
    pub plain_ratio: f64,
    /// The plain ratio of fitted skinning with four influences on the very same edges, where it was weighed: it
    /// has no groups, so what exceeds 1 says how much harder the rig is to follow where our borders lie.
    pub control_ratio: Option<f64>,
    /// The plain ratio as a multiple of that: what the borders themselves add.
    pub against_control: Option<f64>,
}

/// The jumps of all methods along the same edges; the groups are the twin's.
pub(crate) struct SeamFigures {
    mesh: Mesh,
    names: Vec<String>,
    /// The group of every vertex.
    owner: Vec<u32>,
    edges: Vec<(u32, u32)>,
    /// Which method is the skinning.
    control: Option<usize>,
    /// Of every method, the twin first.
    jumps: Vec<Jumps>,
}

impl SeamFigures {
    /// `owner`: the group of every vertex.
    pub fn new(study: &Study<'_>, owner: Vec<u32>) -> Self {
        Self {
            mesh: study.mesh.clone(),
            names: study.names.to_vec(),
            owner,
            edges: study.mesh.adjacency().edges().collect(),
            control: study.names.iter().position(|name| name == "lbs4"),
            jumps: study.names.iter().map(|_| Jumps::default()).collect(),
        }
    }

    fn summary(&self) -> Seams {
        let nothing = Jumps::default();
        let control = self.control.map_or(&nothing, |control| &self.jumps[control]);
        self.jumps.first().unwrap_or(&nothing).summary(control)
    }
}

impl Figures for SeamFigures {
    fn add(&mut self, method: usize, posed: &Posed<'_>) {
        self.jumps[method].add_pose(&self.edges, &self.owner, posed);
    }

    fn findings(&self) -> Findings {
        let seams = self.summary();
        let mut out = Findings::default().field("seams", &seams).line(format!(
            "seams: the error jumps by {:.3} mm across borders of groups, by {:.3} mm inside ({:.2} times); against the \
             two groups that meet: {:.2} times",
            seams.border_mm, seams.inside_mm, seams.plain_ratio, seams.ratio
        ));
        if let (Some(control), Some(against)) = (seams.control_ratio, seams.against_control) {
            out = out.line(format!(
                "seams: fitted skinning, which has no groups, jumps {control:.2} times as far on the same edges; the \
                 twin {against:.2} times as far as that"
            ));
        }
        // Other twins, on borders that are none of theirs.
        let others = self.names.iter().zip(&self.jumps).enumerate().skip(1);
        let others = others.filter(|(method, _)| Some(*method) != self.control);
        let others: BTreeMap<&String, Seams> =
            others.map(|(_, (name, jumps))| (name, jumps.summary(&Jumps::default()))).collect();
        for (name, seams) in &others {
            out = out.line(format!(
                "seams: {name} jumps by {:.3} mm on the same borders, by {:.3} mm inside ({:.2} times); against the two \
                 groups that meet: {:.2} times",
                seams.border_mm, seams.inside_mm, seams.plain_ratio, seams.ratio
            ));
        }
        out.field("seams_of_others", &others)
    }

    fn section(&self, exhibits: &[Exhibit]) -> Option<Section> {
        let told =
            self.findings().lines.into_iter().map(|line| line.trim_start_matches("seams: ").to_owned());
        let text =
            "Where a rig is hard to follow groups are small and borders many: only neighbours compare.";
        let section = told.fold(Section::new("Seams"), Section::paragraph).paragraph(text);
        let sheet = seam_sheet(&self.mesh, &self.owner, exhibits);
        Some(section.picture(&sheet, "Groups of vertices, one network each, and how much the error jumps."))
    }
}

/// Sums of error jumps along edges: by group, and by pair of groups that meet.
#[derive(Default)]
struct Jumps {
    inside: BTreeMap<u32, (f64, usize)>,
    border: BTreeMap<(u32, u32), (f64, usize)>,
}

impl Jumps {
    fn add_pose(&mut self, edges: &[(u32, u32)], owner: &[u32], posed: &Posed<'_>) {
        let error = |vertex: u32| posed.vertices[vertex as usize] - posed.truth[vertex as usize];
        for &(a, b) in edges {
            let jump = 10.0 * (error(a) - error(b)).length();
            self.add(owner[a as usize], owner[b as usize], f64::from(jump));
        }
    }

    fn add(&mut self, a: u32, b: u32, jump: f64) {
        let slot = match a == b {
            true => self.inside.entry(a).or_default(),
            false => self.border.entry((a.min(b), a.max(b))).or_default(),
        };
        slot.0 += jump;
        slot.1 += 1;
    }

    /// Means over all edges between groups and over all inside.
    fn means(&self) -> (f64, f64) {
        let whole = |all: &mut dyn Iterator<Item = &(f64, usize)>| {
            mean(all.fold((0.0, 0), |(sum, count), (s, c)| (sum + s, count + c)))
        };
        (whole(&mut self.border.values()), whole(&mut self.inside.values()))
    }

    fn summary(&self, control: &Self) -> Seams {
        let inside = |group: u32| self.inside.get(&group).copied().map_or(0.0, mean);
        let (mut jumps, mut expected) = (0.0, 0.0);
        for ((a, b), (sum, count)) in &self.border {
            jumps += sum;
            expected += 0.5 * (inside(*a) + inside(*b)) * *count as f64;
        }
        let (border_mm, inside_mm) = self.means();
        let plain_ratio = ratio(border_mm, inside_mm);
        let control_ratio = (!control.border.is_empty()).then(|| ratio(control.means().0, control.means().1));
        Seams {
            border_mm,
            inside_mm,
            ratio: ratio(jumps, expected),
            plain_ratio,
            control_ratio,
            against_control: control_ratio.map(|control| ratio(plain_ratio, control)),
        }
    }
}

fn mean((sum, count): (f64, usize)) -> f64 {
    if count == 0 { 0.0 } else { sum / count as f64 }
}

fn ratio(above: f64, below: f64) -> f64 {
    if below > 0.0 { above / below } else { 0.0 }
}

/// Each group in a colour of its own, and beside it how much the twin's error differs from that of the
/// neighbouring vertices: a seam would show as a line along a border.
fn seam_sheet(mesh: &Mesh, owner: &[u32], exhibits: &[Exhibit]) -> Picture {
    let colour = |group: &u32| {
        let mut random = Random::stream(3, u64::from(*group));
        Vec3::new(random.uniform(0.25, 0.95), random.uniform(0.25, 0.95), random.uniform(0.25, 0.95))
    };
    let colours: Vec<Vec3> = owner.iter().map(colour).collect();
    let adjacency = mesh.adjacency();
    let jumps = |exhibit: &Exhibit| -> Vec<f32> {
        let error = |vertex: usize| exhibit.methods[0][vertex] - exhibit.truth[vertex];
        let jump = |vertex: usize| {
            let near = adjacency.neighbours(vertex);
            let sum: f32 = near.iter().map(|other| error(*other as usize).distance(error(vertex))).sum();
            10.0 * sum / near.len().max(1) as f32
        };
        (0..exhibit.truth.len()).map(jump).collect()
    };
    let shown: Vec<&Exhibit> = exhibits.iter().take(3).collect();
    let mut all: Vec<f32> = shown.iter().flat_map(|exhibit| jumps(exhibit)).collect();
    all.sort_unstable_by(f32::total_cmp);
    let scale = HeatScale::new(0.0, (percentile(&all, 99.0) as f32).max(1e-3), "jump of the error, mm");
    let labels = vec!["groups", "jump of the twin's error"];
    let mut sheet = Sheet::new(2).title("Seams").column_labels(labels).colour_bar(&scale);
    let settings = RenderSettings { width: SIZE, height: SIZE, ..RenderSettings::default() };
    for exhibit in shown {
        let camera = Camera::framing_points(&exhibit.truth, 30.0, 6.0, 1.0);
        let coloured = Actor::new(mesh.faces(), &exhibit.methods[0]).colours(&colours);
        sheet = sheet.cell(render(&[coloured], &camera, &settings), exhibit.caption.clone());
        let jumps = jumps(exhibit);
        let mean = jumps.iter().sum::<f32>() / jumps.len() as f32;
        let actor = Actor::new(mesh.faces(), &exhibit.methods[0]).heat(&jumps, &scale);
        sheet = sheet.cell(render(&[actor], &camera, &settings), format!("mean {mean:.3} mm"));
    }
    sheet.build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use understudy_core::{Adjacency, Face};

    #[test]
    fn jumps_are_those_of_the_definition() {
        let count = 40u32;
        let faces: Vec<Face> = (2..count).map(|v| Face::triangle(v - 2, v - 1, v)).collect();
        let owner: Vec<u32> = (0..count).map(|v| v / 9).collect();
        let mut random = Random::new(8);
        let mut field = || -> Vec<Vec<Vec3>> {
            let mut noise = || Vec3::from_array([0; 3].map(|_| random.uniform(-9.0, 9.0)));
            (0..3).map(|_| (0..count).map(|_| noise()).collect()).collect()
        };
        let (truth, other) = (field(), field());
        let edges: Vec<(u32, u32)> = Adjacency::from_faces(count as usize, &faces).edges().collect();
        let mut jumps = Jumps::default();
        for (number, (truth, vertices)) in truth.iter().zip(&other).enumerate() {
            jumps.add_pose(&edges, &owner, &Posed { number, truth, vertices, angles: &[] });
        }
        let found = jumps.summary(&Jumps::default());
        let [border, inside, plain, met] = understudy_testkit::figures::seams(&faces, &owner, &truth, &other);
        let pairs = [
            (found.border_mm, 10.0 * border),
            (found.inside_mm, 10.0 * inside),
            (found.plain_ratio, plain),
            (found.ratio, met),
        ];
        for (found, want) in pairs {
            assert!((found - want).abs() < 1e-6 * want, "{found} {want}");
        }
    }
}
