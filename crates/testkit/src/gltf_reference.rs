//! A slow, plain glTF 2.0 evaluator, written from the specification, that our reader and rigs are compared
//! with. It shares no code with them: JSON values, bytes, double precision, one vertex after another.
//! Start at [`ReferenceModel::open`]. For good files only: a bad one panics.

use serde_json::Value;
use std::collections::HashMap;
use std::path::Path;

type Matrix = [[f64; 4]; 4];
type Point = [f64; 3];

/// A glTF file in memory.
pub struct ReferenceModel {
    json: Value,
    buffers: Vec<Vec<u8>>,
    parts: Vec<Part>,
    animations: Vec<Vec<Channel>>,
    parents: Vec<Option<usize>>,
}

/// A primitive of triangles under a node of the scene.
struct Part {
    node: usize,
    skin: Option<usize>,
    positions: Vec<Point>,
    triangles: usize,
    /// Offsets of each target.
    targets: Vec<Vec<Point>>,
    /// Joint and weight of every vertex.
    influences: Vec<Vec<(usize, f64)>>,
}

struct Channel {
    node: usize,
    path: String,
    interpolation: String,
    times: Vec<f64>,
    /// One row per key, three for a cubic spline.
    values: Vec<Vec<f64>>,
}

/// Properties of nodes that an animation overrides, by node and path.
type Overrides = HashMap<(usize, String), Vec<f64>>;

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn index(value: &Value) -> Option<usize> {
    value.as_u64().map(|index| index as usize)
}

fn numbers(value: &Value) -> Option<Vec<f64>> {
    value.as_array().map(|list| list.iter().map(|v| v.as_f64().expect("a number")).collect())
}

impl ReferenceModel {
    /// Reads a `.glb`, or a `.gltf` with its buffers beside it.
    pub fn open(path: &Path) -> Self {
        let bytes = std::fs::read(path).expect("a readable file");
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes")) as usize;
        let (text, chunk) = if bytes.starts_with(b"glTF") {
            let end = 20 + word(12);
            let chunk =
                if bytes.len() > end { bytes[end + 8..end + 8 + word(end)].to_vec() } else { Vec::new() };
            (bytes[20..end].to_vec(), chunk)
        } else {
            (bytes.clone(), Vec::new())
        };
        let json: Value = serde_json::from_slice(&text).expect("JSON");
        let folder = path.parent().expect("a folder");
        let buffer = |buffer: &Value| match buffer["uri"].as_str() {
            Some(name) => std::fs::read(folder.join(name)).expect("a buffer beside the file"),
            None => chunk.clone(),
        };
        let buffers = list(&json, "buffers").iter().map(buffer).collect();
        let mut model =
            Self { json, buffers, parts: Vec::new(), animations: Vec::new(), parents: Vec::new() };
        model.parents = vec![None; list(&model.json, "nodes").len()];
        for (node, data) in list(&model.json, "nodes").iter().enumerate() {
            for child in list(data, "children") {
                model.parents[index(child).expect("a node")] = Some(node);
            }
        }
        model.parts = model.read_parts();
        model.animations = model.read_animations();
        model
    }

    fn node(&self, node: usize) -> &Value {
        &self.json["nodes"][node]
    }

    /// All elements of an accessor as rows of numbers.
    fn accessor(&self, accessor: usize) -> Vec<Vec<f64>> {
        let data = &self.json["accessors"][accessor];
        let count = index(&data["count"]).expect("a count");
        let width = match data["type"].as_str().expect("a type") {
            "SCALAR" => 1,
            "VEC2" => 2,
            "VEC3" => 3,
            "VEC4" => 4,
            "MAT4" => 16,
            other => panic!("accessors of {other}"),
        };
        let kind = data["componentType"].as_u64().expect("a component type");
        let normalized = data["normalized"].as_bool().unwrap_or(false);
        let offset = index(&data["byteOffset"]).unwrap_or(0);
        let mut rows = match index(&data["bufferView"]) {
            Some(view) => self.rows(view, offset, count, width, kind, normalized),
            None => vec![vec![0.0; width]; count],
        };
        let sparse = &data["sparse"];
        if let Some(some) = index(&sparse["count"]) {
            let view = |part: &str| {
                let part = &sparse[part];
                (index(&part["bufferView"]).expect("a view"), index(&part["byteOffset"]).unwrap_or(0))
            };
            let ((index_view, index_offset), (value_view, value_offset)) = (view("indices"), view("values"));
            let index_kind = sparse["indices"]["componentType"].as_u64().expect("a component type");
            let places = self.rows(index_view, index_offset, some, 1, index_kind, false);
            let values = self.rows(value_view, value_offset, some, width, kind, normalized);
            for (place, value) in places.into_iter().zip(values) {
                rows[place[0] as usize] = value;
            }
        }
        rows
    }

