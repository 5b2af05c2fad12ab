use proptest::prelude::*;

use super::*;

const HEAD: &str =
    "apiVersion: inference.networking.x-k8s.io/v1alpha1\nkind: EndpointPickerConfig\n";
const LLM_D_HEAD: &str = "apiVersion: llm-d.ai/v1alpha1\nkind: EndpointPickerConfig\n";

fn gaie(rest: &str) -> Result<Config, Error> {
    Config::parse(&format!("{HEAD}{rest}"))
}

fn llm_d(rest: &str) -> Result<Config, Error> {
    Config::parse(&format!("{LLM_D_HEAD}{rest}"))
}

fn operator(name: &str) -> Config {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../domains/src/model_service/epp_config/");
    Config::parse(&std::fs::read_to_string(format!("{folder}{name}")).unwrap()).unwrap()
}

#[test]
fn the_operators_default_is_ours() {
    let config = operator("default-plugins.yaml");
    let default = Config::default();
    assert_eq!(config.profiles, default.profiles);
    assert_eq!((config.scorers, config.producers), (default.scorers, default.producers));
    assert_eq!(config.handler, default.handler);
    assert!(!config.prepare_data && config.warnings.is_empty(), "{:?}", config.warnings);
}

#[test]
fn the_operators_split_stages_are_read() {
    let config = operator("pd-config.yaml");
    let handler = Handler::Disaggregated {
        decode: "decode".into(),
        prefill: "prefill".into(),
        decider: Decider::PrefixBased { non_cached: 16, prompt: 0 },
        primary_port: 0,
    };
    assert_eq!(config.handler, handler);
    assert!(config.prepare_data && config.warnings.is_empty(), "{:?}", config.warnings);
    assert_eq!(config.prefill_header.as_deref(), Some("prefill"));
    let profile = |name: &str, filter| Profile {
        name: name.into(),
        filters: vec![filter],
        filter_names: vec![Named::by_type(&format!("{name}-filter"))],
        scorers: vec![(0, 2.0), (1, 1.0)],
        choice: Choice { by: By::MaxScore, endpoints: 1 },
        choice_name: Named::by_type("max-score-picker"),
    };
    assert_eq!(
        config.profiles,
        [profile("prefill", Filter::Prefill), profile("decode", Filter::Decode)]
    );
    let prefix = Scorer::Prefix { producer: 0, length_weight: 0.0, length_scale: 8192.0 };
    assert_eq!(config.scorers, [prefix, Scorer::Queue]);
}

#[test]
fn the_other_dialect_is_read() {
    for name in ["default-plugins.llm-d.yaml", "pd-config.llm-d.yaml"] {
        let config = operator(name);
        assert_eq!(config.dialect, Dialect::LlmD, "{name}");
        assert_eq!(config.producers.len(), 1, "{name}");
        assert_eq!(config.producers[0].block_tokens, 64, "{name}");
        assert_eq!(config.producers[0].max, Limit::Tokens(131_072), "{name}");
        assert!(config.warnings.is_empty(), "{name}: {:?}", config.warnings);
    }
    let split = operator("pd-config.llm-d.yaml");
    assert_eq!(split.prefill_header.as_deref(), Some("prefill"));
}

#[test]
fn what_is_not_said_is_assumed() {
    let config = gaie("plugins:\n- type: queue-scorer\n- type: decode-filter\n- type: random-picker\n  parameters: {maxNumOfEndpoints: 3}\n").unwrap();
    let choice = Choice { by: By::Random, endpoints: 3 };
    let profile = Profile {
        name: "default".into(),
        filters: vec![Filter::Decode],
        filter_names: vec![Named::by_type("decode-filter")],
        scorers: vec![(0, 1.0)],
        choice,
        choice_name: Named::by_type("random-picker"),
    };
    assert_eq!(config.profiles, [profile]);
    assert_eq!(config.handler, Handler::Single { primary_port: 0 });

    let config = gaie("plugins:\n- type: random-picker\n- type: queue-scorer\nschedulingProfiles:\n- name: a\n  plugins:\n  - pluginRef: queue-scorer\n").unwrap();
    assert_eq!(config.profiles[0].choice.by, By::Random);
    let config = gaie("plugins: []\n").unwrap();
    assert_eq!(config.profiles[0].choice, Choice { by: By::MaxScore, endpoints: 1 });
    // The other dialect makes the producers that are needed.
    let config = llm_d("plugins:\n- type: prefix-cache-scorer\n").unwrap();
    assert_eq!(config.producers[0].name, "approx-prefix-cache-producer");
}

