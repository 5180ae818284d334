//! The figures of the inverse rig as text.

use crate::console::table;
use crate::inverse::{BenchInverseReport, Study, StudyRow};

/// All tables of the report.
pub fn describe(report: &BenchInverseReport) -> String {
    let speed = &report.speed;
    let [vertices, shapes, pairs, triples, quadruples] = speed.size;
    let mut parts = vec![format!(
        "Speed: {vertices} vertices, {shapes} shapes, {pairs}/{triples}/{quadruples} correctives, a shape moves {:.0} % of the vertices",
        100.0 * speed.support
    )];
    let row = |name: &str, ms: f64| vec![name.into(), format!("{ms:.3}"), format!("{:.1}", speed.times(ms))];
    let mut rows = vec![
        row("one frame, one thread", speed.single_ms),
        row(&format!("batch of {}, {} threads", speed.batch_frames, speed.threads), speed.batch_ms),
    ];
    rows.extend(speed.batch_cpu_ms.map(|ms| row("batch, processor time of all threads", ms)));
    rows.push(row("direct form in this program", speed.direct_ms));
    rows.extend(speed.numpy_ms.map(|ms| row("NumPy, the paper's form", ms)));
    rows.extend(speed.numpy_residual_ms.map(|ms| row("NumPy, residual kept up to date", ms)));
    rows.extend(speed.numpy_gram_ms.map(|ms| row("NumPy, our table of inner products", ms)));
    parts.push(table(&["", "ms per frame", "times one frame"], &rows));
    parts.push(format!(
        "preparation {:.0} ms; largest difference of a weight: {:.1e} to the direct form, {} to NumPy",
        speed.prepare_ms,
        speed.difference_to_direct,
        speed.difference_to_numpy.map_or("not run".into(), |d| format!("{d:.1e}"))
    ));
    parts.extend(speed.numpy_problem.iter().map(|problem| format!("NumPy: {problem}")));

    parts.push("\nKnown weights, no noise".into());
    let rows: Vec<Vec<String>> = report
        .truth
        .iter()
        .map(|run| {
            vec![
                run.name.clone(),
                run.way.clone(),
                format!("{:.0}", run.passes),
                run.frames.to_string(),
                format!("{:.5}", run.mean_error),
                format!("{:.4}", run.p99_error),
                format!("{:.4}", 10.0 * run.rms_cm),
                format!("{:.2}", run.ms_per_frame),
            ]
        })
        .collect();
    let head =
        ["take", "settings", "passes", "frames", "mean error", "99 %", "RMSE mm", "processor ms per frame"];
    parts.push(table(&head, &rows));
    for (name, study) in &report.studies {
        parts.push(format!(
            "\n{name}: frames {}, noise on the targets, errors against the clean meshes",
            study.table_frames
        ));
        parts.push(study_text(study));
    }
    parts.extend(report.pages.iter().map(|page| format!("page: {}", page.display())));
    parts.join("\n")
}

fn study_text(study: &Study) -> String {
    let row = |row: &StudyRow| {
        let m = &row.metrics;
        vec![
            row.name.clone(),
            row.alpha.map_or("–".into(), |alpha| format!("{alpha:.3}")),
            format!("{:.5}", m.rmse_cm),
            format!("{:.5}", m.p95_cm),
            format!("{:.1}", m.cardinality),
            format!("{:.2}", m.l1),
            format!("{:.5}", m.roughness),
            format!("{:.0}", row.passes),
            format!("{:.0} %", 100.0 * row.settled),
            format!("{:.3}", row.ms_per_frame),
        ]
    };
    let head = ["", "α", "RMSE cm", "95th cm", "card.", "L1", "rough.", "passes", "settled", "ms per frame"];
    let rows = |rows: &[StudyRow]| -> String { table(&head, &rows.iter().map(row).collect::<Vec<_>>()) };
    let holds = study.relations.iter().map(|relation| {
        format!(
            "[{}] {}: {}",
            if relation.holds { "holds" } else { "DOES NOT HOLD" },
            relation.claim,
            relation.found
        )
    });
    let mut lines = vec![
        format!(
            "α: for every row the one of its least error on other frames; at the knee of the trade-off {:.3}",
            study.alpha
        ),
        rows(&study.methods),
        rows(&study.orders),
        "until the weights have settled".into(),
        rows(&study.settled_methods),
        rows(&study.settled_orders),
    ];
    if let Some((_, first)) = study.noise.first() {
        let mut head = vec!["noise σ mm"];
        head.extend(first.iter().map(|row| row.name.as_str()));
        let row = |(sigma, rows): &(f64, Vec<StudyRow>)| {
            let cell = |row: &StudyRow| {
                format!("{:.4} ({:.1})", 10.0 * row.metrics.rmse_cm, row.metrics.cardinality)
            };
            std::iter::once(format!("{:.1}", 10.0 * sigma)).chain(rows.iter().map(cell)).collect()
        };
        lines.push("RMSE mm against the clean meshes (weights on), by noise".into());
        lines.push(table(&head, &study.noise.iter().map(row).collect::<Vec<_>>()));
    }
    if let Some([cardinality, l1, rough]) = study.truth {
        lines.push(format!("true weights: cardinality {cardinality:.1}, L1 {l1:.2}, roughness {rough:.5}"));
    }
    lines.extend(holds);
    lines.join("\n")
}
