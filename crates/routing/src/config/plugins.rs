//! What each type of plugin is.

use std::time::Duration;

use super::{
    By, Choice, Decider, Dialect, EndpointsFile, Error, Filter, Limit, Named, Producer, Scorer,
    Selector, params::Params, raw,
};

/// A plugin by what it does.
pub(super) enum Role {
    Handler(Handler),
    Decider(Decider),
    Filter(Filter),
    Scorer(Scorer),
    /// A scorer that is its own producer.
    PrefixScorer(Producer),
    /// A scorer of what another plugin produces; without a name, of the only one.
    ProducedPrefixScorer {
        producer: Option<String>,
        length_weight: f64,
        length_scale: f64,
    },
    Producer(Producer),
    Choice(Choice),
    PrefillHeader {
        profile: String,
    },
    ServedVerifier,
    EndpointsFile(EndpointsFile),
    MetricsSource {
        path: Option<String>,
    },
    /// Part of what is built in here.
    BuiltIn,
}

/// A profile handler whose references are not looked up yet.
pub(super) enum Handler {
    Single,
    DataParallel { primary_port: u16 },
    Disaggregated { decode: String, prefill: String, decider: Option<String>, primary_port: u16 },
}

pub(super) struct Plugin {
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) role: Role,
}

impl Plugin {
    pub(super) fn named(&self) -> Named {
        Named { kind: self.kind.clone(), name: self.name.clone() }
    }
}

pub(super) fn plugin(
    raw: raw::Plugin,
    dialect: Dialect,
    warnings: &mut Vec<String>,
) -> Result<Plugin, Error> {
    let kind = raw.kind;
    let name = raw.name.filter(|name| !name.is_empty()).unwrap_or_else(|| kind.clone());
    let mut params = Params::new(&name, raw.parameters.unwrap_or_default());
    let role = match unsupported(&kind) {
        Some(reason) => return Err(Error::Unsupported { name, kind, reason }),
        None => role(&kind, &name, dialect, &mut params)?,
    };
    let Some(role) = role else { return Err(Error::UnknownType { name, kind }) };
    params.end(dialect, warnings)?;
    if let Some(successor) = deprecated(&kind, dialect) {
        warnings.push(format!("plugin {name:?}: {kind} is deprecated, use {successor}"));
    }
    Ok(Plugin { name, kind, role })
}

fn unsupported(kind: &str) -> Option<&'static str> {
    match kind {
        "precise-prefix-cache-scorer" => {
            Some("it needs a tokenizer and the KV events of the engines")
        }
        "predicted-latency-scorer" => Some("it needs a latency predictor"),
        "always-disagg-multimodal-decider" => Some("there is no encode stage"),
        _ => None,
    }
}

fn deprecated(kind: &str, dialect: Dialect) -> Option<&'static str> {
    match (dialect, kind) {
        (Dialect::LlmD, "pd-profile-handler") => Some("disagg-profile-handler"),
        (Dialect::LlmD, "disagg-headers-handler" | "prefill-header-handler") => {
            Some("disagg-profile-handler, which sets the headers itself")
        }
        (Dialect::LlmD, "by-label" | "by-label-selector") => Some("label-selector-filter"),
        _ => None,
    }
}

/// `None` for a type that does not exist.
fn role(
    kind: &str,
    name: &str,
    dialect: Dialect,
    params: &mut Params,
) -> Result<Option<Role>, Error> {
    Ok(Some(match kind {
        "single-profile-handler" => Role::Handler(Handler::Single),
        "data-parallel-profile-handler" => {
            Role::Handler(Handler::DataParallel { primary_port: params.port("primaryPort", 8000)? })
        }
        "pd-profile-handler" => Role::Handler(pd_handler(params)?),
        "disagg-profile-handler" => Role::Handler(disagg_handler(name, kind, params)?),
        "always-disagg-pd-decider" => Role::Decider(Decider::Always),
        "prefix-based-pd-decider" => Role::Decider(prefix_decider(dialect, params)?),
        "prefill-header-handler" | "disagg-headers-handler" => {
            let profile = params.text("prefillProfile")?.unwrap_or_else(|| "prefill".into());
            Role::PrefillHeader { profile }
        }
        "decode-filter" => Role::Filter(Filter::Decode),
        "prefill-filter" => Role::Filter(Filter::Prefill),
        "encode-filter" => Role::Filter(Filter::Encode),
        "by-label" => Role::Filter(by_label(params)?),
        "by-label-selector" | "label-selector-filter" => Role::Filter(by_selector(params)?),
        "header-based-testing-filter" => Role::Filter(Filter::Header),
        "max-score-picker" => choice(By::MaxScore, params)?,
        "random-picker" => choice(By::Random, params)?,
        "weighted-random-picker" => choice(By::WeightedRandom, params)?,
        "destination-endpoint-served-verifier" => Role::ServedVerifier,
        "approx-prefix-cache-producer" => Role::Producer(producer(name, params)?),
        "prefix-cache-scorer" => prefix_scorer(name, dialect, params)?,
        "metrics-data-source" | "models-data-source" => data_source(name, kind, params)?,
        "model-server-protocol-metrics" | "core-metrics-extractor" => {
            params.rest();
            Role::BuiltIn
        }
        "model-server-protocol-models" | "inflight-load-producer" => Role::BuiltIn,
        "token-producer" => token_producer(name, kind, params)?,
        "file-discovery" => {
            let path = params.text("path")?.ok_or_else(|| params.bad("path", "given"))?;
            Role::EndpointsFile(EndpointsFile { path, watch: params.bool("watchFile", false)? })
        }
        _ => return Ok(scorer(kind, name, params)?.map(Role::Scorer)),
    }))
}

