//! The server as others meet it: who is refused, what malformed messages do, that tabs do not disturb each other, and that
//! it ends cleanly. Clients are written against sockets, so that they can misbehave.

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio_tungstenite::tungstenite::Message;
use understudy_core::Vec3;
use understudy_studio::{Studio, StudioOptions, UploadLimits};

/// A studio on a thread of its own; ends with the value.
struct Running {
    port: u16,
    token: String,
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
    project: tempfile::TempDir,
}

impl Running {
    fn start() -> Self {
        Self::start_with(UploadLimits::default())
    }

    fn start_with(uploads: UploadLimits) -> Self {
        let folder = tempfile::tempdir().expect("a scratch folder");
        let project = folder.path().join("project");
        std::fs::create_dir(&project).expect("writable");
        std::fs::write(folder.path().join("secret.csv"), "secret").expect("writable");
        let options = StudioOptions { port: Some(0), project, uploads, ..StudioOptions::default() };
        let studio = Studio::open(&options).expect("a free port");
        let address = studio.address();
        let rest = address.strip_prefix("http://127.0.0.1:").expect("on loopback");
        let (port, token) = rest.trim_end_matches('/').split_once('/').expect("a token");
        let stop = Arc::new(AtomicBool::new(false));
        let (port, token, own) = (port.parse().expect("a port"), token.to_owned(), Arc::clone(&stop));
        let run = move || studio.run(move || own.load(Ordering::SeqCst)).expect("it serves");
        let thread = Some(std::thread::spawn(run));
        Self { port, token, stop, thread, project: folder }
    }

    /// A request as raw text; status and body.
    fn raw(&self, request: &[u8]) -> (u16, String) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a socket");
        // A server that has refused already may have closed its side.
        let _ = stream.write_all(request);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let text = String::from_utf8_lossy(&answer).into_owned();
        let status = text.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
        (status, text)
    }

    fn request(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> (u16, String) {
        let mut text =
            format!("{method} {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
        if !headers.iter().any(|(name, _)| *name == "Host") {
            text += &format!("Host: 127.0.0.1:{}\r\n", self.port);
        }
        headers.iter().for_each(|(name, value)| text += &format!("{name}: {value}\r\n"));
        text += "\r\n";
        self.raw(&[text.as_bytes(), body].concat())
    }

    fn get(&self, below: &str) -> (u16, String) {
        self.request("GET", &format!("/{}/{below}", self.token), &[], b"")
    }

    fn upload(&self, name: &str, body: &[u8]) -> (u16, String) {
        self.request("POST", &format!("/{}/api/upload?name={name}", self.token), &[], body)
    }

    /// The beginning of an upload whose body is yet to come; `headers` say how long it is.
    fn upload_head(&self, name: &str, headers: &str) -> String {
        format!(
            "POST /{}/api/upload?name={name} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\n{headers}\r\n\r\n",
            self.token, self.port
        )
    }

    /// What lies among the uploads.
    fn uploaded(&self) -> Vec<String> {
        let folder = self.project.path().join("project/studio/uploads");
        let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// Waits until nothing else lies there: what broke off is cleared away soon.
    fn wait_for_uploads(&self, wanted: &[&str]) {
        let end = Instant::now() + Duration::from_secs(10);
        while self.uploaded() != wanted && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(self.uploaded(), wanted, "nothing stays of an upload that broke off");
    }

    async fn socket(&self) -> Socket {
        let address = format!("ws://127.0.0.1:{}/{}/api/socket", self.port, self.token);
        tokio_tungstenite::connect_async(address).await.expect("a seat").0
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the server ends cleanly");
        }
    }
}

type Socket = tokio_tungstenite::WebSocketStream<tokio_tungstenite::MaybeTlsStream<tokio::net::TcpStream>>;

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(future)
}

/// Waits for the answer to a command.
async fn command(socket: &mut Socket, id: u64, command: Value) -> Value {
    let mut message = command;
    message["id"] = json!(id);
    socket.send(Message::text(message.to_string())).await.expect("it is open");
    loop {
        let message = socket.next().await.expect("it is open").expect("a message");
        let Message::Text(text) = message else { continue };
        let value: Value = serde_json::from_str(text.as_str()).expect("JSON");
        if value["id"] == json!(id) {
            return value;
        }
    }
}

fn pose(number: u32, views: u32, controls: &[f32]) -> Message {
    let words = [1, number, views].into_iter().flat_map(u32::to_le_bytes);
    let bytes: Vec<u8> = words.chain(controls.iter().flat_map(|value| value.to_le_bytes())).collect();
    Message::binary(bytes)
}

async fn binary(socket: &mut Socket) -> Vec<u8> {
    loop {
        if let Message::Binary(bytes) = socket.next().await.expect("it is open").expect("a message") {
            return bytes.to_vec();
        }
    }
}

fn word(bytes: &[u8], index: usize) -> u32 {
    u32::from_le_bytes([bytes[index * 4], bytes[index * 4 + 1], bytes[index * 4 + 2], bytes[index * 4 + 3]])
}

fn controls_of(name: &str) -> Vec<f32> {
    let rig = understudy_jobs::rigs::open(name, &understudy_jobs::Silent).expect("it is embedded").rig;
    rig.specs().defaults().0
}

