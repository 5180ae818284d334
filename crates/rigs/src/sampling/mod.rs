//! Where poses come from: random values, an animator's clips, or clips times noise. Start at
//! [`SamplingConfig::build`]; pose `i` of a [`PoseSource`] is the same whoever asks for it and when, so
//! that threads and interruptions leave no trace. Recording what the rig answers is a job's business.

use serde::{Deserialize, Serialize};
use thiserror::Error;
use understudy_core::mesh::Fnv;
use understudy_core::{Clip, ClipError, ControlSpecs, Controls, Random, SampledClip};

/// What is wrong with a sampling configuration.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum SamplingError {
    /// The rig has no clip of that name.
    #[error("there is no clip '{name}' (the rig has {known})")]
    UnknownClip {
        /// The name.
        name: String,
        /// The clips that exist.
        known: String,
    },
    /// Sampling needs clips, and none is left.
    #[error("no clip is left to take poses from (the rig has {known})")]
    NoClips {
        /// The clips that exist.
        known: String,
    },
    /// Clips or a share of them are named, but random values do not look at clips.
    #[error(
        "clips, a share of them or a frame rate are given, but the method '{method}' uses no clips; leave the method \
         out, or choose 'noise'"
    )]
    ClipsUnused {
        /// The method.
        method: Method,
    },
    /// A number that makes no sense.
    #[error("the {what} is {value}; {want} is wanted")]
    BadNumber {
        /// Which number.
        what: &'static str,
        /// Its value.
        value: f32,
        /// What it should be: `more than 0`.
        want: &'static str,
    },
    /// A clip that does not fit the rig.
    #[error(transparent)]
    Clip(#[from] ClipError),
}

/// How poses are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// Each control by itself, normal about the middle of its range, cut at ±1.5 σ.
    #[default]
    Gaussian,
    /// Each control by itself, evenly over its range.
    Uniform,
    /// As [`Method::Gaussian`], but a random share of the controls, drawn anew for every pose, stays at its
    /// default: animators move a few controls at a time, and the neutral pose is a corner of a range that
    /// begins at zero.
    Sparse,
    /// A frame of a clip, each control's offset from its default times its own random factor
    /// (face-twin paper eq. 3.5), brought back into range.
    Noise,
    /// Every frame of the clips, one after another.
    Clips,
}

impl std::fmt::Display for Method {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Gaussian => "gaussian",
            Self::Uniform => "uniform",
            Self::Sparse => "sparse",
            Self::Noise => "noise",
            Self::Clips => "clips",
        })
    }
}

/// What to draw. Checked once, by [`SamplingConfig::build`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SamplingConfig {
    /// How.
    pub method: Method,
    /// The same seed gives the same poses.
    pub seed: u64,
    /// Take these clips only; when empty, those that are for training ([`Purpose`](understudy_core::Purpose)).
    pub clips: Vec<String>,
    /// Leave these clips out.
    pub exclude: Vec<String>,
    /// Frames per second at which clips are read; `None` for each clip's own.
    pub rate: Option<f32>,
    /// Smallest noise factor.
    pub noise_low: f32,
    /// Largest noise factor.
    pub noise_high: f32,
    /// Share of the poses of [`Method::Noise`] that go beyond single clips: two frames with noise of their
    /// own on top of each other, and a few controls anywhere in their ranges. 0 is the paper's way, which
    /// never shows a frown together with an open jaw unless some clip has both, nor a control that no clip
    /// moves.
    pub mix: f32,
    /// Mean share of the controls of such a pose that are anywhere in their ranges.
    pub stray: f32,
    /// Share of every clip's frames that is held out for tests, in runs of a few frames. Which ones depends
    /// on the clip's name and the share alone, so that training and test sets agree about them.
    pub hold_out: f32,
    /// Take the frames that are held out, instead of the others.
    pub held_out: bool,
}

