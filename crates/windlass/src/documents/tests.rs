use super::*;

#[test]
fn documents_are_split_at_their_separators() {
    for (text, want) in [
        ("a: 1\n", 1),
        ("---\na: 1\n", 1),
        ("a: 1\n---\nb: 2\n", 2),
        ("# only a comment\n---\na: 1\n---\n# another\n", 2),
        ("--- {a: 1}\n--- {b: 2}\n", 2),
        ("", 1),
    ] {
        assert_eq!(split(text).len(), want, "{text:?}");
    }
}

#[test]
fn a_broken_document_is_named_by_file_and_number() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.yaml");
    fs::write(&file, "a: 1\n---\nb: [\n").unwrap();
    let error = read(std::slice::from_ref(&file)).unwrap_err().to_string();
    assert!(
        error.starts_with(&format!("{}: document 2: not valid YAML", file.display())),
        "{error}"
    );
}

#[test]
fn a_missing_file_is_named() {
    let error = read(&[PathBuf::from("no-such-file.yaml")]).unwrap_err().to_string();
    assert!(error.starts_with("cannot read no-such-file.yaml"), "{error}");
}

#[test]
fn nulls_and_whole_floats_are_read_as_the_api_server_reads_them() {
    let mut value = serde_json::json!({ "a": null, "b": [2.0, 2.5, { "c": null }], "d": 3 });
    normalise(&mut value);
    assert_eq!(value, serde_json::json!({ "b": [2, 2.5, {}], "d": 3 }));
}

#[test]
fn an_error_names_the_line_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.yaml");
    fs::write(&file, "a: 1\n---\nb: 2\nc: [\n").unwrap();
    let error = read(std::slice::from_ref(&file)).unwrap_err().to_string();
    assert!(error.contains("line 4"), "{error}");
}
