//! `kit inspect` and `kit info`: what an artifact says of itself.

use anyhow::bail;
use clap::Args;
use serde::Serialize;
use serde_json::Value;
use windlass_kit::{
    Digest, Kitfile,
    manifest::{CLI_VERSION, Manifest},
};

use super::{
    artifact::{Artifact, Look},
    flags::Network,
    outcome::NotThere,
    session::Session,
};

#[derive(Debug, Args)]
#[group(id = "kit-inspect")]
pub(super) struct InspectFlags {
    /// What to look at
    reference: String,
    /// Ask the registry
    #[arg(short, long)]
    remote: bool,
    #[command(flatten)]
    network: Network,
}

#[derive(Debug, Args)]
#[group(id = "kit-info")]
pub(super) struct InfoFlags {
    /// What to look at
    reference: String,
    /// Ask the registry
    #[arg(short, long)]
    remote: bool,
    /// Only this field, such as model.name or code[0].path
    #[arg(short, long, value_name = "FIELD")]
    filter: Option<String>,
    #[command(flatten)]
    network: Network,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Inspected<'a> {
    digest: &'a Digest,
    cli_version: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    kitfile: Option<&'a Kitfile>,
    manifest: &'a Manifest,
}

pub(super) async fn inspect(session: &Session, flags: &InspectFlags) -> anyhow::Result<()> {
    let artifact = find(session, &flags.reference, flags.remote, &flags.network).await?;
    let version = artifact.manifest.annotations.get(CLI_VERSION);
    let inspected = Inspected {
        digest: &artifact.descriptor.digest,
        cli_version: version.map_or("", String::as_str),
        kitfile: artifact.contents.kitfile.as_ref(),
        manifest: &artifact.manifest,
    };
    match session.out.json {
        true => session.out.object(&inspected),
        false => session.out.data(serde_json::to_string_pretty(&inspected)? + "\n"),
    }
}

pub(super) async fn info(session: &Session, flags: &InfoFlags) -> anyhow::Result<()> {
    let artifact = find(session, &flags.reference, flags.remote, &flags.network).await?;
    let kitfile = artifact.kitfile()?;
    match &flags.filter {
        None if session.out.json => {
            session.out.data(String::from_utf8_lossy(&kitfile.to_json()?).into_owned() + "\n")
        }
        None => session.out.data(kitfile.to_yaml()?),
        Some(filter) => {
            let all: Value = serde_json::from_slice(&kitfile.to_json()?)?;
            let Some(found) = select(&all, filter)? else {
                return Err(NotThere(format!("there is no {filter} in the Kitfile")).into());
            };
            match found {
                Value::String(text) if !session.out.json => session.out.data(format!("{text}\n")),
                other if session.out.json => session.out.object(other),
                other => session.out.data(crate::output::to_yaml(other)?),
            }
        }
    }
}

async fn find(
    session: &Session,
    reference: &str,
    is_remote: bool,
    network: &Network,
) -> anyhow::Result<Artifact> {
    let reference = session.reference(reference)?;
    let look = if is_remote { Look::Registry } else { Look::Store };
    Artifact::find(session, &reference, look, network).await
}

/// `model.parts[0].path`, with a dot before it or without.
fn select<'a>(all: &'a Value, filter: &str) -> anyhow::Result<Option<&'a Value>> {
    let mut at = all;
    for element in filter.strip_prefix('.').unwrap_or(filter).split('.') {
        let (name, index) = match element.split_once('[') {
            Some((name, rest)) => {
                let index = rest.strip_suffix(']').and_then(|text| text.parse::<usize>().ok());
                let Some(index) = index else { bail!("invalid filter {filter:?}") };
                (name, Some(index))
            }
            None => (element, None),
        };
        if name.is_empty() {
            bail!("invalid filter {filter:?}");
        }
        let Some(found) = at.get(name) else { return Ok(None) };
        let found = index.map_or(Some(found), |index| found.get(index));
        let Some(found) = found else { return Ok(None) };
        at = found;
    }
    Ok(Some(at))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_field_is_found_by_its_path() {
        let all = json!({"model": {"name": "tiny", "parts": [{"path": "a"}, {"path": "b"}]}});
        for (filter, want) in [
            ("model.name", Some(json!("tiny"))),
            (".model.parts[1].path", Some(json!("b"))),
            ("model.parts[2]", None),
            ("code", None),
        ] {
            assert_eq!(select(&all, filter).unwrap().cloned(), want, "{filter}");
        }
        for filter in ["", "model.", "model.parts[x]", "[0]", "model.parts[0"] {
            assert!(select(&all, filter).is_err(), "{filter:?}");
        }
    }
}