fn scorer(kind: &str, name: &str, params: &mut Params) -> Result<Option<Scorer>, Error> {
    Ok(Some(match kind {
        "queue-scorer" => Scorer::Queue,
        "running-requests-size-scorer" => Scorer::Running,
        "kv-cache-utilization-scorer" => Scorer::KvCache,
        "load-aware-scorer" => {
            let threshold = params.size("threshold", 128)?;
            Scorer::LoadAware { threshold: u32::try_from(threshold).unwrap_or(u32::MAX) }
        }
        "lora-affinity-scorer" => Scorer::Lora,
        "session-affinity-scorer" => {
            params.ignore_names();
            match params.text("strategy")?.as_deref() {
                None | Some("encoded_endpoint_header") => Scorer::Session,
                Some("session_id") => {
                    let reason = "the strategy session_id is not known here";
                    let (name, kind) = (name.to_owned(), kind.to_owned());
                    return Err(Error::Unsupported { name, kind, reason });
                }
                Some(_) => {
                    return Err(params.bad("strategy", "encoded_endpoint_header or session_id"));
                }
            }
        }
        "active-request-scorer" => {
            params.ignore_names();
            let idle = params.int("idleThreshold")?.unwrap_or(0);
            Scorer::ActiveRequests {
                timeout: params.duration("requestTimeout", Duration::from_secs(120))?,
                idle: u32::try_from(idle.max(0)).unwrap_or(u32::MAX),
                busy: params.float("maxBusyScore")?.unwrap_or(1.0),
            }
        }
        "no-hit-lru-scorer" => {
            params.ignore_names();
            Scorer::NoHitLru { size: params.size("lruSize", 1024)? }
        }
        _ => return Ok(None),
    }))
}

fn pd_handler(params: &mut Params) -> Result<Handler, Error> {
    let decider = params.text("deciderPluginName")?;
    params.text("prefixPluginType")?;
    params.text("prefixPluginName")?;
    Ok(Handler::Disaggregated {
        decode: params.text("decodeProfile")?.unwrap_or_else(|| "decode".into()),
        prefill: params.text("prefillProfile")?.unwrap_or_else(|| "prefill".into()),
        decider,
        primary_port: params.port("primaryPort", 0)?,
    })
}

fn disagg_handler(name: &str, kind: &str, params: &mut Params) -> Result<Handler, Error> {
    let mut profiles = params.object("profiles")?;
    let mut deciders = params.object("deciders")?;
    if profiles.text("encode")?.is_some() || deciders.text("encode")?.is_some() {
        let (name, kind) = (name.to_owned(), kind.to_owned());
        return Err(Error::Unsupported { name, kind, reason: "there is no encode stage" });
    }
    match params.text("stageOrder")?.as_deref() {
        None | Some("decode-first") => {}
        Some(_) => return Err(params.bad("stageOrder", "decode-first")),
    }
    let handler = Handler::Disaggregated {
        decode: profiles.text("decode")?.unwrap_or_else(|| "decode".into()),
        prefill: profiles.text("prefill")?.unwrap_or_else(|| "prefill".into()),
        decider: deciders.text("prefill")?,
        primary_port: params.port("primaryPort", 0)?,
    };
    profiles.end(Dialect::LlmD, &mut Vec::new())?;
    deciders.end(Dialect::LlmD, &mut Vec::new())?;
    Ok(handler)
}

