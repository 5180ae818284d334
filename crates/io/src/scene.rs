//! One door for files: [`open`] reads whatever a path names into a [`Scene`]. Which extension is which format is
//! said in one table, `FORMATS`, and nowhere else: a new format is one module and one line there.

use crate::alembic::{AlembicCache, AlembicOptions};
use crate::bvh::{self, Bvh, BvhOptions};
use crate::dataset::DatasetReader;
use crate::live_link::{self, LiveLinkTake, WeightTable};
use crate::mesh_sequence::{self, MeshSequence};
use crate::npz::NpzReader;
use crate::{Conversion, Model, ReadError, blendshape_npz, fbx, gltf, obj, read_bytes, usd};
use std::path::Path;
use understudy_core::{BlendshapeRig, KeyedClip, Mesh, Skeleton, SkinWeights};

/// What a path is, by its extension; a folder is a dataset or something else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Wavefront OBJ.
    Obj,
    /// Binary glTF.
    Glb,
    /// glTF as text.
    Gltf,
    /// Autodesk FBX.
    Fbx,
    /// USD as text.
    Usda,
    /// USD, binary or of either kind.
    Usd,
    /// A NumPy archive: shapes, frames, weights or other arrays.
    Npz,
    /// An Alembic cache.
    Alembic,
    /// Motion capture.
    Bvh,
    /// A Live Link Face take or a table of weights.
    Csv,
    /// A folder of recorded poses.
    Dataset,
    /// A twin, which `understudy-runtime` reads.
    Twin,
    /// A neural network, which [`crate::onnx`] describes.
    Onnx,
}

type Reader = fn(&Path, &OpenOptions) -> Result<Scene, ReadError>;

/// Every format that has an extension, and what reads it as a scene.
const FORMATS: [(&str, Format, Option<Reader>); 13] = [
    ("obj", Format::Obj, Some(|path, _| Ok(Scene::Model(Box::new(obj::read(path)?.into()))))),
    ("glb", Format::Glb, Some(read_gltf)),
    ("gltf", Format::Gltf, Some(read_gltf)),
    ("fbx", Format::Fbx, Some(|path, _| Ok(Scene::Model(Box::new(fbx::read(path)?))))),
    ("usda", Format::Usda, Some(|path, _| read_usd(path))),
    ("usdc", Format::Usd, Some(|path, _| read_usd(path))),
    ("usd", Format::Usd, Some(|path, _| read_usd(path))),
    ("npz", Format::Npz, Some(|path, _| read_npz(path))),
    ("abc", Format::Alembic, Some(|path, _| read_alembic(path))),
    (
        "bvh",
        Format::Bvh,
        Some(|path, _| Ok(Scene::Motion(Box::new(bvh::read(path, BvhOptions::default())?)))),
    ),
    ("csv", Format::Csv, Some(|path, _| read_csv(path))),
    ("twin", Format::Twin, None),
    ("onnx", Format::Onnx, None),
];

impl Format {
    /// What a path is; `None` for what is not known, and for a folder without a dataset.
    pub fn of(path: &Path) -> Option<Self> {
        if path.is_dir() {
            return path.join(crate::dataset::MANIFEST).is_file().then_some(Self::Dataset);
        }
        Some(Self::row(path)?.1)
    }

    fn row(path: &Path) -> Option<&'static (&'static str, Self, Option<Reader>)> {
        let extension = path.extension()?.to_string_lossy().to_ascii_lowercase();
        FORMATS.iter().find(|(known, _, _)| *known == extension)
    }

    /// Its extension; empty for a dataset, which is a folder.
    pub fn extension(self) -> &'static str {
        FORMATS.iter().find(|(_, format, _)| *format == self).map_or("", |(extension, _, _)| extension)
    }

    /// The extensions that [`open`] reads, for messages: `.obj, .glb, …`.
    pub fn readable() -> String {
        let known = FORMATS.iter().filter(|(_, _, reader)| reader.is_some());
        known.map(|(extension, _, _)| format!(".{extension}")).collect::<Vec<_>>().join(", ")
    }
}

/// What a file or folder holds, in centimetres and Y-up. Formats that hold the same kind of thing become the same
/// kind of scene, so that whoever reads one format reads them all.
#[derive(Debug)]
pub enum Scene {
    /// A mesh, with bones, shapes and animations where the file has them.
    Model(Box<Model>),
    /// Bones that move, without a mesh.
    Motion(Box<Bvh>),
    /// A Live Link Face take.
    Take(Box<LiveLinkTake>),
    /// A table of weights.
    Weights(Box<WeightTable>),
    /// A mesh, or its vertices alone, frame by frame.
    Sequence(Box<MeshSequence>),
    /// A recorded dataset; its poses stay on the disk.
    Dataset(Box<DatasetReader>),
    /// An archive of other arrays.
    Archive(Box<NpzReader>),
}

/// What to read beyond geometry and motion.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OpenOptions {
    /// Materials, textures and normals, to write them again.
    pub surface: bool,
}

