//! Teaches the nets on scenes: five in turn, the face's first. Every batch is drawn from the seed, the net and the step alone, so a
//! training that was stopped goes on to the same bytes.

use super::crops::{Crop, disturb, normalise};
use super::file::{self, FileError};
use super::layout::{POINTS, Region, coarse, points_of};
use super::nets::{FACE_SIDE, Header, LandmarkNets, NETS, Stance, nets_of};
use super::scenes::{Scene, SceneSettings, clutter};
use crate::Frame;
use crate::actors::Cast;
use crate::inverse_rendering::Detected;
use crate::mediapipe::Sighting;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use understudy_core::{Random, arkit};
use understudy_learn::style::{
    HeatMapLoss, Hourglass, HourglassBatch, HourglassShape, HourglassTrainer, Target, Tensor,
};

/// How nets are trained.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetSettings {
    /// Of people, pictures and weights.
    pub seed: u64,
    /// People.
    pub people: usize,
    /// Pictures of each.
    pub each: usize,
    /// Side of a picture, pixels.
    pub side: usize,
    /// Steps of the face's net.
    pub face_steps: usize,
    /// Steps of each region's net.
    pub region_steps: usize,
    /// Pictures in a step.
    pub batch: usize,
    /// Channels of all nets to the usual ones.
    pub width: f32,
}

/// A setting that makes no sense.
#[derive(Debug, Clone, PartialEq, Error)]
#[error("{name} is {value}, wanted is {wanted}")]
pub struct SettingsError {
    /// Which.
    pub name: &'static str,
    /// Given.
    pub value: f64,
    /// What would do.
    pub wanted: &'static str,
}

/// People that two cores draw, and steps that they take, per minute of training.
const PEOPLE_PER_MINUTE: f32 = 6.0;
const FACE_STEPS_PER_MINUTE: f32 = 100.0;
const REGION_STEPS_PER_MINUTE: f32 = 75.0;

impl NetSettings {
    /// For about so many minutes on two cores.
    pub fn for_minutes(minutes: f32, seed: u64) -> Result<Self, SettingsError> {
        if !(minutes.is_finite() && (0.1..=10_000.0).contains(&minutes)) {
            let wanted = "0.1 to 10000";
            return Err(SettingsError { name: "minutes", value: f64::from(minutes), wanted });
        }
        let of = |rate: f32, least: usize| ((rate * minutes) as usize).max(least);
        Ok(Self {
            seed,
            people: of(PEOPLE_PER_MINUTE, 2).min(160),
            each: 24,
            side: 320,
            face_steps: of(FACE_STEPS_PER_MINUTE, 20),
            region_steps: of(REGION_STEPS_PER_MINUTE, 20),
            batch: 16,
            width: 1.0,
        })
    }

    /// Checks them.
    pub fn check(&self) -> Result<(), SettingsError> {
        let range = |name, value: usize, low: usize, high: usize, wanted| match (low..=high).contains(&value)
        {
            true => Ok(()),
            false => Err(SettingsError { name, value: value as f64, wanted }),
        };
        range("people", self.people, 1, 1 << 16, "1 to 65536")?;
        range("pictures of each person", self.each, 1, 10_000, "1 to 10000")?;
        range("side of a picture", self.side, 64, 2048, "64 to 2048")?;
        range("steps of the face's net", self.face_steps, 1, 1 << 30, "at least 1")?;
        range("steps of a region's net", self.region_steps, 1, 1 << 30, "at least 1")?;
        range("pictures in a step", self.batch, 2, 4096, "2 to 4096")?;
        match (0.2..=4.0).contains(&self.width) {
            true => Ok(()),
            false => Err(SettingsError { name: "width", value: f64::from(self.width), wanted: "0.2 to 4" }),
        }
    }

    /// How their pictures are drawn.
    pub fn scenes(&self) -> SceneSettings {
        SceneSettings { side: self.side, each: self.each, seed: self.seed }
    }