#[test]
fn strangers_are_refused() {
    let studio = Running::start();
    let own = format!("/{}/api/project", studio.token);
    assert_eq!(studio.get("api/project").0, 200);
    let port = studio.port;
    let same = format!("http://127.0.0.1:{port}");
    assert_eq!(studio.request("GET", &own, &[("Origin", &same)], b"").0, 200);
    // Another page, another name for this machine, no token, a wrong one, part of it.
    for (headers, path) in [
        (vec![("Origin", "http://evil.example")], own.as_str()),
        (vec![("Origin", "null")], &own),
        (vec![("Host", "evil.example")], &own),
        (vec![("Host", "")], &own),
        (vec![], "/"),
        (vec![], "/api/project"),
        (vec![], "/0123456789abcdef0123456789abcdef/api/project"),
        (vec![], &format!("/{}/api/project", &studio.token[..16])),
    ] {
        let (status, text) = studio.request("GET", path, &headers, b"");
        assert_eq!(status, 403, "{path} {headers:?}: {text}");
        assert!(!text.contains(&studio.token), "the token is told to nobody");
    }
    // A foreign page must not open a WebSocket either: browsers let it try.
    let upgrade = [
        ("Origin", "http://evil.example"),
        ("Connection", "Upgrade"),
        ("Upgrade", "websocket"),
        ("Sec-WebSocket-Version", "13"),
        ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ];
    assert_eq!(studio.request("GET", &format!("/{}/api/socket", studio.token), &upgrade, b"").0, 403);
}

#[test]
fn no_path_leads_out_of_the_project() {
    let studio = Running::start();
    let inside = studio.project.path().join("project");
    std::fs::write(inside.join("page.html"), "<p>hello").expect("writable");
    let (status, text) = studio.get("project/page.html");
    assert!(status == 200 && text.contains("hello") && text.contains("sandbox"), "{text}");
    let absolute = studio.project.path().join("secret.csv").display().to_string();
    for path in [
        "project/../secret.csv",
        "project/..%2fsecret.csv",
        "project/%2e%2e/secret.csv",
        "project/%2fetc%2fpasswd",
        "project//etc/passwd",
        "../../../etc/passwd",
        "assets/..%2f..%2f..%2fCargo.toml",
        &format!("project/{}", absolute.replace('/', "%2f")),
        &format!("api/twin?path={absolute}"),
        "api/twin?path=../secret.csv",
        &format!("api/rig?name={absolute}"),
        "api/rig?name=cmd:cat%20/etc/passwd",
        &format!("api/clip?rig=mira&name={absolute}"),
        "api/clip?rig=mira&name=../secret.csv",
    ] {
        let (status, text) = studio.get(path);
        assert!((400..500).contains(&status), "{path}: {status}");
        assert!(!text.contains("secret\n") && !text.contains("root:"), "{path}: {text}");
    }
}

#[test]
fn uploads_are_bounded_and_named_by_us() {
    let studio = Running::start_with(UploadLimits { file: 1000, run: 4000 });
    let (status, text) = studio.upload("..%2f..%2ftake.csv", b"Timecode,x\n");
    assert_eq!(status, 200, "{text}");
    assert!(text.contains("studio/uploads/take.csv"), "{text}");
    assert_eq!(studio.upload("run.sh", b"rm").0, 400);
    assert_eq!(studio.upload("empty.csv", b"").0, 400);
    // A body that ends before its length, under a name of its own: it may hold it for a moment yet.
    let mut stream = TcpStream::connect(("127.0.0.1", studio.port)).expect("it listens");
    let head = studio.upload_head("broken.csv", "Content-Length: 1000");
    stream.write_all(format!("{head}abc").as_bytes()).expect("it reads");
    drop(stream);
    // One that claims more than a file may have is refused before it is sent, one that has it when it comes.
    let (status, text) = studio.raw(studio.upload_head("x.csv", "Content-Length: 1001").as_bytes());
    assert!(status == 413 && text.contains("1000 bytes"), "{status} {text}");
    let chunks = |count: usize| {
        let head = studio.upload_head("x.csv", "Transfer-Encoding: chunked");
        format!("{head}{}0\r\n\r\n", format!("100\r\n{}\r\n", "x".repeat(256)).repeat(count))
    };
    assert_eq!(studio.raw(chunks(3).as_bytes()).0, 200);
    assert_eq!(studio.raw(chunks(4).as_bytes()).0, 413);
    studio.wait_for_uploads(&["take.csv", "x.csv"]);
    // All of them together.
    let full = vec![b'x'; 1000];
    let statuses: Vec<u16> = (0..4).map(|_| studio.upload("full.csv", &full).0).collect();
    assert!(statuses[0] == 200 && statuses[3] == 413, "{statuses:?}");
    assert!(studio.upload("more.csv", &full).1.contains("this run has taken"));
    // What is no upload has a limit of its own.
    let path = format!("/{}/api/jobs", studio.token);
    let large = vec![b' '; 5 << 20];
    assert_eq!(studio.request("POST", &path, &[("Content-Type", "application/json")], &large).0, 413);
    assert_eq!(studio.get("api/project").0, 200);
}

