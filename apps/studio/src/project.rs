//! The project: the folder that the studio was started in. Names from a page are resolved here and nowhere else; none
//! leads out of the folder. Start at [`Project::resolve`].

use crate::error::{Refusal, StudioError};
use crate::library::lock;
use axum::http::StatusCode;
use serde::Serialize;
use std::collections::HashSet;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use understudy_io::Format;
use understudy_io::npz::NpzReader;
use understudy_jobs::rigs::Names;

/// Where the studio keeps what it makes, inside the project.
const OWN: &str = "studio";
/// Folders below the project that are looked into.
const DEPTH: usize = 4;
/// Entries that a listing looks at.
const ENTRIES: usize = 4000;
/// Meshes (`.obj`) of one folder that are offered as characters: more of them are a take of scans.
const MESHES: usize = 8;
/// What an archive of arrays holds that is a character.
const MODEL_ARRAYS: [&str; 2] = ["neutral", "deltas"];
/// Bytes of an archive of arrays that is looked into for a list.
const LARGEST_LOOKED_INTO: u64 = 64 << 20;

/// The folder, and what may be named beside its files.
#[derive(Debug)]
pub(crate) struct Project {
    root: PathBuf,
    /// Rigs that the command line named; programs among them may be started.
    named: Vec<String>,
    limits: UploadLimits,
    uploaded: AtomicU64,
    /// Names whose files are yet to be written.
    given: Arc<Mutex<HashSet<PathBuf>>>,
    /// Numbers of files that are being received.
    parts: AtomicU64,
}

/// How much a page may bring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UploadLimits {
    /// Bytes of one file.
    pub file: u64,
    /// Bytes of all files of one run.
    pub run: u64,
}

impl Default for UploadLimits {
    fn default() -> Self {
        Self { file: 1 << 30, run: 8 << 30 }
    }
}

/// A name that was given out and is nobody else's while this lives: what takes it may write its file much later.
#[derive(Debug)]
pub(crate) struct Given {
    names: Arc<Mutex<HashSet<PathBuf>>>,
    name: PathBuf,
}

impl Drop for Given {
    fn drop(&mut self) {
        // The file itself keeps its name from now on; where none was written the name is free.
        lock(&self.names).remove(&self.name);
    }
}

/// A file that is being received. What was received so far goes away with the value, unless it was renamed.
#[derive(Debug)]
pub(crate) struct Upload {
    /// Where it will be.
    pub path: PathBuf,
    /// Where it is written until it is whole; no other upload writes there.
    pub part: PathBuf,
    _name: Given,
}

impl Drop for Upload {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.part);
    }
}

/// What a page can choose from.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub(crate) struct Listing {
    pub folder: String,
    pub rigs: Vec<RigEntry>,
    pub twins: Vec<TwinEntry>,
    pub datasets: Vec<String>,
    /// Files of motion.
    pub motions: Vec<String>,
}

/// A rig that can be opened.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct RigEntry {
    /// What to ask for.
    pub name: String,
    /// `character`, `file` or `program`.
    pub source: &'static str,
}

/// A twin's file.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct TwinEntry {
    /// Inside the project.
    pub path: String,
    pub bytes: u64,
    /// Seconds since 1970.
    pub modified: u64,
    /// Its kind, and the topology hash of its mesh as rigs have it; empty where the file does not tell.
    pub kind: String,
    pub topology: String,
}

impl Project {
    pub fn open(root: &Path, named: Vec<String>, limits: UploadLimits) -> Result<Self, StudioError> {
        let failed = |error| StudioError::Project { path: root.into(), error };
        let root = root.canonicalize().map_err(failed)?;
        std::fs::read_dir(&root).map_err(failed)?;
        let (uploaded, given, parts) = Default::default();
        Ok(Self { root, named, limits, uploaded, given, parts })
    }

    /// The file or folder of a name inside the project; it exists, and lies inside whatever links there are.
    pub fn resolve(&self, name: &str) -> Result<PathBuf, Refusal> {
        let path = self.plain(name)?;
        let missing = || Refusal::missing(format!("{name}: there is no such file in the project"));
        let real = path.canonicalize().map_err(|_| missing())?;
        if real.starts_with(&self.root) { Ok(real) } else { Err(outside(name)) }
    }

