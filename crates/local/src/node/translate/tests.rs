use proptest::prelude::*;
use regex::Regex;

use super::*;

fn mounts(pairs: &[(&str, &str)]) -> Mounts {
    Mounts::new(pairs.iter().map(|(path, real)| Mount {
        path: (*path).to_owned(),
        real: PathBuf::from(real),
        read_only: false,
    }))
}

#[test]
fn whole_paths_are_translated_wherever_they_may_start() {
    let mounts = mounts(&[
        ("/models", "/s/v/1"),
        ("/models/cache/", "/s/v/2"),
        ("/etc/app.conf", "/s/v/3/app.conf"),
        ("/dev/termination-log", "/s/l/t"),
        ("/", "/s/root"),
    ]);
    for (text, want) in [
        ("/models", "/s/v/1"),
        ("/models/", "/s/v/1/"),
        ("/models/a/b", "/s/v/1/a/b"),
        ("/models/cache", "/s/v/2"),
        ("/models/cache/x", "/s/v/2/x"),
        ("/models/caches", "/s/v/1/caches"),
        ("/modelsx", "/modelsx"),
        ("/models.bak", "/models.bak"),
        ("x/models", "x/models"),
        ("/a/models", "/a/models"),
        ("--model=/models/a", "--model=/s/v/1/a"),
        ("a:/models:b", "a:/s/v/1:b"),
        ("/models,/models/cache", "/s/v/1,/s/v/2"),
        ("{\"a\":\"/models/x\"}", "{\"a\":\"/s/v/1/x\"}"),
        ("'/models'", "'/s/v/1'"),
        ("cat /models\t/models\n/models", "cat /s/v/1\t/s/v/1\n/s/v/1"),
        ("/models/models", "/s/v/1/models"),
        ("/models=/models", "/s/v/1=/s/v/1"),
        ("file:///models", "file:///models"),
        ("(ls /models)", "(ls /s/v/1)"),
        ("cat </models/a>/models/b&", "cat </s/v/1/a>/s/v/1/b&"),
        ("/etc/app.conf", "/s/v/3/app.conf"),
        ("/etc/app.conf/", "/s/v/3/app.conf/"),
        ("echo done > /dev/termination-log", "echo done > /s/l/t"),
        ("echo done >/dev/termination-log; exit 3", "echo done >/s/l/t; exit 3"),
        ("/", "/"),
        ("", ""),
        ("\u{e9}/models \u{e9} /models", "\u{e9}/models \u{e9} /s/v/1"),
    ] {
        assert_eq!(mounts.translate(text), want, "{text}");
    }
}

#[test]
fn what_was_put_in_is_not_translated_again() {
    let mounts = mounts(&[("/tmp", "/tmp/state/v"), ("/tmp/state", "/x")]);
    assert_eq!(mounts.translate("/tmp /tmp/state/v"), "/tmp/state/v /x/v");
}

#[test]
fn a_path_has_its_real_place_if_a_mount_holds_it() {
    let mounts = mounts(&[("/a", "/s/1"), ("/a/b", "/s/2")]);
    for (path, want) in [
        ("/a", Some("/s/1")),
        ("/a/", Some("/s/1")),
        ("/a/c/d", Some("/s/1/c/d")),
        ("/a/b/c", Some("/s/2/c")),
        ("/ab", None),
        ("/c", None),
        ("a", None),
    ] {
        assert_eq!(mounts.real(path), want.map(PathBuf::from), "{path}");
    }
}

#[test]
fn of_two_mounts_at_one_path_the_later_counts() {
    assert_eq!(mounts(&[("/a", "/s/1"), ("/a/", "/s/2")]).translate("/a"), "/s/2");
    assert_eq!(mounts(&[("relative", "/s/1")]).translate("relative"), "relative");
}

/// The rule said another way: cut at borders, look at the start of each piece.
fn piecewise(mounts: &[(&str, &str)], text: &str) -> String {
    let pieces = Regex::new(r#"[^=:,"'\s]+|[=:,"'\s]"#).unwrap();
    let translated = pieces.find_iter(text).map(|piece| {
        let piece = piece.as_str();
        let held = |path: &str| piece == path || piece.starts_with(&format!("{path}/"));
        let best = mounts.iter().filter(|(path, _)| held(path)).max_by_key(|(path, _)| path.len());
        match best {
            Some((path, real)) => format!("{real}{}", &piece[path.len()..]),
            None => piece.to_owned(),
        }
    });
    translated.collect()
}

proptest! {
    #[test]
    fn translation_agrees_with_the_rule_said_another_way(text in "[/ab=:,' \n]{0,24}") {
        let known = [("/a", "/R/1"), ("/a/b", "/R/2"), ("/b", "/a/R3"), ("/b/a", "/R4")];
        prop_assert_eq!(mounts(&known).translate(&text), piecewise(&known, &text));
    }

    #[test]
    fn text_that_names_no_mount_stays(text in ".{0,60}") {
        prop_assert_eq!(mounts(&[("/\u{1}models", "/s")]).translate(&text), text);
    }

    #[test]
    fn translated_text_that_names_no_mount_stays_translated(text in "[/ab=: ]{0,24}") {
        let mounts = mounts(&[("/a", "/R/1"), ("/a/b", "/R/2")]);
        let once = mounts.translate(&text);
        prop_assert_eq!(mounts.translate(&once), once);
    }
}
