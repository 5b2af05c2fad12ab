use clap::Parser;

use super::*;

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    flags: Flags,
    #[command(flatten)]
    zap: Zap,
}

fn parsed(given: &[&str]) -> Command {
    Command::try_parse_from(["x"].iter().chain(given)).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn flags_of_zap_mean_what_they_did() {
    for (given, format, filter) in [
        (&[][..], Format::Json, "info"),
        (&["--zap-encoder=console"], Format::Text, "info"),
        (&["--zap-encoder=json", "--zap-log-level=debug"], Format::Json, "debug"),
        (&["--zap-log-level=error"], Format::Json, "error"),
        (&["--zap-log-level=panic"], Format::Json, "error"),
        (&["--zap-log-level=1"], Format::Json, "debug"),
        (&["--zap-log-level=5"], Format::Json, "trace"),
        (&["--zap-devel"], Format::Text, "debug"),
        (&["--zap-devel=false"], Format::Json, "info"),
        (&["--zap-devel", "--zap-encoder=json", "--zap-log-level=info"], Format::Json, "info"),
        (&["--log-format=text", "--log-level=warn"], Format::Text, "warn"),
    ] {
        let Command { flags, zap } = parsed(given);
        let usual = zap.or(Usual::OPERATOR);
        assert_eq!(flags.format(usual), format, "{given:?}");
        assert_eq!(flags.filter(usual).unwrap().to_string(), filter, "{given:?}");
    }
    assert!(parsed(&["--zap-log-level=verbose"]).flags.filter(Usual::OPERATOR).is_err());
    assert!(parsed(&["--zap-log-level=-1"]).flags.filter(Usual::OPERATOR).is_err());
}

#[test]
fn times_are_shown_as_zap_shows_them() {
    let time: Timestamp = "2026-01-02T03:04:05.006007008Z".parse().unwrap();
    for (encoding, want) in [
        ("epoch", "1767323045.006007"),
        ("millis", "1767323045006.007"),
        ("nano", "1767323045006007008"),
        ("iso8601", "2026-01-02T03:04:05.006Z"),
        ("rfc3339", "2026-01-02T03:04:05Z"),
        ("rfc3339nano", "2026-01-02T03:04:05.006007008Z"),
    ] {
        let encoding = TimeEncoding::from_str(encoding, false).unwrap();
        assert_eq!(encoding.show(time).to_string(), want, "{encoding:?}");
    }
}
