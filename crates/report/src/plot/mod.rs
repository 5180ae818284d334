//! Line plots, histograms and bar charts as SVG text.

pub mod axis;
