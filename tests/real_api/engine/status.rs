use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use windlass_tests::eventually;

use super::{
    objects::{config_map, deployment, invalid_config_map},
    run::{Engine, Setup, child, condition, message},
    widget::{PREDECESSOR, Widget},
};

async fn impatient(name: &str) -> Option<Engine> {
    Engine::start_with::<Widget>(name, Setup { impatient: true, ..Setup::default() }).await
}

#[tokio::test(flavor = "multi_thread")]
async fn g15_w01_a_refused_write_makes_the_object_not_ready_in_the_servers_words() {
    let Some(engine) = Engine::start("refused").await else { return };
    let mut mismatched = deployment("b");
    mismatched["spec"]["selector"]["matchLabels"]["app"] = "other".into();
    for (name, child, words) in [
        ("a", invalid_config_map("a"), "a valid config key must consist of alphanumeric"),
        ("b", mismatched, "`selector` does not match template `labels`"),
    ] {
        let healthy = [{ json!({ "name": "Model", "reason": "Fine" }) }];
        let orders = json!({ "owned": [child], "components": healthy });
        engine.create(name, orders).await;
        let object = engine.wait(name, "Ready", "False", "InvalidSpec").await;
        for type_ in ["Ready", "ConfigValid"] {
            assert_eq!(condition(&object, type_)["status"], "False");
            let text = message(&object, type_);
            assert!(text.contains("Failed to apply resources"), "{text}");
            assert!(text.contains(words), "{text}");
        }
        assert_eq!(condition(&object, "ModelReady")["status"], "True");
        assert_eq!(object["status"]["status"], "Degraded");

        engine.order(name, json!({ "owned": [config_map(name, "x")] })).await;
        let object = engine.wait_ready(name).await;
        assert_eq!(object["status"]["status"], "Ready");
        assert_eq!(condition(&object, "ConfigValid")["reason"], "ConfigurationValid");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn w02_w23_failing_again_writes_no_status_and_tells_nothing() {
    let Some(engine) = impatient("again").await else { return };
    let missing = json!({ "name": "Source", "error": "MissingReference",
        "reason": "SourceNotFound", "message": "no such source" });
    for (name, orders) in [
        ("write", json!({ "owned": [invalid_config_map("a")] })),
        ("component", json!({ "components": [missing] })),
    ] {
        engine.create(name, orders).await;
        let before = engine.wait(name, "Ready", "False", reason_of(name)).await;
        engine.wait_verdicts(name, 3).await;
        let (writes, told) = (engine.writes("widgets/status").len(), engine.events(name).await);
        let so_far = engine.passes.verdicts(name);
        engine.wait_verdicts(name, so_far + 4).await;
        let after = engine.get(name).await.unwrap();
        assert_eq!(before["status"], after["status"], "nor does any time move");
        assert_eq!(before["metadata"]["resourceVersion"], after["metadata"]["resourceVersion"]);
        assert_eq!(engine.events(name).await, told);
        assert!(told.iter().all(|(_, count)| *count == 1), "each condition once: {told:?}");
        // Only this object fails at this time.
        assert_eq!(engine.writes("widgets/status").len(), writes);
        engine.order(name, json!({ "owned": [], "components": [] })).await;
        engine.wait_ready(name).await;
    }
}

fn reason_of(name: &str) -> &'static str {
    if name == "write" { "InvalidSpec" } else { "ReferenceNotFound" }
}

#[tokio::test(flavor = "multi_thread")]
async fn w04_only_a_changed_status_moves_the_time_of_a_condition() {
    let Some(engine) = Engine::start("times").await else { return };
    let component = |state: &str, reason: &str| {
        json!({ "components": [
        { "name": "Model", "state": state, "reason": reason, "message": reason },
    ] })
    };
    let time = |object: &Value| condition(object, "ModelReady")["lastTransitionTime"].clone();
    engine.create("a", component("Progressing", "One")).await;
    let first = engine.wait("a", "ModelReady", "False", "One").await;
    // Times are whole seconds.
    windlass_tests::wait::pass(std::time::Duration::from_millis(1100)).await;
    engine.order("a", component("Degraded", "Two")).await;
    let second = engine.wait("a", "ModelReady", "False", "Two").await;
    assert_eq!(time(&first), time(&second), "another reason is no other status");
    engine.order("a", component("Ready", "Three")).await;
    let third = engine.wait("a", "ModelReady", "True", "Three").await;
    assert_ne!(time(&second), time(&third));

    let reasons = |events: Vec<(String, i32)>| -> Vec<String> {
        events.into_iter().map(|(reason, _)| reason).collect()
    };
    let told = || async { reasons(engine.events("a").await) };
    // A new reason is told as well.
    let all = |told: &Vec<String>| {
        ["One", "Two", "Three"].iter().all(|reason| told.iter().any(|t| t == reason))
    };
    eventually("an event for each", told, all).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn w05_conditions_of_the_past_go_and_those_of_others_stay() {
    let Some(engine) = Engine::start("past").await else { return };
    let component = |name: &str| json!({ "name": name, "state": "Degraded", "reason": "Bad" });
    engine.create("a", json!({ "components": [component("One"), component("Two")] })).await;
    engine.wait("a", "TwoReady", "False", "Bad").await;
    let theirs = json!({ "apiVersion": "test.windlass.dev/v1", "kind": "Widget",
        "metadata": { "name": "a" },
        "status": {
            "cost": 7,
            "conditions": [
                { "type": "Audited", "status": "True", "reason": "Fine", "message": "by us",
                  "lastTransitionTime": "2026-01-01T00:00:00Z" },
                { "type": "BudgetReady", "status": "False", "reason": "Spent", "message": "",
                  "lastTransitionTime": "2026-01-01T00:00:00Z" },
            ],
        } });
    let auditor = PatchParams::apply("auditor");
    engine.api().patch_status("a", &auditor, &Patch::Apply(&theirs)).await.unwrap();

    engine.order("a", json!({ "components": [{ "name": "One", "reason": "Good" }] })).await;
    let object = engine.wait_ready("a").await;
    assert_eq!(*condition(&object, "TwoReady"), json!(null), "not reported any more");
    let kept = |object: &Value, when: &str| {
        assert_eq!(object["status"]["cost"], 7, "{when}");
        for wanted in theirs["status"]["conditions"].as_array().unwrap() {
            let type_ = wanted["type"].as_str().unwrap();
            assert_eq!(condition(object, type_), wanted, "{when}");
        }
    };
    kept(&object, "after a change");
    let ours = object["status"]["conditions"].as_array().unwrap().iter();
    for condition in ours.filter(|c| c["type"] != "Audited" && c["type"] != "BudgetReady") {
        assert_eq!(condition["observedGeneration"], object["metadata"]["generation"]);
    }
    assert_eq!(object["status"]["observedGeneration"], object["metadata"]["generation"]);

    let pause =
        |value: Value| json!({ "metadata": { "annotations": { "windlass.dev/paused": value } } });
    engine.edit("a", pause(json!("true"))).await;
    let paused = engine.wait_paused("a").await;
    kept(&paused, "while paused");
    engine.edit("a", pause(json!(null))).await;
    let resumed = || async { engine.get("a").await.unwrap() };
    let resumed = eventually("work to go on", resumed, |object| {
        condition(object, "ReconciliationPaused").is_null()
    })
    .await;
    kept(&resumed, "after a pause");
}

#[tokio::test(flavor = "multi_thread")]
async fn w23_an_event_is_told_once_for_each_transition() {
    let Some(engine) = Engine::start("events").await else { return };
    engine.create("a", json!({ "components": [{ "name": "Model", "reason": "Loaded" }] })).await;
    engine.wait_ready("a").await;
    let failed = json!({ "components": [
        { "name": "Model", "state": "Failed", "reason": "Broken", "message": "cannot load" },
    ] });
    engine.order("a", failed).await;
    let object = engine.wait("a", "Ready", "False", "Broken").await;
    assert_eq!(message(&object, "Ready"), "Component Model is not ready: cannot load");
    assert_eq!(object["status"]["status"], "Failed");
    for _ in 0..3 {
        engine.look_again("a").await;
    }
    let mut told = engine.events("a").await;
    told.sort();
    // The component's condition and Ready have the same reason but not the same words.
    let once = |reason: &str| (reason.to_owned(), 1);
    let broken = told.iter().filter(|(reason, _)| reason == "Broken").map(|(_, n)| n).sum::<i32>();
    assert_eq!(broken, 2, "{told:?}");
    assert!(
        told.contains(&once("Loaded")) && told.contains(&once("AllComponentsReady")),
        "{told:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn categories_of_errors_drive_conditions_and_whether_children_are_written() {
    let Some(engine) = Engine::start("categories").await else { return };
    for (name, category, type_, reason, state, written) in [
        ("g07", "Auth", "AuthValid", "AuthError", "Degraded", false),
        ("g09", "MissingReference", "ConfigValid", "ReferenceNotFound", "Degraded", false),
        ("spec", "InvalidSpec", "ConfigValid", "InvalidSpec", "Degraded", false),
        (
            "g02",
            "Infrastructure",
            "DependenciesReachable",
            "InfrastructureError",
            "Degraded",
            false,
        ),
        ("g10", "MissingDependency", "PartReady", "Why", "Progressing", true),
        ("full", "ResourceExhaustion", "PartReady", "Why", "Degraded", true),
    ] {
        let part = json!({ "name": "Part", "error": category, "reason": "Why", "message": "m" });
        let orders = json!({ "owned": [config_map(name, "x")], "components": [part] });
        engine.create(name, orders).await;
        let object = engine.wait(name, type_, "False", reason).await;
        assert_eq!(condition(&object, "Ready")["status"], "False", "{name}");
        assert_eq!(object["status"]["status"], state, "{name}");
        assert_eq!(child::<ConfigMap>(&engine, name).await.is_some(), written, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_domain_may_write_its_own_status_but_not_hide_a_refused_write() {
    let Some(engine) = Engine::start("manual").await else { return };
    let manual = json!({ "state": "Ready", "reason": "Verified", "message": "all there" });
    // Errors of this category do not hold back a domain that judges by itself.
    let part = json!({ "name": "Part", "error": "InvalidSpec", "reason": "Why", "message": "m" });
    let orders = |child: Value| json!({ "owned": [child], "manual": manual, "components": [part] });
    engine.create("a", orders(config_map("a", "x"))).await;
    let object = engine.wait("a", "Ready", "True", "Verified").await;
    assert_eq!(condition(&object, "Degraded")["status"], "False");
    assert_eq!(*condition(&object, "PartReady"), json!(null));
    assert!(child::<ConfigMap>(&engine, "a").await.is_some());

    engine.order("a", orders(invalid_config_map("b"))).await;
    let object = engine.wait("a", "Ready", "False", "InvalidSpec").await;
    assert_eq!(object["status"]["status"], "Degraded");
    assert!(message(&object, "ConfigValid").contains("failed to apply ConfigMap b"));
    engine.order("a", orders(config_map("b", "x"))).await;
    engine.wait("a", "Ready", "True", "Verified").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_does_not_fit_its_type_says_so() {
    let Some(engine) = Engine::start("unreadable").await else { return };
    engine.create("a", json!({ "owned": [config_map("a", "x")] })).await;
    engine.wait_ready("a").await;
    engine.order("a", json!({ "panics": "perhaps" })).await;
    let object = engine.wait("a", "Ready", "False", "InvalidSpec").await;
    let text = message(&object, "Ready");
    assert!(text.contains("expected a boolean"), "{text}");
    assert_eq!(object["status"]["status"], "Degraded");
    assert!(child::<ConfigMap>(&engine, "a").await.is_some(), "what runs goes on running");
    engine.order("a", json!({ "panics": false })).await;
    engine.wait_ready("a").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_of_a_status_that_a_predecessor_left_are_dropped() {
    let Some(engine) = Engine::start("stray").await else { return };
    engine.create("a", json!({})).await;
    engine.wait_ready("a").await;
    let params = PatchParams { field_manager: Some(PREDECESSOR.into()), ..Default::default() };
    let lie = json!({ "status": { "digest": "sha256:old", "message": "old" } });
    engine.api().patch_status("a", &params, &Patch::Merge(&lie)).await.unwrap();
    let mended = |object: &Option<Value>| {
        let status = &object.as_ref().unwrap()["status"];
        status.get("digest").is_none() && status["message"] != "old"
    };
    eventually("the truth", || engine.get("a"), mended).await;
}
