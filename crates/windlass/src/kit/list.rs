//! `kit list`: what there is.

use clap::Args;
use futures::{StreamExt, TryStreamExt, stream};
use serde::Serialize;
use windlass_kit::{
    Digest, Kitfile, Reference,
    manifest::{Manifest, read},
    reference::{Tag, Version},
    remote,
};

use super::{
    artifact::{Artifact, Look, NoManifest},
    flags::Network,
    progress::size_of,
    session::Session,
};

const HEADINGS: [&str; 6] = ["REPOSITORY", "TAG", "MAINTAINER", "NAME", "SIZE", "DIGEST"];
const NONE: &str = "<none>";

#[derive(Debug, Args)]
#[group(id = "kit-list")]
pub(super) struct Flags {
    /// A repository whose tags to list: REGISTRY/REPOSITORY
    repository: Option<String>,
    /// `table`, `json`, or a text with {{.Repo}}, {{.Digest}}, {{.Tags}}, {{.ModelName}}, {{.Size}} and {{.Author}}
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    format: String,
    #[command(flatten)]
    network: Network,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    repo: String,
    digest: Digest,
    tags: Vec<String>,
    model_name: String,
    size: String,
    author: String,
}

pub(super) async fn run(session: &Session, flags: &Flags) -> anyhow::Result<()> {
    let rows = match &flags.repository {
        Some(repository) => elsewhere(session, repository, &flags.network).await?,
        None => local(session)?,
    };
    let text = match flags.format.as_str() {
        _ if session.out.json => serde_json::to_string(&rows)? + "\n",
        "json" => serde_json::to_string_pretty(&rows)? + "\n",
        "table" => table(&rows),
        template => rows
            .iter()
            .map(|row| Ok(fill(template, row)? + "\n"))
            .collect::<anyhow::Result<String>>()?,
    };
    session.out.data(text)
}

fn local(session: &Session) -> anyhow::Result<Vec<Row>> {
    let store = session.store()?;
    let mut rows = Vec::new();
    for listed in store.list()? {
        let manifest = store.manifest(&listed.manifest)?;
        let config = store.read(&manifest.config.digest).unwrap_or_default();
        let kitfile = read::contents(&manifest, &config).ok().and_then(|found| found.kitfile);
        let repository = match listed.registry.as_str() {
            windlass_kit::reference::LOCAL => listed.repository,
            registry => format!("{registry}/{}", listed.repository),
        };
        let tags = listed.tags.iter().map(ToString::to_string).collect();
        rows.push(row(repository, listed.manifest.digest, tags, &manifest, kitfile.as_ref()));
    }
    Ok(rows)
}

async fn elsewhere(
    session: &Session,
    repository: &str,
    network: &Network,
) -> anyhow::Result<Vec<Row>> {
    let reference = Reference::parse(repository)?;
    let is_tagged = !repository.ends_with(reference.repository());
    if reference.is_local() || is_tagged {
        anyhow::bail!("{repository:?} must be REGISTRY/REPOSITORY, without a tag");
    }
    let remote = session.remote(reference.registry(), network)?;
    let tags = remote.tags(reference.repository()).await?;
    let tags: Vec<Tag> = tags.iter().map(|tag| Tag::parse(tag)).collect::<Result<_, _>>()?;
    stream::iter(tags)
        .map(async |tag| {
            let name = tag.to_string();
            let reference = reference.with(Version::Tag(tag));
            let found = match Artifact::find(session, &reference, Look::Registry, network).await {
                Ok(found) => found,
                Err(error) if is_no_model(&error) => return Ok(None),
                Err(error) => return Err(error),
            };
            let kitfile = found.contents.kitfile.as_ref();
            let digest = found.descriptor.digest.clone();
            let row = row(repository.to_owned(), digest, vec![name], &found.manifest, kitfile);
            anyhow::Ok(Some(row))
        })
        .buffered(network.concurrency.get())
        .try_filter_map(async |row| Ok(row))
        .try_collect()
        .await
}

