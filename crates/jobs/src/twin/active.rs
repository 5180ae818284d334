//! Active sampling: in rounds, poses are drawn where a small ensemble disagrees most, and the rig says what they look
//! like. Beside it, for comparison, as many plainly random poses. Start at [`sample_actively`].

use super::auto::method_of;
use crate::outputs::check_folder;
use crate::sample::SampleConfig;
use crate::{Event, JobError, Watch, rigs, threads};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;
use understudy_core::metrics::summarise;
use understudy_core::{Affine3A, Controls, Random, SkinWeights, Vec3};
use understudy_io::dataset::{Chunk, DatasetHeader, DatasetRest, DatasetWriter, RigFile};
use understudy_io::write_atomic;
use understudy_learn::ensemble::{Ensemble, EnsembleSettings};
use understudy_report::plot::{LinePlot, Plot, Scale, Series};
use understudy_rigs::sampling::{Method, SamplingConfig};
use understudy_rigs::{Rig, RigPose};

/// What to record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ActiveConfig {
    /// A rig by name or file.
    pub rig: String,
    /// Folder of the dataset.
    pub output: PathBuf,
    /// How many poses.
    pub poses: u64,
    /// A quarter of them at least is drawn at random, the others come in so many rounds.
    pub rounds: usize,
    /// Where proposals are drawn from; `None` for the rig's clips times noise where it has some, else sparse.
    pub method: Option<Method>,
    /// Clips of the rig from which nothing is proposed.
    pub exclude: Vec<String>,
    /// Share of every clip's frames from which nothing is proposed: they are for tests.
    pub hold_out: f32,
    /// Proposals per pose that is taken.
    pub proposals: usize,
    /// How strongly disagreement decides: proposals are taken with a chance that grows with this power of it.
    pub greed: f64,
    /// The same seed gives the same dataset.
    pub seed: u64,
    /// Threads; the dataset does not depend on it.
    pub threads: usize,
    /// Poses a chunk; `None` for the usual number. An interrupted run loses those of the chunk that it was filling.
    pub chunk: Option<u64>,
    /// Processes or connections of a rig that is another program, as [`SampleConfig::workers`].
    pub workers: Option<usize>,
    /// Seconds that such a rig has for an answer.
    pub timeout: f64,
    /// Also evaluate as many plainly random poses, and measure both.
    pub compare: bool,
    /// Folder for `active.csv` and `active.svg` of that comparison.
    pub report: Option<PathBuf>,
}

impl Default for ActiveConfig {
    fn default() -> Self {
        Self {
            rig: String::new(),
            output: PathBuf::new(),
            poses: 1000,
            rounds: 6,
            method: None,
            exclude: Vec::new(),
            hold_out: 0.0,
            proposals: 8,
            greed: 2.0,
            seed: 1,
            threads: threads::available(),
            chunk: None,
            workers: None,
            timeout: SampleConfig::default().timeout,
            compare: true,
            report: None,
        }
    }
}

/// Poses that both are measured by.
const TEST_POSES: u64 = 300;
/// Vertices that the ensemble learns, spread evenly.
const VERTICES: usize = 700;
/// Keeps streams of random numbers apart.
const RANDOM_ARM: u64 = 0x72616e64;
const TEST_ARM: u64 = 0x74657374;
const CHOICE: u64 = 0x63686f69;

/// How well an ensemble that was trained on some poses predicts others.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ActiveError {
    /// Mean distance of a vertex, mm.
    pub mean_mm: f64,
    /// 95 % of the vertices are nearer, mm.
    pub p95_mm: f64,
}

/// One round.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ActiveRound {
    /// Poses evaluated so far.
    pub poses: usize,
    /// Mean disagreement about the proposals of the next round, mm.
    pub disagreement_mm: f64,
    /// Error with these poses, where it was asked for.
    pub active: Option<ActiveError>,
    /// Error with as many random ones.
    pub random: Option<ActiveError>,
}

