//! Manifests as users write them: files of YAML documents, each remembered with its place.

use std::{
    fmt, fs,
    io::{self, Read},
    path::{Path, PathBuf},
};

use serde_json::Value;

use crate::exit::BadInput;

/// One object and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Document {
    pub(crate) place: Place,
    pub(crate) value: Value,
}

#[derive(Clone, Debug)]
pub(crate) struct Place {
    file: PathBuf,
    /// Counted from 1, as an editor's search for `---` would.
    number: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: document {}", self.file.display(), self.number)
    }
}

impl Place {
    pub(crate) fn bad(&self, problem: impl fmt::Display) -> BadInput {
        BadInput(format!("{self}: {problem}"))
    }
}

/// The documents of all files, empty ones left out.
pub(crate) fn read(files: &[PathBuf]) -> Result<Vec<Document>, BadInput> {
    let mut documents = Vec::new();
    for file in files {
        documents.extend(parse(file, &text_of(file)?)?);
    }
    Ok(documents)
}

/// The documents of a text that stands in a file, empty ones left out.
pub(crate) fn parse(file: &Path, text: &str) -> Result<Vec<Document>, BadInput> {
    let mut documents = Vec::new();
    for (index, part) in split(text).into_iter().enumerate() {
        let place = Place { file: file.to_owned(), number: index + 1 };
        match serde_saphyr::from_str::<Value>(&part.text) {
            Ok(Value::Null) => {}
            Ok(mut value) => {
                normalise(&mut value);
                documents.push(Document { place, value });
            }
            Err(error) => {
                // Once more with the lines before it, so that the message names the file's line.
                let text = "\n".repeat(part.first_line) + &part.text;
                let error = serde_saphyr::from_str::<Value>(&text).err().unwrap_or(error);
                return Err(place.bad(format!("not valid YAML: {error}")));
            }
        }
    }
    Ok(documents)
}

fn text_of(file: &Path) -> Result<String, BadInput> {
    let bad = |error: io::Error| BadInput(format!("cannot read {}: {error}", file.display()));
    if file == Path::new("-") {
        let mut text = String::new();
        io::stdin().read_to_string(&mut text).map_err(bad)?;
        return Ok(text);
    }
    fs::read_to_string(file).map_err(bad)
}

/// A document's text and where in the file it begins.
#[derive(Debug, Default)]
struct Part {
    first_line: usize,
    text: String,
}

/// At lines that begin a document. Done here rather than by the parser, so that one broken document
/// can be named by its number.
fn split(text: &str) -> Vec<Part> {
    let mut parts = vec![Part::default()];
    let mut begun = false;
    for (index, line) in text.lines().enumerate() {
        let separator = line == "---" || line.starts_with("--- ");
        // A document may begin on the line of its separator.
        let content = if separator { line[3..].trim_start() } else { line };
        if separator && std::mem::take(&mut begun) {
            parts.push(Part { first_line: index, text: String::new() });
        }
        if let Some(part) = parts.last_mut() {
            part.text.push_str(content);
            part.text.push('\n');
        }
        let content = content.trim_start();
        begun |= !content.is_empty() && !content.starts_with('#');
    }
    parts
}

/// As the API server reads it: a null stands for nothing, and `2.0` for 2.
fn normalise(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, value| !value.is_null());
            map.values_mut().for_each(normalise);
        }
        Value::Array(items) => items.iter_mut().for_each(normalise),
        Value::Number(number) => {
            // Up to here every whole number has a form of its own.
            let whole = number.as_f64().filter(|n| n.fract() == 0.0 && n.abs() < 9e15);
            if let (false, Some(whole)) = (number.is_i64() || number.is_u64(), whole) {
                *number = (whole as i64).into();
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests;
