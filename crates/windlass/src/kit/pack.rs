//! `kit pack`: a directory becomes an artifact.

use std::{
    collections::BTreeMap,
    env, fs,
    io::{self, Read},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail};
use clap::{Args, ValueEnum};
use jiff::Timestamp;
use windlass_kit::{
    Kitfile,
    context::{Context, Links},
    kitfile,
    layer::{self, Layer},
    manifest::Profile,
};

use super::{
    flags::{Form, Network},
    packing::{Files, Names, Packing},
    session::Session,
};

const VERSION: &str = "1.0.0";
/// The instant that artifacts are told to be of, so that they are the same whenever they are made.
const EPOCH: &str = "SOURCE_DATE_EPOCH";

#[derive(Debug, Args)]
#[group(id = "kit-pack")]
pub(super) struct Flags {
    /// What to pack
    directory: PathBuf,
    /// The Kitfile, if it is not in the directory; `-` for standard input
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// What to call it: REPOSITORY[:TAG[,TAG...]]
    #[arg(short, long, value_name = "REFERENCE")]
    tag: Option<String>,
    #[command(flatten)]
    form: Form,
    /// Send it to the registry of its name instead of keeping it
    #[arg(long)]
    push: bool,
    /// Pack what symbolic links lead to
    #[arg(long)]
    follow_symlinks: bool,
    /// Make the very bytes of another program
    #[arg(long, value_name = "VERSION")]
    compat: Option<Compat>,
    #[command(flatten)]
    network: Network,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Compat {
    #[value(name = "1.11")]
    Kit111,
}

pub(super) async fn run(session: &Session, flags: &Flags) -> anyhow::Result<()> {
    let names = names(session, flags.tag.as_deref())?;
    let profile = match flags.compat {
        Some(Compat::Kit111) => Profile::Kit111,
        None => Profile::Default { created: created()? },
    };
    let kitfile = read_kitfile(session, &flags.directory, flags.file.as_deref())?;
    let links = if flags.follow_symlinks { Links::Follow } else { Links::Skip };
    let context = Context::read(&flags.directory, links)?;
    let layers = split(session, &kitfile, &context, &flags.form)?;
    let (kitfile, form) = (&kitfile, &flags.form);
    let (files, there) = (Files::Theirs, BTreeMap::new());
    let packing = Packing { session, kitfile, layers, form, profile, files, there };
    match flags.push {
        true => packing.send(names, &flags.network).await,
        false => packing.keep(names).await,
    }
}

pub(super) fn names(session: &Session, tag: Option<&str>) -> anyhow::Result<Names> {
    tag.map(|tag| session.references(tag)).transpose()
}

pub(super) fn split(
    session: &Session,
    kitfile: &Kitfile,
    context: &Context,
    form: &Form,
) -> anyhow::Result<Vec<Layer>> {
    windlass_kit::pack::fits(kitfile, form.form())?;
    let entries = kitfile.entries()?;
    for link in &context.skipped {
        if entries.iter().any(|entry| entry.path.contains(link)) {
            session.out.warn(format!("{link} is a symbolic link or no file, and is not packed"));
        }
    }
    Ok(layer::split(context, &entries, form.layers())?)
}

/// From where it was said to be, or under one of its names.
pub(super) fn read_kitfile(
    session: &Session,
    directory: &Path,
    file: Option<&Path>,
) -> anyhow::Result<Kitfile> {
    let text = match file {
        Some(path) if path.as_os_str() == "-" => {
            let mut text = String::new();
            io::stdin().lock().read_to_string(&mut text).context("cannot read standard input")?;
            text
        }
        Some(path) => read(path)?,
        None => match find(directory) {
            Some(path) => read(&path)?,
            None => bail!("there is no Kitfile in {}", directory.display()),
        },
    };
    let kitfile = Kitfile::from_yaml(&text)?;
    if kitfile.manifest_version != VERSION {
        let version = &kitfile.manifest_version;
        session.out.warn(format!("manifestVersion {version} is not known, and taken as {VERSION}"));
    }
    Ok(kitfile)
}

pub(super) fn find(directory: &Path) -> Option<PathBuf> {
    kitfile::NAMES.iter().map(|name| directory.join(name)).find(|path| path.is_file())
}

fn read(path: &Path) -> anyhow::Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

pub(super) fn created() -> anyhow::Result<Option<String>> {
    env::var(EPOCH).ok().filter(|text| !text.is_empty()).map(|text| instant(&text)).transpose()
}

fn instant(text: &str) -> anyhow::Result<String> {
    let seconds = text.parse().ok().and_then(|seconds| Timestamp::from_second(seconds).ok());
    let Some(time) = seconds else { bail!("{EPOCH} must be a number of seconds, got {text:?}") };
    Ok(time.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_is_a_number_of_seconds() {
        assert_eq!(instant("0").unwrap(), "1970-01-01T00:00:00Z");
        assert_eq!(instant("1700000000").unwrap(), "2023-11-14T22:13:20Z");
        for text in ["now", "1.5", "99999999999999999"] {
            assert!(instant(text).is_err(), "{text}");
        }
    }
}
