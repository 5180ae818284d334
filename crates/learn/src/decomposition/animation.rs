//! The animation as the solver wants it: the rest pose about its centre, and for every vertex how far it is
//! from there in every frame, once the rigid motion of the whole mesh is taken away. Small numbers keep
//! their digits in the Gram matrices.

use super::DecompositionError;
use crate::recording::LARGEST_CM;
use rayon::prelude::*;
use understudy_core::rotation::{RigidMotion, fit_rigid};
use understudy_core::{Affine3A, DMat3, DQuat, DVec3, Vec3};

/// A rigid motion less the identity, by rows: `N = [R − I | t]`, so that a point moves by `N [p; 1]`.
pub type Offset = [f64; 12];

/// Prepared frames.
pub struct Animation {
    /// Mean of the rest pose.
    pub centre: DVec3,
    /// Rest positions less their mean, `[V]`.
    pub rest: Vec<DVec3>,
    /// Displacements, `[V][F · 3]`.
    pub displacements: Vec<f32>,
    /// Squared length of each vertex's displacements, `[V]`.
    pub squares: Vec<f64>,
    /// Motion of the whole in each frame, from the centred rest pose, `[F]`.
    pub placements: Vec<RigidMotion>,
}

impl Animation {
    /// Checks and prepares.
    pub fn new(rest: &[Vec3], frames: &[&[Vec3]]) -> Result<Self, DecompositionError> {
        check(rest, frames)?;
        let centre = mean(rest);
        let centred: Vec<Vec3> = rest.iter().map(|p| (p.as_dvec3() - centre).as_vec3()).collect();
        let rest: Vec<DVec3> = rest.iter().map(|p| p.as_dvec3() - centre).collect();
        let placements: Vec<RigidMotion> =
            frames.par_iter().map(|frame| fit_rigid(&centred, frame)).collect();
        let mut displacements = vec![0.0f32; rest.len() * frames.len() * 3];
        let back: Vec<DMat3> = placements.iter().map(|placement| placement.rotation.transpose()).collect();
        let squares = displacements
            .par_chunks_mut(frames.len() * 3)
            .enumerate()
            .map(|(vertex, row)| {
                for (frame, out) in row.chunks_exact_mut(3).enumerate() {
                    let moved = frames[frame][vertex].as_dvec3() - placements[frame].translation;
                    (back[frame] * moved - rest[vertex]).as_vec3().write_to_slice(out);
                }
                row.iter().map(|d| f64::from(*d).powi(2)).sum()
            })
            .collect();
        Ok(Self { centre, rest, displacements, squares, placements })
    }

    /// At most so many frames, spread evenly.
    pub fn thinned(&self, most: usize) -> Self {
        let count = self.frames().min(most);
        let chosen: Vec<usize> = (0..count).map(|i| i * self.frames() / count).collect();
        let pick = |vertex: usize| {
            let row = self.row(vertex);
            chosen.iter().flat_map(move |frame| row[frame * 3..frame * 3 + 3].iter().copied())
        };
        let displacements: Vec<f32> = (0..self.vertices()).flat_map(pick).collect();
        let square = |row: &[f32]| row.iter().map(|d| f64::from(*d).powi(2)).sum();
        Self {
            centre: self.centre,
            rest: self.rest.clone(),
            squares: displacements.chunks_exact(count * 3).map(square).collect(),
            displacements,
            placements: chosen.iter().map(|frame| self.placements[*frame]).collect(),
        }
    }

    /// Number of frames.
    pub fn frames(&self) -> usize {
        self.placements.len()
    }

    /// Number of vertices.
    pub fn vertices(&self) -> usize {
        self.rest.len()
    }

    /// `[p; 1]` of a vertex.
    pub fn point(&self, vertex: usize) -> [f64; 4] {
        let p = self.rest[vertex];
        [p.x, p.y, p.z, 1.0]
    }

    /// Displacements of a vertex, `[F · 3]`.
    pub fn row(&self, vertex: usize) -> &[f32] {
        let width = self.frames() * 3;
        &self.displacements[vertex * width..(vertex + 1) * width]
    }

    /// Where a vertex is in a frame, about the centre and without the motion of the whole.
    pub fn place(&self, vertex: usize, frame: usize) -> DVec3 {
        let d = &self.row(vertex)[frame * 3..frame * 3 + 3];
        self.rest[vertex] + DVec3::new(d[0].into(), d[1].into(), d[2].into())
    }

    /// Root of the mean squared distance of a vertex for a sum of squared distances.
    pub fn rmse(&self, squares: f64) -> f64 {
        (squares.max(0.0) / (self.vertices() * self.frames()) as f64).sqrt()
    }

    /// A bone's offset in a frame as a map from the rest pose to the frame, in the caller's coordinates.
    pub fn to_affine(&self, frame: usize, offset: &Offset) -> Affine3A {
        let placement = &self.placements[frame];
        let motion = motion_of(offset);
        let rotation = placement.rotation * motion.rotation;
        let translation = placement.rotation * motion.translation + placement.translation;
        let shift = translation - rotation * self.centre;
        Affine3A::from_mat3_translation(rotation.as_mat3(), shift.as_vec3())
    }