    fn rows(
        &self,
        view: usize,
        offset: usize,
        count: usize,
        width: usize,
        kind: u64,
        normalized: bool,
    ) -> Vec<Vec<f64>> {
        let view = &self.json["bufferViews"][view];
        let bytes = &self.buffers[index(&view["buffer"]).expect("a buffer")];
        let start = index(&view["byteOffset"]).unwrap_or(0) + offset;
        let (size, most) = match kind {
            5120 => (1, 127.0),
            5121 => (1, 255.0),
            5122 => (2, 32_767.0),
            5123 => (2, 65_535.0),
            5125 | 5126 => (4, 1.0),
            other => panic!("components of type {other}"),
        };
        let stride = index(&view["byteStride"]).unwrap_or(size * width);
        let number = |at: usize| {
            let b = |i: usize| bytes[at + i];
            let value = match kind {
                5120 => f64::from(b(0) as i8),
                5121 => f64::from(b(0)),
                5122 => f64::from(i16::from_le_bytes([b(0), b(1)])),
                5123 => f64::from(u16::from_le_bytes([b(0), b(1)])),
                5125 => f64::from(u32::from_le_bytes([b(0), b(1), b(2), b(3)])),
                _ => f64::from(f32::from_le_bytes([b(0), b(1), b(2), b(3)])),
            };
            if normalized { (value / most).max(-1.0) } else { value }
        };
        (0..count).map(|row| (0..width).map(|i| number(start + row * stride + i * size)).collect()).collect()
    }

    fn points(&self, accessor: &Value) -> Vec<Point> {
        let rows = self.accessor(index(accessor).expect("an accessor"));
        rows.into_iter().map(|row| [row[0], row[1], row[2]]).collect()
    }

    fn read_parts(&self) -> Vec<Part> {
        let scene = index(&self.json["scene"]).unwrap_or(0);
        let roots = list(&self.json["scenes"][scene], "nodes").iter().filter_map(index);
        let mut open: Vec<usize> = roots.collect();
        let mut members = vec![false; self.parents.len()];
        while let Some(node) = open.pop() {
            members[node] = true;
            open.extend(list(self.node(node), "children").iter().filter_map(index));
        }
        let mut parts = Vec::new();
        for node in (0..members.len()).filter(|node| members[*node]) {
            let Some(mesh) = index(&self.node(node)["mesh"]) else { continue };
            let skin = index(&self.node(node)["skin"]);
            for primitive in list(&self.json["meshes"][mesh], "primitives") {
                let mode = primitive["mode"].as_u64().unwrap_or(4);
                let attributes = &primitive["attributes"];
                if !(4..=6).contains(&mode) || attributes["POSITION"].is_null() {
                    continue;
                }
                let positions = self.points(&attributes["POSITION"]);
                let corners = match index(&primitive["indices"]) {
                    Some(indices) => index(&self.json["accessors"][indices]["count"]).expect("a count"),
                    None => positions.len(),
                };
                let target = |target: &Value| match target["POSITION"].is_null() {
                    true => vec![[0.0; 3]; positions.len()],
                    false => self.points(&target["POSITION"]),
                };
                let targets = list(primitive, "targets").iter().map(target).collect();
                let influences = if skin.is_some() { self.influences(attributes) } else { Vec::new() };
                let triangles = if mode == 4 { corners / 3 } else { corners - 2 };
                parts.push(Part { node, skin, positions, triangles, targets, influences });
            }
        }
        parts
    }

    /// Weights of a vertex sum to one, whatever the file says.
    fn influences(&self, attributes: &Value) -> Vec<Vec<(usize, f64)>> {
        let mut out: Vec<Vec<(usize, f64)>> = Vec::new();
        for set in 0.. {
            let (joints, weights) =
                (&attributes[format!("JOINTS_{set}")], &attributes[format!("WEIGHTS_{set}")]);
            let (Some(joints), Some(weights)) = (index(joints), index(weights)) else { break };
            let (joints, weights) = (self.accessor(joints), self.accessor(weights));
            out.resize(joints.len(), Vec::new());
            for ((row, joints), weights) in out.iter_mut().zip(joints).zip(weights) {
                row.extend(joints.into_iter().map(|joint| joint as usize).zip(weights));
            }
        }
        for row in &mut out {
            let sum: f64 = row.iter().map(|(_, weight)| weight).sum();
            row.iter_mut().for_each(|(_, weight)| *weight /= sum);
        }
        out
    }

