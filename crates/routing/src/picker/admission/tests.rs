use super::*;

fn rewrite(name: &str, created: &str, models: &[&str], targets: &[(&str, u32)]) -> Rewrite {
    let models = models.iter().map(ToString::to_string).collect();
    let targets = targets.iter().map(|(name, weight)| (name.to_string(), *weight)).collect();
    Rewrite {
        name: name.into(),
        created: created.into(),
        rules: vec![RewriteRule { models, targets }],
    }
}

#[test]
fn exact_rules_go_before_generic_ones_and_then_the_oldest() {
    let generic = rewrite("g", "2025-01-01T00:00:00Z", &[], &[("generic", 1)]);
    let young = rewrite("y", "2026-02-01T00:00:00Z", &["m"], &[("young", 1)]);
    let old = rewrite("o", "2026-01-01T00:00:00Z", &["x", "m"], &[("old", 1)]);
    let random = &mut Random::of(1, 1);
    for (rewrites, model, want) in [
        (vec![generic.clone(), young.clone()], "m", Some("young")),
        (vec![young.clone(), old.clone()], "m", Some("old")),
        (vec![generic, old.clone()], "other", Some("generic")),
        (vec![old], "other", None),
    ] {
        assert_eq!(rewritten(&rewrites, model, random).map(|(_, target)| target), want, "{model}");
    }
}

#[test]
fn targets_are_chosen_by_weight() {
    let share = |targets: &[(&str, u32)]| {
        let rewrites = [rewrite("r", "", &[], targets)];
        let hit =
            |request| rewritten(&rewrites, "m", &mut Random::of(2, request)) == Some(("r", "a"));
        (0..4_000).filter(|request| hit(*request)).count()
    };
    assert!((2_900..=3_100).contains(&share(&[("a", 3), ("b", 1)])));
    assert!((1_900..=2_100).contains(&share(&[("a", 0), ("b", 0)])));
    assert_eq!(share(&[("b", 1), ("a", 0)]), 0);
    assert_eq!(share(&[]), 0);
}

#[test]
fn a_pool_is_full_when_no_endpoint_has_room() {
    let limits = Saturation::default();
    let load = |waiting, kv| fullness(Load { waiting, running: 0, kv }, true, &limits);
    assert_eq!(load(10, 0.1), 2.0);
    assert_eq!(load(0, 0.8), 1.0);
    assert_eq!(fullness(Load::default(), false, &limits), 1.0);
    // The mean of the first pair is 1.06.
    for (loads, go, ours) in [
        (&[load(10, 0.1), load(0, 0.1)][..], true, false),
        (&[load(10, 0.1), load(6, 0.1)], true, true),
        (&[load(0, 0.1)], false, false),
        (&[], true, true),
    ] {
        assert_eq!((saturated(loads, true), saturated(loads, false)), (go, ours), "{loads:?}");
    }
}
