//! One layer of USD: prims in a tree, their attributes and relationships, as plain Rust types.

use super::crate_file::CrateFile;
use crate::ParseError;
use glam::{DAffine3, DMat4, DQuat, DVec3};
use openusd::sdf::{AbstractData, Path, SpecType, Value};
use openusd::usda;
use std::collections::{BTreeMap, HashMap};

/// Deepest nesting of brackets in text: the parser calls itself.
const MAX_DEPTH: usize = 128;
/// Largest file that is read.
const MAX_BYTES: usize = 2 << 30;

/// Where a layer's specs are: parsed text, or a binary file.
enum Source {
    Text(Box<dyn AbstractData>),
    Binary(CrateFile),
}

impl Source {
    /// The paths of all prims.
    fn prims(&self) -> Result<Vec<Path>, ParseError> {
        match self {
            Self::Text(data) => {
                let is_prim = |path: &Path| data.spec_type(path) == Some(SpecType::Prim);
                Ok(data.spec_paths().into_iter().filter(is_prim).collect())
            }
            Self::Binary(file) => {
                let path = |path: &str| Path::new(path).map_err(|error| ParseError::new(path, error));
                file.prims().map(path).collect()
            }
        }
    }

    fn has(&self, path: &Path) -> bool {
        match self {
            Self::Text(data) => data.has_spec(path),
            Self::Binary(file) => file.has(path.as_str()),
        }
    }

    fn has_field(&self, path: &Path, field: &str) -> bool {
        match self {
            Self::Text(data) => {
                data.list_fields(path).unwrap_or_default().iter().any(|listed| listed == field)
            }
            Self::Binary(file) => file.has_field(path.as_str(), field),
        }
    }

    fn field(&self, path: &Path, field: &str) -> Result<Option<Value>, ParseError> {
        match self {
            Self::Text(data) => {
                let value = data.try_field(path, field);
                value
                    .map(|value| value.map(std::borrow::Cow::into_owned))
                    .map_err(|error| ParseError::new(path.as_str(), error))
            }
            Self::Binary(file) => file.field(path.as_str(), field),
        }
    }
}

/// An open layer.
pub(super) struct Layer {
    data: Source,
    prims: BTreeMap<String, Prim>,
}

/// A prim.
pub(super) struct Prim {
    pub kind: String,
    path: Path,
}

