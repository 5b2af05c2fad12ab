use std::sync::Mutex;

use super::*;

fn pod(name: &str, ip: &str) -> Pod {
    let labels = BTreeMap::from([("app".to_owned(), "m".to_owned())]);
    Pod { namespace: "ns".into(), name: name.into(), ip: ip.parse().unwrap(), labels }
}

#[test]
fn a_pod_gives_an_endpoint_for_each_port() {
    let seen = |ports: &[u16], metrics| -> Vec<(String, String, String)> {
        let endpoints = pod("p", "10.0.0.1").endpoints(ports, metrics);
        let texts = |endpoint: Endpoint| {
            (endpoint.name, endpoint.address.to_string(), endpoint.metrics.to_string())
        };
        endpoints.into_iter().map(texts).collect()
    };
    let own = |parts: [&str; 3]| (parts[0].into(), parts[1].into(), parts[2].into());
    assert_eq!(seen(&[8000], None), [own(["p-rank-0", "10.0.0.1:8000", "10.0.0.1:8000"])]);
    assert_eq!(seen(&[8000], Some(9)), [own(["p-rank-0", "10.0.0.1:8000", "10.0.0.1:9"])]);
    assert_eq!(
        seen(&[8000, 8001], Some(9)),
        [
            own(["p-rank-0", "10.0.0.1:8000", "10.0.0.1:8000"]),
            own(["p-rank-1", "10.0.0.1:8001", "10.0.0.1:8001"]),
        ]
    );
}

#[test]
fn endpoints_that_stay_keep_their_figures() {
    let pool = Pool::default();
    let gone = Mutex::new(Vec::new());
    let set = |pods: &[Pod]| {
        let endpoints = pods.iter().flat_map(|pod| pod.endpoints(&[80], None)).collect();
        pool.replace(endpoints, |state| gone.lock().unwrap().push(state.slot));
        let snapshot = pool.snapshot();
        snapshot.members.iter().map(|member| member.state.clone()).collect::<Vec<_>>()
    };
    let first = set(&[pod("a", "10.0.0.1"), pod("b", "10.0.0.2"), pod("a", "10.0.0.1")]);
    assert_eq!(first.iter().map(|state| state.slot).collect::<Vec<_>>(), [0, 1]);
    first[1].set_load(Load { waiting: 3, running: 2, kv: 0.25 });
    let mut relabelled = pod("b", "10.0.0.2");
    relabelled.labels.clear();
    let second = set(&[relabelled, pod("a", "10.0.0.3"), pod("c", "10.0.0.4")]);
    assert_eq!(second.iter().map(|state| state.slot).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(second[0].load(), Load { waiting: 3, running: 2, kv: 0.25 });
    assert_eq!(second[1].load(), Load::default());
    assert_eq!(*gone.lock().unwrap(), [0]);
    assert!(first[0].is_gone() && !first[1].is_gone());
    assert!(pool.snapshot().members[0].endpoint.labels.is_empty());
    let third = set(&[pod("d", "10.0.0.5")]);
    assert_eq!(third[0].slot, 0);
    assert!(!pool.replace(pod("d", "10.0.0.5").endpoints(&[80], None), |_| {}));
}

#[test]
fn a_file_can_name_the_endpoints() {
    let text = "endpoints:\n- {name: a, address: 10.0.0.1, port: '80', labels: {x: y}}\n- {name: a, namespace: n, address: 'fd00::1', port: 81}\n";
    let endpoints = read_file(text).unwrap();
    assert_eq!(endpoints[0].full_name(), "default/a");
    assert_eq!(endpoints[0].address.to_string(), "10.0.0.1:80");
    assert_eq!(endpoints[1].address.to_string(), "[fd00::1]:81");
    for (text, want) in [
        (
            "endpoints:\n- {name: a, address: host, port: '80'}",
            "endpoint \"a\": address must be an IP address",
        ),
        (
            "endpoints:\n- {name: a, address: 10.0.0.1, port: '0'}",
            "endpoint \"a\": port must be a port number",
        ),
        (
            "endpoints:\n- {name: a, address: 10.0.0.1, port: '1'}\n- {name: a, address: 10.0.0.2, port: '1'}",
            "the endpoint \"default/a\" is named twice",
        ),
    ] {
        assert_eq!(read_file(text).unwrap_err().to_string(), want);
    }
    assert!(read_file("endpoints:\n- {nam: a}").is_err());
    assert!(read_file(&" ".repeat(MAX)).is_err());
}

const MAX: usize = (1 << 20) + 1;
