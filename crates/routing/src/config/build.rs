//! Plugins put together: profiles, their handler, and what is assumed when nothing is said.

use std::collections::BTreeMap;

use super::{
    By, Choice, Config, Decider, Dialect, Error, Handler, Named, Producer, Profile, Saturation,
    Scorer,
    plugins::{self, Plugin, Role},
    raw::{self, Raw},
};

/// What profiles are made from.
struct Parts {
    plugins: Vec<Plugin>,
    producers: Vec<Producer>,
    scorers: Vec<Scorer>,
    scorer_names: Vec<Named>,
    /// From the number of a plugin to that of its scorer.
    scorer_of: BTreeMap<usize, usize>,
}

pub(super) fn config(raw: Raw) -> Result<Config, Error> {
    let mut warnings = Vec::new();
    let gates = gates(&raw, &mut warnings)?;
    let plugins = plugins(&raw, raw.dialect, &mut warnings)?;
    check_references(&raw, &plugins)?;
    if raw.parser.is_some() {
        warnings.push("the field parser is deprecated, use requestHandler.parsers".into());
    }
    let parsers = raw.request_handler.as_ref().and_then(|handler| handler.parsers.as_ref());
    if parsers.is_some_and(|parsers| !parsers.is_empty()) {
        warnings.push("requestHandler.parsers is ignored, the parsers are built in".into());
    }
    let mut parts = parts(plugins, raw.dialect)?;
    let profiles = profiles(raw.scheduling_profiles.unwrap_or_default(), &parts, &mut warnings)?;
    let handler = handler(&parts, &profiles)?;
    let needs_data =
        matches!(&handler, Handler::Disaggregated { decider: Decider::PrefixBased { .. }, .. });
    // In this dialect producers are made for whoever needs them.
    if raw.dialect == Dialect::LlmD && needs_data && parts.producers.is_empty() {
        parts.producers.push(Producer::llm_d("approx-prefix-cache-producer"));
    }
    let saturation = raw.saturation_detector.as_ref().map(raw::Detector::saturation);
    Ok(Config {
        dialect: raw.dialect,
        prepare_data: gates.prepare_data || raw.dialect == Dialect::LlmD,
        prefill_header: prefill_header(&parts.plugins, &handler),
        served_verifier: parts
            .plugins
            .iter()
            .any(|plugin| matches!(plugin.role, Role::ServedVerifier)),
        endpoints_file: parts.plugins.iter().find_map(|plugin| match &plugin.role {
            Role::EndpointsFile(file) => Some(file.clone()),
            _ => None,
        }),
        metrics_path: parts.plugins.iter().find_map(|plugin| match &plugin.role {
            Role::MetricsSource { path } => path.clone(),
            _ => None,
        }),
        saturation: saturation.transpose()?.unwrap_or_else(Saturation::default),
        producers: parts.producers,
        scorers: parts.scorers,
        scorer_names: parts.scorer_names,
        profiles,
        handler,
        warnings,
    })
}

struct Gates {
    prepare_data: bool,
}

fn gates(raw: &Raw, warnings: &mut Vec<String>) -> Result<Gates, Error> {
    let mut gates = Gates { prepare_data: false };
    for gate in raw.feature_gates.iter().flatten() {
        let own = match gate.as_str() {
            "flowControl" => {
                warnings
                    .push("the gate flowControl has no effect yet, requests do not queue".into());
                continue;
            }
            "prepareDataPlugins" => {
                gates.prepare_data = true;
                Dialect::Gaie
            }
            "dataLayer" if raw.data.is_none() && raw.dialect == Dialect::Gaie => {
                return Err(Error::NoData);
            }
            "dataLayer" => Dialect::Gaie,
            "haPopulateNonLeaderDatastore" => Dialect::LlmD,
            _ => return Err(Error::Gate(gate.clone())),
        };
        if own != raw.dialect {
            warnings.push(format!("the gate {gate} means nothing in this apiVersion"));
        }
    }
    Ok(gates)
}

fn plugins(raw: &Raw, dialect: Dialect, warnings: &mut Vec<String>) -> Result<Vec<Plugin>, Error> {
    let mut plugins: Vec<Plugin> = Vec::new();
    for (index, entry) in raw.plugins.iter().flatten().enumerate() {
        if entry.kind.is_empty() {
            return Err(Error::NoType(index));
        }
        let entry = raw::Plugin {
            kind: entry.kind.clone(),
            name: entry.name.clone(),
            parameters: entry.parameters.clone(),
        };
        let plugin = plugins::plugin(entry, dialect, warnings)?;
        if plugins.iter().any(|other| other.name == plugin.name) {
            return Err(Error::DuplicatePlugin(plugin.name));
        }
        plugins.push(plugin);
    }
    Ok(plugins)
}

