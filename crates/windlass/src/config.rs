//! `--config FILE`: flags from a YAML file. Flags given on the command line and in the environment win.

use std::{env, ffi::OsString, fs, path::Path};

use serde_json::{Map, Value};

use crate::exit::BadInput;

const VARIABLE: &str = "WINDLASS_CONFIG";

/// Puts the file's entries in front of the flags that were given, so that those override them.
pub(crate) fn expand(arguments: Vec<OsString>) -> anyhow::Result<Vec<OsString>> {
    if arguments.get(1).is_none_or(|command| command != "operator") {
        return Ok(arguments);
    }
    let Some(path) = path(&arguments) else { return Ok(arguments) };
    let settings = read(Path::new(&path))?;
    let in_environment = |name: &str| env::var_os(variable(name)).is_some();
    let from_file = flags(&settings, in_environment)?;
    // Program and command come first.
    let split = arguments.len().min(2);
    let (head, tail) = arguments.split_at(split);
    Ok([head, &from_file, tail].concat())
}

fn path(arguments: &[OsString]) -> Option<OsString> {
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match argument.to_str() {
            Some("--config") => return arguments.next().cloned(),
            Some(text) => {
                if let Some(path) = text.strip_prefix("--config=") {
                    return Some(path.into());
                }
            }
            None => {}
        }
    }
    env::var_os(VARIABLE)
}

fn read(path: &Path) -> anyhow::Result<Map<String, Value>> {
    let bad = |why: String| BadInput(format!("cannot use the config {}: {why}", path.display()));
    let text = fs::read_to_string(path).map_err(|error| bad(error.to_string()))?;
    match serde_saphyr::from_str(&text) {
        Ok(Value::Object(settings)) => Ok(settings),
        Ok(Value::Null) => Ok(Map::new()),
        Ok(_) => Err(bad("it must be a map of flag names to values".to_owned()).into()),
        Err(error) => Err(bad(error.to_string()).into()),
    }
}

/// `watch-namespaces` is read from `WINDLASS_WATCH_NAMESPACES`.
fn variable(name: &str) -> String {
    format!("WINDLASS_{}", name.replace('-', "_").to_uppercase())
}

fn flags(
    settings: &Map<String, Value>,
    in_environment: impl Fn(&str) -> bool,
) -> anyhow::Result<Vec<OsString>> {
    let mut flags = Vec::new();
    for (name, value) in settings {
        if in_environment(name) {
            continue;
        }
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Bool(_) | Value::Number(_) => value.to_string(),
            Value::Array(items) => {
                let items: Vec<_> =
                    items.iter().map(|i| i.as_str().map_or(i.to_string(), str::to_owned)).collect();
                items.join(",")
            }
            Value::Null | Value::Object(_) => {
                let text =
                    format!("config entry {name} must be a text, a number, true, false or a list");
                return Err(BadInput(text).into());
            }
        };
        flags.push(format!("--{name}={text}").into());
    }
    Ok(flags)
}

#[cfg(test)]
mod tests;