#[test]
fn parameters_have_defaults() {
    let scorer = |text: &str| gaie(&format!("plugins:\n- {text}\n")).unwrap().scorers[0].clone();
    let active = |seconds| Scorer::ActiveRequests {
        timeout: Duration::from_secs(seconds),
        idle: 0,
        busy: 1.0,
    };
    for (text, want) in [
        ("type: load-aware-scorer", Scorer::LoadAware { threshold: 128 }),
        (
            "{type: load-aware-scorer, parameters: {threshold: -1}}",
            Scorer::LoadAware { threshold: 128 },
        ),
        (
            "{type: load-aware-scorer, parameters: {threshold: 7}}",
            Scorer::LoadAware { threshold: 7 },
        ),
        ("type: active-request-scorer", active(120)),
        ("{type: active-request-scorer, parameters: {requestTimeout: 1m30s}}", active(90)),
        ("type: no-hit-lru-scorer", Scorer::NoHitLru { size: 1024 }),
        ("type: session-affinity-scorer", Scorer::Session),
        ("type: lora-affinity-scorer", Scorer::Lora),
        ("type: running-requests-size-scorer", Scorer::Running),
    ] {
        assert_eq!(scorer(text), want, "{text}");
    }
    let text = "plugins:\n- type: prefix-cache-scorer\n  parameters: {blockSizeTokens: 32, maxPrefixBlocksToMatch: 0, lruCapacityPerServer: 5, autoTune: false}\n";
    let producer = Producer {
        name: "prefix-cache-scorer".into(),
        auto_tune: false,
        block_tokens: 32,
        max: Limit::Blocks(256),
        lru_capacity: 5,
    };
    assert_eq!(gaie(text).unwrap().producers, [producer]);
}

#[test]
fn handlers_find_what_they_name_in_any_order() {
    let profiles = "schedulingProfiles:\n- name: decode\n- name: prefill\n";
    let decider =
        |plugins: &str| match gaie(&format!("plugins:\n{plugins}{profiles}")).unwrap().handler {
            Handler::Disaggregated { decider, .. } => decider,
            Handler::Single { .. } => panic!("one stage"),
        };
    let handler = "- type: pd-profile-handler\n";
    let naming = "- {type: pd-profile-handler, parameters: {deciderPluginName: d}}\n";
    let late = "- {type: prefix-based-pd-decider, name: d, parameters: {nonCachedTokens: 4}}\n";
    assert_eq!(decider(handler), Decider::Always);
    assert_eq!(
        decider(&format!("{naming}{late}")),
        Decider::PrefixBased { non_cached: 4, prompt: 0 }
    );
    let text = "plugins:\n- type: data-parallel-profile-handler\n";
    assert_eq!(gaie(text).unwrap().handler, Handler::Single { primary_port: 8000 });
}

