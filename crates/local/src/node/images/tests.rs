use std::{collections::BTreeMap, os::unix::fs::PermissionsExt};

use proptest::prelude::*;

use super::*;

fn normal(image: &str) -> String {
    match Reference::parse(image) {
        Ok(reference) => reference.to_string(),
        Err(error) => format!("! {error}"),
    }
}

#[test]
fn references_have_one_normal_form() {
    let digest = format!("sha256:{}", "a".repeat(64));
    let at = |name: &str| format!("{name}@{digest}");
    for (image, want) in [
        ("nginx", "docker.io/library/nginx:latest".to_owned()),
        ("nginx:1.27", "docker.io/library/nginx:1.27".into()),
        ("local/server", "docker.io/local/server:latest".into()),
        ("index.docker.io/nginx", "docker.io/library/nginx:latest".into()),
        ("docker.io/a/b:c", "docker.io/a/b:c".into()),
        ("ghcr.io/llm-d/llm-d-cuda:v0.5", "ghcr.io/llm-d/llm-d-cuda:v0.5".into()),
        ("localhost/x", "localhost/x:latest".into()),
        ("r:5000/x", "r:5000/x:latest".into()),
        ("[::1]:5000/x", "[::1]:5000/x:latest".into()),
        ("Registry/x", "Registry/x:latest".into()),
        (&at("a/b"), at("docker.io/a/b")),
        (&at("a/b:v1"), at("docker.io/a/b:v1")),
        ("", "! invalid reference format".into()),
        ("a:", "! invalid reference format".into()),
        ("a b", "! invalid reference format".into()),
        ("a/../b", "! invalid reference format".into()),
        ("/etc/passwd", "! invalid reference format".into()),
        ("a:\u{e9}", "! invalid reference format".into()),
        (
            "Foo",
            "! invalid reference format: repository name (library/Foo) must be lowercase".into(),
        ),
        (&"a".repeat(300), "! repository name must not be more than 255 characters".into()),
    ] {
        assert_eq!(normal(image), want, "{image}");
    }
    let hex = "0".repeat(64);
    assert!(normal(&hex).ends_with("cannot specify 64-byte hexadecimal strings"));
}

#[test]
fn patterns_match_the_whole_name() {
    for (pattern, image, want) in [
        ("ghcr.io/llm-d/llm-d-cuda:*", "ghcr.io/llm-d/llm-d-cuda:v0.5", true),
        ("ghcr.io/llm-d/llm-d-cuda:*", "ghcr.io/llm-d/llm-d-cuda", true),
        ("ghcr.io/llm-d/llm-d-cuda:*", "ghcr.io/llm-d/llm-d-cuda-x:v1", false),
        ("ghcr.io/llm-d/llm-d-cuda", "ghcr.io/llm-d/llm-d-cuda:v1", false),
        ("local/*", "local/server", true),
        ("local/*", "docker.io/local/server:v1", true),
        ("local/*", "other/local/server", false),
        ("nginx:*", "nginx:1.27", true),
        ("library/nginx:*", "nginx", true),
        ("docker.io/library/nginx:*", "nginx", true),
        ("*", "a.b/c@sha256:0123456789abcdef0123456789abcdef", true),
        ("*@sha256:*", "a.b/c@sha256:0123456789abcdef0123456789abcdef", true),
        ("*/v?:1", "a.b/v2:1", true),
        ("*/v?:1", "a.b/v22:1", false),
        ("**a*b**", "aab.c/x", true),
        ("**a*b", "aab.c/x", false),
    ] {
        let rule = Rule::parse_flag(&format!("{pattern}=x")).unwrap();
        assert_eq!(rule.names(&Reference::parse(image).unwrap()), want, "{pattern} {image}");
    }
}

const SAMPLE: &str = r#"
[[image]]
match = "ghcr.io/llm-d/llm-d-cuda:*"
command = ["vllm", "serve"]
argv = ["{windlass}", "serve", "--host", "{podIP}"]
cmd = []
env = { VLLM_USE_V1 = "0" }
inherit = ["HF_TOKEN"]
path = "translate"

[[image]]
match = "local/*"
argv = ["{state}/bin/{name}"]
path = "bwrap"
"#;

#[test]
fn the_file_of_the_documentation_is_read() {
    let rules = Rule::parse_all(SAMPLE).unwrap();
    assert_eq!(rules.len(), 2);
    assert_eq!(rules[0].command, ["vllm", "serve"]);
    assert_eq!(rules[0].env["VLLM_USE_V1"], "0");
    assert!(rules[0].inherit.contains("HF_TOKEN"));
    assert_eq!(rules[0].path, PathMode::Translate);
    assert_eq!(rules[1].path, PathMode::Bwrap);
    assert_eq!(Rule::parse_all("").unwrap(), []);
}

