//! What plots share: the title, the legend, the box with its axes and grid, the notes below.

use super::axis::Axis;
use super::svg::{DASHES, PALETTE, number, rule, shorten, text, text_width};
use std::fmt::Write;

/// Free space around everything, CSS pixels.
pub(super) const MARGIN: f64 = 12.0;

/// Height of a line of text.
const LINE: f64 = 18.0;

/// How a series is told from the others.
#[derive(Debug, Clone, Copy)]
pub(super) struct Look {
    index: usize,
}

impl Look {
    /// The look of series number `index`.
    pub fn new(index: usize) -> Self {
        Self { index }
    }

    /// Class that sets the stroke.
    pub fn stroke(&self) -> String {
        format!("s{}", self.index % PALETTE.len())
    }

    /// Class that sets the fill.
    pub fn fill(&self) -> String {
        format!("f{}", self.index % PALETTE.len())
    }

    /// Attribute for dashes, empty for a solid line.
    pub fn dashes(&self) -> String {
        match DASHES[self.index / PALETTE.len() % DASHES.len()] {
            "" => String::new(),
            pattern => format!(" stroke-dasharray=\"{pattern}\""),
        }
    }

    /// A marker at a place, of a shape that goes with the colour.
    pub fn marker(&self, out: &mut String, x: f64, y: f64) {
        let class = format!("{} hollow", self.fill());
        let at = |dx: f64, dy: f64| format!("{},{}", number(x + dx), number(y + dy));
        let shape = match self.index % 4 {
            0 => format!("<circle class=\"{class}\" cx=\"{}\" cy=\"{}\" r=\"3.6\"/>", number(x), number(y)),
            1 => format!(
                "<rect class=\"{class}\" x=\"{}\" y=\"{}\" width=\"6.4\" height=\"6.4\"/>",
                number(x - 3.2),
                number(y - 3.2)
            ),
            2 => format!(
                "<polygon class=\"{class}\" points=\"{} {} {}\"/>",
                at(0.0, -4.4),
                at(4.1, 3.0),
                at(-4.1, 3.0)
            ),
            _ => format!(
                "<polygon class=\"{class}\" points=\"{} {} {} {}\"/>",
                at(0.0, -4.6),
                at(4.6, 0.0),
                at(0.0, 4.6),
                at(-4.6, 0.0)
            ),
        };
        out.push_str(&shape);
    }
}

/// What the legend shows beside a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    /// A piece of line.
    Line,
    /// A piece of line with a marker.
    Marked,
    /// A small box.
    Box,
}

/// Titles, legend and labels around a plot.
pub(super) struct Around<'a> {
    pub title: &'a str,
    pub x_label: &'a str,
    pub y_label: &'a str,
    pub names: Vec<&'a str>,
    pub key: Key,
    pub notes: Vec<String>,
    pub width: f64,
    pub height: f64,
}

/// The box in which data is drawn.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frame {
    pub left: f64,
    pub right: f64,
    pub top: f64,
    pub bottom: f64,
}

impl Around<'_> {
    /// Draws everything but the axes and returns the place for data. `left_room` is what the labels on
    /// the left need.
    pub fn draw(&self, out: &mut String, left_room: f64) -> Frame {
        let room = self.width - 2.0 * MARGIN;
        let mut y = MARGIN;
        if !self.title.is_empty() {
            // Bold 14 px is about a quarter wider than the estimate for 12 px.
            text(out, "title", MARGIN, y + 14.0, &shorten(self.title, room / 1.25));
            y += LINE + 6.0;
        }
        y = self.legend(out, y, room);
        if !self.y_label.is_empty() {
            text(out, "muted", MARGIN, y + 12.0, &shorten(self.y_label, room));
            y += LINE + 4.0;
        }
        let mut bottom = self.height - MARGIN;
        for note in self.notes.iter().rev() {
            text(out, "muted", MARGIN, bottom - 2.0, &shorten(note, room));
            bottom -= LINE;
        }
        if !self.x_label.is_empty() {
            let left = (MARGIN + left_room + self.width - MARGIN) / 2.0;
            text(out, "muted middle", left, bottom - 2.0, &shorten(self.x_label, room - left_room));
            bottom -= LINE;
        }
        let frame = Frame {
            left: MARGIN + left_room,
            right: self.width - MARGIN - 6.0,
            top: y + 6.0,
            bottom: bottom - LINE,
        };
        Frame {
            bottom: frame.bottom.max(frame.top + 20.0),
            right: frame.right.max(frame.left + 20.0),
            ..frame
        }
    }

    /// The names of the series, in as many lines as they need; returns where it ends.
    fn legend(&self, out: &mut String, top: f64, room: f64) -> f64 {
        if self.names.iter().all(|name| name.is_empty()) {
            return top;
        }
        let (mut x, mut y) = (MARGIN, top);
        for (index, name) in self.names.iter().enumerate() {
            let look = Look::new(index);
            let name = shorten(name, room - 40.0);
            let wide = 30.0 + text_width(&name) + 14.0;
            if x > MARGIN && x + wide > MARGIN + room {
                (x, y) = (MARGIN, y + LINE);
            }
            if self.key == Key::Box {
                super::svg::rectangle(out, &look.fill(), x, y + 2.0, 12.0, 11.0);
                text(out, "", x + 18.0, y + 12.0, &name);
                x += wide - 12.0;
            } else {
                let _ = write!(
                    out,
                    "<path class=\"line {}\"{} d=\"M{} {}h20\"/>",
                    look.stroke(),
                    look.dashes(),
                    number(x + 1.0),
                    number(y + 8.0)
                );
                if self.key == Key::Marked {
                    look.marker(out, x + 11.0, y + 8.0);
                }
                text(out, "", x + 27.0, y + 12.0, &name);
                x += wide;
            }
        }
        y + LINE + 4.0
    }
}

