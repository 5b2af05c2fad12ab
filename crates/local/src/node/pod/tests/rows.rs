//! From bound to running.

use super::*;

const ORDER: [&str; 5] =
    ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"];

#[test]
fn a_bound_pod_is_pending_and_creates_its_containers() {
    let mut life = Life::new(one("Always"));
    assert_eq!(life.step(), [Action::Prepare]);
    assert_eq!(life.phase(), "Pending");
    assert_eq!(life.state("c"), "waiting ContainerCreating");
    let unready = "False ContainersNotReady containers with unready status: [c]";
    for (kind, says) in ORDER.into_iter().zip(["False", "True", unready, unready, "True"]) {
        assert_eq!(life.says(kind), says, "{kind}");
    }
    let conditions = life.status().conditions.unwrap();
    assert_eq!(conditions.iter().map(|one| &*one.type_).collect::<Vec<_>>(), ORDER);
    for condition in conditions {
        assert_eq!(condition.observed_generation, Some(1));
        assert_eq!(condition.last_probe_time, None);
        assert_eq!(condition.last_transition_time, Some(time(life.now)));
    }
    let status = life.status();
    assert_eq!(status.host_ip.as_deref(), Some("127.0.0.1"));
    assert_eq!(status.pod_ip, None);
    assert_eq!(status.start_time, Some(time(life.now)));
    let container = life.container("c");
    assert_eq!((&*container.image_id, container.container_id), ("", None));
    assert_eq!((container.ready, container.started), (false, Some(false)));
}

#[test]
fn with_init_containers_all_wait_for_the_pod_to_initialise() {
    let mut life = Life::new(json!({
        "initContainers": [{"name": "i1"}, {"name": "i2"}],
        "containers": [{"name": "c"}],
    }));
    life.step();
    for name in ["i1", "i2", "c"] {
        assert_eq!(life.state(name), "waiting PodInitializing", "{name}");
    }
    let incomplete = "False ContainersNotInitialized containers with incomplete status:";
    assert_eq!(life.says("Initialized"), format!("{incomplete} [i1 i2]"));
    life.known.prepared("127.64.0.1");
    assert_eq!(life.says("PodReadyToStartContainers"), "True");
    assert_eq!(life.step(), [start_of("i1")]);
    life.start("i1");
    assert_eq!(life.step(), []);
    assert_eq!((life.phase(), life.state("i1")), ("Pending".into(), "running".into()));
    life.end("i1", 0);
    assert_eq!(life.step(), [start_of("i2")]);
    assert_eq!(life.state("i1"), "Completed 0");
    assert!(life.container("i1").ready);
    assert_eq!(life.says("Initialized"), format!("{incomplete} [i2]"));
    life.start("i2");
    life.end("i2", 0);
    assert_eq!(life.step(), [start_of("c")]);
    assert_eq!(life.says("Initialized"), "True");
    assert_eq!(life.phase(), "Pending");
    life.start("c");
    assert_eq!((life.step(), life.phase()), (vec![], "Running".into()));
}