#[test]
fn uploads_at_one_time_do_not_touch_each_other() {
    const TABS: usize = 8;
    let studio = Running::start();
    // All begin before one ends, half of them never do.
    let mut streams: Vec<TcpStream> = (0..TABS)
        .map(|_| {
            let mut stream = TcpStream::connect(("127.0.0.1", studio.port)).expect("it listens");
            let head = studio.upload_head("x.csv", "Content-Length: 8");
            stream.write_all(format!("{head}1234").as_bytes()).expect("it reads");
            stream
        })
        .collect();
    let end = Instant::now() + Duration::from_secs(10);
    while studio.uploaded().len() < TABS && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(20));
    }
    drop(streams.split_off(TABS / 2));
    let mut paths: Vec<String> = streams
        .into_iter()
        .map(|mut stream| {
            stream.write_all(b"5678").expect("it reads");
            let mut answer = String::new();
            stream.read_to_string(&mut answer).expect("an answer");
            let body = answer.split("\r\n\r\n").nth(1).expect("a body");
            let told: Value = serde_json::from_str(body).unwrap_or_else(|_| panic!("{answer}"));
            told["path"].as_str().expect("a name").to_owned()
        })
        .collect();
    paths.sort();
    paths.dedup();
    assert_eq!(paths.len(), TABS / 2, "each has a file of its own");
    for path in &paths {
        let file = studio.project.path().join("project").join(path);
        assert_eq!(std::fs::read(file).expect("it is there"), b"12345678");
    }
    let names: Vec<&str> = paths.iter().filter_map(|path| path.rsplit('/').next()).collect();
    studio.wait_for_uploads(&names);
}

/// Files of every kind that is read, small and sound.
fn sound_files() -> Vec<(&'static str, Vec<u8>)> {
    let obj = "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n";
    let mesh = understudy_io::obj::parse(obj.as_bytes()).expect("a triangle").mesh;
    let glb = understudy_io::gltf::to_glb_bytes(&understudy_io::gltf::GltfScene::new("triangle", &mesh));
    let mut npz = understudy_io::npz::NpzWriter::new();
    npz.f32("neutral", &[3, 3], &[0., 0., 0., 1., 0., 0., 0., 1., 0.]).i32("faces", &[1, 3], &[0, 1, 2]);
    npz.strings("names", &["up"]).f32("deltas", &[1, 3, 3], &[1.0; 9]);
    let bvh = "HIERARCHY\nROOT hip\n{\nOFFSET 0 0 0\nCHANNELS 3 Zrotation Xrotation Yrotation\nEnd Site\n{\n\
               OFFSET 0 170 0\n}\n}\nMOTION\nFrames: 2\nFrame Time: 0.04\n0 0 0\n1 2 3\n";
    let take = "Timecode,BlendShapeCount,JawOpen\n00:00:01:00,1,0.5\n00:00:01:01,1,0.7\n";
    let header = r#"{"__metadata__":{"method":"skin","header":"{\"topology_hash\":1}"}}"#;
    let twin = [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &[0; 64]].concat();
    vec![
        ("obj", obj.into()),
        ("glb", glb.expect("a scene")),
        ("npz", npz.finish().expect("sound arrays")),
        ("bvh", bvh.into()),
        ("csv", take.into()),
        ("twin", twin),
        ("motion", small_motion()),
    ]
}

#[test]
fn malformed_and_truncated_uploads_do_not_end_it() {
    const FILES: u64 = 280;
    let studio = Running::start();
    let mut random = understudy_core::Random::stream(11, 0);
    let sound = sound_files();
    let mut answered = [0usize; 2];
    for index in 0..FILES {
        let (ending, bytes) = &sound[index as usize % sound.len()];
        let mut bytes = bytes.clone();
        match index % 3 {
            0 => bytes.truncate(1 + random.below(bytes.len())),
            1 => (0..1 + random.below(8)).for_each(|_| {
                let place = random.below(bytes.len());
                bytes[place] = random.below(256) as u8;
            }),
            _ => bytes = (0..1 + random.below(200)).map(|_| random.below(256) as u8).collect(),
        }
        let (status, text) = studio.upload(&format!("noise{index}.{ending}"), &bytes);
        assert_eq!(status, 200, "{text}");
        let name = format!("studio/uploads/noise{index}.{ending}");
        let read = match *ending {
            "twin" => format!("api/twin?path={name}"),
            "csv" | "bvh" => format!("api/clip?rig=mira&name={name}"),
            _ => format!("api/rig?name={name}"),
        };
        let (status, text) = studio.get(&read);
        assert!(status == 200 || (400..500).contains(&status), "{name}: {status} {text}");
        answered[usize::from(status == 200)] += 1;
        // The list looks into files, too.
        if index % 100 == 0 {
            assert_eq!(studio.get("api/project").0, 200);
        }
        // A body that ends early.
        if index % 10 == 0 {
            let head = studio.upload_head("x.csv", &format!("Content-Length: {}", bytes.len() + 1));
            let mut stream = TcpStream::connect(("127.0.0.1", studio.port)).expect("it listens");
            stream.write_all(&[head.as_bytes(), &bytes].concat()).expect("it reads");
        }
    }
    assert!(answered.iter().all(|count| *count > FILES as usize / 20), "both kinds of answers: {answered:?}");
    assert_eq!(studio.get("api/rig?name=mira").0, 200);
    let end = Instant::now() + Duration::from_secs(10);
    while studio.uploaded().len() > FILES as usize && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(studio.uploaded().len(), FILES as usize, "nothing stays of uploads that broke off");
}

