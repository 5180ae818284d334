//! One self-contained HTML page: sections with text, tables, pictures and plots, readable in light and
//! dark, on a phone and on paper. It loads nothing and runs nothing; all text is escaped.

mod style;
mod table;

pub use table::{Best, Cell, Column, Table};

use crate::Picture;
use crate::plot::{Plot, escape};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use std::fmt::Write;

/// A page in the making.
///
/// ```
/// use understudy_report::html::{Column, Page, Section, Table};
/// let table = Table::new([Column::text("method"), Column::number("mean, mm", 2).lowest_is_best()])
///     .row(["skinning".into(), 6.2.into()])
///     .row(["twin".into(), 0.41.into()]);
/// let page = Page::new("Rook").command("understudy eval rook.twin").section(Section::new("Errors").table(table));
/// assert!(page.to_html().contains("0.41"));
/// ```
#[derive(Debug, Clone, Default)]
pub struct Page {
    title: String,
    subtitle: String,
    command: String,
    facts: Vec<(String, String)>,
    figures: Vec<(String, String, String)>,
    sections: Vec<Section>,
    footer: String,
}

impl Page {
    /// An empty page.
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), ..Self::default() }
    }

    /// A sentence below the title.
    pub fn subtitle(mut self, subtitle: impl Into<String>) -> Self {
        self.subtitle = subtitle.into();
        self
    }

    /// The command that made the page, so that a reader can make it again.
    pub fn command(mut self, command: impl Into<String>) -> Self {
        self.command = command.into();
        self
    }

    /// A small fact in the header: "seed", "7".
    pub fn fact(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.facts.push((name.into(), value.into()));
        self
    }

    /// A key figure, shown large: its name, the value with its unit, and a remark, which may be empty.
    pub fn figure(
        mut self,
        name: impl Into<String>,
        value: impl Into<String>,
        remark: impl Into<String>,
    ) -> Self {
        self.figures.push((name.into(), value.into(), remark.into()));
        self
    }

    /// Adds a section.
    pub fn section(mut self, section: Section) -> Self {
        self.sections.push(section);
        self
    }

    /// The last line: who made the page, with which version.
    pub fn footer(mut self, footer: impl Into<String>) -> Self {
        self.footer = footer.into();
        self
    }

    /// The page as text.
    pub fn to_html(&self) -> String {
        let mut out = String::new();
        let title = escape(&self.title);
        // The policy states what the page promises: no scripts, nothing from elsewhere.
        let _ = write!(
            out,
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none';style-src 'unsafe-inline';\
             img-src data:\">\n<title>{title}</title>\n<style>\n{}</style>\n</head>\n<body>\n<header>\n<h1>{title}</h1>\n",
            style::sheet()
        );
        if !self.subtitle.is_empty() {
            let _ = writeln!(out, "<p class=\"lead\">{}</p>", escape(&self.subtitle));
        }
        if !self.facts.is_empty() {
            out.push_str("<dl class=\"facts\">");
            for (name, value) in &self.facts {
                let _ = write!(out, "<div><dt>{}</dt><dd>{}</dd></div>", escape(name), escape(value));
            }
            out.push_str("</dl>\n");
        }
        if !self.command.is_empty() {
            let _ = writeln!(out, "<pre class=\"command\"><code>{}</code></pre>", escape(&self.command));
        }
        out.push_str("</header>\n");
        self.write_contents(&mut out);
        out.push_str("<main>\n");
        self.write_figures(&mut out);
        for (index, section) in self.sections.iter().enumerate() {
            let _ = write!(out, "<section id=\"s{index}\">\n<h2>{}</h2>\n", escape(&section.title));
            section.parts.iter().for_each(|part| part.write(&mut out));
            out.push_str("</section>\n");
        }
        out.push_str("</main>\n");
        if !self.footer.is_empty() {
            let _ = writeln!(out, "<footer>{}</footer>", escape(&self.footer));
        }
        out.push_str("</body>\n</html>\n");
        out
    }

    /// Links to the sections, where there are enough to get lost among.
    fn write_contents(&self, out: &mut String) {
        if self.sections.len() < 3 {
            return;
        }
        out.push_str("<nav aria-label=\"Contents\">");
        for (index, section) in self.sections.iter().enumerate() {
            let _ = write!(out, "<a href=\"#s{index}\">{}</a>", escape(&section.title));
        }
        out.push_str("</nav>\n");
    }

    /// The row of key figures.
    fn write_figures(&self, out: &mut String) {
        if self.figures.is_empty() {
            return;
        }
        out.push_str("<div class=\"figures\">\n");
        for (name, value, remark) in &self.figures {
            let _ = write!(
                out,
                "<div class=\"figure\"><span class=\"name\">{}</span><span class=\"value\">{}</span>",
                escape(name),
                escape(value)
            );
            if !remark.is_empty() {
                let _ = write!(out, "<span class=\"remark\">{}</span>", escape(remark));
            }
            out.push_str("</div>\n");
        }
        out.push_str("</div>\n");
    }
}

/// A section of a page: a heading and what follows it, in the order in which it was added.
#[derive(Debug, Clone, Default)]
pub struct Section {
    title: String,
    parts: Vec<Part>,
}

/// One thing in a section; all HTML in it is finished.
#[derive(Debug, Clone)]
enum Part {
    Paragraph(String),
    Code(String),
    Table(Table),
    Figures(Vec<String>),
}

impl Part {
    fn write(&self, out: &mut String) {
        match self {
            Self::Paragraph(text) => {
                let _ = writeln!(out, "<p>{}</p>", escape(text));
            }
            Self::Code(text) => {
                let _ = writeln!(out, "<pre><code>{}</code></pre>", escape(text));
            }
            Self::Table(table) => table.write(out),
            Self::Figures(figures) => {
                let class = if figures.len() > 1 { "row" } else { "row single" };
                let _ = writeln!(out, "<div class=\"{class}\">{}</div>", figures.concat());
            }
        }
    }
}