/// Signatures and images have tags too, and some are gone before they are looked at.
fn is_no_model(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        matches!(cause.downcast_ref(), Some(remote::Error::NotFound { .. }))
            || matches!(cause.downcast_ref(), Some(read::Error::NoModel(_)))
            || cause.is::<NoManifest>()
    })
}

fn row(
    repo: String,
    digest: Digest,
    tags: Vec<String>,
    manifest: &Manifest,
    kitfile: Option<&Kitfile>,
) -> Row {
    let package = kitfile.map(|kitfile| kitfile.package.clone()).unwrap_or_default();
    Row {
        repo,
        digest,
        tags,
        model_name: package.name,
        size: size_of(manifest.layers.iter().map(|layer| layer.size).sum()),
        author: package.authors.into_iter().next().unwrap_or_default(),
    }
}

fn table(rows: &[Row]) -> String {
    let or_none = |text: &str| if text.is_empty() { NONE } else { text }.to_owned();
    let mut lines = vec![HEADINGS.map(str::to_owned)];
    for row in rows {
        // Without any tag it has a line too.
        let none = [String::new()];
        let tags = if row.tags.is_empty() { &none[..] } else { &row.tags };
        lines.extend(tags.iter().map(|tag| {
            let (author, name) = (or_none(&row.author), or_none(&row.model_name));
            let digest = row.digest.to_string();
            let repository =
                if row.repo == windlass_kit::reference::UNNAMED { "" } else { &row.repo };
            [or_none(repository), or_none(tag), author, name, row.size.clone(), digest]
        }));
    }
    let wide = |column: usize| lines.iter().map(|line| line[column].chars().count()).max();
    let wide: [usize; 6] = std::array::from_fn(|column| wide(column).unwrap_or(0));
    let mut text = String::new();
    for line in &lines {
        let cells = line.iter().zip(wide).map(|(cell, wide)| format!("{cell:wide$}"));
        text += cells.collect::<Vec<_>>().join("   ").trim_end();
        text.push('\n');
    }
    text
}

/// Fields in double braces; no other form of Go's templates.
fn fill(template: &str, row: &Row) -> anyhow::Result<String> {
    let mut text = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        let known = after.split_once("}}").and_then(|(name, after)| {
            let value = match name.trim().to_ascii_lowercase().as_str() {
                ".repo" => row.repo.clone(),
                ".digest" => row.digest.to_string(),
                ".tags" => format!("[{}]", row.tags.join(" ")),
                ".modelname" => row.model_name.clone(),
                ".size" => row.size.clone(),
                ".author" => row.author.clone(),
                _ => return None,
            };
            Some((value, after))
        });
        let Some((value, after)) = known else {
            anyhow::bail!("cannot use the format {template:?}: only fields such as {{{{.Digest}}}}")
        };
        text += before;
        text += &value;
        rest = after;
    }
    Ok(text + rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(repo: &str, tags: &[&str]) -> Row {
        Row {
            repo: repo.to_owned(),
            digest: Digest::of(b""),
            tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
            model_name: "tiny".to_owned(),
            size: size_of(2048),
            author: String::new(),
        }
    }

    #[test]
    fn every_tag_has_a_line() {
        let text = table(&[one("r.io/org/m", &["a", "longer"]), one("_", &[])]);
        let lines: Vec<&str> =
            text.lines().map(|line| line.split("sha256").next().unwrap()).collect();
        assert_eq!(
            lines,
            [
                "REPOSITORY   TAG      MAINTAINER   NAME   SIZE      DIGEST",
                "r.io/org/m   a        <none>       tiny   2.0 KiB   ",
                "r.io/org/m   longer   <none>       tiny   2.0 KiB   ",
                "<none>       <none>   <none>       tiny   2.0 KiB   ",
            ]
        );
    }

    #[test]
    fn templates_have_fields_only() {
        let row = one("m", &["a", "b"]);
        assert_eq!(fill("{{ .Repo }}={{.Tags}} {{.ModelName}}", &row).unwrap(), "m=[a b] tiny");
        for template in ["{{range .}}", "{{.Repo", "{{.Other}}"] {
            assert!(fill(template, &row).is_err(), "{template}");
        }
    }
}
