//! Exit codes: 0 done, 1 failed, 2 bad usage or bad input.

use std::{fmt, io, process::ExitCode};

use windlass_engine::error::chain;

/// The user gave something that cannot be used; nothing was done.
#[derive(Debug)]
pub(crate) struct BadInput(pub(crate) String);

impl fmt::Display for BadInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadInput {}

/// Prints the error with its causes and chooses the exit code.
pub(crate) fn report(result: anyhow::Result<()>) -> ExitCode {
    let Err(error) = result else { return ExitCode::SUCCESS };
    // The reader of our output went away (`| head`): it has what it wanted.
    if error.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe) {
        return ExitCode::SUCCESS;
    }
    eprintln!("error: {}", chain(error.as_ref()));
    if error.downcast_ref::<BadInput>().is_some() { ExitCode::from(2) } else { ExitCode::FAILURE }
}