fn prefix_decider(dialect: Dialect, params: &mut Params) -> Result<Decider, Error> {
    params.ignore_names();
    let non_cached = params.int("nonCachedTokens")?.unwrap_or(0);
    let prompt = match dialect {
        Dialect::Gaie => 0,
        Dialect::LlmD => params.int("promptTokens")?.unwrap_or(0),
    };
    Ok(Decider::PrefixBased { non_cached, prompt })
}

fn by_label(params: &mut Params) -> Result<Filter, Error> {
    let label = params.text("label")?.ok_or_else(|| params.bad("label", "given"))?;
    let values = params.texts("validValues")?;
    let absent = params.bool("allowsNoLabel", false)?;
    if values.is_empty() && !absent {
        return Err(params.bad("validValues", "given, or allowsNoLabel true"));
    }
    Ok(Filter::Label { label, values, absent })
}

fn by_selector(params: &mut Params) -> Result<Filter, Error> {
    let selector: Result<Selector, _> = serde_json::from_value(params.rest());
    let selector = selector.ok().filter(Selector::is_valid);
    selector.map(Filter::Selector).ok_or_else(|| params.bad("matchLabels", "a label selector"))
}

fn choice(by: By, params: &mut Params) -> Result<Role, Error> {
    Ok(Role::Choice(Choice { by, endpoints: params.size("maxNumOfEndpoints", 1)? }))
}

fn prefix_scorer(name: &str, dialect: Dialect, params: &mut Params) -> Result<Role, Error> {
    if dialect == Dialect::LlmD {
        return Ok(Role::ProducedPrefixScorer {
            producer: params.text("prefixMatchInfoProducerName")?,
            length_weight: params.float("matchLengthWeight")?.unwrap_or(0.0),
            length_scale: params
                .float("matchLengthScaleTokens")?
                .filter(|scale| *scale > 0.0)
                .unwrap_or(8192.0),
        });
    }
    let tokens = params.int("blockSizeTokens")?;
    if params.int("blockSize")?.is_some() && tokens.is_none() {
        return Err(params.bad("blockSize", "replaced by blockSizeTokens"));
    }
    let default = Producer::gaie(name);
    let tokens = tokens.and_then(|tokens| usize::try_from(tokens).ok()).filter(|size| *size > 0);
    Ok(Role::PrefixScorer(Producer {
        block_tokens: tokens.unwrap_or(default.block_tokens),
        auto_tune: params.bool("autoTune", true)?,
        max: Limit::Blocks(params.size("maxPrefixBlocksToMatch", 256)?),
        lru_capacity: params.size("lruCapacityPerServer", default.lru_capacity)?,
        ..default
    }))
}

fn producer(name: &str, params: &mut Params) -> Result<Producer, Error> {
    params.ignore_names();
    let default = Producer::llm_d(name);
    let limit = |given: Option<i64>, default: usize| {
        given.map_or(default, |limit| usize::try_from(limit).unwrap_or(0))
    };
    let tokens = limit(params.int("maxPrefixTokensToMatch")?, 131_072);
    let blocks = limit(params.int("maxPrefixBlocksToMatch")?, 2048);
    Ok(Producer {
        auto_tune: params.bool("autoTune", true)?,
        block_tokens: params.size("blockSizeTokens", default.block_tokens)?,
        max: match (tokens, blocks) {
            (0, 0) => Limit::None,
            (0, blocks) => Limit::Blocks(blocks),
            (tokens, _) => Limit::Tokens(tokens),
        },
        lru_capacity: params.size("lruCapacityPerServer", default.lru_capacity)?,
        ..default
    })
}

fn data_source(name: &str, kind: &str, params: &mut Params) -> Result<Role, Error> {
    params.bool("insecureSkipVerify", true)?;
    let path = params.text("path")?;
    match params.text("scheme")?.as_deref() {
        None | Some("http") => {}
        Some("https") => {
            let reason = "metrics are read over plain HTTP only";
            let (name, kind) = (name.to_owned(), kind.to_owned());
            return Err(Error::Unsupported { name, kind, reason });
        }
        Some(_) => return Err(params.bad("scheme", "http or https")),
    }
    // The names of models are not asked for.
    Ok(if kind == "metrics-data-source" { Role::MetricsSource { path } } else { Role::BuiltIn })
}

fn token_producer(name: &str, kind: &str, params: &mut Params) -> Result<Role, Error> {
    match params.text("backend")?.as_deref() {
        None | Some("estimate") => Ok(Role::BuiltIn),
        Some("vllm") => {
            let reason = "the backend vllm asks another server for the tokens";
            let (name, kind) = (name.to_owned(), kind.to_owned());
            Err(Error::Unsupported { name, kind, reason })
        }
        Some(_) => Err(params.bad("backend", "estimate or vllm")),
    }
}
