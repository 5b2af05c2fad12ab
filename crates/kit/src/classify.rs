//! What the files of a repository are, judged by their names, and the Kitfile that follows from it.

use std::collections::BTreeMap;

use crate::kitfile::{Code, Dataset, Docs, Kitfile, Model, NAMES, Package, Part, Prompt};

/// A file of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    pub path: String,
    pub size: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    Docs(&'static str),
    Prompt,
    Model,
    Metadata,
    Dataset,
    Other,
}

const MODELS: [&str; 23] = [
    ".safetensors",
    ".pkl",
    ".joblib",
    ".bin",
    ".pth",
    ".pt",
    ".mar",
    ".pt2",
    ".ptl",
    ".pb",
    ".ckpt",
    ".tflite",
    ".tfrecords",
    ".npy",
    ".npz",
    ".keras",
    ".h5",
    ".caffemodel",
    ".pmml",
    ".coreml",
    ".gguf",
    ".ggml",
    ".ggmf",
];
const MORE_MODELS: [&str; 2] = [".llamafile", ".onnx"];
const METADATA: [&str; 4] = [".json", ".yaml", ".xml", ".txt"];
const DOCS: [&str; 4] = [".md", ".adoc", ".html", ".pdf"];
const DATASETS: [&str; 4] = [".tar", ".zip", ".parquet", ".csv"];
/// Of which nothing more is known.
const ARCHIVES: [&str; 6] = [".gz", ".tgz", ".bz2", ".xz", ".zst", ".7z"];
const PROMPTS: [&str; 3] = ["agents.md", "skill.md", "claude.md"];
const SOURCES: [&str; 4] = ["src", "pkg", "lib", "build"];
/// From so many mixed directories on, one layer has them all.
const MIXED: usize = 5;

/// The Kitfile of a repository `organisation/name` with these files, in their order.
pub fn kitfile(repository: &str, files: &[Listed]) -> Kitfile {
    let (organisation, name) = repository.split_once('/').unwrap_or(("", repository));
    let mut found = Found::default();
    let mut directories: Vec<(&str, Vec<&Listed>)> = Vec::new();
    for file in files {
        match file.path.split_once('/') {
            None if NAMES.contains(&file.path.as_str()) => {}
            None => found.root_file(file),
            Some((directory, _)) => match directories.iter_mut().find(|(d, _)| *d == directory) {
                Some((_, within)) => within.push(file),
                None => directories.push((directory, vec![file])),
            },
        }
    }
    for (directory, files) in directories {
        found.directory(directory, &files);
    }
    let mut kitfile = found.kitfile();
    kitfile.package.name = name.to_owned();
    kitfile.package.authors =
        Some(organisation).filter(|o| !o.is_empty()).map(str::to_owned).into_iter().collect();
    kitfile
}

/// Whether it is the name of a file, and not of a repository, as far as its ending tells.
pub fn is_file_name(name: &str) -> bool {
    let all = [&MODELS[..], &MORE_MODELS, &METADATA, &DOCS, &DATASETS, &ARCHIVES];
    all.iter().any(|endings| endings.iter().any(|ending| name.ends_with(ending)))
}

/// Whether the file is needed for the Kitfile.
pub fn is_listed(kitfile: &Kitfile, path: &str) -> bool {
    let entries = kitfile.entries().unwrap_or_default();
    entries.iter().any(|entry| entry.path.contains(path))
}

#[derive(Default)]
struct Found {
    models: Vec<Listed>,
    metadata: Vec<String>,
    docs: Vec<Docs>,
    prompts: Vec<String>,
    datasets: Vec<String>,
    code: Vec<String>,
    is_whole: bool,
    mixed: usize,
}

impl Found {
    fn root_file(&mut self, file: &Listed) {
        let path = file.path.clone();
        match class(&path) {
            Class::Docs(description) => {
                self.docs.push(Docs {
                    path,
                    description: description.to_owned(),
                    ..Docs::default()
                });
            }
            Class::Prompt => self.prompts.push(path),
            Class::Model => self.models.push(file.clone()),
            Class::Metadata => self.metadata.push(path),
            Class::Dataset => self.datasets.push(path),
            Class::Other => self.is_whole = true,
        }
    }

