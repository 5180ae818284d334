//! Alembic caches: a file of Maya's against its decoded frames, and files that show what programs do: several objects,
//! sub-frame samples, faces written in every frame, transforms, texture coordinates.

#[path = "alembic_support/mod.rs"]
mod support;

use support::{Archive, Content, Object, array, f32s, f64s, i32s, mesh, transform, value};
use understudy_core::{Face, Vec3};
use understudy_io::alembic::{AlembicCache, AlembicOptions};
use understudy_io::npz::NpzReader;
use understudy_io::{Axis, Dim, Scene};

fn parse(archive: &Archive) -> Result<AlembicCache, String> {
    AlembicCache::parse(archive.bytes(), &AlembicOptions::default()).map_err(|error| error.to_string())
}

fn frame(cache: &AlembicCache, frame: usize) -> Vec<Vec3> {
    let mut out = Vec::new();
    cache.frame(frame, &mut out).unwrap_or_else(|error| panic!("{error}"));
    out
}

/// A square whose corners are at height `z`.
fn square(z: f32) -> Vec<u8> {
    f32s(&[0.0, 0.0, z, 1.0, 0.0, z, 1.0, 1.0, z, 0.0, 1.0, z])
}

const SQUARE: (&[i32], &[i32]) = (&[4], &[3, 2, 1, 0]);
const TWO: (&[i32], &[i32]) = (&[3, 3], &[2, 1, 0, 3, 2, 0]);

#[test]
fn a_cache_of_maya_equals_its_decoded_frames_number_for_number() {
    let Some(data) = understudy_testkit::shared_data() else { return };
    // The frames were decoded in the object's own space, with Z up.
    let options = AlembicOptions { cm_per_unit: Some(1.0), transforms: false, ..AlembicOptions::default() };
    let cache = AlembicCache::open(&data.join("dem-bones/Bone_Anim.abc"), &options).expect("a cache");
    let npz = NpzReader::read(&data.join("dem-bones/Bone_Anim.npz")).expect("the same frames");
    let frames = npz.f32("frames", &[Dim::Any("f"), Dim::Any("n"), Dim::Exactly(3)]).expect("frames");
    let faces = npz.i64("polys", &[Dim::Any("p"), Dim::Exactly(4)]).expect("faces");
    assert_eq!(frames.shape, [cache.len(), cache.mesh().vertex_count(), 3]);
    assert_eq!((cache.rate(), cache.times()[0], cache.len()), (Some(24.0), 1.0 / 24.0, 400));
    let size = cache.mesh().vertex_count() * 3;
    for (index, want) in frames.data.chunks_exact(size).enumerate() {
        let got: Vec<f32> = frame(&cache, index).iter().flat_map(|p| [p.x, -p.z, p.y]).collect();
        assert!(got == want, "frame {index}");
    }
    let ours: Vec<i64> =
        cache.mesh().faces().iter().flat_map(|face| face.raw()).map(|c| i64::from(c as i32)).collect();
    assert_eq!(ours, faces.data);
    // In the world it stands where its transform puts it.
    let path = data.join("dem-bones/Bone_Anim.abc");
    let Scene::Sequence(scene) = understudy_io::open(&path).expect("one door") else { panic!("a sequence") };
    let world = scene.frames.read(7).expect("a frame");
    let moved = frame(&cache, 7)[5] + Vec3::Y * 0.385_114_87;
    assert!((world[5] - moved).length() < 1e-6);
    assert!(scene.conversion.reason.contains("Maya 2018"), "{}", scene.conversion);
    assert_eq!(scene.mesh.expect("it has faces").segments().names, ["Bone"]);
}