/// Commands of every tab and their parts.
const COMMANDS: [(&str, &[&str]); 19] = [
    ("open", &["rig", "twin"]),
    ("pose_handles", &["rig"]),
    ("pose_reach", &["controls", "reach", "lock"]),
    ("pose_points", &["start", "controls", "free", "move", "pinned", "loose"]),
    ("invert_open", &["rig", "targets", "clip"]),
    ("invert_frame", &["frame", "alpha"]),
    ("invert_take", &["alpha", "smooth"]),
    ("invert_close", &[]),
    ("weights_open", &["rig", "file"]),
    ("weights_free", &["free"]),
    ("motion_open", &["file"]),
    ("motion_cloud", &["label"]),
    ("motion_command", &["command"]),
    ("motion_script", &["text"]),
    ("motion_check", &["text"]),
    ("motion_game", &["game"]),
    ("motion_take", &["square"]),
    ("motion_linger", &[]),
    ("motion_end", &[]),
];

/// A command with the right name and parts of any kind.
fn random_command(random: &mut understudy_core::Random) -> Value {
    let (name, parts) = COMMANDS[random.below(COMMANDS.len())];
    let mut command = json!({ "do": name });
    for part in parts {
        command[*part] = match random.below(10) {
            0 => json!(null),
            1 => json!(-1),
            2 => json!(1e300),
            3 => json!(u64::MAX),
            4 => json!("../secret.csv"),
            5 => json!("é\u{0}{}[]\n"),
            6 => json!([1, "x", null]),
            7 => json!({ "hand_L": [1e30, null, "x"] }),
            8 => json!([f32::MAX, -0.5, 3]),
            _ => continue,
        };
    }
    command
}

#[test]
fn a_hundred_thousand_malformed_messages_do_not_end_it() {
    const MESSAGES: usize = 100_000;
    let studio = Running::start();
    block_on(async {
        let mut socket = studio.socket().await;
        let opened = command(&mut socket, 1, json!({ "do": "open", "rig": "mira", "twin": null })).await;
        assert!(opened["ok"].is_object(), "{opened}");
        let mut random = understudy_core::Random::stream(7, 0);
        let (mut sink, mut stream) = socket.split();
        // Whoever only talks must be able to: answers are read beside it.
        let heard = tokio::spawn(async move {
            let mut answers = 0usize;
            while let Some(Ok(message)) = stream.next().await {
                let Message::Text(text) = message else { continue };
                let value: Value = serde_json::from_str(text.as_str()).expect("answers are JSON");
                if value["id"] == json!(999_999_999) {
                    break;
                }
                assert!(value["ok"].is_null(), "noise was taken for a command: {value}");
                assert!(!text.contains("this is a bug"), "noise made a command break off: {value}");
                answers += 1;
            }
            answers
        });
        for index in 0..MESSAGES {
            let length = random.below(60);
            let noise: Vec<u8> = (0..length).map(|_| random.below(256) as u8).collect();
            let message = match index % 8 {
                0 => Message::binary(noise),
                // The right beginning, then noise: poses of any length, kind and view.
                1 => Message::binary([&1u32.to_le_bytes()[..], &noise].concat()),
                2 => Message::binary([&2u32.to_le_bytes()[..], &noise].concat()),
                3 => Message::text(String::from_utf8_lossy(&noise).into_owned()),
                4 => Message::binary([&3u32.to_le_bytes()[..], &noise].concat()),
                5 => Message::binary([&4u32.to_le_bytes()[..], &noise].concat()),
                6 => {
                    let mut command = random_command(&mut random);
                    command["id"] = json!(index);
                    Message::text(command.to_string())
                }
                _ => {
                    Message::text(json!({ "id": index, "do": "open", "rig": index, "x": noise }).to_string())
                }
            };
            sink.feed(message).await.expect("it still listens");
        }
        let last = json!({ "id": 999_999_999, "do": "open", "rig": "mira", "twin": null });
        sink.send(Message::text(last.to_string())).await.expect("it still listens");
        let answers = heard.await.expect("no answer was wrong");
        // Poses are answered for the newest alone; everything else is answered one by one.
        assert!(answers > MESSAGES / 2, "{answers}");
    });
    // A message beyond the limit ends its own tab, and nothing else.
    block_on(async {
        let mut socket = studio.socket().await;
        let _ = socket.send(Message::binary(vec![1u8; 4 << 20])).await;
        while let Some(Ok(message)) = socket.next().await {
            assert!(!matches!(message, Message::Binary(_)), "an oversized message was answered");
        }
        let mut other = studio.socket().await;
        assert!(
            command(&mut other, 1, json!({ "do": "open", "rig": "mira", "twin": null })).await["ok"]
                .is_object()
        );
    });
    // WebSocket frames that are cut, not masked, of kinds that do not exist, or longer than they say.
    let upgrade = format!(
        "GET /{}/api/socket HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        studio.token, studio.port
    );
    let mut random = understudy_core::Random::stream(8, 0);
    let cut: [&[u8]; 7] = [
        b"\x82",
        b"\x82\xfe\x01",
        b"\x82\x8c\x01\x02\x03\x04half",
        b"\x82\x04 bare",
        b"\xf3\x80\x00\x00\x00\x00",
        b"\x82\xff\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\x81\x82\x00\x00\x00\x00\xff\xfe",
    ];
    for index in 0..400 {
        let noise: Vec<u8> = (0..random.below(40)).map(|_| random.below(256) as u8).collect();
        let frame = cut.get(index % 8).copied().unwrap_or(&noise);
        let mut stream = TcpStream::connect(("127.0.0.1", studio.port)).expect("it listens");
        stream.write_all(upgrade.as_bytes()).expect("it reads");
        let mut answer = [0u8; 12];
        stream.read_exact(&mut answer).expect("an answer");
        assert_eq!(&answer, b"HTTP/1.1 101", "a seat is free again");
        let _ = stream.write_all(frame);
    }
    // Bytes that are no HTTP, and lines without an end.
    for noise in [&b"\x00\x01\x02"[..], b"GET / HTTP/9.9\r\n\r\n", &[b'A'; 70_000], b"POST"] {
        let _ = TcpStream::connect(("127.0.0.1", studio.port)).and_then(|mut stream| stream.write_all(noise));
    }
    assert_eq!(studio.get("api/project").0, 200);
}