    fn shapes(&self) -> Vec<HourglassShape> {
        let wide = |channels: &[usize]| -> Vec<usize> {
            channels.iter().map(|c| ((*c as f32 * self.width).round() as usize).max(4)).collect()
        };
        let face = HourglassShape {
            side: 64,
            channels: wide(&[12, 24, 40, 56, 64]),
            heat_level: 1,
            points: coarse().len(),
            scores: arkit::SHAPES.len(),
        };
        let region = |region: Region| HourglassShape {
            side: 64,
            channels: wide(&[12, 24, 36, 48]),
            heat_level: 1,
            points: region.points().len(),
            scores: 0,
        };
        std::iter::once(face).chain(Region::NETS.into_iter().map(region)).collect()
    }
}

/// Which net is being trained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stage {
    /// Its name.
    pub name: &'static str,
    /// Steps done.
    pub done: usize,
    /// Of so many.
    pub steps: usize,
}

/// Where a training stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Progress {
    pub net: usize,
    pub steps: usize,
}

/// A training.
pub struct NetTraining {
    settings: NetSettings,
    places: Vec<[f32; 3]>,
    scenes: Vec<Scene>,
    sides: Vec<f32>,
    trainers: Vec<HourglassTrainer>,
    net: usize,
}

/// Heat of the face's net and of the regions' nets.
const LOSSES: [HeatMapLoss; 2] =
    [HeatMapLoss { spread: 1.0, place: 1.0 }, HeatMapLoss { spread: 1.2, place: 1.0 }];
/// Largest rate of Adam.
const RATE: f32 = 4e-3;
/// Share of the face net's pictures without a face.
const WITHOUT: f64 = 0.08;
/// Share of those with a face that is searched for rather than followed.
const SEARCHED: f64 = 0.35;
/// How much of a picture a region's points fill at most.
const FILLED: f32 = 0.72;

fn rate(step: usize, steps: usize) -> f32 {
    let share = step as f32 / steps.max(1) as f32;
    let rise = (share / 0.06).min(1.0);
    rise * RATE * (0.01 + 0.99 * 0.5 * (1.0 + (std::f32::consts::PI * share).cos()))
}

/// The mean face's points, cm.
fn mean_places(cast: &Cast) -> Option<Vec<[f32; 3]>> {
    let head = cast.mean();
    let positions = head.mesh.positions();
    let camera = cast.rendered(64).camera;
    let marks = &head.marks;
    let all = marks.fixed().into_iter().chain(marks.inner_lips(positions, &camera));
    let mut places: Vec<[f32; 3]> = all.map(|mark| mark.place(positions).as_vec3().to_array()).collect();
    places.extend(marks.pupils?.map(|pupil| positions[pupil as usize].to_array()));
    (places.len() == POINTS).then_some(places)
}

impl NetTraining {
    /// Begins a training for faces like a cast's.
    pub fn new(settings: NetSettings, cast: &Cast) -> Result<Self, SettingsError> {
        settings.check()?;
        let Some(places) = mean_places(cast) else {
            let wanted = "a head with lips and pupils";
            return Err(SettingsError { name: "points of the head", value: 0.0, wanted });
        };
        let trainers = settings.shapes().into_iter().enumerate().map(|(index, shape)| {
            let net = Hourglass::new(shape, settings.seed ^ ((index as u64) << 32)).expect("checked sizes");
            HourglassTrainer::new(net, LOSSES[index.min(1)])
        });
        Ok(Self {
            settings,
            places,
            scenes: Vec::new(),
            sides: Vec::new(),
            trainers: trainers.collect(),
            net: 0,
        })
    }

    /// Takes pictures; all are wanted before the first step.
    pub fn add(&mut self, scenes: Vec<Scene>) {
        self.scenes.extend(scenes);
    }