    /// A name inside the project, for something that need not exist yet.
    fn plain(&self, name: &str) -> Result<PathBuf, Refusal> {
        let normal = |part: Component<'_>| matches!(part, Component::Normal(_));
        let path = Path::new(name);
        if name.is_empty() || name.contains(['\0', '\\']) || !path.components().all(normal) {
            return Err(outside(name));
        }
        Ok(self.root.join(path))
    }

    /// What [`understudy_jobs::rigs::open`] takes for a name from a page.
    pub fn rig(&self, name: &str) -> Result<String, Refusal> {
        if Names::EMBEDDED.contains(&name)
            || Names::REAL.contains(&name)
            || self.named.iter().any(|n| n == name)
        {
            return Ok(name.into());
        }
        if Names::contains(name) {
            let message =
                "a program is run only where the command line names it: understudy studio --rig 'cmd:…'";
            return Err(Refusal::new(StatusCode::FORBIDDEN, message));
        }
        Ok(self.resolve(name)?.display().to_string())
    }

    /// A clip: a name of the rig's own, or a file of the project.
    pub fn clip(&self, name: &str) -> Result<String, Refusal> {
        match self.plain(name) {
            Ok(path) if path.exists() => Ok(self.resolve(name)?.display().to_string()),
            // `FILE:CLIP`, and names that are no file; a reader would open whatever path they are.
            _ if !name.is_empty() && !name.contains(['/', '\\', ':', '.', '\0']) => Ok(name.into()),
            _ => Err(outside(name)),
        }
    }

    /// A path of ours as a page knows it: inside the project where it is.
    pub fn name_of(&self, path: &Path) -> String {
        path.strip_prefix(&self.root).unwrap_or(path).display().to_string()
    }

    /// A file name that is free, in the studio's own folder: `studio/mira-face.twin`, then `studio/mira-face-2.twin`.
    /// Nobody else is given it, whatever the ending, while the second value lives.
    pub fn fresh(&self, stem: &str, extension: &str) -> Result<(PathBuf, Given), Refusal> {
        let folder = self.own_folder("")?;
        let stem = safe_name(stem);
        for number in 1..10_000 {
            let name = if number == 1 { stem.clone() } else { format!("{stem}-{number}") };
            // Data and pages of a run lie beside its twin, with its name.
            let taken = [extension, "data", "report", "twin.parts"]
                .iter()
                .any(|ending| folder.join(format!("{name}.{ending}")).exists());
            if !taken && let Some(given) = self.give(folder.join(&name)) {
                return Ok((folder.join(format!("{name}.{extension}")), given));
            }
        }
        Err(Refusal::bad("no name is free"))
    }

    /// Gives a name out, unless it is given out already.
    fn give(&self, name: PathBuf) -> Option<Given> {
        lock(&self.given).insert(name.clone()).then(|| Given { names: Arc::clone(&self.given), name })
    }

    /// Where an upload of that name goes; its kind must be one that is read.
    pub fn upload(&self, name: &str) -> Result<Upload, Refusal> {
        let readable = [
            ".glb", ".gltf", ".fbx", ".usda", ".usdc", ".usd", ".obj", ".npz", ".bvh", ".csv", ".twin",
            ".blend", ".motion",
        ];
        let lower = name.to_ascii_lowercase();
        let known = Format::of(Path::new(&lower)).is_some_and(|format| format != Format::Dataset)
            || readable.iter().any(|ending| lower.ends_with(ending));
        if !known {
            return Err(Refusal::bad(format!(
                "{}: one of {} is wanted",
                safe_name(name),
                readable.join(", ")
            )));
        }
        let folder = self.own_folder("uploads")?;
        let name = safe_name(name);
        let (stem, extension) = name.rsplit_once('.').unwrap_or((&name, ""));
        for number in 1..10_000 {
            let path = match number {
                1 => folder.join(&name),
                _ => folder.join(format!("{stem}-{number}.{extension}")),
            };
            if !path.exists()
                && let Some(given) = self.give(path.clone())
            {
                let part = self.parts.fetch_add(1, Ordering::Relaxed);
                let part = folder.join(format!(".{}-{part}.part.tmp", std::process::id()));
                return Ok(Upload { path, part, _name: given });
            }
        }
        Err(Refusal::bad("no name is free"))
    }

