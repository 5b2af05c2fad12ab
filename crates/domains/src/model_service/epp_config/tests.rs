use super::*;

#[test]
fn the_older_dialect_keeps_its_bytes_and_with_them_every_running_picker() {
    for (split, name, bytes, hash) in [
        (
            false,
            "default-plugins.yaml",
            367,
            "3aee930c4fc2cf8c749623ba30a077bd93d5cca0c6513c87a5fe3427b089f2f1",
        ),
        (
            true,
            "pd-config.yaml",
            905,
            "da2206ceec8c17d0eef3714ea7387e412c7b565661113eef5c0d0fd2b083eb23",
        ),
    ] {
        let file = ConfigFile::new(Dialect::InferenceExtension, split);
        assert_eq!((file.name, file.text.len()), (name, bytes));
        assert_eq!(file.hash(), hash);
    }
}

#[test]
fn every_profile_of_every_dialect_refers_to_declared_plugins_only() {
    for dialect in [Dialect::InferenceExtension, Dialect::LlmD] {
        for split in [false, true] {
            let file = ConfigFile::new(dialect, split);
            let config: serde_json::Value = serde_saphyr::from_str(file.text).unwrap();
            let plugins = config["plugins"].as_array().unwrap();
            let profiles = config["schedulingProfiles"].as_array().unwrap();
            for profile in profiles {
                for used in profile["plugins"].as_array().unwrap() {
                    let declared = plugins.iter().any(|plugin| plugin["type"] == used["pluginRef"]);
                    assert!(declared, "{dialect:?} {used}");
                }
            }
            assert_eq!(profiles.len(), if split { 2 } else { 1 });
        }
    }
}

#[test]
fn the_newer_dialect_names_its_own_group_and_handler() {
    let file = ConfigFile::new(Dialect::LlmD, true);
    assert!(file.text.starts_with("apiVersion: llm-d.ai/v1alpha1\n"));
    assert!(file.text.contains("disagg-profile-handler"));
    assert!(!file.text.contains("prepareDataPlugins"));
}
