//! Puts poses before a camera: named views, one framing for all frames of a clip, pictures one by one or
//! on a sheet.

use crate::JobError;
use understudy_core::{Mesh, Vec3};
use understudy_report::raster::{Actor, Backdrop, Camera, Ground, RenderSettings, bounds, render};
use understudy_report::{Picture, Sheet, Theme};

/// From where a picture is taken.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct View {
    pub label: String,
    pub yaw_degrees: f32,
    pub pitch_degrees: f32,
}

impl View {
    const NAMED: [(&str, f32, f32); 8] = [
        ("front", 0.0, 3.0),
        ("three-quarter", 32.0, 7.0),
        ("side", 90.0, 3.0),
        ("back", 180.0, 3.0),
        ("left", 90.0, 3.0),
        ("right", -90.0, 3.0),
        ("top", 0.0, 80.0),
        ("low", 25.0, -20.0),
    ];

    /// A name, or `YAW,PITCH` in degrees.
    pub(crate) fn parse(text: &str) -> Result<Self, JobError> {
        if let Some((name, yaw, pitch)) = Self::NAMED.iter().find(|(name, _, _)| *name == text) {
            return Ok(Self { label: (*name).into(), yaw_degrees: *yaw, pitch_degrees: *pitch });
        }
        let number =
            |part: &str| part.trim().parse::<f32>().ok().filter(|v| v.is_finite() && v.abs() <= 360.0);
        if let Some((yaw, pitch)) = text.split_once(',').and_then(|(a, b)| number(a).zip(number(b))) {
            return Ok(Self { label: format!("{yaw}°, {pitch}°"), yaw_degrees: yaw, pitch_degrees: pitch });
        }
        let known: Vec<&str> = Self::NAMED.iter().map(|(name, _, _)| *name).collect();
        Err(JobError::setting("view", format!("'{text}' is neither {} nor YAW,PITCH", known.join(", "))))
    }

    /// A named view that exists.
    pub(crate) fn named(name: &str) -> Self {
        Self::parse(name).expect("the name is in the list")
    }
}

/// A pose with its caption.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Shot {
    pub vertices: Vec<Vec3>,
    pub caption: String,
}

/// What all pictures of a sheet share.
pub(crate) struct Stage<'a> {
    pub mesh: &'a Mesh,
    pub colours: Option<&'a [Vec3]>,
    /// Side of a picture, pixels.
    pub size: usize,
    pub dark: bool,
}

impl Stage<'_> {
    /// One picture per shot, all with the same camera and floor.
    pub(crate) fn pictures(&self, shots: &[Shot], view: &View) -> Vec<Picture> {
        let all = shots.iter().flat_map(|shot| &shot.vertices);
        let (points, mut pictures) = (all.copied().collect::<Vec<_>>(), Vec::with_capacity(shots.len()));
        self.framed(shots, view, &points, |picture| {
            pictures.push(picture);
            true
        });
        pictures
    }

    /// [`pictures`](Self::pictures) one after another, for films that no memory holds; stops where `each` says false.
    pub(crate) fn film(&self, shots: &[Shot], view: &View, each: impl FnMut(Picture) -> bool) {
        let all = shots.iter().flat_map(|shot| &shot.vertices);
        self.framed(shots, view, &all.copied().collect::<Vec<_>>(), each);
    }

    /// One picture per shot, framed as the first one alone is: parts of a long clip then fit each other.
    pub(crate) fn portraits(&self, shots: &[Shot], view: &View) -> Vec<Picture> {
        let (points, mut pictures) = (shots.first().map_or(&[][..], |shot| &shot.vertices), Vec::new());
        self.framed(shots, view, points, |picture| {
            pictures.push(picture);
            true
        });
        pictures
    }

    fn framed(&self, shots: &[Shot], view: &View, points: &[Vec3], mut each: impl FnMut(Picture) -> bool) {
        let camera = Camera::framing_points(points, view.yaw_degrees, view.pitch_degrees, 1.0);
        let floor = bounds(points).map_or(0.0, |(low, _)| low.y);
        let settings = RenderSettings {
            width: self.size,
            height: self.size,
            backdrop: if self.dark { Backdrop::Dark } else { Backdrop::Light },
            ground: Ground::At(floor),
            ..RenderSettings::default()
        };
        let draw = |shot: &Shot| {
            let mut actor = Actor::new(self.mesh.faces(), &shot.vertices);
            if let Some(colours) = self.colours {
                actor = actor.colours(colours);
            }
            render(&[actor], &camera, &settings)
        };
        for shot in shots {
            if !each(draw(shot)) {
                return;
            }
        }
    }

    /// Shots of one view in a grid, or with several views a row per shot and a column per view.
    pub(crate) fn sheet(&self, title: &str, subtitle: &str, shots: &[Shot], views: &[View]) -> Picture {
        let theme = if self.dark { Theme::Dark } else { Theme::Light };
        let columns = if views.len() > 1 { views.len() } else { columns_for(shots.len()) };
        let mut sheet = Sheet::new(columns).title(title).subtitle(subtitle).theme(theme);
        let by_view: Vec<Vec<Picture>> = views.iter().map(|view| self.pictures(shots, view)).collect();
        if views.len() > 1 {
            sheet = sheet.column_labels(views.iter().map(|view| view.label.clone()));
        }
        for (index, shot) in shots.iter().enumerate() {
            for pictures in &by_view {
                sheet = sheet.cell(pictures[index].clone(), shot.caption.clone());
            }
        }
        sheet.build()
    }
}

/// Wide rather than tall, full rows where possible.
fn columns_for(count: usize) -> usize {
    match count {
        0..=5 => count.max(1),
        6..=8 => count.div_ceil(2),
        9..=18 if count.is_multiple_of(6) => 6,
        9..=20 if count.is_multiple_of(5) => 5,
        _ => 6,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_have_names_or_angles() {
        assert_eq!(View::parse("side").expect("known").yaw_degrees, 90.0);
        let own = View::parse("-45, 10").expect("two angles");
        assert_eq!((own.yaw_degrees, own.pitch_degrees), (-45.0, 10.0));
        for bad in ["", "inside", "1,2,3", "NaN,0", "1e9,0"] {
            assert!(View::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn sheets_hold_all_shots_and_views() {
        let rig = crate::test_rig::small_rig();
        let mesh = understudy_rigs::Rig::mesh(&rig);
        let shot = Shot { vertices: mesh.positions().to_vec(), caption: "rest".into() };
        let stage = Stage { mesh, colours: None, size: 32, dark: false };
        let views = [View::named("front"), View::named("side"), View::named("back")];
        let sheet = stage.sheet("small", "", &[shot.clone(), shot], &views);
        assert!(sheet.width() > 3 * 32 && sheet.height() > 2 * 32);
        assert!((1..40).all(|count| columns_for(count) >= 1 && columns_for(count) <= 6));
    }
}
