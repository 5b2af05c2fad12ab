//! Passwords that another program of the user's keeps, as docker has it.

use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf, process::Command};

use serde_json::{Value, json};

use crate::{
    disk::through,
    server::Server,
    world::{Said, World, said},
};

/// Of the registry.
const PASSWORD: &str = "hidden-password";

/// A registry that only `u` may use, and a program `docker-credential-NAME` for each test that wants one.
struct Site {
    world: World,
    server: Server,
    name: String,
}

/// It keeps what it is given in a file beside it, and writes down what it was asked.
const KEEPER: &str = r#"
here=$(dirname "$0")
echo "$1" >> "$here/asked"
case $1 in
  get) cat > "$here/name"
       if [ -e "$here/kept" ]; then cat "$here/kept"
       else echo 'credentials not found in native keychain'; exit 1; fi ;;
  store) cat > "$here/kept" ;;
  erase) rm -f "$here/kept" ;;
esac
"#;

impl Site {
    fn new() -> Self {
        let world = World::new();
        let input = format!("{PASSWORD}\n");
        let server = Server::start(&world.path("registry"), &["--user", "u"], &input);
        let name = format!("{}/org/tiny:v1", server.address);
        world.kit(&["pack", "model", "-t", &name]).well();
        Self { world, server, name }
    }

    /// In a folder of its own, which the path leads to.
    fn helper(&self, name: &str, script: &str) -> PathBuf {
        let file = format!("bin/docker-credential-{name}");
        self.world.write(&file, format!("#!/bin/sh\n{script}\n").as_bytes());
        let path = self.world.path(&file);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        self.world.path("bin")
    }

    fn config(&self, config: &Value) {
        self.world.write("kitops/credentials.json", config.to_string().as_bytes());
    }

    fn kept(&self) -> Value {
        let file = self.world.path("kitops/credentials.json");
        serde_json::from_slice(&fs::read(file).unwrap()).unwrap()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        self.with_path(self.world.command(arguments))
    }

    fn with_path(&self, mut command: Command) -> Command {
        let path = std::env::var("PATH").unwrap();
        command.env("PATH", format!("{}:{path}", self.world.path("bin").display()));
        command
    }

    /// As talkative as it can be, and still silent about this.
    #[track_caller]
    fn kit(&self, arguments: &[&str]) -> Said {
        let said = said(self.command(&[arguments, &["-vv"]].concat()));
        let text = format!("{said:?}");
        assert!(!text.contains(PASSWORD) && !text.contains("aGlkZGVu"), "{text}");
        said
    }

    #[track_caller]
    fn push(&self) -> Said {
        self.kit(&["push", "--plain-http", &self.name])
    }

    /// One that always gives this password.
    fn gives(&self, name: &str, password: &str) {
        let told = json!({"ServerURL": self.server.address, "Username": "u", "Secret": password});
        self.helper(name, &format!("cat > /dev/null; echo '{told}'"));
    }
}

#[test]
fn the_helper_of_a_registry_goes_before_that_of_all_and_that_before_the_file() {
    let site = Site::new();
    let host = site.server.address.as_str();
    site.gives("good", PASSWORD);
    site.gives("bad", "wrong");
    // `u:wrong` and `u:hidden-password`
    let (wrong, right) = ("dTp3cm9uZw==", "dTpoaWRkZW4tcGFzc3dvcmQ=");
    for (config, is_let_in) in [
        (json!({"credHelpers": {host: "good"}, "credsStore": "bad"}), true),
        (json!({"credHelpers": {host: "bad"}, "credsStore": "good"}), false),
        (json!({"credHelpers": {"other.io": "bad"}, "credsStore": "good"}), true),
        (json!({"credsStore": "good", "auths": {host: {"auth": wrong}}}), true),
        (json!({"credsStore": "bad", "auths": {host: {"auth": right}}}), false),
        (json!({"credsStore": "", "auths": {host: {"auth": right}}}), true),
    ] {
        site.config(&config);
        let said = site.push();
        assert_eq!(said.code, Some(if is_let_in { 0 } else { 4 }), "{config} {said:?}");
    }
}

#[test]
fn a_helper_that_knows_nothing_fails_or_is_not_there_leads_to_the_file() {
    let site = Site::new();
    let host = site.server.address.as_str();
    site.helper("empty", "echo 'credentials not found in native keychain'; exit 1");
    site.helper("broken", &format!("echo {PASSWORD}; echo {PASSWORD} >&2; exit 3"));
    site.helper("odd", &format!("cat > /dev/null; echo {PASSWORD}"));
    for (helper, warns) in [("empty", false), ("broken", true), ("odd", true), ("missing", true)] {
        let config = json!({
            "credHelpers": {host: helper},
            "auths": {host: {"username": "u", "password": PASSWORD}},
        });
        site.config(&config);
        let said = site.push();
        let is_told = said.err.contains("credential helper has failed");
        assert!(said.code == Some(0) && is_told == warns, "{helper} {said:?}");
        site.config(&json!({"credHelpers": {host: helper}}));
        site.push().refused(4, "there are no credentials");
    }
}

