use std::{
    fs::{self, OpenOptions},
    io::Write,
    path::Path,
};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, api::PostParams};

use crate::{
    ends::{log_of, reached},
    lifecycle::large,
    progress::{SHELL, create},
    running::World,
    wait::until,
};

/// Takes all that is left.
fn fill(file: &Path) {
    let mut file = OpenOptions::new().append(true).create(true).open(file).unwrap();
    for size in [1 << 20, 4096, 1] {
        while file.write_all(&vec![0; size]).is_ok() {}
    }
}

#[tokio::test]
async fn a_disk_that_is_full_for_store_and_pods_alike_is_outlived_by_both() {
    let world = World::new();
    let Some((up, disk)) = world.up_on_disk(64, &["--image-rule", SHELL]) else { return };
    let gate = world.path("gate");
    let script =
        format!("while [ ! -e {} ]; do sleep 0.05; done; echo still there", gate.display());
    let pods = create(&up, "once-steady", "sh:1", &script).await;
    reached(&pods, "once-steady", "Running").await;
    fill(&disk.join("ballast"));
    let maps: Api<ConfigMap> = Api::default_namespaced(up.client().await);
    let mut made = 0;
    let refused = loop {
        match maps.create(&PostParams::default(), &large(&format!("c{made}"))).await {
            Ok(_) => made += 1,
            Err(error) => break error.to_string(),
        }
        assert!(made < 100, "the disk is never full");
    };
    assert!(refused.contains("there is no room left"), "{refused}");
    assert!(refused.contains("No space left on device"), "{refused}");
    reached(&pods, "once-steady", "Running").await;

    fs::remove_file(disk.join("ballast")).unwrap();
    until("room", || async {
        let made = maps.create(&PostParams::default(), &large("late")).await;
        made.map(drop).map_err(|error| error.to_string())
    })
    .await;
    create(&up, "once-new", "sh:1", "echo made it").await;
    reached(&pods, "once-new", "Succeeded").await;
    assert_eq!(log_of(&pods, "once-new").await, "made it\n");
    fs::write(&gate, "").unwrap();
    reached(&pods, "once-steady", "Succeeded").await;
    assert_eq!(log_of(&pods, "once-steady").await, "still there\n");
    up.terminate();
}
