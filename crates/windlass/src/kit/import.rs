//! `kit import`: a model of a hub, a file at an address, a repository of git or files in a folder become
//! an artifact.

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail};
use clap::Args;
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::json;
use windlass_kit::{
    Digest, Kitfile, Reference,
    classify::{self, Listed},
    context::{Context, Links},
    hub::{self, Hub, Repository, Snapshot},
    ignore::Ignore,
    manifest::Profile,
    tar::Type,
};

mod git;
mod place;
mod source;
mod there;
mod web;

use place::Place;
use source::{Source, Tool};

use super::{
    flags::{Form, Network},
    login::Secret,
    pack::{created, find, names, read_kitfile, split},
    packing::{Files, Names, Packing},
    progress::size_of,
    session::Session,
};

#[derive(Debug, Args)]
#[group(id = "kit-import")]
pub(super) struct Flags {
    /// What to import: ORGANISATION/NAME of the hub, the address of its page, of a file or of a repository
    /// of git, or a folder, beginning with a dot or a slash
    repository: String,
    /// Branch, tag or commit; `main` of the hub and what git takes for the newest if not given
    #[arg(long = "ref", value_name = "REVISION")]
    revision: Option<String>,
    /// Token for the hub or the address; for the hub $HF_TOKEN or the one that its own tools keep if not
    /// given
    #[arg(long, value_name = "TOKEN")]
    token: Option<Secret>,
    /// What to call it: REPOSITORY[:TAG[,TAG...]]; as the repository is called if not given
    #[arg(short, long, value_name = "REFERENCE")]
    tag: Option<String>,
    /// Kitfile to use instead of one that is made from the names of the files
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// By what to download; told by the address if not given
    #[arg(long, value_name = "TOOL")]
    tool: Option<Tool>,
    /// What the SHA-256 of the file at an address must be
    #[arg(long, value_name = "DIGITS", value_parser = sha256)]
    sha256: Option<String>,
    /// Only files that match; may be given several times
    #[arg(long, value_name = "GLOB")]
    include: Vec<String>,
    /// No files that match; may be given several times
    #[arg(long, value_name = "GLOB")]
    exclude: Vec<String>,
    /// Address of the hub; $HF_ENDPOINT or https://huggingface.co if not given
    #[arg(long, value_name = "ADDRESS")]
    endpoint: Option<String>,
    /// Only print the Kitfile and which files there are
    #[arg(long)]
    dry_run: bool,
    /// Send it to the registry of its name instead of keeping it
    #[arg(long)]
    push: bool,
    #[command(flatten)]
    form: Form,
    #[command(flatten)]
    network: Network,
}

/// The branch of the hub that everybody has.
const BRANCH: &str = "main";

/// With or without what the digest of a blob has before it.
fn sha256(text: &str) -> Result<String, String> {
    let text = text.to_lowercase();
    let digits = text.strip_prefix("sha256:").unwrap_or(&text);
    let digest = format!("sha256:{digits}").parse::<windlass_kit::Digest>();
    digest.map(|digest| digest.hex().to_owned()).map_err(|_| "must be 64 digits from 0 to f".into())
}

pub(super) async fn run(session: &Session, flags: &Flags) -> anyhow::Result<()> {
    let endpoint = flags.endpoint.clone().or_else(|| variable("HF_ENDPOINT"));
    let endpoint = endpoint.unwrap_or_else(|| hub::ENDPOINT.to_owned());
    let source = Source::of(&flags.repository, flags.tool, &endpoint)?;
    if flags.sha256.is_some() && !matches!(source, Source::File(_)) {
        bail!("--sha256 is for the address of a single file");
    }
    match source {
        Source::Folder(place) => folder(session, flags, &place).await,
        Source::Hub(wanted) => repository(session, flags, &endpoint, wanted).await,
        Source::File(address) => web::run(session, flags, address).await,
        Source::Git(address) => git::run(session, flags, &address).await,
    }
}

