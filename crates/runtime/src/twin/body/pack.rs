//! From parts to a packed body twin and back: everything that could be wrong is checked once, here.

use super::super::shared::{check_faces, check_finite, check_length, check_tree};
use super::super::skinning::Skin;
use super::decoder::{Decoder, Form};
use super::seam_correction::PackedSeams;
use super::{BONE_INPUTS, Base, BodyParts, BodyTwin, BoneInputs, Group, GroupParts, LayerParts, Storage};
use crate::TwinError;
use crate::dense::{Activation, Layer, LayerError, Precision};
use understudy_core::{Affine3A, Vec3};

impl BodyTwin {
    /// Checks all parts and packs the networks.
    pub fn new(parts: BodyParts, precision: Precision) -> Result<Self, TwinError> {
        let (vertices, bones) = (parts.rest_vertices.len(), parts.header.inputs.bones.len());
        check_length("rest bones", parts.rest_bones.len(), bones)?;
        check_tree(&parts.header.inputs.bones)?;
        check_finite("rest vertices", parts.rest_vertices.iter().map(|v| v.is_finite()))?;
        check_finite(
            "rest bones",
            parts.rest_bones.iter().map(|b| b.is_finite() && b.inverse().is_finite()),
        )?;
        check_faces(&parts.faces, vertices)?;
        if parts.rigid_frames && parts.base.is_none() {
            // Without one a vertex would follow the frame, not the bone.
            check_length("base weights of a twin in rigid frames", 0, vertices)?;
        }
        if let Some(base) = &parts.base {
            check_length("base weights", base.vertex_count(), vertices)?;
            check_length("bones of the base", base.bone_count(), bones)?;
        }
        let inputs = bones * BONE_INPUTS + parts.header.inputs.controls.len();
        let mut cover = vec![0usize; vertices];
        let mut groups = Vec::with_capacity(parts.groups.len());
        let mut ghosts = 0;
        for (index, group) in parts.groups.iter().enumerate() {
            groups.push(pack_group(&parts, index, group, inputs, ghosts, precision, &mut cover)?);
            ghosts += group.ghosts.len();
        }
        if let Some(seams) = &parts.seams {
            seams.check(vertices, ghosts)?;
        }
        if let Some(vertex) = cover.iter().position(|groups| *groups != 1) {
            let what = format!("{} groups, not by one", cover[vertex]);
            return Err(TwinError::Cover { vertex, what });
        }
        let inverse_rest = parts.rest_bones.iter().map(Affine3A::inverse).collect();
        let base = match &parts.base {
            Some(base) => Base::Skin(Skin::new(base, &parts.rest_vertices)),
            None => Base::Bone(parts.rest_vertices),
        };
        Ok(Self {
            header: parts.header,
            mechanism: None,
            frame: parts.frame,
            rigid_frames: parts.rigid_frames,
            precision,
            vertex_count: vertices,
            rest_bones: parts.rest_bones,
            inverse_rest,
            faces: parts.faces,
            base,
            groups,
            ghosts,
            seams: parts.seams.map(|seams| {
                let packed = PackedSeams::new(&seams);
                (seams, packed)
            }),
        })
    }

    /// The parts that it is made of, unpacked, for saving and exporting. Weights are as the twin keeps them: of a twin
    /// in 16 bits, rounded.
    pub fn parts(&self) -> BodyParts {
        let (rest_vertices, base) = match &self.base {
            Base::Bone(places) => (places.clone(), None),
            Base::Skin(skin) => {
                let (places, weights) = skin.unpack(self.vertex_count, self.bone_count());
                (places, Some(weights))
            }
        };
        let mut groups = Vec::with_capacity(self.groups.len());
        let mut first_ghost = 0;
        for group in &self.groups {
            groups.push(unpack_group(group, first_ghost, self.precision));
            first_ghost += group.vertices[1].len();
        }
        BodyParts {
            header: self.header.clone(),
            frame: self.frame,
            rigid_frames: self.rigid_frames,
            rest_vertices,
            rest_bones: self.rest_bones.clone(),
            base,
            faces: self.faces.clone(),
            groups,
            seams: self.seams.as_ref().map(|(seams, _)| seams.clone()),
        }
    }
}

