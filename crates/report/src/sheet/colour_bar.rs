//! The colour bar beside a heat map: a ramp with ticks and the quantity it shows.

use super::Theme;
use crate::Picture;
use crate::font::TextStyle;
use crate::heat::HeatScale;
use crate::plot::axis::{Axis, Scale, Tick};

/// Width of the ramp, pixels.
const RAMP_WIDTH: usize = 18;

/// Length of a tick, pixels.
const TICK: usize = 5;

/// Widest line of the label, pixels.
const LABEL_WIDTH: usize = 120;

/// Height of the arrow that says values go on, pixels.
const ARROW: usize = 9;

/// A measured colour bar.
pub(super) struct ColourBar {
    scale: HeatScale,
    theme: Theme,
    label: Vec<String>,
    ticks: Vec<Tick>,
    axis: Axis,
    width: usize,
    height: usize,
}

impl ColourBar {
    /// Lays out a bar of a total height in pixels.
    pub fn new(scale: &HeatScale, height: usize, theme: Theme) -> Self {
        let label_style = Self::label_style(theme);
        let tick_style = Self::tick_style(theme);
        let mut label = label_style.wrap(&scale.label, LABEL_WIDTH);
        if label.len() > 3 {
            let rest = label.split_off(2).join(" ");
            label.push(label_style.fit(&rest, LABEL_WIDTH));
        }
        let axis = Axis::new(f64::from(scale.low), f64::from(scale.high), Scale::Linear);
        let ramp = height.saturating_sub(label.len() * label_style.line_height() + ARROW);
        let ticks = axis.ticks((ramp / 45).clamp(2, 8));
        let tick_width = ticks.iter().map(|tick| tick_style.width(&tick.label)).max().unwrap_or(0);
        let label_width = label.iter().map(|line| label_style.width(line)).max().unwrap_or(0);
        let width = (RAMP_WIDTH + TICK + 4 + tick_width).max(label_width);
        Self { scale: scale.clone(), theme, label, ticks, axis, width, height }
    }

    fn label_style(theme: Theme) -> TextStyle {
        TextStyle::new(13.0, theme.ink())
    }

    fn tick_style(theme: Theme) -> TextStyle {
        TextStyle::new(12.0, theme.muted())
    }

    /// Pixels across.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Pixels down.
    pub fn height(&self) -> usize {
        self.height
    }

    /// Draws the bar with its upper left corner at a place.
    pub fn draw(&self, out: &mut Picture, left: usize, top: usize) {
        let style = Self::label_style(self.theme);
        let mut y = top;
        for line in &self.label {
            style.draw(out, left, y + style.ascent(), line);
            y += style.line_height();
        }
        let tick_style = Self::tick_style(self.theme);
        // Room for the arrow above and half a tick label below.
        let ramp_top = y + ARROW + 2;
        let ramp_bottom = (top + self.height).saturating_sub(tick_style.size as usize / 2).max(ramp_top + 20);
        let length = (ramp_bottom - ramp_top) as f32;
        for row in ramp_top..ramp_bottom {
            let share = 1.0 - (row - ramp_top) as f32 / (length - 1.0);
            let [r, g, b] = self.scale.ramp.colour_bytes(share);
            out.fill_rectangle(left, row, RAMP_WIDTH, 1, [r, g, b, 255]);
        }
        if self.scale.clipped {
            let [r, g, b] = self.scale.ramp.colour_bytes(1.0);
            for step in 0..ARROW {
                let half = (RAMP_WIDTH as f32 / 2.0) * (1.0 - (step as f32 + 0.5) / ARROW as f32);
                for column in 0..RAMP_WIDTH {
                    let away = (column as f32 + 0.5 - RAMP_WIDTH as f32 / 2.0).abs();
                    let coverage = (half - away + 0.5).clamp(0.0, 1.0);
                    out.blend_pixel(left + column, ramp_top - 1 - step, [r, g, b, 255], coverage);
                }
            }
        }
        for tick in &self.ticks {
            let place = self.axis.place(tick.value).clamp(0.0, 1.0) as f32;
            let row = ramp_bottom - 1 - (place * (length - 1.0)).round() as usize;
            out.fill_rectangle(left + RAMP_WIDTH, row, TICK, 1, self.theme.muted());
            let baseline = row + (tick_style.size * 0.36).round() as usize + 1;
            tick_style.draw(out, left + RAMP_WIDTH + TICK + 4, baseline, &tick.label);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heat::Ramp;

    #[test]
    fn the_bar_runs_from_the_low_to_the_high_colour() {
        let scale = HeatScale::new(0.0, 3.0, "error, mm").ramp(Ramp::Ember);
        let bar = ColourBar::new(&scale, 280, Theme::Light);
        let mut picture = Picture::new(bar.width(), bar.height(), [255; 4]);
        bar.draw(&mut picture, 0, 0);
        let column: Vec<[u8; 4]> = (0..picture.height()).filter_map(|y| picture.pixel(4, y)).collect();
        let has = |share: f32| {
            let [r, g, b] = Ramp::Ember.colour_bytes(share);
            column.contains(&[r, g, b, 255])
        };
        assert!(has(0.0) && has(1.0));
        assert!(picture.width() > RAMP_WIDTH);
    }
}