    fn read_animations(&self) -> Vec<Vec<Channel>> {
        let read = |animation: &Value| {
            let channel = |channel: &Value| {
                let sampler = &animation["samplers"][index(&channel["sampler"]).expect("a sampler")];
                let accessor = |key: &str| self.accessor(index(&sampler[key]).expect("an accessor"));
                let path = channel["target"]["path"].as_str().expect("a path").to_owned();
                let interpolation = sampler["interpolation"].as_str().unwrap_or("LINEAR").to_owned();
                let times: Vec<f64> = accessor("input").into_iter().map(|row| row[0]).collect();
                let flat: Vec<f64> = accessor("output").into_iter().flatten().collect();
                let rows = if interpolation == "CUBICSPLINE" { 3 * times.len() } else { times.len() };
                let values = flat.chunks(flat.len() / rows).map(<[f64]>::to_vec).collect();
                let node = index(&channel["target"]["node"]).expect("a node");
                Channel { node, path, interpolation, times, values }
            };
            list(animation, "channels").iter().map(channel).collect()
        };
        list(&self.json, "animations").iter().map(read).collect()
    }

    /// Vertices of all primitives, in the order of nodes.
    pub fn vertex_count(&self) -> usize {
        self.parts.iter().map(|part| part.positions.len()).sum()
    }

    /// Triangles of all primitives, those without area included.
    pub fn triangle_count(&self) -> usize {
        self.parts.iter().map(|part| part.triangles).sum()
    }

    /// Morph targets of the mesh with the most of them.
    pub fn target_count(&self) -> usize {
        self.parts.iter().map(|part| part.targets.len()).max().unwrap_or(0)
    }

    /// Names of the animations; unnamed ones by their number.
    pub fn clip_names(&self) -> Vec<String> {
        let name = |(number, data): (usize, &Value)| {
            data["name"].as_str().map_or_else(|| format!("animation {number}"), str::to_owned)
        };
        list(&self.json, "animations").iter().enumerate().map(name).collect()
    }

    /// Seconds from zero to the last key of an animation.
    pub fn duration(&self, clip: usize) -> f64 {
        let ends = self.animations[clip].iter().map(|channel| channel.times[channel.times.len() - 1]);
        ends.fold(0.0, f64::max)
    }

    /// Vertices as the file shows them when nothing is animated, cm.
    pub fn rest(&self) -> Vec<Point> {
        self.deform(&Overrides::new())
    }

    /// Vertices at a time of an animation, seconds, cm.
    pub fn evaluate(&self, clip: usize, time: f64) -> Vec<Point> {
        let channels = self.animations[clip].iter();
        self.deform(&channels.map(|c| ((c.node, c.path.clone()), c.at(time))).collect())
    }

    fn deform(&self, overrides: &Overrides) -> Vec<Point> {
        let mut globals: Vec<Option<Matrix>> = vec![None; self.parents.len()];
        for node in 0..globals.len() {
            self.global(node, overrides, &mut globals);
        }
        let global = |node: usize| globals[node].expect("every node was placed");
        let mut out = Vec::new();
        for part in &self.parts {
            let node = self.node(part.node);
            let mesh = &self.json["meshes"][index(&node["mesh"]).expect("a mesh")];
            let weights = overrides.get(&(part.node, "weights".into())).cloned();
            let weights = weights.or_else(|| numbers(&node["weights"])).or_else(|| numbers(&mesh["weights"]));
            let weights = weights.unwrap_or_else(|| vec![0.0; part.targets.len()]);
            let joints = part.skin.map(|skin| {
                let skin = &self.json["skins"][skin];
                let joints = list(skin, "joints").iter().filter_map(index);
                let inverse = index(&skin["inverseBindMatrices"]).map(|accessor| self.accessor(accessor));
                let matrix = |(number, joint): (usize, usize)| match &inverse {
                    Some(rows) => multiply(&global(joint), &from_columns(&rows[number])),
                    None => global(joint),
                };
                joints.enumerate().map(matrix).collect::<Vec<_>>()
            });
            for (vertex, position) in part.positions.iter().enumerate() {
                let mut shaped = *position;
                for (target, weight) in part.targets.iter().zip(&weights) {
                    (0..3).for_each(|axis| shaped[axis] += weight * target[vertex][axis]);
                }
                let mut placed = [0.0; 3];
                match &joints {
                    None => placed = transform(&global(part.node), &shaped),
                    Some(joints) => {
                        for (joint, weight) in &part.influences[vertex] {
                            let moved = transform(&joints[*joint], &shaped);
                            (0..3).for_each(|axis| placed[axis] += weight * moved[axis]);
                        }
                    }
                }
                out.push(placed.map(|metres| metres * 100.0));
            }
        }
        out
    }

