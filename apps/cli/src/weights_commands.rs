//! The commands `weights` and `deform`: arguments to a job's configuration, the job's result to text or JSON.

use crate::interrupt::typed;
use crate::output::{self, bytes, count, refuse_unused, thousands};
use crate::progress::watched;
use crate::weights_arguments::{
    DeformArguments, KindArgument, WeightTransferArguments, WeightsArguments, WeightsCommand,
};
use anyhow::Result;
use understudy_jobs::weights::deform::{DeformConfig, deform};
use understudy_jobs::weights::transfer::{TransferSettings, WeightTransferConfig, transfer};
use understudy_jobs::weights::{
    DomainKind, ExampleSettings, ExampleStop, WeightSettings, WeightsConfig, WeightsReport, weights,
};

/// `weights`.
pub fn run_weights(json: bool, arguments: WeightsArguments) -> Result<()> {
    if let Some(WeightsCommand::Transfer(arguments)) = arguments.command {
        return run_transfer_weights(json, arguments);
    }
    let none = arguments.examples.is_empty();
    let biharmonic = matches!(arguments.kind, KindArgument::Bbw);
    refuse_unused(&[
        ("--sparsity", arguments.sparsity.is_some() && none, "there is no example"),
        ("--rigidity", arguments.rigidity.is_some() && none, "there is no example"),
        ("--mixing", arguments.mixing.is_some() && none, "there is no example"),
        ("--rounds", arguments.rounds.is_some() && none, "there is no example"),
        ("--joint", arguments.joint && !biharmonic, "other weights than bbw sum to one by themselves"),
    ])?;
    let defaults = WeightsConfig::default();
    let examples = ExampleSettings::default();
    let config = WeightsConfig {
        mesh: arguments.mesh.unwrap_or_default(),
        handles: arguments.handles.unwrap_or_default(),
        examples: arguments.examples,
        output: arguments.output.unwrap_or_default(),
        npz: arguments.npz,
        maps: arguments.maps,
        report: arguments.report,
        command: typed(),
        settings: WeightSettings {
            kind: arguments.kind.into(),
            domain: arguments.domain.into(),
            joint: arguments.joint,
            cells: arguments.cells,
            max_influences: arguments.max_influences,
            ..WeightSettings::default()
        },
        example_settings: ExampleSettings {
            sparsity: arguments.sparsity.unwrap_or(examples.sparsity),
            rigidity: arguments.rigidity.unwrap_or(examples.rigidity),
            mixing: arguments.mixing.unwrap_or(examples.mixing),
            rounds: arguments.rounds.unwrap_or(examples.rounds),
            ..examples
        },
        threads: arguments.threads.unwrap_or(defaults.threads),
    };
    let report = watched(|progress| weights(&config, progress))?;
    output::print(json, &report, describe)
}

fn describe(report: &WeightsReport) -> String {
    let solve = &report.solve;
    let domain = match solve.domain {
        DomainKind::Volume => "volume",
        _ => "surface",
    };
    let mut lines = vec![
        format!(
            "{}: {} · {} vertices, {}, at most {} per vertex",
            report.output.display(),
            bytes(report.bytes as u64),
            thousands(report.vertices as u64),
            count(report.handles.len(), "handle"),
            report.influences
        ),
        format!(
            "solved on the {domain} ({} nodes) in {:.2} s, {}{}; {:.0} % of all weights are below 0.05",
            thousands(solve.nodes as u64),
            report.seconds,
            count(solve.rounds, "round"),
            if solve.settled { "" } else { ", not within the tolerance" },
            100.0 * report.near_zero_share
        ),
    ];
    if let Some(examples) = &report.examples {
        let ended = match examples.stop {
            ExampleStop::Converged => "nothing gained any more",
            ExampleStop::Rounds => "more rounds would gain a little",
        };
        lines.push(format!(
            "{}: RMSE {:.3} mm, energy {:.3e} → {:.3e} in {} and {:.1} s, {ended}",
            count(examples.examples, "example"),
            examples.rmse_cm * 10.0,
            examples.energy[0],
            examples.energy[1],
            count(examples.rounds, "round"),
            examples.seconds
        ));
    }
    lines.join("\n")
}

fn run_transfer_weights(json: bool, arguments: WeightTransferArguments) -> Result<()> {
    let defaults = WeightTransferConfig::default();
    let config = WeightTransferConfig {
        source: arguments.source,
        target: arguments.target,
        output: arguments.output,
        settings: TransferSettings {
            distance: arguments.distance,
            degrees: arguments.degrees,
            two_sided: arguments.two_sided,
            max_influences: arguments.max_influences,
        },
        threads: arguments.threads.unwrap_or(defaults.threads),
    };
    let report = watched(|progress| transfer(&config, progress))?;
    output::print(json, &report, |report| {
        format!(
            "{}: {} · {} vertices, {}; {} match, {} filled in, {:.2} s",
            report.output.display(),
            bytes(report.bytes as u64),
            thousands(report.vertices as u64),
            count(report.bones, "bone"),
            thousands(report.matched as u64),
            thousands((report.vertices - report.matched) as u64),
            report.seconds
        )
    })
}

/// `deform`.
pub fn run_deform(json: bool, arguments: DeformArguments) -> Result<()> {
    let config = DeformConfig {
        input: arguments.input,
        drags: arguments.drags,
        turns: arguments.turns,
        free: arguments.free,
        output: arguments.output,
        iterations: arguments.iterations,
        view: arguments.view,
        size: arguments.size,
    };
    let report = watched(|progress| deform(&config, progress))?;
    output::print(json, &report, |report| {
        let [dragged, held, free] = report.handles;
        format!(
            "{}: {} vertices, {} dragged or turned, {held} held, {free} free; moved by {:.1} mm at most, {:.2} ms",
            report.output.display(),
            thousands(report.vertices as u64),
            count(dragged, "handle"),
            report.most_cm * 10.0,
            report.milliseconds
        )
    })
}
