//! Timecodes `h:m:s:frame.fraction`, and the frame rate that a list of them implies.

use super::csv::{at, shorten};
use crate::ParseError;

/// A parsed timecode: whole seconds since midnight and frames within the second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Timecode {
    seconds: u32,
    frame: f64,
}

/// What the timecodes of a take say.
#[derive(Debug)]
pub(super) struct Timing {
    pub times: Vec<f64>,
    pub rate: f32,
    pub reason: String,
    pub start: f64,
}

/// Rates that cameras and phones count in.
const USUAL: [f64; 7] = [24.0, 25.0, 30.0, 48.0, 50.0, 60.0, 120.0];
const DAY: f64 = 86_400.0;

pub(super) fn parse(text: &str, line: usize) -> Result<Timecode, ParseError> {
    let bad = || at(line, 1, format!("'{}' is not a timecode h:m:s:frame", shorten(text)));
    // Drop-frame timecodes have a semicolon before the frame.
    let mut parts = text.split([':', ';']);
    let mut whole = |limit: u32| -> Option<u32> {
        let part = parts.next()?;
        let digits = !part.is_empty() && part.len() <= 2 && part.bytes().all(|b| b.is_ascii_digit());
        part.parse().ok().filter(|value| digits && *value < limit)
    };
    let hours = whole(24).ok_or_else(bad)?;
    let minutes = whole(60).ok_or_else(bad)?;
    let seconds = whole(60).ok_or_else(bad)?;
    let frame = parts.next().filter(|part| part.bytes().all(|b| b.is_ascii_digit() || b == b'.'));
    let frame: f64 = frame.and_then(|part| part.parse().ok()).filter(|f| *f < 1000.0).ok_or_else(bad)?;
    if parts.next().is_some() {
        return Err(bad());
    }
    Ok(Timecode { seconds: hours * 3600 + minutes * 60 + seconds, frame })
}

/// The frames that one second counts, from how the counter wraps; where it never wraps, from its
/// highest value; and the rows per second, from the usual step between rows.
pub(super) fn timing(codes: &[(usize, Timecode)]) -> Result<Timing, ParseError> {
    let steps = |within: bool| {
        codes.windows(2).filter_map(move |pair| {
            let (a, b) = (pair[0].1, pair[1].1);
            let seconds = (f64::from(b.seconds) - f64::from(a.seconds)).rem_euclid(DAY);
            ((seconds == 0.0) == within && seconds <= 1.0).then_some((a.frame, b.frame))
        })
    };
    let step = median(steps(true).map(|(a, b)| b - a).filter(|step| *step > 0.0).collect()).unwrap_or(1.0);
    let highest = codes.iter().map(|(_, code)| code.frame).fold(0.0, f64::max);
    let (counted, how) = match median(steps(false).map(|(a, b)| a + step - b).collect()) {
        Some(wrap) => {
            let nearest = USUAL.into_iter().min_by(|a, b| (a - wrap).abs().total_cmp(&(b - wrap).abs()));
            let nearest = nearest.filter(|usual| (usual - wrap).abs() < 0.05 * usual).unwrap_or(wrap.round());
            (nearest, "the frame counter starts anew")
        }
        None => {
            let fits = USUAL.into_iter().find(|usual| *usual > highest);
            (fits.unwrap_or(highest.floor() + 1.0), "less than a second long: the highest frame number fits")
        }
    };
    let counted = counted.max(highest.floor() + 1.0);
    let rate = counted / step;
    let rate = if (rate - rate.round()).abs() < 0.02 * rate { rate.round() } else { rate };
    if !(0.1..10_000.0).contains(&rate) {
        let line = codes.first().map_or(1, |(line, _)| *line);
        return Err(at(line, 1, format!("the timecodes imply a rate of {rate} frames per second")));
    }
    let reason = format!("{how} at {counted} frames per second, rows are {step:.3} frames apart");

    let second = |code: &Timecode| f64::from(code.seconds) + code.frame / counted;
    let start = codes.first().map_or(0.0, |(_, code)| second(code));
    let mut times: Vec<f64> = Vec::with_capacity(codes.len());
    for (line, code) in codes {
        let mut time = second(code) - start;
        // A take may run past midnight.
        if time < -DAY / 2.0 {
            time += DAY;
        }
        if times.last().is_some_and(|last| time < *last) {
            return Err(at(*line, 1, "the timecode goes back"));
        }
        times.push(time);
    }
    Ok(Timing { times, rate: rate as f32, reason, start })
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// A time as a timecode; `None` for one that is no time of day.
pub(super) fn format(time: f64, rate: f32) -> Option<String> {
    if !(time.is_finite() && (0.0..2.0 * DAY).contains(&time)) {
        return None;
    }
    let rate = f64::from(rate);
    // Thousandths of a frame first, so that rounding carries into the seconds.
    let per_second = (rate.ceil() * 1000.0) as u64;
    let ticks_in_second = |fraction: f64| (fraction * rate * 1000.0).round() as u64;
    let mut seconds = time.floor() as u64;
    let mut ticks = ticks_in_second(time - time.floor());
    if ticks >= per_second {
        ticks -= per_second;
        seconds += 1;
    }
    let seconds = seconds % DAY as u64;
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    Some(format!("{hours:02}:{minutes:02}:{:02}:{:02}.{:03}", seconds % 60, ticks / 1000, ticks % 1000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_carries_and_midnight_passes() {
        assert_eq!(format(1.999_999_9, 30.0).as_deref(), Some("00:00:02:00.000"));
        assert_eq!(format(DAY + 0.5, 60.0).as_deref(), Some("00:00:00:30.000"));
        assert_eq!(format(f64::NAN, 60.0), None);
        let code = |text: &str| (1, parse(text, 1).expect(text));
        let codes: Vec<_> = ["23:59:59:28", "23:59:59:29", "00:00:00:00", "00:00:00:01"].map(code).into();
        let timing = timing(&codes).expect("ascends");
        assert_eq!(timing.rate, 30.0);
        assert!((timing.times[3] - 0.1).abs() < 1e-9);
    }

    #[test]
    fn absurd_rates_are_refused() {
        let codes: Vec<_> =
            ["0:0:0:0.0", "0:0:0:0.0000001"].map(|text| (7, parse(text, 7).expect(text))).into();
        assert!(
            timing(&codes)
                .expect_err("ten million")
                .to_string()
                .starts_with("line 7, column 1: the timecodes")
        );
    }

    #[test]
    fn half_the_counted_rate_is_seen() {
        let texts: Vec<String> =
            (0..90).map(|row| format(f64::from(row) / 30.0, 60.0).expect("a time")).collect();
        let codes: Vec<_> = texts.iter().map(|text| (1, parse(text, 1).expect("valid"))).collect();
        assert_eq!(timing(&codes).expect("ascends").rate, 30.0);
    }
}
