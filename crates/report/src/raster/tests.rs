//! Laws of the whole rasteriser: coverage, order in depth, watertight seams, determinism, bad input.

use super::*;
use understudy_core::{Face, Random};

/// Bright, unlit by shadows, on nothing: alpha is coverage.
fn bare(width: usize, height: usize) -> RenderSettings {
    RenderSettings {
        width,
        height,
        backdrop: Backdrop::Transparent,
        ground: Ground::None,
        ..RenderSettings::default()
    }
}

/// Pixels covered, with fractions at edges.
fn coverage(picture: &Picture) -> f64 {
    picture.pixels().chunks(4).map(|pixel| f64::from(pixel[3]) / 255.0).sum()
}

/// A ball of quads and triangles.
fn ball(centre: Vec3, radius: f32, rings: u32) -> (Vec<Vec3>, Vec<Face>) {
    let around = 2 * rings;
    let mut positions = vec![centre - Vec3::Y * radius, centre + Vec3::Y * radius];
    for ring in 1..rings {
        let latitude = std::f32::consts::PI * ring as f32 / rings as f32;
        for step in 0..around {
            let turn = std::f32::consts::TAU * step as f32 / around as f32;
            let level = radius * latitude.sin();
            positions
                .push(centre + Vec3::new(level * turn.cos(), -radius * latitude.cos(), level * turn.sin()));
        }
    }
    let at = |ring: u32, step: u32| 2 + (ring - 1) * around + step % around;
    let mut faces = Vec::new();
    for step in 0..around {
        faces.push(Face::triangle(0, at(1, step), at(1, step + 1)));
        for ring in 1..rings - 1 {
            faces.push(Face::quad(
                at(ring, step),
                at(ring + 1, step),
                at(ring + 1, step + 1),
                at(ring, step + 1),
            ));
        }
        faces.push(Face::triangle(1, at(rings - 1, step + 1), at(rings - 1, step)));
    }
    (positions, faces)
}

#[test]
fn a_triangle_covers_its_projected_area() {
    let mut random = Random::new(11);
    let (width, height) = (160, 120);
    let camera = Camera::looking_at(Vec3::new(3.0, 2.0, 60.0), Vec3::ZERO, 40.0, 160.0 / 120.0);
    for _ in 0..60 {
        let mut corner = || Vec3::from_array(std::array::from_fn(|_| random.uniform(-14.0, 14.0)));
        let positions = [corner(), corner(), corner()];
        let pixels = positions.map(|p| camera.project(p, width, height).expect("in front of the eye"));
        let [a, b, c] = pixels;
        let area = f64::from((b.0 - a.0) * (c.1 - a.1) - (b.1 - a.1) * (c.0 - a.0)).abs() / 2.0;
        let edges: f64 =
            [(a, b), (b, c), (c, a)].iter().map(|(p, q)| f64::from((p.0 - q.0).hypot(p.1 - q.1))).sum();
        let faces = [Face::triangle(0, 1, 2)];
        let seen = coverage(&render(&[Actor::new(&faces, &positions)], &camera, &bare(width, height)));
        // Four samples per pixel leave an error only along the edges, of random sign from pixel to pixel.
        let tolerance = 0.35 * edges.sqrt() + 0.5;
        assert!((seen - area).abs() < tolerance, "{seen} of {area}, edges {edges}");
    }
}

#[test]
fn the_nearer_face_hides_the_farther_in_any_order() {
    let square =
        |z: f32| [(-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0)].map(|(x, y)| Vec3::new(x, y, z));
    let (near, far) = (square(1.0), square(-1.0));
    let (red, green) = ([Vec3::X; 4], [Vec3::Y; 4]);
    let face = [Face::quad(0, 1, 2, 3)];
    let camera = Camera::looking_at(Vec3::new(0.0, 0.0, 9.0), Vec3::ZERO, 30.0, 1.0);
    let actors = [Actor::new(&face, &near).colours(&red), Actor::new(&face, &far).colours(&green)];
    for order in [[actors[0], actors[1]], [actors[1], actors[0]]] {
        let picture = render(&order, &camera, &bare(64, 64));
        let [r, g, _, a] = picture.pixel(32, 32).expect("the middle");
        assert!(r > 100 && g < r / 2 && a == 255, "{r} {g} {a}");
    }
}

#[test]
fn both_sides_are_lit() {
    let positions = [(-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0)].map(|(x, y)| Vec3::new(x, y, 0.0));
    let camera = Camera::looking_at(Vec3::new(0.0, 0.0, 9.0), Vec3::ZERO, 30.0, 1.0);
    let middle = |face: Face| {
        let faces = [face];
        render(&[Actor::new(&faces, &positions)], &camera, &bare(32, 32)).pixel(16, 16)
    };
    assert_eq!(middle(Face::quad(0, 1, 2, 3)), middle(Face::quad(3, 2, 1, 0)));
}

