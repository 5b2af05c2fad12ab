use std::collections::BTreeMap;

use proptest::prelude::*;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    sync::watch,
};

use super::*;
use crate::{
    Config, Endpoint,
    endpoint::{Cache, Load, Lora},
    picker,
};

fn read(page: &str) -> Figures {
    let names = Names::default();
    let mut reader = Reader::new(&names);
    reader.feed(page.as_bytes());
    reader.end();
    reader.figures()
}

const VLLM: &str = r#"# HELP vllm:num_requests_waiting Number of requests waiting.
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="m"} 3.0
vllm:num_requests_waiting{engine="1",model_name="m"} 4.9
vllm:num_requests_running{model_name="m"} 2.0
vllm:num_requests_running_other{model_name="m"} 99
vllm:kv_cache_usage_perc{engine="0"} 0.25
vllm:kv_cache_usage_perc{engine="1"} 0.75 1700000000000
vllm:gpu_cache_usage_perc 0.9
vllm:lora_requests_info{max_lora="4",running_lora_adapters="old",waiting_lora_adapters=""} 1.7e+09
vllm:lora_requests_info{max_lora="4",running_lora_adapters="a, b",waiting_lora_adapters="c"} 1.8e+09
vllm:lora_requests_info{max_lora="0",running_lora_adapters="",waiting_lora_adapters=""} 1.9e+09
vllm:cache_config_info{block_size="16",cache_dtype="au\"to,\n\\}",num_gpu_blocks="2048"} 1.0
"#;

#[test]
fn a_page_of_vllm_is_read() {
    let texts = |names: &[&str]| names.iter().map(ToString::to_string).collect();
    let want = Figures {
        waiting: Some(7),
        running: Some(2),
        kv: Some(0.5),
        lora: Some(Lora { running: texts(&["a", "b"]), waiting: texts(&["c"]), max: 4 }),
        cache: Some(Cache { block_size: 16, blocks: 2048 }),
    };
    assert_eq!(read(VLLM), want);
}

#[test]
fn other_engines_and_older_names_are_read() {
    let load = |waiting, running, kv| Figures {
        waiting: Some(waiting),
        running: Some(running),
        kv: Some(kv),
        ..Figures::default()
    };
    for (page, want) in [
        (
            "vllm:num_requests_waiting 1\nvllm:num_requests_running 2\nvllm:gpu_cache_usage_perc 0.5",
            load(1, 2, 0.5),
        ),
        (
            "sglang:num_queue_reqs{a=\"b\"} 1\nsglang:num_running_reqs 2\nsglang:token_usage 0.5\n",
            load(1, 2, 0.5),
        ),
        (
            "trtllm_num_requests_waiting 1\ntrtllm_num_requests_running 2\ntrtllm_kv_cache_utilization 0.5\n",
            load(1, 2, 0.5),
        ),
        (
            "nv_trt_llm_request_metrics{request_type=\"waiting\"} 1\nnv_trt_llm_request_metrics{request_type=\"scheduled\"} 2\nnv_trt_llm_request_metrics{request_type=\"max\"} 64\nnv_trt_llm_kv_cache_block_metrics{kv_cache_block_type=\"fraction\"} 0.5\nnv_trt_llm_kv_cache_block_metrics{kv_cache_block_type=\"used\"} 5\n",
            load(1, 2, 0.5),
        ),
        (
            "sglang:num_queue_reqs 9\nvllm:num_requests_waiting 1\nvllm:num_requests_running 2\nvllm:kv_cache_usage_perc 0.5\n",
            load(1, 2, 0.5),
        ),
    ] {
        assert_eq!(read(page), want, "{page}");
    }
    let cache = read("sglang:cache_config_info{page_size=\"1\",num_pages=\"9\"} 1\n").cache;
    assert_eq!(cache, Some(Cache { block_size: 1, blocks: 9 }));
}

#[test]
fn odd_values_do_no_harm() {
    for (line, want) in [
        ("vllm:num_requests_waiting -3", Some(0)),
        ("vllm:num_requests_waiting 1e300", Some(u32::MAX)),
        ("vllm:num_requests_waiting NaN", None),
        ("vllm:num_requests_waiting +Inf", None),
        ("vllm:num_requests_waiting", None),
        ("vllm:num_requests_waiting{", None),
        ("vllm:num_requests_waiting{a=\"b} 1", None),
        ("vllm:num_requests_waiting{a=b} 1", None),
        ("vllm:num_requests_waiting{a=\"b\",} 1", Some(1)),
        ("vllm:num_requests_waiting{} 1", Some(1)),
        ("\tvllm:num_requests_waiting\t1\r", Some(1)),
    ] {
        assert_eq!(read(line).waiting, want, "{line}");
    }
}