    /// How large the regions are; after the last picture and before the first step.
    pub fn measure(&mut self) {
        let reach = |net: usize| {
            let mut reach: Vec<f32> = Vec::new();
            for scene in &self.scenes {
                let stance = Stance::of(&scene.points);
                for region in Region::ALL.into_iter().filter(|region| region.net().0 == net) {
                    let crop = stance.region(region, &scene.points, 1.0);
                    let places = region.points().into_iter().map(|k| crop.from_frame(scene.points[k]));
                    reach.push(places.flatten().fold(0.0, |most, value| most.max(value.abs())));
                }
            }
            reach.sort_by(f32::total_cmp);
            // Nearly all of them; the last percent are faces seen from the side.
            let most = reach.get(reach.len().saturating_sub(1 + reach.len() / 100)).copied().unwrap_or(1.0);
            (most / FILLED).clamp(0.2, 10.0)
        };
        self.sides = (0..Region::NETS.len()).map(reach).collect();
    }

    /// What is being trained; nothing when all are.
    pub fn stage(&self) -> Option<Stage> {
        let name = match self.net {
            0 => "the face",
            1 => "an eye",
            net => Region::NETS.get(net - 1)?.name(),
        };
        Some(Stage { name, done: self.trainers[self.net].steps(), steps: self.steps(self.net) })
    }

    /// Steps of all nets so far.
    pub fn steps_done(&self) -> usize {
        self.trainers.iter().map(HourglassTrainer::steps).sum()
    }

    fn steps(&self, net: usize) -> usize {
        if net == 0 { self.settings.face_steps } else { self.settings.region_steps }
    }

    /// One step; gives its cost.
    ///
    /// # Panics
    /// Where there are no pictures, or all nets are trained.
    pub fn step(&mut self) -> f64 {
        assert!(!self.scenes.is_empty() && self.sides.len() + 1 == NETS, "pictures that are measured");
        let (net, done, steps) = (self.net, self.trainers[self.net].steps(), self.steps(self.net));
        let batch = self.batch(net, done);
        let cost = self.trainers[net].step(&batch, rate(done, steps));
        if done + 1 >= steps {
            self.net += 1;
        }
        cost
    }

    fn batch(&self, net: usize, step: usize) -> HourglassBatch {
        let side = self.trainers[net].net().shape().side;
        let length = 3 * side * side;
        let mut data = vec![0.0; self.settings.batch * length];
        let seed = self.settings.seed ^ 0x6261_7463 ^ ((net as u64) << 48);
        let one = |(image, picture): (usize, &mut [f32])| {
            let mut random = Random::stream(seed, (step * self.settings.batch + image) as u64);
            match net {
                0 => self.face_example(picture, side, &mut random),
                _ => (self.region_example(net - 1, picture, side, &mut random), Vec::new()),
            }
        };
        let truths: Vec<(Vec<Target>, Vec<f32>)> =
            data.par_chunks_exact_mut(length).enumerate().map(one).collect();
        let (targets, scores): (Vec<_>, Vec<_>) = truths.into_iter().unzip();
        HourglassBatch {
            pictures: Tensor::new([self.settings.batch, 3, side, side], data),
            targets: targets.concat(),
            scores: scores.concat(),
        }
    }

    fn face_example(&self, picture: &mut [f32], side: usize, random: &mut Random) -> (Vec<Target>, Vec<f32>) {
        let scene = &self.scenes[random.below(self.scenes.len())];
        let points = coarse();
        let truth = match random.unit() < WITHOUT {
            true => {
                empty(scene, picture, side, random);
                (vec![Target::Nowhere; points.len()], vec![f32::NAN; arkit::SHAPES.len()])
            }
            false => {
                let crop = moved_face(scene, random);
                crop.sample(&scene.frame, side, picture);
                (targets(&crop, scene, &points), scene.shapes.clone())
            }
        };
        disturb(picture, side, random);
        normalise(picture);
        truth
    }

