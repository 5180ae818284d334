//! What `info` prints of a Blender file, for people.

use crate::output::{count, table, thousands};
use understudy_jobs::blender::{BlenderFacts, ObjectFacts, SwitchFacts};

/// Most names that a line lists.
const LISTED: usize = 12;

/// Objects, inputs, checks, switches and what is left out; controls follow in a table of their own.
pub fn blender(facts: &BlenderFacts) -> String {
    let kinds = facts.inputs.iter().map(|(kind, number)| match kind.as_str() {
        "bone" => count(*number, "bone"),
        "segment" => format!("{} of bendy bones", count(*number, "joint")),
        "object" => count(*number, "object"),
        "shape" => count(*number, "driven shape key"),
        _ => count(*number, "driven value"),
    });
    let kinds: Vec<String> = kinds.collect();
    let mut lines = vec![
        format!(
            "  Blender {}: {}, {}, {}; {:.1} ms per pose",
            facts.blender,
            count(facts.bones, "bone"),
            count(facts.constraints, "constraint"),
            count(facts.drivers, "driver"),
            facts.pose_ms
        ),
        format!("  inputs that are recorded: {}", kinds.join(", ")),
        match facts.stray.iter().map(|stray| stray.count).sum::<usize>() {
            0 => format!("  every vertex follows '{}'", facts.root),
            1 => format!("  1 vertex does not follow '{}'", facts.root),
            stray => format!("  {} vertices do not follow '{}'", thousands(stray as u64), facts.root),
        },
    ];
    if !facts.moves_nothing.is_empty() {
        lines.push(format!(
            "  {} left out, since nothing moves with them: {}",
            channels(facts.moves_nothing.len()),
            some(&facts.moves_nothing)
        ));
    }
    if !facts.held.is_empty() {
        let names: Vec<String> = facts.held.iter().map(|held| held.name.clone()).collect();
        lines.push(format!(
            "  {} are held at rest ({}): {}",
            channels(names.len()),
            facts.held[0].why,
            some(&names)
        ));
    }
    let row = |object: &ObjectFacts| {
        let what = if object.recorded { "recorded".to_owned() } else { object.why.clone() };
        let modifiers = object.modifiers.join(", ");
        vec![object.name.clone(), thousands(object.vertices as u64), what, modifiers]
    };
    let rows: Vec<Vec<String>> = facts.objects.iter().map(row).collect();
    lines.push(format!("\n{}", table(&["object", "vertices", "", "modifiers"], &rows)));
    if !facts.switches.is_empty() {
        let row = |switch: &SwitchFacts| {
            vec![switch.name.clone(), switch.value.to_string(), format!("{} to {}", switch.low, switch.high)]
        };
        let rows: Vec<Vec<String>> = facts.switches.iter().map(row).collect();
        lines.push(format!("\n{}", table(&["switch (--set 'NAME=VALUE')", "value", "range"], &rows)));
    }
    lines.join("\n")
}

fn channels(number: usize) -> String {
    count(number, "channel")
}

fn some(names: &[String]) -> String {
    let more =
        if names.len() > LISTED { format!(", and {} more", names.len() - LISTED) } else { String::new() };
    format!("{}{more}", names[..names.len().min(LISTED)].join(", "))
}
