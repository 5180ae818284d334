//! Where a head is: the similarity that carries a canonical face onto the points that a camera sees, and the points in the frame of
//! that face, head pose and size removed.
//!
//! Points of a picture are places in it and a depth of the same scale. A pinhole camera (vertical angle of view 63°, as
//! MediaPipe assumes where nothing is known) makes them metric in two rounds: the size of the face gives its distance, and the
//! distance corrects its size. Then `min Σ ω_i ‖s R c_i + t − x_i‖²` over the weighted basis of the canonical face.

use understudy_core::Vec3;
use understudy_core::rotation::best_rotation;
use understudy_core::{DMat3, DQuat, DVec3, EulerRot};

/// Vertical angle of view, degrees.
const VIEW: f64 = 63.0;
/// Distance of the picture's plane, cm.
const NEAR: f64 = 1.0;

/// A canonical face, cm, and which of its points say where a head is.
#[derive(Debug, Clone, PartialEq)]
pub struct FaceGeometry {
    vertices: Vec<Vec3>,
    basis: Vec<(u32, f32)>,
}

/// A head before a camera: `x = s R c + t`, y up, z towards the camera, cm.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HeadPose {
    /// Of the actor's face to the canonical one.
    pub scale: f64,
    /// Of the head.
    pub rotation: DMat3,
    /// Of the canonical face's origin.
    pub translation: DVec3,
}

impl HeadPose {
    /// Turns about y (to the actor's left), x (down) and z (towards the actor's right shoulder), degrees: R = Ry Rx Rz.
    pub fn angles(&self) -> [f32; 3] {
        let (y, x, z) = DQuat::from_mat3(&self.rotation).to_euler(EulerRot::YXZ);
        [y, x, z].map(|angle| angle.to_degrees() as f32)
    }
}

impl FaceGeometry {
    /// Reads the member of a `.task` file that holds it, a message of protocol buffers.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let (mut numbers, mut basis) = (Vec::new(), Vec::new());
        fields(bytes, |field, value| {
            match (field, value) {
                (1, Value::Bytes(mesh)) => fields(mesh, |field, value| {
                    if field == 3 {
                        floats(value, &mut numbers)?;
                    }
                    Ok(())
                })?,
                (2, Value::Bytes(entry)) => {
                    let (mut point, mut weight) = (0, Vec::new());
                    fields(entry, |field, value| {
                        match (field, value) {
                            (1, Value::Integer(index)) => point = index,
                            (2, value) => floats(value, &mut weight)?,
                            _ => {}
                        }
                        Ok(())
                    })?;
                    let point = u32::try_from(point).map_err(|_| format!("point {point} makes no sense"))?;
                    basis.push((point, weight.first().copied().unwrap_or(0.0)));
                }
                _ => {}
            }
            Ok(())
        })?;
        // Five numbers a vertex: a place and texture coordinates.
        if numbers.is_empty() || numbers.len() % 5 != 0 {
            return Err(format!("{} numbers are no vertices of five", numbers.len()));
        }
        let vertices: Vec<Vec3> = numbers.chunks_exact(5).map(Vec3::from_slice).collect();
        Self::new(vertices, basis)
    }

    /// From vertices and weighted points.
    pub fn new(vertices: Vec<Vec3>, basis: Vec<(u32, f32)>) -> Result<Self, String> {
        if let Some(index) = vertices.iter().position(|vertex| !vertex.is_finite() || vertex.length() > 1e3) {
            return Err(format!("vertex {index} is not a place of a face"));
        }
        if basis.len() < 3 {
            return Err(format!("{} weighted points, three at least are wanted", basis.len()));
        }
        for (point, weight) in &basis {
            if *point as usize >= vertices.len() || !(0.0..=1e3).contains(weight) {
                return Err(format!("point {point} of weight {weight} makes no sense"));
            }
        }
        let face = Self { vertices, basis };
        let spread = face.basis.iter().map(|(point, weight)| {
            f64::from(*weight)
                * (face.vertices[*point as usize] - face.vertices[face.basis[0].0 as usize]).length_squared()
                    as f64
        });
        if spread.sum::<f64>() < 1e-9 {
            return Err("all weighted points lie in one place".into());
        }
        Ok(face)
    }

    /// The canonical face, cm, y up, looking along z.
    pub fn vertices(&self) -> &[Vec3] {
        &self.vertices
    }

    /// Where the head is and, in `local`, its points in the frame of the canonical face. `points`: x and y in shares of the
    /// picture's `[width, height]`, y down, z in shares of the width, away from the camera. Points beyond the canonical ones
    /// (irises) are carried along. Nothing where the points lie in one place or are not finite.
    pub fn solve(&self, points: &[Vec3], size: [f32; 2], local: &mut Vec<Vec3>) -> Option<HeadPose> {
        if points.len() < self.vertices.len() || !points.iter().all(|point| point.is_finite()) {
            return None;
        }
        let height = 2.0 * NEAR * (0.5 * VIEW).to_radians().tan();
        let width = height * f64::from(size[0]) / f64::from(size[1]);
        // In the plane of the picture; z of the same scale as x, towards the camera negative still.
        let plane = |point: &Vec3| {
            let [x, y, z] = point.to_array().map(f64::from);
            DVec3::new((x - 0.5) * width, (0.5 - y) * height, z * width)
        };
        let depth = points[..self.vertices.len()].iter().map(|point| plane(point).z).sum::<f64>()
            / self.vertices.len() as f64;
        let metric = |scale: f64, point: &Vec3| {
            let at = plane(point);
            let z = (at.z - depth + NEAR) / scale;
            DVec3::new(at.x * z / NEAR, at.y * z / NEAR, -z)
        };
        // Not yet in perspective: depths are relative until the distance is known.
        let first = self.fit(&|point| plane(&points[point]) * DVec3::new(1.0, 1.0, -1.0))?.scale;
        let second = self.fit(&|point| metric(first, &points[point]))?.scale;
        let scale = first * second;
        let pose = self.fit(&|point| metric(scale, &points[point]))?;
        let back = pose.rotation.transpose();
        local.clear();
        local.extend(
            points
                .iter()
                .map(|point| (back * (metric(scale, point) - pose.translation) / pose.scale).as_vec3()),
        );
        (pose.scale.is_finite()
            && pose.translation.is_finite()
            && local.iter().all(|point| point.is_finite()))
        .then_some(pose)
    }

    /// The similarity from the canonical face to places, weighted.
    fn fit(&self, place: &dyn Fn(usize) -> DVec3) -> Option<HeadPose> {
        let pairs = || {
            self.basis.iter().map(|(point, weight)| {
                let point = *point as usize;
                (f64::from(*weight), self.vertices[point].as_dvec3(), place(point))
            })
        };
        let total: f64 = pairs().map(|(weight, ..)| weight).sum();
        let from = pairs().map(|(weight, from, _)| weight * from).sum::<DVec3>() / total;
        let to = pairs().map(|(weight, _, to)| weight * to).sum::<DVec3>() / total;
        let (mut covariance, mut spread) = (DMat3::ZERO, 0.0);
        for (weight, a, b) in pairs() {
            let (a, b) = (a - from, b - to);
            covariance += DMat3::from_cols(a * b.x, a * b.y, a * b.z) * weight;
            spread += weight * a.length_squared();
        }
        if !covariance.is_finite() {
            return None;
        }
        let rotation = best_rotation(covariance);
        // Σ ω b·(R a) over Σ ω a·a; `covariance` is Σ ω a bᵀ.
        let turned = rotation * covariance;
        let scale = (turned.x_axis.x + turned.y_axis.y + turned.z_axis.z) / spread;
        (scale.is_finite() && scale > 1e-9).then(|| HeadPose {
            scale,
            rotation,
            translation: to - scale * (rotation * from),
        })
    }
}