async fn repository(
    session: &Session,
    flags: &Flags,
    endpoint: &str,
    source::Hub { repository, file }: source::Hub,
) -> anyhow::Result<()> {
    let names = target(session, flags, repository.name())?;
    let given = given(session, flags)?;
    let network = flags.network.of_source();
    let hub = Hub::with(endpoint, token(flags.token.as_ref()), &network)?;
    let (revision, only) = match file {
        Some((revision, path)) => (Some(revision), Some(path)),
        None => (None, None),
    };
    let revision = flags.revision.clone().or(revision).unwrap_or_else(|| BRANCH.to_owned());
    let mut snapshot = hub.snapshot(&repository, &revision).await?;
    let wanted = Wanted::new(flags)?;
    let is_wanted = |path: &str| match &only {
        Some(only) => only == path,
        None => wanted.has(path),
    };
    snapshot.files.retain(|file| is_wanted(&file.path));
    let kitfile = kitfile(flags, repository.name(), &snapshot.listed(), given.as_ref())?;
    snapshot.files.retain(|file| classify::is_listed(&kitfile, &file.path));
    if flags.dry_run {
        return tell(session, &kitfile, &snapshot.listed());
    }
    session.out.info(format!("Importing {} at {}", repository.name(), snapshot.commit));
    let place = Place::new(session, repository.name(), &snapshot.commit)?;
    let there = there::find(session, flags, &kitfile, &names, &snapshot.files).await?;
    let missing = there.missing(&snapshot);
    download(session, flags, &hub, &repository, &missing, &place.files()).await?;
    let context = there.context(&place.files(), &snapshot.files)?;
    let packed = Packed { files: Files::Ours, there: there.layers.clone() };
    finish(session, flags, &kitfile, &context, names, packed).await?;
    place.clear(&session.out);
    Ok(())
}

async fn folder(session: &Session, flags: &Flags, folder: &Path) -> anyhow::Result<()> {
    let whole =
        folder.canonicalize().with_context(|| format!("cannot read {}", folder.display()))?;
    let name = whole.file_name().and_then(|name| name.to_str()).unwrap_or("model").to_owned();
    let names = target(session, flags, &name)?;
    let given = given(session, flags)?;
    let context = Context::read(folder, Links::Skip)?;
    let found = Found::new(session, flags, &name, folder, context, given.as_ref())?;
    files(session, flags, &found, names).await
}

/// Files that are here.
struct Found {
    kitfile: Kitfile,
    listed: Vec<Listed>,
    context: Context,
}

impl Found {
    /// With the Kitfile that was given, or their own if they have one.
    fn new(
        session: &Session,
        flags: &Flags,
        name: &str,
        folder: &Path,
        mut context: Context,
        given: Option<&Kitfile>,
    ) -> anyhow::Result<Self> {
        let wanted = Wanted::new(flags)?;
        context.files.retain(|file| file.type_ == Type::Directory || wanted.has(&file.name));
        let files = context.files.iter().filter(|file| file.type_ == Type::File);
        let listed = |file: &windlass_kit::context::File| Listed {
            path: file.name.to_string(),
            size: file.size,
        };
        let listed: Vec<Listed> = files.map(listed).collect();
        let kitfile = match (given, find(folder)) {
            (None, Some(own)) => fitting(flags, read_kitfile(session, folder, Some(&own))?)?,
            _ => kitfile(flags, name, &listed, given)?,
        };
        Ok(Self { kitfile, listed, context })
    }
}

async fn files(
    session: &Session,
    flags: &Flags,
    Found { kitfile, listed, context }: &Found,
    names: Names,
) -> anyhow::Result<()> {
    if flags.dry_run {
        return tell(session, kitfile, listed);
    }
    finish(session, flags, kitfile, context, names, Packed::all(Files::Theirs)).await
}

/// What it is to be called; told before anything is downloaded if that is impossible.
fn target(session: &Session, flags: &Flags, name: &str) -> anyhow::Result<Names> {
    let names = match &flags.tag {
        Some(tag) => names(session, Some(tag))?,
        None => {
            let reference = Reference::parse(&format!("{}:latest", name.to_lowercase()));
            let failed = || format!("{name} cannot be its name: give another with --tag");
            Some((reference.with_context(failed)?, Vec::new()))
        }
    };
    if flags.push && names.as_ref().is_some_and(|(reference, _)| reference.is_local()) {
        bail!("registry is required when pushing: name one with --tag");
    }
    Ok(names)
}

/// The Kitfile of the command line, which can be read but once.
fn given(session: &Session, flags: &Flags) -> anyhow::Result<Option<Kitfile>> {
    let Some(file) = &flags.file else { return Ok(None) };
    fitting(flags, read_kitfile(session, Path::new("."), Some(file))?).map(Some)
}

fn kitfile(
    flags: &Flags,
    name: &str,
    files: &[Listed],
    given: Option<&Kitfile>,
) -> anyhow::Result<Kitfile> {
    if files.is_empty() {
        bail!("there are no files to import in {name}");
    }
    match given {
        Some(given) => Ok(given.clone()),
        None => fitting(flags, classify::kitfile(name, files)),
    }
}

