//! Which of the trials is the best: no file, no clock, only figures and limits.

use super::Trial;
use serde::{Deserialize, Serialize};

/// What the user wants; nothing is wanted of what is absent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Mean error that is good enough, mm: the fastest that reaches it is taken.
    pub target_mm: Option<f64>,
    /// Most milliseconds per pose, on one thread of this machine.
    pub budget_ms: Option<f64>,
    /// Most megabytes of the file.
    pub budget_mb: Option<f64>,
}

/// Trials whose errors are at most so many times the least are taken for equal, and speed decides. A trial is short, and what
/// is ahead in it may fall back: half of the tenth by which a finished twin may be worse than the best kind is left for that.
const ALIKE: f64 = 1.05;

impl Limits {
    /// Whether the numbers make sense: which does not, and why.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        let all = [
            ("--target-mm", self.target_mm),
            ("--budget-ms", self.budget_ms),
            ("--budget-mb", self.budget_mb),
        ];
        for (what, value) in all {
            if let Some(value) = value.filter(|value| !(value.is_finite() && *value > 0.0)) {
                return Err((what, format!("{value}; more than 0 is wanted")));
            }
        }
        Ok(())
    }

    fn keeps(&self, trial: &Trial) -> bool {
        self.broken(trial.kind, trial.ms, trial.bytes).is_empty()
    }

    /// Limits that a twin exceeds, a sentence each.
    pub fn broken(&self, kind: &str, ms: f64, bytes: usize) -> Vec<String> {
        let mut out = Vec::new();
        let mb = bytes as f64 / 1e6;
        if let Some(most) = self.budget_ms.filter(|most| ms > *most) {
            out.push(format!("the {kind} twin takes {ms:.3} ms per pose, more than {most} ms"));
        }
        if let Some(most) = self.budget_mb.filter(|most| mb > *most) {
            out.push(format!("the {kind} twin has {mb:.2} MB, more than {most} MB"));
        }
        out
    }
}

/// The place of the best trial, and why it is the best. Where none keeps the limits: which one, and what it would take.
pub fn choose(trials: &[Trial], limits: &Limits) -> Result<(usize, String), (&'static str, String)> {
    let kept: Vec<usize> = (0..trials.len()).filter(|place| limits.keeps(&trials[*place])).collect();
    if kept.is_empty() {
        return Err(nothing_fits(trials, limits));
    }
    let fastest = |places: &[usize]| {
        let order = |a: &usize, b: &usize| {
            let key = |place: usize| (trials[place].ms, trials[place].bytes);
            let ((ms, bytes), (other, more)) = (key(*a), key(*b));
            ms.total_cmp(&other).then(bytes.cmp(&more))
        };
        places.iter().copied().min_by(order).expect("one at least")
    };
    let excluded = match trials.len() - kept.len() {
        0 => String::new(),
        _ => {
            let out: Vec<String> = trials
                .iter()
                .filter(|trial| !limits.keeps(trial))
                .map(|trial| limits.broken(trial.kind, trial.ms, trial.bytes).join(" and "))
                .collect();
            format!("; {}", out.join(", "))
        }
    };
    let figures = |place: usize| {
        let trial = &trials[place];
        format!("{:.3} mm at {:.3} ms and {:.2} MB", trial.mean_mm, trial.ms, trial.bytes as f64 / 1e6)
    };
    let least = kept.iter().map(|place| trials[*place].mean_mm).fold(f64::INFINITY, f64::min);
    if let Some(target) = limits.target_mm {
        let enough: Vec<usize> =
            kept.iter().copied().filter(|place| trials[*place].mean_mm <= target).collect();
        if !enough.is_empty() {
            let best = fastest(&enough);
            let why = format!(
                "{} is chosen because it is the fastest of the {} that reach {target} mm: {}{excluded}",
                trials[best].kind,
                enough.len(),
                figures(best)
            );
            return Ok((best, why));
        }
    }
    let alike: Vec<usize> =
        kept.iter().copied().filter(|place| trials[*place].mean_mm <= ALIKE * least).collect();
    let best = fastest(&alike);
    let missed = match limits.target_mm {
        Some(target) => format!(" (no trial reaches {target} mm)"),
        None => String::new(),
    };
    let how = match alike.len() {
        1 => "has the smallest error".to_owned(),
        count => {
            let share = 100.0 * (ALIKE - 1.0);
            format!("is the fastest of the {count} whose errors are within {share:.0} % of the smallest")
        }
    };
    let within =
        if limits.budget_ms.is_some() || limits.budget_mb.is_some() { " within the budget" } else { "" };
    let why = format!(
        "{} is chosen because it {how}{within}{missed}: {}{excluded}",
        trials[best].kind,
        figures(best)
    );
    Ok((best, why))
}

