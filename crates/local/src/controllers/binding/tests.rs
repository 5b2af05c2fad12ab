use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, Pod};
use serde_json::{Value, json};

use super::{
    plan::{Verdict, plan},
    resources::Counting,
    storage::Storage,
};

fn node(changes: Value) -> Arc<Node> {
    let mut value = json!({
        "metadata": {"name": "n", "labels": {"arch": "x", "cores": "8"}},
        "spec": {},
        "status": {"allocatable": {"cpu": "2", "memory": "4Gi", "pods": "2", "nvidia.com/gpu": "2"}},
    });
    json_patch::merge(&mut value, &changes);
    Arc::new(serde_json::from_value(value).unwrap())
}

fn pod(name: &str, spec: Value) -> Arc<Pod> {
    let mut value = json!({
        "metadata": {"name": name, "namespace": "d", "uid": name},
        "spec": {"containers": [{"name": "c"}], "schedulerName": "default-scheduler"},
        "status": {"phase": "Pending"},
    });
    json_patch::merge(&mut value, &json!({"spec": spec}));
    Arc::new(serde_json::from_value(value).unwrap())
}

fn asking(name: &str, resource: &str, amount: &str) -> Arc<Pod> {
    let resources = json!({"limits": {resource: amount}, "requests": {resource: amount}});
    pod(name, json!({"containers": [{"name": "c", "resources": resources}]}))
}

fn verdicts(nodes: &[Arc<Node>], pods: &[Arc<Pod>], counting: Counting) -> Vec<(String, Verdict)> {
    let name = |pod: &Pod| pod.metadata.name.clone().unwrap();
    let plan = plan(nodes, pods, &Storage::default(), counting);
    plan.into_iter().map(|decision| (name(&decision.pod), decision.verdict)).collect()
}

fn fits(node: &Arc<Node>, pod: &Arc<Pod>) -> bool {
    let found = verdicts(std::slice::from_ref(node), std::slice::from_ref(pod), Counting::Devices);
    matches!(&found[..], [(_, Verdict::Bind(_))])
}

#[test]
fn without_a_node_nothing_is_said() {
    assert_eq!(verdicts(&[], &[pod("a", json!({}))], Counting::Devices), []);
}

#[test]
fn a_pod_that_asks_for_nothing_goes_to_the_node() {
    let found = verdicts(&[node(json!({}))], &[pod("a", json!({}))], Counting::Devices);
    assert_eq!(found, [("a".into(), Verdict::Bind("n".into()))]);
}

#[test]
fn who_has_a_node_a_gate_an_end_or_another_scheduler_is_left_alone() {
    let leaving: Arc<Pod> = {
        let mut pod = (*pod("l", json!({}))).clone();
        pod.metadata.deletion_timestamp =
            Some(serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap());
        Arc::new(pod)
    };
    for pod in [
        pod("a", json!({"nodeName": "n"})),
        pod("b", json!({"schedulingGates": [{"name": "g"}]})),
        pod("c", json!({"schedulerName": "mine"})),
        leaving,
    ] {
        assert_eq!(verdicts(&[node(json!({}))], &[pod], Counting::Devices), []);
    }
}

#[test]
fn devices_are_given_out_once_and_the_rest_waits() {
    let holder = {
        let mut held = (*asking("held", "nvidia.com/gpu", "1")).clone();
        held.spec.as_mut().unwrap().node_name = Some("n".into());
        Arc::new(held)
    };
    let pods = [
        holder.clone(),
        asking("a", "nvidia.com/gpu", "1"),
        asking("b", "nvidia.com/gpu", "1"),
        pod("c", json!({})),
    ];
    let message = "0/1 nodes are available: 1 Insufficient nvidia.com/gpu. preemption: 0/1 nodes \
                   are available: 1 No preemption victims found for incoming pod.";
    assert_eq!(
        verdicts(&[node(json!({}))], &pods, Counting::Devices),
        [
            ("a".into(), Verdict::Bind("n".into())),
            ("b".into(), Verdict::Unschedulable(message.into())),
            ("c".into(), Verdict::Bind("n".into())),
        ]
    );
    let mut over = (*holder).clone();
    over.status.as_mut().unwrap().phase = Some("Succeeded".into());
    let pods = [Arc::new(over), asking("a", "nvidia.com/gpu", "2")];
    let found = verdicts(&[node(json!({}))], &pods, Counting::Devices);
    assert_eq!(found, [("a".into(), Verdict::Bind("n".into()))], "what is over holds nothing");
}

