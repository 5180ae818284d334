//! What people look at: software-rendered pictures of characters, contact sheets, SVG plots and one
//! self-contained HTML page. Start at [`raster`] for pictures, [`Sheet`] to arrange them,
//! [`plot`] for diagrams and [`Page`] to join everything. Nothing here opens a file or needs a GPU.

pub mod font;
pub mod gif;
pub mod heat;
pub mod html;
pub mod picture;
pub mod plot;
pub mod raster;
pub mod sheet;

pub use gif::Gif;
pub use heat::{HeatScale, Ramp};
pub use html::{Page, Section, Table};
pub use picture::Picture;
pub use sheet::{Sheet, Theme};