#[test]
fn bad_configurations_are_refused_by_name() {
    let two = "schedulingProfiles:\n- name: a\n- name: b\n";
    for (text, want) in [
        ("featureGates: [warp]\n".to_owned(), "the feature gate \"warp\" is unknown"),
        ("featureGates: [dataLayer]\n".into(), "the feature gate dataLayer needs the field data"),
        ("plugins:\n- name: x\n".into(), "plugin 0 of the list has no type"),
        ("plugins:\n- type: warp-scorer\n".into(), "plugin \"warp-scorer\" has the unknown type \"warp-scorer\""),
        ("plugins:\n- type: queue-scorer\n- type: queue-scorer\n".into(), "the plugin name \"queue-scorer\" is used twice"),
        ("plugins:\n- {type: load-aware-scorer, parameters: {threshold: many}}\n".into(), "plugin \"load-aware-scorer\": the parameter threshold must be a whole number"),
        ("plugins:\n- {type: prefix-cache-scorer, parameters: {blockSize: 64}}\n".into(), "plugin \"prefix-cache-scorer\": the parameter blockSize must be replaced by blockSizeTokens"),
        ("plugins:\n- type: by-label\n".into(), "plugin \"by-label\": the parameter label must be given"),
        ("plugins:\n- {type: by-label, parameters: {label: x}}\n".into(), "plugin \"by-label\": the parameter validValues must be given, or allowsNoLabel true"),
        ("plugins:\n- {type: by-label-selector, parameters: {matchLabel: {}}}\n".into(), "plugin \"by-label-selector\": the parameter matchLabels must be a label selector"),
        ("plugins:\n- type: precise-prefix-cache-scorer\n".into(), "plugin \"precise-prefix-cache-scorer\": precise-prefix-cache-scorer is not supported yet: it needs a tokenizer and the KV events of the engines"),
        ("schedulingProfiles:\n- plugins: []\n".into(), "scheduling profile 0 of the list has no name"),
        ("schedulingProfiles:\n- name: a\n- name: a\n".into(), "the profile name \"a\" is used twice"),
        ("schedulingProfiles:\n- name: a\n  plugins:\n  - pluginRef: none\n".into(), "profile \"a\" refers to the plugin \"none\", which is not declared"),
        ("schedulingProfiles:\n- name: a\n  plugins:\n  - weight: 2\n".into(), "profile \"a\" refers to the plugin \"\", which is not declared"),
        ("plugins:\n- type: random-picker\n- type: max-score-picker\n".into(), "the profile \"default\" has two pickers"),
        (two.into(), "there are several profiles but no profile handler"),
        (format!("plugins:\n- type: single-profile-handler\n{two}"), "the profile handler \"single-profile-handler\" takes exactly one profile, there are 2"),
        (format!("plugins:\n- type: data-parallel-profile-handler\n{two}"), "the profile handler \"data-parallel-profile-handler\" takes exactly one profile, there are 2"),
        (format!("plugins:\n- type: pd-profile-handler\n{two}"), "the profile handler \"pd-profile-handler\" needs the profile \"decode\""),
        ("plugins:\n- type: single-profile-handler\n- type: pd-profile-handler\n".into(), "there are two profile handlers, \"single-profile-handler\" and \"pd-profile-handler\""),
        ("plugins:\n- {type: pd-profile-handler, parameters: {deciderPluginName: d}}\nschedulingProfiles:\n- name: decode\n".into(), "plugin \"pd-profile-handler\" refers to the plugin \"d\", which is not declared"),
        ("plugins:\n- type: queue-scorer\n- {type: pd-profile-handler, parameters: {deciderPluginName: queue-scorer}}\nschedulingProfiles:\n- name: decode\n".into(), "plugin \"pd-profile-handler\" refers to the plugin \"queue-scorer\", which is no decider"),
        ("data:\n  sources:\n  - pluginRef: x\n".into(), "data refers to the plugin \"x\", which is not declared"),
        ("saturationDetector: {metricsStalenessThreshold: soon}\n".into(), "saturationDetector.metricsStalenessThreshold must be a duration like 200ms, got \"soon\""),
    ] {
        assert_eq!(gaie(&text).unwrap_err().to_string(), want, "{text}");
    }
}

#[test]
fn other_documents_and_fields_are_refused() {
    for text in [
        "",
        "kind: EndpointPickerConfig\n",
        "apiVersion: inference.networking.x-k8s.io/v1alpha1\nkind: Pod\n",
        "apiVersion: v2\nkind: EndpointPickerConfig\n",
        &format!("{HEAD}plugin: []\n"),
        &format!("{HEAD}plugins:\n- {{type: queue-scorer, weight: 1}}\n"),
        &format!("{HEAD}plugins: []\nplugins: []\n"),
        &format!("{HEAD}flowControl: {{maxByte: 1}}\n"),
    ] {
        assert!(Config::parse(text).is_err(), "{text}");
    }
}

#[test]
fn unknown_parameters_are_a_warning_or_an_error() {
    let plugin = "plugins:\n- {type: queue-scorer, parameters: {speed: 1}}\n";
    let text = "plugin \"queue-scorer\" has the unknown parameter \"speed\"";
    assert_eq!(gaie(plugin).unwrap().warnings(), [text]);
    assert_eq!(llm_d(plugin).unwrap_err().to_string(), text);
}

