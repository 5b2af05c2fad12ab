//! The file.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io,
    ops::RangeInclusive,
    os::unix::fs::OpenOptionsExt,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use redb::{
    Database, DatabaseError, ReadableDatabase, ReadableTable, TableDefinition,
    backends::InMemoryBackend,
};

use super::{Change, Error, Key, Object, State, mark::Mark, overlay::Overlay};

/// `<group>/<plural>` NUL `<namespace>/<name>` to the version and the object without it.
const OBJECTS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("objects");
const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
const VERSION: &str = "version";
const FORMAT: &str = "format";
/// Raised when a program of today could not read what one of tomorrow writes.
const KNOWN_FORMAT: u64 = 1;

/// Bytes of pages that are kept. All objects are in memory anyway and are read once only.
const CACHE: usize = 4 << 20;

/// How far redb says that a repair is when it is about to undo the last change, and only then.
const UNDOING: RangeInclusive<f64> = 0.2..=0.4;

pub(super) struct Disk {
    database: Database,
    /// How far it has come; none in memory.
    mark: Option<Mark>,
}

/// What a file holds.
pub(super) struct Found {
    pub(super) state: State,
    /// Whether a change after this state could not be read.
    pub(super) is_undone: bool,
    pub(super) lost: Option<Lost>,
}

/// Changes that had been stored and are no longer there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lost {
    /// The last version that was stored.
    pub(super) was: u64,
    /// The last one that is left.
    pub(super) is: u64,
}

impl Disk {
    /// The file, and what is in it.
    ///
    /// It is first read without being opened for writing: redb writes to what it opens, and a file that
    /// is damaged or newer than this program is to stay as it is.
    pub(super) fn open(path: &Path) -> Result<(Self, Found), Error> {
        let is_new = is_absent(path);
        if is_new {
            guarded(path, || create(path))?;
        }
        let mut found = guarded(path, || peek(path))?;
        let disk = guarded(path, || Self::open_for_writing(path))?;
        if let Some(mark) = &disk.mark {
            let is = found.state.version();
            match mark.version().filter(|was| *was > is && !is_new) {
                // Clients know versions up to that one, which must not stand for something else now.
                Some(was) => {
                    found.lost = Some(Lost { was, is });
                    found.state.go_on_after(was);
                }
                None => mark.note(is),
            }
        }
        Ok((disk, found))
    }

    fn open_for_writing(path: &Path) -> Result<Self, Error> {
        let file = OpenOptions::new().read(true).write(true).open(path);
        let file = file.map_err(|source| cannot_create(path, source))?;
        let database = builder().create_file(file).map_err(|error| cannot_open(path, error))?;
        Ok(Self { database, mark: Some(Mark::open(path)) })
    }

