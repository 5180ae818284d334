//! What can be read, by what it is.

use crate::outputs::extension;
use crate::rigs::{self, Names, report};
use crate::{JobError, Watch};
use std::path::Path;
use understudy_core::Mesh;
use understudy_io::ReadError;
use understudy_io::blendshape_npz::BlendshapeFile;
use understudy_io::bvh::{Bvh, BvhOptions};
use understudy_io::dataset::DatasetReader;
use understudy_io::gltf::{GltfAsset, ReadOptions};
use understudy_io::live_link::{LiveLinkTake, WeightTable};
use understudy_rigs::Rig;

/// The content of an input.
pub(crate) enum Content {
    /// A mesh alone.
    Mesh(Box<Mesh>),
    /// A glTF file.
    Asset(Box<GltfAsset>),
    /// A blendshape archive.
    Shapes(Box<BlendshapeFile>),
    /// A rig by name.
    Rig(Box<dyn Rig>),
    /// A motion file.
    Motion(Box<Bvh>),
    /// A Live Link Face take.
    Take(Box<LiveLinkTake>),
    /// A table of weights.
    Weights(Box<WeightTable>),
    /// A recorded dataset.
    Dataset(Box<DatasetReader>),
}

impl Content {
    pub(crate) fn read(input: &str, watch: &dyn Watch) -> Result<Self, JobError> {
        if Names::contains(input) {
            return Ok(Self::Rig(rigs::open(input, watch)?.rig));
        }
        let path = Path::new(input);
        if path.is_dir() {
            return Ok(Self::Dataset(Box::new(DatasetReader::open(path)?)));
        }
        match extension(path).as_str() {
            "obj" => {
                let file = understudy_io::obj::read(path)?;
                report(&file.conversion.to_string(), &file.warnings, path, watch);
                Ok(Self::Mesh(Box::new(file.mesh)))
            }
            "glb" | "gltf" => {
                let options = ReadOptions { surface: true, ..ReadOptions::default() };
                let asset = understudy_io::gltf::read_with(path, &options)?;
                report(&asset.conversion.to_string(), &asset.warnings, path, watch);
                Ok(Self::Asset(Box::new(asset)))
            }
            "npz" => {
                let file = understudy_io::blendshape_npz::read(path, None)?;
                report(&file.conversion.to_string(), &[], path, watch);
                Ok(Self::Shapes(Box::new(file)))
            }
            "bvh" => {
                let file = understudy_io::bvh::read(path, BvhOptions::default())?;
                report(&file.conversion.to_string(), &file.warnings, path, watch);
                Ok(Self::Motion(Box::new(file)))
            }
            "csv" => read_csv(path),
            _ => Err(rigs::not_a_file(path, ".obj, .glb, .gltf, .npz, .bvh, .csv or a dataset folder")),
        }
    }

    pub(super) fn describe(&self) -> &'static str {
        match self {
            Self::Mesh(_) => "a mesh",
            Self::Asset(_) => "a glTF file",
            Self::Shapes(_) => "a blendshape archive",
            Self::Rig(_) => "a rig",
            Self::Motion(_) => "a motion file",
            Self::Take(_) => "a Live Link Face take",
            Self::Weights(_) => "a table of weights",
            Self::Dataset(_) => "a dataset",
        }
    }
}

/// Live Link Face files begin with a timecode; any other table is one of weights.
fn read_csv(path: &Path) -> Result<Content, JobError> {
    let bytes = understudy_io::read_bytes(path)?;
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
    let is_take = text.len() >= 8 && text[..8].eq_ignore_ascii_case(b"timecode");
    let failed = ReadError::content(path);
    Ok(match is_take {
        true => Content::Take(Box::new(understudy_io::live_link::parse(&bytes).map_err(failed)?)),
        false => Content::Weights(Box::new(understudy_io::live_link::parse_weights(&bytes).map_err(failed)?)),
    })
}
