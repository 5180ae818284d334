//! What a group's network sees of a pose: its inputs, normalised. Of a crowd, eight poses at a time.

pub mod crowd;

use super::{BONE_INPUTS, BoneInputs, Group, InputFrame};
use understudy_core::Affine3A;
use understudy_core::skeleton::into_rigid_frame;

/// A pose as a network sees it.
#[derive(Clone, Copy)]
pub struct GroupPose<'a> {
    /// Bones in their parents' frames where networks see them so, then controls.
    pub inputs: &'a [f32],
    /// In the world.
    pub bones: &'a [Affine3A],
    /// The bones' frames, which may be rigid.
    pub frames: Frames<'a>,
}

/// The frames of the bones of one pose or of several.
#[derive(Clone, Copy)]
pub struct Frames<'a> {
    /// Bone → world.
    pub frames: &'a [Affine3A],
    /// Whether they have neither scale nor shear.
    pub rigid: bool,
}

impl Frames<'_> {
    /// World → a bone's frame.
    pub fn to(&self, bone: usize) -> Affine3A {
        match self.rigid {
            true => into_rigid_frame(&self.frames[bone]),
            false => self.frames[bone].inverse(),
        }
    }
}

/// Writes the inputs of one group.
pub fn input_features(frame: InputFrame, group: &Group, pose: GroupPose<'_>, row: &mut [f32]) {
    let row = &mut row[..group.inputs.len()];
    match frame {
        InputFrame::Parent => pick(row, &group.inputs, pose.inputs),
        InputFrame::Group => {
            let to_group = pose.frames.to(group.bone);
            let mut start = 0;
            for &BoneInputs { bone, end, whole } in &group.bone_inputs {
                let slots = &mut row[start..end];
                match pose.bones.get(bone) {
                    Some(bone) if whole => slots.copy_from_slice(&(to_group * *bone).to_cols_array()),
                    Some(bone) => {
                        // Sixteen, so that no index needs a question.
                        let mut numbers = [0.0f32; 16];
                        numbers[..BONE_INPUTS].copy_from_slice(&(to_group * *bone).to_cols_array());
                        let wanted = slots.iter_mut().zip(&group.numbers[start..end]);
                        wanted.for_each(|(slot, number)| *slot = numbers[usize::from(*number & 15)]);
                    }
                    None => pick(slots, &group.inputs[start..end], pose.inputs),
                }
                start = end;
            }
        }
    }
    for (slot, (mean, scale)) in row.iter_mut().zip(group.mean.iter().zip(&group.scale)) {
        *slot = (*slot - mean) * scale;
    }
}

fn pick(slots: &mut [f32], wanted: &[u32], inputs: &[f32]) {
    slots.iter_mut().zip(wanted).for_each(|(slot, input)| *slot = inputs[*input as usize]);
}
