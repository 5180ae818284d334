//! How fast work goes and how long it will still take, and how people read such numbers.

use crate::output::thousands;
use std::collections::VecDeque;

/// Steps of one piece of work over time, in seconds since it began.
#[derive(Debug)]
pub struct Pace {
    total: u64,
    done: u64,
    /// Moments of the last seconds: work that slows down is seen to.
    recent: VecDeque<(f64, u64)>,
    /// What the job itself says about the end of the whole command: the moment at which it will be reached.
    announced: Option<f64>,
}

/// Seconds that the pace is taken over.
const WINDOW: f64 = 20.0;
/// Seconds before a pace is worth a word.
const SETTLED: f64 = 1.0;
/// A first step so soon says what an earlier run had done.
const AT_ONCE: f64 = 0.1;

impl Pace {
    pub fn new(total: u64) -> Self {
        Self { total, done: 0, recent: VecDeque::from([(0.0, 0)]), announced: None }
    }

    /// So many steps are done.
    pub fn step(&mut self, now: f64, done: u64) {
        if self.done == 0 && now < AT_ONCE {
            self.recent.clear();
        }
        self.done = done;
        self.recent.push_back((now, done));
        while self.recent.len() > 2 && now - self.recent[1].0 > WINDOW {
            self.recent.pop_front();
        }
    }

    /// The job expects the command to end so many seconds from now.
    pub fn announce(&mut self, now: f64, seconds: f64) {
        self.announced = Some(now + seconds);
    }

    /// Steps per second, once there is enough to tell.
    fn rate(&self) -> Option<f64> {
        let ((from, first), (to, last)) = (*self.recent.front()?, *self.recent.back()?);
        (to - from >= SETTLED && last > first).then(|| (last - first) as f64 / (to - from))
    }

    /// Seconds until the end, of the command where the job says so, of this piece otherwise.
    fn seconds_left(&self, now: f64) -> Option<f64> {
        if let Some(end) = self.announced {
            return Some((end - now).max(0.0));
        }
        let (last, _) = *self.recent.back()?;
        let left = self.total.saturating_sub(self.done) as f64 / self.rate()?;
        Some((left - (now - last)).max(0.0))
    }

    /// `1,200/20,000 poses · 41/s · 8 min left`.
    pub fn text(&self, now: f64, unit: &str) -> String {
        let mut text = format!("{}/{} {unit}", thousands(self.done), thousands(self.total));
        if let Some(rate) = self.rate() {
            text += &format!(" · {}", rate_text(rate));
        }
        if let Some(left) = self.seconds_left(now) {
            text += &format!(" · {} left", duration_text(left));
        }
        text
    }
}

/// Two digits, per second or per minute.
fn rate_text(per_second: f64) -> String {
    let (value, unit) = if per_second < 0.95 { (per_second * 60.0, "min") } else { (per_second, "s") };
    match value {
        value if value < 9.95 => format!("{value:.1}/{unit}"),
        value => format!("{}/{unit}", thousands(value.round() as u64)),
    }
}

/// `40 s`, `5 min`, `1 h 20 min`.
pub fn duration_text(seconds: f64) -> String {
    let minutes = (seconds / 60.0).round() as u64;
    match seconds {
        s if s < 90.0 => format!("{} s", s.round()),
        _ if minutes < 60 => format!("{minutes} min"),
        _ => format!("{} h {} min", minutes / 60, minutes % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_tells_all() {
        let mut pace = Pace::new(20_000);
        assert_eq!(pace.text(0.0, "poses"), "0/20,000 poses");
        (1..=10).for_each(|second| pace.step(f64::from(second), 41 * u64::from(second as u32)));
        assert_eq!(pace.text(10.0, "poses"), "410/20,000 poses · 41/s · 8 min left");
        // Between steps the time left goes on.
        assert!(pace.text(130.0, "poses").ends_with("6 min left"), "{}", pace.text(130.0, "poses"));
    }

    #[test]
    fn what_was_there_already_is_no_pace() {
        let mut pace = Pace::new(1000);
        pace.step(0.01, 900);
        pace.step(10.0, 910);
        assert_eq!(pace.text(10.0, "poses"), "910/1,000 poses · 1.0/s · 90 s left");
    }

    #[test]
    fn a_change_of_pace_is_noticed_and_the_job_knows_best() {
        let mut pace = Pace::new(10_000);
        (1..=100u32).for_each(|second| pace.step(f64::from(second), u64::from(second) * 50));
        (101..=140u32).for_each(|second| pace.step(f64::from(second), 5000 + u64::from(second - 100) * 10));
        assert!(pace.text(140.0, "steps").contains("10/s"), "{}", pace.text(140.0, "steps"));
        pace.announce(140.0, 4000.0);
        assert!(pace.text(200.0, "steps").ends_with("1 h 6 min left"));
    }

    #[test]
    fn digits_are_few() {
        for (rate, text) in
            [(1234.5, "1,235/s"), (41.2, "41/s"), (4.12, "4.1/s"), (0.5, "30/min"), (0.01, "0.6/min")]
        {
            assert_eq!(rate_text(rate), text);
        }
        for (seconds, text) in [(0.4, "0 s"), (89.0, "89 s"), (91.0, "2 min"), (3700.0, "1 h 2 min")] {
            assert_eq!(duration_text(seconds), text);
        }
    }
}
