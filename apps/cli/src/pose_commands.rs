//! The command `pose`: arguments to a job's configuration, the job's result to text or JSON.

use crate::output::{self, count, table};
use crate::pose_arguments::PoseArguments;
use crate::progress::watched;
use anyhow::Result;
use understudy_jobs::pose::{HandleFacts, PoseConfig, PoseReport, Reached, handles, pose};

/// `pose`.
pub fn run_pose(json: bool, arguments: PoseArguments) -> Result<()> {
    let config = PoseConfig {
        rig: arguments.rig,
        output: arguments.output,
        reach: arguments.reach,
        lock: arguments.lock,
        poles: arguments.pole,
        points: arguments.point,
        targets: arguments.targets,
        settings: arguments.settings,
        clip: arguments.clip,
        time: arguments.time,
        limbs: arguments.limbs,
        soft: arguments.soft,
        limits: !arguments.no_limits,
        steps: arguments.steps,
        view: arguments.view,
        size: arguments.size,
        markers: arguments.markers,
    };
    if arguments.list {
        let list = watched(|progress| handles(&config, progress))?;
        return output::print(json, &list, |list| {
            let row = |facts: &HandleFacts| {
                let mut row = vec![facts.name.clone(), facts.kind.clone(), facts.holds.clone()];
                row.extend(facts.rest.map(|x| format!("{x:.2}")));
                row
            };
            table(&["name", "of", "holds", "x cm", "y cm", "z cm"], &list.iter().map(row).collect::<Vec<_>>())
        });
    }
    let report = watched(|progress| pose(&config, progress))?;
    output::print(json, &report, describe)
}

fn describe(report: &PoseReport) -> String {
    let mut lines: Vec<String> = report.file.iter().map(|file| file.display().to_string()).collect();
    if let [only] = &report.frames[..] {
        lines.extend(only.iter().map(line));
        return lines.join("\n");
    }
    lines.push(format!(
        "{} at {} per second",
        count(report.frames.len(), "frame"),
        report.rate.unwrap_or(0.0)
    ));
    for (place, first) in report.frames.first().into_iter().flatten().enumerate() {
        let distances = || report.frames.iter().filter_map(|frame| frame.get(place)).map(|r| r.distance_mm);
        let mean = distances().sum::<f32>() / report.frames.len() as f32;
        let most = distances().fold(0.0, f32::max);
        lines.push(format!(
            "{}: {mean:.2} mm from its target in the mean, {most:.2} mm at most",
            first.handle
        ));
    }
    lines.join("\n")
}

/// What a lock may turn by rounding alone.
const TURNED_DEGREES: f32 = 0.05;

fn line(reached: &Reached) -> String {
    let [x, y, z] = reached.reached;
    let reach =
        reached.reach.filter(|reach| *reach != "exact").map_or(String::new(), |reach| format!(", {reach}"));
    let turned = reached.turned_deg.filter(|degrees| *degrees >= TURNED_DEGREES);
    let turned = turned.map_or(String::new(), |degrees| format!(", turned by {degrees:.1}°"));
    let limits = match &reached.at_limits[..] {
        [] => String::new(),
        limits => format!(", at a limit: {}", limits.join(", ")),
    };
    format!(
        "{}: at {x:.2}, {y:.2}, {z:.2}, {:.2} mm from its target{turned}{reach}{limits}",
        reached.handle, reached.distance_mm
    )
}
