//! An actor's performance, frame by frame: the head's pose and size removed, the actor's rest taken off, trembling smoothed. While no
//! face is seen the last one is held, then it eases to rest; when it comes back the two are blended.

use super::filter::{OneEuro, Smoothed};
use super::geometry::{FaceGeometry, HeadPose};
use understudy_core::{DMat3, Vec3, arkit};

/// The points of the actor's right and left iris' middle, and of the outer and inner corner of the eye around it.
const IRISES: [[usize; 3]; 2] = [[473, 263, 362], [468, 33, 133]];
/// Radius of an eye, cm, on which an iris turns.
const EYE_RADIUS: f32 = 1.2;

/// How to follow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FollowSettings {
    /// Of points, cm.
    pub points: OneEuro,
    /// Of scores, 0 to 1.
    pub shapes: OneEuro,
    /// Of turns, degrees.
    pub turns: OneEuro,
    /// How long a lost face is held, s.
    pub hold: f32,
    /// How long it then takes to rest, and to come back, s.
    pub ease: f32,
}

impl Default for FollowSettings {
    fn default() -> Self {
        Self {
            points: OneEuro { rest_hz: 2.0, per_speed: 1.0, speed_hz: 1.5 },
            shapes: OneEuro { rest_hz: 2.5, per_speed: 6.0, speed_hz: 1.5 },
            turns: OneEuro { rest_hz: 1.5, per_speed: 0.08, speed_hz: 1.5 },
            hold: 0.3,
            ease: 0.6,
        }
    }
}

/// What a detector says of a frame.
#[derive(Debug, Clone, Copy)]
pub struct Observation<'a> {
    /// Points: x and y in shares of the picture, z in shares of its width.
    pub points: &'a [Vec3],
    /// Width and height of the picture, pixels.
    pub size: [f32; 2],
    /// Scores of ARKit's shapes, in the order of [`arkit::SHAPES`].
    pub shapes: &'a [f32],
}

/// The actor at rest.
#[derive(Debug, Clone, PartialEq)]
struct Rest {
    local: Vec<Vec3>,
    shapes: Vec<f32>,
    head: DMat3,
    gaze: [[f32; 2]; 2],
}

/// A frame of a performance.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Performance {
    /// Points in the frame of the canonical face, cm, smoothed.
    pub local: Vec<Vec3>,
    /// ARKit's shapes, 0 to 1, the actor's rest taken off.
    pub shapes: Vec<f32>,
    /// Yaw, pitch and roll of the head from its rest, degrees: `R = Ry Rx Rz`, y up, x to the actor's left.
    pub head: [f32; 3],
    /// Yaw and pitch of the left and the right eye in the head, degrees.
    pub gaze: [[f32; 2]; 2],
    /// 1 while a face is seen; falls to 0 when none is.
    pub strength: f32,
}

/// Follows one actor.
#[derive(Debug, Clone)]
pub struct Follower {
    geometry: FaceGeometry,
    settings: FollowSettings,
    rest: Option<Rest>,
    local: Vec<Vec3>,
    flat: Vec<f32>,
    filters: [Smoothed; 3],
    now: Performance,
    /// What was shown when the face came back, and how long that is ago, s.
    before: Performance,
    since_return: f32,
    /// How long no face was seen, s; infinite where there was none yet.
    lost: f32,
}

impl Follower {
    /// That has seen nothing yet.
    pub fn new(geometry: FaceGeometry, settings: FollowSettings) -> Self {
        let FollowSettings { points, shapes, turns, .. } = settings;
        Self {
            geometry,
            settings,
            rest: None,
            local: Vec::new(),
            flat: Vec::new(),
            filters: [points, shapes, turns].map(Smoothed::new),
            now: Performance::default(),
            before: Performance::default(),
            since_return: f32::INFINITY,
            lost: f32::INFINITY,
        }
    }

    /// The canonical face.
    pub fn geometry(&self) -> &FaceGeometry {
        &self.geometry
    }

    /// Takes what is seen as the actor at rest; `false` where it cannot be used.
    pub fn set_rest(&mut self, seen: &Observation) -> bool {
        let mut local = Vec::new();
        if seen.shapes.len() != arkit::SHAPES.len() {
            return false;
        }
        let Some(pose) = self.geometry.solve(seen.points, seen.size, &mut local) else { return false };
        let gaze = gaze(&local);
        self.rest = Some(Rest { shapes: seen.shapes.to_vec(), head: pose.rotation, gaze, local });
        true
    }

    /// The points of the actor at rest, cm, in the frame of the canonical face.
    pub fn rest(&self) -> Option<&[Vec3]> {
        self.rest.as_ref().map(|rest| &rest.local[..])
    }

