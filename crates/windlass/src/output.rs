//! Objects as YAML on standard output.

use std::io::{self, Write};

use anyhow::Context;
use serde::Serialize;

/// All documents at once, so that a failure on the way prints nothing.
pub(crate) fn print_yaml<T: Serialize>(objects: &[T]) -> anyhow::Result<()> {
    let mut text = String::new();
    for object in objects {
        text.push_str("---\n");
        text.push_str(&to_yaml(object)?);
    }
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()?;
    Ok(())
}

pub(crate) fn to_yaml<T: Serialize>(object: &T) -> anyhow::Result<String> {
    let mut text = serde_saphyr::to_string(object).context("cannot write an object as YAML")?;
    if !text.ends_with('\n') {
        text.push('\n');
    }
    Ok(text)
}