/// Reads a file, or a folder that holds a dataset.
pub fn open(path: &Path) -> Result<Scene, ReadError> {
    open_with(path, &OpenOptions::default())
}

/// [`open`] with options.
pub fn open_with(path: &Path, options: &OpenOptions) -> Result<Scene, ReadError> {
    if Format::of(path) == Some(Format::Dataset) {
        return Ok(Scene::Dataset(Box::new(DatasetReader::open(path).map_err(Box::new)?)));
    }
    match Format::row(path) {
        Some((_, _, Some(read))) if !path.is_dir() => read(path, options),
        _ => Err(ReadError::Format { path: path.into() }),
    }
}

fn read_gltf(path: &Path, options: &OpenOptions) -> Result<Scene, ReadError> {
    let options = gltf::ReadOptions { surface: options.surface, ..gltf::ReadOptions::default() };
    Ok(Scene::Model(Box::new(gltf::read_with(path, &options)?)))
}

fn read_usd(path: &Path) -> Result<Scene, ReadError> {
    Ok(Scene::Model(Box::new(usd::read(path)?)))
}

fn read_alembic(path: &Path) -> Result<Scene, ReadError> {
    Ok(Scene::Sequence(Box::new(AlembicCache::open(path, &AlembicOptions::default())?.into())))
}

/// By its arrays: shapes, frames, weights, or anything else.
fn read_npz(path: &Path) -> Result<Scene, ReadError> {
    let archive = NpzReader::read(path)?;
    let content = ReadError::content(path);
    let has = |names: &[&str]| names.iter().all(|name| archive.contains(name));
    if has(&["neutral", "deltas"]) {
        let file = blendshape_npz::from_archive(&archive, None).map_err(content)?;
        return Ok(Scene::Model(Box::new(file.into())));
    }
    if has(&["names", "weights"]) {
        let table = live_link::weights_from_archive(&archive).map_err(content)?;
        return Ok(Scene::Weights(Box::new(table)));
    }
    if mesh_sequence::holds_frames(&archive) {
        return Ok(Scene::Sequence(Box::new(mesh_sequence::from_archive(&archive).map_err(content)?)));
    }
    Ok(Scene::Archive(Box::new(archive)))
}

/// Live Link Face files begin with a timecode; any other table is one of weights.
fn read_csv(path: &Path) -> Result<Scene, ReadError> {
    let bytes = read_bytes(path)?;
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
    let is_take = text.len() >= 8 && text[..8].eq_ignore_ascii_case(b"timecode");
    let failed = ReadError::content(path);
    Ok(match is_take {
        true => Scene::Take(Box::new(live_link::parse(&bytes).map_err(failed)?)),
        false => Scene::Weights(Box::new(live_link::parse_weights(&bytes).map_err(failed)?)),
    })
}

