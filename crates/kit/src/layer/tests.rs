use std::{fs, os::unix::fs::symlink};

use super::*;
use crate::{Kitfile, context::Links};

fn names(files: &[&str], kitfile: &str) -> Vec<Vec<String>> {
    let folder = tempfile::tempdir().unwrap();
    for name in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "x\n").unwrap();
    }
    let context = Context::read(folder.path(), Links::Skip).unwrap();
    let entries = Kitfile::from_yaml(kitfile).unwrap().entries().unwrap();
    let layers = split(&context, &entries, Format::Tar).unwrap();
    let names = |layer: Layer| layer.files.iter().map(|file| file.name.to_string()).collect();
    layers.into_iter().map(names).collect()
}

#[test]
fn k7_only_whole_elements_belong_to_another_layer() {
    let files = ["database.txt", "data-v2/e", "x..y", "data/a", "Kitfile", ".kitignore"];
    let layers = names(&files, "{code: [{path: .}], datasets: [{path: data}]}");
    assert_eq!(layers[0], ["data-v2", "data-v2/e", "database.txt", "x..y"]);
    assert_eq!(layers[1], ["data", "data/a"]);
}

#[test]
fn the_directories_above_a_layer_are_in_it() {
    let layers = names(&["a/b/c/d", "a/x"], "{code: [{path: a/b/c}], docs: [{path: a}]}");
    assert_eq!(layers[0], ["a", "a/b", "a/b/c", "a/b/c/d"]);
    assert_eq!(layers[1], ["a", "a/b", "a/x"]);
}

#[test]
fn a_link_is_no_layer() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("weights"), "x").unwrap();
    fs::create_dir(folder.path().join("only")).unwrap();
    symlink("weights", folder.path().join("link")).unwrap();
    symlink("../weights", folder.path().join("only/link")).unwrap();
    let context = Context::read(folder.path(), Links::Skip).unwrap();
    let split = |path: &str, context: &Context| {
        let kitfile = Kitfile::from_yaml(&format!("model: {{path: {path}}}")).unwrap();
        super::split(context, &kitfile.entries().unwrap(), Format::Tar)
    };
    assert!(matches!(split("link", &context), Err(Error::Link { .. })));
    assert!(matches!(split("only", &context), Err(Error::OnlyLinks { .. })));
    assert!(matches!(split("nothing", &context), Err(Error::Missing { .. })));
    assert!(split(".", &context).is_ok());
    let followed = Context::read(folder.path(), Links::Follow).unwrap();
    assert_eq!(split("link", &followed).unwrap()[0].files.len(), 1);
}

#[test]
fn a_file_that_changes_while_it_is_read_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("model");
    for (before, after) in [("four", "five!"), ("four", "one")] {
        fs::write(&place, before).unwrap();
        let context = Context::read(folder.path(), Links::Skip).unwrap();
        let entries = Kitfile::from_yaml("model: {path: model}").unwrap().entries().unwrap();
        let layers = split(&context, &entries, Format::Tar).unwrap();
        fs::write(&place, after).unwrap();
        let error = io::copy(&mut layers[0].read(), &mut io::sink()).unwrap_err();
        assert!(error.to_string().contains("has changed while it was packed"), "{error}");
    }
}

#[test]
fn the_size_is_known_before_a_byte_is_read() {
    let folder = tempfile::tempdir().unwrap();
    for (name, size) in [("empty", 0), ("one", 1), ("block", 512), ("more", 513)] {
        fs::write(folder.path().join(name), "x".repeat(size)).unwrap();
    }
    let context = Context::read(folder.path(), Links::Skip).unwrap();
    for format in [Format::Tar, Format::Raw] {
        for path in [".", "empty", "one", "block", "more"] {
            let kitfile = Kitfile::from_yaml(&format!("model: {{path: {path}}}")).unwrap();
            let layer = split(&context, &kitfile.entries().unwrap(), format).unwrap().remove(0);
            let read = io::copy(&mut layer.read(), &mut io::sink()).unwrap();
            assert_eq!(read, layer.size(), "{path} {format:?}");
            let mut whole = Vec::new();
            layer.read().read_to_end(&mut whole).unwrap();
            for from in [0, 1, 511, 512, 513, 1024, 1500, layer.size()] {
                let mut rest = Vec::new();
                layer.read_from(from).read_to_end(&mut rest).unwrap();
                let from = usize::try_from(from).unwrap().min(whole.len());
                assert_eq!(rest, whole[from..], "{path} {format:?} from {from}");
            }
        }
    }
}
