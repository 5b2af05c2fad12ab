use serde_json::{Value, json};

use super::*;

fn labels(pairs: &[(&str, &str)]) -> Labels {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn the_model_is_read_from_the_most_exact_label() {
    for (given, want) in [
        (&[("amd.com/gpu.device-id", "74a1"), ("amd.com/gpu.family", "AI")][..], Some("MI300X")),
        (&[("beta.amd.com/gpu.device-id", "0x740F")], Some("MI210")),
        (&[("amd.com/gpu.device-id", "ffff")], Some("AMD-FFFF")),
        (
            &[("amd.com/gpu.device-id.74a1", "2"), ("amd.com/gpu.device-id.74a5", "6")],
            Some("MI325X"),
        ),
        (&[("beta.amd.com/gpu.device-id.75a3", "8")], Some("MI355X")),
        (&[("amd.com/gpu.family", "NV")], Some("NV")),
        (&[("beta.amd.com/gpu.family.AI", "8")], Some("AI")),
        (&[("kubernetes.io/hostname", "x")], None),
    ] {
        assert_eq!(model(&labels(given)).as_deref(), want, "{given:?}");
    }
}

#[test]
fn memory_is_read_from_its_label_and_else_known_of_the_model() {
    for (given, want) in [
        (&[("amd.com/gpu.vram", "64G"), ("amd.com/gpu.device-id", "74a1")][..], Some(64)),
        (&[("beta.amd.com/gpu.vram", "192Gi")], Some(192)),
        (&[("beta.amd.com/gpu.vram.192G", "8")], Some(192)),
        (&[("amd.com/gpu.device-id", "74a1")], Some(192)),
        (&[("amd.com/gpu.device-id", "ffff")], None),
        (&[("amd.com/gpu.vram", "lots"), ("amd.com/gpu.device-id", "744c")], Some(24)),
    ] {
        assert_eq!(vram_gib(&labels(given)), want, "{given:?}");
    }
}

#[test]
fn every_model_has_a_tier_and_every_tier_a_model() {
    for (model, gib, _) in MODELS {
        assert!(VRAM_TIERS.contains(&gib), "{model}");
    }
    for tier in VRAM_TIERS {
        assert!(MODELS.iter().any(|(_, gib, _)| *gib == tier), "{tier}");
    }
    let ids: Vec<&str> = MODELS.iter().flat_map(|(_, _, ids)| ids.iter().copied()).collect();
    let unique: std::collections::BTreeSet<&str> = ids.iter().copied().collect();
    assert_eq!(ids.len(), unique.len());
}

#[test]
fn only_changes_that_concern_gpus_count() {
    let node = |labels: Value, capacity: Value, allocatable: Value| -> Node {
        serde_json::from_value(json!({
            "metadata": {"labels": labels},
            "status": {"capacity": capacity, "allocatable": allocatable},
        }))
        .unwrap()
    };
    let base = || node(json!({"amd.com/gpu.vram": "64G"}), json!({"amd.com/gpu": "8"}), json!({}));
    for (new, want) in [
        (base(), false),
        (
            node(
                json!({"amd.com/gpu.vram": "64G", "zone": "b"}),
                json!({"amd.com/gpu": "8", "cpu": "4"}),
                json!({"cpu": "3"}),
            ),
            false,
        ),
        (node(json!({}), json!({"amd.com/gpu": "8"}), json!({})), true),
        (
            node(
                json!({"amd.com/gpu.vram": "64G", "beta.amd.com/x": "1"}),
                json!({"amd.com/gpu": "8"}),
                json!({}),
            ),
            true,
        ),
        (node(json!({"amd.com/gpu.vram": "64G"}), json!({"amd.com/gpu": "7"}), json!({})), true),
        (
            node(
                json!({"amd.com/gpu.vram": "64G"}),
                json!({"amd.com/gpu": "8"}),
                json!({"amd.com/gpu": "7"}),
            ),
            true,
        ),
    ] {
        assert_eq!(gpus_changed(&base(), &new), want, "{new:?}");
    }
}
