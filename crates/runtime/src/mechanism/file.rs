//! The mechanism in the file of a twin, which may have one whatever its kind; programs that know none ignore it.
//!
//! Metadata: `mechanism`, JSON with the rig's controls and either `exact`, its bones and constraints, or `learned`. The
//! latter has tensors `mechanism.*`, each the lists of all bones one after another, with `NAME.lengths` where these differ:
//! `rest [J,12]`, `parents`, `moves` (bits), `inputs` with `mean` and `scale`, `factors` (inputs) with `functions` (0 sine,
//! 1 cosine, 2 and more a power less two) and `frequencies`, `terms [3 T]`, `weights` and `constants` of the closed form,
//! and `layers`, the widths of each network, with `layers.weights` and `layers.bias`; where limbs reach for goals `aims`, the
//! goal of each bone, with seven `aims.numbers` (base, axis, reach) for each that has one.

use super::learned::{Aim, FACTORS, Factor, LearnedBoneParts, Moves, NONE};
use super::{Mechanism, MechanismFigures, MechanismKind};
use crate::TwinError;
use crate::container::{Array, Opened};
use crate::twin::network::DenseParts;
use crate::twin::shared::check_length;
use serde::{Deserialize, Serialize};
use understudy_core::mechanism::JointMechanismParts;
use understudy_core::{Affine3A, ControlSpecs};