impl Layer {
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        if bytes.len() > MAX_BYTES {
            return Err(ParseError::new("file", "is larger than 2 GB"));
        }
        if bytes.starts_with(b"PK") {
            return Err(ParseError::new(
                "byte 0",
                "is a .usdz package; unpack it and name the .usdc or .usda in it",
            ));
        }
        guarded(|| Self::open(bytes))
    }

    fn open(bytes: &[u8]) -> Result<Self, ParseError> {
        let failed = |error: &dyn ToString| ParseError::new("layer", error.to_string());
        let data = if bytes.starts_with(b"PXR-USDC") {
            Source::Binary(CrateFile::open(bytes)?)
        } else {
            let text = std::str::from_utf8(bytes).map_err(|error| {
                ParseError::new(format!("byte {}", error.valid_up_to()), "is neither USD nor text")
            })?;
            if !text.starts_with("#usda") {
                return Err(ParseError::new("line 1", "is no USD file: '#usda 1.0' is missing"));
            }
            check_depth(text)?;
            Source::Text(Box::new(usda::parse(text).map_err(|error| failed(&format!("{error:#}")))?))
        };
        let mut prims = BTreeMap::new();
        for path in data.prims()? {
            let kind = match data.field(&path, "typeName")? {
                Some(Value::Token(token)) => token.as_str().to_owned(),
                Some(Value::String(text)) => text,
                _ => String::new(),
            };
            prims.insert(path.as_str().to_owned(), Prim { kind, path });
        }
        Ok(Self { data, prims })
    }

    /// All prims of a kind by their paths, in the order of the paths.
    pub fn of_kind<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a str> {
        self.prims.iter().filter(move |(_, prim)| prim.kind == kind).map(|(path, _)| path.as_str())
    }

    /// The kind of a prim; `None` where there is none.
    pub fn kind(&self, path: &str) -> Option<&str> {
        self.prims.get(path).map(|prim| prim.kind.as_str())
    }

    /// Whether a blendshape has shapes in between.
    pub fn has_inbetweens(&self, prim: &str) -> bool {
        let Some(prim) = self.prims.get(prim) else { return false };
        let children = self.data.has_field(&prim.path, "properties");
        let listed = children.then(|| self.field(&prim.path, "properties").ok().flatten()).flatten();
        listed
            .as_ref()
            .and_then(strings)
            .unwrap_or_default()
            .iter()
            .any(|name| name.starts_with("inbetweens:"))
    }

    fn field(&self, path: &Path, field: &str) -> Result<Option<Value>, ParseError> {
        guarded(|| self.data.field(path, field))
    }

    /// Metadata of the whole layer.
    pub fn layer_number(&self, field: &str) -> Result<Option<f64>, ParseError> {
        Ok(self.field(&Path::abs_root(), field)?.as_ref().and_then(number))
    }

    /// Metadata of the whole layer.
    pub fn layer_token(&self, field: &str) -> Result<Option<String>, ParseError> {
        Ok(self.field(&Path::abs_root(), field)?.as_ref().and_then(|value| strings(value)?.pop()))
    }

    fn property(&self, prim: &str, name: &str) -> Option<Path> {
        let path = self.prims.get(prim)?.path.append_property(name.to_owned()).ok()?;
        self.data.has(&path).then_some(path)
    }

    /// An attribute's value: its default, or its first sample.
    pub fn value(&self, prim: &str, name: &str) -> Result<Option<Value>, ParseError> {
        let Some(path) = self.property(prim, name) else { return Ok(None) };
        if let Some(value) = self.field(&path, "default")?.filter(|value| !matches!(value, Value::ValueBlock))
        {
            return Ok(Some(value));
        }
        Ok(self.samples(prim, name)?.into_iter().next().map(|(_, value)| value))
    }

    /// The samples of an attribute, by time code, ascending; none where it is not animated.
    pub fn samples(&self, prim: &str, name: &str) -> Result<Vec<(f64, Value)>, ParseError> {
        let Some(path) = self.property(prim, name) else { return Ok(Vec::new()) };
        let Some(Value::TimeSamples(mut samples)) = self.field(&path, "timeSamples")? else {
            return Ok(Vec::new());
        };
        samples.retain(|(time, value)| time.is_finite() && !matches!(value, Value::ValueBlock));
        samples.sort_by(|a, b| a.0.total_cmp(&b.0));
        samples.dedup_by(|later, earlier| later.0 == earlier.0);
        Ok(samples)
    }

    /// Metadata of an attribute as a word.
    pub fn note(&self, prim: &str, name: &str, field: &str) -> Result<Option<String>, ParseError> {
        let Some(path) = self.property(prim, name) else { return Ok(None) };
        Ok(self.field(&path, field)?.as_ref().and_then(|value| strings(value)?.pop()))
    }

    /// Metadata of an attribute as a number.
    pub fn note_number(&self, prim: &str, name: &str, field: &str) -> Result<Option<f64>, ParseError> {
        let Some(path) = self.property(prim, name) else { return Ok(None) };
        Ok(self.field(&path, field)?.as_ref().and_then(number))
    }

    /// Paths that a relationship names.
    pub fn targets(&self, prim: &str, name: &str) -> Result<Vec<String>, ParseError> {
        let Some(path) = self.property(prim, name) else { return Ok(Vec::new()) };
        let Some(Value::PathListOp(list)) = self.field(&path, "targetPaths")? else { return Ok(Vec::new()) };
        let lists = [&list.explicit_items, &list.prepended_items, &list.added_items, &list.appended_items];
        let mut out = Vec::new();
        for target in lists.into_iter().flatten() {
            // Relative paths start at the prim.
            let target = self.prims[prim].path.make_absolute(target);
            out.push(target.as_str().to_owned());
        }
        Ok(out)
    }

    /// A relationship of a prim, or of the nearest prim above it that has one.
    pub fn inherited_target(&self, prim: &str, name: &str) -> Result<Option<String>, ParseError> {
        let mut at = Some(prim);
        while let Some(path) = at.filter(|path| !path.is_empty()) {
            if let Some(target) = self.targets(path, name)?.into_iter().next() {
                return Ok(Some(target));
            }
            at = path.rsplit_once('/').map(|(above, _)| above);
        }
        Ok(None)
    }

    /// Where a prim stands in the world, and whether something moves it over time.
    pub fn world(
        &self,
        prim: &str,
        known: &mut HashMap<String, (DAffine3, bool)>,
    ) -> Result<(DAffine3, bool), ParseError> {
        // Parents first, without calling itself: paths may be deep.
        let mut chain = vec![prim];
        while let Some((above, _)) = chain.last().and_then(|path| path.rsplit_once('/')) {
            if above.is_empty() || known.contains_key(above) {
                break;
            }
            chain.push(above);
        }
        let mut world = (DAffine3::IDENTITY, false);
        for path in chain.into_iter().rev() {
            let above = path.rsplit_once('/').and_then(|(above, _)| known.get(above).copied());
            let above = above.unwrap_or((DAffine3::IDENTITY, false));
            let (local, moves, resets) = self.local(path)?;
            world = if resets { (local, moves) } else { (above.0 * local, above.1 | moves) };
            known.insert(path.to_owned(), world);
        }
        match world.0.is_finite() {
            true => Ok(world),
            false => Err(ParseError::new(prim, "its transform is not finite")),
        }
    }

    /// The operations of a prim, multiplied; whether one is animated; whether what is above counts.
    fn local(&self, prim: &str) -> Result<(DAffine3, bool, bool), ParseError> {
        let order = self.value(prim, "xformOpOrder")?.as_ref().and_then(strings).unwrap_or_default();
        let (mut out, mut moves, mut resets) = (DAffine3::IDENTITY, false, false);
        for operation in order {
            if operation == "!resetXformStack!" {
                (out, moves, resets) = (DAffine3::IDENTITY, false, true);
                continue;
            }
            let (name, inverted) = match operation.strip_prefix("!invert!") {
                Some(name) => (name, true),
                None => (operation.as_str(), false),
            };
            let Some(value) = self.value(prim, name)? else { continue };
            moves |= self.samples(prim, name)?.len() > 1;
            let kind = name.strip_prefix("xformOp:").unwrap_or(name);
            let kind = kind.split(':').next().unwrap_or(kind);
            let step = operation_of(kind, &value)
                .ok_or_else(|| ParseError::new(format!("{prim}.{name}"), "is no transform that is known"))?;
            out *= if inverted { step.inverse() } else { step };
        }
        Ok((out, moves, resets))
    }
}

