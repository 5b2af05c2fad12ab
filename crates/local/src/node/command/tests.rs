use std::{collections::BTreeMap, path::Path};

use proptest::prelude::*;

use super::*;
use crate::node::translate::Mount;

fn look(name: &str) -> Option<String> {
    Some(match name {
        "A" => "one".into(),
        "EMPTY" => String::new(),
        "DIR" => "/data/x".into(),
        "LOOP" => "$(A)".into(),
        _ => return None,
    })
}

#[test]
fn variables_are_put_in_as_kubernetes_does() {
    for (text, want) in [
        ("$(A)", "one"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$one"),
        ("$$$$(A)", "$$(A)"),
        ("x$(A)$(A)y", "xoneoney"),
        ("$(B)", "$(B)"),
        ("$(EMPTY)", ""),
        ("$(LOOP)", "$(A)"),
        ("$A", "$A"),
        ("$", "$"),
        ("$$", "$"),
        ("a$", "a$"),
        ("$(A", "$(A"),
        ("$($(A)", "$($(A)"),
        ("$()", "$()"),
        ("$((A))", "$((A))"),
        ("$(\u{e9})\u{e9}", "$(\u{e9})\u{e9}"),
    ] {
        assert_eq!(expand(text, look), want, "{text}");
    }
}

fn words(rule: &str, command: &[&str], args: &[&str]) -> Vec<String> {
    let rule = Rule::parse_all(rule).unwrap().remove(0);
    let strings = |words: &[&str]| match words {
        [] => None,
        words => Some(words.iter().map(|word| (*word).to_owned()).collect()),
    };
    let container =
        Container { command: strings(command), args: strings(args), ..Default::default() };
    let mounts = Mounts::new([Mount {
        path: "/data".into(),
        real: "/data/pods/1".into(),
        read_only: false,
    }]);
    let given = Placeholders {
        windlass: Path::new("/bin/windlass"),
        pod_ip: "127.64.0.1",
        state: Path::new("/data/state"),
        name: "server",
        ports: &BTreeMap::new(),
    };
    argv(&rule, given, &container, look, &mounts).unwrap()
}

#[test]
fn the_rule_comes_first_then_the_rest_of_command_and_args() {
    let rule = "[[image]]\nmatch = \"*\"\ncommand = [\"vllm\", \"serve\"]\n\
                argv = [\"{windlass}\", \"serve\", \"--host\", \"{podIP}\"]\n\
                cmd = [\"--help\", \"{name}\"]\n";
    let first = ["/bin/windlass", "serve", "--host", "127.64.0.1"];
    for (command, args, rest) in [
        (&["vllm", "serve"][..], &[][..], &["--help", "server"][..]),
        (&["vllm", "serve", "m"], &["--a=$(A)"], &["m", "--a=one"]),
        (&["vllm", "serve", "m"], &[], &["m", "--help", "server"]),
        (&["vllm", "serve", "$(A)"], &["$$(A)"], &["one", "$(A)"]),
    ] {
        let want: Vec<_> = first.iter().chain(rest).copied().collect();
        assert_eq!(words(rule, command, args), want, "{command:?} {args:?}");
    }
}

#[test]
fn paths_of_mounts_are_translated_once_even_out_of_variables() {
    let rule = "[[image]]\nmatch = \"*\"\nargv = [\"{state}/x\"]\n";
    assert_eq!(
        words(rule, &["--model=/data/m"], &["$(DIR)", "/data"]),
        ["/data/state/x", "--model=/data/pods/1/m", "/data/pods/1/x", "/data/pods/1"]
    );
}

proptest! {
    #[test]
    fn text_without_a_dollar_stays(text in "[^$]{0,40}") {
        prop_assert_eq!(expand(&text, look), text);
    }

    #[test]
    fn doubled_dollars_give_the_text_back(text in ".{0,40}") {
        prop_assert_eq!(expand(&text.replace('$', "$$"), look), text);
    }

    #[test]
    fn unknown_names_change_nothing_but_escapes(text in "[$()ab]{0,20}") {
        let expanded = expand(&text, |_| None);
        prop_assert!(expanded.len() <= text.len());
        if !text.contains("$$") {
            prop_assert_eq!(expanded, text);
        }
    }
}
