//! Cases: an object and the cluster around it, and what follows from them.
//!
//! Each folder under `cases` holds `given.yaml`, whose first document is the object and whose other
//! documents are the cluster, and the snapshots of the plan and of the status. What the plans hold of
//! foreign kinds is checked against the real definitions of those kinds, where they are at hand.

// All of this runs only inside tests, where failing and skipping loudly is the point.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr)]

mod case;
mod definitions;

use std::fs;
use std::path::Path;

use case::Case;
use definitions::Definitions;

#[test]
fn every_case_gives_its_plan_and_status() {
    insta::glob!("cases", "*/given.yaml", |path| {
        let case = Case::load(path);
        let mut settings = insta::Settings::clone_current();
        settings.set_snapshot_path(path.parent().unwrap());
        settings.set_prepend_module_to_snapshot(false);
        settings.set_snapshot_suffix("");
        settings.set_omit_expression(true);
        settings.remove_input_file();
        settings.bind(|| {
            insta::assert_snapshot!("plan", case.plan);
            insta::assert_snapshot!("status", case.status);
        });
    });
}

#[test]
fn every_example_asks_for_something() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    for path in files.filter(|path| path.extension().is_some_and(|end| end == "yaml")) {
        let plan = Case::load_example(&path).planned;
        assert!(!plan.apply.is_empty(), "{}", path.display());
    }
}

#[test]
fn foreign_kinds_are_written_as_their_definitions_have_them() {
    let Some(definitions) = Definitions::at_hand() else { return };
    let mut checked = 0;
    insta::glob!("cases", "*/given.yaml", |path| {
        for desired in &Case::load(path).planned.apply {
            let ours = desired.kind.group == "aim.silogen.ai";
            if desired.kind.is_built_in() || ours {
                continue;
            }
            let found = definitions.objections(&desired.kind, &desired.body);
            assert_eq!(found, [""; 0], "{} {} in {}", desired.kind, desired.key, path.display());
            checked += 1;
        }
    });
    assert!(checked > 0);
}
