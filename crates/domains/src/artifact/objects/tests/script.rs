//! The script in a real shell, with a `kit` that writes down how it was called.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use super::super::script::SCRIPT;
use crate::artifact::fixture::DIGEST;

const OTHER: &str = "sha256:1111111111111111111111111111111111111111111111111111111111111111";

/// One argument to a line, and an empty line after each call. What `push` says and how each step
/// ends is told by files beside it.
const KIT: &str = r#"#!/bin/sh
here=$(dirname "$0")
for word in "$@"; do printf '%s\n' "$word" >> "$here/calls"; done
echo >> "$here/calls"
printf '%s\n' "$1: home=$KITOPS_HOME tmp=$TMPDIR config=$DOCKER_CONFIG pwd=$(pwd)" >> "$here/env"
[ "$1" = login ] && cat > "$here/password"
[ -e "$here/says-$1" ] && cat "$here/says-$1"
[ -e "$here/complains-$1" ] && cat "$here/complains-$1" >&2
[ -e "$here/fails-$1" ] && exit 7
exit 0
"#;

/// A container of its own, as far as the script can tell.
struct Bench {
    root: TempDir,
}

/// What came of a run.
struct Ran {
    code: i32,
    log: String,
    /// Each call of `kit`, its words joined.
    calls: Vec<String>,
    /// What the termination log holds; `None` if nothing was ever written.
    message: Option<String>,
}