/// One transform; rotations of three angles are named in the order they are applied.
fn operation_of(kind: &str, value: &Value) -> Option<DAffine3> {
    let axis = |axis: char, degrees: f64| {
        let axis = match axis {
            'X' => DVec3::X,
            'Y' => DVec3::Y,
            _ => DVec3::Z,
        };
        DAffine3::from_axis_angle(axis, degrees.to_radians())
    };
    let vector = || vectors(value)?.first().copied();
    Some(match kind {
        "translate" => DAffine3::from_translation(vector()?),
        "scale" => DAffine3::from_scale(vector()?),
        "transform" => matrices(value)?.first().copied()?,
        "orient" => DAffine3::from_quat(quaternions(value)?.first()?.normalize()),
        "rotateX" | "rotateY" | "rotateZ" => axis(kind.chars().last()?, number(value)?),
        "rotateXYZ" | "rotateXZY" | "rotateYXZ" | "rotateYZX" | "rotateZXY" | "rotateZYX" => {
            let angles = vector()?;
            let turns = kind["rotate".len()..].chars().map(|letter| {
                let angle = angles["XYZ".find(letter).unwrap_or(0)];
                axis(letter, angle)
            });
            turns.fold(DAffine3::IDENTITY, |out, turn| turn * out)
        }
        _ => return None,
    })
}

/// Runs a parser of others, whose panics on damaged files become errors here. Nothing of what it held is used after.
fn guarded<T>(work: impl FnOnce() -> Result<T, ParseError>) -> Result<T, ParseError> {
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
    outcome.unwrap_or_else(|_| Err(ParseError::new("layer", "is damaged: the USD library gave up on it")))
}

