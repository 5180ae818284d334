//! Table 4.1 of the paper: how far a twin is from the rig on poses that inverse kinematics gives, which are unlike those it
//! was trained on. Twenty-five sets of dragged points, some out of reach, lie in `dragged.csv` by the names of the points,
//! the same for every face; a face with other points gets sets that are drawn.

use super::EvalConfig;
use crate::JobError;
use crate::twin::data::open_twin;
use serde::Serialize;
use std::sync::Arc;
use understudy_core::metrics::{distances, normal_angles};
use understudy_core::{Controls, Random, Vec3};
use understudy_learn::ik::point_errors;
use understudy_rigs::{Rig, RigPose};
use understudy_runtime::ik::PointIk;
use understudy_runtime::{Pose, Twin};

/// Sets of dragged points, as many as the paper has.
const SETS: usize = 25;

/// The stored sets: a row per point that leaves its rest, how far it is dragged in cm. One to three regions a set, in each
/// a point or two by up to 2 cm; in odd sets their neighbours come along, as with a soft selection.
const DRAGGED: &str = include_str!("dragged.csv");

/// Distance of the paper's own method by that of its dense networks: from the best to the worst of its characters.
pub const PAPER_RATIOS: [f64; 2] = [0.14, 0.49];

/// The table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PosingFigures {
    /// Sets of dragged points.
    pub sets: usize,
    /// How far points are from where they were dragged to, by the network and when corrected, mm; some are out of reach.
    pub points_mm: [f64; 2],
    /// The twin first, then those that it is weighed against.
    pub methods: Vec<PosingRow>,
}

/// One method against the rig.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PosingRow {
    /// Name.
    pub name: String,
    /// Mean over vertices, mm.
    pub distance_mm: f64,
    /// Mean over faces, degrees.
    pub normal_deg: f64,
    /// The first method's distance by this one's.
    pub ratio: f64,
}

/// Weighs a twin that follows points; nothing where it follows none, or where the rig is not at hand.
pub(super) fn weigh(
    config: &EvalConfig,
    twin: &Twin,
    rig: Option<&dyn Rig>,
) -> Result<Option<PosingFigures>, JobError> {
    let bytes = understudy_io::read_bytes(&config.twin)?;
    let ik = PointIk::read(&bytes, twin).map_err(|error| JobError::unusable(&config.twin, error))?;
    let same = |rig: &&dyn Rig| {
        let own = twin.header().inputs.controls.iter().map(|spec| &spec.name);
        own.eq(rig.specs().iter().map(|spec| &spec.name))
    };
    let (Some(ik), Some(rig)) = (ik, rig.filter(same)) else { return Ok(None) };
    let mut others = vec![("twin".to_owned(), twin.clone())];
    for (name, path) in &config.against {
        let other = open_twin(path)?;
        // Only what is posed by the same controls can be.
        if other.header().inputs.bones.is_empty()
            && other.header().inputs.controls == twin.header().inputs.controls
        {
            others.push((name.clone(), other));
        }
    }
    figures(&Arc::new(ik), &others, rig).map(Some)
}

/// The table for some twins, posed by one's networks.
pub fn figures(
    ik: &Arc<PointIk>,
    twins: &[(String, Twin)],
    rig: &dyn Rig,
) -> Result<PosingFigures, JobError> {
    let failed = |error| JobError::unusable(rig.name(), error);
    let mut solver = ik.solver();
    let mut players: Vec<_> = twins.iter().map(|(_, twin)| twin.player(1)).collect();
    let mut controls = Controls(vec![0.0; solver.control_count()]);
    let mut out = vec![Vec3::ZERO; rig.mesh().vertex_count()];
    let mut truth = RigPose::default();
    let (mut sums, mut points) = (vec![[0.0f64; 2]; twins.len()], [0.0f64; 2]);
    for set in 0..SETS {
        let targets = stored(ik, set).unwrap_or_else(|| drawn(ik, set));
        let errors = point_errors(&mut solver, &targets, ik.dimensions()).map_err(failed)?;
        points.iter_mut().zip(errors).for_each(|(sum, error)| *sum += 10.0 * error / SETS as f64);
        solver.solve(&targets, &mut controls.0).map_err(failed)?;
        rig.evaluate(&controls, &mut truth).map_err(JobError::rig(rig.name()))?;
        for (player, sums) in players.iter_mut().zip(&mut sums) {
            player.pose(Pose::Controls(&controls.0), &mut out).map_err(failed)?;
            let mean = |values: &[f32]| {
                values.iter().map(|v| f64::from(*v)).sum::<f64>() / values.len().max(1) as f64
            };
            sums[0] += 10.0 * mean(&distances(&out, &truth.vertices)) / SETS as f64;
            sums[1] += mean(&normal_angles(rig.mesh().faces(), &truth.vertices, &out)) / SETS as f64;
        }
    }
    let first = sums[0][0];
    let row = |((name, _), [distance_mm, normal_deg]): (&(String, Twin), &[f64; 2])| PosingRow {
        name: name.clone(),
        distance_mm: *distance_mm,
        normal_deg: *normal_deg,
        ratio: first / distance_mm.max(f64::MIN_POSITIVE),
    };
    Ok(PosingFigures { sets: SETS, points_mm: points, methods: twins.iter().zip(&sums).map(row).collect() })
}

