//! Mira's face without the back of her head, eyes, teeth and hair: as many vertices as the characters of the paper have (its
//! table 1: 3,211 to 4,403), so that its ablations run in minutes.

use anyhow::{Context as _, Result};
use understudy_core::{Clip, ControlSpecs, Controls, Face, Mesh, MeshParts, Skeleton, SkinWeights, Vec3};
use understudy_rigs::{Rig, RigError, RigPose};

/// Segments of the face, and how many of their vertices: those farthest to the front.
const SEGMENTS: [&str; 3] = ["skin", "eyelids", "lips"];
const VERTICES: usize = 4403;

/// Part of the mesh of a rig.
pub struct FaceOf {
    rig: Box<dyn Rig>,
    mesh: Mesh,
    weights: Option<SkinWeights>,
    /// The rig's vertex of each of ours, ascending.
    kept: Vec<u32>,
}

impl FaceOf {
    /// Of a rig with these segments that faces +Z.
    pub fn new(rig: Box<dyn Rig>) -> Result<Self> {
        let whole = rig.mesh();
        let places = whole.positions();
        let mut front: Vec<u32> = SEGMENTS
            .iter()
            .filter_map(|name| whole.segments().find(name))
            .flat_map(|segment| whole.segments().vertices(segment))
            .collect();
        front.sort_by(|a, b| places[*b as usize].z.total_cmp(&places[*a as usize].z).then(a.cmp(b)));
        front.truncate(VERTICES);
        let mut chosen = vec![false; places.len()];
        front.iter().for_each(|v| chosen[*v as usize] = true);
        let faces: Vec<&Face> =
            whole.faces().iter().filter(|face| face.corners().iter().all(|v| chosen[*v as usize])).collect();
        let mut kept: Vec<u32> = faces.iter().flat_map(|face| face.corners().to_vec()).collect();
        kept.sort_unstable();
        kept.dedup();
        let ours = |v: &u32| kept.binary_search(v).map_or(0, |place| place as u32);
        let face = |face: &&Face| match *face.corners() {
            [a, b, c] => Face::triangle(ours(&a), ours(&b), ours(&c)),
            [a, b, c, d] => Face::quad(ours(&a), ours(&b), ours(&c), ours(&d)),
            _ => unreachable!("faces have three or four corners"),
        };
        let parts = MeshParts {
            positions: kept.iter().map(|v| places[*v as usize]).collect(),
            faces: faces.iter().map(face).collect(),
            ..MeshParts::default()
        };
        let mesh = parts.build().with_context(|| format!("{} has no such face", rig.name()))?;
        let row = |weights: &SkinWeights, v: u32| -> Vec<(u16, f32)> {
            weights.row(v as usize).map(|(bone, weight)| (bone as u16, weight)).collect()
        };
        let weights = match rig.skin_weights() {
            Some(weights) => {
                let rows: Vec<_> = kept.iter().map(|v| row(weights, *v)).collect();
                Some(SkinWeights::from_rows(&rows, weights.bone_count())?)
            }
            None => None,
        };
        Ok(Self { mesh, weights, kept, rig })
    }
}

impl Rig for FaceOf {
    fn name(&self) -> &str {
        self.rig.name()
    }

    fn specs(&self) -> &ControlSpecs {
        self.rig.specs()
    }

    fn mesh(&self) -> &Mesh {
        &self.mesh
    }

    fn skeleton(&self) -> Option<&Skeleton> {
        self.rig.skeleton()
    }

    fn skin_weights(&self) -> Option<&SkinWeights> {
        self.weights.as_ref()
    }

    fn clips(&self) -> &[Clip] {
        self.rig.clips()
    }

    fn evaluate(&self, controls: &Controls, out: &mut RigPose) -> Result<(), RigError> {
        self.rig.evaluate(controls, out)?;
        // Ascending: nothing is overwritten before it is read.
        for (place, vertex) in self.kept.iter().enumerate() {
            out.vertices[place] = out.vertices[*vertex as usize];
        }
        out.vertices.truncate(self.kept.len());
        Ok(())
    }

    fn evaluate_from(&self, _: &[Vec3], _: &Controls, _: &mut RigPose) -> Result<(), RigError> {
        Err(RigError::Unsupported { rig: self.name().into(), what: "be posed from other rest positions" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use understudy_jobs::{Silent, rigs};

    #[test]
    fn the_face_moves_as_the_whole_does() {
        let open = || rigs::open("mira", &Silent).expect("mira is always there").rig;
        let (whole, face) = (open(), FaceOf::new(open()).expect("she has a face"));
        let count = face.mesh().vertex_count();
        assert!((3211..=4403).contains(&count), "{count} vertices");
        let rest = whole.mesh().positions();
        let pairs = face.mesh().positions().iter().zip(&face.kept);
        assert!(pairs.into_iter().all(|(own, v)| *own == rest[*v as usize]));
        let frames = whole.find_clip("roar").expect("she roars").sample(whole.specs(), 2.0).expect("a rate");
        let (mut all, mut own) = (RigPose::default(), RigPose::default());
        for frame in &frames.frames {
            whole.evaluate(frame, &mut all).expect("a valid pose");
            face.evaluate(frame, &mut own).expect("a valid pose");
            assert!(own.vertices.iter().zip(&face.kept).all(|(a, v)| *a == all.vertices[*v as usize]));
        }
        assert_eq!(own.vertices.len(), count);
    }
}
