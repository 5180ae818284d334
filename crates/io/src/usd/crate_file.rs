//! The binary form of USD layers (crate files, `PXR-USDC`, versions 0.4 to 0.10), read by our own checked code: the library
//! that reads the text form allocates whatever a damaged binary file claims. Start at [`CrateFile::open`]; arrays are decoded in
//! [`super::crate_values`].

use super::crate_values::{Rep, Values};
use crate::ParseError;
use openusd::sdf::Value;
use std::collections::BTreeMap;

/// Sections that a file has at most, and how long all paths may be together beyond a multiple of the file's size.
const MAX_SECTIONS: u64 = 64;
const PATH_BYTES: usize = 16 << 20;
/// An attribute's or prim's kind, as the file numbers them.
const PRIM: u32 = 6;

/// What a path stands for: its kind and where its list of fields begins.
struct Spec {
    kind: u32,
    fields: usize,
}

/// An open file: all of its structure, values still as bytes.
pub(super) struct CrateFile {
    values: Values,
    /// Index of the name among the tokens, and the value.
    fields: Vec<(u32, Rep)>,
    /// Lists of indices into `fields`, each ended by `u32::MAX`.
    field_lists: Vec<u32>,
    specs: BTreeMap<String, Spec>,
}

/// An error in a section.
fn damaged(section: &str, problem: impl ToString) -> ParseError {
    ParseError::new(format!("section {section}"), problem)
}

impl CrateFile {
    pub fn open(bytes: &[u8]) -> Result<Self, ParseError> {
        let mut values = Values::new(bytes.to_vec())?;
        let sections = sections(&values)?;
        let at = |name: &str| -> Result<usize, ParseError> {
            sections.get(name).copied().ok_or_else(|| damaged(name, "is missing"))
        };
        values.tokens = tokens(&values, at("TOKENS")?)?;
        let mut strings = values.at(at("STRINGS")?)?;
        let count = strings.count(4)?;
        values.strings = (0..count).map(|_| strings.u32()).collect::<Result<_, _>>()?;

        let mut reader = values.at(at("FIELDS")?)?;
        let count = reader.count(0)?;
        let names = reader.integers32(count)?;
        let packed = reader.compressed(count.saturating_mul(8))?;
        if packed.len() != count * 8 {
            return Err(damaged("FIELDS", format!("{count} values expected, {} found", packed.len() / 8)));
        }
        let reps =
            packed.chunks_exact(8).map(|chunk| Rep(u64::from_le_bytes(chunk.try_into().unwrap_or_default())));
        let fields = names.into_iter().map(|name| name as u32).zip(reps).collect();

        let mut reader = values.at(at("FIELDSETS")?)?;
        let count = reader.count(0)?;
        let field_lists = reader.integers32(count)?.into_iter().map(|index| index as u32).collect();

        values.paths = paths(&values, at("PATHS")?)?;
        let mut reader = values.at(at("SPECS")?)?;
        let count = reader.count(0)?;
        let [paths, lists, kinds] =
            [reader.integers32(count)?, reader.integers32(count)?, reader.integers32(count)?];
        let mut specs = BTreeMap::new();
        for ((path, list), kind) in paths.into_iter().zip(lists).zip(kinds) {
            let path = values.paths.get(path as usize);
            let path = path.ok_or_else(|| damaged("SPECS", "names a path that is not there"))?;
            specs.insert(path.clone(), Spec { kind: kind as u32, fields: list as usize });
        }
        Ok(Self { values, fields, field_lists, specs })
    }

    /// The paths of all prims.
    pub fn prims(&self) -> impl Iterator<Item = &str> {
        self.specs.iter().filter(|(_, spec)| spec.kind == PRIM).map(|(path, _)| path.as_str())
    }

    pub fn has(&self, path: &str) -> bool {
        self.specs.contains_key(path)
    }

    /// Names and values of the fields of a path.
    fn fields_of(&self, path: &str) -> impl Iterator<Item = (&str, Rep)> {
        let start = self.specs.get(path).map_or(usize::MAX, |spec| spec.fields);
        let list = self.field_lists.get(start..).unwrap_or_default();
        let list = list.iter().take_while(|index| **index != u32::MAX);
        list.filter_map(|index| {
            let (name, rep) = self.fields.get(*index as usize)?;
            Some((self.values.tokens.get(*name as usize)?.as_str(), *rep))
        })
    }

