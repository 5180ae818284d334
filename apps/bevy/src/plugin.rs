//! The plugin: copy this file into a game. An entity with a [`TwinMesh`] and a `Mesh3d` shows what its twin plays: systems of
//! the game write [`TwinMesh::controls`], and before a frame's meshes are looked at their vertices move. Lengths are
//! centimetres, Bevy's are metres: give the entity `Transform::from_scale(Vec3::splat(0.01))`. Axes are the same.

use bevy_app::{App, Plugin, PostUpdate};
use bevy_asset::{AssetEventSystems, Assets, RenderAssetUsages};
use bevy_ecs::prelude::{
    Component, DetectChanges, DetectChangesMut, IntoScheduleConfigs, Query, Ref, ResMut, SystemSet,
};
use bevy_mesh::{Indices, Mesh, Mesh3d, MeshVertexAttribute, PrimitiveTopology, VertexAttributeValues};
use understudy_runtime::{Affine3A, Player, Pose, PoseError, Twin, Vec3};

/// Plays every [`TwinMesh`].
pub struct TwinPlugin;

/// Vertices are moved here, in `PostUpdate`.
#[derive(SystemSet, Debug, Clone, PartialEq, Eq, Hash)]
pub struct TwinSystems;

impl Plugin for TwinPlugin {
    fn build(&self, app: &mut App) {
        app.add_systems(PostUpdate, pose_twins.in_set(TwinSystems).before(AssetEventSystems));
    }
}

/// A twin on an entity.
#[derive(Component)]
pub struct TwinMesh {
    /// What poses it: all of the twin's posing controls, or those beside its bones.
    pub controls: Vec<f32>,
    /// World transforms of the bones, in cm, of a twin that only bones pose; else they are not read.
    pub bones: Vec<Affine3A>,
    /// Why the last pose was refused, if it was.
    pub problem: Option<PoseError>,
    player: Player,
    vertices: Vec<Vec3>,
    normals: Vec<Vec3>,
    by_controls: bool,
}

impl TwinMesh {
    /// A twin at rest.
    pub fn new(twin: &Twin) -> Self {
        let posing = twin.posing_controls();
        let specs = posing.unwrap_or(&twin.header().inputs.controls);
        Self {
            controls: specs.iter().map(|spec| spec.default).collect(),
            bones: twin.rest_bones().to_vec(),
            problem: None,
            player: twin.player(1),
            vertices: vec![Vec3::ZERO; twin.vertex_count()],
            normals: vec![Vec3::ZERO; twin.vertex_count()],
            by_controls: posing.is_some(),
        }
    }

    /// The mesh that it moves: the same vertices, faces cut into triangles.
    pub fn mesh(&self) -> Mesh {
        let twin = self.player.twin();
        let corners = twin.faces().iter().flat_map(|face| face.triangles()).flatten().collect();
        let zeros = vec![[0.0f32; 3]; twin.vertex_count()];
        // Both worlds: the vertices are written here every frame.
        Mesh::new(PrimitiveTopology::TriangleList, RenderAssetUsages::default())
            .with_inserted_attribute(Mesh::ATTRIBUTE_POSITION, zeros.clone())
            .with_inserted_attribute(Mesh::ATTRIBUTE_NORMAL, zeros)
            .with_inserted_indices(Indices::U32(corners))
    }

    /// Poses the twin and writes its vertices and normals into the mesh. Allocates nothing.
    pub fn write(&mut self, mesh: &mut Mesh) -> Result<(), PoseError> {
        let pose = match self.by_controls {
            true => Pose::Controls(&self.controls),
            false => Pose::Bones { bones: &self.bones, extras: &self.controls },
        };
        self.player.pose(pose, &mut self.vertices)?;
        self.player.normals(&self.vertices, &mut self.normals)?;
        fill(mesh, Mesh::ATTRIBUTE_POSITION, &self.vertices);
        fill(mesh, Mesh::ATTRIBUTE_NORMAL, &self.normals);
        Ok(())
    }
}

/// A mesh that is somebody else's has other attributes, or fewer: what is not there is not written.
fn fill(mesh: &mut Mesh, attribute: MeshVertexAttribute, places: &[Vec3]) {
    if let Ok(VertexAttributeValues::Float32x3(values)) = mesh.try_attribute_mut(attribute) {
        values.iter_mut().zip(places).for_each(|(value, place)| *value = place.to_array());
    }
}

fn pose_twins(mut twins: Query<(&mut TwinMesh, Ref<Mesh3d>)>, mut meshes: ResMut<Assets<Mesh>>) {
    for (mut twin, mesh) in &mut twins {
        if !(twin.is_changed() || mesh.is_changed()) {
            continue;
        }
        let Some(mesh) = meshes.get_mut(&mesh.0) else { continue };
        // What we write is no change that asks for another pose.
        let twin = twin.bypass_change_detection();
        twin.problem = twin.write(mesh).err();
    }
}
