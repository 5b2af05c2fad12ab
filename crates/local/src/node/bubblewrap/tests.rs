use super::*;
use crate::node::translate::Mount;

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
