//! Which index of Python packages the user has, as pip is told.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use windlass_kit::wheel;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Pip {
    pub(super) index: String,
    /// Authorities beyond those of the machine.
    pub(super) cert: Option<PathBuf>,
}

impl Pip {
    pub(super) fn of_user() -> Self {
        let variable = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
        let files = files(variable).into_iter();
        let texts: Vec<_> = files.filter_map(|file| fs::read_to_string(file).ok()).collect();
        Self::new(variable, &texts)
    }

    /// Of the files a later one counts before an earlier one, and variables before all of them.
    fn new(variable: impl Fn(&str) -> Option<String>, files: &[String]) -> Self {
        let setting = |name: &str| {
            let of_variable = variable(&format!("PIP_{}", name.to_uppercase().replace('-', "_")));
            of_variable.or_else(|| files.iter().rev().find_map(|file| value(file, name)))
        };
        let cert = setting("cert").map(PathBuf::from).filter(|path| path.is_file());
        Self { index: setting("index-url").unwrap_or_else(|| wheel::INDEX.to_owned()), cert }
    }
}

/// Those of the machine, of the user and of the environment.
fn files(variable: impl Fn(&str) -> Option<String>) -> Vec<PathBuf> {
    let below = |name: &str, rest: &str| Some(Path::new(&variable(name)?).join(rest));
    let all = [
        Some("/etc/xdg/pip/pip.conf".into()),
        Some("/etc/pip.conf".into()),
        below("HOME", ".pip/pip.conf"),
        below("XDG_CONFIG_HOME", "pip/pip.conf").or_else(|| below("HOME", ".config/pip/pip.conf")),
        below("VIRTUAL_ENV", "pip.conf"),
        variable("PIP_CONFIG_FILE").map(PathBuf::from),
    ];
    all.into_iter().flatten().collect()
}

/// Of `[global]`, and of the command that we stand in for.
fn value(file: &str, name: &str) -> Option<String> {
    let mut is_ours = false;
    let mut found = None;
    for line in file.lines().map(str::trim) {
        if let Some(section) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            is_ours = matches!(section.trim(), "global" | "download");
        } else if let Some((key, value)) = line.split_once(['=', ':'])
            && is_ours
            && key.trim().replace('_', "-") == name
        {
            found = Some(value.trim().to_owned());
        }
    }
    found.filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_is_the_one_that_pip_would_ask() {
        let machine =
            "[global]\n# index-url = https://no.example\nindex-url = https://a.example/simple\n";
        let user =
            "[install]\nindex-url=https://no.example\n[global]\nindex_url: https://b.example\n";
        let empty = "[global]\nindex-url =\n";
        let usual = wheel::INDEX;
        for (variable, files, want) in [
            (None, &[][..], usual),
            (None, &[machine], "https://a.example/simple"),
            (None, &[machine, user], "https://b.example"),
            (None, &[machine, empty], "https://a.example/simple"),
            (Some("https://c.example"), &[machine, user], "https://c.example"),
        ] {
            let files: Vec<String> = files.iter().map(|file| (*file).to_owned()).collect();
            let named = |name: &str| variable.filter(|_| name == "PIP_INDEX_URL");
            let pip = Pip::new(|name| named(name).map(str::to_owned), &files);
            assert_eq!(pip.index, want, "{variable:?} {files:?}");
        }
    }
}
