//! One worker: a process or a connection that answers one request at a time. Reading and writing happen on a thread
//! of its own, so that whoever waits for an answer can stop waiting; a worker that is late is ended.

use super::address::Address;
use super::protocol::{Frame, ProtocolError, Tag};
use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use thiserror::Error;

/// How long a program may take to leave after its input ended.
const FAREWELL: Duration = Duration::from_millis(500);
/// Lines of a program's standard error that are kept for messages.
const LINES: usize = 8;

/// Why a worker did not answer.
#[derive(Debug, Error)]
pub enum WorkerError {
    /// It could not be started or reached.
    #[error("cannot be started: {0}")]
    Start(String),
    /// It did not answer in time.
    #[error("no answer in {seconds} s")]
    TimedOut {
        /// How long it had.
        seconds: f64,
    },
    /// It ended or hung up.
    #[error("the worker ended{how}")]
    Ended {
        /// Its exit status and last words, where they are known.
        how: String,
    },
    /// Its answer is not valid.
    #[error(transparent)]
    Protocol(#[from] ProtocolError),
}

/// A running worker. Dropping it ends it.
pub(super) struct Worker {
    requests: Option<SyncSender<Vec<u8>>>,
    answers: Receiver<Result<Frame, ProtocolError>>,
    other_end: OtherEnd,
    last_lines: Arc<Mutex<VecDeque<String>>>,
}

/// What is at the other end, to be ended by force.
enum OtherEnd {
    Process(Child),
    #[cfg(unix)]
    Unix(std::os::unix::net::UnixStream),
    Tcp(TcpStream),
}

impl Worker {
    /// Starts the program, or connects.
    pub fn start(address: &Address) -> Result<Self, WorkerError> {
        let last_lines = Arc::new(Mutex::new(VecDeque::new()));
        let failed = |error: std::io::Error| WorkerError::Start(error.to_string());
        let (reader, writer, other_end): (Box<dyn Read + Send>, Box<dyn Write + Send>, _) = match address {
            Address::Command(words) => {
                let mut child = command(words).spawn().map_err(failed)?;
                let (Some(input), Some(output), Some(errors)) =
                    (child.stdin.take(), child.stdout.take(), child.stderr.take())
                else {
                    unreachable!("all three were asked for as pipes");
                };
                keep_lines(errors, last_lines.clone());
                (Box::new(output), Box::new(input), OtherEnd::Process(child))
            }
            #[cfg(unix)]
            Address::Unix(path) => {
                let stream = std::os::unix::net::UnixStream::connect(path).map_err(failed)?;
                let clone = || stream.try_clone().map_err(failed);
                (Box::new(clone()?), Box::new(clone()?), OtherEnd::Unix(stream))
            }
            #[cfg(not(unix))]
            Address::Unix(_) => return Err(WorkerError::Start("this system has no Unix sockets".into())),
            Address::Tcp(host) => {
                let stream = TcpStream::connect(host).map_err(failed)?;
                // Requests are small and waited for.
                stream.set_nodelay(true).map_err(failed)?;
                let clone = || stream.try_clone().map_err(failed);
                (Box::new(clone()?), Box::new(clone()?), OtherEnd::Tcp(stream))
            }
        };
        let (requests, to_send) = sync_channel(1);
        let (to_caller, answers) = sync_channel(1);
        std::thread::spawn(move || talk(reader, writer, &to_send, &to_caller));
        Ok(Self { requests: Some(requests), answers, other_end, last_lines })
    }

    /// One request, one answer. After an error of the worker's own it is of no more use.
    pub fn ask(&mut self, request: &Frame, patience: Duration) -> Result<Frame, WorkerError> {
        let sent = self.requests.as_ref().is_some_and(|requests| requests.send(request.to_bytes()).is_ok());
        if !sent {
            return Err(self.ended());
        }
        match self.answers.recv_timeout(patience) {
            Ok(Ok(frame)) => Ok(frame),
            Ok(Err(ProtocolError::Ended { got: 0, .. } | ProtocolError::Io(_)))
            | Err(RecvTimeoutError::Disconnected) => Err(self.ended()),
            Ok(Err(error)) => Err(error.into()),
            Err(RecvTimeoutError::Timeout) => Err(WorkerError::TimedOut { seconds: patience.as_secs_f64() }),
        }
    }

    /// How it ended: the exit status and the last line of its standard error.
    fn ended(&mut self) -> WorkerError {
        let mut how = String::new();
        if let OtherEnd::Process(child) = &mut self.other_end
            && let Some(status) = wait(child, FAREWELL)
        {
            how = format!(" ({status})");
            // The thread that keeps them may still be reading the last of them.
            std::thread::sleep(Duration::from_millis(20));
        }
        let lines = self.last_lines.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(line) = lines.back() {
            how += &format!("; its last words: {line}");
        }
        WorkerError::Ended { how }
    }

    /// Ends it by force, with everything that it started.
    pub fn kill(&mut self) {
        match &mut self.other_end {
            OtherEnd::Process(child) => {
                #[cfg(unix)]
                if let Some(group) = rustix::process::Pid::from_raw(child.id() as i32) {
                    // The child is not reaped yet, so that its number is still its own.
                    let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
                }
                let _ = child.kill();
                let _ = child.wait();
            }
            #[cfg(unix)]
            OtherEnd::Unix(stream) => {
                let _ = stream.shutdown(std::net::Shutdown::Both);
            }
            OtherEnd::Tcp(stream) => {
                let _ = stream.shutdown(std::net::Shutdown::Both);
            }
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // The thread ends with the requests and closes the program's input, which tells it to leave.
        self.requests = None;
        let left = match &mut self.other_end {
            OtherEnd::Process(child) => wait(child, FAREWELL).is_some(),
            _ => false,
        };
        if !left {
            self.kill();
        }
    }
}

/// The program in a process group of its own: an interrupt typed at a terminal reaches us and not it, and what it
/// starts can be ended with it.
fn command(words: &[String]) -> Command {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    command
}

fn wait(child: &mut Child, patience: Duration) -> Option<std::process::ExitStatus> {
    let deadline = Instant::now() + patience;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(2)),
            _ => return None,
        }
    }
}

fn talk(
    mut reader: Box<dyn Read + Send>,
    mut writer: Box<dyn Write + Send>,
    requests: &Receiver<Vec<u8>>,
    answers: &SyncSender<Result<Frame, ProtocolError>>,
) {
    while let Ok(request) = requests.recv() {
        let written = writer.write_all(&request).and_then(|()| writer.flush());
        // A program that left before it read the request may still have said why.
        let answer = match (Frame::read(&mut reader), written) {
            (Ok(frame), Err(error)) if frame.tag != Tag::Failed => Err(error.into()),
            (answer, _) => answer,
        };
        let failed = answer.is_err();
        if answers.send(answer).is_err() || failed {
            return;
        }
    }
}

fn keep_lines(errors: impl Read + Send + 'static, lines: Arc<Mutex<VecDeque<String>>>) {
    std::thread::spawn(move || {
        let mut reader = BufReader::new(errors);
        let mut line = Vec::new();
        // A line without an end is read in pieces: a program may write anything.
        while reader.by_ref().take(4096).read_until(b'\n', &mut line).is_ok_and(|bytes| bytes > 0) {
            let text = String::from_utf8_lossy(&line).trim().to_owned();
            line.clear();
            if !text.is_empty() {
                let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
                lines.push_back(text);
                while lines.len() > LINES {
                    lines.pop_front();
                }
            }
        }
    });
}