#[test]
fn processors_and_memory_count_only_where_that_is_wanted() {
    for (resource, amount, lax, strict) in [
        ("cpu", "3", true, false),
        ("cpu", "2", true, true),
        ("memory", "5Gi", true, false),
        ("amd.com/gpu", "1", false, false),
        ("hugepages-2Mi", "2Mi", false, false),
    ] {
        for (counting, want) in [(Counting::Devices, lax), (Counting::Everything, strict)] {
            let found = verdicts(&[node(json!({}))], &[asking("a", resource, amount)], counting);
            let fits = matches!(found[0].1, Verdict::Bind(_));
            assert_eq!(fits, want, "{resource} {amount} {counting:?}");
        }
    }
    let three = ["a", "b", "c"].map(|name| pod(name, json!({})));
    let found = verdicts(&[node(json!({}))], &three, Counting::Everything);
    let Verdict::Unschedulable(message) = &found[2].1 else { panic!("{found:?}") };
    assert!(message.starts_with("0/1 nodes are available: 1 Too many pods."), "{message}");
}

#[test]
fn init_containers_count_by_the_largest_and_sidecars_with_the_rest() {
    let gpu = |count: u32| json!({"limits": {"nvidia.com/gpu": count.to_string()}});
    for (init, want) in [
        (json!([{"name": "i", "resources": gpu(2)}]), true),
        (json!([{"name": "i", "resources": gpu(3)}]), false),
        (json!([{"name": "i", "resources": gpu(1)}, {"name": "j", "resources": gpu(2)}]), true),
        (json!([{"name": "s", "restartPolicy": "Always", "resources": gpu(1)}]), true),
        (
            json!([{"name": "s", "restartPolicy": "Always", "resources": gpu(1)},
            {"name": "i", "resources": gpu(2)}]),
            false,
        ),
    ] {
        let pod = pod(
            "a",
            json!({"initContainers": init,
            "containers": [{"name": "c", "resources": gpu(1)}]}),
        );
        assert_eq!(fits(&node(json!({})), &pod), want, "{init}");
    }
}

