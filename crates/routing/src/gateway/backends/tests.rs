use super::*;

fn backend(kind: &str, namespace: &str, name: &str, port: Option<u16>) -> Backend {
    let group = if kind == "InferencePool" { POOLS[0] } else { "" };
    Backend {
        group: group.to_owned(),
        kind: kind.to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        port,
        weight: 1,
    }
}

#[test]
fn what_keeps_a_backend_from_being_used_is_named() {
    let ready: Vec<SocketAddr> = vec!["127.64.0.1:8000".parse().unwrap()];
    let service = Service { ports: HashMap::from([(80, ready), (81, Vec::new())]) };
    let services =
        ["ns", "other"].map(|space| ((space.to_owned(), "a".to_owned()), service.clone()));
    let mut backends = Backends { services: services.into(), ..Backends::default() };
    let found = |backends: &Backends, backend: Backend| match backends.resolve("ns", &backend) {
        Ok(Answering::Endpoints(ready)) => Ok(ready.len()),
        Ok(Answering::Pool(_)) => Ok(99),
        Err(why) => Err(why.reason()),
    };
    for (backend, want) in [
        (backend("Service", "ns", "a", Some(80)), Ok(1)),
        (backend("Service", "ns", "a", Some(81)), Ok(0)),
        (backend("Service", "ns", "a", Some(82)), Err("BackendNotFound")),
        (backend("Service", "ns", "a", None), Err("BackendNotFound")),
        (backend("Service", "ns", "b", Some(80)), Err("BackendNotFound")),
        (backend("InferencePool", "ns", "a", None), Err("BackendNotFound")),
        (backend("Secret", "ns", "a", Some(80)), Err("InvalidKind")),
        (backend("Service", "other", "a", Some(80)), Err("RefNotPermitted")),
    ] {
        assert_eq!(found(&backends, backend), want);
    }
    let grant = |from: &str, name: Option<&str>| Grant {
        namespace: "other".to_owned(),
        from: from.to_owned(),
        group: String::new(),
        kind: "Service".to_owned(),
        name: name.map(str::to_owned),
    };
    for (grant, want) in [
        (grant("ns", None), Ok(1)),
        (grant("ns", Some("a")), Ok(1)),
        (grant("ns", Some("b")), Err("RefNotPermitted")),
        (grant("elsewhere", None), Err("RefNotPermitted")),
    ] {
        backends.grants = vec![grant];
        assert_eq!(found(&backends, backend("Service", "other", "a", Some(80))), want);
    }
}

#[test]
fn pools_of_the_same_name_are_told_apart_in_the_metrics() {
    let key = |namespace: &str, name: &str| PoolKey {
        group: POOLS[0].into(),
        namespace: namespace.into(),
        name: name.into(),
    };
    let pool = || Pool {
        picker: Picker::new(crate::Config::default(), crate::picker::Settings::default()),
        config: None,
        has_picker: true,
        fails_open: false,
        endpoints: Vec::new(),
    };
    let keys = [key("a", "p"), key("b", "p"), key("b", "q")];
    let pools = keys.map(|key| (key, pool())).into();
    let text = Backends { pools, ..Backends::default() }.metrics(Instant::now());
    for name in ["a/p.inference.networking.k8s.io", "b/p.inference.networking.k8s.io", "q"] {
        let line = format!("inference_pool_ready_pods{{name=\"{name}\"}} 0");
        assert!(text.lines().any(|said| said == line), "{line} in {text}");
    }
}