    /// The rigid motion that carries some vertices best, frame by frame, `[F]`.
    pub fn fit(&self, vertices: &[usize]) -> Vec<Offset> {
        let from: Vec<Vec3> = vertices.iter().map(|vertex| self.rest[*vertex].as_vec3()).collect();
        let fit = |frame: usize| {
            let to: Vec<Vec3> = vertices.iter().map(|vertex| self.place(*vertex, frame).as_vec3()).collect();
            offset_of(&fit_rigid(&from, &to))
        };
        (0..self.frames()).into_par_iter().map(fit).collect()
    }
}

/// The mean of some points.
pub fn mean(points: &[Vec3]) -> DVec3 {
    points.iter().map(|p| p.as_dvec3()).sum::<DVec3>() / points.len() as f64
}

fn check(rest: &[Vec3], frames: &[&[Vec3]]) -> Result<(), DecompositionError> {
    if rest.is_empty() {
        return Err(DecompositionError::Count { what: "vertices", got: 0, want: 1 });
    }
    if frames.is_empty() {
        return Err(DecompositionError::Count { what: "frames", got: 0, want: 1 });
    }
    let positions = |frame: Option<usize>, positions: &[Vec3]| {
        for (vertex, position) in positions.iter().enumerate() {
            let distance = position.abs().max_element();
            if !position.is_finite() {
                return Err(DecompositionError::NonFinite { frame, vertex });
            }
            if distance > LARGEST_CM {
                return Err(DecompositionError::TooFar { frame, vertex, distance });
            }
        }
        Ok(())
    };
    positions(None, rest)?;
    for (index, frame) in frames.iter().enumerate() {
        if frame.len() != rest.len() {
            return Err(DecompositionError::Frame { frame: index, got: frame.len(), want: rest.len() });
        }
        positions(Some(index), frame)?;
    }
    Ok(())
}

/// `[R − I | t]`.
pub fn offset_of(motion: &RigidMotion) -> Offset {
    let (r, t) = (motion.rotation, motion.translation);
    let row = |axis: usize| {
        let row = r.row(axis);
        let identity = |column: usize| if column == axis { 1.0 } else { 0.0 };
        [row.x - identity(0), row.y - identity(1), row.z - identity(2), t[axis]]
    };
    let rows = [row(0), row(1), row(2)];
    std::array::from_fn(|i| rows[i / 4][i % 4])
}

/// The motion of an offset.
pub fn motion_of(offset: &Offset) -> RigidMotion {
    let n = offset;
    RigidMotion {
        rotation: DMat3::from_cols(
            DVec3::new(1.0 + n[0], n[4], n[8]),
            DVec3::new(n[1], 1.0 + n[5], n[9]),
            DVec3::new(n[2], n[6], 1.0 + n[10]),
        ),
        translation: DVec3::new(n[3], n[7], n[11]),
    }
}

/// Goes on beyond `now` by `reach` times the way from `before`; rigid again.
pub fn extrapolate(before: &Offset, now: &Offset, reach: f64) -> Offset {
    let (before, now) = (motion_of(before), motion_of(now));
    let turn = DQuat::from_mat3(&(now.rotation * before.rotation.transpose()));
    let further = DQuat::from_scaled_axis(turn.to_scaled_axis() * reach);
    let rotation = DMat3::from_quat((further * DQuat::from_mat3(&now.rotation)).normalize());
    let translation = now.translation + (now.translation - before.translation) * reach;
    offset_of(&RigidMotion { rotation, translation })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_and_placements_come_back() {
        let rest: Vec<Vec3> =
            (0..20).map(|i| Vec3::new(i as f32, (i * i % 7) as f32, (i % 3) as f32 * 5.0)).collect();
        let whole = RigidMotion {
            rotation: DMat3::from_quat(DQuat::from_rotation_y(2.0)),
            translation: DVec3::new(50.0, -3.0, 900.0),
        };
        let frame: Vec<Vec3> = rest.iter().map(|p| whole.apply(*p)).collect();
        let animation = Animation::new(&rest, &[&frame]).expect("finite");
        // The whole moved rigidly: nothing is left but the rounding of the frame itself.
        assert!(animation.displacements.iter().all(|d| d.abs() < 1e-3));
        let back = animation.to_affine(0, &[0.0; 12]);
        assert!(rest.iter().zip(&frame).all(|(p, v)| back.transform_point3(*p).distance(*v) < 1e-3));
        let offset = offset_of(&whole);
        assert_eq!(motion_of(&offset), whole);
    }

    #[test]
    fn bad_frames_are_named() {
        let rest = [Vec3::ZERO, Vec3::X];
        assert!(Animation::new(&[], &[]).is_err() && Animation::new(&rest, &[]).is_err());
        let short = Animation::new(&rest, &[&rest, &rest[..1]]).err();
        assert_eq!(short, Some(DecompositionError::Frame { frame: 1, got: 1, want: 2 }));
        let bad = [Vec3::ZERO, Vec3::NAN];
        let wrong = Animation::new(&rest, &[&bad]).err();
        assert_eq!(wrong, Some(DecompositionError::NonFinite { frame: Some(0), vertex: 1 }));
    }
}