impl Scene {
    /// In words, for messages.
    pub fn describe(&self) -> &'static str {
        match self {
            Self::Model(model)
                if model.clips.is_empty() && model.shapes.is_none() && model.skin.is_none() =>
            {
                "a mesh"
            }
            Self::Model(_) => "a model",
            Self::Motion(_) => "a motion file",
            Self::Take(_) => "a Live Link Face take",
            Self::Weights(_) => "a table of weights",
            Self::Sequence(_) => "a mesh frame by frame",
            Self::Dataset(_) => "a dataset",
            Self::Archive(_) => "an archive of arrays",
        }
    }

    /// The mesh.
    pub fn mesh(&self) -> Option<&Mesh> {
        match self {
            Self::Model(model) => Some(&model.mesh),
            Self::Sequence(sequence) => sequence.mesh.as_ref(),
            Self::Dataset(reader) => Some(&reader.rest().mesh),
            Self::Motion(_) | Self::Take(_) | Self::Weights(_) | Self::Archive(_) => None,
        }
    }

    /// The bones.
    pub fn skeleton(&self) -> Option<&Skeleton> {
        match self {
            Self::Model(model) => model.skeleton.as_ref(),
            Self::Motion(motion) => Some(&motion.skeleton),
            Self::Dataset(reader) => reader.rest().skeleton.as_ref(),
            Self::Take(_) | Self::Weights(_) | Self::Sequence(_) | Self::Archive(_) => None,
        }
    }

    /// Which bones move which vertices.
    pub fn skin(&self) -> Option<&SkinWeights> {
        match self {
            Self::Model(model) => model.skin.as_ref(),
            Self::Dataset(reader) => reader.rest().weights.as_ref(),
            _ => None,
        }
    }

    /// Shapes and correctives.
    pub fn shapes(&self) -> Option<&BlendshapeRig> {
        match self {
            Self::Model(model) => model.shapes.as_ref(),
            _ => None,
        }
    }

    /// Animations of bones and shapes, as keys.
    pub fn clips(&self) -> &[KeyedClip] {
        match self {
            Self::Model(model) => &model.clips,
            _ => &[],
        }
    }

    /// What was done to lengths and axes; `None` for what has neither.
    pub fn conversion(&self) -> Option<&Conversion> {
        match self {
            Self::Model(model) => Some(&model.conversion),
            Self::Motion(motion) => Some(&motion.conversion),
            Self::Sequence(sequence) => Some(&sequence.conversion),
            Self::Take(_) | Self::Weights(_) | Self::Dataset(_) | Self::Archive(_) => None,
        }
    }

    /// What was skipped or mended.
    pub fn warnings(&self) -> &[String] {
        match self {
            Self::Model(model) => &model.warnings,
            Self::Motion(motion) => &motion.warnings,
            Self::Sequence(sequence) => &sequence.warnings,
            Self::Take(_) | Self::Weights(_) | Self::Dataset(_) | Self::Archive(_) => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::npz::NpzWriter;

    const OBJ: &str = "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\nf 1 1 2\n";
    const BVH: &str = "HIERARCHY\nROOT hip\n{\nOFFSET 0 0 0\nCHANNELS 3 Zrotation Xrotation Yrotation\nEnd Site\n{\n\
                       OFFSET 0 170 0\n}\n}\nMOTION\nFrames: 2\nFrame Time: 0.04\n0 0 0\n1 2 3\n";

    #[test]
    fn every_format_comes_through_one_door() {
        let folder = tempfile::tempdir().expect("a scratch folder");
        let write = |name: &str, bytes: &[u8]| {
            let path = folder.path().join(name);
            std::fs::write(&path, bytes).expect("writable");
            path
        };
        let npz = |fill: &dyn Fn(&mut NpzWriter) -> &mut NpzWriter| {
            let mut npz = NpzWriter::new();
            fill(&mut npz);
            npz.finish().expect("valid arrays")
        };
        let mesh = obj::parse(OBJ.as_bytes()).expect("a triangle").mesh;
        let glb = gltf::to_glb_bytes(&gltf::GltfScene::new("triangle", &mesh)).expect("a scene");
        let corners = [0., 0., 0., 1., 0., 0., 0., 1., 0.];
        let shapes = npz(&|npz| {
            npz.f32("neutral", &[3, 3], &corners).i32("faces", &[1, 3], &[0, 1, 2]);
            npz.strings("names", &["up"]).f32("deltas", &[1, 3, 3], &[1.0; 9])
        });
        let frames = npz(&|npz| npz.f32("vertices", &[2, 3, 3], &[0.5; 18]));
        let weights = npz(&|npz| npz.strings("names", &["jaw"]).f32("weights", &[2, 1], &[0.5, 1.0]));
        let other = npz(&|npz| npz.f32("thing", &[1], &[0.5]));
        let take = "Timecode,BlendShapeCount,JawOpen\n00:00:01:00,1,0.5\n00:00:01:01,1,0.7\n";
        for (name, bytes, want, has_mesh) in [
            ("a.obj", OBJ.as_bytes(), "a mesh", true),
            ("B.OBJ", OBJ.as_bytes(), "a mesh", true),
            ("a.glb", &glb, "a model", true),
            ("shapes.npz", &shapes, "a model", true),
            ("frames.npz", &frames, "a mesh frame by frame", false),
            ("weights.npz", &weights, "a table of weights", false),
            ("other.npz", &other, "an archive of arrays", false),
            ("a.bvh", BVH.as_bytes(), "a motion file", false),
            ("take.csv", take.as_bytes(), "a Live Link Face take", false),
            ("table.csv", b"jaw\n0.5\n", "a table of weights", false),
        ] {
            let scene = open(&write(name, bytes)).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!((scene.describe(), scene.mesh().is_some()), (want, has_mesh), "{name}");
            let lengths = matches!(&scene, Scene::Model(_) | Scene::Sequence(_) | Scene::Motion(_));
            assert_eq!(scene.conversion().is_some(), lengths, "{name}: units are said");
        }
        let scene = open(&folder.path().join("a.obj")).expect("read before");
        assert_eq!(scene.warnings(), ["1 face that names a vertex twice is dropped"]);
    }

    #[test]
    fn what_no_reader_knows_is_refused_by_name() {
        let folder = tempfile::tempdir().expect("a scratch folder");
        for name in ["picture.png", "noextension", "my.twin"] {
            let path = folder.path().join(name);
            std::fs::write(&path, b"x").expect("writable");
            let error = open(&path).expect_err(name).to_string();
            assert!(
                error.contains(name)
                    && error.contains(".obj, .glb, .gltf, .fbx, .usda, .usdc, .usd, .npz, .abc, .bvh, .csv"),
                "{error}"
            );
        }
        assert!(matches!(open(folder.path()), Err(ReadError::Format { .. })), "a folder without a dataset");
        assert!(matches!(open(&folder.path().join("absent.glb")), Err(ReadError::Open { .. })));
        std::fs::write(folder.path().join("dataset.toml"), "rig = 1").expect("writable");
        assert_eq!(Format::of(folder.path()), Some(Format::Dataset));
        assert!(matches!(open(folder.path()), Err(ReadError::Dataset(_))));
        assert_eq!((Format::Glb.extension(), Format::Dataset.extension()), ("glb", ""));
    }
}
