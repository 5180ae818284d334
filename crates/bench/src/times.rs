//! The times of a race: one row per task, one column per contestant, medians over the rounds.

use crate::console::table;
use understudy_jobs::twin::bench::median;

/// Our own column.
pub const OURS: &str = "understudy";
/// The same with weights of 32 bits, as the others have them.
pub const OURS_32: &str = "32 bits";
/// The columns of the others, as their scripts name them.
pub const PEERS: [&str; 2] = ["onnxruntime", "torch"];

/// Milliseconds per pose, in the order in which tasks first ran.
#[derive(Debug, Clone, Default)]
pub struct Times(Vec<(String, Vec<(&'static str, f64)>)>);

impl Times {
    /// One round of a task.
    pub fn add(&mut self, task: &str, contestant: &'static str, milliseconds: f64) {
        match self.0.iter_mut().find(|(known, _)| known == task) {
            Some((_, times)) => times.push((contestant, milliseconds)),
            None => self.0.push((task.into(), vec![(contestant, milliseconds)])),
        }
    }

    /// The median of a contestant's rounds, if it ran that task.
    pub fn median(&self, task: &str, contestant: &str) -> Option<f64> {
        let (_, times) = self.0.iter().find(|(known, _)| known == task)?;
        let own: Vec<f64> = times.iter().filter(|(who, _)| *who == contestant).map(|(_, ms)| *ms).collect();
        (!own.is_empty()).then(|| median(own))
    }

    /// All rows, with how many times as long the others took.
    pub fn table(&self) -> String {
        let shown = |ms: Option<f64>| ms.map_or_else(|| "-".into(), |ms| format!("{ms:.4}"));
        let row = |(task, _): &(String, _)| {
            let ours = self.median(task, OURS);
            let mut cells = vec![task.clone(), shown(ours), shown(self.median(task, OURS_32))];
            for peer in PEERS {
                let ms = self.median(task, peer);
                let ratio = ms.zip(ours).map(|(ms, ours)| ms / ours);
                cells.extend([shown(ms), ratio.map_or_else(|| "-".into(), |ratio| format!("{ratio:.1}"))]);
            }
            cells
        };
        let head = ["ms per pose", OURS, OURS_32, "onnxruntime", "times", "PyTorch", "times"];
        table(&head, &self.0.iter().map(row).collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_counts_and_rows_keep_their_order() {
        let mut times = Times::default();
        for ms in [0.5, 9.0, 0.4] {
            times.add("one pose", OURS, ms);
            times.add("crowd", OURS, ms);
            times.add("one pose", "torch", 10.0 * ms);
        }
        times.add("one pose", OURS_32, 0.6);
        assert_eq!(times.median("one pose", OURS), Some(0.5));
        assert_eq!((times.median("crowd", "torch"), times.median("sleep", OURS)), (None, None));
        let text = times.table();
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[1], ["one", "pose", "0.5000", "0.6000", "-", "-", "5.0000", "10.0"]);
        assert_eq!(lines[2], ["crowd", "0.5000", "-", "-", "-", "-", "-"]);
    }
}