impl Default for SamplingConfig {
    fn default() -> Self {
        Self {
            method: Method::Gaussian,
            seed: 1,
            clips: Vec::new(),
            exclude: Vec::new(),
            rate: None,
            noise_low: 0.25,
            noise_high: 3.0,
            mix: 0.5,
            stray: 0.03,
            hold_out: 0.0,
            held_out: false,
        }
    }
}

/// Frames that are held out together: next to a frame that was trained on, a test says little.
const RUN: usize = 5;

/// Whether a frame of a clip is held out: of every `1 / share` runs of frames, one is.
fn is_held(clip: &str, frame: usize, share: f32) -> bool {
    if share <= 0.0 {
        return false;
    }
    let (run, period) = (frame / RUN, (1.0 / share).round().max(1.0) as usize);
    let mut name = Fnv::default();
    name.write(clip.as_bytes());
    run % period == Random::stream(name.finish(), (run / period) as u64).below(period)
}

impl SamplingConfig {
    /// Checks the configuration against a rig's controls and clips.
    pub fn build(&self, specs: &ControlSpecs, clips: &[Clip]) -> Result<PoseSource, SamplingError> {
        let known = || match clips {
            [] => "none".to_owned(),
            clips => clips.iter().map(|clip| clip.name.as_str()).collect::<Vec<_>>().join(", "),
        };
        for name in self.clips.iter().chain(&self.exclude) {
            if !clips.iter().any(|clip| clip.name == *name) {
                return Err(SamplingError::UnknownClip { name: name.clone(), known: known() });
            }
        }
        let bad = |what, value, want| Err(SamplingError::BadNumber { what, value, want });
        let rate = self.rate.unwrap_or(Clip::RATE);
        for (what, value) in [("frame rate", rate), ("smallest noise factor", self.noise_low)] {
            if !(value.is_finite() && value > 0.0) {
                return bad(what, value, "more than 0");
            }
        }
        let fits = if self.held_out { self.hold_out > 0.0 } else { self.hold_out >= 0.0 };
        if !(fits && self.hold_out <= 0.5) {
            let want = if self.held_out { "more than 0, at most 0.5," } else { "0 to 0.5" };
            return bad("share that is held out", self.hold_out, want);
        }
        if !(self.noise_high.is_finite() && self.noise_high > self.noise_low) {
            return bad("largest noise factor", self.noise_high, "more than the smallest");
        }
        if !(0.0..=1.0).contains(&self.mix) {
            return bad("share of mixed poses", self.mix, "0 to 1");
        }
        if !(0.0..=0.5).contains(&self.stray) {
            return bad("share of stray controls", self.stray, "0 to 0.5");
        }
        let mut sampled = Vec::new();
        match self.method {
            Method::Gaussian | Method::Uniform | Method::Sparse
                if !self.clips.is_empty() || !self.exclude.is_empty() || self.hold_out > 0.0 =>
            {
                return Err(SamplingError::ClipsUnused { method: self.method });
            }
            Method::Gaussian | Method::Uniform | Method::Sparse => {}
            Method::Noise | Method::Clips => {
                let asked = |clip: &&Clip| match self.clips.as_slice() {
                    [] => clip.is_for_training(),
                    named => named.contains(&clip.name),
                };
                let kept = |clip: &&Clip| !self.exclude.contains(&clip.name);
                for clip in clips.iter().filter(asked).filter(kept) {
                    let mut frames = clip.sample(specs, self.rate.unwrap_or_else(|| clip.own_rate()))?;
                    let mut index = 0;
                    frames.frames.retain(|_| {
                        index += 1;
                        is_held(&clip.name, index - 1, self.hold_out) == self.held_out
                    });
                    if !frames.frames.is_empty() {
                        sampled.push(frames);
                    }
                }
                if sampled.is_empty() {
                    return Err(SamplingError::NoClips { known: known() });
                }
            }
        }
        Ok(PoseSource { specs: specs.clone(), config: self.clone(), clips: sampled })
    }
}

/// Keeps the draws of mixed poses apart from those of frames.
const MIXING: u64 = 0x6d69_7865;

