//! OBJ files: what is written reads back as the same mesh, and damaged text never panics.

use proptest::prelude::*;
use understudy_core::{Face, Mesh, MeshParts, Random, Segments, Vec2, Vec3};
use understudy_io::obj::{parse, read, to_obj_string, write};

/// Any valid mesh: loose vertices, faces across segments, empty segments, wild names.
fn any_mesh() -> impl Strategy<Value = Mesh> {
    let position =
        prop::array::uniform3(prop::num::f32::NORMAL | prop::num::f32::ZERO | prop::num::f32::SUBNORMAL);
    let names = prop::collection::vec("[a-zA-Z#! /.0-9]{0,8}", 1..5);
    (prop::collection::vec(position, 4..40), any::<u64>(), any::<bool>(), names, 1usize..50).prop_map(
        |(positions, seed, textured, names, faces)| {
            let mut random = Random::new(seed);
            let count = positions.len();
            let mut parts = MeshParts {
                positions: positions.into_iter().map(Vec3::from_array).collect(),
                segments: Segments {
                    of_vertex: (0..count).map(|_| random.below(names.len()) as u32).collect(),
                    names,
                },
                ..MeshParts::default()
            };
            if textured {
                parts.uvs =
                    (0..9).map(|_| Vec2::new(random.uniform(-1.0, 2.0), random.uniform(0.0, 1.0))).collect();
            }
            for _ in 0..faces {
                let mut corners: Vec<u32> = (0..count as u32).collect();
                for place in 0..4 {
                    corners.swap(place, place + random.below(count - place));
                }
                let quad = random.unit() < 0.5;
                let face = |c: [u32; 4]| {
                    if quad { Face::quad(c[0], c[1], c[2], c[3]) } else { Face::triangle(c[0], c[1], c[2]) }
                };
                parts.faces.push(face([corners[0], corners[1], corners[2], corners[3]]));
                if textured {
                    parts.face_uvs.push(face([0; 4].map(|_| random.below(9) as u32)));
                }
            }
            parts.build().expect("valid parts")
        },
    )
}

proptest! {
    #[test]
    fn saving_and_loading_is_the_identity(mesh in any_mesh()) {
        let first = to_obj_string(&mesh);
        let back = parse(first.as_bytes()).map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert!(back.warnings.is_empty());
        prop_assert_eq!(back.mesh.positions(), mesh.positions());
        prop_assert_eq!(back.mesh.topology_hash(), mesh.topology_hash());
        prop_assert_eq!(back.mesh.uvs(), mesh.uvs());
        prop_assert_eq!(&back.mesh.segments().of_vertex, &mesh.segments().of_vertex);
        let second = to_obj_string(&back.mesh);
        prop_assert_eq!(&first, &second);
    }

    #[test]
    fn any_text_is_answered(text in "([vfglo]t?[ /\\\\\n0-9.-]{0,12}\n?){0,30}") {
        let _ = parse(text.as_bytes());
    }

    #[test]
    fn damage_never_panics(mesh in any_mesh(), seed in any::<u64>()) {
        let mut bytes = to_obj_string(&mesh).into_bytes();
        let mut random = Random::new(seed);
        for _ in 0..20 {
            let place = random.below(bytes.len());
            bytes[place] = random.next_u64() as u8;
        }
        let _ = parse(&bytes);
    }
}

#[test]
fn files_on_disk() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let path = folder.path().join("deep/mesh.obj");
    let parts = MeshParts {
        positions: vec![Vec3::ZERO, Vec3::X, Vec3::Y, Vec3::ONE],
        faces: vec![Face::triangle(0, 1, 2), Face::triangle(1, 2, 3)],
        segments: Segments { names: vec!["coat".into(), "spike".into()], of_vertex: vec![0, 0, 0, 1] },
        ..MeshParts::default()
    };
    let mesh = parts.build().expect("valid parts");
    write(&path, &mesh).expect("a writable folder");
    assert_eq!(read(&path).expect("just written").mesh, mesh);
    std::fs::write(&path, "v 0 0 0\nf 1 2 3\n").expect("a file");
    let error = read(&path).expect_err("a bad file").to_string();
    assert!(error.ends_with("mesh.obj: line 2: vertex 2 is named, but there are 1"), "{error}");
}

#[test]
fn groups_objects_and_materials_are_segments() {
    let vertices = "v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nv 5 5 5\n";
    let names = |text: &str| {
        let read = parse(format!("{vertices}{text}").as_bytes()).expect("valid text");
        (read.mesh.segments().names.clone(), read.mesh.segments().of_vertex.clone())
    };
    let two = (vec!["a b".to_owned(), "c".to_owned()], vec![0, 0, 0, 1, 0]);
    assert_eq!(names("o x\nusemtl m\ng a  b\nf 1 2 3\ng c\nf 1 3 4\n"), two);
    assert_eq!(names("usemtl m\no a b\nf 1 2 3\no c\nf 1 3 4\n"), two);
    assert_eq!(names("usemtl a b\nf 1 2 3\nusemtl c\nf 1 3 4\n"), two);
    assert_eq!(names("f 1 2 3\n").0, ["all"]);
    assert_eq!(names("f 1 2 3\ng c\nf 1 3 4\n").0, ["default", "c"]);
}
