//! A synthetic character for the glTF tests: a bent tube of quads with a UV seam and loose triangles,
//! a tree of bones with eight influences per vertex, shapes with correctives of three levels, and clips.
#![allow(dead_code, reason = "each test binary uses its own part of this")]

use understudy_core::{
    BlendshapeRig, Bone, Corrective, Face, GlobalPose, JointClip, JointPose, JointTransform, Mesh, MeshParts,
    Quat, Random, Segments, Shape, Skeleton, SkinWeights, SparseDeltas, Vec2, Vec3,
};
use understudy_io::gltf::GltfScene;

pub struct Character {
    pub mesh: Mesh,
    pub skeleton: Skeleton,
    pub skin: SkinWeights,
    pub shapes: BlendshapeRig,
    pub clips: Vec<JointClip>,
    pub colours: Vec<Vec3>,
}

/// How large a character.
#[derive(Clone, Copy)]
pub struct Size {
    pub rings: usize,
    pub sides: usize,
    pub bones: usize,
    pub influences: usize,
    pub shapes: usize,
    pub correctives: usize,
    pub frames: usize,
}

impl Size {
    /// As large as the embedded characters: more than 13,000 vertices and 100 bones.
    pub const FULL: Self =
        Self { rings: 166, sides: 80, bones: 104, influences: 8, shapes: 60, correctives: 24, frames: 12 };
    pub const SMALL: Self =
        Self { rings: 6, sides: 5, bones: 5, influences: 3, shapes: 3, correctives: 2, frames: 4 };
}

impl Character {
    pub fn new(size: Size, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mesh = tube(size, &mut random);
        let skeleton = bones(size, &mut random);
        let skin = weights(size, &mesh, &skeleton, &mut random);
        let shapes = shapes(size, &mesh, &mut random);
        let clips = vec![
            clip("walk", 24.0, size, &skeleton, &mut random),
            clip("idle", 30.0, size, &skeleton, &mut random),
        ];
        let colours =
            mesh.positions().iter().map(|_| Vec3::new(random.uniform(0.0, 1.0), 0.5, 1.0)).collect();
        Self { mesh, skeleton, skin, shapes, clips, colours }
    }

    pub fn scene(&self) -> GltfScene<'_> {
        GltfScene {
            skin: Some((&self.skeleton, &self.skin)),
            shapes: Some(&self.shapes),
            clips: &self.clips,
            colours: Some(&self.colours),
            ..GltfScene::new("character", &self.mesh)
        }
    }

    /// The deformation by the core's own functions, without any file.
    pub fn evaluate(&self, clip: &JointClip, frame: usize) -> Vec<Vec3> {
        let mut shaped = self.mesh.positions().to_vec();
        self.shapes.add_offsets(&clip.shape_weights[frame], &mut shaped);
        let (mut global, mut matrices) = (GlobalPose::default(), Vec::new());
        self.skeleton.forward(&clip.poses[frame], &mut global).expect("a pose of this skeleton");
        self.skeleton.skinning_matrices(&global, &mut matrices);
        let mut out = vec![Vec3::ZERO; shaped.len()];
        self.skin.linear_blend(&matrices, &shaped, &mut out);
        out
    }
}

/// Rings of quads up to 190 cm, closed around with a seam in the UVs, and three loose triangles.
fn tube(size: Size, random: &mut Random) -> Mesh {
    let (rings, sides) = (size.rings, size.sides);
    let mut parts = MeshParts::default();
    for ring in 0..rings {
        for side in 0..sides {
            let angle = std::f32::consts::TAU * side as f32 / sides as f32;
            let up = ring as f32 / (rings - 1) as f32;
            let radius = 20.0 + 8.0 * (up * 9.0).sin() + random.uniform(-0.1, 0.1);
            parts.positions.push(Vec3::new(radius * angle.cos(), 190.0 * up, radius * angle.sin()));
        }
    }
    for ring in 0..rings {
        parts.uvs.extend(
            (0..=sides).map(|side| Vec2::new(side as f32 / sides as f32, ring as f32 / (rings - 1) as f32)),
        );
    }
    let at = |ring: usize, side: usize| (ring * sides + side % sides) as u32;
    let uv = |ring: usize, side: usize| (ring * (sides + 1) + side) as u32;
    for ring in 0..rings - 1 {
        for side in 0..sides {
            parts.faces.push(Face::quad(
                at(ring, side),
                at(ring + 1, side),
                at(ring + 1, side + 1),
                at(ring, side + 1),
            ));
            parts.face_uvs.push(Face::quad(
                uv(ring, side),
                uv(ring + 1, side),
                uv(ring + 1, side + 1),
                uv(ring, side + 1),
            ));
        }
    }
    let half = parts.positions.len() / 2;
    parts.segments =
        Segments { names: vec!["legs".into(), "trunk".into(), "buckles".into()], of_vertex: Vec::new() };
    parts.segments.of_vertex.extend((0..parts.positions.len()).map(|v| u32::from(v >= half)));
    for piece in 0..3 {
        let start = parts.positions.len() as u32;
        let centre = Vec3::new(30.0, 100.0 + 5.0 * piece as f32, 3.0);
        parts.positions.extend([centre, centre + Vec3::X, centre + Vec3::Y]);
        parts.segments.of_vertex.extend([2; 3]);
        parts.faces.push(Face::triangle(start, start + 1, start + 2));
        parts.face_uvs.push(Face::triangle(0, 1, 2));
    }
    parts.build().expect("a valid tube")
}

