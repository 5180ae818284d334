//! Transforms of Alembic: a list of operations, of which any number may be animated.

use super::archive::{Archive, Holds, Object, Property};
use crate::ParseError;
use glam::{DAffine3, DMat3, DMat4, DVec3, DVec4};

pub(super) const SCHEMA: &str = "AbcGeom_Xform";

/// What moves an object within the one above it.
#[derive(Debug)]
pub(super) struct Transform {
    /// Kinds of the operations, outermost first.
    operations: Vec<u8>,
    values: Option<Property>,
    inherits: Option<Property>,
    path: String,
}

impl Transform {
    /// Of an object that is one; `None` for one that stands still at the origin.
    pub fn read(archive: &Archive, object: &Object) -> Result<Option<Self>, ParseError> {
        let Some(compound) = object.properties.iter().find(|property| property.name == ".xform") else {
            return Ok(None);
        };
        let place = |what: &str| format!("{}: {what}", object.path);
        let mut inner = archive.inner(compound, &object.path)?;
        let mut take = |name: &str| {
            let place = inner.iter().position(|property| property.name == name)?;
            Some(inner.swap_remove(place))
        };
        let (operations, values, inherits) = (take(".ops"), take(".vals"), take(".inherits"));
        let operations = match &operations {
            Some(property) if property.samples > 0 && property.holds != Holds::Properties => {
                let data = archive.sample(property, 0)?;
                archive.charge(&object.path, data.size)?;
                archive.container.read(data, super::archive::KEY)?.iter().map(|code| code >> 4).collect()
            }
            _ => Vec::new(),
        };
        let values = values.filter(|values| values.samples > 0 && values.holds != Holds::Properties);
        let inherits = inherits.filter(|inherits| inherits.samples > 0 && inherits.holds == Holds::Value);
        let needed: Result<u64, ParseError> = operations.iter().try_fold(0, |sum, code| {
            channels(*code)
                .map(|count| sum + count as u64)
                .ok_or_else(|| ParseError::new(place(".ops"), format!("operation {code} is not known")))
        });
        let needed = needed?;
        let given = match &values {
            Some(values) => archive.numbers(values, 0)?,
            None => 0,
        };
        if given < needed {
            return Err(ParseError::new(place(".vals"), format!("{given} numbers, {needed} expected")));
        }
        Ok(Some(Self { operations, values, inherits, path: object.path.clone() }))
    }

    /// What is animated, for its times.
    pub fn animated(&self) -> impl Iterator<Item = &Property> {
        [&self.values, &self.inherits].into_iter().flatten().filter(|property| !property.is_constant())
    }

    /// Whether what is above moves it too, at a time.
    pub fn inherits(&self, archive: &Archive, time: f64) -> Result<bool, ParseError> {
        let Some(property) = &self.inherits else { return Ok(true) };
        let sample =
            archive.samplings[property.sampling].at_or_before(time + TIME_TOLERANCE, property.samples);
        Ok(archive.doubles(property, sample)?.first().is_none_or(|value| *value != 0.0))
    }

    /// At a time; between two samples the matrices are blended.
    pub fn at(&self, archive: &Archive, time: f64) -> Result<DAffine3, ParseError> {
        let Some(values) = self.values.as_ref().filter(|_| !self.operations.is_empty()) else {
            return Ok(DAffine3::IDENTITY);
        };
        let (sample, share) = moment(archive, values, time);
        let first = self.matrix(&archive.doubles(values, sample)?)?;
        if share == 0.0 {
            return Ok(first);
        }
        let second = self.matrix(&archive.doubles(values, sample + 1)?)?;
        let blend = |a: DVec3, b: DVec3| a.lerp(b, share);
        let (a, b) = (first.matrix3, second.matrix3);
        let matrix3 =
            DMat3::from_cols(blend(a.x_axis, b.x_axis), blend(a.y_axis, b.y_axis), blend(a.z_axis, b.z_axis));
        Ok(DAffine3 { matrix3, translation: blend(first.translation, second.translation) })
    }

    /// Operations multiplied, the first of the list outermost.
    fn matrix(&self, values: &[f64]) -> Result<DAffine3, ParseError> {
        let mut out = DAffine3::IDENTITY;
        let mut rest = values;
        for &code in &self.operations {
            let count = channels(code).unwrap_or(0);
            let Some((v, left)) = rest.split_at_checked(count) else {
                return Err(ParseError::new(
                    self.path.clone(),
                    "a sample of .vals is shorter than the first",
                ));
            };
            rest = left;
            let axis = |axis: DVec3, degrees: f64| {
                let axis = axis.try_normalize().unwrap_or(DVec3::X);
                DAffine3::from_axis_angle(axis, degrees.to_radians())
            };
            out *= match code {
                0 => DAffine3::from_scale(DVec3::new(v[0], v[1], v[2])),
                1 => DAffine3::from_translation(DVec3::new(v[0], v[1], v[2])),
                2 => axis(DVec3::new(v[0], v[1], v[2]), v[3]),
                3 => affine(v),
                4 => axis(DVec3::X, v[0]),
                5 => axis(DVec3::Y, v[0]),
                _ => axis(DVec3::Z, v[0]),
            };
        }
        if out.is_finite() {
            return Ok(out);
        }
        Err(ParseError::new(self.path.clone(), "its transform is not finite"))
    }
}

/// Times this near are one, seconds.
pub(super) const TIME_TOLERANCE: f64 = 1e-5;

/// The sample at or before a time, and the share of the next one: 0 where the time is that of a sample, or is outside
/// them all.
pub(super) fn moment(archive: &Archive, property: &Property, time: f64) -> (u32, f64) {
    let sampling = &archive.samplings[property.sampling];
    let sample = sampling.at_or_before(time + TIME_TOLERANCE, property.samples);
    if property.is_constant() || sample + 1 >= property.samples {
        return (sample, 0.0);
    }
    let (from, to) = (sampling.time(sample), sampling.time(sample + 1));
    if time - from < TIME_TOLERANCE { (sample, 0.0) } else { (sample, (time - from) / (to - from)) }
}

/// Numbers that an operation takes: scale, move, turn about an axis, matrix, turn about X, Y, Z.
fn channels(code: u8) -> Option<usize> {
    [3, 3, 4, 16, 1, 1, 1].get(usize::from(code)).copied()
}

/// Sixteen numbers, row by row, for vectors as rows.
fn affine(v: &[f64]) -> DAffine3 {
    let row = |r: usize| DVec4::new(v[4 * r], v[4 * r + 1], v[4 * r + 2], v[4 * r + 3]);
    // A row of a matrix for row vectors is a column of one for column vectors.
    DAffine3::from_mat4(DMat4::from_cols(row(0), row(1), row(2), row(3)))
}
