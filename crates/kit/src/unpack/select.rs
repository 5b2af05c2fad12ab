//! Which layers are wanted.

use std::str::FromStr;

use crate::kitfile::{Entry, Kind, Path};

/// Kinds of layers, and if any are named, only those entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    kinds: Vec<Wanted>,
    names: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    Kitfile,
    Model,
    Datasets,
    Code,
    Docs,
    Prompts,
}

#[derive(Debug, thiserror::Error)]
#[error(
    "invalid filter {0:?}: kitfile, model, datasets, code, docs and prompts, separated by commas, \
     and after a colon names or paths"
)]
pub struct InvalidFilter(String);

impl FromStr for Filter {
    type Err = InvalidFilter;

    fn from_str(text: &str) -> Result<Self, InvalidFilter> {
        let invalid = || InvalidFilter(text.to_owned());
        let (kinds, names) = text.split_once(':').unwrap_or((text, ""));
        if names.contains(':') {
            return Err(invalid());
        }
        let kind = |kind: &str| match kind.trim() {
            "kitfile" => Ok(Wanted::Kitfile),
            "model" => Ok(Wanted::Model),
            "datasets" => Ok(Wanted::Datasets),
            "code" => Ok(Wanted::Code),
            "docs" => Ok(Wanted::Docs),
            "prompts" => Ok(Wanted::Prompts),
            _ => Err(invalid()),
        };
        Ok(Self {
            kinds: kinds.split(',').map(kind).collect::<Result<_, _>>()?,
            names: names.split(',').filter(|n| !n.is_empty()).map(str::to_owned).collect(),
        })
    }
}

impl Filter {
    fn has(&self, entry: &Entry) -> bool {
        let wanted = match entry.kind {
            Kind::Model | Kind::ModelPart => Wanted::Model,
            Kind::Dataset => Wanted::Datasets,
            Kind::Code => Wanted::Code,
            Kind::Docs => Wanted::Docs,
            Kind::Prompt => Wanted::Prompts,
        };
        // However it is written, as in the Kitfile.
        let is_path = |name: &String| Path::parse(name).is_ok_and(|path| path == entry.path);
        let is_named = |name: &String| *name == entry.name || is_path(name);
        self.kinds.contains(&wanted) && (self.names.is_empty() || self.names.iter().any(is_named))
    }
}

/// Without filters everything is wanted.
pub fn wants(filters: &[Filter], entry: &Entry) -> bool {
    filters.is_empty() || filters.iter().any(|filter| filter.has(entry))
}

pub fn wants_kitfile(filters: &[Filter]) -> bool {
    filters.is_empty() || filters.iter().any(|filter| filter.kinds.contains(&Wanted::Kitfile))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kitfile;

    #[test]
    fn k19_filters_choose_by_kind_and_name() {
        let text = "{model: {name: tiny, path: m, parts: [{path: c}]}, datasets: [{name: conf, path: d}], docs: [{path: README.md}]}";
        let entries = Kitfile::from_yaml(text).unwrap().entries().unwrap();
        for (filters, want) in [
            (&[][..], "m c d README.md"),
            (&["model"], "m c"),
            (&["model:tiny"], "m"),
            (&["datasets:conf"], "d"),
            (&["docs:README.md"], "README.md"),
            (&["docs:./README.md"], "README.md"),
            (&["docs:../README.md"], ""),
            (&["model:./c/"], "c"),
            (&["datasets", "docs:other"], "d"),
            (&["datasets,docs"], "d README.md"),
            (&["kitfile"], ""),
        ] {
            let filters: Vec<Filter> = filters.iter().map(|text| text.parse().unwrap()).collect();
            let chosen: Vec<&str> = entries
                .iter()
                .filter(|entry| wants(&filters, entry))
                .map(|entry| entry.path.as_str())
                .collect();
            assert_eq!(chosen.join(" "), want, "{filters:?}");
        }
        for text in ["foo", "a:b:c", "", "model,", "model:a:b"] {
            assert!(text.parse::<Filter>().is_err(), "{text:?}");
        }
    }
}
