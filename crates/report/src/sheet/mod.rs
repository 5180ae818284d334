//! Contact sheets: pictures in a grid with a title, captions, labels of rows and columns and a colour
//! bar. Everything is measured before it is drawn, so nothing overlaps or leaves the sheet.

mod colour_bar;

use crate::Picture;
use crate::font::TextStyle;
use crate::heat::HeatScale;
use colour_bar::ColourBar;

/// Colours of a sheet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Theme {
    /// Dark text on near white.
    #[default]
    Light,
    /// Light text on charcoal.
    Dark,
}

impl Theme {
    /// Behind everything.
    pub fn paper(self) -> [u8; 4] {
        match self {
            Self::Light => [252, 252, 253, 255],
            Self::Dark => [24, 26, 30, 255],
        }
    }

    /// Titles and captions.
    pub fn ink(self) -> [u8; 4] {
        match self {
            Self::Light => [28, 33, 42, 255],
            Self::Dark => [232, 234, 238, 255],
        }
    }

    /// Subtitles and ticks.
    pub fn muted(self) -> [u8; 4] {
        match self {
            Self::Light => [92, 100, 112, 255],
            Self::Dark => [160, 167, 178, 255],
        }
    }
}

/// Free space around the sheet and below the title, pixels.
const MARGIN: usize = 20;

/// Free space between cells, pixels.
const GAP: usize = 10;

/// Widest column of row labels, pixels.
const ROW_LABEL_WIDTH: usize = 130;

/// The longest side of a finished sheet; pictures are shrunk to stay below it.
const LONGEST_SIDE: usize = 12_000;

/// A sheet in the making: add cells row by row, then [`Sheet::build`].
///
/// ```
/// use understudy_report::{Picture, Sheet};
/// let frame = Picture::new(64, 64, [90, 120, 150, 255]);
/// let sheet = Sheet::new(3).title("Rook, walk").cell(frame.clone(), "frame 0").cell(frame, "frame 8").build();
/// assert!(sheet.width() > 2 * 64);
/// ```
#[derive(Debug, Clone, Default)]
pub struct Sheet {
    columns: usize,
    title: String,
    subtitle: String,
    column_labels: Vec<String>,
    row_labels: Vec<String>,
    cells: Vec<(Picture, String)>,
    scale: Option<HeatScale>,
    theme: Theme,
}

impl Sheet {
    /// An empty sheet with so many columns, at least one.
    pub fn new(columns: usize) -> Self {
        Self { columns: columns.max(1), ..Self::default() }
    }

    /// The heading.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = title.into();
        self
    }

    /// A smaller line below the heading.
    pub fn subtitle(mut self, subtitle: impl Into<String>) -> Self {
        self.subtitle = subtitle.into();
        self
    }

    /// What stands above the columns, from the left.
    pub fn column_labels(mut self, labels: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.column_labels = labels.into_iter().map(Into::into).collect();
        self
    }

    /// What stands beside the rows, from the top.
    pub fn row_labels(mut self, labels: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.row_labels = labels.into_iter().map(Into::into).collect();
        self
    }

    /// Adds a picture with a caption, which may be empty; rows fill from the left.
    pub fn cell(mut self, picture: Picture, caption: impl Into<String>) -> Self {
        self.cells.push((picture, caption.into()));
        self
    }

    /// Shows a colour bar on the right.
    pub fn colour_bar(mut self, scale: &HeatScale) -> Self {
        self.scale = Some(scale.clone());
        self
    }

    /// Sets the colours.
    pub fn theme(mut self, theme: Theme) -> Self {
        self.theme = theme;
        self
    }

    /// Draws the sheet.
    pub fn build(&self) -> Picture {
        let mut factor = 1;
        loop {
            let shrunk: Vec<Picture>;
            let pictures: Vec<&Picture> = if factor == 1 {
                self.cells.iter().map(|cell| &cell.0).collect()
            } else {
                shrunk = self.cells.iter().map(|cell| cell.0.shrunk(factor)).collect();
                shrunk.iter().collect()
            };
            let layout = Layout::new(self, &pictures);
            // At a factor of 32 even the largest picture is a thumbnail: what is left is cut.
            if layout.width.max(layout.height) <= LONGEST_SIDE || factor >= 32 {
                return layout.draw(self, &pictures);
            }
            factor += 1;
        }
    }
}