/// A stored set; nothing where a point of it is none of this face's.
fn stored(ik: &PointIk, set: usize) -> Option<Vec<Vec3>> {
    let mut targets = ik.rest().to_vec();
    for (of, name, offset) in DRAGGED.lines().skip(1).filter_map(row) {
        let point = ik.find(name)?;
        if of == set + 1 {
            targets[point] += offset;
        }
    }
    Some(targets)
}

/// A row of the stored sets: which set, which point, how far, cm.
fn row(line: &str) -> Option<(usize, &str, Vec3)> {
    let mut cells = line.split(',');
    let (set, name) = (cells.next()?.parse().ok()?, cells.next()?);
    let mut number = || cells.next()?.parse().ok();
    Some((set, name, Vec3::new(number()?, number()?, number()?)))
}

/// A set for a face with points of its own, by the law that the stored ones were drawn by.
fn drawn(ik: &PointIk, set: usize) -> Vec<Vec3> {
    const REACH_CM: f32 = 2.0;
    let mut random = Random::stream(0x41, set as u64);
    let mut targets = ik.rest().to_vec();
    let regions: Vec<Vec<u32>> = ik.regions().map(|(_, points, _)| points.to_vec()).collect();
    for _ in 0..1 + random.below(3) {
        let region = &regions[random.below(regions.len())];
        for _ in 0..1 + random.below(2) {
            let point = region[random.below(region.len())] as usize;
            let direction =
                Vec3::new(random.normal() as f32, random.normal() as f32, 0.4 * random.normal() as f32);
            let offset = direction.normalize_or_zero() * random.uniform(0.3, REACH_CM);
            for other in region.iter().map(|other| *other as usize) {
                let away = ik.rest()[other].distance(ik.rest()[point]);
                let share = match (other == point, set.is_multiple_of(2)) {
                    (true, _) => 1.0,
                    (false, true) => (-(away / REACH_CM).powi(2)).exp(),
                    (false, false) => 0.0,
                };
                targets[other] += offset * share;
            }
        }
    }
    targets
}

impl PosingFigures {
    /// For people.
    pub fn lines(&self) -> Vec<String> {
        let [network, corrected] = self.points_mm;
        let mut lines = vec![format!(
            "posed by {} sets of dragged points, some out of reach: points are {network:.2} mm off by the network, \
             {corrected:.2} mm when corrected",
            self.sets
        )];
        for (index, row) in self.methods.iter().enumerate() {
            let [low, high] = PAPER_RATIOS;
            let ratio = match index {
                0 => String::new(),
                _ => format!(
                    "; the twin leaves {:.2} of it (paper: {low} to {high} of dense networks)",
                    row.ratio
                ),
            };
            lines.push(format!(
                "{} differs from the rig there by {:.3} mm and {:.2}°{ratio}",
                row.name, row.distance_mm, row.normal_deg
            ));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::{DRAGGED, SETS, row};
    use std::collections::BTreeSet;

    #[test]
    fn stored_sets_are_whole_and_name_points_of_the_scheme() {
        let rows: Vec<_> = DRAGGED.lines().skip(1).map(row).collect();
        assert!(rows.len() > 4 * SETS && rows.iter().all(Option::is_some), "every line is a row");
        let sets: BTreeSet<usize> = rows.iter().flatten().map(|(set, ..)| *set).collect();
        assert_eq!(sets, (1..=SETS).collect(), "no set is empty");
        let scheme = crate::twin::ik::multi_pie();
        for (set, name, offset) in rows.into_iter().flatten() {
            assert!(scheme.iter().any(|(_, known, _)| known == name), "{set}: {name}");
            assert!(offset.is_finite() && offset.length() < 4.5, "{set}, {name}: {offset:?}");
        }
        let far = DRAGGED.lines().skip(1).filter_map(row).filter(|(.., offset)| offset.length() > 1.5);
        assert!(far.count() >= 5, "some are out of reach");
    }
}