#[test]
fn selectors_and_required_affinity_have_to_hold() {
    let term = |key: &str, operator: &str, values: &[&str]| json!([{"matchExpressions": [{"key": key, "operator": operator, "values": values}]}]);
    let required = |terms: Value| {
        json!({"affinity": {"nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}})
    };
    for (spec, want) in [
        (json!({"nodeSelector": {"arch": "x"}}), true),
        (json!({"nodeSelector": {"arch": "y"}}), false),
        (json!({"nodeSelector": {"none": "x"}}), false),
        (required(term("arch", "In", &["x", "y"])), true),
        (required(term("arch", "NotIn", &["x"])), false),
        (required(term("none", "NotIn", &["x"])), true),
        (required(term("arch", "Exists", &[])), true),
        (required(term("arch", "DoesNotExist", &[])), false),
        (required(term("cores", "Gt", &["7"])), true),
        (required(term("cores", "Lt", &["8"])), false),
        (required(term("arch", "Gt", &["1"])), false),
        (required(json!([{}])), false),
        (required(json!([])), false),
        (
            required(json!([{}, {"matchFields": [
            {"key": "metadata.name", "operator": "In", "values": ["n"]}]}])),
            true,
        ),
    ] {
        assert_eq!(fits(&node(json!({})), &pod("a", spec.clone())), want, "{spec}");
    }
    let found = verdicts(
        &[node(json!({}))],
        &[pod("a", json!({"nodeSelector": {"arch": "y"}}))],
        Counting::Devices,
    );
    let message = "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector. \
                   preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.";
    assert_eq!(found[0].1, Verdict::Unschedulable(message.into()));
}

#[test]
fn taints_have_to_be_tolerated() {
    let taints = json!([{"key": "k", "value": "v", "effect": "NoSchedule"},
        {"key": "soft", "effect": "PreferNoSchedule"}]);
    let tainted = node(json!({"spec": {"taints": taints}}));
    let closed = node(json!({"spec": {"unschedulable": true}}));
    let by_key = json!([{"key": "k", "operator": "Exists"}]);
    for (node, tolerations, want) in [
        (&tainted, json!([]), false),
        (&tainted, by_key.clone(), true),
        (&tainted, json!([{"key": "k", "value": "v"}]), true),
        (&tainted, json!([{"key": "k", "value": "w"}]), false),
        (&tainted, json!([{"key": "k", "value": "v", "effect": "NoExecute"}]), false),
        (&tainted, json!([{"operator": "Exists"}]), true),
        (&closed, by_key, false),
        (&closed, json!([{"operator": "Exists", "effect": "NoSchedule"}]), true),
    ] {
        let pod = pod("a", json!({"tolerations": tolerations}));
        assert_eq!(fits(node, &pod), want, "{tolerations}");
    }
}

#[test]
fn of_several_nodes_the_first_that_fits_is_taken() {
    let full = node(json!({"metadata": {"name": "a"}, "status": {"allocatable": {
        "nvidia.com/gpu": "0"}}}));
    let other = node(json!({"metadata": {"name": "b"}}));
    let nodes = [full.clone(), other];
    let found = verdicts(&nodes, &[asking("p", "nvidia.com/gpu", "1")], Counting::Devices);
    assert_eq!(found[0].1, Verdict::Bind("b".into()));
    let nodes = [full, node(json!({"metadata": {"name": "b"}, "spec": {"unschedulable": true}}))];
    let found = verdicts(&nodes, &[asking("p", "nvidia.com/gpu", "1")], Counting::Devices);
    let Verdict::Unschedulable(message) = &found[0].1 else { panic!("{found:?}") };
    assert!(
        message.starts_with(
            "0/2 nodes are available: 1 Insufficient nvidia.com/gpu, 1 node(s) were unschedulable."
        ),
        "{message}"
    );
}

#[test]
fn the_important_and_the_old_come_first() {
    let gpu = |name: &str, priority: i32, created: &str| {
        let mut pod = (*asking(name, "nvidia.com/gpu", "2")).clone();
        pod.spec.as_mut().unwrap().priority = Some(priority);
        pod.metadata.creation_timestamp = Some(serde_json::from_value(json!(created)).unwrap());
        Arc::new(pod)
    };
    let old = gpu("z", 0, "2026-01-01T00:00:00Z");
    let young = gpu("a", 0, "2026-01-02T00:00:00Z");
    let important = gpu("i", 9, "2026-01-03T00:00:00Z");
    let first = |pods: &[Arc<Pod>]| {
        let found = verdicts(&[node(json!({}))], pods, Counting::Devices);
        found.into_iter().find(|(_, verdict)| matches!(verdict, Verdict::Bind(_))).unwrap().0
    };
    assert_eq!(first(&[young.clone(), old.clone()]), "z");
    assert_eq!(first(&[young, old, important]), "i");
}

#[test]
fn pods_wait_for_claims_that_are_bound_before_they_are_used() {
    let claim = |name: &str, class: &str, changes: Value| {
        let mut value = json!({
            "metadata": {"name": name, "namespace": "d"},
            "spec": {"storageClassName": class, "volumeName": "v"},
            "status": {"phase": "Pending"},
        });
        json_patch::merge(&mut value, &changes);
        Arc::new(serde_json::from_value(value).unwrap())
    };
    let class = |name: &str, mode: &str| {
        let class =
            json!({"metadata": {"name": name}, "provisioner": "p", "volumeBindingMode": mode});
        Arc::new(serde_json::from_value(class).unwrap())
    };
    let bound = json!({"metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}});
    let leaving = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
    let claims = vec![
        claim("bound", "now", bound),
        claim("waiting", "now", json!({})),
        claim("unclassed", "", json!({})),
        claim("patient", "late", json!({"spec": {"volumeName": null}})),
        claim("leaving", "late", leaving),
    ];
    let classes = [class("now", "Immediate"), class("late", "WaitForFirstConsumer")];
    let storage = Storage::of(claims, &classes);
    let unbound = "pod has unbound immediate PersistentVolumeClaims";
    for (names, want) in [
        (&["bound", "patient"][..], None),
        (&["bound", "waiting"], Some(unbound)),
        (&["unclassed"], Some(unbound)),
        (&["leaving"], Some("persistentvolumeclaim \"leaving\" is being deleted")),
        (&["waiting", "none"], Some("persistentvolumeclaim \"none\" not found")),
    ] {
        let volumes = names
            .iter()
            .map(|name| json!({"name": name, "persistentVolumeClaim": {"claimName": name}}));
        let pods = [pod("a", json!({"volumes": volumes.collect::<Vec<_>>()}))];
        let found = plan(&[node(json!({}))], &pods, &storage, Counting::Devices);
        let want = want.map_or(Verdict::Bind("n".into()), |reason| {
            Verdict::Unschedulable(format!(
                "0/1 nodes are available: {reason}. preemption: 0/1 nodes are available: \
                 1 Preemption is not helpful for scheduling."
            ))
        });
        assert_eq!(found[0].verdict, want, "{names:?}");
    }
}