/// What was recorded.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ActiveReport {
    /// Folder of the dataset.
    pub folder: PathBuf,
    /// The rig.
    pub rig: String,
    /// Where proposals were drawn from.
    pub method: Method,
    /// Poses in the dataset.
    pub poses: usize,
    /// Those of them that an earlier run had recorded already: the rig was not asked for them again.
    pub resumed_from: usize,
    /// In order.
    pub rounds: Vec<ActiveRound>,
    /// Share of the random poses with which the active ones reach the random ones' last error (mean and 95 %); above 1
    /// where they do not.
    pub share: Option<[f64; 2]>,
    /// The comparison as a table, and as a picture.
    pub files: Vec<PathBuf>,
    /// Duration.
    pub seconds: f64,
}

/// Records the dataset. The same settings give the same bytes. Poses of chunks that an earlier run wrote are read, not asked
/// of the rig again; a folder that is whole is left as it is. Poses of the comparison with random ones lie in no folder:
/// every run with [`ActiveConfig::compare`] asks for these.
pub fn sample_actively(config: &ActiveConfig, watch: &dyn Watch) -> Result<ActiveReport, JobError> {
    check_folder(&config.output)?;
    config.report.as_deref().map(check_folder).transpose()?;
    let asked = SampleConfig {
        rig: config.rig.clone(),
        workers: config.workers,
        timeout: config.timeout,
        threads: config.threads,
        ..SampleConfig::default()
    };
    let opened = rigs::open_with(&config.rig, asked.external()?, watch)?.rig;
    if opened.specs().is_empty() {
        return Err(JobError::unusable(&config.rig, "has no controls to pose"));
    }
    let method = match config.method {
        None => method_of(opened.as_ref()),
        Some(Method::Clips) => {
            return Err(JobError::setting("--method", "frames of clips are not drawn: noise is, on clips"));
        }
        Some(method) => method,
    };
    record(opened.as_ref(), method, config, watch)
}

