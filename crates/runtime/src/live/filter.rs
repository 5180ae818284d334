//! The one-euro filter (Casiez, Roussel and Vogel 2012): a low-pass whose cut-off grows with speed, so that what rests does not
//! tremble and what moves is not late. `x̂ ← x̂ + α (x − x̂)`, `α = 1 / (1 + 1 / (2π f Δt))`, `f = f_min + β |ẋ̂|`.

/// How strongly to smooth.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OneEuro {
    /// Cut-off of what rests, Hz: lower trembles less and lags more.
    pub rest_hz: f32,
    /// Hz of cut-off per unit and second of speed.
    pub per_speed: f32,
    /// Cut-off of the speed itself, Hz.
    pub speed_hz: f32,
}

/// The filter of a list of numbers, each by itself.
#[derive(Debug, Clone)]
pub struct Smoothed {
    how: OneEuro,
    values: Vec<f32>,
    speeds: Vec<f32>,
}

impl Smoothed {
    /// That has seen nothing yet.
    pub fn new(how: OneEuro) -> Self {
        Self { how, values: Vec::new(), speeds: Vec::new() }
    }

    /// Forgets what it saw: the next numbers are taken as they are.
    pub fn forget(&mut self) {
        self.values.clear();
    }

    /// Takes the next numbers, `seconds` after the last, and gives the smoothed ones.
    pub fn next(&mut self, numbers: &[f32], seconds: f32) -> &[f32] {
        if self.values.len() != numbers.len() || seconds <= 0.0 {
            self.values.clear();
            self.values.extend_from_slice(numbers);
            self.speeds.clear();
            self.speeds.resize(numbers.len(), 0.0);
            return &self.values;
        }
        let share = |hz: f32| 1.0 / (1.0 + 1.0 / (std::f32::consts::TAU * hz * seconds));
        let speed_share = share(self.how.speed_hz);
        for ((value, speed), number) in self.values.iter_mut().zip(&mut self.speeds).zip(numbers) {
            *speed += speed_share * ((number - *value) / seconds - *speed);
            *value += share(self.how.rest_hz + self.how.per_speed * speed.abs()) * (number - *value);
        }
        &self.values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOW: OneEuro = OneEuro { rest_hz: 1.0, per_speed: 0.5, speed_hz: 1.0 };

    #[test]
    fn what_rests_stays_and_trembling_shrinks() {
        let mut filter = Smoothed::new(HOW);
        (0..50).for_each(|_| assert_eq!(filter.next(&[3.0, -1.0], 0.03), [3.0, -1.0]));
        let mut most = 0.0f32;
        for frame in 0..200 {
            let noise = if frame % 2 == 0 { 0.01 } else { -0.01 };
            let value = filter.next(&[3.0 + noise, -1.0], 0.03)[0];
            if frame > 20 {
                most = most.max((value - 3.0).abs());
            }
        }
        assert!(most < 0.002, "a fifth of the noise at most is left: {most}");
    }

    #[test]
    fn a_fast_move_is_followed_sooner_than_a_low_pass_would() {
        let late = |per_speed: f32| {
            let mut filter = Smoothed::new(OneEuro { per_speed, ..HOW });
            (0..30).for_each(|_| drop(filter.next(&[0.0], 0.03).to_vec()));
            (1..=10).map(|frame| frame as f32 - filter.next(&[frame as f32], 0.03)[0]).last().unwrap_or(0.0)
        };
        assert!(late(0.5) < 0.5 * late(0.0), "{} and {}", late(0.5), late(0.0));
    }

    #[test]
    fn a_new_start_takes_numbers_as_they_are() {
        let mut filter = Smoothed::new(HOW);
        filter.next(&[0.0], 0.03);
        filter.forget();
        assert_eq!(filter.next(&[9.0], 0.03), [9.0]);
        assert_eq!(filter.next(&[4.0], 0.0), [4.0]);
    }
}