impl Section {
    /// An empty section.
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), parts: Vec::new() }
    }

    /// Adds a paragraph.
    pub fn paragraph(mut self, text: impl Into<String>) -> Self {
        self.parts.push(Part::Paragraph(text.into()));
        self
    }

    /// Adds lines of code or of a log, kept as they are.
    pub fn code(mut self, text: impl Into<String>) -> Self {
        self.parts.push(Part::Code(text.into()));
        self
    }

    /// Adds a table.
    pub fn table(mut self, table: Table) -> Self {
        self.parts.push(Part::Table(table));
        self
    }

    /// Adds a picture with a caption, which also describes it to those who cannot see it.
    pub fn picture(self, picture: &Picture, caption: &str) -> Self {
        let image = image_element(picture, caption);
        self.figure(format!("<figure>{image}{}</figure>", caption_element(caption)))
    }

    /// Adds a picture that has a version for dark pages; a reader sees the one that suits.
    pub fn picture_pair(self, light: &Picture, dark: &Picture, caption: &str) -> Self {
        let dark = BASE64_STANDARD.encode(dark.to_png());
        let image = image_element(light, caption);
        let both = format!(
            "<picture><source media=\"(prefers-color-scheme:dark)\" srcset=\"data:image/png;base64,{dark}\">{image}</picture>"
        );
        self.figure(format!("<figure>{both}{}</figure>", caption_element(caption)))
    }

    /// Adds a plot with a caption, which may be empty.
    pub fn plot(self, plot: &dyn Plot, caption: &str) -> Self {
        self.figure(format!(
            "<figure class=\"drawing\">{}{}</figure>",
            plot.to_inline_svg().trim_end(),
            caption_element(caption)
        ))
    }

    /// Pictures and plots that follow each other stand side by side where there is room.
    fn figure(mut self, figure: String) -> Self {
        match self.parts.last_mut() {
            Some(Part::Figures(figures)) => figures.push(figure),
            _ => self.parts.push(Part::Figures(vec![figure])),
        }
        self
    }
}

/// A picture inside the page.
fn image_element(picture: &Picture, description: &str) -> String {
    format!(
        "<img width=\"{}\" height=\"{}\" alt=\"{}\" src=\"data:image/png;base64,{}\">",
        picture.width(),
        picture.height(),
        escape(description),
        BASE64_STANDARD.encode(picture.to_png())
    )
}

/// A caption; nothing for an empty one.
fn caption_element(caption: &str) -> String {
    if caption.is_empty() { String::new() } else { format!("<figcaption>{}</figcaption>", escape(caption)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::{LinePlot, Series};

    const EVIL: &str = "<script>alert(\"x\")</script> & 'y'";

    fn evil_page() -> String {
        let table = Table::new([Column::text(EVIL), Column::number(EVIL, 2)])
            .caption(EVIL)
            .row([EVIL.into(), 1.0.into()]);
        let plot = LinePlot::new(EVIL).x_label(EVIL).y_label(EVIL).series(Series::over_index(EVIL, &[1.0]));
        let section = Section::new(EVIL)
            .paragraph(EVIL)
            .code(EVIL)
            .table(table)
            .picture(&Picture::new(3, 2, [1, 2, 3, 255]), EVIL)
            .plot(&plot, EVIL);
        Page::new(EVIL)
            .subtitle(EVIL)
            .command(EVIL)
            .fact(EVIL, EVIL)
            .figure(EVIL, EVIL, EVIL)
            .section(section.clone())
            .section(section.clone())
            .section(section)
            .footer(EVIL)
            .to_html()
    }

    #[test]
    fn no_text_becomes_markup() {
        let html = evil_page();
        assert!(!html.contains("<script") && !html.contains("alert(\""));
        assert!(html.matches("&lt;script&gt;").count() > 20);
        let body =
            html.split_once("<body>").and_then(|(_, rest)| rest.split_once("</body>")).expect("a body").0;
        let closed = body.replace("\" src=", "\" src =").split("<img").enumerate().fold(
            String::new(),
            |mut out, (index, part)| {
                // HTML leaves images open; close them for the checker of XML.
                if index == 0 {
                    out.push_str(part);
                } else if let Some((attributes, rest)) = part.split_once('>') {
                    let _ = write!(out, "<img{attributes}/>{rest}");
                }
                out
            },
        );
        crate::plot::tests::assert_well_formed(&closed);
    }

    #[test]
    fn nothing_is_loaded_from_elsewhere() {
        let html = evil_page();
        for word in ["http://", "https://", "url(", "@import", "<link", "src=\"/", "srcset=\"/"] {
            assert!(!html.contains(word), "{word}");
        }
    }

    #[test]
    fn a_picture_comes_back_from_the_page() {
        let picture = Picture::new(5, 4, [9, 80, 200, 255]);
        let html = Page::new("t").section(Section::new("s").picture(&picture, "c")).to_html();
        let data = html.split("base64,").nth(1).and_then(|rest| rest.split('"').next()).expect("a picture");
        assert_eq!(data, BASE64_STANDARD.encode(picture.to_png()));
        assert!(html.contains("width=\"5\" height=\"4\" alt=\"c\""));
    }

    #[test]
    fn an_empty_page_is_a_page() {
        let html = Page::default().to_html();
        assert!(html.starts_with("<!doctype html>") && html.trim_end().ends_with("</html>"));
        assert!(!html.contains("<nav") && !html.contains("<footer"));
    }
}
