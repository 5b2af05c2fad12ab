//! How far something is: bars on a terminal, a line now and then elsewhere.

use std::{
    collections::BTreeMap,
    io::{self, IsTerminal, Write},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use indicatif::{
    HumanDuration, MultiProgress, ProgressBar, ProgressDrawTarget, ProgressFinish, ProgressStyle,
};
use windlass_kit::{Digest, hub, manifest::Descriptor, pull, push, web};

use super::flags::Style;

/// Between lines.
const PAUSE: Duration = Duration::from_secs(10);
/// The room of a name before its bar.
const NAME: usize = 28;

/// Cheap to share.
#[derive(Clone)]
pub(super) struct Progress {
    inner: Arc<Inner>,
}

struct Inner {
    view: View,
    state: Mutex<State>,
}

enum View {
    Nothing,
    Lines { json: bool },
    Bars { all: MultiProgress, colour: bool },
}

#[derive(Default)]
struct State {
    items: BTreeMap<String, Item>,
    done: u64,
    size: u64,
    /// What did not have to come: it says nothing about how fast the rest does.
    known: u64,
    /// Of all; made when the first bytes come.
    bar: Option<ProgressBar>,
    started: Option<Instant>,
    told: Option<Instant>,
}

struct Item {
    name: String,
    size: u64,
    done: u64,
    bar: Option<ProgressBar>,
}

impl Progress {
    pub(super) fn new(style: Style, json: bool) -> Self {
        let is_terminal =
            if json { io::stderr().is_terminal() } else { io::stdout().is_terminal() };
        let view = match (style, is_terminal) {
            (Style::None, _) => View::Nothing,
            (_, false) => View::Lines { json },
            (style, true) => {
                let target = match json {
                    true => ProgressDrawTarget::stderr(),
                    false => ProgressDrawTarget::stdout(),
                };
                let colour = style == Style::Fancy && !crate::operator::logging::refuses_colour();
                View::Bars { all: MultiProgress::with_draw_target(target), colour }
            }
        };
        Self { inner: Arc::new(Inner { view, state: Mutex::default() }) }
    }

    /// Something of which so many bytes will come.
    pub(super) fn expect(&self, key: &str, name: &str, size: u64) {
        let mut state = self.state();
        if !state.items.contains_key(key) {
            let item = Item { name: name.to_owned(), size, done: 0, bar: None };
            state.items.insert(key.to_owned(), item);
            state.size += size;
        }
    }

    /// The same thing, told of under another key from now on, and begun anew.
    pub(super) fn rename(&self, key: &str, new: &str) {
        let mut state = self.state();
        if let Some(mut item) = state.items.remove(key) {
            state.done -= item.done;
            item.done = 0;
            state.items.insert(new.to_owned(), item);
        }
    }

    pub(super) fn expect_blob(&self, blob: &Descriptor) {
        let path = blob.annotations.get(windlass_kit::manifest::FILE_PATH);
        self.expect(blob.digest.as_str(), path.map_or("config", String::as_str), blob.size);
    }

    /// What is sent twice counts once.
    pub(super) fn add(&self, key: &str, bytes: u64) {
        let mut state = self.state();
        let state = &mut *state;
        let Some(item) = state.items.get_mut(key) else { return };
        let counted = bytes.min(item.size - item.done);
        item.done += counted;
        state.done += counted;
        let started = *state.started.get_or_insert_with(Instant::now);
        match &self.inner.view {
            View::Nothing => {}
            View::Lines { json } => {
                let told = state.told.unwrap_or(started);
                if counted > 0 && told.elapsed() >= PAUSE {
                    state.told = Some(Instant::now());
                    let line = line(state.done, state.size, state.known, started.elapsed());
                    match json {
                        true => eprintln!("{line}"),
                        false => drop(writeln!(io::stdout(), "{line}")),
                    }
                }
            }
            View::Bars { all, colour } => {
                let total = state.bar.get_or_insert_with(|| all.add(bar("total", 0, *colour)));
                total.set_length(state.size);
                total.set_position(state.done);
                let bar = item.bar.get_or_insert_with(|| {
                    all.insert_before(total, bar(&item.name, item.size, *colour))
                });
                bar.set_position(item.done);
                if item.done == item.size {
                    bar.finish_and_clear();
                }
            }
        }
    }

    /// What was there before.
    fn add_known(&self, key: &str, bytes: u64) {
        let before = self.state().done;
        self.add(key, bytes);
        let mut state = self.state();
        state.known += state.done - before;
        let item = state.items.get(key).and_then(|item| item.bar.as_ref());
        [item, state.bar.as_ref()].into_iter().flatten().for_each(ProgressBar::reset_eta);
    }

    /// All of it is there.
    pub(super) fn finish(&self, key: &str) {
        self.add(key, u64::MAX);
    }

    /// Says something without a bar running through it.
    pub(super) fn aside(&self, say: impl FnOnce()) {
        match &self.inner.view {
            View::Bars { all, .. } => all.suspend(say),
            View::Nothing | View::Lines { .. } => say(),
        }
    }

    pub(super) fn end(&self) {
        let mut state = std::mem::take(&mut *self.state());
        let bars = state.items.values_mut().filter_map(|item| item.bar.take());
        bars.chain(state.bar.take()).for_each(|bar| bar.finish_and_clear());
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.inner.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn bar(name: &str, size: u64, colour: bool) -> ProgressBar {
    let bar = if colour { "{bar:24.cyan/blue}" } else { "{bar:24}" };
    let template = format!(
        "{{msg:{NAME}}} {bar} {{binary_bytes:>11}} of {{binary_total_bytes}} {{binary_bytes_per_sec}} {{eta}} left"
    );
    let style = ProgressStyle::with_template(&template)
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("=> ");
    // Drawn only once it stands among the others.
    let bar = ProgressBar::with_draw_target(Some(size), ProgressDrawTarget::hidden())
        .with_style(style)
        .with_finish(ProgressFinish::AndClear);
    bar.set_message(shortened(name));
    bar
}

/// The end of a path says more than its beginning.
fn shortened(name: &str) -> String {
    let count = name.chars().count();
    match count.checked_sub(NAME) {
        None | Some(0) => name.to_owned(),
        Some(over) => format!("…{}", name.chars().skip(over + 1).collect::<String>()),
    }
}

fn line(done: u64, size: u64, known: u64, since: Duration) -> String {
    let rate = done.saturating_sub(known) as f64 / since.as_secs_f64().max(0.001);
    let left = Duration::from_secs_f64(((size - done) as f64 / rate.max(1.0)).min(1e9));
    format!(
        "{} of {}, {}/s, {} left",
        size_of(done),
        size_of(size),
        size_of(rate as u64),
        HumanDuration(left)
    )
}

/// Rounded down, so that nothing is told as more than it is.
pub(crate) fn size_of(bytes: u64) -> String {
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut size = bytes as f64;
    for unit in ["KiB", "MiB", "GiB"] {
        size /= 1024.0;
        if size < 1024.0 {
            return format!("{:.1} {unit}", (size * 10.0).floor() / 10.0);
        }
    }
    format!("{:.1} TiB", (size / 1024.0 * 10.0).floor() / 10.0)
}

impl push::Progress for Progress {
    fn known(&self, blob: &Descriptor) {
        self.add_known(blob.digest.as_str(), u64::MAX);
    }

    fn sent(&self, blob: &Digest, bytes: u64) {
        self.add(blob.as_str(), bytes);
    }

    fn done(&self, blob: &Digest) {
        self.finish(blob.as_str());
    }
}

impl pull::Progress for Progress {
    fn expected(&self, blob: &Descriptor) {
        self.expect_blob(blob);
    }

    fn known(&self, blob: &Descriptor) {
        self.add_known(blob.digest.as_str(), u64::MAX);
    }

    fn received(&self, blob: &Digest, bytes: u64) {
        self.add(blob.as_str(), bytes);
    }

    fn resumed(&self, blob: &Digest, bytes: u64) {
        self.add_known(blob.as_str(), bytes);
    }

    fn done(&self, blob: &Digest) {
        self.finish(blob.as_str());
    }
}

impl hub::Progress for Progress {
    fn received(&self, path: &str, bytes: u64) {
        self.add(path, bytes);
    }

    fn resumed(&self, path: &str, bytes: u64) {
        self.add_known(path, bytes);
    }
}

impl web::Progress for Progress {
    fn expected(&self, name: &str, size: u64) {
        self.expect(name, name, size);
    }

    fn received(&self, name: &str, bytes: u64) {
        self.add(name, bytes);
    }

    fn resumed(&self, name: &str, bytes: u64) {
        self.add_known(name, bytes);
    }
}

/// Counts what goes through it.
pub(super) struct Counted<T> {
    pub(super) inner: T,
    pub(super) key: String,
    pub(super) progress: Progress,
}

impl<T: io::Read> io::Read for Counted<T> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.progress.add(&self.key, count as u64);
        Ok(count)
    }
}

impl<T: Write> Write for Counted<T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.inner.write(bytes)?;
        self.progress.add(&self.key, count as u64);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_never_told_as_more_than_they_are() {
        for (bytes, want) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            ((1 << 20) - 1, "1023.9 KiB"),
            (5 << 30, "5.0 GiB"),
            (3 << 40, "3.0 TiB"),
        ] {
            assert_eq!(size_of(bytes), want);
        }
    }

    #[test]
    fn a_line_tells_rate_and_time_left() {
        let told = line(10 << 20, 110 << 20, 0, Duration::from_secs(10));
        assert_eq!(told, "10.0 MiB of 110.0 MiB, 1.0 MiB/s, 2 minutes left");
        assert!(line(0, 1, 0, Duration::ZERO).starts_with("0 B of 1 B"));
        // What an earlier run has got makes this one no faster.
        let told = line(1010 << 20, 1110 << 20, 1000 << 20, Duration::from_secs(10));
        assert_eq!(told, "1010.0 MiB of 1.0 GiB, 1.0 MiB/s, 2 minutes left");
    }

    #[test]
    fn what_comes_twice_counts_once() {
        let progress = Progress::new(Style::None, false);
        progress.expect("a", "a", 10);
        progress.expect("b", "b", 5);
        progress.add("a", 7);
        progress.add("a", 7);
        progress.add("unknown", 7);
        let counted = || {
            let state = progress.state();
            (state.done, state.size)
        };
        assert_eq!(counted(), (10, 15));
        progress.finish("b");
        assert_eq!(counted(), (15, 15));
    }

    #[test]
    fn what_begins_anew_under_another_key_is_counted_anew() {
        let progress = Progress::new(Style::None, false);
        progress.expect("a", "a", 10);
        progress.add("a", 7);
        progress.rename("a", "b");
        progress.add("a", 7);
        progress.add("b", 1);
        let state = progress.state();
        assert_eq!((state.done, state.size), (1, 10));
    }

    #[test]
    fn long_names_keep_their_end() {
        assert_eq!(shortened("model.safetensors"), "model.safetensors");
        let name = "weights/model-00001-of-00002.safetensors";
        assert_eq!(shortened(name).chars().count(), NAME);
        assert!(shortened(name).ends_with("of-00002.safetensors"));
    }
}
