//! `bench ik`: how near a face comes to points that are dragged, and how fast, beside iterative methods; and the closed
//! form of a limb. Points are those of held-out poses by the rig itself, without noise.

use crate::console::{Console, print, table};
use anyhow::{Context, Result, ensure};
use clap::Args;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;
use understudy_core::{Random, Vec3};
use understudy_io::dataset::DatasetReader;
use understudy_jobs::rigs;
use understudy_jobs::twin::eval::posing;
use understudy_jobs::twin::open_twin;
use understudy_learn::ik::{Rival, distance, solve_by};
use understudy_runtime::Twin;
use understudy_runtime::ik::{Bend, Correction, PointIk, PointSolver, TwoBone};

/// What to weigh.
#[derive(Debug, Args)]
pub struct IkArguments {
    /// A twin that follows points; limbs alone where none is named.
    twin: Option<PathBuf>,
    /// Datasets of held-out poses.
    #[arg(long = "data", value_name = "DIR", requires = "twin")]
    data: Vec<PathBuf>,
    /// A twin of dense networks that follows points, for Table 4.1.
    #[arg(long, value_name = "FILE.twin", requires = "twin")]
    dense: Option<PathBuf>,
    /// Most poses of each dataset.
    #[arg(long, value_name = "N", default_value_t = 100)]
    poses: usize,
}

/// What is aimed at: mean distance of points by the network alone and when corrected twice, mm; one solve of each, ms; and the
/// twin's distance from the rig on poses that it was made to take, mm.
const POINTS_MM: [f64; 2] = [1.0, 0.2];
const SOLVE_MS: [f64; 2] = [0.2, 10.0];
const TABLE_MM: f64 = 0.7;

/// A figure beside what is aimed at.
fn against(what: &str, figure: f64, target: f64, unit: &str) -> String {
    let verdict = if figure <= target { "met" } else { "missed" };
    format!("{what}: {figure:.3} {unit}, aimed at {target} {unit}: {verdict}")
}

/// Runs it.
pub fn run(arguments: &IkArguments) -> Result<()> {
    limbs()?;
    let Some(path) = &arguments.twin else { return Ok(()) };
    let (twin, ik) = open(path)?;
    let mut solver = ik.solver();
    print(&format!(
        "{}, {} twin: {} points, {} coordinates each",
        twin.header().rig,
        twin.method(),
        ik.points().len(),
        ik.dimensions()
    ));
    for data in &arguments.data {
        let sets = targets(data, &ik, arguments.poses)?;
        held_out(&data.display().to_string(), &mut solver, &sets)?;
        locality(&mut solver, &sets)?;
    }
    table_of_poses(arguments, &twin, &ik)
}

fn open(path: &Path) -> Result<(Twin, Arc<PointIk>)> {
    let twin = open_twin(path)?;
    let bytes = std::fs::read(path)?;
    let ik =
        PointIk::read(&bytes, &twin)?.with_context(|| format!("{}: follows no points", path.display()))?;
    Ok((twin, Arc::new(ik)))
}

/// Places of the points in poses that are spread over a dataset.
fn targets(folder: &Path, ik: &PointIk, most: usize) -> Result<Vec<Vec<Vec3>>> {
    let reader = DatasetReader::open(folder)?;
    let poses = reader.header().poses;
    let count = poses.min(most);
    let mut out = Vec::with_capacity(count);
    for index in 0..count {
        let pose = index * poses / count;
        let chunk = pose / reader.header().chunk_size;
        let vertices = reader.chunk(chunk)?.vertices_of(pose - reader.header().chunk_poses(chunk).start);
        out.push(ik.points().iter().map(|point| vertices[point.vertex as usize]).collect());
    }
    Ok(out)
}

/// The median, and the best: on a machine that does other work as well, the latter is what the method costs.
fn middle_and_best(mut times: Vec<f64>) -> [f64; 2] {
    times.sort_by(f64::total_cmp);
    [times.len() / 2, 0].map(|place| times.get(place).copied().unwrap_or(0.0))
}