    /// The last frame.
    pub fn now(&self) -> &Performance {
        &self.now
    }

    /// Where the head was in an observation.
    pub fn head(&mut self, seen: &Observation) -> Option<HeadPose> {
        self.geometry.solve(seen.points, seen.size, &mut self.local)
    }

    /// The next frame, `seconds` after the last; nothing seen is `None`. The first face is taken as rest where none was set.
    pub fn follow(&mut self, seen: Option<&Observation>, seconds: f32) -> &Performance {
        let pose = seen.filter(|seen| seen.shapes.len() == arkit::SHAPES.len()).and_then(|seen| {
            let pose = self.geometry.solve(seen.points, seen.size, &mut self.local)?;
            if self.rest.is_none() {
                self.set_rest(seen);
            }
            Some((seen, pose))
        });
        match (pose, self.rest.take()) {
            (Some((seen, pose)), Some(rest)) => {
                self.see(seen, &pose, &rest, seconds);
                self.rest = Some(rest);
            }
            (_, rest) => {
                self.rest = rest;
                self.lose(seconds);
            }
        }
        &self.now
    }

    fn see(&mut self, seen: &Observation, pose: &HeadPose, rest: &Rest, seconds: f32) {
        let FollowSettings { hold, ease, .. } = self.settings;
        if self.lost > hold {
            self.filters.iter_mut().for_each(Smoothed::forget);
            self.before = self.now.clone();
            // Nothing to come back from where nothing was shown.
            self.since_return = if self.lost.is_finite() { 0.0 } else { f32::INFINITY };
        }
        self.lost = 0.0;
        self.flat.clear();
        self.flat.extend(self.local.iter().flat_map(|point| point.to_array()));
        let [points, shapes, turns] = &mut self.filters;
        let now = &mut self.now;
        now.local.clear();
        now.local.extend(points.next(&self.flat, seconds).chunks_exact(3).map(Vec3::from_slice));
        self.flat.clear();
        self.flat.extend(seen.shapes.iter().zip(&rest.shapes).map(|(now, rest)| beyond_rest(*now, *rest)));
        now.shapes.clear();
        now.shapes.extend_from_slice(shapes.next(&self.flat, seconds));
        let turned = HeadPose { rotation: pose.rotation * rest.head.transpose(), ..*pose };
        let gaze = gaze(&self.local);
        self.flat.clear();
        self.flat.extend(turned.angles());
        for (eye, rest) in gaze.iter().zip(&rest.gaze) {
            self.flat.extend([eye[0] - rest[0], eye[1] - rest[1]]);
        }
        let angles = turns.next(&self.flat, seconds);
        now.head.copy_from_slice(&angles[..3]);
        now.gaze = [[angles[3], angles[4]], [angles[5], angles[6]]];
        now.strength = 1.0;
        if self.since_return < ease {
            self.since_return += seconds;
            let share = smooth(self.since_return / ease);
            now.blend(&self.before, share);
        }
    }

    fn lose(&mut self, seconds: f32) {
        let FollowSettings { hold, ease, .. } = self.settings;
        if !self.lost.is_finite() {
            return;
        }
        let Some(rest) = &self.rest else { return };
        if self.lost <= hold {
            // What is held is what the way to rest begins from.
            self.before = self.now.clone();
        }
        self.lost += seconds;
        let share = 1.0 - smooth((self.lost - hold) / ease);
        self.now.clone_from(&self.before);
        let target = Performance {
            local: rest.local.clone(),
            shapes: vec![0.0; arkit::SHAPES.len()],
            head: [0.0; 3],
            gaze: [[0.0; 2]; 2],
            strength: 0.0,
        };
        self.now.blend(&target, share);
    }
}

impl Performance {
    /// `share` of itself, the rest of another.
    fn blend(&mut self, other: &Self, share: f32) {
        let mix = |own: &mut f32, other: f32| *own = other + share * (*own - other);
        self.local.iter_mut().zip(&other.local).for_each(|(own, other)| *own = other.lerp(*own, share));
        self.shapes.iter_mut().zip(&other.shapes).for_each(|(own, other)| mix(own, *other));
        self.head.iter_mut().zip(other.head).for_each(|(own, other)| mix(own, other));
        let gaze = self.gaze.as_flattened_mut().iter_mut().zip(other.gaze.as_flattened());
        gaze.for_each(|(own, other)| mix(own, *other));
        mix(&mut self.strength, other.strength);
    }
}