/// [`sample_actively`] with the rig at hand.
pub fn record(
    rig: &dyn Rig,
    method: Method,
    config: &ActiveConfig,
    watch: &dyn Watch,
) -> Result<ActiveReport, JobError> {
    let total = usize::try_from(config.poses).unwrap_or(usize::MAX);
    if total < 8 || config.rounds == 0 || config.proposals == 0 {
        let problem = "at least 8 poses, one round and one proposal per pose are wanted";
        return Err(JobError::setting("--active", problem));
    }
    if config.chunk == Some(0) {
        return Err(JobError::setting("--chunk", "at least one pose per chunk is wanted"));
    }
    if !(config.greed.is_finite() && config.greed >= 0.0) {
        return Err(JobError::setting("greed", format!("{}; 0 or more is wanted", config.greed)));
    }
    let start = Instant::now();
    let source = |seed: u64| {
        let sampling = SamplingConfig {
            method,
            seed,
            exclude: config.exclude.clone(),
            hold_out: config.hold_out,
            ..SamplingConfig::default()
        };
        sampling.build(rig.specs(), rig.clips()).map_err(JobError::sampling(&config.rig))
    };
    let mut settings = BTreeMap::from([
        ("proposals".to_owned(), format!("{} {} per pose", config.proposals, method)),
        ("rounds".to_owned(), config.rounds.to_string()),
        ("greed".to_owned(), config.greed.to_string()),
    ]);
    if !config.exclude.is_empty() {
        settings.insert("exclude".into(), config.exclude.join(", "));
    }
    if config.hold_out > 0.0 {
        settings.insert("held_out".into(), format!("the others, a share of {}", config.hold_out));
    }
    let header = DatasetHeader {
        rig: rigs::lasting(&config.rig).into_owned(),
        rig_file: (!rigs::Names::contains(&config.rig))
            .then(|| RigFile::new(Path::new(&config.rig), &config.output))
            .flatten(),
        method: "active".into(),
        seed: config.seed,
        settings,
        controls: rig.specs().clone(),
        poses: total,
        chunk_size: config.chunk.map_or(DatasetHeader::CHUNK_SIZE, |chunk| chunk as usize),
    };
    let rest = DatasetRest {
        mesh: rig.mesh().clone(),
        skeleton: rig.skeleton().cloned(),
        weights: rig.skin_weights().cloned(),
    };
    let pool = threads::pool(config.threads)?;
    let sampler = Sampler { rig, config, local: Local::new(rig), watch };
    let proposals = source(config.seed)?;
    // A rig that fails at once leaves no folder behind; one that has answered before is not asked.
    if !config.output.join("dataset.toml").exists() {
        sampler.evaluate(&[proposals.pose(0)])?;
    }
    let writer = DatasetWriter::resume(&config.output, &header, &rest)?;
    let mut recorder = Recorder::new(writer, &header);

    let mut first = (total / 4).max(2).min(total);
    first += (total - first) % config.rounds;
    let batch = (total - first) / config.rounds;
    let what = format!("sampling {} actively", config.rig);
    let per_arm = total as u64;
    let whole = if config.compare { 2 * per_arm + TEST_POSES } else { per_arm };
    watch.event(Event::Started { what: &what, total: whole, unit: "poses" });
    pool.install(|| {
        let test = match config.compare {
            true => {
                let test = source(config.seed ^ TEST_ARM)?;
                Some(sampler.rows(&(0..TEST_POSES).map(|i| test.pose(i)).collect::<Vec<_>>(), None)?)
            }
            false => None,
        };
        let plain = source(config.seed ^ RANDOM_ARM)?;
        let (mut active, mut random) = (Rows::default(), Rows::default());
        let mut drawn = first as u64;
        let mut chosen: Vec<Controls> = (0..drawn).map(|i| proposals.pose(i)).collect();
        // Both begin with the same poses.
        let mut others: Vec<Controls> = if config.compare { chosen.clone() } else { Vec::new() };
        let (mut rounds, mut plain_drawn) = (Vec::new(), 0u64);
        loop {
            active.append(sampler.rows(&chosen, Some(&mut recorder))?);
            random.append(sampler.rows(&others, None)?);
            watch.event(Event::Step { done: (active.len() + random.len()) as u64 });
            let ensemble = active.ensemble(config.seed);
            let last = active.len() >= total;
            let pool = if last { 1 } else { batch * config.proposals } as u64;
            let candidates: Vec<Controls> = (drawn..drawn + pool).map(|i| proposals.pose(i)).collect();
            drawn += pool;
            let unsure: Vec<f64> = candidates.par_iter().map(|one| ensemble.disagreement(&one.0)).collect();
            rounds.push(ActiveRound {
                poses: active.len(),
                // Over the three numbers of a vertex, cm.
                disagreement_mm: 10.0 * 3f64.sqrt() * unsure.iter().sum::<f64>() / unsure.len() as f64,
                active: test.as_ref().map(|test| test.error(&ensemble)),
                random: test.as_ref().map(|test| test.error(&random.ensemble(config.seed))),
            });
            if last {
                break;
            }
            let places = take(&unsure, batch, config, rounds.len() as u64);
            chosen = places.into_iter().map(|place| candidates[place].clone()).collect();
            if config.compare {
                others = (plain_drawn..plain_drawn + batch as u64).map(|i| plain.pose(i)).collect();
                plain_drawn += batch as u64;
            }
        }
        let resumed_from = recorder.known;
        recorder.finish()?;
        watch.event(Event::Finished);
        let share = share(&rounds);
        let mut report = ActiveReport {
            folder: config.output.clone(),
            rig: config.rig.clone(),
            method,
            poses: total,
            resumed_from,
            rounds,
            share,
            files: Vec::new(),
            seconds: start.elapsed().as_secs_f64(),
        };
        if let (Some(folder), true) = (&config.report, config.compare) {
            report.files = write(folder, &report)?;
        }
        Ok(report)
    })
}

/// Places of the proposals that are taken: those with the largest `greed · ln d + g`, `g` from Gumbel's distribution,
/// which draws without replacement with chances that go like `d^greed`.
fn take(unsure: &[f64], count: usize, config: &ActiveConfig, round: u64) -> Vec<usize> {
    let mut random = Random::stream(config.seed ^ CHOICE, round);
    let key = |d: &f64| {
        let uniform = f64::from(random.uniform(1e-6, 1.0));
        config.greed * d.max(1e-12).ln() - (-uniform.ln()).max(1e-12).ln()
    };
    let keys: Vec<f64> = unsure.iter().map(key).collect();
    let mut places: Vec<usize> = (0..unsure.len()).collect();
    places.sort_by(|a, b| keys[*b].total_cmp(&keys[*a]));
    places.truncate(count);
    // In the order of the proposals: it does not matter, and is easier to follow.
    places.sort_unstable();
    places
}