fn pack_group(
    parts: &BodyParts,
    index: usize,
    group: &GroupParts,
    inputs: usize,
    first_ghost: usize,
    precision: Precision,
    cover: &mut [usize],
) -> Result<Group, TwinError> {
    let named = |what: &str| format!("group {index}: {what}");
    let bones = parts.header.inputs.bones.len();
    if group.bone >= bones {
        return Err(TwinError::Index { what: named("bone"), index: group.bone, count: bones });
    }
    for &vertex in &group.vertices {
        let slot = cover.get_mut(vertex as usize).ok_or_else(|| TwinError::Index {
            what: named("vertex"),
            index: vertex as usize,
            count: parts.rest_vertices.len(),
        })?;
        *slot += 1;
    }
    if let Some(&ghost) = group.ghosts.iter().find(|ghost| **ghost as usize >= parts.rest_vertices.len()) {
        let count = parts.rest_vertices.len();
        return Err(TwinError::Index { what: named("ghost"), index: ghost as usize, count });
    }
    if let Some(&input) = group.inputs.iter().find(|input| **input as usize >= inputs) {
        return Err(TwinError::Index { what: named("input"), index: input as usize, count: inputs });
    }
    for (what, numbers) in [("mean", &group.mean), ("scale", &group.scale)] {
        if numbers.len() != group.inputs.len() {
            return Err(TwinError::Count { what: named(what), got: numbers.len(), want: group.inputs.len() });
        }
        check_finite(&named(what), numbers.iter().map(|n| n.is_finite()))?;
    }
    let mut columns = group.inputs.len();
    let mut layers = Vec::with_capacity(group.layers.len());
    let network = format!("group {index}");
    let wrap = |layer: usize| {
        let network = network.clone();
        move |error| TwinError::Layer { network, layer, error }
    };
    let hidden = group.layers.len().saturating_sub(1);
    for (layer, data) in group.layers[..hidden].iter().enumerate() {
        let precision = match data.form(precision) {
            Form::Half => Precision::Half,
            Form::Single => Precision::Single,
            Form::Fixed => {
                let error = LayerError::Range { what: "fixed point in a hidden layer", index: 0 };
                return Err(TwinError::Layer { network, layer, error });
            }
        };
        let packed = Layer::pack(&data.weights, &data.bias, columns, data.activation, precision)
            .map_err(wrap(layer))?;
        columns = packed.rows();
        layers.push(packed);
    }
    let to_bone = parts.rest_bones[group.bone].inverse();
    let local = |v: &u32| match parts.base {
        None => to_bone.transform_point3(parts.rest_vertices[*v as usize]),
        // -0 and not 0: the sum with a bias is then the bias, bit by bit, and can be unpacked again.
        Some(_) => Vec3::splat(-0.0),
    };
    let mut places: Vec<Vec3> = group.vertices.iter().chain(&group.ghosts).map(local).collect();
    let weights: &[f32] = match group.layers.last() {
        // A group without a network only follows its bone.
        None => {
            columns = 0;
            &[]
        }
        Some(last) => {
            if last.activation != Activation::None {
                let what = named("last layer's activation");
                return Err(TwinError::Count { what, got: 1, want: 0 });
            }
            let want = 3 * places.len();
            if last.bias.len() != want {
                return Err(TwinError::Count { what: named("outputs"), got: last.bias.len(), want });
            }
            if last.weights.len() != want * columns {
                let what = named("weights of the last layer");
                return Err(TwinError::Count { what, got: last.weights.len(), want: want * columns });
            }
            let bias = last.bias.chunks_exact(3).map(Vec3::from_slice);
            places.iter_mut().zip(bias).for_each(|(place, bias)| *place += bias);
            &last.weights
        }
    };
    let form = group.layers.last().map_or(Form::Single, |last| last.form(precision));
    let own = group.vertices.len();
    let slots: Vec<u32> = (0..group.ghosts.len()).map(|ghost| (first_ghost + ghost) as u32).collect();
    let (own_weights, ghost_weights) = weights.split_at(3 * own * columns);
    let decoder =
        Decoder::pack(own_weights, &places[..own], &group.vertices, columns, form).map_err(wrap(hidden))?;
    let ghosts = Decoder::pack(ghost_weights, &places[own..], &slots, columns, form).map_err(wrap(hidden))?;
    let numbers: Vec<u8> = group.inputs.iter().map(|input| (*input as usize % BONE_INPUTS) as u8).collect();
    let mut bone_inputs: Vec<BoneInputs> = Vec::new();
    for (slot, input) in group.inputs.iter().enumerate() {
        let bone = (*input as usize / BONE_INPUTS).min(bones);
        match bone_inputs.last_mut() {
            Some(last) if last.bone == bone => last.end = slot + 1,
            _ => bone_inputs.push(BoneInputs { bone, end: slot + 1, whole: false }),
        }
    }
    let mut start = 0;
    for run in &mut bone_inputs {
        run.whole = run.bone < bones && numbers[start..run.end].iter().copied().eq(0..BONE_INPUTS as u8);
        start = run.end;
    }
    let bias = match (&parts.base, group.layers.last()) {
        (None, Some(last)) => last.bias.clone(),
        _ => Vec::new(),
    };
    Ok(Group {
        bone: group.bone,
        vertices: [group.vertices.clone(), group.ghosts.clone()],
        inputs: group.inputs.clone(),
        mean: group.mean.clone(),
        scale: group.scale.clone(),
        bone_inputs,
        numbers,
        layers,
        has_network: !group.layers.is_empty(),
        decoder,
        ghosts,
        bias,
    })
}

fn unpack_group(group: &Group, first_ghost: usize, precision: Precision) -> GroupParts {
    let [vertices, ghosts] = group.vertices.clone();
    let kept = |form: Form| match (form, precision) {
        (Form::Fixed, _) => Storage::Fixed,
        (Form::Single, Precision::Half) => Storage::Single,
        _ => Storage::Plain,
    };
    let mut layers: Vec<LayerParts> = Vec::with_capacity(group.layers.len() + 1);
    for layer in &group.layers {
        let (weights, bias) = layer.unpack();
        let form = if layer.weights().is_half() { Form::Half } else { Form::Single };
        layers.push(LayerParts { weights, bias, activation: layer.activation(), storage: kept(form) });
    }
    if group.has_network {
        let slots: Vec<u32> = (0..ghosts.len()).map(|ghost| (first_ghost + ghost) as u32).collect();
        let (mut weights, mut bias) = group.decoder.unpack(&vertices);
        let (ghost_weights, ghost_bias) = group.ghosts.unpack(&slots);
        weights.extend(ghost_weights);
        bias.extend(ghost_bias);
        if !group.bias.is_empty() {
            bias.clone_from(&group.bias);
        }
        let storage = kept(group.decoder.form());
        layers.push(LayerParts { weights, bias, activation: Activation::None, storage });
    }
    GroupParts {
        bone: group.bone,
        vertices,
        ghosts,
        inputs: group.inputs.clone(),
        mean: group.mean.clone(),
        scale: group.scale.clone(),
        layers,
    }
}
