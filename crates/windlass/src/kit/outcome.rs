//! What went wrong, in words and as an exit code: 1 usage and all else, 3 not found, 4 not allowed,
//! 5 not what its digest says, 6 no answer, 7 not to be unpacked, 8 no space, 130 and 143 signals.

use std::{fmt, io, process::ExitCode};

use windlass_engine::error::chain;
use windlass_kit::{hub, manifest::read, pull, remote, store, tar, unpack, verify, web};

use super::output::capital;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Code {
    Other = 1,
    NotFound = 3,
    NotAllowed = 4,
    Mismatch = 5,
    NoAnswer = 6,
    Unsafe = 7,
    NoSpace = 8,
}

/// Told to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Interrupted {
    Interrupt,
    Terminate,
}

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "ended by a signal; what has come is kept, and the same command goes on from there",
        )
    }
}

impl std::error::Error for Interrupted {}

/// Something that was asked for is not there.
#[derive(Debug)]
pub(super) struct NotThere(pub(super) String);

impl fmt::Display for NotThere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NotThere {}

/// Bytes are not what their digest says.
#[derive(Debug)]
pub(super) struct NotTheSame(pub(super) String);

impl fmt::Display for NotTheSame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NotTheSame {}

/// What another program was told by somebody elsewhere.
#[derive(Debug)]
pub(super) enum Refusal {
    NotAllowed(String),
    NoAnswer(String),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAllowed(text) | Self::NoAnswer(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for Refusal {}

pub(super) fn report(error: &anyhow::Error) -> ExitCode {
    // The reader of our output went away (`| head`): it has what it wanted.
    if error.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe) {
        return ExitCode::SUCCESS;
    }
    eprintln!("[ERROR] {}", capital(&chain(error.as_ref())));
    match error.downcast_ref::<Interrupted>() {
        Some(Interrupted::Interrupt) => ExitCode::from(130),
        Some(Interrupted::Terminate) => ExitCode::from(143),
        None => ExitCode::from(code(error) as u8),
    }
}

/// The first of the causes that says something.
fn code(error: &anyhow::Error) -> Code {
    error.chain().find_map(of).unwrap_or(Code::Other)
}

/// Somebody else might get what was asked for.
pub(super) fn is_for_others(error: &anyhow::Error) -> bool {
    matches!(code(error), Code::NotAllowed | Code::NotFound)
}

fn of(error: &(dyn std::error::Error + 'static)) -> Option<Code> {
    if let Some(error) = error.downcast_ref::<remote::Error>() {
        return of_remote(error);
    }
    if let Some(error) = error.downcast_ref::<pull::Error>() {
        return of_pull(error);
    }
    if let Some(error) = error.downcast_ref::<unpack::Error>() {
        return of_unpack(error);
    }
    if let Some(error) = error.downcast_ref::<hub::Error>() {
        return of_hub(error);
    }
    if let Some(error) = error.downcast_ref::<web::Error>() {
        return of_web(error);
    }
    if let Some(error) = error.downcast_ref::<store::Error>() {
        return of_store(error);
    }
    if let Some(error) = error.downcast_ref::<read::Error>() {
        return of_contents(error);
    }
    if let Some(error) = error.downcast_ref::<verify::Error>() {
        return of_signatures(error);
    }
    if let Some(error) = error.downcast_ref::<io::Error>() {
        return of_io(error);
    }
    if error.is::<NotThere>() {
        return Some(Code::NotFound);
    }
    if let Some(error) = error.downcast_ref::<Refusal>() {
        return Some(match error {
            Refusal::NotAllowed(_) => Code::NotAllowed,
            Refusal::NoAnswer(_) => Code::NoAnswer,
        });
    }
    error.is::<NotTheSame>().then_some(Code::Mismatch)
}

fn of_remote(error: &remote::Error) -> Option<Code> {
    use remote::Error as E;
    match error {
        E::NotFound { .. } => Some(Code::NotFound),
        E::Denied { .. } => Some(Code::NotAllowed),
        E::Mismatch { .. } => Some(Code::Mismatch),
        E::Refused { .. } | E::Failed { .. } | E::Nonsense { .. } => Some(Code::NoAnswer),
        E::Source(source) => of_io(source),
        E::File { .. } | E::Setup(_) | E::Registry(_) => Some(Code::Other),
    }
}

fn of_pull(error: &pull::Error) -> Option<Code> {
    use pull::Error as E;
    match error {
        E::Remote(error) => of_remote(error),
        E::Store(error) => of_store(error),
        E::Manifest(..) => Some(Code::Unsafe),
        E::Digest { .. } | E::Size { .. } => Some(Code::Mismatch),
        E::Keep { source, .. } => of_io(source),
        E::Broken { .. } => Some(Code::NoAnswer),
    }
}

fn of_unpack(error: &unpack::Error) -> Option<Code> {
    use unpack::Error as E;
    match error {
        E::Digest { .. } | E::Size { .. } | E::DiffId { .. } => Some(Code::Mismatch),
        E::Exists(_) | E::NoFile(_) => Some(Code::Other),
        E::Through { .. } | E::Entries(_) | E::Bytes(_) | E::Names => Some(Code::Unsafe),
        // A connection that breaks is no fault of the archive.
        E::Archive(tar::read::Error::Read(source)) | E::Read(source) => {
            of_io(source).or(Some(Code::Unsafe))
        }
        E::Archive(_) => Some(Code::Unsafe),
        E::Write { source, .. } => of_io(source),
    }
}

fn of_hub(error: &hub::Error) -> Option<Code> {
    use hub::Error as E;
    match error {
        E::NoRepository(_) | E::NoRevision { .. } => Some(Code::NotFound),
        E::Gated(_) | E::Denied { .. } => Some(Code::NotAllowed),
        E::Mismatch { .. } => Some(Code::Mismatch),
        E::Refused { .. } | E::Failed { .. } | E::Nonsense { .. } => Some(Code::NoAnswer),
        E::Keep { source, .. } => of_io(source),
        E::Setup(error) => of_remote(error),
        E::Endpoint(_) | E::Repository(_) => Some(Code::Other),
    }
}

fn of_web(error: &web::Error) -> Option<Code> {
    use web::Error as E;
    match error {
        E::NotFound(_) => Some(Code::NotFound),
        E::Denied { .. } => Some(Code::NotAllowed),
        E::Mismatch { .. } => Some(Code::Mismatch),
        E::Refused { .. } | E::Failed { .. } | E::Page(_) => Some(Code::NoAnswer),
        E::Keep { source, .. } => of_io(source),
        E::Setup(error) => of_remote(error),
        E::Address(_) => Some(Code::Other),
    }
}

fn of_signatures(error: &verify::Error) -> Option<Code> {
    use verify::Error as E;
    match error {
        E::Remote(error) => of_remote(error),
        E::Unsigned(_) | E::Other { .. } => Some(Code::Mismatch),
        E::File { .. } | E::Key(_) | E::Reference(_) => Some(Code::Other),
    }
}

fn of_store(error: &store::Error) -> Option<Code> {
    use store::Error as E;
    match error {
        E::Missing(_) | E::Incomplete(_) => Some(Code::NotFound),
        E::Io { source, .. } => of_io(source),
        E::Damaged { .. } | E::Busy => Some(Code::Other),
    }
}

fn of_contents(error: &read::Error) -> Option<Code> {
    match error {
        read::Error::Mismatch(_) => Some(Code::Mismatch),
        read::Error::Path(_) | read::Error::Config(_) => Some(Code::Unsafe),
        read::Error::NoModel(_) | read::Error::Kitfile(_) => Some(Code::Other),
    }
}

fn of_io(error: &io::Error) -> Option<Code> {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<remote::Error>());
    match (inner, error.kind()) {
        (Some(inner), _) => of_remote(inner),
        (None, io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) => Some(Code::NoSpace),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use anyhow::Context;
    use windlass_kit::Digest;

    use super::*;

    #[test]
    fn an_error_has_the_code_of_what_is_beneath_it() {
        let full = || io::Error::from(io::ErrorKind::StorageFull);
        let digest = || Digest::of(b"");
        let gone = || remote::Error::NotFound { registry: "r".to_owned(), what: "w".to_owned() };
        let other = || io::Error::from(io::ErrorKind::PermissionDenied);
        for (error, want) in [
            (anyhow::Error::from(pull::Error::Remote(gone())), Code::NotFound),
            (unpack::Error::Size { digest: digest(), size: 1, is: 2 }.into(), Code::Mismatch),
            (unpack::Error::Read(io::Error::other(gone())).into(), Code::NotFound),
            (unpack::Error::Read(other()).into(), Code::Unsafe),
            (unpack::Error::Write { path: "p".to_owned(), source: full() }.into(), Code::NoSpace),
            (pull::Error::Keep { path: "p".into(), source: full() }.into(), Code::NoSpace),
            (hub::Error::Gated("g".to_owned()).into(), Code::NotAllowed),
            (full().into(), Code::NoSpace),
            (other().into(), Code::Other),
            (NotThere("it".to_owned()).into(), Code::NotFound),
            (NotTheSame("it".to_owned()).into(), Code::Mismatch),
            (Refusal::NotAllowed("it".to_owned()).into(), Code::NotAllowed),
            (Refusal::NoAnswer("it".to_owned()).into(), Code::NoAnswer),
            (anyhow::anyhow!("else"), Code::Other),
        ] {
            let text = error.to_string();
            let told = Err::<(), _>(error).context("cannot do it").unwrap_err();
            assert_eq!(code(&told), want, "{text}");
        }
    }
}