/// Brackets within brackets, outside of strings.
fn check_depth(text: &str) -> Result<(), ParseError> {
    let (mut depth, mut quote, mut escaped) = (0usize, None, false);
    for (place, byte) in text.bytes().enumerate() {
        match (quote, byte) {
            (Some(_), _) if escaped => escaped = false,
            (Some(_), b'\\') => escaped = true,
            (Some(open), byte) if byte == open || byte == b'\n' => quote = None,
            (Some(_), _) => {}
            (None, b'"' | b'\'') => quote = Some(byte),
            (None, b'{' | b'[' | b'(') => depth += 1,
            (None, b'}' | b']' | b')') => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_DEPTH {
            return Err(ParseError::new(format!("byte {place}"), "brackets are nested too deeply"));
        }
    }
    Ok(())
}

pub(super) fn number(value: &Value) -> Option<f64> {
    Some(match value {
        Value::Float(v) => f64::from(*v),
        Value::Double(v) => *v,
        Value::Half(v) => v.to_f64(),
        Value::Int(v) => f64::from(*v),
        Value::Uint(v) => f64::from(*v),
        Value::Int64(v) => *v as f64,
        _ => return None,
    })
}

pub(super) fn strings(value: &Value) -> Option<Vec<String>> {
    Some(match value {
        Value::Token(token) => vec![token.as_str().to_owned()],
        Value::String(text) => vec![text.clone()],
        Value::TokenVec(list) => list.iter().map(|token| token.as_str().to_owned()).collect(),
        Value::StringVec(list) => list.clone(),
        _ => return None,
    })
}

pub(super) fn integers(value: &Value) -> Option<Vec<i64>> {
    Some(match value {
        Value::IntVec(list) => list.iter().map(|v| i64::from(*v)).collect(),
        Value::UintVec(list) => list.iter().map(|v| i64::from(*v)).collect(),
        Value::Int64Vec(list) => list.clone(),
        _ => return None,
    })
}

pub(super) fn numbers(value: &Value) -> Option<Vec<f64>> {
    Some(match value {
        Value::FloatVec(list) => list.iter().map(|v| f64::from(*v)).collect(),
        Value::DoubleVec(list) => list.clone(),
        Value::HalfVec(list) => list.iter().map(|v| v.to_f64()).collect(),
        other => vec![number(other)?],
    })
}

pub(super) fn pairs(value: &Value) -> Option<Vec<[f64; 2]>> {
    Some(match value {
        Value::Vec2fVec(list) => list.iter().map(|v| [f64::from(v.x), f64::from(v.y)]).collect(),
        Value::Vec2dVec(list) => list.iter().map(|v| [v.x, v.y]).collect(),
        Value::Vec2hVec(list) => list.iter().map(|v| [v.x.to_f64(), v.y.to_f64()]).collect(),
        _ => return None,
    })
}

pub(super) fn vectors(value: &Value) -> Option<Vec<DVec3>> {
    Some(match value {
        Value::Vec3fVec(list) => {
            list.iter().map(|v| DVec3::new(f64::from(v.x), f64::from(v.y), f64::from(v.z))).collect()
        }
        Value::Vec3dVec(list) => list.iter().map(|v| DVec3::new(v.x, v.y, v.z)).collect(),
        Value::Vec3hVec(list) => {
            list.iter().map(|v| DVec3::new(v.x.to_f64(), v.y.to_f64(), v.z.to_f64())).collect()
        }
        Value::Vec3f(v) => vec![DVec3::new(f64::from(v.x), f64::from(v.y), f64::from(v.z))],
        Value::Vec3d(v) => vec![DVec3::new(v.x, v.y, v.z)],
        Value::Vec3h(v) => vec![DVec3::new(v.x.to_f64(), v.y.to_f64(), v.z.to_f64())],
        _ => return None,
    })
}

pub(super) fn quaternions(value: &Value) -> Option<Vec<DQuat>> {
    macro_rules! quat {
        ($q:expr) => {
            DQuat::from_xyzw(($q.x).into(), ($q.y).into(), ($q.z).into(), ($q.w).into())
        };
    }
    Some(match value {
        Value::QuatfVec(list) => list.iter().map(|q| quat!(q)).collect(),
        Value::QuatdVec(list) => list.iter().map(|q| quat!(q)).collect(),
        Value::QuathVec(list) => list.iter().map(|q| quat!(q)).collect(),
        Value::Quatf(q) => vec![quat!(q)],
        Value::Quatd(q) => vec![quat!(q)],
        Value::Quath(q) => vec![quat!(q)],
        _ => return None,
    })
}

/// Matrices for row vectors, as maps of columns.
pub(super) fn matrices(value: &Value) -> Option<Vec<DAffine3>> {
    // The columns of a matrix for column vectors are the rows of one for row vectors.
    let affine = |m: &openusd::gf::Matrix4d| DAffine3::from_mat4(DMat4::from_cols_array(&m.0));
    Some(match value {
        Value::Matrix4dVec(list) => list.iter().map(affine).collect(),
        Value::Matrix4d(m) => vec![affine(m)],
        _ => return None,
    })
}
