//! Two bones, a hinge between them, in closed form: where the middle joint and the end go. Pure geometry: which bones
//! these are is in `limbs.rs`.

use thiserror::Error;
use understudy_core::{DVec3, Vec3};

/// Why a limb has no answer.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum LimbError {
    /// A bone without length, or one that is not finite.
    #[error("the {bone} bone of the limb is {length} cm long; more than 0 and at most {MOST_CM} is wanted")]
    Length {
        /// `upper` or `lower`.
        bone: &'static str,
        /// Its length, cm.
        length: f32,
    },
    /// A share that is none.
    #[error("a soft reach of {0} of the limb is asked for; from 0 to 0.5 is wanted")]
    Soft(f32),
    /// A point that is not finite, or farther away than any stage.
    #[error("the {what} ({point}) is not finite or farther than {MOST_CM} cm away")]
    Point {
        /// Which.
        what: &'static str,
        /// The point.
        point: Vec3,
    },
}

/// Ten thousand kilometres: farther away, f32 no longer tells a limb from a point.
pub const MOST_CM: f32 = 1e9;

/// Within this angle of the reference direction, or of the pole, the side to which a limb bends is a blend with a fixed
/// one: no continuous answer exists there.
pub const CONE_DEGREES: f64 = 1.0;

/// To which side a limb bends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bend {
    /// The reference direction `r` of (4.3): the middle joint goes along `(t − o) × r`.
    Reference(Vec3),
    /// A direction that the middle joint points to, as far as the target lets it: `r = q × (t − o)`.
    Pole(Vec3),
}

/// How a target was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// The end is at the target.
    Exact,
    /// The end stays behind the target on purpose: a soft reach.
    Soft,
    /// The limb is straight and too short.
    TooFar,
    /// The limb is folded, and the target is nearer than its bones' difference.
    TooNear,
}

/// Where joints go.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LimbPose {
    /// The elbow or the knee, cm.
    pub middle: Vec3,
    /// The hand or the foot, cm.
    pub end: Vec3,
    /// How the target was reached.
    pub reach: Reach,
}

/// Two bones of fixed lengths.
///
/// With `o` the start, `t` the target and `d = ‖t − o‖`, the middle joint is
/// `m = o + x (t − o)/d + √(d_u² − x²) n`, `x = (d_u² − d_l² + d²) / 2d`, and `n` the unit vector of (4.3). The paper's
/// `√(d_u² − h²)` for `x` loses its sign: the foot of the altitude is behind the start where `d_l² > d_u² + d²`. Clamping
/// `x` to `±d_u` gives the straight limb out of reach and the folded one that is too near.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TwoBone {
    upper: f64,
    lower: f64,
    soft: f64,
}

impl TwoBone {
    /// From lengths in cm.
    pub fn new(upper: f32, lower: f32) -> Result<Self, LimbError> {
        for (bone, length) in [("upper", upper), ("lower", lower)] {
            if !(length > 0.0 && length <= MOST_CM) {
                return Err(LimbError::Length { bone, length });
            }
        }
        Ok(Self { upper: upper.into(), lower: lower.into(), soft: 0.0 })
    }

    /// Begins to slow down at this share of its length before it is straight, so that a knee does not snap. The end
    /// stays behind its target there: by `share · length` at the most where the target is just in reach.
    pub fn with_soft_reach(self, share: f32) -> Result<Self, LimbError> {
        if !(0.0..=0.5).contains(&share) {
            return Err(LimbError::Soft(share));
        }
        Ok(Self { soft: f64::from(share) * (self.upper + self.lower), ..self })
    }

    /// Length of both bones, cm.
    pub fn length(&self) -> f32 {
        (self.upper + self.lower) as f32
    }

    /// Places the middle joint and the end. Finite for every finite input; deterministic.
    pub fn solve(&self, origin: Vec3, target: Vec3, bend: Bend) -> Result<LimbPose, LimbError> {
        let (direction, named) = match bend {
            Bend::Reference(direction) => (direction, "reference direction"),
            Bend::Pole(direction) => (direction, "pole"),
        };
        for (what, point) in [("start of the limb", origin), ("target", target), (named, direction)] {
            if point.is_nan() || point.abs().max_element() > MOST_CM {
                return Err(LimbError::Point { what, point });
            }
        }
        let (origin, target, direction) = (origin.as_dvec3(), target.as_dvec3(), direction.as_dvec3());
        let away = target - origin;
        let distance = away.length();
        // A target on the start lies in no direction: any will do, if only it is always the same.
        let along = if distance > 0.0 { away / distance } else { DVec3::NEG_Y };
        let length = self.upper + self.lower;
        let (wanted, reach) = self.reach(distance, length);
        let foot = (self.upper * self.upper - self.lower * self.lower + wanted * wanted)
            / (2.0 * wanted).max(f64::MIN_POSITIVE);
        let foot = foot.clamp(-self.upper, self.upper);
        let height = (self.upper * self.upper - foot * foot).max(0.0).sqrt();
        let middle = origin + along * foot + side(along, direction, bend) * height;
        let to_end = origin + along * wanted - middle;
        // Both bones of one length, folded on a target at the start: the end is the start.
        let end = middle + to_end.try_normalize().unwrap_or(-along) * self.lower;
        Ok(LimbPose { middle: middle.as_vec3(), end: end.as_vec3(), reach })
    }

    /// The distance at which the end goes, and how that is called.
    fn reach(&self, distance: f64, length: f64) -> (f64, Reach) {
        let nearest = (self.upper - self.lower).abs();
        let begin = length - self.soft;
        if distance < nearest {
            (distance, Reach::TooNear)
        } else if self.soft > 0.0 && distance > begin {
            let late = begin + self.soft * (1.0 - (-(distance - begin) / self.soft).exp());
            (late, if distance > length { Reach::TooFar } else { Reach::Soft })
        } else if distance > length {
            (distance, Reach::TooFar)
        } else {
            (distance, Reach::Exact)
        }
    }
}

/// The unit vector `n` to which a limb along the unit vector `along` bends.
fn side(along: DVec3, direction: DVec3, bend: Bend) -> DVec3 {
    let unit = direction.try_normalize().unwrap_or(DVec3::ZERO);
    // Both are as long as the sine of the angle between the limb and the direction.
    let raw = match bend {
        Bend::Reference(_) => along.cross(unit),
        Bend::Pole(_) => unit - along * along.dot(unit),
    };
    let limit = CONE_DEGREES.to_radians().sin();
    let sine = raw.length();
    if sine >= limit {
        return raw / sine;
    }
    // Inside the cone: more and more of a fixed side, which depends on the direction alone.
    let fixed =
        if unit == DVec3::ZERO { along.any_orthonormal_vector() } else { unit.any_orthonormal_vector() };
    let fixed = (fixed - along * along.dot(fixed)).try_normalize();
    let fixed = fixed.unwrap_or_else(|| along.any_orthonormal_vector());
    let share = sine / limit;
    let blend = raw.try_normalize().unwrap_or(fixed) * share + fixed * (1.0 - share);
    // Both are perpendicular to the limb, and so is their blend; where they cancel out, the fixed side is taken.
    if blend.length_squared() > 1e-12 { blend.normalize() } else { fixed }
}

#[cfg(test)]
mod tests;
