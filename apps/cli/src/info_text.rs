//! What `info` prints for people.

use crate::blender_text::blender;
use crate::output::{bytes, count, table, thousands};
use understudy_jobs::clips::folded;
use understudy_jobs::info::{
    ClipFacts, InfoReport, MeshFacts, NetworkFacts, OnnxFacts, ShapeFacts, SkeletonFacts, TwinFacts,
};

/// A line per fact, then tables of clips, controls and segments.
pub fn describe(report: &InfoReport) -> String {
    let mut lines = vec![format!("{}: {}", report.input, report.kind)];
    lines.extend(report.dataset.as_ref().map(|data| {
        let state = match (data.complete, data.outside_range) {
            (true, Some(0)) => "complete, every hash and range verified".into(),
            (true, Some(outside)) => {
                format!("complete, every hash verified, {} out of range", count(outside, "control value"))
            }
            (true, None) => "complete".into(),
            (false, _) => format!("incomplete: {} of {} are there", data.chunks_present, data.chunks),
        };
        let poses = count(data.poses, "pose");
        let chunks = count(data.chunks, "chunk");
        format!("  {poses} of {} by {}, seed {}, in {chunks}, {state}", data.rig, data.method, data.seed)
    }));
    lines.extend(report.twin.as_ref().map(twin));
    lines.extend(report.onnx.iter().flat_map(onnx));
    lines.extend(report.mesh.iter().flat_map(mesh));
    lines.extend(report.skeleton.iter().map(skeleton));
    lines.extend(report.shapes.iter().map(shapes));
    lines.extend(report.blender.iter().map(blender));
    if !report.columns.is_empty() {
        lines.push(format!("  {}: {}", count(report.columns.len(), "column"), report.columns.join(", ")));
    }
    if let Some(twin) = &report.twin {
        lines.push(format!("\n{}", networks(&twin.networks)));
    }
    if !report.clips.is_empty() {
        lines.push(format!("\n{}", clips(&report.clips)));
    }
    if !report.controls.is_empty() {
        let number = |value: f32| format!("{value}");
        let row = |c: &understudy_jobs::info::ControlFacts| {
            vec![c.name.clone(), number(c.low), number(c.high), number(c.default)]
        };
        let rows = report.controls.iter().map(row).collect::<Vec<_>>();
        lines.push(format!("\n{}", table(&["control", "low", "high", "default"], &rows)));
    }
    if !report.arrays.is_empty() {
        let row =
            |a: &understudy_jobs::info::ArrayFacts| vec![a.name.clone(), a.element.clone(), list(&a.shape)];
        let rows = report.arrays.iter().map(row).collect::<Vec<_>>();
        lines.push(format!("\n{}", table(&["array", "element", "shape"], &rows)));
    }
    lines.join("\n")
}

fn onnx(facts: &OnnxFacts) -> Vec<String> {
    let mut lines = vec![format!(
        "  by {}, {} of operator set {}",
        if facts.producer.is_empty() { "an unnamed program" } else { &facts.producer },
        count(facts.nodes, "operator"),
        facts.operator_set
    )];
    for (kind, ports) in [("input", &facts.inputs), ("output", &facts.outputs)] {
        lines.extend(ports.iter().map(|(name, shape)| format!("  {kind} {name} [{}]", shape.join(", "))));
    }
    for (kind, names) in [("bones", &facts.bones), ("controls", &facts.controls)] {
        if !names.is_empty() {
            lines.push(format!("  {kind}, in order: {}", names.join(", ")));
        }
    }
    lines.extend(facts.metadata.iter().map(|(key, value)| format!("  {key}: {value}")));
    lines
}

fn twin(facts: &TwinFacts) -> String {
    let mut text = format!(
        "  a {} twin of {}: {} vertices, {}, {} multiply-adds per pose, weights of {} bits, {}",
        facts.method,
        facts.rig,
        thousands(facts.vertices as u64),
        count(facts.networks.len(), "network"),
        thousands(facts.multiply_adds as u64),
        facts.weight_bits,
        bytes(facts.bytes)
    );
    if facts.rigid != [0, 0] {
        let [own, others] = facts.rigid;
        text.push_str(&format!(", {own} segments rigid by themselves, {others} with others"));
    }
    if let Some(mechanism) = &facts.mechanism {
        text.push_str(&format!("\n  {}", mechanism.line()));
    }
    text
}