/// Where everything goes, in pixels.
struct Layout {
    width: usize,
    height: usize,
    title: Vec<String>,
    subtitle: Vec<String>,
    column_left: Vec<usize>,
    column_width: Vec<usize>,
    row_top: Vec<usize>,
    row_height: Vec<usize>,
    row_labels: Vec<Vec<String>>,
    captions: Vec<Vec<String>>,
    column_labels_top: usize,
    bar: Option<(ColourBar, usize, usize)>,
}

/// The styles of a sheet's texts.
struct Styles {
    title: TextStyle,
    subtitle: TextStyle,
    label: TextStyle,
    caption: TextStyle,
}

impl Styles {
    fn new(theme: Theme) -> Self {
        Self {
            title: TextStyle::new(20.0, theme.ink()).bold(),
            subtitle: TextStyle::new(14.0, theme.muted()),
            label: TextStyle::new(13.0, theme.ink()).bold(),
            caption: TextStyle::new(13.0, theme.muted()),
        }
    }
}

impl Layout {
    fn new(sheet: &Sheet, pictures: &[&Picture]) -> Self {
        let styles = Styles::new(sheet.theme);
        let columns = sheet.columns.min(pictures.len().max(1));
        let rows = pictures.len().div_ceil(columns);
        let mut column_width = vec![1; columns];
        let mut picture_height = vec![1; rows];
        for (index, picture) in pictures.iter().enumerate() {
            let (row, column) = (index / columns, index % columns);
            column_width[column] = column_width[column].max(picture.width());
            picture_height[row] = picture_height[row].max(picture.height());
        }
        let two_lines = |style: &TextStyle, text: &str, width: usize| {
            let lines = style.wrap(text, width);
            match lines.len() {
                0..=2 => lines,
                _ => vec![lines[0].clone(), style.fit(&lines[1..].join(" "), width)],
            }
        };
        let captions: Vec<Vec<String>> = sheet
            .cells
            .iter()
            .enumerate()
            .map(|(index, cell)| two_lines(&styles.caption, &cell.1, column_width[index % columns]))
            .collect();
        let row_labels: Vec<Vec<String>> = sheet
            .row_labels
            .iter()
            .take(rows)
            .map(|l| two_lines(&styles.label, l, ROW_LABEL_WIDTH))
            .collect();
        let label_width = row_labels.iter().flatten().map(|line| styles.label.width(line)).max();
        let first_left = MARGIN + label_width.map_or(0, |width| width + GAP);

        let mut column_left = Vec::with_capacity(columns);
        let mut x = first_left;
        for width in &column_width {
            column_left.push(x);
            x += width + GAP;
        }
        let grid_right = x - GAP;
        let bar_size = sheet.scale.as_ref().map(|scale| {
            let all: usize = picture_height.iter().sum::<usize>() + rows.saturating_sub(1) * GAP;
            ColourBar::new(scale, all.clamp(90, 480), sheet.theme)
        });
        let content_right = grid_right + bar_size.as_ref().map_or(0, |bar| 2 * GAP + bar.width());
        // A title may be wider than few small pictures.
        let title_room = (content_right - MARGIN).max(styles.title.width(&sheet.title).min(420));
        let title = styles.title.wrap(&sheet.title, title_room);
        let subtitle = styles.subtitle.wrap(&sheet.subtitle, title_room);
        let text_width = |style: &TextStyle, lines: &[String]| lines.iter().map(|l| style.width(l)).max();
        let widest =
            text_width(&styles.title, &title).max(text_width(&styles.subtitle, &subtitle)).unwrap_or(0);

        let mut y = MARGIN
            + title.len() * styles.title.line_height()
            + subtitle.len() * styles.subtitle.line_height();
        if y > MARGIN {
            y += GAP;
        }
        let column_labels_top = y;
        if sheet.column_labels.iter().take(columns).any(|label| !label.is_empty()) {
            y += styles.label.line_height() + 4;
        }
        let grid_top = y;
        let mut row_top = Vec::with_capacity(rows);
        for row in 0..rows {
            row_top.push(y);
            let lines = captions.iter().skip(row * columns).take(columns).map(Vec::len).max().unwrap_or(0);
            let caption = if lines > 0 { lines * styles.caption.line_height() + 6 } else { 0 };
            y += picture_height[row] + caption + GAP;
        }
        let mut bottom = y - if rows > 0 { GAP } else { 0 };
        let bar = bar_size.map(|bar| {
            bottom = bottom.max(grid_top + bar.height());
            (bar, grid_right + 2 * GAP, grid_top)
        });
        Self {
            width: content_right.max(MARGIN + widest) + MARGIN,
            height: bottom + MARGIN,
            title,
            subtitle,
            column_left,
            column_width,
            row_top,
            row_height: picture_height,
            row_labels,
            captions,
            column_labels_top,
            bar,
        }
    }