#[test]
fn noise_about_what_is_open_is_answered() {
    let studio = Running::start();
    let inside = studio.project.path().join("project");
    std::fs::write(inside.join("small.motion"), small_motion()).expect("writable");
    let rig = understudy_jobs::rigs::open("mira", &understudy_jobs::Silent).expect("it is embedded").rig;
    understudy_io::obj::write(&inside.join("scan.obj"), rig.mesh()).expect("writable");
    let shapes = rig.blendshapes().expect("a face").shapes().len();
    block_on(async {
        let mut socket = studio.socket().await;
        for (id, open) in [
            (1, json!({ "do": "motion_open", "file": "small.motion" })),
            (2, json!({ "do": "invert_open", "rig": "mira", "targets": ["scan.obj"] })),
            (3, json!({ "do": "open", "rig": "mira", "twin": null })),
        ] {
            let opened = command(&mut socket, id, open).await;
            assert!(opened["ok"].is_object(), "{opened}");
        }
        let mut random = understudy_core::Random::stream(9, 0);
        for index in 0..120u32 {
            let kind = 1 + index % 4;
            let count = match kind {
                2 => shapes,
                _ => random.below(80),
            };
            // Any bits: NaN, infinities and numbers without end among them.
            let mut words = vec![kind, index, random.below(9) as u32];
            words.extend((0..count).map(|_| random.next_u64() as u32));
            let bytes: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
            socket.send(Message::binary(bytes)).await.expect("it is open");
            // Whatever it was, the client is still served.
            let wrong = random_command(&mut random);
            if wrong["do"] != "invert_close" {
                let answer = command(&mut socket, u64::from(index) + 10, wrong.clone()).await;
                assert!(!answer["error"].to_string().contains("a bug"), "{wrong}: {answer}");
            }
        }
        let mira = controls_of("mira");
        socket.send(pose(7777, 1, &mira)).await.expect("it is open");
        loop {
            let bytes = binary(&mut socket).await;
            if (word(&bytes, 0), word(&bytes, 1)) == (1, 7777) {
                break;
            }
        }
    });
}

#[test]
fn tabs_do_not_disturb_each_other_and_free_what_they_held() {
    let studio = Running::start();
    let (mira, rook) = (controls_of("mira"), controls_of("rook"));
    block_on(async {
        let (mut first, mut second) = (studio.socket().await, studio.socket().await);
        assert!(
            command(&mut first, 1, json!({ "do": "open", "rig": "mira", "twin": null })).await["ok"]
                .is_object()
        );
        assert!(
            command(&mut second, 1, json!({ "do": "open", "rig": "rook", "twin": null })).await["ok"]
                .is_object()
        );
        for number in 0..20 {
            first.send(pose(number, 1, &mira)).await.expect("open");
            second.send(pose(100 + number, 1, &rook)).await.expect("open");
            let (a, b) = (binary(&mut first).await, binary(&mut second).await);
            assert_eq!((word(&a, 1), word(&b, 1)), (number, 100 + number));
            assert_ne!(word(&a, 3), word(&b, 3), "each has its own character");
        }
        // One asks for a pose that makes no sense; the other does not notice.
        first.send(pose(50, 1, &rook)).await.expect("open");
        second.send(pose(150, 1, &rook)).await.expect("open");
        assert_eq!(word(&binary(&mut second).await, 1), 150);
        drop(first);
        second.send(pose(151, 1, &rook)).await.expect("open");
        assert_eq!(word(&binary(&mut second).await, 1), 151);
    });
    // Tabs that were killed leave their seats: many more than there are come one after another.
    block_on(async {
        for _ in 0..150 {
            let mut socket = studio.socket().await;
            socket.send(pose(0, 1, &mira)).await.expect("open");
            drop(socket);
        }
        let mut seats = Vec::new();
        for _ in 0..60 {
            seats.push(studio.socket().await);
        }
    });
}

