//! Reads the few wanted figures from a page of Prometheus text, while it arrives.

use crate::endpoint::{Cache, Lora};

/// A metric by its name and labels that its series must have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metric {
    name: String,
    labels: Vec<(String, String)>,
}

impl Metric {
    /// `name` or `name{l=v,l=v}`; values may be quoted. `None` for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let Some((name, labels)) = text.split_once('{') else {
            return is_name(text).then(|| Self { name: text.into(), labels: Vec::new() });
        };
        let labels = labels.strip_suffix('}')?.split(',').map(str::trim);
        let pair = |label: &str| {
            let (key, value) = label.split_once('=')?;
            let value = value.trim();
            let value =
                value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(value);
            Some((key.trim().to_owned(), value.to_owned()))
        };
        let labels = labels.filter(|label| !label.is_empty()).map(pair).collect::<Option<_>>()?;
        is_name(name.trim()).then(|| Self { name: name.trim().into(), labels })
    }

    pub(super) fn built_in(name: &str, labels: &[(&str, &str)]) -> Self {
        let own = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        Self { name: name.into(), labels: labels.iter().map(own).collect() }
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_:".contains(&byte))
}

/// Where each figure is found. Of several metrics for one figure the first that is there counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    pub waiting: Vec<Metric>,
    pub running: Vec<Metric>,
    pub kv_cache: Vec<Metric>,
    pub lora: Vec<Metric>,
    pub cache: Vec<Metric>,
}

impl Default for Names {
    /// vLLM, then SGLang, then the two of TensorRT-LLM.
    fn default() -> Self {
        let plain = |name| Metric::built_in(name, &[]);
        let triton =
            |kind| Metric::built_in("nv_trt_llm_request_metrics", &[("request_type", kind)]);
        Self {
            waiting: vec![
                plain("vllm:num_requests_waiting"),
                plain("sglang:num_queue_reqs"),
                plain("trtllm_num_requests_waiting"),
                triton("waiting"),
            ],
            running: vec![
                plain("vllm:num_requests_running"),
                plain("sglang:num_running_reqs"),
                plain("trtllm_num_requests_running"),
                triton("scheduled"),
            ],
            kv_cache: vec![
                plain("vllm:kv_cache_usage_perc"),
                plain("vllm:gpu_cache_usage_perc"),
                plain("sglang:token_usage"),
                plain("trtllm_kv_cache_utilization"),
                Metric::built_in(
                    "nv_trt_llm_kv_cache_block_metrics",
                    &[("kv_cache_block_type", "fraction")],
                ),
            ],
            lora: vec![plain("vllm:lora_requests_info")],
            cache: vec![plain("vllm:cache_config_info"), plain("sglang:cache_config_info")],
        }
    }
}

/// What a page said. `None` where it said nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Figures {
    /// Over all series.
    pub(super) waiting: Option<u32>,
    pub(super) running: Option<u32>,
    /// The mean of all series.
    pub(super) kv: Option<f64>,
    pub(super) lora: Option<Lora>,
    pub(super) cache: Option<Cache>,
}

/// Lines come in pieces; a line that is not over waits for the rest of it.
pub(super) struct Reader<'n> {
    sources: Vec<Source<'n>>,
    unfinished: Vec<u8>,
    /// The line is too long for anything that is wanted.
    overlong: bool,
    lora: Option<(f64, Lora)>,
    cache: Option<Cache>,
}

/// The longest line that is read: names of many adapters.
const MAX_LINE: usize = 1 << 20;

struct Source<'n> {
    figure: Figure,
    metric: &'n Metric,
    sum: f64,
    count: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Figure {
    Waiting,
    Running,
    Kv,
    Lora,
    Cache,
}

impl<'n> Reader<'n> {
    pub(super) fn new(names: &'n Names) -> Self {
        let figures = [
            (Figure::Waiting, &names.waiting),
            (Figure::Running, &names.running),
            (Figure::Kv, &names.kv_cache),
            (Figure::Lora, &names.lora),
            (Figure::Cache, &names.cache),
        ];
        let of = |(figure, metrics): (Figure, &'n Vec<Metric>)| {
            metrics.iter().map(move |metric| Source { figure, metric, sum: 0.0, count: 0 })
        };
        Self {
            sources: figures.into_iter().flat_map(of).collect(),
            unfinished: Vec::new(),
            overlong: false,
            lora: None,
            cache: None,
        }
    }

    pub(super) fn feed(&mut self, mut chunk: &[u8]) {
        while let Some(end) = memchr::memchr(b'\n', chunk) {
            let (line, rest) = (&chunk[..end], &chunk[end + 1..]);
            chunk = rest;
            if self.unfinished.is_empty() && !self.overlong {
                self.line(line);
                continue;
            }
            self.keep(line);
            self.end();
        }
        self.keep(chunk);
    }