/// A value on the wire.
enum Value<'a> {
    Integer(u64),
    Bytes(&'a [u8]),
    Single([u8; 4]),
    Double,
}

/// Calls `each` with every field of a message.
fn fields<'a>(
    bytes: &'a [u8],
    mut each: impl FnMut(u64, Value<'a>) -> Result<(), String>,
) -> Result<(), String> {
    let mut place = 0;
    let varint = |place: &mut usize| -> Result<u64, String> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = *bytes.get(*place).ok_or("the message is truncated")?;
            *place += 1;
            value |= u64::from(byte & 127) << shift;
            if byte < 128 {
                return Ok(value);
            }
        }
        Err("a number without end".into())
    };
    while place < bytes.len() {
        let key = varint(&mut place)?;
        let take = |place: &mut usize, count: usize| -> Result<&'a [u8], String> {
            let end = place.checked_add(count).filter(|end| *end <= bytes.len());
            let taken = &bytes[*place..end.ok_or("the message is truncated")?];
            *place += count;
            Ok(taken)
        };
        let value = match key & 7 {
            0 => Value::Integer(varint(&mut place)?),
            1 => take(&mut place, 8).map(|_| Value::Double)?,
            2 => {
                let count = usize::try_from(varint(&mut place)?).map_err(|_| "a length out of range")?;
                Value::Bytes(take(&mut place, count)?)
            }
            5 => Value::Single(take(&mut place, 4)?.try_into().expect("four bytes")),
            other => return Err(format!("wire type {other} is not known")),
        };
        each(key >> 3, value)?;
    }
    Ok(())
}

/// One float, or many in a row.
fn floats(value: Value, out: &mut Vec<f32>) -> Result<(), String> {
    match value {
        Value::Single(bytes) => out.push(f32::from_le_bytes(bytes)),
        Value::Bytes(bytes) if bytes.len() % 4 == 0 => {
            out.extend(bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])));
        }
        _ => return Err("floats are wanted".into()),
    }
    Ok(())
}