#[test]
fn a_file_with_a_mistake_is_refused_with_its_place() {
    for (text, want) in [
        ("[[image]]\nmatch = \"a\"\nargv = [1]\n", "line 3"),
        ("[[image]]\nmatch = \"a\"\n", "argv"),
        ("[[image]]\nmatch = \"a\"\nargv = []\n", "rule 1: argv of \"a\" must name a program"),
        ("[[image]]\nmatch = \"\"\nargv = [\"x\"]\n", "rule 1: match must not be empty"),
        ("[[image]]\nmatch = \"a\"\nargv = [\"x\"]\nport = 1\n", "unknown field `port`"),
        ("[[images]]\n", "unknown field `images`"),
        ("[[image]]\nmatch = \"a\"\nargv = [\"x\"]\npath = \"chroot\"\n", "chroot"),
        ("[[image]]\nmatch = \"a\"\nargv = [\"{podip}\"]\n", "{podip} of \"a\" is unknown"),
        ("[[image]]\nmatch = \"a\"\nargv = [\"x\"]\nenv = { \"A=B\" = \"\" }\n", "\"A=B\""),
        ("[[image]]\nmatch = \"a\"\nargv = [\"x\\u0000\"]\n", "zero byte"),
        ("image", "line 1"),
    ] {
        let error = Rule::parse_all(text).unwrap_err().to_string();
        assert!(error.contains(want), "{text}: {error}");
    }
}

#[test]
fn a_rule_of_the_command_line_is_a_pattern_and_words() {
    let rule = Rule::parse_flag("a/b:*=/bin/server --port {port:http}").unwrap();
    assert_eq!(rule.pattern, "a/b:*");
    assert_eq!(rule.argv, ["/bin/server", "--port", "{port:http}"]);
    for text in ["", "a", "a=", "=x", "a= ", "a={podip}"] {
        assert!(Rule::parse_flag(text).is_err(), "{text}");
    }
}

fn filled(text: &str) -> Result<String, Unfilled> {
    let ports = BTreeMap::from([("http".to_owned(), 8000)]);
    let given = Placeholders {
        windlass: Path::new("/bin/windlass"),
        pod_ip: "127.64.0.1",
        state: Path::new("/state"),
        name: "server",
        ports: &ports,
    };
    Rule::parse_flag("a=x").unwrap().fill(text, given)
}

#[test]
fn placeholders_are_filled_and_other_braces_stay() {
    for (text, want) in [
        ("{windlass}", "/bin/windlass"),
        ("{state}/bin/{name}", "/state/bin/server"),
        ("--bind={podIP}:{port:http}", "--bind=127.64.0.1:8000"),
        ("{\"a\":{\"b\":1}}", "{\"a\":{\"b\":1}}"),
        ("{{podIP}}", "{127.64.0.1}"),
        ("{}", "{}"),
        ("{", "{"),
        ("{podIP", "{podIP"),
        ("{a: 1}", "{a: 1}"),
    ] {
        assert_eq!(filled(text).unwrap(), want, "{text}");
    }
    assert_eq!(
        filled("{port:grpc}").unwrap_err().to_string(),
        "the image rule \"a\" asks for port \"grpc\", which the container does not name"
    );
}

fn flag(text: &str) -> Rule {
    Rule::parse_flag(text).unwrap()
}

fn strings(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[test]
fn the_first_rule_that_fits_is_taken() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("images.toml");
    fs::write(&file, SAMPLE).unwrap();
    let last = vec![flag("ghcr.io/*=builtin"), flag("local/*=builtin")];
    let images = Images::new(&file, vec![flag("local/first:*=flag")], last);
    let found = |image: &str, command: &[&str]| {
        images.find(image, &strings(command)).unwrap().0.argv[0].clone()
    };
    assert_eq!(found("local/first", &[]), "flag");
    assert_eq!(found("local/second", &[]), "{state}/bin/{name}");
    let engine = "ghcr.io/llm-d/llm-d-cuda:v1";
    assert_eq!(found(engine, &["vllm", "serve", "model"]), "{windlass}");
    assert_eq!(found(engine, &["vllm"]), "builtin");
    assert_eq!(found(engine, &[]), "builtin");
}

#[test]
fn an_image_without_a_rule_says_what_to_add_and_where() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("images.toml");
    let images = Images::new(&file, Vec::new(), Vec::new());
    let error = images.find("quay.io/a/b:v1", &[]).unwrap_err().to_string();
    assert_eq!(
        error,
        format!(
            "no rule maps image \"quay.io/a/b:v1\"; add to {}:\n[[image]]\nmatch = \
             \"quay.io/a/b:*\"\nargv = [\"/path/to/program\"]",
            file.display()
        )
    );
    fs::write(&file, SAMPLE).unwrap();
    let error = images.find("ghcr.io/llm-d/llm-d-cuda:v1", &strings(&["sh"])).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("with this command (rules for it want [\"vllm\", \"serve\"])"), "{text}");
    // A rule for all images would stand in every message.
    fs::write(&file, SAMPLE.replace("ghcr.io/llm-d/llm-d-cuda:*", "*")).unwrap();
    let error = images.find("quay.io/a/b:v1", &strings(&["sh"])).unwrap_err().to_string();
    assert!(error.starts_with("no rule maps image \"quay.io/a/b:v1\"; add to"), "{error}");
    assert_eq!(
        images.find("UP", &[]).unwrap_err().to_string(),
        "Failed to apply default image tag \"UP\": couldn't parse image name \"UP\": invalid \
         reference format: repository name (library/UP) must be lowercase"
    );
}