#[test]
fn objects_stand_where_their_transforms_put_them_and_are_segments() {
    let turn = transform(
        "arm",
        1,
        &[1, 6],
        vec![f64s(&[10.0, 0.0, 0.0, 90.0]), f64s(&[20.0, 0.0, 0.0, 90.0])],
        vec![mesh("armShape", 0, vec![square(0.0)], &[SQUARE])],
    );
    let all = transform(
        "hero",
        0,
        &[0],
        vec![f64s(&[2.0, 2.0, 2.0])],
        vec![
            turn,
            mesh("a", 1, vec![square(1.0), square(2.0)], &[TWO]),
            mesh("b", 1, vec![square(1.0), square(2.0)], &[TWO]),
        ],
    );
    let archive = Archive::new(0.5, 25.0, vec![all]);
    let cache = parse(&archive).expect("a cache");
    assert_eq!(cache.mesh().segments().names, ["arm", "a", "b"]);
    assert_eq!((cache.len(), cache.rate(), cache.times()), (2, Some(25.0), &[0.5, 0.54][..]));
    let (first, second) = (frame(&cache, 0), frame(&cache, 1));
    // Corner (1, 0) turned by 90° about Z is (0, 1); moved by 10; twice the size.
    assert!((first[1] - Vec3::new(20.0, 2.0, 0.0)).length() < 1e-5, "{}", first[1]);
    assert!((second[1] - Vec3::new(40.0, 2.0, 0.0)).length() < 1e-5, "{}", second[1]);
    assert_eq!((first[4].z, second[4].z), (2.0, 4.0));
    // Corners come the other way round.
    assert_eq!(cache.mesh().faces()[0], Face::quad(0, 1, 2, 3));
    assert_eq!(cache.mesh().faces()[1], Face::triangle(4, 5, 6));
    let some = |name: &str| AlembicOptions { objects: vec![name.into()], ..AlembicOptions::default() };
    for (name, vertices) in [("arm", 4), ("b", 4), ("/hero/a", 4), ("hero", 12)] {
        let cache = AlembicCache::parse(archive.bytes(), &some(name)).expect(name);
        assert_eq!(cache.mesh().vertex_count(), vertices, "{name}");
    }
    let error = AlembicCache::parse(archive.bytes(), &some("leg")).expect_err("no leg").to_string();
    assert!(error.contains("'leg'") && error.contains("/hero/arm/armShape"), "{error}");
}

#[test]
fn samples_between_frames_are_frames_and_slower_objects_are_blended() {
    // Two samples per frame of 1/24 s, a quarter of a frame apart; the other object has one per frame.
    let fine = mesh("fine", 2, (0..6).map(|i| square(i as f32)).collect(), &[SQUARE]);
    let coarse = mesh("coarse", 1, (0..3).map(|i| square(10.0 * i as f32)).collect(), &[SQUARE]);
    let mut archive = Archive::new(0.0, 24.0, vec![fine, coarse]);
    archive.samplings.push((Some(1.0 / 24.0), vec![0.0, 0.25 / 24.0]));
    let cache = parse(&archive).expect("a cache");
    let in_frames: Vec<f64> = cache.times().iter().map(|time| (time * 2400.0).round() / 100.0).collect();
    assert_eq!(in_frames, [0.0, 0.25, 1.0, 1.25, 2.0, 2.25]);
    let heights: Vec<(f32, f32)> = (0..6).map(|i| (frame(&cache, i)[0].z, frame(&cache, i)[4].z)).collect();
    for (index, (fine, coarse)) in heights.iter().enumerate() {
        let want = [0.0, 2.5, 10.0, 12.5, 20.0, 20.0][index];
        assert!((fine - index as f32).abs() < 1e-5 && (coarse - want).abs() < 1e-3, "{heights:?}");
    }
    // A time for every sample.
    archive.samplings[2] = (None, vec![0.0, 0.1, 0.2, 0.3, 0.4, 0.75]);
    assert_eq!(parse(&archive).expect("a cache").len(), 8);
    archive.samplings[2].1.pop();
    assert!(parse(&archive).expect_err("a time is missing").contains("6 samples and times for 5"));
}

#[test]
fn faces_may_be_written_in_every_frame_but_must_stay() {
    let positions = || vec![square(0.0), square(1.0), square(0.5), square(0.5)];
    let animated = mesh("a", 1, positions(), &[SQUARE, SQUARE, SQUARE, SQUARE]);
    let cache = parse(&Archive::new(0.0, 30.0, vec![animated])).expect("the same faces");
    let heights: Vec<f32> = (0..4).map(|index| frame(&cache, index)[0].z).collect();
    assert_eq!(heights, [0.0, 1.0, 0.5, 0.5]);
    let changing = mesh("a", 1, positions(), &[SQUARE, SQUARE, TWO, SQUARE]);
    let error = parse(&Archive::new(0.0, 30.0, vec![changing])).expect_err("other faces");
    assert!(error.contains("/a: sample 2 at 0.0667 s: has other faces"), "{error}");
    let mut growing = positions();
    growing[3].extend(f32s(&[0.0; 3]));
    let error = parse(&Archive::new(0.0, 30.0, vec![mesh("a", 1, growing, &[SQUARE])])).expect_err("five");
    assert!(error.contains("/a: sample 3") && error.contains("5 vertices, the first has 4"), "{error}");
}