    fn region_example(
        &self,
        net: usize,
        picture: &mut [f32],
        side: usize,
        random: &mut Random,
    ) -> Vec<Target> {
        let scene = &self.scenes[random.below(self.scenes.len())];
        let of_net: Vec<Region> = Region::ALL.into_iter().filter(|region| region.net().0 == net).collect();
        let region = of_net[random.below(of_net.len())];
        let crop = Stance::of(&scene.points).region(region, &scene.points, self.sides[net]);
        // As far off as the first net may be.
        let shift = [0; 2].map(|_| random.normal() as f32 * 0.035 * crop.side);
        let crop = Crop {
            centre: [crop.centre[0] + shift[0], crop.centre[1] + shift[1]],
            side: crop.side * (0.06 * random.normal() as f32).exp(),
            turn: crop.turn + 0.06 * random.normal() as f32,
            ..crop
        };
        crop.sample(&scene.frame, side, picture);
        disturb(picture, side, random);
        normalise(picture);
        targets(&crop, scene, &region.points())
    }

    /// What a run needs to go on: the header and all numbers.
    pub fn checkpoint(&self) -> Vec<u8> {
        let mut header = self.header(0.0);
        let trainer = &self.trainers[self.net.min(NETS - 1)];
        header.progress = Some(Progress { net: self.net, steps: trainer.steps() });
        let mut numbers = self.numbers();
        numbers.extend(trainer.averages());
        file::write(&header, &numbers)
    }

    /// Goes on where a checkpoint was taken, with the same settings and pictures.
    pub fn restore(&mut self, bytes: &[u8]) -> Result<(), FileError> {
        let (header, numbers): (Header, _) = file::read(bytes)?;
        let other = |what: &str| FileError::Header(format!("of a training with other {what}"));
        let progress =
            header.progress.ok_or_else(|| FileError::Header("no training to go on with".into()))?;
        if header.settings != self.settings {
            return Err(other("settings"));
        }
        let mut wanted = self.header(0.0);
        wanted.progress = header.progress;
        if header != wanted || progress.net > NETS {
            return Err(other("pictures"));
        }
        let (nets, averages) = nets_of(&header, &numbers)?;
        let current = progress.net.min(NETS - 1);
        let [count, _] = header.counts[current];
        if averages.len() != 2 * count {
            return Err(FileError::Damaged);
        }
        let mut trainers = Vec::new();
        for (index, net) in nets.into_iter().enumerate() {
            let (values, running) = net.numbers();
            let mut trainer = HourglassTrainer::new(net.clone(), LOSSES[index.min(1)]);
            let steps = match index.cmp(&progress.net) {
                std::cmp::Ordering::Less => self.steps(index),
                std::cmp::Ordering::Equal => progress.steps,
                std::cmp::Ordering::Greater => 0,
            };
            let own = match index == current {
                true => [averages[..count].to_vec(), averages[count..].to_vec()],
                false => [vec![0.0; values.len()], vec![0.0; values.len()]],
            };
            let restored = trainer.restore(values, running, own, steps);
            restored.map_err(|error| FileError::Header(error.to_string()))?;
            trainers.push(trainer);
        }
        (self.trainers, self.net) = (trainers, progress.net);
        Ok(())
    }

    fn numbers(&self) -> Vec<&[f32]> {
        self.trainers.iter().flat_map(|trainer| <[&[f32]; 2]>::from(trainer.net().numbers())).collect()
    }

    fn header(&self, presence: f32) -> Header {
        let nets = || self.trainers.iter().map(HourglassTrainer::net);
        Header {
            settings: self.settings,
            shapes: nets().map(|net| net.shape().clone()).collect(),
            counts: nets().map(|net| net.numbers()).map(|(a, b)| [a.len(), b.len()]).collect(),
            sides: self.sides.clone(),
            presence,
            places: self.places.clone(),
            progress: None,
        }
    }

