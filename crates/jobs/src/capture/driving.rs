//! The second half: what was seen of the actor moves the rig, frame by frame. How is in `runtime::live`; here the head's turn and the
//! gaze reach rigs whose bones have axes of their own, as every take's do.

use super::CaptureConfig;
use super::watching::Watched;
use crate::pose::Subject;
use crate::{Event, JobError, Silent, Watch, clips};
use std::path::Path;
use std::sync::Arc;
use understudy_core::{Clip, Controls, arkit};
use understudy_io::live_link::{LiveLinkTake, ROTATIONS};
use understudy_runtime::ik::PointIk;
use understudy_runtime::live::{DriveError, Driver, FaceGeometry, FollowSettings, Performance};

/// What the rig does.
pub(super) struct Take {
    pub rate: f32,
    pub controls: Vec<Controls>,
    pub performances: Vec<Performance>,
    /// How far points are off, by inverse kinematics and by scores, of frames with a face.
    pub points_mm: Vec<[f32; 2]>,
}

/// Drives a rig.
pub(super) struct Driving {
    driver: Driver,
}

impl Driving {
    pub fn new(
        config: &CaptureConfig,
        subject: &Subject,
        twin: Option<&Subject>,
        geometry: &FaceGeometry,
    ) -> Result<Self, JobError> {
        let specs = subject.specs();
        let ik: Option<Arc<PointIk>> = match twin {
            None => subject.ik().cloned(),
            Some(twin) => {
                let name = config.twin.as_deref().unwrap_or(Path::new(""));
                let ik = twin.ik().cloned().ok_or_else(|| {
                    JobError::unusable(
                        name,
                        "has not learned to follow points; `understudy learn ik` teaches it",
                    )
                })?;
                let same = twin.specs().len() == specs.len()
                    && twin.specs().iter().zip(specs.iter()).all(|(a, b)| a.name == b.name);
                if !same {
                    let problem = format!("is no twin of '{}': its controls are others", config.rig);
                    return Err(JobError::unusable(name, problem));
                }
                Some(ik)
            }
        };
        let driver = Driver::new(specs, geometry.clone(), ik, FollowSettings::default());
        let driver = driver.map_err(|error| match error {
            DriveError::Nothing => JobError::unusable(
                &config.rig,
                "no control has the name of an ARKit shape: --twin names a twin that `understudy learn ik` taught to follow points",
            ),
            other => JobError::unusable(config.twin.as_deref().unwrap_or(Path::new(&config.rig)), other),
        })?;
        Ok(Self { driver })
    }

    pub fn named(&self) -> usize {
        self.driver.named()
    }

    pub fn points(&self) -> usize {
        self.driver.points()
    }

    pub fn scale(&self) -> Option<f64> {
        self.driver.scale()
    }

    pub fn drive(
        &mut self,
        watched: &Watched,
        neutral: usize,
        subject: &Subject,
        watch: &dyn Watch,
    ) -> Result<Take, JobError> {
        let failed = |error| JobError::unusable(&watched.source, error);
        let rest = watched.observation(neutral).expect("the frame shows a face");
        if !self.driver.set_rest(&rest) {
            let problem = format!("the face of frame {neutral} cannot be taken as the actor at rest");
            return Err(JobError::unusable(&watched.source, problem));
        }
        let count = watched.frames.len();
        watch.event(Event::Started { what: "driving the rig", total: count as u64, unit: "frames" });
        let mut take = Take {
            rate: watched.rate,
            controls: Vec::with_capacity(count),
            performances: Vec::with_capacity(count),
            points_mm: Vec::new(),
        };
        let mut controls = subject.specs().defaults();
        for frame in 0..count {
            let seen = watched.observation(frame);
            let driven =
                self.driver.drive(seen.as_ref(), 1.0 / watched.rate, &mut controls.0).map_err(failed)?;
            take.points_mm.extend(driven.points_mm.filter(|_| seen.is_some()));
            take.controls.push(controls.clone());
            take.performances.push(self.driver.performance().clone());
            watch.event(Event::Step { done: frame as u64 + 1 });
            if watch.should_stop() {
                return Err(JobError::Stopped);
            }
        }
        turn_bones(&mut take, subject)?;
        watch.event(Event::Finished);
        Ok(take)
    }
}

/// Controls of the bones that the head's turn and the gaze move, from the rig's own way with takes. A rig without such bones
/// keeps what it has.
pub(super) fn turn_bones(take: &mut Take, subject: &Subject) -> Result<(), JobError> {
    let Some(rig) = subject.rig().filter(|rig| rig.skeleton().is_some()) else { return Ok(()) };
    let whole = live_link(take);
    let Ok(clip) = clips::of_take(rig, Path::new("take"), &whole, &Silent) else { return Ok(()) };
    let turns = Clip { curves: Vec::new(), ..clip };
    let Some(motion) = &turns.motion else { return Ok(()) };
    let moved: Vec<usize> = motion.keys.bones.iter().map(|track| track.bone).collect();
    let times = (0..take.controls.len()).map(|frame| frame as f64 / f64::from(take.rate));
    let specs = rig.specs();
    let frames = turns.at(times, specs).map_err(|error| JobError::unusable(rig.name(), error))?;
    let names: Vec<&str> =
        moved.iter().filter_map(|bone| Some(rig.skeleton()?.bones().get(*bone)?.name.as_str())).collect();
    for (control, spec) in specs.iter().enumerate() {
        let understudy_core::ControlKind::Joint { bone, .. } = &spec.kind else { continue };
        if names.contains(&bone.as_str()) {
            for (own, turned) in take.controls.iter_mut().zip(&frames) {
                own.0[control] = turned.0[control].clamp(spec.low, spec.high);
            }
        }
    }
    Ok(())
}

/// A take as phones write it: ARKit's shapes and the rotations of head and eyes, radians.
pub(super) fn live_link(take: &Take) -> LiveLinkTake {
    let names = arkit::SHAPES.into_iter().chain(ROTATIONS).map(str::to_owned).collect();
    let row = |now: &Performance| {
        let mut row = now.shapes.clone();
        row.resize(arkit::SHAPES.len(), 0.0);
        row.extend(now.head.map(f32::to_radians));
        row.extend(now.gaze.iter().flat_map(|[yaw, pitch]| [yaw.to_radians(), pitch.to_radians(), 0.0]));
        row
    };
    LiveLinkTake {
        names,
        frames: take.performances.iter().map(row).collect(),
        times: (0..take.controls.len()).map(|frame| frame as f64 / f64::from(take.rate)).collect(),
        rate: take.rate,
        rate_reason: "of the video".into(),
        start: 0.0,
    }
}