/// Told before anything is downloaded in vain.
fn fitting(flags: &Flags, kitfile: Kitfile) -> anyhow::Result<Kitfile> {
    windlass_kit::pack::fits(&kitfile, flags.form.form())?;
    Ok(kitfile)
}

fn tell(session: &Session, kitfile: &Kitfile, files: &[Listed]) -> anyhow::Result<()> {
    if session.out.json {
        let listed = |file: &Listed| json!({"path": file.path, "size": file.size});
        let listed: Vec<_> = files.iter().map(listed).collect();
        let bytes: u64 = files.iter().map(|file| file.size).sum();
        return session.out.object(&json!({"kitfile": kitfile, "files": listed, "bytes": bytes}));
    }
    let mut text = kitfile.to_yaml()?;
    for file in files {
        text += &format!("# {} {}\n", file.path, size_of(file.size));
    }
    let total = size_of(files.iter().map(|file| file.size).sum());
    session.out.data(format!("{text}# {} files, {total}\n", files.len()))
}

async fn download(
    session: &Session,
    flags: &Flags,
    hub: &Hub,
    repository: &Repository,
    snapshot: &Snapshot,
    into: &Path,
) -> anyhow::Result<()> {
    let progress = &session.out.progress;
    snapshot.files.iter().for_each(|file| progress.expect(&file.path, &file.path, file.size));
    let commit = &snapshot.commit;
    stream::iter(&snapshot.files)
        .map(Ok)
        .try_for_each_concurrent(flags.network.concurrency.get(), async |file| {
            let done = hub.download(repository, commit, file, into, progress).await;
            progress.finish(&file.path);
            done.map(drop)
        })
        .await?;
    session.out.end();
    Ok(())
}

/// Of what is packed: whose it is, and which layers are there already.
struct Packed {
    files: Files,
    there: BTreeMap<String, Digest>,
}

impl Packed {
    fn all(files: Files) -> Self {
        Self { files, there: BTreeMap::new() }
    }
}

async fn finish(
    session: &Session,
    flags: &Flags,
    kitfile: &Kitfile,
    context: &Context,
    names: Names,
    Packed { files, there }: Packed,
) -> anyhow::Result<()> {
    let layers = split(session, kitfile, context, &flags.form)?;
    let profile = Profile::Default { created: created()? };
    let form = &flags.form;
    let packing = Packing { session, kitfile, layers, form, profile, files, there };
    match flags.push {
        true => packing.send(names, &flags.network).await,
        false => packing.keep(names).await,
    }
}

/// Which files are asked for.
struct Wanted {
    include: Option<Ignore>,
    exclude: Ignore,
}

impl Wanted {
    fn new(flags: &Flags) -> anyhow::Result<Self> {
        let rules = |globs: &[String]| {
            let Some(bad) =
                globs.iter().find(|glob| glob.starts_with('!') || glob.starts_with('#'))
            else {
                return Ignore::parse(&globs.join("\n"))
                    .context("cannot use --include or --exclude");
            };
            bail!("{bad:?} is no pattern for --include or --exclude")
        };
        let include = Some(&flags.include).filter(|globs| !globs.is_empty());
        Ok(Self {
            include: include.map(|globs| rules(globs)).transpose()?,
            exclude: rules(&flags.exclude)?,
        })
    }

    /// A pattern without a slash is one for names in any folder.
    fn has(&self, path: &str) -> bool {
        let name = path.rsplit('/').next().unwrap_or(path);
        let means = |rules: &Ignore| rules.has(path) || rules.has(name);
        self.include.as_ref().is_none_or(means) && !means(&self.exclude)
    }
}

fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

/// The one that was given, or the one that the hub's own tools would take.
fn token(given: Option<&Secret>) -> Option<String> {
    if let Some(Secret(token)) = given.filter(|given| !given.0.is_empty()) {
        return Some(token.clone());
    }
    if variable("HF_HUB_DISABLE_IMPLICIT_TOKEN").is_some_and(|value| value != "0") {
        return None;
    }
    let home = || {
        let own = variable("HF_HOME").map(PathBuf::from);
        own.or_else(|| Some(PathBuf::from(variable("HOME")?).join(".cache/huggingface")))
    };
    let file = || match variable("HF_TOKEN_PATH") {
        Some(path) => Some(PathBuf::from(path)),
        None => Some(home()?.join("token")),
    };
    let kept = || fs::read_to_string(file()?).ok();
    let token = variable("HF_TOKEN").or_else(kept)?.trim().to_owned();
    Some(token).filter(|token| !token.is_empty())
}
