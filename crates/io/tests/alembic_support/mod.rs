//! Writes Alembic files for tests as the reference library does: samples that repeat are stored once, and a property
//! stores nothing before the first and after the last sample that changed.

#![allow(dead_code, reason = "several test programs share it, and none uses all of it")]

use std::collections::HashMap;

pub const BOOL: u32 = 0;
pub const U8: u32 = 1;
pub const U32: u32 = 5;
pub const I32: u32 = 6;
pub const F32: u32 = 10;
pub const F64: u32 = 11;

const DATA: u64 = 1 << 63;
const ACYCLIC: f64 = f64::MAX / 32.0;

/// A file to be.
pub struct Archive {
    pub application: String,
    /// Seconds of a cycle, or `None` for times of all samples.
    pub samplings: Vec<(Option<f64>, Vec<f64>)>,
    pub objects: Vec<Object>,
}

pub struct Object {
    pub name: String,
    pub schema: &'static str,
    pub properties: Vec<Property>,
    pub children: Vec<Object>,
}

pub struct Property {
    pub name: &'static str,
    pub metadata: &'static str,
    pub sampling: u32,
    pub content: Content,
}

pub enum Content {
    Properties(Vec<Property>),
    /// Type, numbers per element, samples.
    Value(u32, u32, Vec<Vec<u8>>),
    Array(u32, u32, Vec<Vec<u8>>),
}

