use std::time::Duration;

use futures::StreamExt;
use jiff::Timestamp;
use proptest::prelude::*;
use tempfile::TempDir;
use tokio::{io::AsyncWriteExt, time::timeout};

use super::{
    record::{HEAD, Splitter, parse},
    *,
};

const POD: &str = "0b9c6d1e-8f0e-4a56-b3c0-1f5b8b1c7a10";

fn run(run: u32) -> LogRun {
    LogRun { pod: POD.into(), container: "c".into(), run }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

struct Disk {
    dir: TempDir,
    logs: Arc<ContainerLogs>,
}

impl Disk {
    fn new(largest: u64) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let places = Places { state: dir.path().join("s"), runtime: dir.path().join("r") };
        Self { logs: ContainerLogs::with_limit(places, largest), dir }
    }

    fn files(&self) -> Vec<String> {
        let dir = self.logs.dir(&run(0)).unwrap();
        files(&dir).unwrap().into_iter().map(|(name, _, _)| name).collect()
    }

    async fn bytes(&self, of: u32, options: LogOptions) -> Vec<u8> {
        let mut stream = self.logs.read(run(of), options).await.unwrap();
        let mut all = Vec::new();
        while let Some(piece) = next_of(&mut stream).await {
            all.extend_from_slice(&piece);
        }
        all
    }

    async fn text(&self, of: u32, options: LogOptions) -> String {
        String::from_utf8(self.bytes(of, options).await).unwrap()
    }
}

async fn next_of(stream: &mut LogStream) -> Option<Vec<u8>> {
    let next = timeout(Duration::from_secs(10), stream.next());
    let piece = next.await.expect("nothing for ten seconds")?;
    Some(piece.unwrap().to_vec())
}

/// As a process would say it, at a time.
fn say(writer: &Writer, stream: Stream, bytes: &[u8], second: i64) {
    let (mut splitter, mut records) = (Splitter::new(stream), Vec::new());
    splitter.feed(bytes, at(second), &mut records);
    splitter.finish(at(second), &mut records);
    writer.append(&records, at(second));
}

fn options() -> LogOptions {
    LogOptions::default()
}

#[tokio::test]
async fn every_option_chooses_its_part() {
    let disk = Disk::new(LARGEST);
    let writer = disk.logs.start(run(0)).unwrap();
    say(&writer, Stream::Stdout, b"one\n", 1);
    say(&writer, Stream::Stderr, b"two\n\n", 2);
    say(&writer, Stream::Stdout, b"three\nlast", 3);
    let whole = "one\ntwo\n\nthree\nlast\n";
    let stamped = "1970-01-01T00:00:01.000000000Z one\n1970-01-01T00:00:02.000000000Z two\n\
                   1970-01-01T00:00:02.000000000Z \n1970-01-01T00:00:03.000000000Z three\n\
                   1970-01-01T00:00:03.000000000Z last\n";
    for (options, want) in [
        (options(), whole),
        (LogOptions { tail_lines: Some(0), ..options() }, ""),
        (LogOptions { tail_lines: Some(1), ..options() }, "last\n"),
        (LogOptions { tail_lines: Some(3), ..options() }, "\nthree\nlast\n"),
        (LogOptions { tail_lines: Some(5), ..options() }, whole),
        (LogOptions { tail_lines: Some(u64::MAX), ..options() }, whole),
        (LogOptions { limit_bytes: Some(6), ..options() }, "one\ntw"),
        (LogOptions { limit_bytes: Some(4), ..options() }, "one\n"),
        (LogOptions { limit_bytes: Some(u64::MAX), ..options() }, whole),
        (LogOptions { limit_bytes: Some(6), follow: true, ..options() }, "one\ntw"),
        (LogOptions { since: Some(at(2)), ..options() }, "two\n\nthree\nlast\n"),
        (LogOptions { since: Some(at(9)), ..options() }, ""),
        (LogOptions { since: Some(at(-9)), ..options() }, whole),
        (LogOptions { since: Some(at(3)), tail_lines: Some(4), ..options() }, "three\nlast\n"),
        (LogOptions { timestamps: true, ..options() }, stamped),
        (
            LogOptions { timestamps: true, tail_lines: Some(1), limit_bytes: Some(5), ..options() },
            "1970-",
        ),
    ] {
        assert_eq!(disk.text(0, options.clone()).await, want, "{options:?}");
    }
}

#[tokio::test]
async fn bytes_come_back_as_they_were_said() {
    let disk = Disk::new(LARGEST);
    let writer = disk.logs.start(run(0)).unwrap();
    let long = vec![b'x'; 100_000];
    let said = [&b"\xff\xfe\x00binary\r\n"[..], &long, b"\n", &long, b"end"].concat();
    say(&writer, Stream::Stdout, &said, 1);
    assert_eq!(disk.bytes(0, options()).await, [&said[..], b"\n"].concat());
    let last = disk.bytes(0, LogOptions { tail_lines: Some(1), ..options() }).await;
    assert_eq!(last.len(), 100_000 + 4);
    let stamped = disk.bytes(0, LogOptions { timestamps: true, ..options() }).await;
    assert_eq!(stamped.len(), said.len() + 1 + 3 * 31, "one time for each line");
}

