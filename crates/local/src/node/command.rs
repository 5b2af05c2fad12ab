//! What a container runs: its rule's words, then its own.

#[cfg(test)]
mod tests;

use k8s_openapi::api::core::v1::Container;

use super::{
    images::{Placeholders, Rule, Unfilled},
    translate::Mounts,
};

/// The words of the process. `lookup` gives the container's variables as they are before mounts are
/// translated: a path that comes out of a variable must be translated once, not twice.
pub fn argv(
    rule: &Rule,
    given: Placeholders<'_>,
    container: &Container,
    lookup: impl Fn(&str) -> Option<String>,
    mounts: &Mounts,
) -> Result<Vec<String>, Unfilled> {
    let own = |word: &String| mounts.translate(&expand(word, &lookup));
    let filled = |word: &String| rule.fill(word, given);
    let command = container.command.as_deref().unwrap_or_default();
    let args = container.args.as_deref().unwrap_or_default();
    let mut argv = rule.argv.iter().map(filled).collect::<Result<Vec<_>, _>>()?;
    argv.extend(command.iter().skip(rule.command.len()).map(own));
    match args {
        [] => argv.extend(rule.cmd.iter().map(filled).collect::<Result<Vec<_>, _>>()?),
        args => argv.extend(args.iter().map(own)),
    }
    Ok(argv)
}

/// Puts variables in place of `$(NAME)`. `$$` is a dollar sign, names nobody knows stay.
pub fn expand(text: &str, lookup: impl Fn(&str) -> Option<String>) -> String {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        expanded.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        rest = match after.as_bytes().first() {
            Some(b'$') => {
                expanded.push('$');
                &after[1..]
            }
            Some(b'(') => match after.find(')') {
                Some(end) => {
                    let name = &after[1..end];
                    match lookup(name) {
                        Some(value) => expanded.push_str(&value),
                        None => expanded.push_str(&rest[at..at + end + 2]),
                    }
                    &after[end + 1..]
                }
                None => {
                    expanded.push_str("$(");
                    &after[1..]
                }
            },
            _ => {
                expanded.push('$');
                after
            }
        };
    }
    expanded.push_str(rest);
    expanded
}