    /// The nets as they are; how sure the first one must be lies between pictures with a face and pictures without.
    pub fn nets(&self) -> Result<LandmarkNets, FileError> {
        let nets = self.trainers.iter().map(|trainer| trainer.net().clone()).collect();
        let mut made = LandmarkNets::new(self.header(0.0), nets)?;
        let side = self.trainers[0].net().shape().side;
        let one = |index: usize| {
            let mut random = Random::stream(self.settings.seed ^ 0x7072_6573, index as u64);
            let scene = &self.scenes[random.below(self.scenes.len())];
            let stance = Stance::of(&scene.points).crop();
            let crop = Crop { side: stance.side * random.uniform(0.9, 1.15), ..stance };
            let face = made.coarse(&scene.frame, crop).1;
            let mut picture = vec![0.0; 3 * side * side];
            empty(scene, &mut picture, side, &mut random);
            let ground = frame_of(&picture, side);
            let whole = Crop { centre: [0.5 * side as f32; 2], side: side as f32, turn: 0.0, mirror: false };
            (face, made.coarse(&ground, whole).1)
        };
        let pairs: Vec<(f32, f32)> = (0..SAMPLES).into_par_iter().map(one).collect();
        let (mut faces, mut grounds): (Vec<f32>, Vec<f32>) = pairs.into_iter().unzip();
        faces.sort_by(f32::total_cmp);
        grounds.sort_by(f32::total_cmp);
        let (low, high) = (faces[SAMPLES / 50], grounds[SAMPLES - 1 - SAMPLES / 50]);
        made.header.presence = if low > high { high + 0.35 * (low - high) } else { 0.5 * (low + high) };
        Ok(made)
    }
}

/// Pictures of either kind that the limit of certainty is set by.
const SAMPLES: usize = 150;

fn frame_of(picture: &[f32], side: usize) -> Frame {
    let mut frame = Frame::black(side, side);
    for (index, rgb) in frame.rgb_mut().chunks_exact_mut(3).enumerate() {
        (0..3).for_each(|c| rgb[c] = (255.0 * picture[c * side * side + index]).clamp(0.0, 255.0) as u8);
    }
    frame
}

/// A picture without a face: clutter, or a part of a scene that shows none.
fn empty(scene: &Scene, picture: &mut [f32], side: usize, random: &mut Random) {
    if random.unit() < 0.6 {
        let ground = clutter(side, side, random);
        let whole = Crop { centre: [0.5 * side as f32; 2], side: side as f32, turn: 0.0, mirror: false };
        whole.sample(&ground, side, picture);
        return;
    }
    // Below the chin, or a patch of skin so near that nothing is told by it.
    let stance = Stance::of(&scene.points);
    let crop = match random.unit() < 0.5 {
        true => Crop {
            centre: [stance.centre[0], stance.centre[1] + 3.2 * stance.radius],
            side: random.uniform(1.5, 3.0) * stance.radius,
            turn: 0.0,
            mirror: false,
        },
        false => {
            let cheek = scene.points[if random.unit() < 0.5 { 3 } else { 13 }];
            Crop { centre: cheek, side: random.uniform(0.3, 0.6) * stance.radius, turn: 0.0, mirror: false }
        }
    };
    crop.sample(&scene.frame, side, picture);
}

/// A face's picture as following or searching gives it.
fn moved_face(scene: &Scene, random: &mut Random) -> Crop {
    let stance = Stance::of(&scene.points);
    let (low, high) = if random.unit() < SEARCHED { (0.8f32, 2.6f32) } else { (0.85, 1.25) };
    let larger = random.uniform(low.ln(), high.ln()).exp();
    let side = FACE_SIDE * stance.radius * larger;
    // A larger picture may have the face anywhere in it.
    let slack = 0.10 * FACE_SIDE * stance.radius + 0.5 * (side - FACE_SIDE * stance.radius).max(0.0);
    let shift = [0; 2].map(|_| random.uniform(-1.0, 1.0) * slack);
    let turn = if random.unit() < 0.5 { 0.12 * random.normal() as f32 } else { random.uniform(-0.5, 0.5) };
    Crop {
        centre: [stance.centre[0] + shift[0], stance.centre[1] + shift[1]],
        side,
        turn: stance.turn + turn,
        mirror: false,
    }
}