impl Bench {
    fn new() -> Self {
        let bench = Self { root: tempfile::tempdir().unwrap() };
        fs::create_dir(bench.path("bin")).unwrap();
        fs::create_dir(bench.path("workspace")).unwrap();
        // Written by another process: a program that this one has open for writing, if only in a child
        // that another test has just begun to start, cannot be run.
        let write = "printf %s \"$1\" > \"$0\" && chmod 755 \"$0\"";
        let mut writer = Command::new("/bin/sh");
        writer.args(["-c", write]).arg(bench.path("bin/kit")).arg(KIT);
        assert!(writer.status().unwrap().success());
        bench
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn file(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn read(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.path(name)).ok()
    }

    /// The paths of the container are the only thing that differs from the script that is shipped.
    fn script(&self) -> String {
        let text = |path: PathBuf| path.to_str().unwrap().to_owned();
        let script = SCRIPT.replace("/workspace", &text(self.path("workspace")));
        script.replace("/dev/termination-log", &text(self.path("message")))
    }

    fn run(&self, variables: &[(&str, &str)]) -> Ran {
        let (shell, options) = shell();
        let mut command = Command::new(shell);
        command.args(options).arg("-c").arg(self.script());
        command.env_clear().env("PATH", format!("{}:/usr/bin:/bin", self.path("bin").display()));
        for (name, value) in BASE.iter().chain(variables) {
            command.env(name, value);
        }
        let output = command.output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        let calls = self.read("bin/calls").unwrap_or_default();
        let workspace = self.path("workspace").display().to_string();
        let calls = calls.split("\n\n").filter(|call| !call.trim().is_empty());
        Ran {
            code: output.status.code().unwrap(),
            log: String::from_utf8(said).unwrap(),
            calls: calls
                .map(|call| call.trim().replace('\n', " ").replace(&workspace, "/workspace"))
                .collect(),
            message: self.read("message"),
        }
    }
}

const BASE: [(&str, &str); 4] = [
    ("OCI_TARGET", "ghcr.io/myorg/models/phi-4:v1.0"),
    ("FORMAT", "ModelPack"),
    ("DOCKER_CONFIG", "/.docker"),
    ("HF_REPO", "microsoft/phi-4"),
];

/// The image of KitOps has busybox, whose shell knows `pipefail`; so does bash, held to the standard.
fn shell() -> (&'static str, &'static [&'static str]) {
    let busybox = ["/bin/busybox", "/usr/bin/busybox"];
    match busybox.into_iter().find(|path| Path::new(path).exists()) {
        Some(busybox) => (busybox, &["sh"]),
        None => ("bash", &["--posix"]),
    }
}

#[test]
fn a_model_pack_is_imported_unpacked_packed_and_pushed() {
    let bench = Bench::new();
    bench.file("bin/says-push", &format!("Pushed {DIGEST}\n"));
    let ran = bench.run(&[]);
    assert_eq!(ran.code, 0, "{}", ran.log);
    assert_eq!(
        ran.calls,
        [
            "import microsoft/phi-4 --tag model:latest",
            "unpack -o model:latest -d /workspace/model",
            "pack /workspace/model --use-model-pack -t ghcr.io/myorg/models/phi-4:v1.0",
            "push ghcr.io/myorg/models/phi-4:v1.0",
        ]
    );
    assert_eq!(ran.message.as_deref(), Some(DIGEST), "and no newline after it");
}

#[test]
fn a_model_kit_is_tagged_and_pushed_as_it_was_imported() {
    let bench = Bench::new();
    bench.file("bin/says-push", DIGEST);
    let ran = bench.run(&[("FORMAT", "ModelKit")]);
    assert_eq!(
        ran.calls,
        [
            "import microsoft/phi-4 --tag model:latest",
            "tag model:latest ghcr.io/myorg/models/phi-4:v1.0",
            "push ghcr.io/myorg/models/phi-4:v1.0",
        ]
    );
    assert_eq!((ran.code, ran.message.as_deref()), (0, Some(DIGEST)));
}

#[test]
fn options_are_given_only_where_their_variable_has_a_value() {
    for (variables, import, push) in [
        (
            &[("HF_REVISION", "main"), ("HF_TOKEN", "hf_secret"), ("PLAIN_HTTP", "true")][..],
            "import microsoft/phi-4 --ref main --token hf_secret --tag model:latest",
            "push --plain-http ghcr.io/myorg/models/phi-4:v1.0",
        ),
        (
            &[("HF_REVISION", ""), ("HF_TOKEN", ""), ("PLAIN_HTTP", "")],
            "import microsoft/phi-4 --tag model:latest",
            "push ghcr.io/myorg/models/phi-4:v1.0",
        ),
        (
            &[("HF_REVISION", "refs/pr/1")],
            "import microsoft/phi-4 --ref refs/pr/1 --tag model:latest",
            "push ghcr.io/myorg/models/phi-4:v1.0",
        ),
    ] {
        let ran = Bench::new().run(variables);
        assert_eq!(ran.code, 0, "{}", ran.log);
        assert_eq!(ran.calls.first().map(String::as_str), Some(import));
        assert_eq!(ran.calls.last().map(String::as_str), Some(push));
    }
}

/// A token is one word, whatever it holds; it is nowhere to be seen but in the call (W17).
#[test]
fn w17_a_token_is_one_argument_and_not_on_the_log() {
    let bench = Bench::new();
    let token = "hf_a b*$(echo x)";
    let ran = bench.run(&[("HF_TOKEN", token)]);
    assert_eq!(ran.code, 0);
    let calls = bench.read("bin/calls").unwrap();
    assert!(calls.lines().any(|word| word == token), "{calls}");
    assert!(!ran.log.contains("hf_a"), "{}", ran.log);
}

#[test]
fn w06_each_failing_step_ends_the_run_and_leaves_its_words_on_the_log() {
    for (step, calls) in [("import", 1), ("unpack", 2), ("pack", 3), ("push", 4)] {
        let bench = Bench::new();
        bench.file(&format!("bin/fails-{step}"), "");
        bench.file(&format!("bin/says-{step}"), &format!("{DIGEST} begun\n"));
        bench.file(&format!("bin/complains-{step}"), "unauthorized: no such user\n");
        let ran = bench.run(&[]);
        assert_ne!(ran.code, 0, "{step}");
        assert_eq!(ran.calls.len(), calls, "{step}");
        assert!(ran.log.contains("begun"), "{step}: {}", ran.log);
        assert!(ran.log.contains("unauthorized: no such user"), "{step}: {}", ran.log);
        assert_eq!(ran.message, None, "{step} must not look like a success");
    }
}

#[test]
fn w08_a_push_that_tells_no_digest_has_still_succeeded() {
    let bench = Bench::new();
    bench.file("bin/says-push", "sha256:tooshort pushed\n");
    let ran = bench.run(&[]);
    assert_eq!((ran.code, ran.message.as_deref()), (0, Some("")), "{}", ran.log);
}

#[test]
fn the_digest_is_the_last_one_said_on_either_stream() {
    for (said, complained) in [
        (format!("layer {OTHER}\nmanifest {DIGEST}\n"), String::new()),
        (format!("layer {OTHER}\n"), format!("level=info digest={DIGEST},done\n")),
        (format!("{OTHER} then {DIGEST} on one line"), String::new()),
    ] {
        let bench = Bench::new();
        bench.file("bin/says-push", &said);
        bench.file("bin/complains-push", &complained);
        // Digests of other steps are not those of what was pushed.
        bench.file("bin/says-import", OTHER);
        let ran = bench.run(&[]);
        assert_eq!((ran.code, ran.message.as_deref()), (0, Some(DIGEST)), "{said}");
    }
}

#[test]
fn the_old_form_of_credentials_is_a_login_whose_password_is_no_argument() {
    for (http, login) in [
        ("", "login ghcr.io:5000 --username robot --password-stdin"),
        ("true", "login ghcr.io:5000 --plain-http --username robot --password-stdin"),
    ] {
        let bench = Bench::new();
        let ran = bench.run(&[
            ("OCI_TARGET", "ghcr.io:5000/a/b:v1"),
            ("OCI_USER", "robot"),
            ("OCI_PASS", "pass word"),
            ("PLAIN_HTTP", http),
        ]);
        assert_eq!(ran.code, 0, "{}", ran.log);
        assert_eq!(ran.calls[0], login);
        assert_eq!(bench.read("bin/password").as_deref(), Some("pass word"));
        let config = format!("config={}/.docker", bench.path("workspace").display());
        let env = bench.read("bin/env").unwrap();
        assert!(env.lines().all(|line| line.contains(&config)), "{env}");
    }
}

#[test]
fn a_failed_login_ends_the_run() {
    let bench = Bench::new();
    bench.file("bin/fails-login", "");
    let ran = bench.run(&[("OCI_USER", "robot"), ("OCI_PASS", "wrong")]);
    assert_ne!(ran.code, 0);
    assert_eq!((ran.calls.len(), ran.message), (1, None));
}

#[test]
fn w09_everything_large_is_on_the_workspace_and_apart_from_what_is_packed() {
    let bench = Bench::new();
    // Of an attempt whose pod was evicted: must not be packed again.
    bench.file("workspace/model/left-over", "");
    let ran = bench.run(&[]);
    assert_eq!(ran.code, 0, "{}", ran.log);
    let workspace = bench.path("workspace").display().to_string();
    let env = bench.read("bin/env").unwrap();
    let want =
        format!("home={workspace}/.kitops tmp={workspace}/.tmp config=/.docker pwd={workspace}");
    assert!(env.lines().count() == 4 && env.lines().all(|line| line.ends_with(&want)), "{env}");
    assert_eq!(fs::read_dir(bench.path("workspace/model")).unwrap().count(), 0);
}

#[test]
fn an_unset_variable_is_a_failure_and_not_an_empty_word() {
    let bench = Bench::new();
    let (shell, options) = shell();
    let path = format!("{}:/usr/bin:/bin", bench.path("bin").display());
    let mut command = Command::new(shell);
    command.args(options).arg("-c").arg(bench.script()).env_clear().env("PATH", path);
    assert!(!command.output().unwrap().status.success());
    assert_eq!((bench.read("bin/calls"), bench.read("message")), (None, None));
}
