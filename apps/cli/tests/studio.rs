//! `understudy studio` as a program that somebody starts: its address on standard output, who is answered there, and how it ends.
//! What it serves is tested in `apps/studio/tests`, its page by `cargo xtask test`.

#![cfg(unix)]

mod common;

use common::{refuse, text, understudy};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStdout, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// A studio that was started; killed where a test ends early.
struct Started {
    child: Child,
    out: BufReader<ChildStdout>,
    /// The first line that it printed.
    line: String,
}

impl Started {
    fn on(project: &Path, more: &[&str]) -> Self {
        let words = [&["studio", "--no-browser", "--port", "0", "--project", text(project)], more].concat();
        let mut command = understudy(&words);
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
        let mut out = BufReader::new(child.stdout.take().expect("piped"));
        let mut line = String::new();
        out.read_line(&mut line).expect("text");
        Self { child, out, line }
    }

    /// Ctrl-C, and its end: what it printed after the first line, what it said, and how it ended.
    fn interrupt(mut self) -> (String, String, ExitStatus) {
        let id = self.child.id().to_string();
        let sent = std::process::Command::new("kill").args(["-INT", &id]).status().expect("a Unix machine");
        assert!(sent.success());
        let begin = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("it is ours") {
                break status;
            }
            assert!(begin.elapsed() < Duration::from_secs(30), "it does not end");
            std::thread::sleep(Duration::from_millis(20));
        };
        let (mut rest, mut said) = (String::new(), String::new());
        self.out.read_to_string(&mut rest).expect("text");
        self.child.stderr.take().expect("piped").read_to_string(&mut said).expect("text");
        (rest, said, status)
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Port and token of an address, which is one of loopback.
fn parts(address: &str) -> (u16, &str) {
    let rest = address.strip_prefix("http://127.0.0.1:").expect("on loopback");
    let (port, token) = rest.split_once('/').expect("a path");
    (port.parse().expect("a port"), token.strip_suffix('/').expect("it ends with a slash"))
}

/// The status that a request gets.
fn status(port: u16, path: &str, host: &str) -> u16 {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a socket");
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("it answers");
    let answer = String::from_utf8_lossy(&answer);
    answer.split(' ').nth(1).and_then(|word| word.parse().ok()).expect("a status")
}

#[test]
fn the_address_stands_alone_and_answers_who_has_its_token() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let studio = Started::on(folder.path(), &[]);
    let address = studio.line.strip_suffix('\n').expect("a line").to_owned();
    let (port, token) = parts(&address);
    assert!(
        token.len() >= 22 && token.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c)),
        "{token}"
    );
    let host = format!("127.0.0.1:{port}");
    assert_eq!(status(port, &format!("/{token}/"), &host), 200);
    assert_eq!(status(port, &format!("/{token}/api/project"), &host), 200);
    let other = token.chars().rev().collect::<String>();
    for path in ["/", "/api/project", &format!("/{other}/"), &format!("/{}/", &token[1..])] {
        assert_eq!(status(port, path, &host), 403, "{path}");
    }
    assert_eq!(status(port, &format!("/{token}/"), "studio.example"), 403, "another name for this machine");
    let (rest, said, end) = studio.interrupt();
    assert_eq!((rest.as_str(), end.code()), ("", Some(0)), "{said}");
    assert!(said.contains("stopping"), "{said}");
    assert!(!said.contains("error") && !said.contains("panic"), "{said}");
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err(), "nobody listens any more");
}

#[test]
fn every_run_has_its_own_token_and_json_is_one_document() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let address = || {
        let studio = Started::on(folder.path(), &["--json"]);
        let first = studio.line.clone();
        let (rest, said, end) = studio.interrupt();
        assert_eq!(end.code(), Some(0), "{said}");
        let told: serde_json::Value = serde_json::from_str(&(first + &rest)).expect("one document");
        told["address"].as_str().expect("an address").to_owned()
    };
    let (first, second) = (address(), address());
    assert_ne!(parts(&first).1, parts(&second).1);
}

#[test]
fn what_it_cannot_use_is_named() {
    let taken = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let port = taken.local_addr().expect("bound").port().to_string();
    let folder = tempfile::tempdir().expect("a scratch folder");
    let said = refuse(&["studio", "--no-browser", "--port", &port, "--project", text(folder.path())]);
    assert!(said.contains("--port") && said.contains(&port), "{said}");
    let file = folder.path().join("file");
    std::fs::write(&file, "no folder").expect("writable");
    let said = refuse(&["studio", "--no-browser", "--port", "0", "--project", text(&file)]);
    assert!(said.contains(text(&file)), "{said}");
}