/// What no linear skin explains: `T_i⁻¹ v_i − u_i` with the blended transforms `T_i` of the rig's own skin; offsets from
/// rest where it shows none. This is what twins must learn.
struct Local {
    chosen: Vec<u32>,
    rest: Vec<Vec3>,
    skin: Option<(SkinWeights, Vec<Affine3A>)>,
}

impl Local {
    fn new(rig: &dyn Rig) -> Self {
        let rest = rig.mesh().positions();
        let count = rest.len().min(VERTICES);
        let chosen: Vec<u32> = (0..count).map(|i| (i * rest.len() / count) as u32).collect();
        let skin = rig
            .skin_weights()
            .zip(rig.skeleton())
            .map(|(weights, skeleton)| (weights.clone(), skeleton.inverse_bind().to_vec()));
        Self { rest: chosen.iter().map(|v| rest[*v as usize]).collect(), chosen, skin }
    }

    fn row(&self, pose: &RigPose) -> Vec<f32> {
        let offset = |(vertex, rest): (&u32, &Vec3)| {
            let place = pose.vertices[*vertex as usize];
            let Some((weights, inverse)) = &self.skin else { return (place - *rest).to_array() };
            let mut blend = Affine3A::ZERO;
            for (bone, weight) in weights.row(*vertex as usize) {
                let matrix = pose.global.0[bone] * inverse[bone];
                blend.matrix3 += matrix.matrix3 * weight;
                blend.translation += matrix.translation * weight;
            }
            // A blend of opposite rotations has no inverse: nothing is learned there.
            match blend.matrix3.determinant().abs() > 0.05 {
                true => (blend.inverse().transform_point3(place) - *rest).to_array(),
                false => [0.0; 3],
            }
        };
        self.chosen.iter().zip(&self.rest).flat_map(offset).collect()
    }
}

/// Poses as the ensemble sees them.
#[derive(Default)]
struct Rows {
    controls: Vec<f32>,
    offsets: Vec<f32>,
    shape: [usize; 2],
}

impl Rows {
    fn len(&self) -> usize {
        self.offsets.len() / self.shape[1].max(1)
    }

    fn append(&mut self, other: Self) {
        self.controls.extend(other.controls);
        self.offsets.extend(other.offsets);
        self.shape = if other.shape[1] > 0 { other.shape } else { self.shape };
    }

    fn ensemble(&self, seed: u64) -> Ensemble {
        let [inputs, width] = self.shape;
        let settings = EnsembleSettings { seed, ..EnsembleSettings::default() };
        Ensemble::fit(&self.controls, inputs, &self.offsets, width, &settings)
    }

    fn error(&self, ensemble: &Ensemble) -> ActiveError {
        let [inputs, width] = self.shape;
        let rows = self.controls.par_chunks_exact(inputs).zip(self.offsets.par_chunks_exact(width));
        let misses: Vec<Vec<f32>> = rows
            .map(|(controls, truth)| {
                let mut out = vec![0.0; width];
                ensemble.predict(controls, &mut out);
                let pairs = out.chunks_exact(3).zip(truth.chunks_exact(3));
                pairs.map(|(a, b)| Vec3::from_slice(a).distance(Vec3::from_slice(b))).collect()
            })
            .collect();
        let summary = summarise(&misses.concat());
        ActiveError { mean_mm: summary.mean * 10.0, p95_mm: summary.p95 * 10.0 }
    }
}

struct Sampler<'a> {
    rig: &'a dyn Rig,
    config: &'a ActiveConfig,
    local: Local,
    watch: &'a dyn Watch,
}