#[test]
fn handles_are_dragged_from_the_pose_that_a_page_sends() {
    let studio = Running::start();
    let rook = controls_of("rook");
    block_on(async {
        let mut socket = studio.socket().await;
        let reach = |id: u64, controls: &[f32], reach: Value, lock: Value| {
            (id, json!({ "do": "pose_reach", "controls": controls, "reach": reach, "lock": lock }))
        };
        let (id, ask) = reach(1, &rook, json!({ "hand_L": [45.0, 120.0, 35.0] }), json!([]));
        let early = command(&mut socket, id, ask).await;
        assert!(early["error"].as_str().is_some_and(|e| e.contains("no rig with handles")), "{early}");
        let open = json!({ "do": "pose_handles", "rig": "rook" });
        let handles = command(&mut socket, 2, open).await;
        assert_eq!(handles["ok"]["handles"].as_array().map(Vec::len), Some(5), "{handles}");
        let (id, ask) = reach(3, &rook, json!({ "torso": [0.0, 86.0, 1.0] }), json!(["foot_L", "foot_R"]));
        let done = command(&mut socket, id, ask).await;
        let reached = done["ok"]["reached"].as_array().expect("three handles");
        assert_eq!(reached.len(), 3, "{done}");
        assert!(reached.iter().all(|r| r["distance_mm"].as_f64().is_some_and(|mm| mm < 0.2)), "{done}");
        assert_eq!(done["ok"]["controls"].as_array().map(Vec::len), Some(rook.len()));
        for (wrong, part) in [
            (reach(4, &rook[1..], json!({ "hand_L": [0, 0, 0] }), json!([])).1, "controls"),
            (reach(4, &rook, json!({ "hand_X": [0, 0, 0] }), json!([])).1, "hand_X"),
            (reach(4, &rook, json!({ "hand_L": [null, 0, 0] }), json!([])).1, "not known"),
            (reach(4, &rook, json!({ "hand_L": [1e12, 0, 0] }), json!([])).1, "farther"),
            (reach(4, &rook, json!({}), json!(["tail"])).1, "tail"),
            (json!({ "do": "pose_juggle" }), "not known"),
            (json!({ "do": "pose_handles", "rig": "../x.glb" }), ""),
        ] {
            let refused = command(&mut socket, 4, wrong.clone()).await;
            assert!(refused["error"].as_str().is_some_and(|e| e.contains(part)), "{wrong}: {refused}");
        }
        // Another tab has a rig of its own, or none.
        let mut other = studio.socket().await;
        let (id, ask) = reach(5, &rook, json!({ "hand_L": [45.0, 120.0, 35.0] }), json!([]));
        assert!(command(&mut other, id, ask).await["error"].is_string());
    });
}

/// A face of the project, posed without the studio.
struct Face {
    rig: Box<dyn understudy_rigs::Rig>,
    start: Vec<f32>,
}

impl Face {
    fn mira() -> Self {
        let rig = understudy_jobs::rigs::open("mira", &understudy_jobs::Silent).expect("a rig").rig;
        let start = rig.specs().defaults().0;
        Self { rig, start }
    }

    fn vertices(&self, controls: &[f32]) -> Vec<Vec3> {
        let mut pose = understudy_rigs::RigPose::default();
        let controls = understudy_core::Controls(controls.to_vec());
        self.rig.evaluate(&controls, &mut pose).expect("a pose");
        pose.vertices
    }

    fn control(&self, name: &str) -> usize {
        self.rig.specs().find(name).expect("she has it")
    }

    /// The vertex that a control moves most.
    fn moved_by(&self, name: &str) -> usize {
        let mut controls = self.start.clone();
        let control = self.control(name);
        controls[control] = self.rig.specs().get(control).high;
        let (rest, moved) = (self.vertices(&self.start), self.vertices(&controls));
        let far = |vertex: &usize| rest[*vertex].distance(moved[*vertex]);
        (0..rest.len()).max_by(|a, b| far(a).total_cmp(&far(b))).expect("vertices")
    }

    /// The controls of mouth and jaw.
    fn mouth(&self) -> Vec<usize> {
        let of_mouth = |name: &str| name.starts_with("mouth") || name.starts_with("jaw");
        let named = self.rig.specs().iter().enumerate().filter(|(_, spec)| of_mouth(&spec.name));
        named.map(|(place, _)| place).collect()
    }
}

#[test]
fn points_of_the_rig_come_under_the_cursor_and_pins_hold() {
    let studio = Running::start();
    let face = Face::mira();
    let (corner, chin) = (face.moved_by("mouthSmile_L"), face.moved_by("jawOpen"));
    let rest = face.vertices(&face.start);
    // What a crude twin could have said: the corner somewhere else.
    let mut crude = face.start.clone();
    crude[face.control("mouthFrown_L")] = 0.6;
    let ask = |controls: &[f32], by: [f32; 3]| {
        let place = (rest[corner] + Vec3::from_array(by)).to_array();
        json!({
            "do": "pose_points", "start": face.start, "controls": controls, "free": face.mouth(),
            "move": [{ "vertex": corner, "place": place, "sight": [0.0, 0.0, -1.0] }], "pinned": [chin],
        })
    };
    let controls_of = |answer: &Value| -> Vec<f32> {
        let controls = answer["ok"]["controls"].as_array().unwrap_or_else(|| panic!("{answer}"));
        controls.iter().map(|value| value.as_f64().expect("a number") as f32).collect()
    };
    block_on(async {
        let mut socket = studio.socket().await;
        let early = command(&mut socket, 1, ask(&face.start, [0.0; 3])).await;
        assert!(early["error"].as_str().is_some_and(|e| e.contains("no rig")), "{early}");
        command(&mut socket, 2, json!({ "do": "pose_handles", "rig": "mira" })).await;
        let answer = command(&mut socket, 3, ask(&crude, [0.5, 0.4, 0.0])).await;
        let controls = controls_of(&answer);
        let there = face.vertices(&controls);
        let off = 10.0 * (there[corner] - rest[corner] - Vec3::new(0.5, 0.4, 0.0)).truncate().length();
        let told = answer["ok"]["off_mm"][0].as_f64().expect("how far it is off") as f32;
        assert!(off < 0.5 && (told - off).abs() < 1e-3, "{off} mm, told {told}");
        let pinned = 10.0 * there[chin].distance(rest[chin]);
        assert!(pinned < 0.5, "the pinned chin moves by {pinned} mm");
        let specs = face.rig.specs();
        assert!(specs.check_range(&understudy_core::Controls(controls.clone())).is_ok());
        let mouth = face.mouth();
        let others = (0..controls.len()).filter(|control| !mouth.contains(control));
        assert!(others.into_iter().all(|control| controls[control] == crude[control]));
        // Back where the drag began: the first pose, to the bit.
        let back = command(&mut socket, 4, ask(&face.start, [0.0; 3])).await;
        assert_eq!(controls_of(&back), face.start);
        // What is out of reach leaves every control in its range, and says so.
        let away = command(&mut socket, 5, ask(&face.start, [30.0, 0.0, 0.0])).await;
        assert!(away["ok"]["off_mm"][0].as_f64().is_some_and(|mm| mm > 100.0), "{away}");
        assert!(specs.check_range(&understudy_core::Controls(controls_of(&away))).is_ok());
        for (part, value, said) in [
            ("free", json!([5000]), "no control 5000"),
            ("pinned", json!([99_999_999]), "no vertex 99999999"),
            ("controls", json!(&face.start[1..]), "controls"),
            ("start", json!([0.5]), "controls"),
            ("move", json!([{ "vertex": corner, "place": [1e39, 0, 0], "sight": [0, 0, 0] }]), "nothing is"),
            ("move", json!([{ "vertex": -1, "place": [0, 0, 0], "sight": [0, 0, 0] }]), "not known"),
        ] {
            let mut wrong = ask(&face.start, [0.1, 0.0, 0.0]);
            wrong[part] = value;
            let refused = command(&mut socket, 6, wrong).await;
            assert!(refused["error"].as_str().is_some_and(|e| e.contains(said)), "{part}: {refused}");
        }
    });
}

