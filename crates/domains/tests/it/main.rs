//! Cases: an object and the cluster around it, and what follows from them.
//!
//! Each folder under `cases` holds `given.yaml`, whose first document is the object and whose other
//! documents are the cluster, and the snapshots of the plan and of the status.

// All of this runs only inside tests, where failing loudly is the point.
#![allow(clippy::unwrap_used, clippy::panic)]

mod case;

use case::Case;

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
