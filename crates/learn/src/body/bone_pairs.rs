//! What the networks of a body twin see, as other programs compute it: one list of bones in the frames of
//! other bones, twelve numbers each, and after them the controls.

use understudy_runtime::body::{BONE_INPUTS, BodyParts, GroupParts, InputFrame};

/// The list and where each group looks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BonePairs {
    /// Bone in whose frame (`None`: the world), and bone that is seen.
    pub pairs: Vec<(Option<usize>, usize)>,
    /// For each group indices into `12 · pair + number`, then controls.
    pub inputs: Vec<Vec<u32>>,
}

impl BonePairs {
    /// Of a twin.
    pub fn new(parts: &BodyParts) -> Self {
        let bones = &parts.header.inputs.bones;
        let controls_at = (bones.len() * BONE_INPUTS) as u32;
        match parts.frame {
            InputFrame::Parent => Self {
                pairs: bones.iter().enumerate().map(|(bone, header)| (header.parent, bone)).collect(),
                inputs: parts.groups.iter().map(|group| group.inputs.clone()).collect(),
            },
            InputFrame::Group => {
                let mut pairs: Vec<(Option<usize>, usize)> = Vec::new();
                let places = |group: &GroupParts| {
                    let first = pairs.len();
                    let place = |input: &u32| {
                        if *input >= controls_at {
                            return None;
                        }
                        let pair = (Some(group.bone), *input as usize / BONE_INPUTS);
                        let known = pairs[first..].iter().position(|other| *other == pair);
                        let pair = known.map_or_else(
                            || {
                                pairs.push(pair);
                                pairs.len() - 1
                            },
                            |place| first + place,
                        );
                        Some((pair * BONE_INPUTS) as u32 + *input % BONE_INPUTS as u32)
                    };
                    group.inputs.iter().map(place).collect::<Vec<Option<u32>>>()
                };
                let seen: Vec<Vec<Option<u32>>> = parts.groups.iter().map(places).collect();
                let end = (pairs.len() * BONE_INPUTS) as u32;
                let whole = |(group, seen): (&GroupParts, Vec<Option<u32>>)| {
                    let inputs = group.inputs.iter().zip(seen);
                    inputs
                        .map(|(input, place)| place.unwrap_or_else(|| end + (input - controls_at)))
                        .collect()
                };
                let inputs = parts.groups.iter().zip(seen).map(whole).collect();
                Self { pairs, inputs }
            }
        }
    }
}
