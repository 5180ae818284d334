//! The command `learn lbs`: arguments to a job's configuration, the job's result to text or JSON.

use crate::decompose_arguments::LearnLbsArguments;
use crate::output::{self, bytes, count, thousands};
use crate::progress::watched;
use anyhow::Result;
use understudy_jobs::decompose::{DecomposeConfig, DecompositionSettings, Stop, decompose};

/// `learn lbs`.
pub fn run_learn_lbs(json: bool, arguments: LearnLbsArguments) -> Result<()> {
    let defaults = DecomposeConfig::default();
    let config = DecomposeConfig {
        data: arguments.data,
        output: arguments.output,
        settings: DecompositionSettings {
            bones: arguments.bones,
            influences: arguments.influences as usize,
            iterations: arguments.iterations,
            tolerance: arguments.tolerance,
        },
        clip: arguments.clip,
        rate: arguments.rate,
        frames: arguments.frames,
        threads: arguments.threads.unwrap_or(defaults.threads),
    };
    let report = watched(|progress| decompose(&config, progress))?;
    output::print(json, &report, |report| {
        let ended = match report.stop {
            Stop::Converged => "nothing gained any more",
            Stop::Iterations => "more iterations would gain a little",
            Stop::Asked => "stopped",
        };
        let four = report.four_influences_rmse_cm.map_or_else(String::new, |rmse| {
            format!(
                "\nengines that play four influences per vertex show RMSE {rmse:.5} cm; fit four with --influences 4 for them"
            )
        });
        format!(
            "{}: {} · {} vertices, {}, at most {} per vertex, {} at {} per second\n\
             RMSE {:.5} cm (mean {:.5}, 95 % {:.5}, max {:.4}; one bone per vertex {:.4}){four}\n\
             {} in {:.1} s, {ended}",
            report.output.display(),
            bytes(report.bytes as u64),
            thousands(report.vertices as u64),
            count(report.bones, "bone"),
            report.influences,
            count(report.frames, "frame"),
            report.rate,
            report.rmse_cm,
            report.mean_cm,
            report.p95_cm,
            report.max_cm,
            report.rigid_rmse_cm,
            count(report.iterations, "iteration"),
            report.seconds
        )
    })
}
