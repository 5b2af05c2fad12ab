//! Hubs that are hard to import from: large lists, odd names, cuts, branches that move, files elsewhere.

use std::collections::BTreeMap;

use crate::{
    hub::{COMMIT, Hub},
    server::Server,
    world::{Said, World, said},
};

fn kit(world: &World, hub: &Hub, arguments: &[&str]) -> Said {
    let mut command = world.command(arguments);
    command.env("HF_ENDPOINT", &hub.address).env("HF_TOKEN", "hf_secret");
    said(command)
}

#[tokio::test(flavor = "multi_thread")]
async fn k25_a_large_list_an_odd_name_a_cut_and_a_branch_that_moves_lose_nothing() {
    const CUT: usize = 7_000_000;
    let world = World::new();
    let large: Vec<u8> = (0..=255).cycle().take(20_000_000).collect();
    let mut files = vec![("large.bin", large), ("a b#%.json", b"{}".to_vec())];
    for number in 0..2498 {
        let name: &str = Box::leak(format!("data/f{number}.csv").into_boxed_str());
        files.push((name, format!("{number}\n").into_bytes()));
    }
    let hub = Hub::start(files).await;
    let mut known = hub.known.lock().unwrap();
    (known.page, known.cut, known.moves) = (Some(1000), Some(CUT), true);
    drop(known);
    kit(&world, &hub, &["import", "Org/Large"]).well();
    world.kit(&["unpack", "org/large", "-d", "out"]).well();
    let known = hub.known.lock().unwrap();
    let wanted: BTreeMap<String, Vec<u8>> =
        known.files.iter().map(|(name, content)| ((*name).to_owned(), content.clone())).collect();
    assert!(world.files("out") == wanted, "{} files", world.files("out").len());
    let paths = || known.asked.iter().map(|(path, ..)| path.as_str());
    assert_eq!(paths().filter(|path| path.contains("/revision/main")).count(), 1);
    assert_eq!(paths().filter(|path| path.contains("/tree/")).count(), 3);
    assert!(paths().skip(1).all(|path| path.contains(COMMIT)), "one commit only");
    assert!(paths().any(|path| path.ends_with("/a%20b%23%25.json")));
    let ranges: Vec<_> = known.asked.iter().filter_map(|(_, range, _)| range.as_deref()).collect();
    // What the server had sent last may be lost with the connection.
    let from =
        ranges.iter().map(|range| range.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok());
    let from: Vec<usize> = from.collect::<Option<_>>().unwrap();
    assert!(from.len() == 1 && (1..=CUT).contains(&from[0]), "{ranges:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn k26_who_has_the_files_does_not_learn_who_asks() {
    let world = World::new();
    let files = || vec![("model.gguf", b"weights".to_vec()), ("README.md", b"# Readme".to_vec())];
    let (hub, elsewhere) = (Hub::start(files()).await, Hub::start(files()).await);
    hub.known.lock().unwrap().elsewhere = Some(elsewhere.address.clone());
    let server = Server::start(&world.path("registry"), &[], "");
    let name = format!("{}/org/tiny:v1", server.address);
    let push = ["import", "Org/Tiny", "--push", "--plain-http", "-t", &name];
    for import in [&["import", "Org/Tiny"][..], &push] {
        kit(&world, &hub, import).well();
        let asked = std::mem::take(&mut hub.known.lock().unwrap().asked);
        assert_eq!(asked.len(), 4, "a revision, a list and two files: {asked:?}");
        assert!(asked.iter().all(|(_, _, who)| who.as_deref() == Some("Bearer hf_secret")));
        let asked = std::mem::take(&mut elsewhere.known.lock().unwrap().asked);
        assert_eq!(asked.len(), 2, "{asked:?}");
        assert!(asked.iter().all(|(_, _, who)| who.is_none()), "{asked:?}");
    }
    world.kit(&["unpack", "org/tiny", "-d", "out"]).well();
    assert_eq!(world.files("out")["model.gguf"], b"weights");
}

#[tokio::test(flavor = "multi_thread")]
async fn k27_the_names_of_the_files_make_the_kitfile() {
    const FIRST: &str = r#"manifestVersion: "1.0.0"
package:
  name: Tiny
  authors: [Org]
model:
  path: m-1.safetensors
  parts:
    - path: m-2.safetensors
    - path: config.json
docs:
  - path: README.md
    description: Readme file
  - path: LICENSE
    description: License file
"#;
    // Everything that nobody else has is code.
    let second = FIRST.replace("docs:\n", "code:\n  - path: '.'\ndocs:\n");
    let world = World::new();
    let names = ["m-1.safetensors", "m-2.safetensors", "config.json", "README.md", "LICENSE"];
    let files = names.map(|name| (name, b"equal".to_vec()));
    let hub = Hub::start(files.into_iter().chain([(".gitattributes", Vec::new())]).collect()).await;
    let told = || kit(&world, &hub, &["import", "Org/Tiny", "--dry-run"]).well();
    let kitfile = |told: &str| told.split("# ").next().unwrap().to_owned();
    let first = told();
    assert_eq!(kitfile(&first), FIRST);
    assert!(first.ends_with("# 5 files, 25 B\n") && !first.contains(".gitattributes"), "{first}");
    let more = [("run.sh", b"true".to_vec()), ("src/a.py", b"1".to_vec())];
    hub.known.lock().unwrap().files.extend(more);
    let told = told();
    assert_eq!(kitfile(&told), second);
    assert!(told.ends_with("# 7 files, 30 B\n"), "{told}");
    kit(&world, &hub, &["import", "Org/Tiny"]).well();
    assert_eq!(world.kit(&["info", "org/tiny"]).well(), second);
    world.kit(&["unpack", "org/tiny", "-d", "code", "--filter=code"]).well();
    assert_eq!(world.files("code").into_keys().collect::<Vec<_>>(), ["run.sh", "src/a.py"]);
}