pub fn f32s(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

pub fn f64s(values: &[f64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

pub fn i32s(values: &[i32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

pub fn compound(name: &'static str, properties: Vec<Property>) -> Property {
    Property { name, metadata: "", sampling: 0, content: Content::Properties(properties) }
}

pub fn array(name: &'static str, kind: u32, extent: u32, sampling: u32, samples: Vec<Vec<u8>>) -> Property {
    Property { name, metadata: "", sampling, content: Content::Array(kind, extent, samples) }
}

pub fn value(name: &'static str, kind: u32, extent: u32, sampling: u32, samples: Vec<Vec<u8>>) -> Property {
    Property { name, metadata: "", sampling, content: Content::Value(kind, extent, samples) }
}

/// Corners of each face, and their vertices.
pub type Faces<'a> = (&'a [i32], &'a [i32]);

/// A mesh: positions and faces of every sample, corners as files have them.
pub fn mesh(name: &str, sampling: u32, positions: Vec<Vec<u8>>, faces: &[Faces<'_>]) -> Object {
    let properties = vec![
        array("P", F32, 3, sampling, positions),
        array(".faceCounts", I32, 1, sampling, faces.iter().map(|(counts, _)| i32s(counts)).collect()),
        array(".faceIndices", I32, 1, sampling, faces.iter().map(|(_, indices)| i32s(indices)).collect()),
    ];
    Object {
        name: name.into(),
        schema: "AbcGeom_PolyMesh_v1",
        properties: vec![compound(".geom", properties)],
        children: Vec::new(),
    }
}

/// An object that moves others: codes of its operations and their numbers in every sample.
pub fn transform(
    name: &str,
    sampling: u32,
    codes: &[u8],
    values: Vec<Vec<u8>>,
    children: Vec<Object>,
) -> Object {
    let numbers = values.first().map_or(0, |sample| sample.len() as u32 / 8);
    let codes: Vec<u8> = codes.iter().map(|code| code << 4).collect();
    let properties = vec![
        value(".inherits", BOOL, 1, 0, vec![vec![1]]),
        value(".ops", U8, codes.len() as u32, 0, vec![codes]),
        value(".vals", F64, numbers, sampling, values),
    ];
    Object {
        name: name.into(),
        schema: "AbcGeom_Xform_v3",
        properties: vec![compound(".xform", properties)],
        children,
    }
}

#[derive(Default)]
struct Writer {
    bytes: Vec<u8>,
    known: HashMap<Vec<u8>, u64>,
}

impl Writer {
    fn data(&mut self, content: &[u8]) -> u64 {
        if content.is_empty() {
            return DATA;
        }
        if let Some(place) = self.known.get(content) {
            return *place;
        }
        let place = self.bytes.len() as u64 | DATA;
        self.bytes.extend((content.len() as u64).to_le_bytes());
        self.bytes.extend(content);
        self.known.insert(content.to_vec(), place);
        place
    }

    fn group(&mut self, children: &[u64]) -> u64 {
        if children.is_empty() {
            return 0;
        }
        let place = self.bytes.len() as u64;
        self.bytes.extend((children.len() as u64).to_le_bytes());
        self.bytes.extend(children.iter().flat_map(|child| child.to_le_bytes()));
        place
    }

    fn sample(&mut self, content: &[u8]) -> u64 {
        // Equal content has an equal key; what the key is does not matter to a reader.
        let mut keyed = vec![0u8; 16];
        let sum = content.iter().fold(7u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(*byte)));
        keyed[..8].copy_from_slice(&sum.to_le_bytes());
        keyed.extend(content);
        self.data(&keyed)
    }

    fn properties(&mut self, properties: &[Property]) -> u64 {
        const WIDE: u32 = 2 << 2;
        let (mut children, mut headers) = (Vec::new(), Vec::new());
        for property in properties {
            let mut facts = WIDE | 0xff << 20;
            let mut numbers = Vec::new();
            match &property.content {
                Content::Properties(inner) => children.push(self.properties(inner)),
                Content::Value(kind, extent, samples) | Content::Array(kind, extent, samples) => {
                    let is_array = matches!(property.content, Content::Array(..));
                    facts |= if is_array { 2 } else { 1 } | kind << 4 | extent << 12 | 1 << 8 | 1 << 9;
                    let differs = |i: &usize| samples[*i] != samples[*i - 1];
                    let first = (1..samples.len()).find(differs).unwrap_or(0);
                    let last = (1..samples.len()).rfind(differs).unwrap_or(0);
                    numbers.extend([samples.len() as u32, first as u32, last as u32, property.sampling]);
                    let stored = match first {
                        0 => &samples[..samples.len().min(1)],
                        _ => &samples[first - 1..=last],
                    };
                    let mut places = Vec::new();
                    for sample in stored {
                        places.push(self.sample(sample));
                        places.extend(is_array.then_some(DATA));
                    }
                    children.push(self.group(&places));
                }
            }
            headers.extend(facts.to_le_bytes());
            for text in [property.name, property.metadata] {
                numbers.push(text.len() as u32);
                headers.extend(numbers.drain(..).flat_map(u32::to_le_bytes));
                headers.extend(text.as_bytes());
            }
        }
        children.push(self.data(&headers));
        self.group(&children)
    }

    fn object(&mut self, properties: &[Property], below: &[Object]) -> u64 {
        let mut children = vec![self.properties(properties)];
        let mut headers = Vec::new();
        for object in below {
            children.push(self.object(&object.properties, &object.children));
            let metadata = format!("schema={};schemaObjTitle={0}:.x", object.schema);
            headers.extend((object.name.len() as u32).to_le_bytes());
            headers.extend(object.name.as_bytes());
            headers.push(0xff);
            headers.extend((metadata.len() as u32).to_le_bytes());
            headers.extend(metadata.as_bytes());
        }
        headers.extend([0; 32]);
        children.push(self.data(&headers));
        self.group(&children)
    }
}

impl Archive {
    /// Samples at a rate from a time on, by number 1; number 0 is for what stands still.
    pub fn new(start: f64, rate: f64, objects: Vec<Object>) -> Self {
        let samplings = vec![(Some(1.0), vec![0.0]), (Some(1.0 / rate), vec![start])];
        Self { application: "Maya 2026".into(), samplings, objects }
    }

    /// The file.
    pub fn bytes(&self) -> Vec<u8> {
        let mut writer = Writer { bytes: b"Ogawa\xff\0\x01\0\0\0\0\0\0\0\0".to_vec(), ..Writer::default() };
        let metadata = format!("_ai_AlembicVersion=test;_ai_Application={}", self.application);
        let mut samplings = Vec::new();
        for (cycle, times) in &self.samplings {
            samplings.extend(1u32.to_le_bytes());
            samplings.extend(cycle.unwrap_or(ACYCLIC).to_le_bytes());
            samplings.extend((times.len() as u32).to_le_bytes());
            samplings.extend(f64s(times));
        }
        let children = [
            writer.data(&0u32.to_le_bytes()),
            writer.data(&10_800u32.to_le_bytes()),
            writer.object(&[], &self.objects),
            writer.data(metadata.as_bytes()),
            writer.data(&samplings),
            writer.data(b"\x01x"),
        ];
        let root = writer.group(&children);
        writer.bytes[8..16].copy_from_slice(&root.to_le_bytes());
        writer.bytes
    }
}