#[tokio::test]
async fn a_full_file_is_followed_by_one_more_and_old_ones_go() {
    let disk = Disk::new(200);
    let writer = disk.logs.start(run(0)).unwrap();
    for number in 0..20 {
        say(&writer, Stream::Stdout, format!("line {number}\n").as_bytes(), number);
    }
    assert_eq!(disk.files().len(), 2);
    let text = disk.text(0, options()).await;
    assert!(text.ends_with("line 18\nline 19\n"), "{text}");
    assert!(!text.contains("line 3\n"), "{text}");
    let tail = LogOptions { tail_lines: Some(6), ..options() };
    assert_eq!(disk.text(0, tail).await.lines().next(), Some("line 14"));
    drop(writer);
    assert_eq!(disk.text(0, LogOptions { follow: true, ..options() }).await, text);
}

#[tokio::test]
async fn following_gives_each_line_at_once_and_ends_with_the_run() {
    let disk = Disk::new(300);
    let writer = disk.logs.start(run(0)).unwrap();
    say(&writer, Stream::Stdout, b"before\nlast before\n", 0);
    let options = LogOptions { follow: true, tail_lines: Some(1), ..options() };
    let mut stream = disk.logs.read(run(0), options).await.unwrap();
    assert_eq!(next_of(&mut stream).await.unwrap(), b"last before\n");
    // Far enough for several files.
    for number in 0..40 {
        let line = format!("line {number}\n");
        say(&writer, Stream::Stderr, line.as_bytes(), number);
        assert_eq!(next_of(&mut stream).await.unwrap(), line.as_bytes());
    }
    say(&writer, Stream::Stdout, b"end", 50);
    drop(writer);
    assert_eq!(next_of(&mut stream).await.unwrap(), b"end\n");
    assert_eq!(next_of(&mut stream).await, None);
    assert!(disk.logs.running.lock().unwrap().is_empty());
}

#[tokio::test]
async fn what_was_said_last_is_not_lost_by_rotation_at_the_end() {
    let disk = Disk::new(100);
    let writer = disk.logs.start(run(0)).unwrap();
    let options = LogOptions { follow: true, ..options() };
    let mut stream = disk.logs.read(run(0), options).await.unwrap();
    say(&writer, Stream::Stdout, &[b'a'; 60], 1);
    say(&writer, Stream::Stdout, &[b'b'; 60], 1);
    drop(writer);
    let mut all = Vec::new();
    while let Some(piece) = next_of(&mut stream).await {
        all.extend(piece);
    }
    assert_eq!(all, [&[b'a'; 60][..], b"\n", &[b'b'; 60], b"\n"].concat());
}

#[tokio::test]
async fn the_run_before_is_kept_and_none_older() {
    let disk = Disk::new(LARGEST);
    for number in 0..3 {
        let writer = disk.logs.start(run(number)).unwrap();
        say(&writer, Stream::Stdout, format!("run {number}").as_bytes(), 1);
    }
    assert_eq!(disk.files(), ["1.0.log", "2.0.log"]);
    assert_eq!(disk.text(1, options()).await, "run 1\n");
    assert_eq!(disk.text(2, options()).await, "run 2\n");
    let gone = disk.logs.read(run(0), options()).await.err().unwrap();
    assert_eq!(gone.kind(), io::ErrorKind::NotFound);
    // A run that is begun again begins anew.
    drop(disk.logs.start(run(2)).unwrap());
    assert_eq!(disk.text(2, options()).await, "");
}

#[tokio::test]
async fn names_and_links_lead_nowhere_else() {
    let disk = Disk::new(LARGEST);
    for (pod, container) in [("..", "c"), (POD, "../../x"), (POD, ""), ("a/b", "c")] {
        let run = LogRun { pod: pod.into(), container: container.into(), run: 0 };
        assert!(disk.logs.start(run.clone()).is_err(), "{run:?}");
        assert!(disk.logs.read(run, options()).await.is_err());
    }
    drop(disk.logs.start(run(0)).unwrap());
    let secret = disk.dir.path().join("secret");
    fs::write(&secret, "secret").unwrap();
    let log = disk.logs.dir(&run(0)).unwrap().join("0.0.log");
    fs::remove_file(&log).unwrap();
    std::os::unix::fs::symlink(&secret, &log).unwrap();
    assert!(disk.logs.read(run(0), options()).await.is_err());
}

#[tokio::test]
async fn what_others_write_into_a_log_does_no_harm() {
    let disk = Disk::new(LARGEST);
    drop(disk.logs.start(run(0)).unwrap());
    let log = disk.logs.dir(&run(0)).unwrap().join("0.0.log");
    for (content, want) in [
        ("", ""),
        ("\n\n", ""),
        ("foreign\n", "foreign\n"),
        ("no end", ""),
        ("1970-01-01T00:00:01.000000000Z stdout F fine\n1970-01", "fine\n"),
        (
            "1970-01-01T00:00:01.000000000Z stdout X odd\n",
            "1970-01-01T00:00:01.000000000Z stdout X odd\n",
        ),
    ] {
        fs::write(&log, content).unwrap();
        assert_eq!(disk.text(0, options()).await, want, "{content:?}");
        disk.text(0, LogOptions { tail_lines: Some(1), ..options() }).await;
    }
    fs::write(&log, vec![b'x'; 200_000]).unwrap();
    disk.text(0, LogOptions { tail_lines: Some(1), follow: true, ..options() }).await;
}