/// The key of the metadata.
const KEY: &str = "mechanism";

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    controls: ControlSpecs,
    kind: KindText,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    figures: Option<MechanismFigures>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum KindText {
    Exact(JointMechanismParts),
    Learned(LearnedText),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LearnedText {
    /// All of them.
    bones: usize,
    /// How many of the last are guides.
    #[serde(default, skip_serializing_if = "is_zero")]
    guides: usize,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// What a file holds besides its kind's own.
#[derive(Default)]
pub(crate) struct Section {
    /// Of the metadata.
    pub text: Option<(&'static str, String)>,
    /// With names.
    pub arrays: Vec<(String, Array)>,
}

/// The section of a twin with that mechanism.
pub(crate) fn write(mechanism: Option<&Mechanism>) -> Result<Section, TwinError> {
    let Some(mechanism) = mechanism else { return Ok(Section::default()) };
    let (kind, arrays) = match &mechanism.kind {
        MechanismKind::Exact(exact) => (KindText::Exact(exact.parts()), Vec::new()),
        MechanismKind::Learned(learned) => {
            let bones = learned.parts();
            let text = LearnedText { bones: bones.len(), guides: learned.guide_count() };
            (KindText::Learned(text), write_bones(&bones))
        }
    };
    let text = Text { controls: mechanism.specs.clone(), kind, figures: mechanism.figures };
    let text = serde_json::to_string(&text).map_err(|error| TwinError::Kind(error.to_string()))?;
    Ok(Section { text: Some((KEY, text)), arrays })
}

/// The mechanism of a file, where it has one.
pub(crate) fn read(file: &Opened<'_>) -> Result<Option<Mechanism>, TwinError> {
    if !file.has_text(KEY) {
        return Ok(None);
    }
    let Text { controls, kind, figures } = file.json(KEY)?;
    let mechanism = match kind {
        KindText::Exact(parts) => Mechanism::exact(controls, parts)?,
        KindText::Learned(LearnedText { bones, guides }) => {
            Mechanism::learned_with_guides(controls, read_bones(file, bones)?, guides)?
        }
    };
    Ok(Some(Mechanism { figures, ..mechanism }))
}

fn write_bones(bones: &[LearnedBoneParts]) -> Vec<(String, Array)> {
    let name = |name: &str| format!("mechanism.{name}");
    let integers = |what: &str, numbers: Vec<u32>| (name(what), Array::integers(numbers));
    let floats = |what: &str, numbers: Vec<f32>| (name(what), Array::floats(&[numbers.len()], numbers));
    let each = |number: &dyn Fn(&LearnedBoneParts) -> u32| -> Vec<u32> { bones.iter().map(number).collect() };
    let all =
        |list: &dyn Fn(&LearnedBoneParts) -> Vec<f32>| -> Vec<f32> { bones.iter().flat_map(list).collect() };
    let factors = || bones.iter().flat_map(|bone| &bone.factors);
    let function = |factor: &Factor| match factor {
        Factor::Sine(_) => 0,
        Factor::Cosine(_) => 1,
        Factor::Power(power) => power + 2,
    };
    let frequency = |factor: &Factor| match factor {
        Factor::Sine(frequency) | Factor::Cosine(frequency) => *frequency,
        Factor::Power(_) => 0.0,
    };
    let layers = || bones.iter().flat_map(|bone| &bone.layers);
    let rest = bones.iter().flat_map(|bone| bone.rest.to_cols_array());
    let aims = || bones.iter().filter_map(|bone| bone.aim.as_ref());
    let mut all_lists = vec![
        (name("rest"), Array::floats(&[bones.len(), 12], rest)),
        integers("parents", each(&|bone| bone.parent.map_or(NONE, |parent| parent as u32))),
        integers("moves", each(&|bone| bone.moves.bits())),
        integers("inputs.lengths", each(&|bone| bone.inputs.len() as u32)),
        integers("inputs", bones.iter().flat_map(|bone| bone.inputs.clone()).collect()),
        floats("mean", all(&|bone| bone.mean.clone())),
        floats("scale", all(&|bone| bone.scale.clone())),
        integers("factors.lengths", each(&|bone| bone.factors.len() as u32)),
        integers("factors", factors().map(|(input, _)| *input).collect()),
        integers("functions", factors().map(|(_, factor)| function(factor)).collect()),
        floats("frequencies", factors().map(|(_, factor)| frequency(factor)).collect()),
        integers("terms.lengths", each(&|bone| bone.terms.len() as u32)),
        integers("terms", bones.iter().flat_map(|bone| bone.terms.concat()).collect()),
        floats("weights", all(&|bone| bone.closed.weights.clone())),
        floats("constants", all(&|bone| bone.closed.bias.clone())),
        integers("layers.lengths", each(&|bone| bone.layers.len() as u32)),
        integers("layers", layers().map(|layer| layer.bias.len() as u32).collect()),
        floats("layers.weights", layers().flat_map(|layer| layer.weights.clone()).collect()),
        floats("layers.bias", layers().flat_map(|layer| layer.bias.clone()).collect()),
    ];
    if aims().next().is_some() {
        let target = |bone: &LearnedBoneParts| bone.aim.as_ref().map_or(NONE, |aim| aim.target as u32);
        all_lists.push(integers("aims", each(&target)));
        all_lists.push(floats("aims.numbers", aims().flat_map(Aim::numbers).collect()));
    }
    all_lists
}

/// A list of a file that is given out piece by piece.
struct Pieces<T> {
    name: String,
    numbers: Vec<T>,
    next: usize,
}

impl<T: Clone> Pieces<T> {
    fn take(&mut self, count: usize) -> Result<Vec<T>, TwinError> {
        let end = self.next.checked_add(count).filter(|end| *end <= self.numbers.len());
        let short = || TwinError::Tensor { name: self.name.clone(), problem: "is too short".into() };
        let end = end.ok_or_else(short)?;
        let piece = self.numbers[self.next..end].to_vec();
        self.next = end;
        Ok(piece)
    }

    fn one(&mut self) -> Result<T, TwinError> {
        Ok(self.take(1)?.remove(0))
    }

    fn end(&self) -> Result<(), TwinError> {
        check_length(&format!("{} beyond the last bone", self.name), self.numbers.len() - self.next, 0)
    }
}

fn read_bones(file: &Opened<'_>, count: usize) -> Result<Vec<LearnedBoneParts>, TwinError> {
    let name = |what: &str| format!("mechanism.{what}");
    let integers = |what: &str| -> Result<Pieces<u32>, TwinError> {
        Ok(Pieces { numbers: file.integers(&name(what))?, name: name(what), next: 0 })
    };
    let floats = |what: &str| -> Result<Pieces<f32>, TwinError> {
        Ok(Pieces { numbers: file.floats(&name(what), None)?, name: name(what), next: 0 })
    };
    let rest = file.floats(&name("rest"), Some(12))?;
    check_length("rest transforms of the mechanism", rest.len() / 12, count)?;
    let (mut parents, mut moves) = (integers("parents")?, integers("moves")?);
    let (mut inputs_lengths, mut inputs) = (integers("inputs.lengths")?, integers("inputs")?);
    let (mut mean, mut scale) = (floats("mean")?, floats("scale")?);
    let (mut factors_lengths, mut factors) = (integers("factors.lengths")?, integers("factors")?);
    let (mut functions, mut frequencies) = (integers("functions")?, floats("frequencies")?);
    let (mut terms_lengths, mut terms) = (integers("terms.lengths")?, integers("terms")?);
    let (mut weights, mut constants) = (floats("weights")?, floats("constants")?);
    let (mut layers_lengths, mut layers) = (integers("layers.lengths")?, integers("layers")?);
    let (mut layer_weights, mut layer_bias) = (floats("layers.weights")?, floats("layers.bias")?);
    // Files of before know no goals.
    let mut aims = match file.contains(&name("aims")) {
        true => Some((integers("aims")?, floats("aims.numbers")?)),
        false => None,
    };
    let mut bones = Vec::new();
    for rest in rest.chunks_exact(12) {
        let parent = Some(parents.one()?).filter(|parent| *parent != NONE).map(|parent| parent as usize);
        let moves = Moves::from_bits(moves.one()?);
        let length = inputs_lengths.one()? as usize;
        let (inputs, mean, scale) = (inputs.take(length)?, mean.take(length)?, scale.take(length)?);
        let length = factors_lengths.one()? as usize;
        let functions = functions.take(length)?.into_iter().zip(frequencies.take(length)?);
        let function = |(function, frequency): (u32, f32)| match function {
            0 => Factor::Sine(frequency),
            1 => Factor::Cosine(frequency),
            power => Factor::Power(power - 2),
        };
        let factors = factors.take(length)?.into_iter().zip(functions.map(function)).collect();
        let length = terms_lengths.one()? as usize;
        let terms = terms.take(length.saturating_mul(FACTORS))?;
        let terms: Vec<[u32; FACTORS]> = terms.as_chunks().0.to_vec();
        let numbers = moves.numbers();
        let closed =
            DenseParts { weights: weights.take(numbers * terms.len())?, bias: constants.take(numbers)? };
        let (mut columns, mut own) = (inputs.len(), Vec::new());
        for rows in layers.take(layers_lengths.one()? as usize)? {
            let rows = rows as usize;
            let weights = layer_weights.take(rows.saturating_mul(columns))?;
            own.push(DenseParts { weights, bias: layer_bias.take(rows)? });
            columns = rows;
        }
        let rest = Affine3A::from_cols_slice(rest);
        let aim = match &mut aims {
            Some((targets, numbers)) => match targets.one()? {
                NONE => None,
                target => Some(Aim::from_numbers(&numbers.take(7)?, target as usize)),
            },
            None => None,
        };
        bones.push(LearnedBoneParts {
            parent,
            rest,
            moves,
            aim,
            inputs,
            mean,
            scale,
            factors,
            terms,
            closed,
            layers: own,
        });
    }
    let whole = [&parents, &moves, &inputs_lengths, &inputs, &factors_lengths, &factors, &functions];
    whole.into_iter().chain([&terms_lengths, &terms, &layers_lengths, &layers]).try_for_each(Pieces::end)?;
    let whole = [&mean, &scale, &frequencies, &weights, &constants, &layer_weights, &layer_bias];
    whole.into_iter().try_for_each(Pieces::end)?;
    if let Some((targets, numbers)) = &aims {
        targets.end()?;
        numbers.end()?;
    }
    Ok(bones)
}