    fn global(&self, node: usize, overrides: &Overrides, globals: &mut [Option<Matrix>]) -> Matrix {
        if let Some(known) = globals[node] {
            return known;
        }
        let local = self.local(node, overrides);
        let placed = match self.parents[node] {
            Some(parent) => multiply(&self.global(parent, overrides, globals), &local),
            None => local,
        };
        globals[node] = Some(placed);
        placed
    }

    fn local(&self, node: usize, overrides: &Overrides) -> Matrix {
        let data = self.node(node);
        if let Some(matrix) = numbers(&data["matrix"]) {
            return from_columns(&matrix);
        }
        let property = |path: &str, rest: &[f64]| {
            let animated = overrides.get(&(node, path.to_owned())).cloned();
            animated.or_else(|| numbers(&data[path])).unwrap_or_else(|| rest.to_vec())
        };
        let translation = property("translation", &[0.0; 3]);
        let scale = property("scale", &[1.0; 3]);
        let [x, y, z, w] = unit(&property("rotation", &[0.0, 0.0, 0.0, 1.0]));
        let turn = [
            [1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - z * w), 2.0 * (x * z + y * w)],
            [2.0 * (x * y + z * w), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - x * w)],
            [2.0 * (x * z - y * w), 2.0 * (y * z + x * w), 1.0 - 2.0 * (x * x + y * y)],
        ];
        let mut out = [[0.0, 0.0, 0.0, 0.0]; 4];
        for row in 0..3 {
            (0..3).for_each(|column| out[row][column] = turn[row][column] * scale[column]);
            out[row][3] = translation[row];
        }
        out[3][3] = 1.0;
        out
    }
}

impl Channel {
    fn at(&self, time: f64) -> Vec<f64> {
        let cubic = self.interpolation == "CUBICSPLINE";
        let key = |key: usize| &self.values[if cubic { 3 * key + 1 } else { key }];
        let last = self.times.len() - 1;
        if time <= self.times[0] {
            return key(0).clone();
        }
        if time >= self.times[last] {
            return key(last).clone();
        }
        let next = self.times.iter().position(|t| *t > time).expect("before the last");
        let (a, b) = (key(next - 1), key(next));
        let span = self.times[next] - self.times[next - 1];
        let s = (time - self.times[next - 1]) / span;
        match self.interpolation.as_str() {
            "STEP" => a.clone(),
            "LINEAR" if self.path == "rotation" => slerp(unit(a), unit(b), s).to_vec(),
            "LINEAR" => a.iter().zip(b).map(|(a, b)| a * (1.0 - s) + b * s).collect(),
            _ => {
                let (out, into) = (&self.values[3 * (next - 1) + 2], &self.values[3 * next]);
                let value = |i: usize| {
                    (2.0 * s * s * s - 3.0 * s * s + 1.0) * a[i]
                        + span * (s * s * s - 2.0 * s * s + s) * out[i]
                        + (-2.0 * s * s * s + 3.0 * s * s) * b[i]
                        + span * (s * s * s - s * s) * into[i]
                };
                (0..a.len()).map(value).collect()
            }
        }
    }
}

fn unit(rotation: &[f64]) -> [f64; 4] {
    let length = rotation.iter().map(|v| v * v).sum::<f64>().sqrt();
    std::array::from_fn(|i| rotation[i] / length)
}

/// As appendix C of the specification writes it.
fn slerp(a: [f64; 4], b: [f64; 4], s: f64) -> [f64; 4] {
    let dot: f64 = (0..4).map(|i| a[i] * b[i]).sum();
    let sign = dot.signum();
    let angle = dot.abs().min(1.0).acos();
    if angle < 1e-8 {
        return a;
    }
    let (from, to) = (((1.0 - s) * angle).sin() / angle.sin(), sign * (s * angle).sin() / angle.sin());
    std::array::from_fn(|i| from * a[i] + to * b[i])
}

fn from_columns(numbers: &[f64]) -> Matrix {
    std::array::from_fn(|row| std::array::from_fn(|column| numbers[4 * column + row]))
}

fn multiply(a: &Matrix, b: &Matrix) -> Matrix {
    std::array::from_fn(|row| std::array::from_fn(|column| (0..4).map(|i| a[row][i] * b[i][column]).sum()))
}

fn transform(m: &Matrix, p: &Point) -> Point {
    std::array::from_fn(|row| m[row][0] * p[0] + m[row][1] * p[1] + m[row][2] * p[2] + m[row][3])
}
