//! `kit import`: a model of a hub, or files in a folder that have no Kitfile yet, becomes an artifact.

use std::{
    env,
    fs::{self, File},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail};
use clap::{Args, ValueEnum};
use futures::{StreamExt, TryStreamExt, stream};
use windlass_kit::{
    Kitfile, Reference,
    classify::{self, Listed},
    context::{Context, Links},
    hub::{self, Hub, Repository, Snapshot},
    ignore::Ignore,
    manifest::Profile,
    tar::Type,
};

use super::{
    flags::{Form, Network},
    login::Secret,
    pack::{created, find, names, read_kitfile, split},
    packing::{Names, Packing},
    progress::size_of,
    session::Session,
};

#[derive(Debug, Args)]
#[group(id = "kit-import")]
pub(super) struct Flags {
    /// What to import: ORGANISATION/NAME of the hub, the address of its page, or a folder, beginning with
    /// a dot or a slash
    repository: String,
    /// Branch, tag or commit
    #[arg(long = "ref", value_name = "REVISION", default_value = "main")]
    revision: String,
    /// Token for the hub; $HF_TOKEN or the one that its own tools keep if not given
    #[arg(long, value_name = "TOKEN")]
    token: Option<Secret>,
    /// What to call it: REPOSITORY[:TAG[,TAG...]]; as the repository is called if not given
    #[arg(short, long, value_name = "REFERENCE")]
    tag: Option<String>,
    /// Kitfile to use instead of one that is made from the names of the files
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// By what to download
    #[arg(long, value_name = "TOOL", default_value = "hf")]
    tool: Tool,
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

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Tool {
    Hf,
    Git,
}

pub(super) async fn run(session: &Session, flags: &Flags) -> anyhow::Result<()> {
    if flags.tool == Tool::Git {
        bail!("git is no way to import here: clone the repository and import the folder");
    }
    let is_folder = flags.repository.starts_with(['.', '/']);
    match is_folder {
        true => folder(session, flags, Path::new(&flags.repository)).await,
        false => repository(session, flags).await,
    }
}

async fn repository(session: &Session, flags: &Flags) -> anyhow::Result<()> {
    let endpoint = flags.endpoint.clone().or_else(|| variable("HF_ENDPOINT"));
    let endpoint = endpoint.unwrap_or_else(|| hub::ENDPOINT.to_owned());
    let repository = Repository::parse(&flags.repository, &endpoint)?;
    let names = target(session, flags, repository.name())?;
    let hub = Hub::new(&endpoint, token(flags.token.as_ref()))?;
    let mut snapshot = hub.snapshot(&repository, &flags.revision).await?;
    let wanted = Wanted::new(flags)?;
    snapshot.files.retain(|file| wanted.has(&file.path));
    let kitfile = kitfile(session, flags, repository.name(), &snapshot.listed())?;
    snapshot.files.retain(|file| classify::is_listed(&kitfile, &file.path));
    if flags.dry_run {
        return tell(session, &kitfile, &snapshot.listed());
    }
    session.out.info(format!("Importing {} at {}", repository.name(), snapshot.commit));
    let place = Place::new(session, repository.name(), &snapshot.commit)?;
    download(session, flags, &hub, &repository, &snapshot, &place.files()).await?;
    let context = Context::read(&place.files(), Links::Skip)?.with_plain_modes();
    finish(session, flags, &kitfile, &context, names).await?;
    place.clear()
}

async fn folder(session: &Session, flags: &Flags, folder: &Path) -> anyhow::Result<()> {
    let whole =
        folder.canonicalize().with_context(|| format!("cannot read {}", folder.display()))?;
    let name = whole.file_name().and_then(|name| name.to_str()).unwrap_or("model").to_owned();
    let names = target(session, flags, &name)?;
    let mut context = Context::read(folder, Links::Skip)?;
    let wanted = Wanted::new(flags)?;
    context.files.retain(|file| file.type_ == Type::Directory || wanted.has(&file.name));
    let files = context.files.iter().filter(|file| file.type_ == Type::File);
    let listed =
        |file: &windlass_kit::context::File| Listed { path: file.name.clone(), size: file.size };
    let listed: Vec<Listed> = files.map(listed).collect();
    let kitfile = match (&flags.file, find(folder)) {
        (None, Some(own)) => read_kitfile(session, folder, Some(&own))?,
        _ => kitfile(session, flags, &name, &listed)?,
    };
    if flags.dry_run {
        return tell(session, &kitfile, &listed);
    }
    finish(session, flags, &kitfile, &context, names).await
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

fn kitfile(
    session: &Session,
    flags: &Flags,
    name: &str,
    files: &[Listed],
) -> anyhow::Result<Kitfile> {
    if files.is_empty() {
        bail!("there are no files to import in {name}");
    }
    match &flags.file {
        Some(file) => read_kitfile(session, Path::new("."), Some(file)),
        None => Ok(classify::kitfile(name, files)),
    }
}

fn tell(session: &Session, kitfile: &Kitfile, files: &[Listed]) -> anyhow::Result<()> {
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

async fn finish(
    session: &Session,
    flags: &Flags,
    kitfile: &Kitfile,
    context: &Context,
    names: Names,
) -> anyhow::Result<()> {
    let layers = split(session, kitfile, context, &flags.form)?;
    let profile = Profile::Default { created: created()? };
    let packing = Packing { session, kitfile, layers, form: &flags.form, profile };
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

/// Where files are while they come, and stay if that is cut. One import at a time.
struct Place {
    folder: PathBuf,
    _lock: File,
}

impl Place {
    fn new(session: &Session, repository: &str, commit: &str) -> anyhow::Result<Self> {
        let folder = session.home().join("windlass/import").join(format!("{repository}@{commit}"));
        let failed = || format!("cannot use {}", folder.display());
        // Whoever had it before removes it in the end.
        let lock = loop {
            fs::create_dir_all(&folder).with_context(failed)?;
            let path = folder.join("lock");
            let lock = File::options().create(true).truncate(false).write(true).open(&path);
            let lock = match lock {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                lock => lock.with_context(failed)?,
            };
            lock.lock().with_context(failed)?;
            if path.exists() {
                break lock;
            }
        };
        Ok(Self { folder, _lock: lock })
    }

    fn files(&self) -> PathBuf {
        self.folder.join("files")
    }

    fn clear(self) -> anyhow::Result<()> {
        fs::remove_dir_all(&self.folder)
            .with_context(|| format!("cannot remove {}", self.folder.display()))
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