    pub fn has_field(&self, path: &str, name: &str) -> bool {
        self.fields_of(path).any(|(field, _)| field == name)
    }

    /// The value of a field; `Value::None` for kinds of values that characters do not need.
    pub fn field(&self, path: &str, name: &str) -> Result<Option<Value>, ParseError> {
        let Some((_, rep)) = self.fields_of(path).find(|(field, _)| *field == name) else { return Ok(None) };
        let value = self.values.value(rep);
        value.map(Some).map_err(|error| ParseError::new(format!("{path}, {name}"), error.problem))
    }
}

/// Where sections begin, by name.
fn sections(values: &Values) -> Result<BTreeMap<String, usize>, ParseError> {
    let mut header = values.at(16)?;
    let contents = header.u64()?;
    let mut reader = values.at(usize::try_from(contents).unwrap_or(usize::MAX))?;
    let count = reader.u64()?;
    if count > MAX_SECTIONS {
        return Err(ParseError::new(format!("byte {contents}"), format!("claims {count} sections")));
    }
    let mut out = BTreeMap::new();
    for _ in 0..count {
        let name = reader.take(16)?;
        let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
        let name = String::from_utf8_lossy(name).into_owned();
        let (start, _size) = (reader.u64()?, reader.u64()?);
        out.insert(name, usize::try_from(start).unwrap_or(usize::MAX));
    }
    Ok(out)
}

fn tokens(values: &Values, start: usize) -> Result<Vec<String>, ParseError> {
    let mut reader = values.at(start)?;
    let count = reader.count(0)?;
    let size = usize::try_from(reader.u64()?).unwrap_or(usize::MAX);
    let text = reader.compressed(size)?;
    let mut out = Vec::new();
    for word in text.split_inclusive(|byte| *byte == 0) {
        let word = word.strip_suffix(&[0]).ok_or_else(|| damaged("TOKENS", "its last word has no end"))?;
        out.push(std::str::from_utf8(word).map_err(|error| damaged("TOKENS", error))?.to_owned());
    }
    match out.len() == count {
        true => Ok(out),
        false => Err(damaged("TOKENS", format!("{count} words expected, {} found", out.len()))),
    }
}

/// Paths are a tree in depth-first order: of every node its index, its own word (negative for a property), and a jump: -2 has
/// neither child nor sibling, -1 a child, 0 a sibling, and more says where the sibling is, behind the children.
fn paths(values: &Values, start: usize) -> Result<Vec<String>, ParseError> {
    let broken = |problem: &str| damaged("PATHS", problem);
    let mut reader = values.at(start)?;
    let count = reader.count(0)?;
    let encoded = reader.count(0)?;
    let [indices, words, jumps] =
        [reader.integers32(encoded)?, reader.integers32(encoded)?, reader.integers32(encoded)?];
    let mut out = vec![String::new(); count];
    let mut left = PATH_BYTES + 64 * values.len();
    let mut seen = vec![false; encoded];
    let mut pending = vec![(0usize, String::new())];
    while let Some((mut node, mut above)) = pending.pop() {
        while node < encoded {
            if std::mem::replace(&mut seen[node], true) {
                return Err(broken("is no tree"));
            }
            let word = values.tokens.get(words[node].unsigned_abs() as usize);
            let path = match (above.as_str(), word) {
                ("", _) => "/".to_owned(),
                (_, None) => return Err(broken("names a word that is not there")),
                (above, Some(word)) if words[node] < 0 => format!("{above}.{word}"),
                (above, Some(word)) if word.starts_with(['{', '[']) => format!("{above}{word}"),
                ("/", Some(word)) => format!("/{word}"),
                (above, Some(word)) => format!("{above}/{word}"),
            };
            left = left.checked_sub(path.len()).ok_or_else(|| broken("its paths are too long"))?;
            let place = out.get_mut(indices[node] as usize).ok_or_else(|| broken("has a wrong index"))?;
            place.clone_from(&path);
            let jump = jumps[node];
            if jump > 0 {
                pending.push((node + jump as usize, above.clone()));
            }
            match jump {
                -1 | 1.. => above = path,
                0 => {}
                _ => break,
            }
            node += 1;
        }
    }
    Ok(out)
}