#[test]
fn a_take_gives_the_weights_of_its_clip_and_of_the_command() {
    let studio = Running::start();
    let rig = understudy_jobs::rigs::open("mira", &understudy_jobs::Silent).expect("it is embedded").rig;
    let shapes = rig.blendshapes().expect("a face");
    let mut vertices = vec![Vec3::ZERO; shapes.neutral().len()];
    let wanted: Vec<f32> =
        (0..shapes.shapes().len()).map(|shape| if shape % 17 == 3 { 0.6 } else { 0.0 }).collect();
    shapes.evaluate(&wanted, &mut vertices);
    let inside = studio.project.path().join("project");
    let mesh = rig.mesh().with_positions(&vertices).expect("as many");
    let scan = inside.join("scan.obj");
    understudy_io::obj::write(&scan, &mesh).expect("writable");
    let config = understudy_jobs::invert::InvertConfig {
        rig: "mira".into(),
        targets: vec![scan],
        output: inside.join("weights.csv"),
        ..Default::default()
    };
    let report = understudy_jobs::invert::invert(&config, &understudy_jobs::Silent).expect("it inverts");
    block_on(async {
        let mut socket = studio.socket().await;
        let open = json!({ "do": "invert_open", "rig": "mira", "targets": ["scan.obj"] });
        let facts = command(&mut socket, 1, open).await;
        assert_eq!(facts["ok"]["frames"], json!(1), "{facts}");
        let take = command(&mut socket, 2, json!({ "do": "invert_take" })).await;
        let rmse = take["ok"]["rmse_mm"].as_f64().expect("a number");
        assert!((rmse - report.metrics.rmse_cm * 10.0).abs() < 1e-9, "{rmse}");
        let written = std::fs::read_to_string(&report.file).expect("it was written");
        let row: Vec<f64> =
            written.lines().nth(1).expect("a frame").split(',').filter_map(|w| w.parse().ok()).collect();
        let weights = take["ok"]["weights"][0].as_array().expect("weights");
        assert_eq!(row.len(), weights.len());
        for (own, told) in weights.iter().zip(&row) {
            assert!((own.as_f64().expect("a number") - told).abs() < 1e-6, "{own} {told}");
        }
        // A higher price: fewer weights.
        let dear = command(&mut socket, 3, json!({ "do": "invert_take", "alpha": 0.3 })).await;
        assert!(dear["ok"]["active"].as_f64() < take["ok"]["active"].as_f64());
        assert!(
            command(&mut socket, 4, json!({ "do": "invert_frame", "frame": 9 })).await["error"].is_string()
        );
        assert!(command(&mut socket, 5, json!({ "do": "invert_close" })).await["error"].is_null());
        assert!(command(&mut socket, 6, json!({ "do": "invert_take" })).await["error"].is_string());
    });
}

#[test]
fn it_ends_soon_with_tabs_open_and_jobs_running() {
    let studio = Running::start();
    let order = json!({ "job": "sample", "rig": "mira", "poses": 900_000 }).to_string();
    let path = format!("/{}/api/jobs", studio.token);
    let json = [("Content-Type", "application/json")];
    assert_eq!(studio.request("POST", &path, &json, order.as_bytes()).0, 200);
    let socket = block_on(async {
        let mut socket = studio.socket().await;
        assert!(
            command(&mut socket, 1, json!({ "do": "open", "rig": "mira", "twin": null })).await["ok"]
                .is_object()
        );
        socket
    });
    let start = Instant::now();
    drop(studio);
    assert!(start.elapsed() < Duration::from_secs(15), "{:?}", start.elapsed());
    drop(socket);
}