    fn directory(&mut self, directory: &str, files: &[&Listed]) {
        if directory == "docs" {
            self.docs.push(Docs { path: directory.to_owned(), ..Docs::default() });
            return;
        }
        if SOURCES.contains(&directory) {
            self.code.push(directory.to_owned());
            return;
        }
        let below = |file: &Listed| file.path[directory.len() + 1..].to_owned();
        let is_nested = files.iter().any(|file| below(file).contains('/'));
        let mut classes: BTreeMap<Class, usize> = BTreeMap::new();
        for file in files {
            let class = match class(&below(file)) {
                Class::Docs(_) => Class::Docs(""),
                class => class,
            };
            *classes.entry(class).or_default() += 1;
        }
        classes.remove(&Class::Metadata);
        let only = match (classes.len(), classes.keys().next()) {
            (1, Some(class)) if !is_nested => Some(*class),
            _ => None,
        };
        match only {
            Some(Class::Model) => self.models(files, &below),
            Some(Class::Dataset) => self.datasets.push(directory.to_owned()),
            Some(Class::Docs(_)) => {
                self.docs.push(Docs { path: directory.to_owned(), ..Docs::default() });
            }
            Some(Class::Prompt) => self.prompts.push(directory.to_owned()),
            Some(Class::Metadata | Class::Other) | None => {
                let is_model = |file: &&&Listed| class(&below(file)) == Class::Model;
                self.models.extend(files.iter().filter(is_model).map(|file| (*file).clone()));
                self.code.push(directory.to_owned());
                self.mixed += 1;
                self.is_whole |= self.mixed > MIXED;
            }
        }
    }

    /// A directory of nothing but a model, and what describes it.
    fn models(&mut self, files: &[&Listed], below: &impl Fn(&Listed) -> String) {
        for file in files {
            match class(&below(file)) {
                Class::Model => self.models.push((*file).clone()),
                _ => self.metadata.push(file.path.clone()),
            }
        }
    }

    fn kitfile(self) -> Kitfile {
        let whole = vec![".".to_owned()];
        let code = if self.is_whole { whole } else { self.code };
        let mut datasets = self.datasets;
        let model = model(&self.models, &self.metadata);
        if model.is_none() {
            datasets.extend(self.metadata);
        }
        let dataset = |path: String| Dataset { path, ..Dataset::default() };
        Kitfile {
            manifest_version: "1.0.0".to_owned(),
            package: Package::default(),
            model,
            code: code.into_iter().map(|path| Code { path, ..Code::default() }).collect(),
            datasets: datasets.into_iter().map(dataset).collect(),
            docs: self.docs,
            prompts: { self.prompts }
                .into_iter()
                .map(|path| Prompt { path, ..Prompt::default() })
                .collect(),
        }
    }
}

/// The largest file if it stands out, else the first; all others are its parts.
fn model(files: &[Listed], metadata: &[String]) -> Option<Model> {
    let total: u64 = files.iter().map(|file| file.size).sum();
    let first = files.first()?;
    let largest = files.iter().rev().max_by_key(|file| file.size)?;
    let count = files.len() as u64;
    // More than one and a half times the mean, in whole numbers.
    let stands_out = count == 1 || largest.size.saturating_mul(2 * count) > total.saturating_mul(3);
    let chosen = if stands_out { largest } else { first };
    let others = files.iter().filter(|file| file.path != chosen.path).map(|file| &file.path);
    let name = chosen.path.rsplit_once('.').map_or(chosen.path.as_str(), |(name, _)| name);
    let part = |path: &String| Part { path: path.clone(), ..Part::default() };
    Some(Model {
        name: if stands_out { name.to_owned() } else { String::new() },
        path: chosen.path.clone(),
        parts: others.chain(metadata).map(part).collect(),
        ..Model::default()
    })
}

