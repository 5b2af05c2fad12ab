//! What the labels of a node tell about its GPUs.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

type Labels = BTreeMap<String, String>;

/// Labels under the second prefix come from older versions of the labeller.
const PREFIXES: [&str; 2] = ["amd.com/", "beta.amd.com/"];
const RESOURCES: &str = "amd.com/";

/// Sizes of GPU memory that exist, in GiB.
pub const VRAM_TIERS: [u32; 9] = [16, 24, 32, 48, 64, 128, 192, 256, 288];

/// Model, memory in GiB, and the PCI device ids it goes by.
const MODELS: [(&str, u32, &[&str]); 20] = [
    ("MI355X", 288, &["75a3", "75b3"]),
    ("MI350X", 288, &["75a0", "75b0"]),
    ("MI325X", 256, &["74a5", "74b9"]),
    ("MI300X", 192, &["74a1", "74a9", "74b5", "74bd"]),
    ("MI308X", 128, &["74a2", "74a8", "74b6"]),
    ("MI300A", 128, &["74a0"]),
    ("MI250X", 128, &["7408", "740c"]),
    ("MI210", 64, &["740f", "7410"]),
    ("MI100", 32, &["738c", "738e"]),
    ("V710", 32, &["7460", "7461"]),
    ("V620", 32, &["73a1", "73ae"]),
    ("W7900", 48, &["7448", "744a"]),
    ("W7800", 32, &["7449", "745e"]),
    ("W6900X", 32, &["73a2"]),
    ("W6800", 32, &["73a3"]),
    ("W6800X", 32, &["73ab"]),
    ("RX9070", 16, &["7550"]),
    ("RX7900", 24, &["744c"]),
    ("RX6900", 16, &["73af"]),
    ("RX6800", 16, &["73bf"]),
];

/// The model of a node's GPUs; of several, the one there are most of.
pub fn model(labels: &Labels) -> Option<String> {
    value(labels, "gpu.device-id")
        .or_else(|| most_counted(labels, "gpu.device-id."))
        .map(model_of_device)
        .or_else(|| value(labels, "gpu.family").map(str::to_owned))
        .or_else(|| most_counted(labels, "gpu.family.").map(str::to_owned))
}

/// Memory of one GPU in GiB: as labelled, else as known of the model.
pub fn vram_gib(labels: &Labels) -> Option<u32> {
    value(labels, "gpu.vram")
        .or_else(|| most_counted(labels, "gpu.vram."))
        .and_then(parse_gib)
        .or_else(|| model(labels).and_then(|model| vram_of_model(&model)))
}

/// The model behind a PCI device id, or a name made from the id.
pub fn model_of_device(id: &str) -> String {
    let lower = id.trim().to_lowercase();
    let id = lower.strip_prefix("0x").unwrap_or(&lower);
    let known = MODELS.iter().find(|(_, _, ids)| ids.contains(&id));
    known.map_or_else(|| format!("AMD-{}", id.to_uppercase()), |(model, _, _)| (*model).to_owned())
}

pub fn vram_of_model(model: &str) -> Option<u32> {
    MODELS.iter().find(|(known, _, _)| known.eq_ignore_ascii_case(model)).map(|(_, gib, _)| *gib)
}

/// Whether a change of a node may have changed its GPUs. Nodes report every few seconds, mostly
/// nothing new.
pub fn gpus_changed(old: &Node, new: &Node) -> bool {
    let labels = |node: &Node| -> Labels {
        let all = node.metadata.labels.clone().unwrap_or_default();
        all.into_iter().filter(|(key, _)| PREFIXES.iter().any(|p| key.starts_with(p))).collect()
    };
    let resources = |all: Option<&BTreeMap<String, Quantity>>| -> BTreeMap<String, Quantity> {
        let all = all.cloned().unwrap_or_default();
        all.into_iter().filter(|(key, _)| key.starts_with(RESOURCES)).collect()
    };
    let capacity = |node: &Node| {
        let status = node.status.as_ref();
        let total = resources(status.and_then(|status| status.capacity.as_ref()));
        let usable = resources(status.and_then(|status| status.allocatable.as_ref()));
        (total, usable)
    };
    labels(old) != labels(new) || capacity(old) != capacity(new)
}

fn value<'a>(labels: &'a Labels, name: &str) -> Option<&'a str> {
    let values = PREFIXES.iter().filter_map(|prefix| labels.get(&format!("{prefix}{name}")));
    values.map(String::as_str).find(|value| !value.is_empty())
}

/// Some labels carry their value as the end of the key and the number of GPUs as the value.
fn most_counted<'a>(labels: &'a Labels, name: &str) -> Option<&'a str> {
    PREFIXES.iter().find_map(|prefix| {
        let prefix = format!("{prefix}{name}");
        let counted = labels.iter().filter_map(|(key, count)| {
            Some((key.strip_prefix(&prefix)?, count.parse::<u32>().ok()?))
        });
        // Reversed, so that of equals the first key wins.
        let all: Vec<(&str, u32)> = counted.collect();
        all.into_iter().rev().max_by_key(|(_, count)| *count).map(|(value, _)| value)
    })
}

/// `192G`, `192Gi`, `192GiB` and `192GB` all mean what the vendor means by it.
fn parse_gib(text: &str) -> Option<u32> {
    let digits = text.trim().trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = text.trim().get(digits.len()..)?;
    let number: u32 = digits.parse().ok()?;
    match unit {
        "G" | "Gi" | "GB" | "GiB" => Some(number),
        "T" | "Ti" | "TB" | "TiB" => number.checked_mul(1024),
        "M" | "Mi" | "MB" | "MiB" => Some(number.div_ceil(1024)),
        _ => None,
    }
}