fn networks(facts: &[NetworkFacts]) -> String {
    let or = |value: Option<usize>| value.map_or_else(|| "-".into(), |value| value.to_string());
    let row = |net: &NetworkFacts| {
        let layers: Vec<String> = net.layers.iter().map(ToString::to_string).collect();
        vec![
            net.name.clone(),
            net.stage.into(),
            thousands(net.vertices as u64),
            net.inputs.to_string(),
            layers.join(" "),
            or(net.map),
            or(net.shared_features),
        ]
    };
    let head = ["network", "stage", "vertices", "inputs", "layers", "map", "shared features"];
    table(&head, &facts.iter().map(row).collect::<Vec<_>>())
}

fn mesh(facts: &MeshFacts) -> Vec<String> {
    let round = |v: [f32; 3]| v.map(|v| format!("{v:.1}")).join(" × ");
    let corner = |v: [f32; 3]| v.map(|v| format!("{v:.1}")).join(", ");
    let vertices = format!("{} vertices", thousands(facts.vertices as u64));
    let textures = match facts.texture_coordinates {
        0 => "no texture coordinates".into(),
        number => count(number, "texture coordinate"),
    };
    let mut lines = vec![
        format!("  {vertices}, {} ({}), {textures}", count(facts.faces, "face"), count(facts.quads, "quad")),
        format!(
            "  {} cm, from ({}) to ({})",
            round(facts.size_cm),
            corner(facts.low_cm),
            corner(facts.high_cm)
        ),
        format!(
            "  {}, {}, topology {}",
            count(facts.segments.len(), "segment"),
            count(facts.islands, "island"),
            facts.topology_hash
        ),
    ];
    if facts.segments.len() > 1 {
        let part =
            |s: &understudy_jobs::info::SegmentFacts| format!("{} {}", s.name, thousands(s.vertices as u64));
        lines.push(format!("  segments: {}", facts.segments.iter().map(part).collect::<Vec<_>>().join(", ")));
    }
    lines
}

fn skeleton(facts: &SkeletonFacts) -> String {
    let mut text =
        format!("  {}, {}, depth {}", count(facts.bones, "bone"), count(facts.roots, "root"), facts.depth);
    if !facts.vertices_by_influences.is_empty() {
        let groups = facts.vertices_by_influences.iter().enumerate().filter(|(_, vertices)| **vertices > 0);
        let groups: Vec<String> =
            groups.map(|(k, vertices)| format!("{k}: {}", thousands(*vertices as u64))).collect();
        text.push_str(&format!(", vertices by influences {}", groups.join(", ")));
    }
    text
}

fn shapes(facts: &ShapeFacts) -> String {
    let correctives: usize = facts.correctives_by_level.iter().sum();
    let mut text = format!("  {}", count(facts.names.len(), "shape"));
    if correctives > 0 {
        let level = |(place, number): (usize, &usize)| format!("{number} of {}", place + 2);
        let levels: Vec<String> = facts.correctives_by_level.iter().enumerate().map(level).collect();
        text.push_str(&format!(", {} ({})", count(correctives, "corrective"), levels.join(", ")));
    }
    text
}

fn clips(facts: &[ClipFacts]) -> String {
    let or = |value: Option<String>| value.unwrap_or_else(|| "-".into());
    let names: Vec<&str> = facts.iter().map(|clip| clip.name.as_str()).collect();
    // What is said of several clips in one row is what all of them have together.
    let row = |(name, places): (String, std::ops::Range<usize>)| {
        let clips = &facts[places];
        let sum = |of: fn(&ClipFacts) -> Option<usize>| {
            or(clips.iter().map(of).sum::<Option<usize>>().map(|sum| sum.to_string()))
        };
        let rate = clips[0].rate.filter(|rate| clips.iter().all(|clip| clip.rate == Some(*rate)));
        vec![
            name,
            format!("{:.2}", clips.iter().map(|clip| clip.seconds).sum::<f32>()),
            sum(|clip| clip.frames),
            or(rate.map(|rate| rate.to_string())),
            sum(|clip| clip.curves),
        ]
    };
    table(
        &["clip", "seconds", "frames", "rate", "curves"],
        &folded(&names).into_iter().map(row).collect::<Vec<_>>(),
    )
}

fn list(shape: &[usize]) -> String {
    format!("[{}]", shape.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
}