#[test]
fn running_containers_are_ready_unless_a_probe_says_otherwise() {
    let mut life = Life::new(json!({"containers": [
        {"name": "a", "image": "x"},
        {"name": "b", "readinessProbe": {"tcpSocket": {"port": 1}}},
        {"name": "c", "startupProbe": {"tcpSocket": {"port": 1}}},
    ]}));
    life.settle();
    assert_eq!(life.phase(), "Running");
    let flags = |life: &Life, name: &str| {
        let status = life.container(name);
        (status.started, status.ready)
    };
    assert_eq!(flags(&life, "a"), (Some(true), true));
    assert_eq!(flags(&life, "b"), (Some(true), false));
    assert_eq!(flags(&life, "c"), (Some(false), false));
    let unready = "False ContainersNotReady containers with unready status: [b c]";
    assert_eq!(life.says("Ready"), unready);
    life.probe("c", Probe::Startup, true);
    assert_eq!(flags(&life, "c"), (Some(true), true));
    life.after(5);
    life.probe("b", Probe::Readiness, true);
    assert_eq!((life.says("Ready"), life.says("ContainersReady")), ("True".into(), "True".into()));
    assert_eq!(life.condition("Ready").last_transition_time, Some(time(life.now)));
    life.step();
    life.after(5);
    life.probe("b", Probe::Readiness, false);
    assert_eq!(life.says("Ready"), "False ContainersNotReady containers with unready status: [b]");
    assert_eq!(life.settle(), [], "readiness restarts nothing");
    assert_eq!(
        life.told()[..3],
        [
            "Pulled Container image \"x\" already present on machine and can be accessed by the pod",
            "Created Container created",
            "Started Container started",
        ]
    );
    let status = life.container("a");
    assert_eq!(status.container_id.as_deref(), Some("windlass://run-1"));
    assert_eq!(status.image_id, "sha256:1");
    assert_eq!(life.status().pod_ips.unwrap()[0].ip, "127.64.0.1");
}

#[test]
fn gates_of_others_hold_readiness_back() {
    let mut spec = one("Always");
    spec["readinessGates"] = json!([{"conditionType": "x.io/gate"}]);
    let mut life = Life::new(spec);
    life.settle();
    assert_eq!(
        life.says("Ready"),
        "False ReadinessGatesNotReady corresponding condition of pod readiness gate \"x.io/gate\" \
         does not exist."
    );
    assert_eq!(life.says("ContainersReady"), "True");
    let conditions = &mut life.pod.status.as_mut().unwrap().conditions;
    conditions.as_mut().unwrap().push(PodCondition {
        type_: "x.io/gate".into(),
        status: "True".into(),
        ..PodCondition::default()
    });
    assert_eq!(life.says("Ready"), "True");
    assert_eq!(life.status().conditions.unwrap().len(), 6, "and are kept");
}

#[test]
fn sidecars_start_in_order_and_count_for_readiness() {
    let mut life = Life::new(json!({
        "initContainers": [
            {"name": "s", "restartPolicy": "Always", "startupProbe": {"tcpSocket": {"port": 1}},
             "readinessProbe": {"tcpSocket": {"port": 1}}},
            {"name": "i"},
        ],
        "containers": [{"name": "c"}],
    }));
    assert_eq!(life.settle(), [Action::Prepare, start_of("s")]);
    assert_eq!(life.phase(), "Pending");
    life.probe("s", Probe::Startup, true);
    assert_eq!(life.settle(), [start_of("i")]);
    life.end("i", 0);
    assert_eq!(life.settle(), [start_of("c")]);
    assert_eq!(life.phase(), "Running");
    assert_eq!(life.says("Ready"), "False ContainersNotReady containers with unready status: [s]");
    life.probe("s", Probe::Readiness, true);
    assert_eq!(life.says("Ready"), "True");
    // A sidecar that ends is started again, and the pod stays what it is.
    life.end("s", 0);
    assert_eq!(life.settle(), [start_of("s")]);
    assert_eq!((life.phase(), life.says("Initialized")), ("Running".into(), "True".into()));
    assert_eq!(life.container("s").restart_count, 1);
}

#[test]
fn a_changed_image_restarts_the_container() {
    let mut life = Life::new(one("Always"));
    life.settle();
    life.told();
    life.pod.spec.as_mut().unwrap().containers[0].image = Some("j".into());
    let by = life.now + SignedDuration::from_secs(30);
    assert_eq!(life.settle(), [Action::Stop { container: "c".into(), by }]);
    assert_eq!(life.told(), ["Killing Container c definition changed, will be restarted"]);
    life.end("c", 143);
    assert_eq!(life.settle(), [start_of("c")]);
    assert_eq!(life.container("c").image, "j");
}