#[test]
fn texture_coordinates_per_corner_and_per_vertex() {
    let uvs = f32s(&[0.0, 0.0, 1.0, 0.0, 1.0, 1.0, 0.0, 1.0]);
    let with = |property: support::Property| {
        let mut object = mesh("a", 1, vec![square(0.0)], &[SQUARE]);
        let Content::Properties(inner) = &mut object.properties[0].content else { unreachable!() };
        inner.push(property);
        parse(&Archive::new(0.0, 30.0, vec![object, mesh("b", 0, vec![square(1.0)], &[TWO])]))
            .expect("a cache")
    };
    // By corner: the file's first corner is vertex 3.
    let indexed = support::compound(
        "uv",
        vec![
            array(".vals", support::F32, 2, 0, vec![uvs.clone()]),
            array(".indices", support::U32, 1, 0, vec![i32s(&[0, 1, 2, 3])]),
        ],
    );
    let cache = with(indexed);
    assert_eq!(cache.mesh().face_uvs()[0], Face::quad(3, 2, 1, 0));
    assert_eq!(cache.mesh().face_uvs()[1], Face::triangle(4, 4, 4), "a mesh without shares one");
    let plain = with(array("uv", support::F32, 2, 0, vec![uvs]));
    assert_eq!(plain.mesh().face_uvs()[0], Face::quad(3, 2, 1, 0));
    let odd = with(array("uv", support::F32, 2, 0, vec![f32s(&[0.0; 6])]));
    assert!(!odd.mesh().has_uvs() && odd.warnings()[0].contains("3 texture coordinates"));
}

#[test]
fn units_and_axes_are_said() {
    let archive = |application: &str| Archive {
        application: application.into(),
        ..Archive::new(0.0, 24.0, vec![mesh("a", 1, vec![square(1.0)], &[SQUARE])])
    };
    let cache = parse(&archive("Blender 5.0.1")).expect("a cache");
    assert_eq!((cache.conversion().scale, frame(&cache, 0)[2]), (100.0, Vec3::splat(100.0)));
    assert_eq!((cache.application(), cache.rate()), (Some("Blender 5.0.1"), None));
    let unknown = parse(&archive("")).expect("a cache");
    assert!(unknown.warnings()[0].contains("centimetres assumed"), "{:?}", unknown.warnings());
    let options = AlembicOptions { cm_per_unit: Some(2.54), up: Some(Axis::Z), ..AlembicOptions::default() };
    let given = AlembicCache::parse(archive("").bytes(), &options).expect("a cache");
    assert_eq!(frame(&given, 0)[2], Vec3::new(2.54, 2.54, -2.54));
    let bad = AlembicOptions { cm_per_unit: Some(0.0), ..AlembicOptions::default() };
    assert!(AlembicCache::parse(archive("").bytes(), &bad).is_err());
}

#[test]
fn what_cannot_be_read_is_said_plainly() {
    let good = Archive::new(0.0, 24.0, vec![mesh("a", 1, vec![square(1.0)], &[SQUARE])]);
    let bytes = good.bytes();
    let error = |bytes: Vec<u8>| {
        AlembicCache::parse(bytes, &AlembicOptions::default()).expect_err("not readable").to_string()
    };
    assert!(error(b"\x89HDF\r\n\x1a\nand so on".to_vec()).contains("HDF5"));
    assert!(error(b"what?".to_vec()).contains("'Ogawa' is missing"));
    let mut open = bytes.clone();
    open[5] = 0;
    assert!(error(open).contains("never closed"));
    assert!(error(bytes[..bytes.len() - 9].to_vec()).contains("does not fit"));
    let nothing = Archive::new(0.0, 24.0, vec![transform("a", 0, &[], vec![vec![]], vec![])]);
    assert!(parse(&nothing).expect_err("no mesh").contains("no mesh among 1 objects"));
    let curves = Object {
        name: "hair".into(),
        schema: "AbcGeom_Curve_v2",
        properties: vec![support::compound(
            ".geom",
            vec![value("x", support::F32, 1, 0, vec![f32s(&[1.0])])],
        )],
        children: Vec::new(),
    };
    let mixed = Archive::new(0.0, 24.0, vec![curves, mesh("a", 1, vec![square(1.0)], &[SQUARE])]);
    assert!(parse(&mixed).expect("a mesh").warnings()[0].contains("'/hair' first"));
    let nan = mesh("a", 1, vec![square(0.0), square(f32::NAN)], &[SQUARE]);
    let cache = parse(&Archive::new(0.0, 24.0, vec![nan])).expect("its first frame is good");
    let problem = cache.frame(1, &mut Vec::new()).expect_err("not a number").to_string();
    assert_eq!(problem, "/a: frame 1 at 0.0417 s: vertex 0 is not finite");
    let outside = mesh("a", 1, vec![square(0.0)], &[(&[4], &[3, 2, 1, 9])]);
    assert!(parse(&Archive::new(0.0, 24.0, vec![outside])).expect_err("no vertex 9").contains("vertex 9"));
}
