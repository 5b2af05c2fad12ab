use super::*;
use clap::Parser;

#[derive(Debug, Parser)]
struct Program {
    #[command(flatten)]
    flags: Flags,
}

fn read(arguments: &[&str]) -> Result<Flags, clap::Error> {
    use clap::CommandFactory;
    let arguments = ["serve"].iter().chain(arguments).map(OsString::from).collect();
    let marked = mark_foreign(&Program::command(), arguments);
    Ok(Program::try_parse_from(marked)?.flags)
}

#[test]
fn what_model_services_pass_is_understood() {
    let given = [
        "/models",
        "--port",
        "8200",
        "--served-model-name",
        "org/m",
        "--tensor-parallel-size",
        "4",
    ];
    let flags = read(&[&given[..], &["--max-model-len=8192"]].concat()).unwrap();
    assert_eq!(flags.given().unwrap(), Path::new("/models"));
    assert_eq!((flags.port, flags.host.as_str()), (8200, "0.0.0.0"));
    assert_eq!(flags.names("/models".as_ref()), ["org/m"]);
    assert_eq!((flags.max_model_len.tokens(), flags.max_num_seqs.get()), (Some(8192), 8));
    assert_eq!(flags.ignored, ["--tensor-parallel-size"]);
}

#[test]
fn flags_without_a_meaning_here_are_left_out_with_their_values() {
    for (given, ignored) in [
        (&["--gpu-memory-utilization", "0.9", "m.gguf"][..], &["--gpu-memory-utilization"][..]),
        (&["--gpu-memory-utilization=0.9", "m.gguf"], &["--gpu-memory-utilization"]),
        (&["--enforce-eager", "m.gguf"], &["--enforce-eager"]),
        (&["--enable-prefix-caching", "m.gguf"], &["--enable-prefix-caching"]),
        (&["--no-enable-log-requests", "m.gguf"], &["--no-enable-log-requests"]),
        (&["m.gguf", "-tp", "2", "--dtype", "auto"], &["-tp", "--dtype"]),
        (&["m.gguf", "--kv-transfer-config", "{\"a\": -1}"], &["--kv-transfer-config"]),
        (&["m.gguf", "--seed", "-1"], &["--seed"]),
        (&["m.gguf", "--block_size", "16", "--max_num_seqs", "2"], &["--block-size"]),
        (&["--model", "m.gguf"], &[]),
        (&["m.gguf", "--lora-modules", "a=x", "b=y", "--seed", "1"], &["--lora-modules", "--seed"]),
    ] {
        let flags = read(given).unwrap();
        assert_eq!(flags.given().unwrap(), Path::new("m.gguf"), "{given:?}");
        assert_eq!(flags.ignored, ignored, "{given:?}");
    }
}

#[test]
fn values_that_cannot_be_used_are_refused() {
    for (given, want) in [
        (&["m", "--port", "70000"][..], "--port"),
        (&["m", "--max-model-len", "many"], "must be a number of tokens over 1"),
        (&["m", "--max-model-len", "1"], "must be a number of tokens over 1"),
        (&["m", "--max-num-seqs", "0"], "--max-num-seqs"),
        (&["m", "--model", "n"], "cannot be used with"),
    ] {
        let refused = read(given).unwrap_err().to_string();
        assert!(refused.contains(want), "{refused}");
    }
    assert!(read(&[]).unwrap().given().is_err());
}

#[test]
fn lengths_may_be_written_short() {
    for (text, want) in [
        ("4k", 4000),
        ("4K", 4096),
        ("77", 77),
        ("25.6k", 25_600),
        ("1.5m", 1_500_000),
        ("1M", 1 << 20),
    ] {
        assert_eq!(length(text), Ok(Length::Tokens(want)));
    }
    for text in ["auto", "-1"] {
        assert_eq!(read(&["m", "--max-model-len", text]).unwrap().max_model_len, Length::Auto);
    }
    for text in
        ["99999999999999999999K", "k", "", "1.5", "1.5K", ".k", "1.0000000k", "-2", "\u{e9}"]
    {
        assert!(length(text).is_err(), "{text}");
    }
}

#[test]
fn what_somebody_relies_on_is_refused_instead_of_ignored() {
    for (given, want) in [
        (&["m", "--ssl-keyfile", "k"][..], "--ssl-keyfile is not supported: it speaks plain HTTP"),
        (&["m", "--ssl_certfile=c"], "--ssl-certfile is not supported"),
        (&["m", "--uds", "/s"], "--uds is not supported"),
        (&["m", "--api-key", ""], "is empty"),
    ] {
        let refused = read(given).unwrap().refuse_what_would_be_missed().unwrap_err();
        assert!(refused.to_string().contains(want), "{refused}");
    }
    read(&["m", "--api-key", "k", "-tp", "2"]).unwrap().refuse_what_would_be_missed().unwrap();
    for (given, want) in [
        (&["m"][..], true),
        (&["m", "--host", "10.0.0.1"], true),
        (&["m", "--host", "127.0.0.1"], false),
        (&["m", "--host", "::1"], false),
        (&["m", "--host", "localhost"], false),
        (&["m", "--api-key", "k"], false),
    ] {
        assert_eq!(read(given).unwrap().is_open_to_all(), want, "{given:?}");
    }
}