    /// Refuses a file of so many bytes.
    pub fn check_upload(&self, bytes: u64) -> Result<(), Refusal> {
        match bytes > self.limits.file {
            true => Err(too_large(format!("a file may have {}", size(self.limits.file)))),
            false => Ok(()),
        }
    }

    /// Counts bytes of uploads; an error when they are too many for one run.
    pub fn count_upload(&self, bytes: u64) -> Result<(), Refusal> {
        match self.uploaded.fetch_add(bytes, Ordering::Relaxed) + bytes > self.limits.run {
            true => {
                Err(too_large(format!("this run has taken {} of uploads already", size(self.limits.run))))
            }
            false => Ok(()),
        }
    }

    fn own_folder(&self, below: &str) -> Result<PathBuf, Refusal> {
        let folder = self.root.join(OWN).join(below);
        let failed =
            |error| Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, format!("{}: {error}", folder.display()));
        std::fs::create_dir_all(&folder).map_err(failed)?;
        let real = folder.canonicalize().map_err(failed)?;
        if real.starts_with(&self.root) { Ok(real) } else { Err(outside(OWN)) }
    }

    /// What is there now. Hidden folders and those of build tools are left out.
    pub fn list(&self) -> Listing {
        let mut listing = Listing {
            folder: self.root.file_name().map_or_else(String::new, |name| name.to_string_lossy().into()),
            ..Listing::default()
        };
        let program = |name: &String| understudy_jobs::rigs::is_program(name);
        let known = Names::present(&understudy_jobs::Silent);
        listing.rigs.extend(known.into_iter().map(|name| RigEntry { name, source: "character" }));
        listing.rigs.extend(self.named.iter().map(|name| RigEntry {
            name: name.clone(),
            source: if program(name) { "program" } else { "file" },
        }));
        let mut left = ENTRIES;
        self.walk(&self.root, DEPTH, &mut left, &mut listing);
        listing.twins.sort_by(|a, b| b.modified.cmp(&a.modified).then(a.path.cmp(&b.path)));
        listing.datasets.sort();
        listing
    }

    fn walk(&self, folder: &Path, depth: usize, left: &mut usize, listing: &mut Listing) {
        let mut entries: Vec<PathBuf> =
            std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
        entries.sort();
        let meshes = entries.iter().filter(|path| Format::of(path) == Some(Format::Obj)).count();
        for path in entries {
            if *left == 0 {
                return;
            }
            *left -= 1;
            let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
            let skipped = name.starts_with('.') || ["target", "node_modules"].contains(&name.as_str());
            if skipped || name.ends_with(".parts") || path.is_symlink() {
                continue;
            }
            match Format::of(&path) {
                Some(Format::Dataset) => listing.datasets.push(self.name_of(&path)),
                Some(Format::Twin) => listing.twins.extend(self.twin_entry(&path)),
                Some(Format::Glb | Format::Gltf | Format::Fbx | Format::Usda | Format::Usd) => {
                    listing.rigs.push(RigEntry { name: self.name_of(&path), source: "file" });
                }
                Some(Format::Obj) if meshes <= MESHES => {
                    listing.rigs.push(RigEntry { name: self.name_of(&path), source: "file" });
                }
                Some(Format::Npz) if is_model(&path) => {
                    listing.rigs.push(RigEntry { name: self.name_of(&path), source: "file" });
                }
                None if name.to_ascii_lowercase().ends_with(".blend") => {
                    listing.rigs.push(RigEntry { name: self.name_of(&path), source: "file" });
                }
                None if name.to_ascii_lowercase().ends_with(".motion") => {
                    listing.motions.push(self.name_of(&path));
                }
                None if path.is_dir() && depth > 0 => self.walk(&path, depth - 1, left, listing),
                _ => {}
            }
        }
    }

    fn twin_entry(&self, path: &Path) -> Option<TwinEntry> {
        let data = path.metadata().ok()?;
        let since = data.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
        let (kind, topology) = twin_label(path).unwrap_or_default();
        let (path, bytes, modified) = (self.name_of(path), data.len(), since.as_secs());
        Some(TwinEntry { path, bytes, modified, kind, topology })
    }
}

