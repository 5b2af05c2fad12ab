use clap::CommandFactory;

use super::*;

#[test]
fn the_flags_are_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn long_flags_may_have_one_dash() {
    for (given, want) in [
        ("-leader-elect", "--leader-elect"),
        ("-metrics-bind-address=:8443", "--metrics-bind-address=:8443"),
        ("--leader-elect", "--leader-elect"),
        ("-f", "-f"),
        ("-n", "-n"),
        ("-", "-"),
        ("-1", "-1"),
    ] {
        assert_eq!(go_style(vec![given.into()]), vec![OsString::from(want)], "{given}");
    }
}