#[test]
fn seams_between_faces_are_tight() {
    let (positions, faces) = ball(Vec3::ZERO, 10.0, 40);
    for yaw in [0.0, 17.0, 61.3] {
        let camera = Camera::framing_points(&positions, yaw, 23.0, 1.0);
        let picture = render(&[Actor::new(&faces, &positions)], &camera, &bare(300, 300));
        for y in 0..300i32 {
            for x in 0..300i32 {
                let inside = f64::from((x - 150).pow(2) + (y - 150).pow(2)).sqrt() < 130.0;
                let alpha = picture.pixel(x as usize, y as usize).map(|p| p[3]);
                assert!(!inside || alpha == Some(255), "a hole at {x}, {y}, yaw {yaw}");
            }
        }
    }
}

#[test]
fn the_number_of_threads_does_not_matter() {
    let (positions, faces) = ball(Vec3::new(1.0, 12.0, 0.0), 10.0, 24);
    let (more, more_faces) = ball(Vec3::new(-6.0, 4.0, 5.0), 4.0, 12);
    let values: Vec<f32> = more.iter().map(|p| p.x).collect();
    let scale = crate::HeatScale::new(-10.0, 0.0, "x");
    let actors = [Actor::new(&faces, &positions), Actor::new(&more_faces, &more).heat(&values, &scale)];
    let camera = Camera::framing_points(&positions, 30.0, 15.0, 1.3);
    let settings = RenderSettings { width: 208, height: 160, wireframe: true, ..RenderSettings::default() };
    let with = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a thread pool");
        pool.install(|| render(&actors, &camera, &settings))
    };
    let one = with(1);
    assert_eq!(one, with(2));
    assert_eq!(one, with(5));
}

#[test]
fn bad_input_is_left_out() {
    let camera = Camera::looking_at(Vec3::new(0.0, 0.0, 5.0), Vec3::ZERO, 40.0, 1.0);
    let empty = render(&[], &camera, &bare(20, 10));
    assert_eq!((empty.width(), empty.height()), (20, 10));
    assert_eq!(coverage(&empty), 0.0);

    let positions = [
        Vec3::ZERO,
        Vec3::X,
        Vec3::Y,
        Vec3::NAN,
        Vec3::splat(f32::INFINITY),
        Vec3::ZERO,
        Vec3::splat(f32::MAX),
    ];
    let bad = [
        Face::triangle(0, 1, 3),
        Face::quad(0, 1, 4, 2),
        Face::triangle(0, 5, 0),
        Face::triangle(0, 1, 1),
        Face::triangle(0, 1, 77),
        Face::triangle(0, 1, 6),
    ];
    for ground in [Ground::Auto, Ground::At(f32::NAN), Ground::At(-1.0)] {
        let settings = RenderSettings { ground, ..bare(24, 24) };
        render(&[Actor::new(&bad, &positions)], &camera, &settings);
    }
    let good = [Face::triangle(0, 1, 2)];
    let mixed: Vec<Face> = bad[..5].iter().chain(&good).copied().collect();
    let settings = bare(24, 24);
    let alone = render(&[Actor::new(&good, &positions)], &camera, &settings);
    assert_eq!(render(&[Actor::new(&mixed, &positions)], &camera, &settings), alone);
    assert!(coverage(&alone) > 10.0);
    render(&[Actor::new(&good, &positions).colours(&[Vec3::NAN; 3])], &camera, &RenderSettings::default());
}

#[test]
fn a_face_that_reaches_behind_the_eye_is_cut_there() {
    // A floor from far before the eye to far behind it: its far edge is seen, nothing is turned over.
    let positions =
        [(-50.0, -50.0), (50.0, -50.0), (50.0, 50.0), (-50.0, 50.0)].map(|(x, z)| Vec3::new(x, -1.0, z));
    let faces = [Face::quad(0, 1, 2, 3)];
    let camera = Camera::looking_at(Vec3::ZERO, Vec3::NEG_Z, 60.0, 1.0);
    let picture = render(&[Actor::new(&faces, &positions)], &camera, &bare(64, 64));
    let alpha = |y: usize| picture.pixel(32, y).map_or(0, |p| p[3]);
    assert!((0..30).all(|y| alpha(y) == 0), "nothing above the horizon");
    assert!((36..64).all(|y| alpha(y) == 255), "the floor below it");
}

#[test]
fn the_ground_shadow_darkens_the_backdrop() {
    let (positions, faces) = ball(Vec3::new(0.0, 10.0, 0.0), 10.0, 16);
    let camera = Camera::framing(Vec3::new(-20.0, 0.0, -20.0), Vec3::new(20.0, 20.0, 20.0), 0.0, 20.0, 1.0);
    let actors = [Actor::new(&faces, &positions)];
    let brightness = |ground: Ground| {
        let settings = RenderSettings { width: 96, height: 96, ground, ..RenderSettings::default() };
        let picture = render(&actors, &camera, &settings);
        picture.pixels().chunks(4).map(|p| u64::from(p[1])).sum::<u64>()
    };
    assert!(brightness(Ground::Auto) < brightness(Ground::None));
}