#[test]
fn the_lines_that_are_advised_are_a_rule_for_the_image() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("images.toml");
    let digest = format!("quay.io/a/b@sha256:{}", "0".repeat(64));
    let both = digest.replace('@', ":v1@");
    for image in ["nginx", "a/b:1", "host:5000/a/b:v1", "localhost/a", &digest, &both] {
        fs::write(&file, SAMPLE).unwrap();
        let images = Images::new(&file, Vec::new(), Vec::new());
        let advice = images.find(image, &[]).unwrap_err().to_string();
        let (_, lines) = advice.split_once('\n').unwrap();
        fs::write(&file, format!("{SAMPLE}\n{lines}\n")).unwrap();
        let (rule, _) = images.find(image, &[]).unwrap();
        assert_eq!(rule.argv, ["/path/to/program"], "{image}");
    }
}

#[test]
fn a_changed_file_counts_from_the_next_container_on() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("images.toml");
    let images = Images::new(&file, Vec::new(), vec![flag("a:*=last")]);
    let found = || images.find("a", &[]).map(|(rule, _)| rule.argv[0].clone());
    assert_eq!(found().unwrap(), "last");
    fs::write(&file, "[[image]]\nmatch = \"a:*\"\nargv = [\"one\"]\n").unwrap();
    assert_eq!(found().unwrap(), "one");
    fs::write(&file, "[[image]]\nmatch = \"a:*\"\nargv = [\"three\"]\n").unwrap();
    assert_eq!(found().unwrap(), "three");
    fs::write(&file, "[[image").unwrap();
    assert!(matches!(found().unwrap_err(), Error::File { .. }));
    fs::remove_file(&file).unwrap();
    assert_eq!(found().unwrap(), "last");
}

#[test]
fn programs_are_found_as_the_system_finds_them() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("bin");
    fs::create_dir_all(place.join("folder")).unwrap();
    for (name, mode) in [("run", 0o700), ("data", 0o600)] {
        fs::write(place.join(name), name).unwrap();
        fs::set_permissions(place.join(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    let path = format!("/nowhere:relative:{}", place.display());
    let find = |program: &str| match find_executable(program, &path, dir.path()) {
        Ok(file) => file.strip_prefix(dir.path()).unwrap().display().to_string(),
        Err(error) => error.to_string(),
    };
    let absolute = place.join("run").display().to_string();
    for (program, want) in [
        ("run", "bin/run"),
        ("bin/run", "bin/run"),
        (&*absolute, "bin/run"),
        ("data", "exec: \"data\": permission denied"),
        ("bin/data", "exec: \"bin/data\": permission denied"),
        ("bin/folder", "exec: \"bin/folder\": is a directory"),
        ("bin/none", "exec: \"bin/none\": no such file or directory"),
        ("bin/run/x", "exec: \"bin/run/x\": no such file or directory"),
        ("none", "exec: \"none\": executable file not found in $PATH"),
        ("", "exec: \"\": executable file not found in $PATH"),
    ] {
        assert_eq!(find(program), want, "{program}");
    }
}

#[test]
fn the_id_of_an_image_is_the_sum_of_its_program() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("program");
    fs::write(&file, "").unwrap();
    let known = Executables::default();
    let empty = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    assert_eq!(known.id(&file).unwrap(), empty);
    fs::write(&file, "more").unwrap();
    assert_ne!(known.id(&file).unwrap(), empty);
    assert!(known.id(&dir.path().join("none")).is_err());
}

proptest! {
    #[test]
    fn no_text_makes_a_rule_or_a_name_fail_badly(text in ".{0,60}", image in ".{0,40}") {
        let _ = Rule::parse_all(&text);
        let _ = Rule::parse_flag(&text);
        let _ = Reference::parse(&image);
        let filled = filled(&text);
        if !text.contains('{') {
            prop_assert_eq!(filled.unwrap(), text);
        }
    }

    #[test]
    fn a_pattern_matches_as_a_regular_expression_does(
        pattern in "[ab*?]{0,8}", text in "[ab]{0,8}",
    ) {
        let want = format!("^{}$", pattern.replace('*', ".*").replace('?', "."));
        let want = regex::Regex::new(&want).unwrap().is_match(&text);
        prop_assert_eq!(glob::matches(&pattern, &text), want);
    }

    #[test]
    fn a_normal_form_is_its_own_normal_form(image in "[a-z]{1,4}(/[a-z]{1,4}){0,2}(:[a-z]{1,3})?") {
        let once = Reference::parse(&image).unwrap();
        prop_assert_eq!(&Reference::parse(&once.to_string()).unwrap(), &once);
    }
}