    fn draw(&self, sheet: &Sheet, pictures: &[&Picture]) -> Picture {
        let styles = Styles::new(sheet.theme);
        let mut out = Picture::new(self.width, self.height, sheet.theme.paper());
        let mut y = MARGIN;
        for (style, lines) in [(&styles.title, &self.title), (&styles.subtitle, &self.subtitle)] {
            for line in lines {
                style.draw(&mut out, MARGIN, y + style.ascent(), line);
                y += style.line_height();
            }
        }
        for (column, label) in sheet.column_labels.iter().take(self.column_left.len()).enumerate() {
            let fitted = styles.label.fit(label, self.column_width[column]);
            let left =
                self.column_left[column] + (self.column_width[column] - styles.label.width(&fitted)) / 2;
            styles.label.draw(&mut out, left, self.column_labels_top + styles.label.ascent(), &fitted);
        }
        for (row, lines) in self.row_labels.iter().enumerate() {
            let block = lines.len() * styles.label.line_height();
            let mut top = self.row_top[row] + self.row_height[row].saturating_sub(block) / 2;
            for line in lines {
                styles.label.draw(&mut out, MARGIN, top + styles.label.ascent(), line);
                top += styles.label.line_height();
            }
        }
        let columns = self.column_left.len();
        for (index, picture) in pictures.iter().enumerate() {
            let (row, column) = (index / columns, index % columns);
            let (cell_left, cell_width) = (self.column_left[column], self.column_width[column]);
            let (cell_top, cell_height) = (self.row_top[row], self.row_height[row]);
            let left = cell_left + (cell_width - picture.width()) / 2;
            let top = cell_top + (cell_height - picture.height()) / 2;
            out.paste(picture, left, top);
            let mut line_top = cell_top + cell_height + 4;
            for line in &self.captions[index] {
                let left = cell_left + cell_width.saturating_sub(styles.caption.width(line)) / 2;
                styles.caption.draw(&mut out, left, line_top + styles.caption.ascent(), line);
                line_top += styles.caption.line_height();
            }
        }
        if let Some((bar, left, top)) = &self.bar {
            bar.draw(&mut out, *left, *top);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(width: usize, height: usize) -> Picture {
        Picture::new(width, height, [10, 200, 30, 255])
    }

    /// Pixels of the frame of a picture that differ from its corner.
    fn border_ink(picture: &Picture, depth: usize) -> usize {
        let paper = picture.pixel(0, 0);
        let (width, height) = (picture.width(), picture.height());
        let inside = |x, y| x >= depth && y >= depth && x < width - depth && y < height - depth;
        let all = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
        all.filter(|&(x, y)| !inside(x, y) && picture.pixel(x, y) != paper).count()
    }

    #[test]
    fn whatever_the_texts_the_margin_stays_free_and_pictures_whole() {
        let long =
            "an uncommonly long description of a pose that no cell could hold in one or even two lines";
        let scale = HeatScale::new(0.0, 123_456.0, long);
        for (columns, count) in [(1, 1), (3, 7), (40, 2), (2, 9)] {
            let mut sheet = Sheet::new(columns).title(long).subtitle(long).colour_bar(&scale);
            sheet = sheet.column_labels(vec![long; 50]).row_labels(["", long, "front"]);
            for index in 0..count {
                sheet = sheet.cell(block(60 + index, 50), if index % 2 == 0 { long } else { "" });
            }
            let picture = sheet.build();
            assert_eq!(border_ink(&picture, MARGIN - 3), 0, "{columns} columns, {count} cells");
            let green = picture.pixels().chunks(4).filter(|p| *p == [10, 200, 30, 255]).count();
            assert_eq!(green, (0..count).map(|i| (60 + i) * 50).sum::<usize>());
        }
    }

    #[test]
    fn an_empty_sheet_is_a_picture() {
        assert!(Sheet::new(0).build().width() > 0);
        assert!(Sheet::new(4).title("nothing to show").theme(Theme::Dark).build().width() > 100);
    }

    #[test]
    fn too_many_pictures_are_shrunk() {
        let mut sheet = Sheet::new(40);
        for _ in 0..40 {
            sheet = sheet.cell(block(400, 8), "");
        }
        let picture = sheet.build();
        assert!(picture.width() <= LONGEST_SIDE && picture.width() > LONGEST_SIDE / 3);
    }
}