impl Sampler<'_> {
    /// The rig's word, some poses at a time; recorded on the way where that is wanted, and read where it was recorded before.
    fn rows(&self, poses: &[Controls], mut recorder: Option<&mut Recorder>) -> Result<Rows, JobError> {
        const AT_ONCE: usize = 64;
        let mut rows =
            Rows { shape: [self.rig.specs().len(), 3 * self.local.chosen.len()], ..Rows::default() };
        for poses in poses.chunks(AT_ONCE) {
            if self.watch.should_stop() {
                return Err(JobError::Stopped);
            }
            let known = match recorder.as_deref_mut() {
                Some(recorder) => recorder.known(poses)?,
                None => vec![None; poses.len()],
            };
            let asked = poses.iter().zip(&known).filter(|(_, known)| known.is_none());
            let asked: Vec<Controls> = asked.map(|(controls, _)| controls.clone()).collect();
            let mut answers = self.evaluate(&asked)?.into_iter();
            for (controls, known) in poses.iter().zip(known) {
                let was_known = known.is_some();
                let posed = known.or_else(|| answers.next()).expect("what is not known was asked");
                rows.controls.extend_from_slice(&controls.0);
                rows.offsets.extend(self.local.row(&posed));
                if let Some(recorder) = recorder.as_deref_mut() {
                    recorder.push(controls, &posed, was_known)?;
                }
            }
        }
        Ok(rows)
    }

    fn evaluate(&self, poses: &[Controls]) -> Result<Vec<RigPose>, JobError> {
        let one = |controls: &Controls| {
            let mut pose = RigPose::default();
            self.rig.evaluate(controls, &mut pose).map_err(JobError::rig(&self.config.rig))?;
            Ok(pose)
        };
        poses.par_iter().map(one).collect()
    }
}

/// Fills chunks in order; those that an earlier run wrote are read, and left as they are.
struct Recorder {
    writer: DatasetWriter,
    chunk: Chunk,
    /// Whether all poses of the chunk were read from the file that it has.
    is_kept: bool,
    size: usize,
    total: usize,
    /// Poses so far, and those of them that an earlier run recorded.
    pushed: usize,
    known: usize,
    /// The chunk that was read last, and its number.
    read: Option<(usize, Option<Chunk>)>,
}

impl Recorder {
    fn new(writer: DatasetWriter, header: &DatasetHeader) -> Self {
        let size = header.chunk_size.min(header.poses);
        let chunk = Chunk::with_capacity(writer.shape(), size);
        Self { writer, chunk, is_kept: true, size, total: header.poses, pushed: 0, known: 0, read: None }
    }

    /// Of the poses that come next, what an earlier run recorded. A chunk whose controls are others (the ensemble of another
    /// version chose them) counts for nothing and is written anew.
    fn known(&mut self, next: &[Controls]) -> Result<Vec<Option<RigPose>>, JobError> {
        let mut out = Vec::with_capacity(next.len());
        for (ahead, controls) in next.iter().enumerate() {
            let (index, pose) = ((self.pushed + ahead) / self.size, (self.pushed + ahead) % self.size);
            if self.read.as_ref().is_none_or(|(number, _)| *number != index) {
                self.read = Some((index, self.writer.chunk(index)?));
            }
            let chunk = self.read.as_ref().and_then(|(_, chunk)| chunk.as_ref());
            let same = chunk.filter(|chunk| chunk.controls_of(pose) == *controls);
            out.push(same.map(|chunk| {
                let mut found = RigPose::default();
                found.vertices = chunk.vertices_of(pose);
                found.global = chunk.skeleton_of(pose);
                found
            }));
        }
        Ok(out)
    }

    fn push(&mut self, controls: &Controls, pose: &RigPose, was_known: bool) -> Result<(), JobError> {
        self.chunk
            .push(controls, &pose.global, &pose.vertices)
            .map_err(|problem| JobError::Machine(problem.to_string()))?;
        self.known += usize::from(was_known);
        self.is_kept &= was_known;
        self.pushed += 1;
        if self.chunk.len() == self.size || self.pushed == self.total {
            if !self.is_kept {
                self.writer.write_chunk((self.pushed - 1) / self.size, &self.chunk)?;
            }
            self.chunk.clear();
            self.is_kept = true;
        }
        Ok(())
    }

    fn finish(self) -> Result<(), JobError> {
        Ok(self.writer.finish()?)
    }
}