fn targets(crop: &Crop, scene: &Scene, points: &[usize]) -> Vec<Target> {
    let one = |point: &usize| {
        let place = crop.from_frame(scene.points[*point]);
        match place.iter().all(|value| value.abs() < 0.98) {
            true => Target::At(place),
            false => Target::Unknown,
        }
    };
    points.iter().map(one).collect()
}

/// How far points are off, pixels of the frame, in the mean over frames whose face was found; NaN where
/// it was found in none.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NetErrors {
    /// Frames.
    pub frames: usize,
    /// Frames whose face was found.
    pub found: usize,
    /// All points.
    pub all: f64,
    /// The 68 landmarks.
    pub landmarks: f64,
    /// By region.
    pub regions: Vec<(&'static str, f64)>,
    /// The contours of the lips alone.
    pub contours: f64,
    /// The pupils alone.
    pub pupils: f64,
    /// The first net alone, on the landmarks that it places.
    pub coarse: f64,
    /// The mean error of scores of expressions.
    pub scores: f64,
}

/// Looks at frames with known points, each as if it were the first.
pub fn errors(nets: &mut LandmarkNets, frames: &[(Frame, Detected, Vec<f32>)]) -> NetErrors {
    use super::layout::{PUPILS, SKIN, multi_pie};
    let distance = |a: [f32; 2], b: [f32; 2]| f64::from((a[0] - b[0]).hypot(a[1] - b[1]));
    let mut sums = [0.0; POINTS];
    let (mut landmarks, mut first, mut scores, mut found) = (0.0, 0.0, [0.0; 2], 0usize);
    for (frame, seen, shapes) in frames {
        let Some(truth) = points_of(seen) else { continue };
        nets.forget();
        if nets.look(frame) == Sighting::None {
            continue;
        }
        found += 1;
        let face = nets.face().clone();
        for (sum, (a, b)) in sums.iter_mut().zip(face.points.iter().zip(&truth)) {
            *sum += distance(*a, *b);
        }
        if let (Some(a), Some(b)) = (multi_pie(&face.points), multi_pie(&truth)) {
            landmarks += a.iter().zip(b).map(|(a, b)| distance(*a, b)).sum::<f64>() / 68.0;
        }
        let (rough, ..) = nets.coarse(frame, Stance::of(&face.points).crop());
        first += (0..SKIN).map(|k| distance(rough[k], truth[k])).sum::<f64>() / SKIN as f64;
        for (own, truth) in face.shapes.iter().zip(shapes).filter(|(_, truth)| truth.is_finite()) {
            scores[0] += f64::from((own - truth).abs());
            scores[1] += 1.0;
        }
    }
    // Without a face there is no distance: what is divided by NaN is NaN, and null in JSON.
    let frames_found = if found == 0 { f64::NAN } else { found as f64 };
    let mean = |points: &[usize]| {
        points.iter().map(|point| sums[*point]).sum::<f64>() / (points.len().max(1) as f64 * frames_found)
    };
    let contours: Vec<usize> = (SKIN..PUPILS[0]).collect();
    NetErrors {
        frames: frames.len(),
        found,
        all: mean(&(0..POINTS).collect::<Vec<_>>()),
        landmarks: landmarks / frames_found,
        regions: Region::ALL.iter().map(|region| (region.name(), mean(&region.points()))).collect(),
        contours: mean(&contours),
        pupils: mean(&PUPILS),
        coarse: first / frames_found,
        scores: if scores[1] > 0.0 { scores[0] / scores[1] } else { f64::NAN },
    }
}
