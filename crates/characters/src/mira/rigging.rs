//! Bones, what drives them, and skin weights: the lips follow the jaw in part, the corners by half.

use super::anatomy::Anatomy;
use super::cage::Patch;
use super::sculpt::EYE_CENTRE;
use std::collections::HashMap;
use understudy_core::mechanism::{Constraint, Drive};
use understudy_core::{Bone, Channel, ControlSpecs, JointTransform, Skeleton, SkinWeights, Vec3};
use understudy_rigs::RigError;
use understudy_rigs::deformers::smooth_step;

/// Where the jaw hinges, in front of the ears.
pub(super) const JAW_PIVOT: Vec3 = Vec3::new(0.0, -2.3, -0.4);
/// How far `jawOpen` = 1 turns the jaw.
pub(super) const JAW_OPEN_DEGREES: f32 = 23.0;

pub(super) const NECK: usize = 1;
pub(super) const HEAD: usize = 2;
pub(super) const JAW: usize = 3;
pub(super) const EYES: [usize; 2] = [4, 5];
const BUN: usize = 6;

/// Root at the base of the neck, neck, head; jaw, eyes and bun on the head. All frames are the world's.
pub(super) fn skeleton() -> Result<Skeleton, RigError> {
    let eye = |side: f32| EYE_CENTRE * Vec3::new(side, 1.0, 1.0);
    let bones = [
        ("root", None, Vec3::new(0.0, -16.0, -3.5)),
        ("neck", Some(0), Vec3::new(0.0, -12.8, -3.4)),
        ("head", Some(NECK), Vec3::new(0.0, -6.5, -2.4)),
        ("jaw", Some(HEAD), JAW_PIVOT),
        ("eye_L", Some(HEAD), eye(1.0)),
        ("eye_R", Some(HEAD), eye(-1.0)),
        ("hair_bun", Some(HEAD), Vec3::new(0.0, 7.2, -6.2)),
    ];
    let place = |parent: &Option<usize>, world: Vec3| world - parent.map_or(Vec3::ZERO, |p| bones[p].2);
    let bones = bones.iter().map(|(name, parent, world)| Bone {
        name: (*name).into(),
        parent: *parent,
        rest: JointTransform::from_translation(place(parent, *world)),
    });
    Ok(Skeleton::new(bones.collect())?)
}

/// Numbers that move bones: gaze and jaw.
pub(super) fn drives(specs: &ControlSpecs) -> Result<Vec<Constraint>, RigError> {
    use Channel::{RotateX, RotateY, RotateZ, TranslateX, TranslateY, TranslateZ};
    let mut list = vec![
        ("jawOpen".to_string(), JAW, RotateX, JAW_OPEN_DEGREES),
        ("jawOpen".into(), JAW, TranslateZ, 0.25),
        ("jawOpen".into(), JAW, TranslateY, -0.2),
        ("jawForward".into(), JAW, TranslateZ, 0.7),
        ("jawForward".into(), JAW, TranslateY, -0.12),
        ("jawBack".into(), JAW, TranslateZ, -0.4),
        ("jawLeft".into(), JAW, TranslateX, 0.3),
        ("jawLeft".into(), JAW, RotateY, 4.0),
        ("jawLeft".into(), JAW, RotateZ, 1.5),
        ("jawRight".into(), JAW, TranslateX, -0.3),
        ("jawRight".into(), JAW, RotateY, -4.0),
        ("jawRight".into(), JAW, RotateZ, -1.5),
    ];
    for (bone, side, sign) in [(EYES[0], "L", 1.0), (EYES[1], "R", -1.0)] {
        list.push((format!("eyeLookUp_{side}"), bone, RotateX, -24.0));
        list.push((format!("eyeLookDown_{side}"), bone, RotateX, 26.0));
        list.push((format!("eyeLookOut_{side}"), bone, RotateY, 30.0 * sign));
        list.push((format!("eyeLookIn_{side}"), bone, RotateY, -30.0 * sign));
    }
    let drive = |(name, bone, channel, gain): (String, usize, Channel, f32)| {
        let control = specs.find(&name).ok_or(RigError::Unknown { part: "a drive of Mira".into(), name })?;
        Ok(Constraint::Drive(Drive { control, bone, channel, gain }))
    };
    list.into_iter().map(drive).collect()
}