fn nothing_fits(trials: &[Trial], limits: &Limits) -> (&'static str, String) {
    let by = |key: fn(&Trial) -> f64| trials.iter().min_by(|a, b| key(a).total_cmp(&key(b)));
    let fastest = by(|trial| trial.ms).filter(|trial| limits.budget_ms.is_some_and(|most| trial.ms > most));
    if let Some(trial) = fastest {
        let problem = format!("no twin is that fast: the fastest, {}, takes {:.3} ms", trial.kind, trial.ms);
        return ("--budget-ms", problem);
    }
    let mb = |trial: &Trial| trial.bytes as f64 / 1e6;
    match by(|trial| trial.bytes as f64).filter(|trial| limits.budget_mb.is_some_and(|most| mb(trial) > most))
    {
        Some(trial) => (
            "--budget-mb",
            format!("no twin is that small: the smallest, {}, has {:.2} MB", trial.kind, mb(trial)),
        ),
        None => ("--budget-ms", "no twin keeps it together with --budget-mb".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(kind: &'static str, mean_mm: f64, ms: f64, megabytes: f64) -> Trial {
        Trial {
            kind,
            mean_mm,
            p95_mm: 2.0 * mean_mm,
            max_mm: 9.0 * mean_mm,
            ms,
            bytes: (megabytes * 1e6) as usize,
            seconds: 1.0,
            kept: false,
        }
    }

    fn trials() -> Vec<Trial> {
        vec![
            trial("body", 0.5, 0.4, 4.0),
            trial("diff", 0.3, 2.0, 20.0),
            trial("face", 0.2, 1.7, 12.0),
            trial("skin", 0.9, 0.1, 1.0),
        ]
    }

    fn chosen(limits: Limits) -> &'static str {
        let trials = trials();
        let (place, why) = choose(&trials, &limits).expect("one fits");
        assert!(why.starts_with(trials[place].kind) && why.contains("because"), "{why}");
        trials[place].kind
    }

    #[test]
    fn limits_decide() {
        let none = Limits::default();
        assert_eq!(chosen(none), "face");
        // A budget that excludes the best.
        assert_eq!(chosen(Limits { budget_ms: Some(1.0), ..none }), "body");
        assert_eq!(chosen(Limits { budget_mb: Some(2.0), ..none }), "skin");
        assert_eq!(chosen(Limits { budget_ms: Some(1.9), budget_mb: Some(11.0), ..none }), "body");
        // Good enough is as good as best, and faster.
        assert_eq!(chosen(Limits { target_mm: Some(0.6), ..none }), "body");
        assert_eq!(chosen(Limits { target_mm: Some(1.0), ..none }), "skin");
        assert_eq!(chosen(Limits { target_mm: Some(1.0), budget_ms: Some(0.5), ..none }), "skin");
        // Out of reach: the nearest.
        assert_eq!(chosen(Limits { target_mm: Some(0.01), ..none }), "face");
        assert_eq!(chosen(Limits { target_mm: Some(0.01), budget_ms: Some(0.5), ..none }), "body");
    }

    #[test]
    fn errors_alike_are_settled_by_speed() {
        let mut trials = trials();
        trials[1].mean_mm = 0.209;
        trials[1].ms = 1.0;
        let (place, why) = choose(&trials, &Limits::default()).expect("one fits");
        assert_eq!(trials[place].kind, "diff", "{why}");
        assert!(why.contains("fastest of the 2") && why.contains("within 5 %"), "{why}");
        // What is nearly a tenth worse in a trial would easily be more than that in the end.
        trials[1].mean_mm = 0.212;
        let (place, why) = choose(&trials, &Limits::default()).expect("one fits");
        assert_eq!(trials[place].kind, "face", "{why}");
    }

    #[test]
    fn what_is_chosen_may_fall_back_by_a_twentieth_and_stays_within_a_tenth() {
        let mut random = understudy_core::Random::new(8);
        for _ in 0..500 {
            let kinds = ["body", "diff", "face", "skin"];
            let trials = kinds.map(|kind| {
                let [mm, ms] = [(); 2].map(|()| f64::from(random.uniform(0.1, 0.2)));
                trial(kind, mm, ms, 1.0)
            });
            let (place, why) = choose(&trials, &Limits::default()).expect("all fit");
            let least = trials.iter().map(|trial| trial.mean_mm).fold(f64::INFINITY, f64::min);
            assert!(trials[place].mean_mm * 1.04 <= 1.1 * least, "{why}");
            // And nothing that is as near is faster.
            let faster =
                |other: &Trial| other.ms < trials[place].ms && other.mean_mm <= trials[place].mean_mm;
            assert!(!trials.iter().any(faster), "{why}");
        }
    }

    #[test]
    fn what_cannot_be_kept_is_said() {
        let none = Limits::default();
        let refused = |limits: Limits| choose(&trials(), &limits).expect_err("nothing fits");
        let (limit, problem) = refused(Limits { budget_ms: Some(0.05), ..none });
        assert!(limit == "--budget-ms" && problem.contains("skin") && problem.contains("0.100"), "{problem}");
        let (limit, problem) = refused(Limits { budget_mb: Some(0.5), ..none });
        assert!(limit == "--budget-mb" && problem.contains("1.00 MB"), "{problem}");
        assert!(Limits { budget_ms: Some(-1.0), ..none }.check().is_err());
        assert!(Limits { target_mm: Some(f64::NAN), ..none }.check().is_err());
    }
}