#[tokio::test]
async fn a_pipe_is_read_to_its_end() {
    let disk = Disk::new(LARGEST);
    let writer = disk.logs.start(run(0)).unwrap();
    let (mut process, pipe) = tokio::io::duplex(64);
    let pumped = tokio::spawn(pump(pipe, Stream::Stdout, writer, Arc::new(|| at(7))));
    let options = LogOptions { follow: true, timestamps: true, ..options() };
    let mut stream = disk.logs.read(run(0), options).await.unwrap();
    process.write_all(b"hel").await.unwrap();
    process.write_all(b"lo\n").await.unwrap();
    assert_eq!(next_of(&mut stream).await.unwrap(), b"1970-01-01T00:00:07.000000000Z hello\n");
    process.write_all(b"no end").await.unwrap();
    drop(process);
    assert_eq!(next_of(&mut stream).await.unwrap(), b"1970-01-01T00:00:07.000000000Z no end\n");
    assert_eq!(next_of(&mut stream).await, None);
    pumped.await.unwrap();
}

#[test]
fn last_words_come_from_their_file_or_from_the_log() {
    let disk = Disk::new(LARGEST);
    let logs = &disk.logs;
    assert_eq!(last_words(logs, &run(0), true), "");
    let writer = logs.start(run(0)).unwrap();
    for number in 0..100 {
        say(&writer, Stream::Stderr, format!("{number}\n").as_bytes(), 1);
    }
    assert_eq!(last_words(logs, &run(0), false), "");
    let said = last_words(logs, &run(0), true);
    assert!(said.starts_with("20\n21\n") && said.ends_with("99\n"), "{said}");
    say(&writer, Stream::Stderr, &[b'x'; 5000], 1);
    let said = last_words(logs, &run(0), true);
    assert!(said.len() == 2048 && said.ends_with("xx\n"));

    let file = logs.places.last_words(POD, "c").unwrap();
    fs::write(&file, "died of \u{e9}").unwrap();
    assert_eq!(last_words(logs, &run(0), true), "died of \u{e9}");
    fs::write(&file, [vec![b'a'; 5000], b"end\xff".to_vec()].concat()).unwrap();
    let said = last_words(logs, &run(0), false);
    assert!(said.ends_with("aend\u{fffd}"), "{said}");
    assert_eq!(said.chars().count(), 4096);
    fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", &file).unwrap();
    assert!(last_words(logs, &run(0), false).starts_with("Error on reading termination log"));
}

proptest! {
    /// However a pipe cuts what was said, it comes back whole.
    #[test]
    fn pieces_of_any_size_make_the_same_lines(
        said in proptest::collection::vec(prop_oneof![Just(b'\n'), any::<u8>()], 0..300),
        cuts in proptest::collection::vec(1usize..40, 0..20),
    ) {
        let (mut splitter, mut records) = (Splitter::new(Stream::Stdout), Vec::new());
        let mut rest = &said[..];
        for cut in cuts {
            let (piece, more) = rest.split_at(cut.min(rest.len()));
            splitter.feed(piece, at(1), &mut records);
            rest = more;
        }
        splitter.feed(rest, at(1), &mut records);
        splitter.finish(at(1), &mut records);
        let lines = records.strip_suffix(b"\n").map(|records| records.split(|byte| *byte == b'\n'));
        let back: Vec<_> = lines.into_iter().flatten().map(|line| &line[HEAD..]).collect();
        let mut want: Vec<_> = said.split(|byte| *byte == b'\n').collect();
        if want.last().is_some_and(|last| last.is_empty()) {
            want.pop();
        }
        prop_assert_eq!(back, want);
    }

    #[test]
    fn no_line_makes_reading_fail(line in proptest::collection::vec(any::<u8>(), 0..80)) {
        if let Some(record) = parse(&line) {
            prop_assert!(line.ends_with(record.text));
        }
    }

    /// The tail is what cutting the whole text gives.
    #[test]
    fn the_tail_is_the_end_of_the_whole(
        lines in proptest::collection::vec("[a-z]{0,30}", 0..40), wanted in 0u64..45, largest in 60u64..400,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let disk = Disk::new(largest);
        let writer = disk.logs.start(run(0)).unwrap();
        for line in &lines {
            say(&writer, Stream::Stdout, format!("{line}\n").as_bytes(), 1);
        }
        let whole = runtime.block_on(disk.text(0, options()));
        let tail = LogOptions { tail_lines: Some(wanted), ..options() };
        let tail = runtime.block_on(disk.text(0, tail));
        let all: Vec<_> = whole.split_inclusive('\n').collect();
        let from = all.len().saturating_sub(wanted as usize);
        prop_assert_eq!(tail, all[from..].concat());
    }
}
