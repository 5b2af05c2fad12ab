//! The server, and requests to it.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::{Child, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::tiny::Tiny;

/// For anything that is waited for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Server {
    child: Child,
    pub(crate) address: String,
    /// Open as long as the server may write to it.
    _stdout: BufReader<ChildStdout>,
    _folder: TempDir,
}

pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) text: String,
}

impl Response {
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }
}

impl Server {
    /// Serves the directory that the model is in, as a ModelService does.
    pub(crate) fn start(more: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        Tiny::default().write(&folder.path().join("tiny.gguf"));
        let named = more.contains(&"--served-model-name");
        let name: &[&str] = if named { &[] } else { &["--served-model-name", "tiny"] };
        let mut child = Command::new(env!("CARGO_BIN_EXE_windlass"))
            .arg("serve")
            .arg(folder.path())
            .args(["--host", "127.0.0.1", "--port", "0"])
            .args(name)
            .args(more)
            .env_remove("VLLM_API_KEY")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        stdout.read_line(&mut line).unwrap();
        let address = line.split("http://").nth(1).and_then(|rest| rest.split(';').next());
        let Some(address) = address.map(str::to_owned) else {
            let mut said = String::new();
            child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
            panic!("{line:?}: {said}");
        };
        Self { child, address, _stdout: stdout, _folder: folder }
    }

    pub(crate) fn get(&self, path: &str) -> Response {
        self.send("GET", path, "", "")
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Response {
        self.send("POST", path, "", &body.to_string())
    }

    pub(crate) fn send(&self, method: &str, path: &str, header: &str, body: &str) -> Response {
        read(self.begin(method, path, header, body))
    }

    /// A request whose answer is read later, or never.
    pub(crate) fn begin(&self, method: &str, path: &str, header: &str, body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        // The older version: the answer ends with the connection.
        write!(
            stream,
            "{method} {path} HTTP/1.0\r\n{header}content-length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        stream
    }

    /// The value of a metric, of whatever labels.
    #[track_caller]
    pub(crate) fn metric(&self, name: &str) -> f64 {
        let text = self.get("/metrics").text;
        let line = text.lines().find(|line| line.starts_with(&format!("{name}{{")));
        let value =
            line.and_then(|line| line.rsplit(' ').next()).and_then(|value| value.parse().ok());
        value.unwrap_or_else(|| panic!("{name} is not in {text}"))
    }

    #[track_caller]
    pub(crate) fn until(&self, what: &str, holds: impl Fn(&Self) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !holds(self) {
            assert!(Instant::now() < deadline, "never: {what}");
            std::thread::yield_now();
        }
    }

    pub(crate) fn terminate(&self) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, Signal::TERM).unwrap();
    }

    /// The exit code and what was said on standard error.
    pub(crate) fn wait(mut self) -> (Option<i32>, String) {
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (self.child.wait().unwrap().code(), said)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn read(mut stream: TcpStream) -> Response {
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Response { status, text: body.to_owned() }
}

/// The JSON of each event, and whether the stream says that it is done.
pub(crate) fn events(text: &str) -> (Vec<Value>, bool) {
    let mut data: Vec<&str> =
        text.split("\n\n").filter_map(|event| event.strip_prefix("data: ")).collect();
    let done = data.last() == Some(&"[DONE]");
    if done {
        data.pop();
    }
    (data.iter().map(|event| serde_json::from_str(event).unwrap()).collect(), done)
}