    /// The file after a commit has failed, with the objects that are known to be stored. Part of what
    /// failed may be in it.
    pub(super) fn reopen(path: &Path, known: &State) -> Result<Self, redb::Error> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        // redb panics over some of the files that it has not finished.
        let opened = catch_unwind(AssertUnwindSafe(|| builder().create_file(file)));
        let damaged = || redb::Error::Corrupted("it cannot be opened again".into());
        let database = opened.map_err(|_| damaged())??;
        let disk = Self { database, mark: Some(Mark::open(path)) };
        if disk.version()? != known.version() {
            disk.rewrite(known)?;
        }
        Ok(disk)
    }

    fn version(&self) -> Result<u64, redb::Error> {
        let read = self.database.begin_read()?;
        match read.open_table(META) {
            Err(redb::TableError::TableDoesNotExist(_)) => Ok(0),
            meta => Ok(meta?.get(VERSION)?.map_or(0, |found| found.value())),
        }
    }

    fn rewrite(&self, known: &State) -> Result<(), redb::Error> {
        let write = self.database.begin_write()?;
        write.delete_table(OBJECTS)?;
        {
            let mut objects = write.open_table(OBJECTS)?;
            for resource in known.resources() {
                for (name, object) in known.list(resource, "") {
                    let key = format!("{resource}\0{name}");
                    objects.insert(key.as_str(), row(object).as_slice())?;
                }
            }
            let mut meta = write.open_table(META)?;
            meta.insert(FORMAT, KNOWN_FORMAT)?;
            meta.insert(VERSION, known.version())?;
        }
        Ok(write.commit()?)
    }

    pub(super) fn in_memory() -> Result<Self, Error> {
        let database = builder().create_with_backend(InMemoryBackend::new());
        let database = database.map_err(|error| Error::Read(Box::new(error.into())))?;
        Ok(Self { database, mark: None })
    }

    pub(super) fn load(&self) -> Result<State, Error> {
        load(&self.database)
    }

    /// All of the changes or none. They are on the disk when this returns.
    ///
    /// What redb calls quick repair is off: it costs a second flush per commit, and the walk it
    /// saves after a crash is over what is read at the start anyway.
    pub(super) fn commit(&self, changes: &[Change]) -> Result<(), redb::Error> {
        let Some(last) = changes.last() else { return Ok(()) };
        let write = self.database.begin_write()?;
        {
            let mut objects = write.open_table(OBJECTS)?;
            for change in changes {
                let key = format!("{}\0{}", change.key.resource, change.key.name);
                let Some(object) = &change.new else {
                    objects.remove(key.as_str())?;
                    continue;
                };
                objects.insert(key.as_str(), row(object).as_slice())?;
            }
            let mut meta = write.open_table(META)?;
            meta.insert(FORMAT, KNOWN_FORMAT)?;
            meta.insert(VERSION, last.version)?;
        }
        write.commit()?;
        if let Some(mark) = &self.mark {
            mark.note(last.version);
        }
        Ok(())
    }
}

/// Whether it may go well when others have made room.
pub(super) fn is_full(error: &redb::Error) -> bool {
    let redb::Error::Io(error) = error else { return false };
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
    )
}

fn row(object: &Object) -> Vec<u8> {
    let mut row = object.version().to_be_bytes().to_vec();
    object.stored().iter().for_each(|part| row.extend_from_slice(part));
    row
}

fn is_absent(path: &Path) -> bool {
    fs::metadata(path).map_or(0, |meta| meta.len()) == 0
}

/// Makes the file beside its place and moves it there when it is whole: redb writes what it knows a
/// file by last, and whoever is killed before that must not leave one that never opens.
fn create(path: &Path) -> Result<(), Error> {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    let new = Path::new(&name);
    let failed = |source: io::Error| cannot_create(path, source);
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    let file = options.open(new).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            return Err(Error::InUse { path: path.display().to_string() });
        }
        Err(TryLockError::Error(source)) => return Err(failed(source)),
    }
    // Another process may have been faster, and its file may be the one that is open here.
    if !is_absent(path) {
        return Ok(());
    }
    file.set_len(0).map_err(failed)?;
    let whole = file.try_clone().map_err(failed)?;
    let database = builder().create_file(file).map_err(|error| cannot_open(path, error))?;
    found(&database).map_err(|error| Error::Read(Box::new(error)))?;
    drop(database);
    whole.sync_all().map_err(failed)?;
    fs::rename(new, path).map_err(failed)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = File::open(folder.unwrap_or(Path::new("."))).map_err(failed)?;
    folder.sync_all().map_err(failed)
}

/// The marks of a store that holds nothing yet.
fn found(database: &Database) -> Result<(), redb::Error> {
    let write = database.begin_write()?;
    {
        write.open_table(OBJECTS)?;
        let mut meta = write.open_table(META)?;
        meta.insert(FORMAT, KNOWN_FORMAT)?;
        meta.insert(VERSION, 0)?;
    }
    Ok(write.commit()?)
}

