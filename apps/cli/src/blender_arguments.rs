//! What can be typed for Blender files, the same in every command that takes one.

use crate::output::refuse_unused;
use anyhow::Result;
use clap::Args;
use std::path::PathBuf;
use understudy_jobs::blender::{BlenderOptions, is_blend};

/// Of `sample` and `info`.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Blender files")]
pub struct BlenderArguments {
    /// Record this mesh (`*` and `?` stand for any letters); can be given again [default: every mesh that a rig moves].
    #[arg(long = "object", value_name = "NAME")]
    pub objects: Vec<String>,
    /// Use these controls: a bone, a property or `collection:NAME`, with `*` and `?`; can be given again [default: every
    /// bone with a custom shape, custom properties, shape keys without drivers].
    #[arg(long, value_name = "PATTERN")]
    pub controls: Vec<String>,
    /// Hold a custom property at a value, such as `hand.L["IK_FK"]=1`; can be given again.
    #[arg(long = "set", value_name = "BONE[\"PROP\"]=VALUE")]
    pub set: Vec<String>,
    /// Ranges of controls, to be edited by hand: read where the file exists, written otherwise.
    #[arg(long, value_name = "FILE.toml")]
    pub controls_file: Option<PathBuf>,
    /// Run the Python scripts and driver expressions of this file; remembered until the file changes.
    #[arg(long)]
    pub trust_scripts: bool,
    /// Record subdivided meshes as the file subdivides them.
    #[arg(long)]
    pub keep_subdivision: bool,
    /// Where there is no Blender: install it as a Python module into the user's cache folder (1 GB, Python 3.11).
    #[arg(long)]
    pub install_blender: bool,
}

impl BlenderArguments {
    /// Options of a job; an error where they are given for anything but a Blender file.
    pub fn options(self, rig: &str) -> Result<BlenderOptions> {
        let why = "this is no .blend file";
        let other = !is_blend(rig);
        refuse_unused(&[
            ("--object", other && !self.objects.is_empty(), why),
            ("--controls", other && !self.controls.is_empty(), why),
            ("--set", other && !self.set.is_empty(), why),
            ("--controls-file", other && self.controls_file.is_some(), why),
            ("--trust-scripts", other && self.trust_scripts, why),
            ("--keep-subdivision", other && self.keep_subdivision, why),
            ("--install-blender", other && self.install_blender, why),
        ])?;
        Ok(BlenderOptions {
            objects: self.objects,
            controls: self.controls,
            set: self.set,
            controls_file: self.controls_file,
            trust_scripts: self.trust_scripts,
            keep_subdivision: self.keep_subdivision,
            install: self.install_blender,
        })
    }
}