/// Mira's jaw as one label, the turn of her head as another.
fn small_motion() -> Vec<u8> {
    use understudy_runtime::motion::{
        BasisParts, Bridge, ClipFrames, Covariance, LatentPoint, ModelParts, Motion, SpaceParts,
    };
    let rig = understudy_jobs::rigs::open("mira", &understudy_jobs::Silent).expect("embedded").rig;
    let specs = rig.specs();
    let model = |label: &str, control: &str, size: f32| ModelParts {
        label: label.into(),
        basis: BasisParts {
            rest: specs.defaults().0,
            moving: vec![specs.find(control).expect("Mira has it") as u32],
            scale: vec![1.0],
            components: vec![1.0],
        },
        space: SpaceParts {
            dimensions: 1,
            points: (0..9).map(|frame| frame as f32 * 0.25 - 1.0).collect(),
            centres: None,
            covariance: Covariance { variance: 1.0, length_squared: 0.1, white: 0.01 },
            unit: 1.0,
            weights: (0..9).map(|frame| size * (4.0 - (frame as f32 - 4.0).abs())).collect(),
            certainty: vec![0.3; 9],
            edges: (0..8).map(|frame| [frame, frame + 1]).collect(),
        },
        clips: vec![ClipFrames { name: format!("{label}_1"), first: 0, frames: 9, strongest: 4 }],
        pace: 0.25,
        radius: 0.05,
        likely: -1.0,
        softness: 1.0,
    };
    let end = LatentPoint::new(&[-1.0]);
    let bridge = Bridge { from: 0, to: 1, from_point: end, to_point: end, millimetres: 0.1 };
    let models = vec![model("jaw", "jawOpen", 0.05), model("turn", "headYaw", 2.0)];
    let motion = Motion::new("mira".into(), 24.0, specs.clone(), models, vec![bridge]).expect("sound");
    motion.to_bytes().expect("bytes")
}

/// Asks for a frame of the Motion tab, so many steps further.
async fn motion_frame(socket: &mut Socket, number: u32, steps: u32) -> Vec<u8> {
    let words = [4, number, steps].into_iter().flat_map(u32::to_le_bytes).collect::<Vec<u8>>();
    socket.send(Message::binary(words)).await.expect("it is open");
    let bytes = binary(socket).await;
    assert_eq!((word(&bytes, 0), word(&bytes, 1)), (4, number));
    let (corners, vertices) = (word(&bytes, 7) as usize, word(&bytes, 8) as usize);
    assert_eq!(bytes.len(), 4 * (9 + 9 + 3 * corners + 3 * vertices));
    bytes
}

#[test]
fn motion_is_played_on_command_and_mistakes_are_told() {
    let studio = Running::start();
    std::fs::write(studio.project.path().join("project/small.motion"), small_motion()).expect("writable");
    assert!(studio.get("api/project").1.contains("small.motion"));
    block_on(async {
        let mut socket = studio.socket().await;
        let refused = command(&mut socket, 1, json!({ "do": "motion_open", "file": "../secret.csv" })).await;
        assert!(refused["error"].is_string(), "{refused}");
        let refused = command(&mut socket, 2, json!({ "do": "motion_linger" })).await;
        assert!(refused["error"].as_str().expect("an error").contains("no file of motion is open"));
        let facts = command(&mut socket, 3, json!({ "do": "motion_open", "file": "small.motion" })).await;
        let label = &facts["ok"]["labels"][1];
        assert_eq!((&label["label"], &label["clips"][0]["frames"]), (&json!("turn"), &json!(9)), "{facts}");
        assert_eq!(label["points"].as_array().expect("points").len(), 27);

        let text = "transition turn; play turn_1\nmove turn_9";
        let wrong = command(&mut socket, 4, json!({ "do": "motion_script", "text": text })).await;
        assert_eq!(wrong["ok"]["line"], 2, "{wrong}");
        let text = "transition turn; move turn_1 in 0.5s; idle 1s";
        assert_eq!(
            command(&mut socket, 5, json!({ "do": "motion_check", "text": text })).await["ok"],
            json!({})
        );
        // What was only looked at is not played.
        let still = motion_frame(&mut socket, 1, 1).await;
        assert_eq!((word(&still, 2), word(&still, 6) & 1), (0, 0));
        assert_eq!(
            command(&mut socket, 6, json!({ "do": "motion_script", "text": text })).await["ok"],
            json!({})
        );
        assert_eq!(word(&motion_frame(&mut socket, 2, 1).await, 6) & 1, 1, "she is busy");
        let turned = motion_frame(&mut socket, 3, 40).await;
        assert_eq!(word(&turned, 2), 1, "she is in the other label");
        assert_ne!(still[still.len() - 12..], turned[turned.len() - 12..]);
        let cloud = command(&mut socket, 7, json!({ "do": "motion_cloud", "label": "turn" })).await;
        let (points, sure) = (&cloud["ok"]["points"], &cloud["ok"]["sure"]);
        let count = sure.as_array().expect("numbers").len();
        assert!(count > 3 && points.as_array().expect("numbers").len() == 3 * count, "{cloud}");
        let act = json!({ "do": "motion_command", "command": { "command": "play", "clip": "jaw_9" } });
        let refused = command(&mut socket, 8, act).await;
        assert!(refused["error"].as_str().expect("an error").contains("jaw_9"), "{refused}");
        // Her reactions are Mira's, and this motion has none of her labels.
        let game =
            json!({ "do": "motion_game", "game": { "forgetful": 0.5, "seed": 1, "she_begins": false } });
        let refused = command(&mut socket, 9, game).await;
        assert!(refused["error"].as_str().expect("an error").contains("no label 'happy'"), "{refused}");
    });
}