/// A spine with side branches, rotated and slightly scaled at rest.
fn bones(size: Size, random: &mut Random) -> Skeleton {
    let bone = |index: usize| {
        let parent = index.checked_sub(if index % 5 == 4 { 3 } else { 1 });
        let turn = Quat::from_scaled_axis(vector(random, 0.15));
        let step = Vec3::Y * (220.0 / size.bones as f32);
        let rest = JointTransform {
            rotation: turn,
            translation: if index == 0 { Vec3::new(1.5, 2.5, -0.5) } else { step },
            scale: if index % 7 == 3 { Vec3::new(1.02, 0.99, 1.0) } else { Vec3::ONE },
        };
        Bone { name: format!("bone {index}"), parent, rest }
    };
    Skeleton::new((0..size.bones).map(bone).collect()).expect("a tree")
}

fn weights(size: Size, mesh: &Mesh, skeleton: &Skeleton, random: &mut Random) -> SkinWeights {
    let places: Vec<Vec3> = skeleton.rest_global().iter().map(|g| Vec3::from(g.translation)).collect();
    let rows: Vec<Vec<(u16, f32)>> = mesh
        .positions()
        .iter()
        .map(|p| {
            let mut near: Vec<(u16, f32)> =
                (0u16..).zip(&places).map(|(b, place)| (b, place.distance(*p))).collect();
            near.sort_by(|a, b| a.1.total_cmp(&b.1));
            near.truncate(size.influences);
            near.iter_mut().for_each(|(_, w)| *w = random.uniform(0.2, 1.0) / (1.0 + *w));
            let sum: f32 = near.iter().map(|(_, w)| w).sum();
            near.iter().map(|(b, w)| (*b, w / sum)).collect()
        })
        .collect();
    SkinWeights::from_rows(&rows, skeleton.bones().len()).expect("valid weights")
}

fn shapes(size: Size, mesh: &Mesh, random: &mut Random) -> BlendshapeRig {
    let count = mesh.vertex_count();
    let mut bump = |reach: f32| {
        let centre = mesh.positions()[random.below(count)];
        let push = vector(random, 3.0);
        let dense: Vec<Vec3> =
            mesh.positions().iter().map(|p| push * (1.0 - p.distance(centre) / reach).max(0.0)).collect();
        SparseDeltas::from_dense(&dense, 0.0)
    };
    // Every fifth shape moves everything, so that both kinds of accessor are written.
    let shape = |i: usize| Shape {
        name: format!("shape {i}"),
        deltas: bump(if i.is_multiple_of(5) { 500.0 } else { 30.0 }),
    };
    let list: Vec<Shape> = (0..size.shapes).map(shape).collect();
    let corrective = |i: usize| {
        let level = 2 + i % 3.min(size.shapes - 1);
        Corrective {
            shapes: (0..level as u32).map(|k| (i as u32 + k) % size.shapes as u32).collect(),
            deltas: bump(20.0),
        }
    };
    let correctives = (0..size.correctives).map(corrective).collect();
    BlendshapeRig::new(mesh.positions().to_vec(), list, correctives).expect("a valid rig")
}

fn clip(name: &str, rate: f32, size: Size, skeleton: &Skeleton, random: &mut Random) -> JointClip {
    let mut pose = || {
        let mut pose = skeleton.rest_pose();
        for (bone, joint) in pose.0.iter_mut().enumerate().filter(|(bone, _)| bone % 4 != 3) {
            joint.rotation = (joint.rotation * Quat::from_scaled_axis(vector(random, 0.3))).normalize();
            if bone == 0 {
                joint.translation += vector(random, 20.0);
            }
        }
        pose
    };
    let poses: Vec<JointPose> = (0..size.frames).map(|_| pose()).collect();
    let mut weights = || (0..size.shapes).map(|_| random.uniform(-0.2, 1.0)).collect();
    JointClip { name: name.into(), rate, poses, shape_weights: (0..size.frames).map(|_| weights()).collect() }
}

fn vector(random: &mut Random, size: f32) -> Vec3 {
    Vec3::new(random.uniform(-size, size), random.uniform(-size, size), random.uniform(-size, size))
}

/// The largest distance between two sets of vertices, cm.
pub fn furthest(a: &[Vec3], b: &[Vec3]) -> f32 {
    assert_eq!(a.len(), b.len(), "as many vertices");
    a.iter().zip(b).map(|(a, b)| a.distance(*b)).fold(0.0, f32::max)
}