/// Every method on every pose.
fn held_out(name: &str, solver: &mut PointSolver, sets: &[Vec<Vec3>]) -> Result<()> {
    type Solve<'a> = dyn FnMut(&mut PointSolver, &[Vec3], &mut [f32]) -> Result<()> + 'a;
    let dimensions = solver.ik().dimensions();
    let rest = sets.iter().map(|targets| distance(solver.ik().rest(), targets, dimensions)).sum::<f64>();
    let hybrid = |steps: usize| {
        move |solver: &mut PointSolver, targets: &[Vec3], controls: &mut [f32]| -> Result<()> {
            solver.solve(targets, controls)?;
            solver.correct(targets, &[], &Correction { steps, ..Correction::default() }, controls)?;
            Ok(())
        }
    };
    let rival = |rival: Rival| {
        move |solver: &mut PointSolver, targets: &[Vec3], controls: &mut [f32]| -> Result<()> {
            solve_by(rival, solver, targets, controls)?;
            Ok(())
        }
    };
    let (mut one, mut two, mut five) = (hybrid(1), hybrid(2), hybrid(5));
    let [mut least, mut inverse, mut lbfgs] = Rival::ALL.map(rival);
    let mut plain = |solver: &mut PointSolver, targets: &[Vec3], controls: &mut [f32]| -> Result<()> {
        Ok(solver.solve(targets, controls)?)
    };
    let methods: [(&str, &mut Solve<'_>); 7] = [
        ("network", &mut plain),
        ("network, one correction", &mut one),
        ("network, two corrections", &mut two),
        ("network, five corrections", &mut five),
        (Rival::ALL[0].title(), &mut least),
        (Rival::ALL[1].title(), &mut inverse),
        (Rival::ALL[2].title(), &mut lbfgs),
    ];
    let mut rows = vec![vec!["at rest".into(), format!("{:.3}", 10.0 * rest / sets.len() as f64)]];
    let mut controls = vec![0.0; solver.control_count()];
    let mut places = vec![Vec3::ZERO; solver.ik().points().len()];
    let mut verdicts = Vec::new();
    for (title, method) in methods {
        let (mut sum, mut most, mut times) = (0.0, 0.0f64, Vec::new());
        for (index, targets) in sets.iter().enumerate() {
            if index == 0 {
                method(solver, targets, &mut controls)?;
            }
            let start = Instant::now();
            method(solver, targets, &mut controls)?;
            times.push(start.elapsed().as_secs_f64() * 1e3);
            solver.points(&controls, &mut places)?;
            let off = 10.0 * distance(&places, targets, dimensions);
            (sum, most) = (sum + off, most.max(off));
        }
        let [middle, best] = middle_and_best(times);
        if let Some(place) = ["network", "network, two corrections"].iter().position(|known| *known == title)
        {
            verdicts.push(against(title, sum / sets.len() as f64, POINTS_MM[place], "mm"));
            verdicts.push(against(title, middle, SOLVE_MS[place], "ms"));
        }
        rows.push(vec![
            title.into(),
            format!("{:.3}", sum / sets.len() as f64),
            format!("{most:.3}"),
            format!("{middle:.3}"),
            format!("{best:.3}"),
        ]);
    }
    let head = ["method", "mean mm", "worst pose mm", "ms", "best ms"];
    print(&format!(
        "{name}: points of {} held-out poses, mean distance through the twin\n{}\n{}",
        sets.len(),
        table(&head, &rows),
        verdicts.join("\n")
    ));
    Ok(())
}

/// A point of an eye is moved: no control that only the mouth gives may change, by the network or by a correction of the
/// eye's region.
fn locality(solver: &mut PointSolver, sets: &[Vec<Vec3>]) -> Result<()> {
    let ik = Arc::clone(solver.ik());
    let regions: Vec<(String, Vec<u32>, Vec<u32>)> = ik
        .regions()
        .map(|(name, points, controls)| (name.into(), points.to_vec(), controls.to_vec()))
        .collect();
    let named = |part: &str| regions.iter().position(|(name, ..)| name.contains(part));
    let (Some(eye), Some(mouth)) = (named("eye"), named("mouth")) else { return Ok(()) };
    let others = |control: &u32| {
        regions.iter().enumerate().any(|(index, (_, _, own))| index != mouth && own.contains(control))
    };
    let own: Vec<u32> = regions[mouth].2.iter().copied().filter(|control| !others(control)).collect();
    let width = solver.control_count();
    let (mut before, mut after) = (vec![0.0; width], vec![0.0; width]);
    for targets in sets {
        let mut moved = targets.clone();
        moved[regions[eye].1[0] as usize] += Vec3::new(0.3, 0.3, 0.1);
        solver.solve(targets, &mut before)?;
        solver.solve(&moved, &mut after)?;
        solver.correct(&moved, &[eye], &Correction::default(), &mut after)?;
        for control in &own {
            ensure!(
                before[*control as usize] == after[*control as usize],
                "a point of an eye moved the mouth"
            );
        }
    }
    print(&format!(
        "a point of an eye moves none of the {} controls that only the mouth gives, bit by bit, in {} poses",
        own.len(),
        sets.len()
    ));
    Ok(())
}

/// Table 4.1.
fn table_of_poses(arguments: &IkArguments, twin: &Twin, ik: &Arc<PointIk>) -> Result<()> {
    let rig = rigs::open(&twin.header().rig, &Console)?.rig;
    let mut twins = vec![("twin".to_owned(), twin.clone())];
    let dense = arguments.dense.as_deref().map(open).transpose()?;
    twins.extend(dense.iter().map(|(twin, _)| ("dense networks".to_owned(), twin.clone())));
    let figures = posing::figures(ik, &twins, rig.as_ref())?;
    print(&figures.lines().join("\n"));
    let distance = figures.methods[0].distance_mm;
    print(&against("the twin on these poses", distance, TABLE_MM, "mm"));
    if let Some((other, own)) = &dense {
        let alone = [("dense networks".to_owned(), other.clone())];
        let posed = posing::figures(own, &alone, rig.as_ref())?;
        print(&format!("networks that were trained through the dense twin: {}", posed.lines().join("; ")));
        // The paper poses each by networks that were trained through itself.
        let [low, high] = posing::PAPER_RATIOS;
        let ratio = figures.methods[0].distance_mm / posed.methods[0].distance_mm.max(f64::MIN_POSITIVE);
        print(&format!(
            "each on its own poses: the twin leaves {ratio:.2} of what dense networks leave (paper: {low} to {high})"
        ));
    }
    Ok(())
}

/// Nanoseconds per limb, over many rounds.
fn limbs() -> Result<()> {
    const LIMBS: usize = 20_000;
    let mut random = Random::new(7);
    let mut vector = |size: f32| Vec3::from_array(std::array::from_fn(|_| random.uniform(-size, size)));
    let cases: Vec<[Vec3; 3]> = (0..LIMBS).map(|_| [vector(20.0), vector(50.0), vector(1.0)]).collect();
    let limb = TwoBone::new(28.0, 25.0)?;
    let mut rounds = Vec::new();
    let mut sum = Vec3::ZERO;
    for _ in 0..31 {
        let start = Instant::now();
        for [origin, target, pole] in &cases {
            sum += limb.solve(*origin, *target, Bend::Pole(*pole))?.middle;
        }
        rounds.push(start.elapsed().as_secs_f64() * 1e9 / LIMBS as f64);
    }
    ensure!(sum.is_finite(), "a limb is not finite");
    let [middle, best] = middle_and_best(rounds);
    print(&format!("two bones in closed form: {middle:.0} ns per limb (best round {best:.0})"));
    Ok(())
}