fn class(name: &str) -> Class {
    let lower = name.to_lowercase();
    let ends = |suffixes: &[&str]| suffixes.iter().any(|suffix| name.ends_with(suffix));
    match () {
        () if lower.starts_with("readme") => Class::Docs("Readme file"),
        () if lower.starts_with("license") => Class::Docs("License file"),
        () if PROMPTS.contains(&lower.as_str()) || name.contains(".prompt") => Class::Prompt,
        () if ends(&MODELS) || ends(&MORE_MODELS) => Class::Model,
        () if ends(&METADATA) => Class::Metadata,
        () if ends(&DOCS) => Class::Docs(""),
        () if ends(&DATASETS) => Class::Dataset,
        () => Class::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(files: &[(&str, u64)]) -> Kitfile {
        let listed = |(path, size): &(&str, u64)| Listed { path: (*path).to_owned(), size: *size };
        kitfile("org/tiny", &files.iter().map(listed).collect::<Vec<_>>())
    }

    fn parts(kitfile: &Kitfile) -> Vec<&str> {
        kitfile.model.iter().flat_map(|model| &model.parts).map(|part| part.path.as_str()).collect()
    }

    const K27: [(&str, u64); 5] = [
        ("m-1.safetensors", 10),
        ("m-2.safetensors", 10),
        ("config.json", 1),
        ("README.md", 1),
        ("LICENSE", 1),
    ];

    #[test]
    fn files_and_repositories_are_told_apart_by_their_endings() {
        for (name, want) in [
            ("tiny.gguf", true),
            ("weights.tar.gz", true),
            ("data.zip", true),
            ("llama.cpp", false),
            ("tiny.git", false),
            ("tiny", false),
            ("readme-tools", false),
        ] {
            assert_eq!(is_file_name(name), want, "{name}");
        }
    }

    #[test]
    fn k27_a_repository_of_equal_weights() {
        let kitfile = of(&K27);
        assert_eq!(kitfile.model.as_ref().unwrap().path, "m-1.safetensors");
        assert_eq!(parts(&kitfile), ["m-2.safetensors", "config.json"]);
        let docs: Vec<_> =
            kitfile.docs.iter().map(|d| (d.path.as_str(), d.description.as_str())).collect();
        assert_eq!(docs, [("README.md", "Readme file"), ("LICENSE", "License file")]);
        assert!(kitfile.code.is_empty());
        assert_eq!(
            (kitfile.package.name.as_str(), &kitfile.package.authors[..]),
            ("tiny", &["org".to_owned()][..])
        );
    }

    #[test]
    fn k27_what_is_nothing_known_makes_one_layer_of_all_code() {
        let more = [K27.as_slice(), &[("run.sh", 1), ("src/a.py", 1)]].concat();
        let code: Vec<String> = of(&more).code.into_iter().map(|code| code.path).collect();
        assert_eq!(code, ["."]);
    }

    #[test]
    fn the_largest_file_is_the_model_if_it_stands_out() {
        let kitfile = of(&[("adapter.bin", 10), ("model.gguf", 100), ("config.json", 1)]);
        let model = kitfile.model.as_ref().unwrap();
        assert_eq!((model.path.as_str(), model.name.as_str()), ("model.gguf", "model"));
        assert_eq!(parts(&kitfile), ["adapter.bin", "config.json"]);
    }

    #[test]
    fn directories_are_what_is_in_them() {
        let kitfile = of(&[
            ("docs/a.png", 1),
            ("lib/x.c", 1),
            ("weights/a.onnx", 9),
            ("weights/a.json", 1),
            ("data/a.csv", 1),
            ("data/b.json", 1),
            ("mixed/a.csv", 1),
            ("mixed/b.gguf", 2),
            ("deep/er/a.md", 1),
        ]);
        assert_eq!(kitfile.model.as_ref().unwrap().path, "weights/a.onnx");
        assert_eq!(parts(&kitfile), ["mixed/b.gguf", "weights/a.json"]);
        let paths = |all: &[Code]| all.iter().map(|code| code.path.clone()).collect::<Vec<_>>();
        assert_eq!(paths(&kitfile.code), ["lib", "mixed", "deep"]);
        assert_eq!(kitfile.datasets[0].path, "data");
        assert_eq!(kitfile.docs[0].path, "docs");
        assert!(kitfile.entries().is_ok());
    }
}
