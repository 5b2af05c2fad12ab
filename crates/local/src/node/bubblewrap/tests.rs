use super::*;
use crate::node::{
    process::{self, Launch},
    translate::Mount,
};

fn entries(names: &[&str]) -> Vec<Entry> {
    let entry = |name: &&str| match name.split_once('>') {
        Some((name, link)) => Entry { name: name.into(), link: Some(link.into()) },
        None => Entry { name: (*name).into(), link: None },
    };
    names.iter().map(entry).collect()
}

fn machine(dir: &str) -> Vec<Entry> {
    entries(match dir {
        "/" => &["bin>usr/bin", "dev", "etc", "proc", "usr", "var"],
        "/dev" => &["null", "fd>/proc/self/fd"],
        "/etc" => &["hosts", "app"],
        "/var" => &["lib", "run>/run"],
        "/var/run" => &["user"],
        _ => &[],
    })
}

#[test]
fn mounts_get_their_places_among_the_machines_own_files() {
    let mount = |path: &str, read_only| Mount {
        path: path.into(),
        real: format!("/s{path}").into(),
        read_only,
    };
    let mounts = Mounts::new([
        mount("/models", false),
        mount("/models/cache", false),
        mount("/etc/app", true),
        mount("/dev/termination-log", false),
        mount("/var/run/secrets/token", true),
    ]);
    let words = words(&mounts, "/work", machine).join(" ");
    assert_eq!(
        words,
        "bwrap --die-with-parent --unshare-pid --symlink usr/bin /bin \
         --dir /dev --dev-bind-try /dev/null /dev/null --symlink /proc/self/fd /dev/fd \
         --dir /etc --bind-try /etc/hosts /etc/hosts \
         --bind-try /usr /usr \
         --dir /var --bind-try /var/lib /var/lib --dir /var/run --bind-try /var/run/user /var/run/user \
         --proc /proc \
         --bind /s/models /models --ro-bind /s/etc/app /etc/app \
         --bind /s/models/cache /models/cache \
         --bind /s/dev/termination-log /dev/termination-log \
         --ro-bind /s/var/run/secrets/token /var/run/secrets/token \
         --chdir /work --"
    );
}

#[test]
fn without_mounts_the_machine_is_shown_as_it_is() {
    let words = words(&Mounts::default(), "/", machine).join(" ");
    assert_eq!(
        words,
        "bwrap --die-with-parent --unshare-pid --symlink usr/bin /bin --dev-bind-try /dev /dev \
         --bind-try /etc /etc --bind-try /usr /usr --bind-try /var /var --proc /proc --chdir / --"
    );
}

/// Does nothing where the sandbox cannot be had.
#[test]
fn a_sandboxed_process_finds_its_mounts_and_the_machine() {
    let path = std::env::var("PATH").unwrap_or_default();
    if !is_installed(&path) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let real = |name: &str| dir.path().join(name);
    fs::create_dir(real("models")).unwrap();
    for (name, text) in [("models/x", "weights "), ("conf", "setting "), ("last", "")] {
        fs::write(real(name), text).unwrap();
    }
    let mount = |path: &str, name: &str, read_only| Mount {
        path: path.into(),
        real: real(name),
        read_only,
    };
    let mounts = Mounts::new([
        mount("/windlass-test/models", "models", false),
        mount("/etc/windlass-test/conf", "conf", true),
        mount("/dev/termination-log", "last", false),
    ]);
    let script = "cat x /etc/windlass-test/conf; echo bye > /dev/termination-log; \
                  test -e /etc/passwd && test -c /dev/null && echo $$ >/dev/null && echo seen; \
                  echo no > /etc/windlass-test/conf";
    let words = words(&mounts, "/windlass-test/models", list);
    let mut command = std::process::Command::new(&words[0]);
    let output = command.args(&words[1..]).args(["sh", "-c", script]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(said, "weights setting seen\n", "{output:?}");
    assert_eq!(fs::read_to_string(real("last")).unwrap(), "bye\n");
    assert_eq!(fs::read_to_string(real("conf")).unwrap(), "setting ");
    assert!(!Path::new("/windlass-test").exists());
    assert!(!Path::new("/etc/windlass-test").exists());
}

/// Does nothing where the sandbox cannot be had.
#[tokio::test]
async fn a_sandboxed_program_is_asked_to_end() {
    use tokio::{io::AsyncReadExt, net::unix::pipe};

    let path = std::env::var("PATH").unwrap_or_default();
    if !is_installed(&path) {
        return;
    }
    let words = words(&Mounts::default(), "/", list);
    let script = "trap 'exit 7' TERM; echo up; sleep 4705 & wait";
    let launch = Launch {
        program: words[0].clone().into(),
        args: words[1..].iter().cloned().chain(strings(&["sh", "-c", script])).collect(),
        env: [("PATH".to_owned(), path)].into(),
        dir: "/".into(),
        ..Launch::default()
    };
    let mut running = process::start(&launch, "sandboxed").unwrap();
    let mut said = [0; 3];
    let mut stdout = pipe::Receiver::from_owned_fd(running.stdout).unwrap();
    stdout.read_exact(&mut said).await.unwrap();
    running.process.terminate();
    assert_eq!((&mut running.end).await, Ok(7));
}