#[test]
fn metrics_can_be_named() {
    let metric = |name: &str, labels: &[(&str, &str)]| Some(Metric::built_in(name, labels));
    for (text, want) in [
        ("a:b_1", metric("a:b_1", &[])),
        ("a{x=y, z=\"w\"}", metric("a", &[("x", "y"), ("z", "w")])),
        ("a{}", metric("a", &[])),
        ("", None),
        ("a{x}", None),
        ("a{x=y", None),
        ("a b", None),
    ] {
        assert_eq!(Metric::parse(text), want, "{text}");
    }
}

#[test]
fn a_silent_endpoint_is_asked_less_often() {
    let settings = Settings::default();
    for (rests, failures, want) in [
        (false, 0, 50),
        (true, 0, 1_000),
        (false, 1, 100),
        (false, 3, 400),
        (false, 99, 1_000),
        (true, 99, 1_000),
    ] {
        assert_eq!(pause(&settings, rests, failures), Duration::from_millis(want));
    }
    assert_eq!(pause(&settings.fixed(), true, 0), Duration::from_millis(50));
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_failing(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let names = Names::default();
        let mut reader = Reader::new(&names);
        reader.feed(&bytes);
        reader.end();
        reader.figures();
    }

    #[test]
    fn any_series_is_read_without_failing(
        tail in r#"[{}=",\\ a-z0-9.+\-én\t]{0,60}"#,
        name in "vllm:(num_requests_waiting|lora_requests_info|cache_config_info)",
    ) {
        read(&format!("{name}{tail}\n"));
        Metric::parse(&format!("{name}{tail}"));
    }

    #[test]
    fn labels_survive(value in any::<String>(), waiting in 0_u32..1_000_000) {
        let escaped = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let page = format!("x{{v=\"{escaped}\"}} 1\nvllm:num_requests_waiting{{v=\"{escaped}\"}} {waiting}\n");
        prop_assert_eq!(read(&page).waiting, Some(waiting));
    }

    #[test]
    fn it_does_not_matter_where_the_page_is_cut(cuts in proptest::collection::vec(0..VLLM.len(), 0..8)) {
        let mut cuts = cuts;
        cuts.sort_unstable();
        let names = Names::default();
        let mut reader = Reader::new(&names);
        let mut from = 0;
        for cut in cuts.into_iter().chain([VLLM.len()]) {
            reader.feed(&VLLM.as_bytes()[from..cut]);
            from = cut;
        }
        reader.end();
        prop_assert_eq!(reader.figures(), read(VLLM));
    }
}

/// Answers every request on every connection with the page, in two pieces, and counts connections
/// and requests.
async fn serve(
    listener: TcpListener,
    status: &'static str,
    page: &'static str,
    count: watch::Sender<(usize, usize)>,
) {
    let mut tasks = JoinSet::new();
    while let Ok((mut stream, _)) = listener.accept().await {
        count.send_modify(|(connections, _)| *connections += 1);
        let count = count.clone();
        tasks.spawn(async move {
            let mut buffer = [0; 4096];
            while stream.read(&mut buffer).await.is_ok_and(|length| length > 0) {
                count.send_modify(|(_, requests)| *requests += 1);
                let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n", page.len());
                let (first, second) = page.split_at(page.len() / 2);
                for part in [&head, first, second] {
                    if stream.write_all(part.as_bytes()).await.is_err() {
                        return;
                    }
                }
            }
        });
    }
}

#[tokio::test]
async fn figures_of_all_endpoints_are_kept_fresh() {
    let picker = Picker::new(Config::default(), picker::Settings::default());
    let mut endpoints = Vec::new();
    let mut servers = JoinSet::new();
    let mut counts = Vec::new();
    for (index, status) in ["200 OK", "500 Oh"].into_iter().enumerate() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let name = format!("p{index}");
        let labels = BTreeMap::new();
        endpoints.push(Endpoint { namespace: "n".into(), name, address, metrics: address, labels });
        let (sender, count) = watch::channel((0, 0));
        counts.push(count);
        servers.spawn(serve(listener, status, VLLM, sender));
    }
    let settings = Settings { idle: Duration::from_millis(5), ..Settings::default() };
    let mut scraper = JoinSet::new();
    scraper.spawn(run(picker.clone(), settings));
    picker.set_endpoints(endpoints);
    // Whoever asks again has taken in the answer before.
    for count in &mut counts {
        let asked = count.wait_for(|(_, requests)| *requests >= 3);
        timeout(Duration::from_secs(20), asked).await.expect("is asked in time").unwrap();
    }
    let state = |index: usize| picker.members()[index].state.clone();
    assert_eq!(state(0).load(), Load { waiting: 7, running: 2, kv: 0.5 });
    assert!(state(0).updated().is_some());
    assert_eq!(state(1).updated(), None);
    assert_eq!(counts[0].borrow().0, 1, "the connection is kept");
}