/// `(x − x⁰) / (1 − x⁰)`: nothing at rest, all where the score is full.
fn beyond_rest(score: f32, rest: f32) -> f32 {
    // A face whose rest scores nearly full leaves no room: its noise must not be blown up.
    let rest = rest.clamp(0.0, 0.8);
    ((score - rest) / (1.0 - rest)).clamp(0.0, 1.0)
}

fn smooth(x: f32) -> f32 {
    let x = x.clamp(0.0, 1.0);
    x * x * (3.0 - 2.0 * x)
}

/// Where both eyes look in the frame of the canonical face: the iris beside the middle of the eye's corners, as an angle.
fn gaze(local: &[Vec3]) -> [[f32; 2]; 2] {
    IRISES.map(|[iris, outer, inner]| {
        let points = [iris, outer, inner].map(|index| local.get(index).copied());
        let [Some(iris), Some(outer), Some(inner)] = points else { return [0.0; 2] };
        let off = (iris - 0.5 * (outer + inner)) / EYE_RADIUS;
        let angle = |x: f32| x.clamp(-0.9, 0.9).asin().to_degrees();
        // Turning about x by a positive angle looks down.
        [angle(off.x), -angle(off.y)]
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{SIZE, actor, seen, shapes};
    use super::*;

    #[test]
    fn pose_and_size_of_the_head_leave_no_trace_in_the_points() {
        let (geometry, face) = actor();
        let mut follower = Follower::new(geometry, FollowSettings::default());
        let shapes = shapes(0.0);
        let rest = seen(&face, [0.0; 3], 1.0);
        assert!(follower.set_rest(&Observation { points: &rest, size: SIZE, shapes: &shapes }));
        let want = follower.rest().expect("was set").to_vec();
        for (turn, scale) in [([20.0, -10.0, 5.0], 1.0), ([-15.0, 12.0, -8.0], 1.3), ([0.0, 0.0, 30.0], 0.8)]
        {
            let mut fresh = follower.clone();
            let points = seen(&face, turn, scale);
            let now = fresh.follow(Some(&Observation { points: &points, size: SIZE, shapes: &shapes }), 0.03);
            for (axis, angle) in turn.iter().enumerate() {
                assert!((now.head[axis] - angle).abs() < 1.5, "{turn:?}: {:?}", now.head);
            }
            let worst = now.local.iter().zip(&want).map(|(a, b)| a.distance(*b)).fold(0.0, f32::max);
            assert!(worst < 0.25, "{turn:?}: {worst} cm");
        }
    }

    #[test]
    fn a_lost_face_is_held_then_eases_to_rest_and_comes_back_without_a_jump() {
        let (geometry, face) = actor();
        let mut follower = Follower::new(geometry, FollowSettings::default());
        let (none, full) = (shapes(0.0), shapes(1.0));
        let points = seen(&face, [0.0; 3], 1.0);
        let turned = seen(&face, [12.0, 0.0, 0.0], 1.0);
        assert!(follower.set_rest(&Observation { points: &points, size: SIZE, shapes: &none }));
        let smile = Observation { points: &turned, size: SIZE, shapes: &full };
        (0..30).for_each(|_| drop(follower.follow(Some(&smile), 0.033).clone()));
        let shown = follower.follow(Some(&smile), 0.033).clone();
        assert!(shown.shapes[0] > 0.99 && shown.head[0] > 10.0);
        let held = follower.follow(None, 0.033).clone();
        assert!((held.shapes[0] - shown.shapes[0]).abs() < 1e-5, "held at first");
        let (mut last, mut step) = (held, 0.0f32);
        for _ in 0..60 {
            let now = follower.follow(None, 0.033).clone();
            step = step.max((now.shapes[0] - last.shapes[0]).abs());
            last = now;
        }
        assert!(last.shapes[0] == 0.0 && last.head == [0.0; 3] && last.strength == 0.0, "{last:?}");
        for _ in 0..40 {
            let now = follower.follow(Some(&smile), 0.033).clone();
            step = step.max((now.shapes[0] - last.shapes[0]).abs());
            last = now;
        }
        assert!(last.shapes[0] > 0.99 && last.strength == 1.0);
        assert!(step < 0.15, "no frame jumps: {step}");
    }

    #[test]
    fn the_actors_own_rest_is_no_expression() {
        assert_eq!(beyond_rest(0.6, 0.6), 0.0);
        assert_eq!(beyond_rest(1.0, 0.6), 1.0);
        assert_eq!(beyond_rest(0.2, 0.6), 0.0);
        assert!(beyond_rest(0.99, 0.99) < 1.0 && beyond_rest(1.0, 1.0) == 1.0);
    }
}