#[test]
fn json_is_read_too() {
    let text = r#"{"apiVersion":"inference.networking.x-k8s.io/v1alpha1","kind":"EndpointPickerConfig",
        "plugins":[{"type":"queue-scorer"}],"schedulingProfiles":[{"name":"p","plugins":[{"pluginRef":"queue-scorer","weight":2.5}]}]}"#;
    assert_eq!(Config::parse(text).unwrap().profiles[0].scorers, [(0, 2.5)]);
}

#[test]
fn data_sources_steer_the_scraper() {
    let text = "featureGates: [dataLayer]\nplugins:\n- {type: metrics-data-source, name: s, parameters: {path: /own}}\n- type: model-server-protocol-metrics\ndata:\n  sources:\n  - pluginRef: s\n    extractors:\n    - pluginRef: model-server-protocol-metrics\n";
    let config = gaie(text).unwrap();
    assert_eq!((config.metrics_path(), config.warnings()), (Some("/own"), &[][..]));
    let text = "plugins:\n- {type: file-discovery, parameters: {path: /e, watchFile: true}}\n";
    let file = EndpointsFile { path: "/e".into(), watch: true };
    assert_eq!(llm_d(text).unwrap().endpoints_file(), Some(&file));
}

#[test]
fn thresholds_out_of_range_mean_the_default() {
    let read = |text: &str| gaie(&format!("saturationDetector: {text}\n")).unwrap().saturation;
    let given =
        Saturation { queue_depth: 7.0, kv_cache: 0.5, staleness: Some(Duration::from_millis(300)) };
    assert_eq!(
        read(
            "{queueDepthThreshold: 7, kvCacheUtilThreshold: 0.5, metricsStalenessThreshold: 300ms}"
        ),
        given
    );
    assert_eq!(read("{queueDepthThreshold: 0, kvCacheUtilThreshold: 1.0}"), Saturation::default());
}

#[test]
fn durations_are_read_as_go_writes_them() {
    for (text, want) in [
        ("200ms", Some(Duration::from_millis(200))),
        ("1h30m", Some(Duration::from_secs(5_400))),
        ("1.5s", Some(Duration::from_millis(1_500))),
        ("0", Some(Duration::ZERO)),
        ("", None),
        ("5", None),
        ("s", None),
        ("-1s", None),
        ("1d", None),
        ("99999999999999999999h", None),
    ] {
        assert_eq!(raw::duration(text), want, "{text}");
    }
}

/// Pieces of which configurations are made, put together at random.
fn any_config() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("plugins:\n"),
        Just("- type: prefix-cache-scorer\n"),
        Just("- type: pd-profile-handler\n"),
        Just("- type: disagg-profile-handler\n"),
        Just("- {type: max-score-picker, parameters: {maxNumOfEndpoints: -3}}\n"),
        Just("- {type: active-request-scorer, parameters: {requestTimeout: 1e9h}}\n"),
        Just(
            "- {type: by-label-selector, parameters: {matchExpressions: [{key: a, operator: In}]}}\n"
        ),
        Just("schedulingProfiles:\n"),
        Just("- name: decode\n"),
        Just("  plugins:\n"),
        Just("  - pluginRef: prefix-cache-scorer\n"),
        Just("    weight: .nan\n"),
        Just("featureGates: [prepareDataPlugins, dataLayer]\n"),
        Just("saturationDetector: {queueDepthThreshold: -1}\n"),
    ];
    proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_text_is_read_without_failing(text in "\\PC{0,120}") {
        let _ = Config::parse(&text);
    }

    #[test]
    fn any_pieces_are_read_without_failing(rest in any_config(), llm in any::<bool>()) {
        let read = if llm { llm_d(&rest) } else { gaie(&rest) };
        if let Ok(config) = read {
            // What is parsed is whole: every number leads somewhere.
            prop_assert!(!config.profiles.is_empty());
            for profile in &config.profiles {
                prop_assert!(profile.choice.endpoints > 0);
                prop_assert!(profile.scorers.iter().all(|(scorer, _)| *scorer < config.scorers.len()));
            }
            for scorer in &config.scorers {
                if let Scorer::Prefix { producer, .. } = scorer {
                    prop_assert!(*producer < config.producers.len());
                }
            }
        }
    }
}