    /// The last line may have no end.
    pub(super) fn end(&mut self) {
        let line = std::mem::take(&mut self.unfinished);
        if !std::mem::take(&mut self.overlong) {
            self.line(&line);
        }
    }

    fn keep(&mut self, part: &[u8]) {
        if self.unfinished.len() + part.len() > MAX_LINE {
            self.overlong = true;
            self.unfinished = Vec::new();
        }
        if !self.overlong {
            self.unfinished.extend_from_slice(part);
        }
    }

    pub(super) fn figures(&self) -> Figures {
        let found = |figure| {
            self.sources.iter().find(move |source| source.figure == figure && source.count > 0)
        };
        // Saturates: what is below zero is zero.
        let count = |figure| found(figure).map(|source| source.sum as u32);
        Figures {
            waiting: count(Figure::Waiting),
            running: count(Figure::Running),
            kv: found(Figure::Kv).map(|source| source.sum / f64::from(source.count)),
            lora: self.lora.as_ref().map(|(_, lora)| lora.clone()),
            cache: self.cache,
        }
    }

    fn line(&mut self, line: &[u8]) {
        let line = line.trim_ascii_start();
        let named = |source: &Source<'_>| {
            let rest = line.strip_prefix(source.metric.name.as_bytes());
            matches!(rest, Some([b'{' | b' ' | b'\t', ..]))
        };
        let Some(first) = self.sources.iter().position(named) else { return };
        let Ok(text) = std::str::from_utf8(line) else { return };
        let Some((labels, value)) = series(&text[self.sources[first].metric.name.len()..]) else {
            return;
        };
        for number in first..self.sources.len() {
            let source = &mut self.sources[number];
            let wanted =
                |(key, value): &(String, String)| label(&labels, key) == Some(value.as_str());
            if !named(source) || !source.metric.labels.iter().all(wanted) {
                continue;
            }
            match source.figure {
                Figure::Waiting | Figure::Running | Figure::Kv => {
                    if value.is_finite() {
                        source.sum += value;
                        source.count += 1;
                    }
                }
                Figure::Lora => self.lora(&labels, value),
                Figure::Cache => self.cache(&labels),
            }
        }
    }

    /// The value is the time at which it was so: the latest counts.
    fn lora(&mut self, labels: &[(&str, String)], at: f64) {
        let names = |key| -> Vec<String> {
            let list = label(labels, key).unwrap_or_default().split(',').map(str::trim);
            list.filter(|name| !name.is_empty()).map(str::to_owned).collect()
        };
        let (running, waiting) = (names("running_lora_adapters"), names("waiting_lora_adapters"));
        let later = self.lora.as_ref().is_none_or(|(before, _)| at > *before);
        if running.is_empty() && waiting.is_empty() || at.is_nan() || !later {
            return;
        }
        let max = label(labels, "max_lora").and_then(|max| max.trim().parse().ok()).unwrap_or(0);
        self.lora = Some((at, Lora { running, waiting, max }));
    }

    fn cache(&mut self, labels: &[(&str, String)]) {
        let number = |keys: [&str; 2]| {
            let text = keys.iter().find_map(|key| label(labels, key))?;
            text.trim().parse::<u32>().ok()
        };
        let block_size = number(["block_size", "page_size"]);
        let blocks = number(["num_gpu_blocks", "num_pages"]);
        if self.cache.is_none() && (block_size.is_some() || blocks.is_some()) {
            self.cache =
                Some(Cache { block_size: block_size.unwrap_or(0), blocks: blocks.unwrap_or(0) });
        }
    }
}

fn label<'l>(labels: &'l [(&str, String)], key: &str) -> Option<&'l str> {
    labels.iter().find(|(name, _)| *name == key).map(|(_, value)| value.as_str())
}

/// Labels and value of what stands behind a name. `None` if it is no series.
fn series(text: &str) -> Option<(Vec<(&str, String)>, f64)> {
    let (labels, rest) = match text.strip_prefix('{') {
        Some(inside) => labels(inside)?,
        None => (Vec::new(), text),
    };
    // A time may follow.
    let value = rest.split_ascii_whitespace().next()?;
    Some((labels, value.parse().ok()?))
}

/// Up to and including the closing brace; returns what is behind it.
fn labels(mut rest: &str) -> Option<(Vec<(&str, String)>, &str)> {
    let mut labels = Vec::new();
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        if let Some(behind) = rest.strip_prefix('}') {
            return Some((labels, behind));
        }
        let (key, value) = rest.split_once('=')?;
        let (value, behind) = quoted(value.trim_start().strip_prefix('"')?)?;
        labels.push((key.trim(), value));
        rest = behind;
    }
}

/// Up to the closing quote; returns what is behind it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => match letters.next()?.1 {
                'n' => value.push('\n'),
                other => value.push(other),
            },
            other => value.push(other),
        }
    }
    None
}