/// What is in the file, which is checked to be what was written: redb believes a file that was closed.
/// Nothing is written to it. If its last user did not come to close it, it is mended in memory. Then a
/// last change that is not whole is undone: whether it was ever finished cannot be told.
fn peek(path: &Path) -> Result<Found, Error> {
    let failed = |error| cannot_open(path, error);
    // Held to the end, so that nobody changes it meanwhile.
    let closed = match builder().open_read_only(path) {
        Ok(closed) => Some(closed),
        Err(DatabaseError::RepairAborted) => None,
        Err(error) => return Err(failed(error)),
    };
    let overlay = Overlay::open(path).map_err(|source| cannot_create(path, source))?;
    let is_undone = Arc::new(AtomicBool::new(false));
    let undone = is_undone.clone();
    let mut builder = builder();
    builder.set_repair_callback(move |repair| {
        if UNDOING.contains(&repair.progress()) {
            undone.store(true, Ordering::Relaxed);
        }
    });
    let mut database = builder.create_with_backend(overlay).map_err(failed)?;
    if closed.is_some() && !database.check_integrity().map_err(failed)? {
        return Err(Error::Damaged { path: path.display().to_string() });
    }
    let is_undone = is_undone.load(Ordering::Relaxed);
    Ok(Found { state: load(&database)?, is_undone, lost: None })
}

fn cannot_create(path: &Path, source: io::Error) -> Error {
    Error::Create { path: path.display().to_string(), source }
}

fn cannot_open(path: &Path, error: DatabaseError) -> Error {
    let path = path.display().to_string();
    match error {
        DatabaseError::DatabaseAlreadyOpen => Error::InUse { path },
        error => Error::Open { path, source: Box::new(error.into()) },
    }
}

/// redb panics over some of the files that it did not write.
fn guarded<T>(path: &Path, open: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    // Whatever it has left half done is dropped with it.
    catch_unwind(AssertUnwindSafe(open))
        .unwrap_or_else(|_| Err(Error::Damaged { path: path.display().to_string() }))
}

fn load(database: &impl ReadableDatabase) -> Result<State, Error> {
    let read = database.begin_read().map_err(cannot_read)?;
    let meta = match read.open_table(META) {
        Err(redb::TableError::TableDoesNotExist(_)) => return Ok(State::new(0)),
        meta => meta.map_err(cannot_read)?,
    };
    let number = |name| {
        let found = meta.get(name).map_err(cannot_read)?;
        Ok::<_, Error>(found.map_or(0, |found| found.value()))
    };
    let found = number(FORMAT)?;
    if found != KNOWN_FORMAT {
        return Err(Error::Format { found, known: KNOWN_FORMAT });
    }
    let mut state = State::new(number(VERSION)?);
    let objects = read.open_table(OBJECTS).map_err(cannot_read)?;
    for row in objects.iter().map_err(cannot_read)? {
        let (key, value) = row.map_err(cannot_read)?;
        let (key, object) = parse(key.value(), value.value())?;
        state.set(&key, Some(Arc::new(object)));
    }
    Ok(state)
}

fn cannot_read(error: impl Into<redb::Error>) -> Error {
    Error::Read(Box::new(error.into()))
}

fn builder() -> redb::Builder {
    let mut builder = Database::builder();
    builder.set_cache_size(CACHE);
    builder
}

fn parse(key: &str, bytes: &[u8]) -> Result<(Key, Object), Error> {
    let unreadable = |source| Error::Unreadable { key: key.replace('\0', " "), source };
    let (version, json) = bytes.split_at_checked(8).unwrap_or((&[], bytes));
    let version = version.try_into().map(u64::from_be_bytes).unwrap_or_default();
    let object = Object::from_disk(json, version).map_err(unreadable)?;
    let (resource, name) = key.split_once('\0').unwrap_or((key, ""));
    Ok((Key { resource: resource.into(), name: name.into() }, object))
}