#[test]
fn what_is_logged_in_to_is_kept_by_the_helper_and_not_in_the_file() {
    let site = Site::new();
    let host = site.server.address.as_str();
    let folder = site.helper("keeper", KEEPER);
    site.config(&json!({"credsStore": "keeper", "HttpHeaders": {"a": "b"}}));
    let login =
        |password: &str| site.kit(&["login", host, "--plain-http", "-u", "u", "-p", password]);
    assert_eq!(login("wrong").code, Some(4));
    assert!(!folder.join("asked").exists(), "what does not work is not kept");
    login(PASSWORD).well();
    let kept: Value = serde_json::from_slice(&fs::read(folder.join("kept")).unwrap()).unwrap();
    assert_eq!(kept, json!({"ServerURL": host, "Username": "u", "Secret": PASSWORD}));
    let file = json!({"auths": {host: {}}, "credsStore": "keeper", "HttpHeaders": {"a": "b"}});
    assert_eq!(site.kept(), file);
    site.push().well();
    assert_eq!(fs::read_to_string(folder.join("name")).unwrap(), host);
    site.kit(&["logout", host]).well();
    assert!(!folder.join("kept").exists());
    assert_eq!(site.kept(), json!({"credsStore": "keeper", "HttpHeaders": {"a": "b"}}));
    site.kit(&["logout", host]).refused(3, "Not logged in");
    assert_eq!(site.push().code, Some(4));
    // One that cannot keep it is an error, and then it is not kept at all.
    site.helper("full", &format!("[ $1 = get ] || {{ echo {PASSWORD}; exit 1; }}"));
    site.config(&json!({"credsStore": "full"}));
    login(PASSWORD).refused(1, "credential helper full has failed");
    assert_eq!(site.kept(), json!({"credsStore": "full"}));
}

#[test]
fn who_logs_out_is_forgotten_by_all_who_can_even_if_one_cannot() {
    let site = Site::new();
    let host = site.server.address.as_str();
    let folder = site.helper("keeper", KEEPER);
    site.helper("broken", &format!("echo {PASSWORD}; exit 3"));
    // It has forgotten how to read, and can still erase.
    site.helper("blind", "[ $1 = erase ] && rm -f \"$(dirname \"$0\")/kept\"");
    for (own, all, told) in
        [("broken", "keeper", true), ("keeper", "broken", true), ("blind", "", false)]
    {
        fs::write(folder.join("kept"), json!({"Username": "u", "Secret": PASSWORD}).to_string())
            .unwrap();
        let config = json!({"credHelpers": {host: own}, "credsStore": all});
        let mut with = config.clone();
        with["auths"] = json!({host: {"username": "u", "password": PASSWORD}});
        site.config(&with);
        let said = site.kit(&["logout", host]);
        assert_eq!(site.kept(), config, "{own} {said:?}");
        assert!(!folder.join("kept").exists(), "{own} {said:?}");
        match told {
            true => said.refused(1, "the credential helper broken has failed"),
            false => drop(said.well()),
        }
    }
    // Also where the file knows of no password, and the helper cannot say whether it has one.
    site.helper("closed", "[ $1 = erase ] && rm -f \"$(dirname \"$0\")/kept\" || exit 1");
    fs::write(folder.join("kept"), "").unwrap();
    site.config(&json!({"credHelpers": {host: "closed"}}));
    site.kit(&["logout", host]).well();
    assert!(!folder.join("kept").exists());
}

#[test]
fn who_logs_out_is_forgotten_by_the_helper_even_if_the_file_cannot_be_changed() {
    let site = Site::new();
    let host = site.server.address.as_str();
    let folder = site.helper("keeper", "[ $1 = erase ] && rm -f \"$(dirname \"$0\")/kept\"");
    fs::write(folder.join("kept"), "").unwrap();
    let password = json!({"username": "u", "password": PASSWORD});
    let config = json!({"auths": {host: password}, "credsStore": "keeper"});
    site.config(&config);
    // Root may write to any file, but nobody beyond what files may become.
    let script = "trap '' XFSZ; ulimit -f 0; exec \"$0\" \"$@\"";
    let logout = through(&site.world, &["sh", "-c", script], &["logout", host]);
    let said = said(site.with_path(logout));
    assert!(!said.err.contains(PASSWORD), "{said:?}");
    said.refused(1, "cannot change");
    assert_eq!(site.kept(), config, "nothing of it is lost");
    assert!(!folder.join("kept").exists());
}