/// Whether an archive holds the arrays of a character: others hold frames or weights. Whoever opens it reads and checks it all.
fn is_model(path: &Path) -> bool {
    let small = path.metadata().is_ok_and(|data| data.len() <= LARGEST_LOOKED_INTO);
    // Ours are smaller by far; a larger one is offered, and opening it tells what it is.
    !small || NpzReader::read(path).is_ok_and(|arrays| MODEL_ARRAYS.iter().all(|name| arrays.contains(name)))
}

/// What the first bytes of a twin's file say, for a list: its kind and topology. Whoever plays it reads and checks it all.
fn twin_label(path: &Path) -> Option<(String, String)> {
    use std::io::Read as _;
    const LONGEST: u64 = 8 << 20;
    let mut file = std::fs::File::open(path).ok()?;
    let mut length = [0u8; 8];
    file.read_exact(&mut length).ok()?;
    let length = u64::from_le_bytes(length);
    if length > LONGEST {
        return None;
    }
    let mut text = Vec::new();
    file.take(length).read_to_end(&mut text).ok()?;
    let value: serde_json::Value = serde_json::from_slice(&text).ok()?;
    let metadata = &value["__metadata__"];
    let header: serde_json::Value = serde_json::from_str(metadata["header"].as_str()?).ok()?;
    Some((metadata["method"].as_str()?.to_owned(), format!("{:016x}", header["topology_hash"].as_u64()?)))
}

fn too_large(message: String) -> Refusal {
    Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, message)
}

fn size(bytes: u64) -> String {
    match bytes >> 30 {
        0 => format!("{bytes} bytes"),
        whole => format!("{whole} GiB"),
    }
}

fn outside(name: &str) -> Refusal {
    let shown: String = name.chars().take(80).collect();
    Refusal::new(StatusCode::FORBIDDEN, format!("'{shown}' is no name inside the project"))
}