impl Frame {
    /// Pixel column of a value, brought into the frame.
    pub fn x(&self, axis: &Axis, value: f64) -> f64 {
        self.left + axis.place(value).clamp(0.0, 1.0) * (self.right - self.left)
    }

    /// Pixel row of a value, brought into the frame.
    pub fn y(&self, axis: &Axis, value: f64) -> f64 {
        self.bottom - axis.place(value).clamp(0.0, 1.0) * (self.bottom - self.top)
    }

    /// How many ticks fit along the bottom when each label is so wide.
    pub fn tick_count(&self, widest: f64) -> usize {
        ((self.right - self.left) / (widest + 26.0)).clamp(1.0, 10.0) as usize
    }

    /// Grid, ticks and labels of an axis along the bottom.
    pub fn x_axis(&self, out: &mut String, axis: &Axis, grid: bool) {
        let ticks = self.x_ticks(axis);
        for tick in &ticks {
            let x = self.x(axis, tick.value);
            if grid {
                rule(out, "grid", (x, self.top), (x, self.bottom));
            }
            rule(out, "axis", (x, self.bottom), (x, self.bottom + 4.0));
            // A label at the edge is pulled in so that it is not cut.
            let half = text_width(&tick.label) / 2.0;
            text(out, "muted middle", x.min(self.right + 14.0 - half), self.bottom + 17.0, &tick.label);
        }
        rule(out, "axis", (self.left, self.bottom), (self.right, self.bottom));
    }

    /// Ticks along the bottom whose labels do not touch.
    fn x_ticks(&self, axis: &Axis) -> Vec<super::axis::Tick> {
        for count in (1..=self.tick_count(20.0)).rev() {
            let ticks = axis.ticks(count);
            let clear = ticks.windows(2).all(|pair| {
                let gap = self.x(axis, pair[1].value) - self.x(axis, pair[0].value);
                gap > (text_width(&pair[0].label) + text_width(&pair[1].label)) / 2.0 + 8.0
            });
            if clear {
                return ticks;
            }
        }
        axis.ticks(1).into_iter().take(1).collect()
    }

    /// Grid, ticks and labels of an axis on the left.
    pub fn y_axis(&self, out: &mut String, axis: &Axis, count: usize) {
        for tick in axis.ticks(count) {
            let y = self.y(axis, tick.value);
            rule(out, "grid", (self.left, y), (self.right, y));
            text(out, "muted end", self.left - 8.0, y + 4.0, &tick.label);
        }
    }

    /// Says that there is nothing to show.
    pub fn empty(&self, out: &mut String) {
        rule(out, "axis", (self.left, self.bottom), (self.right, self.bottom));
        let middle = ((self.left + self.right) / 2.0, (self.top + self.bottom) / 2.0);
        text(out, "muted middle", middle.0, middle.1, "no data");
    }
}

/// Widest of an axis' labels with the space beside them.
pub(super) fn label_room(axis: &Axis, count: usize) -> f64 {
    axis.ticks(count).iter().map(|tick| text_width(&tick.label)).fold(0.0, f64::max) + 10.0
}

/// A note on values that could not be drawn; `None` when there were none.
pub(super) fn left_out(count: usize, log: bool) -> Option<String> {
    let zero = if log { " or not above zero" } else { "" };
    match count {
        0 => None,
        1 => Some(format!("1 value is left out: not a number{zero}")),
        _ => Some(format!("{count} values are left out: not numbers{zero}")),
    }
}
