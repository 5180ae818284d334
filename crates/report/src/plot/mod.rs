//! Line plots, histograms and bar charts as SVG text, for pages and on their own.
//!
//! Build a [`LinePlot`], [`Histogram`] or [`BarChart`] and take [`Plot`]s from it: `to_svg` stands alone
//! and follows the viewer's light or dark scheme, `to_inline_svg` leaves the colours to the page that
//! holds it ([`crate::html`]). Values that are not numbers are left out and counted in a note.

pub mod axis;
mod bars;
mod frame;
mod histogram;
mod line;
mod svg;

pub use axis::{Axis, Scale, Tick, format_number};
pub use bars::{BarChart, BarSeries};
pub use histogram::Histogram;
pub use line::{LinePlot, Series};
pub(crate) use svg::{escape, series_variables, style_inline};

/// Something that draws itself as SVG.
pub trait Plot {
    /// The elements inside the `svg` element, and its width and height.
    fn draw(&self) -> (String, f64, f64);

    /// One sentence for readers who cannot see it.
    fn description(&self) -> String;

    /// A file of its own.
    fn to_svg(&self) -> String {
        self.wrap(true)
    }

    /// An element for an HTML page whose style sheet sets the colours.
    fn to_inline_svg(&self) -> String {
        self.wrap(false)
    }

    /// The `svg` element around the drawing.
    #[doc(hidden)]
    fn wrap(&self, alone: bool) -> String {
        let (body, width, height) = self.draw();
        let (namespace, style, paper, left) = if alone {
            let paper = format!("<rect class=\"paper\" width=\"{width}\" height=\"{height}\"/>");
            (" xmlns=\"http://www.w3.org/2000/svg\"", svg::style_alone(), paper, 0.0)
        } else {
            // Flush with the text of the page.
            ("", String::new(), String::new(), frame::MARGIN)
        };
        let across = width - left;
        format!(
            "<svg{namespace} class=\"plot\" viewBox=\"{left} 0 {across} {height}\" width=\"{across}\" \
             height=\"{height}\" role=\"img\" aria-label=\"{}\">{style}{paper}{body}</svg>\n",
            escape(&self.description())
        )
    }
}

/// Size of a plot unless told otherwise, in CSS pixels.
pub(crate) const DEFAULT_SIZE: (f64, f64) = (520.0, 320.0);

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A crude check that text is well-formed XML: tags nest and close, nothing is left unescaped.
    pub(crate) fn assert_well_formed(text: &str) {
        let mut open: Vec<String> = Vec::new();
        let mut rest = text;
        while let Some(start) = rest.find('<') {
            let before = &rest[..start];
            assert!(!before.contains('>'), "a stray > in {before:?}");
            let end = rest[start..].find('>').expect("every tag ends") + start;
            let tag = &rest[start + 1..end];
            assert!(!tag.contains('<'), "a tag in a tag: {tag}");
            assert_eq!(tag.matches('"').count() % 2, 0, "an open quote in {tag}");
            if let Some(name) = tag.strip_prefix('/') {
                assert_eq!(open.pop().as_deref(), Some(name));
            } else if !tag.ends_with('/') {
                open.push(tag.split_whitespace().next().unwrap_or_default().to_owned());
            }
            rest = &rest[end + 1..];
        }
        assert!(open.is_empty(), "left open: {open:?}");
        for (place, _) in text.match_indices('&') {
            assert!(text[place..].split_once(';').is_some_and(|(entity, _)| entity.len() < 8), "a bare &");
        }
        for bad in ["NaN", "inf"] {
            let place = text.find(bad).map(|at| &text[at.saturating_sub(60)..(at + 20).min(text.len())]);
            assert_eq!(place, None, "a number that is none");
        }
    }

    #[test]
    fn every_plot_survives_every_input() {
        let cases: [Vec<f64>; 8] = [
            vec![],
            vec![f64::NAN; 3],
            vec![5.0],
            vec![2.5; 40],
            vec![0.0, f64::NAN, f64::INFINITY, -3.0, 7.0],
            vec![1e300, -1e300, 3.0],
            vec![f64::MAX, f64::MIN],
            vec![1e-12, 2e-12, 5e-9, 0.0, -1.0],
        ];
        let name = "a <b> & \"c\"";
        for values in cases {
            for scale in [Scale::Linear, Scale::Log] {
                let points: Vec<[f64; 2]> = values.iter().enumerate().map(|(i, v)| [i as f64, *v]).collect();
                let line = LinePlot::new(name).x_label(name).y_label(name).y_scale(scale).x_scale(scale);
                let line = line.series(Series::new(name, points.clone())).series(Series::new("b", points));
                let bars = BarChart::new(name, name)
                    .scale(scale)
                    .categories(values.iter().map(|_| name))
                    .series(BarSeries::new(name, values.clone()));
                let histogram = Histogram::new(name, name, &values).count_scale(scale).mark(name, 2.0);
                for plot in [&line as &dyn Plot, &bars, &histogram] {
                    for text in [plot.to_svg(), plot.to_inline_svg()] {
                        assert_well_formed(&text);
                        assert!(text.contains("a &lt;b&gt; &amp;"), "the title is shown");
                    }
                }
            }
        }
    }
}
