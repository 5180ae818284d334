//! Runs `import` and prints what came of it.

use crate::import_arguments::ImportArguments;
use crate::output::{self, count};
use crate::progress::watched_keeping;
use anyhow::Result;
use understudy_jobs::import::{ImportConfig, import};

/// `import`.
pub fn run_import(json: bool, arguments: ImportArguments) -> Result<()> {
    let config = ImportConfig {
        arrays: arguments.arrays,
        mesh: arguments.mesh,
        skeleton: arguments.skeleton,
        cache: arguments.cache,
        output: arguments.output,
        clip: arguments.clip,
        objects: arguments.objects,
        cache_scale: arguments.cache_scale,
        cache_up: arguments.cache_up,
        offset: arguments.offset,
        hold_out: arguments.hold_out.unwrap_or(0.0),
        held_out: arguments.held_out,
    };
    let report =
        watched_keeping("finished chunks are", &config.output, |progress| import(&config, progress))?;
    output::print(json, &report, |report| {
        format!(
            "{}: {}, {}, {}, {} in {:.1} s",
            report.folder.display(),
            count(report.poses, "pose"),
            output::plural(report.vertices, "vertex", "vertices"),
            count(report.bones, "bone"),
            count(report.controls, "control"),
            report.seconds
        )
    })
}