/// References from outside the profiles.
fn check_references(raw: &Raw, plugins: &[Plugin]) -> Result<(), Error> {
    let mut used: Vec<(&str, &str)> = Vec::new();
    for (field, layer) in [("data", &raw.data), ("dataLayer", &raw.data_layer)] {
        let Some(layer) = layer else { continue };
        for source in layer.sources.iter().flatten() {
            used.push((field, &source.plugin_ref));
            let extractors = source.extractors.iter().flatten();
            used.extend(extractors.map(|extractor| (field, extractor.plugin_ref.as_str())));
        }
        used.extend(layer.discovery.iter().map(|discovery| (field, discovery.plugin_ref.as_str())));
    }
    let detector =
        raw.saturation_detector.as_ref().and_then(|detector| detector.plugin_ref.as_ref());
    used.extend(detector.map(|plugin| ("saturationDetector", plugin.as_str())));
    let detector = raw.flow_control.as_ref().and_then(|flow| flow.saturation_detector.as_ref());
    used.extend(detector.map(|detector| ("flowControl", detector.plugin_ref.as_str())));
    for (user, name) in used {
        find(plugins, user, name)?;
    }
    Ok(())
}

fn find(plugins: &[Plugin], user: &str, name: &str) -> Result<usize, Error> {
    let missing = || Error::Undefined { user: user.into(), plugin: name.into() };
    plugins.iter().position(|plugin| plugin.name == name).ok_or_else(missing)
}

fn parts(plugins: Vec<Plugin>, dialect: Dialect) -> Result<Parts, Error> {
    let (mut producers, mut scorers, mut scorer_of) = (Vec::new(), Vec::new(), BTreeMap::new());
    let mut scorer_names = Vec::new();
    for plugin in &plugins {
        if let Role::Producer(producer) = &plugin.role {
            producers.push(producer.clone());
        }
    }
    for (index, plugin) in plugins.iter().enumerate() {
        let scorer = match &plugin.role {
            Role::Scorer(scorer) => scorer.clone(),
            Role::PrefixScorer(producer) => {
                producers.push(producer.clone());
                let producer = producers.len() - 1;
                Scorer::Prefix { producer, length_weight: 0.0, length_scale: 8192.0 }
            }
            Role::ProducedPrefixScorer { producer, length_weight, length_scale } => {
                if producers.is_empty() && producer.is_none() {
                    producers.push(Producer::llm_d("approx-prefix-cache-producer"));
                }
                let named =
                    |other: &Producer| producer.as_ref().is_none_or(|name| *name == other.name);
                let missing = || Error::Undefined {
                    user: format!("plugin {:?}", plugin.name),
                    plugin: producer.clone().unwrap_or_default(),
                };
                let producer = producers.iter().position(named).ok_or_else(missing)?;
                let (length_weight, length_scale) = (*length_weight, *length_scale);
                Scorer::Prefix { producer, length_weight, length_scale }
            }
            _ => continue,
        };
        scorer_of.insert(index, scorers.len());
        scorers.push(scorer);
        scorer_names.push(plugin.named());
    }
    if dialect == Dialect::LlmD {
        for producer in &mut producers {
            // Smaller blocks would make more hashes than they are worth.
            producer.block_tokens = producer.block_tokens.max(64);
        }
    }
    Ok(Parts { plugins, producers, scorers, scorer_names, scorer_of })
}

fn profiles(
    given: Vec<raw::Profile>,
    parts: &Parts,
    warnings: &mut Vec<String>,
) -> Result<Vec<Profile>, Error> {
    if given.is_empty() {
        let all: Vec<_> = (0..parts.plugins.len()).map(|index| (index, None)).collect();
        return Ok(vec![profile("default".into(), &all, parts, &mut Vec::new())?]);
    }
    let mut profiles: Vec<Profile> = Vec::new();
    for (index, entry) in given.into_iter().enumerate() {
        if entry.name.is_empty() {
            return Err(Error::NoProfileName(index));
        }
        if profiles.iter().any(|other| other.name == entry.name) {
            return Err(Error::DuplicateProfile(entry.name));
        }
        let mut used = Vec::new();
        for reference in entry.plugins.iter().flatten() {
            let user = format!("profile {:?}", entry.name);
            used.push((find(&parts.plugins, &user, &reference.plugin_ref)?, reference.weight));
        }
        profiles.push(profile(entry.name, &used, parts, warnings)?);
    }
    Ok(profiles)
}