/// Poses by number. Infinite for the random methods, as long as its clips for [`Method::Clips`].
#[derive(Debug, Clone)]
pub struct PoseSource {
    specs: ControlSpecs,
    config: SamplingConfig,
    clips: Vec<SampledClip>,
}

impl PoseSource {
    /// The configuration that it was built from.
    pub fn config(&self) -> &SamplingConfig {
        &self.config
    }

    /// How many poses there are; `None` where random methods never run out.
    pub fn len(&self) -> Option<u64> {
        matches!(self.config.method, Method::Clips).then(|| self.frame_count() as u64)
    }

    /// Never true: a source has at least one pose.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// The clips in use with their frames, in the order in which [`Method::Clips`] walks them; empty for
    /// methods that use none.
    pub fn clips(&self) -> &[SampledClip] {
        &self.clips
    }

    /// Pose `index`, into `out`. Beyond the last frame of [`Method::Clips`] the last frame holds.
    pub fn pose_into(&self, index: u64, out: &mut Controls) {
        out.0.clear();
        match self.config.method {
            Method::Gaussian => {
                let mut random = Random::stream(self.config.seed, index);
                out.0.extend(self.specs.iter().map(|spec| random.truncated_normal(spec.low, spec.high)));
            }
            Method::Uniform => {
                let mut random = Random::stream(self.config.seed, index);
                out.0.extend(self.specs.iter().map(|spec| random.uniform(spec.low, spec.high)));
            }
            Method::Sparse => {
                let mut random = Random::stream(self.config.seed, index);
                let share = random.uniform(0.0, 1.0);
                out.0.extend(self.specs.iter().map(|spec| {
                    let value = random.truncated_normal(spec.low, spec.high);
                    if random.uniform(0.0, 1.0) < share { value } else { spec.default }
                }));
            }
            Method::Noise => {
                let mut random = Random::stream(self.config.seed, index);
                self.noisy_frame(&mut random, out);
                // A stream of its own, so that the share changes which poses are mixed and no other pose.
                let mut random = Random::stream(self.config.seed ^ MIXING, index);
                if random.uniform(0.0, 1.0) < self.config.mix {
                    self.mix(&mut random, out);
                }
            }
            Method::Clips => {
                let index = usize::try_from(index).unwrap_or(usize::MAX);
                out.0.extend_from_slice(&self.frame(index.min(self.frame_count() - 1)).0);
            }
        }
    }

    /// Pose `index`.
    pub fn pose(&self, index: u64) -> Controls {
        let mut out = Controls::default();
        self.pose_into(index, &mut out);
        out
    }

    /// A frame, each control's offset times its own factor. A factor is drawn for every control, moving or
    /// not, so that a control's noise does not depend on which others a clip happens to move.
    fn noisy_frame(&self, random: &mut Random, out: &mut Controls) {
        let frame = self.frame(random.below(self.frame_count()));
        let (low, high) = (self.config.noise_low, self.config.noise_high);
        out.0.extend(self.specs.iter().zip(&frame.0).map(|(spec, value)| {
            let scaled = spec.default + (value - spec.default) * random.uniform(low, high);
            scaled.clamp(spec.low, spec.high)
        }));
    }

    /// Lays a second frame over a pose, each control as far from its default as it is in either, and sets a
    /// few controls to anything in their ranges.
    fn mix(&self, random: &mut Random, pose: &mut Controls) {
        let mut other = Controls::default();
        self.noisy_frame(random, &mut other);
        let stray = random.uniform(0.0, 2.0 * self.config.stray);
        for ((spec, value), other) in self.specs.iter().zip(&mut pose.0).zip(other.0) {
            if (other - spec.default).abs() > (*value - spec.default).abs() {
                *value = other;
            }
            if random.uniform(0.0, 1.0) < stray {
                *value = random.uniform(spec.low, spec.high);
            }
        }
    }

    fn frame_count(&self) -> usize {
        self.clips.iter().map(|clip| clip.frames.len()).sum()
    }