/// Letters, digits and a few signs, of a name that came from outside.
fn safe_name(name: &str) -> String {
    let name = name.rsplit(['/', '\\']).next().unwrap_or(name);
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    let name: String = name.chars().map(plain).collect();
    let name = name.trim_start_matches('.');
    let start = name.len().saturating_sub(80);
    if name.is_empty() { "file".into() } else { name[start..].to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(root: &Path, named: &[&str]) -> Project {
        let named = named.iter().map(|name| (*name).to_owned()).collect();
        Project::open(root, named, UploadLimits::default()).expect("a folder")
    }

    #[test]
    fn no_name_leads_out_of_the_project() {
        let folder = tempfile::tempdir().expect("a scratch folder");
        let inside = folder.path().join("project");
        std::fs::create_dir(&inside).expect("writable");
        std::fs::write(folder.path().join("secret.twin"), "x").expect("writable");
        std::fs::write(inside.join("own.twin"), "x").expect("writable");
        let project = open(&inside, &["cmd:rig"]);
        assert!(project.resolve("own.twin").is_ok());
        let absolute = folder.path().join("secret.twin").display().to_string();
        let mut bad = vec!["../secret.twin", "a/../../secret.twin", "/etc/passwd", &absolute, "", ".", "x\0"];
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(folder.path(), inside.join("link")).expect("a link");
            bad.push("link/secret.twin");
        }
        for name in bad {
            assert!(project.resolve(name).is_err(), "{name}");
            assert!(project.rig(name).is_err(), "{name}");
            assert!(project.clip(name).is_err(), "{name}");
        }
        assert!(project.rig("cmd:rig").is_ok() && project.rig("cmd:other").is_err());
        assert!(project.rig("mira").is_ok() && project.clip("smile").is_ok());
    }

    #[test]
    fn uploads_get_plain_names_of_known_kinds() {
        let folder = tempfile::tempdir().expect("a scratch folder");
        let project = open(folder.path(), &[]);
        let name = |given: &str| {
            let upload = project.upload(given).expect("a readable kind");
            let path = upload.path.clone();
            std::fs::write(&path, "x").expect("writable");
            assert!(
                path.starts_with(folder.path().canonicalize().expect("it exists").join("studio/uploads"))
            );
            path.file_name().expect("a file").to_string_lossy().into_owned()
        };
        assert_eq!(name("My take.csv"), "My_take.csv");
        assert_eq!(name("My take.csv"), "My_take-2.csv");
        assert_eq!(name("../../etc/x.glb"), "x.glb");
        assert_eq!(name("..%2f..\\.ssh/.hidden.npz"), "hidden.npz");
        for bad in ["run.sh", "x", "glb", "a.csv.exe"] {
            assert!(project.upload(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn listings_hold_what_can_be_used() {
        let folder = tempfile::tempdir().expect("a scratch folder");
        for name in [
            "a.twin",
            "deep/b.twin",
            ".hidden/c.twin",
            "target/d.twin",
            "rig.glb",
            "rig.FBX",
            "rig.usda",
            "rig.usdc",
            "x.txt",
        ] {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("writable");
            std::fs::write(path, "x").expect("writable");
        }
        let listing = open(folder.path(), &[]).list();
        let mut twins: Vec<&str> = listing.twins.iter().map(|twin| twin.path.as_str()).collect();
        twins.sort_unstable();
        assert_eq!(twins, ["a.twin", "deep/b.twin"]);
        for name in ["rig.glb", "rig.FBX", "rig.usda", "rig.usdc"] {
            assert!(listing.rigs.iter().any(|rig| rig.name == name), "{name}");
        }
        assert!(listing.rigs.iter().any(|rig| rig.name == "mira"));
    }

    #[test]
    fn names_are_given_once_until_their_files_are_there() {
        let folder = tempfile::tempdir().expect("a scratch folder");
        let project = open(folder.path(), &[]);
        let stem = |path: &Path| path.file_stem().expect("a file").to_string_lossy().into_owned();
        let (first, held) = project.fresh("mira-skin", "twin").expect("free");
        let (second, _kept) = project.fresh("mira-skin", "twin").expect("free");
        assert_eq!((stem(&first).as_str(), stem(&second).as_str()), ("mira-skin", "mira-skin-2"));
        // Nothing was written: the name is free again; what was written keeps it.
        drop(held);
        let (again, held) = project.fresh("mira-skin", "twin").expect("free");
        assert_eq!(again, first);
        std::fs::create_dir(again.with_extension("data")).expect("writable");
        drop(held);
        assert_eq!(stem(&project.fresh("mira-skin", "twin").expect("free").0), "mira-skin-3");

        // Uploads at one time, of one name and of one stem.
        let uploads = ["take.csv", "take.csv", "take.glb"].map(|name| project.upload(name).expect("a kind"));
        for (place, upload) in uploads.iter().enumerate() {
            for other in &uploads[..place] {
                assert!(upload.path != other.path && upload.part != other.part, "{upload:?} {other:?}");
            }
            std::fs::write(&upload.part, "half").expect("writable");
        }
        let [a, b, c] = uploads;
        drop(b);
        assert!(a.part.exists() && c.part.exists(), "one that ends leaves the others alone");
        std::fs::rename(&a.part, &a.path).expect("writable");
        let path = a.path.clone();
        drop((a, c));
        assert!(path.exists());
        assert_eq!(project.upload("take.csv").expect("a kind").path, path.with_file_name("take-2.csv"));
        assert_eq!(std::fs::read_dir(path.parent().expect("a folder")).expect("it is there").count(), 1);
    }

    #[test]
    fn archives_and_meshes_are_rigs_where_they_are_characters() {
        let folder = tempfile::tempdir().expect("a scratch folder");
        let archive = |name: &str, array: &str| {
            let mut npz = understudy_io::npz::NpzWriter::new();
            npz.f32(array, &[3, 3], &[0.0; 9]).f32("deltas", &[1, 3, 3], &[1.0; 9]);
            npz.write(&folder.path().join(name)).expect("writable");
        };
        archive("face.npz", "neutral");
        archive("frames.npz", "vertices");
        std::fs::write(folder.path().join("noise.npz"), "noise").expect("writable");
        std::fs::write(folder.path().join("head.obj"), "v 0 0 0").expect("writable");
        std::fs::create_dir(folder.path().join("scans")).expect("writable");
        for scan in 0..=MESHES {
            std::fs::write(folder.path().join(format!("scans/{scan}.obj")), "v 0 0 0").expect("writable");
        }
        let rigs = open(folder.path(), &[]).list().rigs;
        let files: Vec<&str> =
            rigs.iter().filter(|rig| rig.source == "file").map(|rig| rig.name.as_str()).collect();
        assert_eq!(files, ["face.npz", "head.obj"]);
    }
}