/// Weights of all vertices.
pub(super) fn weights(anatomy: &Anatomy) -> Result<SkinWeights, RigError> {
    let mesh = &anatomy.model.mesh;
    let (head, jaw) = (headness(anatomy), jawness(anatomy));
    let row = |head: f32, jaw: f32| {
        let neck = 2.0 * head * (1.0 - head);
        let top = head * head;
        let root = (1.0 - head) * (1.0 - head);
        vec![(0u16, root), (NECK as u16, neck), (HEAD as u16, top * (1.0 - jaw)), (JAW as u16, top * jaw)]
    };
    let mut rows: Vec<Vec<(u16, f32)>> = (0..anatomy.skin_count()).map(|v| row(head[v], jaw[v])).collect();
    let segments = mesh.segments();
    for vertex in anatomy.skin_count()..mesh.vertex_count() {
        let p = mesh.positions()[vertex];
        let name = segments.names[segments.of_vertex[vertex] as usize].as_str();
        let rigid = |bone: usize| vec![(bone as u16, 1.0)];
        rows.push(match name {
            "eye_L" => rigid(EYES[0]),
            "eye_R" => rigid(EYES[1]),
            "gums_lower" => rigid(JAW),
            "hair_bun" => rigid(BUN),
            "tongue" => row(1.0, 0.35 + 0.65 * smooth_step(0.5, 2.6, p.z)),
            _ if name.starts_with("tooth_lower") => rigid(JAW),
            _ => rigid(HEAD),
        });
    }
    Ok(SkinWeights::from_rows(&rows, BUN + 1)?)
}

/// 1 on the head, 0 at the base of the neck, as smooth as possible between.
fn headness(anatomy: &Anatomy) -> Vec<f32> {
    let mut fixed = HashMap::new();
    for (vertex, place) in anatomy.model.places.iter().enumerate() {
        if place.patch != Patch::Grid || place.across >= 4.0 + 0.16 * place.along {
            fixed.insert(vertex, 1.0);
        } else if place.across <= 0.5 {
            fixed.insert(vertex, 0.0);
        }
    }
    let start = |v: usize| (anatomy.model.places[v].across / 4.0).clamp(0.0, 1.0);
    anatomy.fill(&fixed, start, 120)
}

/// How much of the jaw's motion the skin takes: 1 on lower lip and chin, ½ at the corners of the mouth.
fn jawness(anatomy: &Anatomy) -> Vec<f32> {
    let mut fixed = HashMap::new();
    let mut fix = |vertex: usize, value: f32| {
        fixed.insert(vertex, value);
    };
    for (vertex, place) in anatomy.model.places.iter().enumerate() {
        let (along, across) = (place.along, place.across);
        match place.patch {
            Patch::Eye => fix(vertex, 0.0),
            Patch::Mouth if across >= 1.7 => {
                let lower = 1.0 - smooth_step(1.2, 6.8, along);
                // Deep in the bag both halves meet the throat.
                let deep = smooth_step(6.0, 9.0, across);
                fix(vertex, lower + (0.35 - lower) * deep * 0.8);
            }
            Patch::Mouth => {}
            Patch::Grid => {
                let (column, row) = (along, across);
                if row >= 11.0 || row <= 2.0 || column >= 9.5 || (row >= 9.0 && column <= 2.5) {
                    fix(vertex, 0.0);
                } else if (4.0..=5.25).contains(&row) && column <= 6.0 {
                    fix(vertex, 1.0);
                }
            }
        }
    }
    let start = |v: usize| smooth_step(-4.0, -7.0, anatomy.model.mesh.positions()[v].y);
    anatomy.fill(&fixed, start, 160)
}