/// With what share of the random poses the active ones reach the last random error; by straight lines between rounds in
/// logarithms.
fn share(rounds: &[ActiveRound]) -> Option<[f64; 2]> {
    let last = rounds.last()?;
    let of = |pick: fn(&ActiveError) -> f64| -> Option<f64> {
        let goal = pick(last.random.as_ref()?).ln();
        let curve: Vec<[f64; 2]> = rounds
            .iter()
            .filter_map(|round| Some([(round.poses as f64).ln(), pick(round.active.as_ref()?).ln()]))
            .collect();
        let total = (last.poses as f64).ln();
        let reached = curve.iter().position(|[_, error]| *error <= goal);
        Some(match reached {
            Some(0) => (curve[0][0] - total).exp(),
            Some(place) => {
                let ([x, y], [to, below]) = (curve[place - 1], curve[place]);
                let along = (y - goal) / (y - below).max(1e-12);
                (x + along * (to - x) - total).exp()
            }
            // Beyond the last round: at the pace of the whole curve.
            None => {
                let ([x, y], [to, below]) = (curve[0], *curve.last()?);
                let slope = (below - y) / (to - x).max(1e-12);
                if slope < -1e-6 { ((goal - below) / slope).exp() } else { f64::INFINITY }
            }
        })
    };
    Some([of(|error| error.mean_mm)?, of(|error| error.p95_mm)?])
}

fn write(folder: &Path, report: &ActiveReport) -> Result<Vec<PathBuf>, JobError> {
    let mut table =
        String::from("poses,active_mean_mm,active_p95_mm,random_mean_mm,random_p95_mm,disagreement_mm\n");
    let mut lines: [Vec<[f64; 2]>; 2] = Default::default();
    for round in &report.rounds {
        let (Some(active), Some(random)) = (round.active, round.random) else { continue };
        table += &format!(
            "{},{:.5},{:.5},{:.5},{:.5},{:.5}\n",
            round.poses, active.mean_mm, active.p95_mm, random.mean_mm, random.p95_mm, round.disagreement_mm
        );
        lines[0].push([round.poses as f64, active.mean_mm]);
        lines[1].push([round.poses as f64, random.mean_mm]);
    }
    let [active, random] = lines;
    let plot = LinePlot::new(format!("{}: error against poses evaluated", report.rig))
        .x_label("poses")
        .y_label("mean error of a small ensemble, mm")
        .x_scale(Scale::Log)
        .y_scale(Scale::Log)
        .series(Series::new("active", active))
        .series(Series::new("random", random));
    let files = vec![folder.join("active.csv"), folder.join("active.svg")];
    write_atomic(&files[0], table.as_bytes())?;
    write_atomic(&files[1], plot.to_svg().as_bytes())?;
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn greed_takes_what_is_disagreed_about_and_none_takes_anything() {
        let unsure: Vec<f64> = (0..400).map(|i| if i % 10 == 0 { 1.0 } else { 0.1 }).collect();
        let surest = |greed: f64| {
            let config = ActiveConfig { greed, ..ActiveConfig::default() };
            let places = take(&unsure, 40, &config, 1);
            assert_eq!((places.len(), places.clone()), (40, take(&unsure, 40, &config, 1)));
            assert!(places.windows(2).all(|pair| pair[0] < pair[1]), "each once");
            places.iter().filter(|place| *place % 10 == 0).count()
        };
        assert!(surest(6.0) > 36 && surest(0.0) < 12, "{} {}", surest(6.0), surest(0.0));
    }

    #[test]
    fn the_share_is_read_between_rounds() {
        let error = |mean_mm: f64| Some(ActiveError { mean_mm, p95_mm: 2.0 * mean_mm });
        let round = |poses, active, random| ActiveRound {
            poses,
            disagreement_mm: 0.0,
            active: error(active),
            random: error(random),
        };
        let rounds = [round(100, 8.0, 8.0), round(200, 2.0, 4.0), round(400, 1.0, 2.0)];
        let [mean, p95] = share(&rounds).expect("errors are there");
        assert!((mean - 0.5).abs() < 1e-9 && (p95 - 0.5).abs() < 1e-9, "{mean} {p95}");
        // Worse than random: more poses than there are.
        let rounds = [round(100, 8.0, 8.0), round(400, 4.0, 2.0)];
        assert!(share(&rounds).expect("errors are there")[0] > 1.9);
        assert!(share(&[]).is_none());
    }
}