    fn frame(&self, mut index: usize) -> &Controls {
        for clip in &self.clips {
            match clip.frames.get(index) {
                Some(frame) => return frame,
                None => index -= clip.frames.len(),
            }
        }
        unreachable!("callers keep the index below the number of frames")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use understudy_core::{ControlSpec, Curve};

    fn specs() -> ControlSpecs {
        ControlSpecs::new(vec![
            ControlSpec::number("a", -10.0, 50.0, 5.0),
            ControlSpec::number("b", 0.0, 1.0, 0.0),
            ControlSpec::number("c", -1.0, 1.0, 1.0),
        ])
        .expect("valid specs")
    }

    fn clips() -> Vec<Clip> {
        let clip = |name: &str, control: &str, end: f32| {
            Clip::new(name, 1.0, vec![Curve::smooth(control, &[(0.0, 0.0), (1.0, end)])])
        };
        vec![clip("rise", "a", 20.0), clip("blink", "b", 0.3), clip("turn", "c", -1.0)]
    }

    fn config(method: Method) -> SamplingConfig {
        SamplingConfig { method, seed: 9, ..SamplingConfig::default() }
    }

    fn source(config: &SamplingConfig) -> PoseSource {
        config.build(&specs(), &clips()).expect("valid config")
    }

    #[test]
    fn a_clip_for_tests_or_motion_gives_poses_to_those_who_name_it_only() {
        let mut clips = clips();
        let last = clips.pop().expect("three clips");
        let kept = [last.clone().for_test(), last.for_motion()];
        let methods = [(Method::Clips, &kept[0]), (Method::Noise, &kept[0]), (Method::Noise, &kept[1])];
        for (method, kept) in methods {
            let clips: Vec<Clip> = clips.iter().chain([kept]).cloned().collect();
            let names = |config: SamplingConfig| -> Vec<String> {
                let source = config.build(&specs(), &clips).expect("valid config");
                source.clips().iter().map(|clip| clip.name.clone()).collect()
            };
            assert_eq!(names(config(method)), ["rise", "blink"]);
            let exclude = vec!["rise".into()];
            assert_eq!(names(SamplingConfig { exclude, ..config(method) }), ["blink"]);
            assert_eq!(names(SamplingConfig { clips: vec!["turn".into()], ..config(method) }), ["turn"]);
        }
    }

    #[test]
    fn every_method_stays_in_range_and_depends_on_the_index_alone() {
        for method in [Method::Gaussian, Method::Uniform, Method::Sparse, Method::Noise, Method::Clips] {
            let source = source(&config(method));
            let forward: Vec<Controls> = (0..90).map(|i| source.pose(i)).collect();
            let mut backward: Vec<Controls> = (0..90).rev().map(|i| source.pose(i)).collect();
            backward.reverse();
            assert_eq!(forward, backward, "{method}");
            for pose in &forward {
                specs().check_range(pose).expect("in range");
            }
            assert!(forward.windows(2).any(|pair| pair[0] != pair[1]), "{method}");
        }
    }

    #[test]
    fn other_seeds_give_other_poses() {
        let first = source(&config(Method::Gaussian));
        let second = source(&SamplingConfig { seed: 10, ..config(Method::Gaussian) });
        assert!((0..100).all(|i| first.pose(i) != second.pose(i)));
    }

    #[test]
    fn gaussian_and_uniform_have_their_spreads() {
        // A normal cut at ±1.5 σ keeps 0.7426 σ, here σ = 20; a uniform one has (b − a)/√12 = 17.32.
        for (method, spread) in [(Method::Gaussian, 0.7426 * 20.0), (Method::Uniform, 17.32)] {
            let source = source(&config(method));
            let draws: Vec<f64> = (0..20_000).map(|i| f64::from(source.pose(i).0[0])).collect();
            let mean = draws.iter().sum::<f64>() / draws.len() as f64;
            let found = (draws.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / draws.len() as f64).sqrt();
            assert!((mean - 20.0).abs() < 0.6, "{method}: mean {mean}");
            assert!((found - spread).abs() < 0.4, "{method}: {found}");
        }
    }

    #[test]
    fn sparse_poses_leave_half_of_the_controls_alone() {
        let source = source(&config(Method::Sparse));
        let poses: Vec<Controls> = (0..4000).map(|i| source.pose(i)).collect();
        let still =
            |pose: &Controls| pose.0.iter().zip(&specs().defaults().0).filter(|(a, b)| a == b).count();
        let share = poses.iter().map(still).sum::<usize>() as f64 / (3.0 * poses.len() as f64);
        assert!((share - 0.5).abs() < 0.02, "{share}");
        // The share itself is drawn: all or none of three stay more often than with a fixed one half.
        let all = poses.iter().filter(|pose| still(pose) == 3).count() as f64 / poses.len() as f64;
        assert!((all - 0.25).abs() < 0.03, "{all}");
    }

    #[test]
    fn mixed_poses_put_clips_together_and_stray() {
        let plain = source(&SamplingConfig { mix: 0.0, ..config(Method::Noise) });
        let mixed = source(&SamplingConfig { mix: 0.5, ..config(Method::Noise) });
        let both = |pose: &Controls| pose.0[0] != 5.0 && pose.0[1] != 0.0;
        let poses: Vec<(Controls, Controls)> = (0..4000).map(|i| (plain.pose(i), mixed.pose(i))).collect();
        assert!(!poses.iter().any(|(plain, _)| both(plain)));
        assert!(poses.iter().filter(|(_, mixed)| both(mixed)).count() > 400);
        // The others are as they were.
        let same = poses.iter().filter(|(plain, mixed)| plain == mixed).count();
        assert!((1900..3000).contains(&same), "{same}");
        // A control that no clip moves is moved now and then.
        let no_turn = SamplingConfig { exclude: vec!["turn".into()], mix: 0.5, ..config(Method::Noise) };
        let no_turn = source(&no_turn);
        let strays = (0..4000).filter(|i| no_turn.pose(*i).0[2] != 1.0).count();
        assert!((20..120).contains(&strays), "{strays}");
        let more = source(&SamplingConfig { stray: 0.2, ..no_turn.config().clone() });
        let more = (0..4000).filter(|i| more.pose(*i).0[2] != 1.0).count();
        assert!((5 * strays..9 * strays).contains(&more), "{more} after {strays}");
        let bad =
            |stray: f32| SamplingConfig { stray, ..config(Method::Noise) }.build(&specs(), &clips()).is_err();
        assert!([-0.1, 0.6, f32::NAN].into_iter().all(bad) && !bad(0.5));
    }

    #[test]
    fn noise_scales_offsets_of_kept_clips_only() {
        let config = SamplingConfig { exclude: vec!["turn".into()], mix: 0.0, ..config(Method::Noise) };
        let source = source(&config);
        let mut largest = 0.0f32;
        for index in 0..3000 {
            let pose = source.pose(index).0;
            // Excluded: c never leaves its default. a and b come from different clips.
            assert_eq!(pose[2], 1.0);
            assert!(pose[0] == 5.0 || pose[1] == 0.0);
            largest = largest.max(pose[1]);
        }
        // b reaches 0.3 in its clip; times up to 3 it comes near 0.9 and never above.
        assert!(largest > 0.8 && largest <= 0.9 + 1e-6, "{largest}");
    }

    #[test]
    fn clips_are_walked_frame_by_frame() {
        let config = SamplingConfig { clips: vec!["turn".into(), "rise".into()], ..config(Method::Clips) };
        let source = source(&config);
        assert_eq!(source.len(), Some(62));
        let rise = clips()[0].sample(&specs(), 30.0).expect("in range");
        let turn = clips()[2].sample(&specs(), 30.0).expect("in range");
        let walked: Vec<Controls> = (0..62).map(|i| source.pose(i)).collect();
        assert_eq!(walked, [rise.frames, turn.frames].concat());
        assert_eq!(source.pose(u64::MAX), walked[61]);
    }

    #[test]
    fn what_is_held_out_is_never_drawn_from() {
        let all = config(Method::Clips);
        let kept = SamplingConfig { hold_out: 0.2, ..all.clone() };
        let held = SamplingConfig { held_out: true, ..kept.clone() };
        let frames = |config: &SamplingConfig| source(config).clips.clone();
        let mut shares = Vec::new();
        for clip in frames(&all) {
            let of = |config: &SamplingConfig| {
                let clips = frames(config).into_iter().filter(|c| c.name == clip.name);
                clips.flat_map(|c| c.frames).collect::<Vec<Controls>>()
            };
            let (kept, held) = (of(&kept), of(&held));
            assert_eq!(kept.len() + held.len(), clip.frames.len());
            shares.push(held.len() as f32 / clip.frames.len() as f32);
        }
        let mean = shares.iter().sum::<f32>() / shares.len() as f32;
        assert!((0.1..0.3).contains(&mean), "{shares:?}");
        // Another seed, another choice of clips: the same frames.
        let other = SamplingConfig { seed: 77, exclude: vec!["rise".into()], ..held.clone() };
        let turn = |config: &SamplingConfig| frames(config).into_iter().find(|c| c.name == "turn");
        assert_eq!(turn(&held), turn(&other));
        // Noise keeps away from them too: factors of exactly one give the frames themselves.
        let (noise_low, noise_high, mix) = (1.0, 1.0 + 1e-6, 0.0);
        let noise = SamplingConfig { method: Method::Noise, noise_low, noise_high, mix, ..kept };
        let held: Vec<Controls> = frames(&held).into_iter().flat_map(|clip| clip.frames).collect();
        let near = |a: &Controls, b: &Controls| a.0.iter().zip(&b.0).all(|(a, b)| (a - b).abs() < 1e-4);
        let noise = source(&noise);
        let moving = |pose: &Controls| !near(pose, &specs().defaults());
        let drawn = (0..500).map(|index| noise.pose(index)).filter(moving);
        assert!(drawn.into_iter().all(|pose| !held.iter().any(|frame| near(frame, &pose))));
    }

    #[test]
    fn bad_configurations_are_named() {
        let build = |config: SamplingConfig| config.build(&specs(), &clips()).map(|_| ());
        let unknown = build(SamplingConfig { exclude: vec!["dance".into()], ..config(Method::Noise) });
        let known = "rise, blink, turn".to_owned();
        assert_eq!(unknown, Err(SamplingError::UnknownClip { name: "dance".into(), known: known.clone() }));
        let all: Vec<String> = clips().iter().map(|clip| clip.name.clone()).collect();
        let none = build(SamplingConfig { exclude: all, ..config(Method::Clips) });
        assert_eq!(none, Err(SamplingError::NoClips { known }));
        let unused = build(SamplingConfig { clips: vec!["turn".into()], ..config(Method::Uniform) });
        assert_eq!(unused, Err(SamplingError::ClipsUnused { method: Method::Uniform }));
        let rate = build(SamplingConfig { rate: Some(f32::NAN), ..config(Method::Clips) });
        assert!(matches!(rate, Err(SamplingError::BadNumber { what: "frame rate", .. })));
        let noise = build(SamplingConfig { noise_high: 0.1, ..config(Method::Noise) });
        assert!(matches!(noise, Err(SamplingError::BadNumber { what: "largest noise factor", .. })));
        for share in [-0.1, 0.6, f32::NAN] {
            let bad = build(SamplingConfig { hold_out: share, ..config(Method::Noise) });
            assert!(matches!(bad, Err(SamplingError::BadNumber { what: "share that is held out", .. })));
        }
        let nothing = build(SamplingConfig { held_out: true, ..config(Method::Clips) });
        assert!(matches!(nothing, Err(SamplingError::BadNumber { .. })));
        let random = build(SamplingConfig { hold_out: 0.1, ..config(Method::Uniform) });
        assert_eq!(random, Err(SamplingError::ClipsUnused { method: Method::Uniform }));
        let bare = config(Method::Noise).build(&specs(), &[]).map(|_| ());
        assert_eq!(bare, Err(SamplingError::NoClips { known: "none".into() }));
    }
}