fn profile(
    name: String,
    used: &[(usize, Option<f64>)],
    parts: &Parts,
    warnings: &mut Vec<String>,
) -> Result<Profile, Error> {
    let (mut filters, mut scorers, mut choice) = (Vec::new(), Vec::new(), None);
    let mut filter_names = Vec::new();
    for (index, weight) in used {
        let Some(plugin) = parts.plugins.get(*index) else { continue };
        match &plugin.role {
            Role::Filter(filter) => {
                filters.push(filter.clone());
                filter_names.push(plugin.named());
            }
            Role::Choice(_) if choice.is_some() => return Err(Error::TwoPickers(name)),
            Role::Choice(own) => choice = Some((*own, plugin.named())),
            _ => match parts.scorer_of.get(index) {
                Some(scorer) => scorers.push((*scorer, weight.unwrap_or(1.0))),
                None => warnings.push(format!(
                    "profile {name:?}: {:?} ({}) does nothing in a profile",
                    plugin.name, plugin.kind
                )),
            },
        }
    }
    let configured = parts.plugins.iter().find_map(|plugin| match plugin.role {
        Role::Choice(choice) => Some((choice, plugin.named())),
        _ => None,
    });
    let assumed =
        || (Choice { by: By::MaxScore, endpoints: 1 }, Named::by_type("max-score-picker"));
    let (choice, choice_name) = choice.or(configured).unwrap_or_else(assumed);
    Ok(Profile { name, filters, filter_names, scorers, choice, choice_name })
}

fn handler(parts: &Parts, profiles: &[Profile]) -> Result<Handler, Error> {
    let mut handlers = parts.plugins.iter().filter_map(|plugin| match &plugin.role {
        Role::Handler(handler) => Some((&plugin.name, handler)),
        _ => None,
    });
    let first = handlers.next();
    if let (Some((first, _)), Some((second, _))) = (first, handlers.next()) {
        return Err(Error::TwoHandlers(first.clone(), second.clone()));
    }
    let one = |handler: &str| match profiles.len() {
        1 => Ok(()),
        profiles => Err(Error::OneProfile { handler: handler.into(), profiles }),
    };
    match first {
        None if profiles.len() == 1 => Ok(Handler::Single { primary_port: 0 }),
        None => Err(Error::NoHandler),
        Some((name, plugins::Handler::Single)) => {
            one(name).map(|()| Handler::Single { primary_port: 0 })
        }
        Some((name, plugins::Handler::DataParallel { primary_port })) => {
            one(name).map(|()| Handler::Single { primary_port: *primary_port })
        }
        Some((
            name,
            plugins::Handler::Disaggregated { decode, prefill, decider, primary_port },
        )) => {
            if !profiles.iter().any(|profile| profile.name == *decode) {
                return Err(Error::NoProfile { handler: name.clone(), profile: decode.clone() });
            }
            Ok(Handler::Disaggregated {
                decode: decode.clone(),
                prefill: prefill.clone(),
                decider: decider_named(parts, name, decider.as_deref())?,
                primary_port: *primary_port,
            })
        }
    }
}

/// Declared before or after the handler, it does not matter.
fn decider_named(parts: &Parts, handler: &str, name: Option<&str>) -> Result<Decider, Error> {
    let Some(name) = name else {
        // The default need not be declared.
        return Ok(Decider::Always);
    };
    let user = format!("plugin {handler:?}");
    match parts.plugins[find(&parts.plugins, &user, name)?].role {
        Role::Decider(decider) => Ok(decider),
        _ => Err(Error::WrongRole { user, plugin: name.into(), role: "decider" }),
    }
}

/// One plugin sets the header of the prefill endpoint; one of the handlers does it itself.
fn prefill_header(plugins: &[Plugin], handler: &Handler) -> Option<String> {
    let named = plugins.iter().find_map(|plugin| match &plugin.role {
        Role::PrefillHeader { profile } => Some(profile.clone()),
        _ => None,
    });
    let own = plugins.iter().any(|plugin| plugin.kind == "disagg-profile-handler");
    match handler {
        Handler::Disaggregated { prefill, .. } if own => Some(prefill.clone()),
        _ => named,
    }
}
