use http::{HeaderMap, Method};
use serde_json::{Value, json};

use super::*;
use crate::gateway::{
    backends::{Answering, POOLS},
    listed::Kind,
    table::Asked,
};

const SETTINGS: Settings = Settings {
    accepts_any: true,
    scheme: "http",
    address: SocketAddr::new(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 8080),
};
const STRICT: Settings = Settings { accepts_any: false, ..SETTINGS };

fn listed(objects: &[(Kind, &str, Value)]) -> Listed {
    let mut listed = Listed::default();
    for (kind, name, spec) in objects {
        let (namespace, name) = name.split_once('/').unwrap_or(("", name));
        let metadata = json!({ "namespace": namespace, "name": name });
        listed.put(*kind, json!({ "metadata": metadata, "spec": spec }));
    }
    listed
}

fn route_to(backend: Value) -> Value {
    json!({ "parentRefs": [{ "name": "g" }], "rules": [{ "backendRefs": [backend] }] })
}

fn to(backend: Value) -> (Kind, &'static str, Value) {
    (Kind::Route, "ns/r", route_to(backend))
}

fn assembled(listed: &Listed, around: &Around<'_>, settings: Settings) -> Assembled {
    assemble(listed, around, settings, &Backends::default())
}

/// Who answers a request, or why nobody does.
fn answers(assembled: &Assembled, host: &str) -> Result<Vec<String>, &'static str> {
    let headers = HeaderMap::new();
    let asked = Asked { host, method: &Method::GET, path: "/", query: "", headers: &headers };
    let met = assembled.routing.table.find(&asked).ok_or("no route")?;
    let backend = &met.rule().unwrap().backends[0];
    let found = assembled.routing.backends.resolve(&met.route.namespace, backend);
    let texts = |addresses: &[SocketAddr]| addresses.iter().map(SocketAddr::to_string).collect();
    found.map_err(|why| why.reason()).map(|answering| match answering {
        Answering::Endpoints(ready) => texts(ready),
        Answering::Pool(pool) => texts(&pool.endpoints),
    })
}

fn labels(app: &str) -> BTreeMap<String, String> {
    BTreeMap::from([("app".to_owned(), app.to_owned())])
}

fn pod<'a>(name: &'a str, ip: &str, labels: &'a BTreeMap<String, String>) -> PodSeen<'a> {
    PodSeen {
        namespace: "ns",
        name,
        ip: ip.parse().unwrap(),
        labels,
        is_ready: true,
        is_leaving: false,
        ports: vec![("http", 9000)],
    }
}

fn service<'a>(
    target: Target<'a>,
    selector: Option<&'a BTreeMap<String, String>>,
) -> ServiceSeen<'a> {
    let port = PortSeen { number: 80, name: "web", target };
    ServiceSeen { namespace: "ns", name: "s", selector, ports: vec![port], takes_unready: false }
}

#[test]
fn services_are_answered_by_ready_pods_that_stay() {
    let (a, b) = (labels("a"), labels("b"));
    let all = || {
        vec![
            pod("ready", "127.64.0.1", &a),
            PodSeen { is_ready: false, ..pod("starting", "127.64.0.2", &a) },
            PodSeen { is_leaving: true, ..pod("leaving", "127.64.0.3", &a) },
            pod("other", "127.64.0.4", &b),
            PodSeen { namespace: "elsewhere", ..pod("far", "127.64.0.5", &a) },
            PodSeen { ports: Vec::new(), ..pod("nameless", "127.64.0.6", &a) },
        ]
    };
    let slice = SliceSeen {
        namespace: "ns",
        service: "s",
        ports: vec![("web", 7000), ("more", 7001)],
        addresses: vec!["127.0.0.9".parse().unwrap()],
    };
    let number = Target::Number(8000);
    for (service, slices, want) in [
        (service(number, Some(&a)), vec![], &["127.64.0.1:8000", "127.64.0.6:8000"][..]),
        (service(Target::Name("http"), Some(&a)), vec![], &["127.64.0.1:9000"]),
        (service(number, None), vec![slice.clone()], &["127.0.0.9:7000"]),
        (service(number, None), vec![SliceSeen { service: "x", ..slice.clone() }], &[]),
        (service(number, None), vec![SliceSeen { ports: vec![], ..slice.clone() }], &[]),
        (
            service(Target::Name("http"), Some(&a)),
            vec![slice],
            &["127.0.0.9:7000", "127.64.0.1:9000"],
        ),
        (
            ServiceSeen { takes_unready: true, ..service(Target::Name("http"), Some(&a)) },
            vec![],
            &["127.64.0.1:9000", "127.64.0.2:9000"],
        ),
    ] {
        let said = format!("{service:?} {slices:?}");
        let around = Around { pods: all(), services: vec![service], slices };
        let listed = listed(&[to(json!({ "name": "s", "port": 80 }))]);
        let got = answers(&assembled(&listed, &around, SETTINGS), "h").unwrap();
        assert_eq!(got, want, "{said}");
    }
}

#[test]
fn pools_have_their_ready_pods_at_each_port() {
    let (a, b) = (labels("a"), labels("b"));
    let pods = vec![
        pod("ready", "127.64.0.1", &a),
        PodSeen { is_ready: false, ..pod("starting", "127.64.0.2", &a) },
        PodSeen { is_leaving: true, ..pod("leaving", "127.64.0.3", &a) },
        pod("other", "127.64.0.4", &b),
    ];
    let around = Around { pods, ..Around::default() };
    let pool = |labels: Value| {
        json!({ "selector": { "matchLabels": labels },
            "targetPorts": [{ "number": 8000 }, { "number": 8001 }] })
    };
    let refer = json!({ "group": POOLS[0], "kind": "InferencePool", "name": "p" });
    for (selector, want) in [
        (json!({ "app": "a" }), &["127.64.0.1:8000", "127.64.0.1:8001"][..]),
        (json!({ "app": "c" }), &[]),
        // Nobody means all pods of a namespace.
        (json!({}), &[]),
    ] {
        let listed = listed(&[to(refer.clone()), (Kind::Pool, "ns/p", pool(selector))]);
        let first = assembled(&listed, &around, SETTINGS);
        assert_eq!(answers(&first, "h").unwrap(), want);
        assert_eq!(first.endpoints[0].1.len(), want.len());
        let again = assemble(&listed, &around, SETTINGS, &first.routing.backends);
        let key = &first.endpoints[0].0;
        first.routing.backends.pools[key].picker.set_endpoints(first.endpoints[0].1.clone());
        let kept = again.routing.backends.pools[key].picker.endpoints();
        assert_eq!(kept.len(), want.len(), "it is the same picker");
    }
    let early = listed(&[to(refer), (Kind::EarlyPool, "ns/p", json!({}))]);
    assert_eq!(answers(&assembled(&early, &around, SETTINGS), "h"), Err("BackendNotFound"));
}

#[test]
fn what_no_route_uses_is_not_looked_up() {
    let around = Around { services: vec![service(Target::Number(1), None)], ..Around::default() };
    let pool = (Kind::Pool, "ns/p", json!({}));
    let assembled = assembled(&listed(&[pool]), &around, SETTINGS);
    assert!(assembled.routing.backends.services.is_empty());
    assert!(assembled.routing.backends.pools.is_empty());
}

#[test]
fn routes_count_by_whose_gateway_they_hang_on() {
    let class = |controller: &str| json!({ "controllerName": controller });
    let ours = (Kind::Class, CLASS, class(CONTROLLER));
    let theirs = (Kind::Class, "istio", class("istio.io/gateway-controller"));
    let gateway = |class: &str, host: &str| {
        let listener = json!({ "name": "web", "port": 80, "protocol": "HTTP", "hostname": host });
        let spec = json!({ "gatewayClassName": class, "listeners": [listener] });
        (Kind::Gateway, "ns/g", spec)
    };
    let around = Around { services: vec![service(Target::Number(1), None)], ..Around::default() };
    let route = to(json!({ "name": "s", "port": 80 }));
    let (served, not) = (Ok(Vec::new()), Err("no route"));
    for (objects, strict, any) in [
        (vec![], &not, &served),
        (vec![ours.clone(), gateway(CLASS, "h.x")], &served, &served),
        (vec![ours.clone(), gateway(CLASS, "*.x")], &served, &served),
        (vec![ours.clone(), gateway(CLASS, "other")], &not, &not),
        (vec![theirs, gateway("istio", "h.x")], &not, &served),
        (vec![gateway("unknown", "h.x")], &not, &served),
    ] {
        let mut objects = objects;
        objects.push(route.clone());
        let said = format!("{objects:?}");
        let listed = listed(&objects);
        let got = |settings| answers(&assembled(&listed, &around, settings), "h.x");
        assert_eq!(&got(STRICT), strict, "strict: {said}");
        assert_eq!(&got(SETTINGS), any, "any: {said}");
    }
    let mut elsewhere = route.2;
    elsewhere["parentRefs"] = json!([{ "kind": "Service", "group": "", "name": "g" }]);
    let mesh = listed(&[(Kind::Route, "ns/r", elsewhere)]);
    assert_eq!(answers(&assembled(&mesh, &around, SETTINGS), "h"), not);
}

#[test]
fn the_usual_picker_leaves_prefill_alone() {
    let key = PoolKey { group: String::new(), namespace: "ns".into(), name: "p".into() };
    let picker = picker_of(&key, None, &Counters::default());
    let role = |role: &str| BTreeMap::from([("llm-d.ai/role".to_owned(), role.to_owned())]);
    let (prefill, decode) = (role("prefill"), role("decode"));
    let pods = [pod("p", "127.64.0.1", &prefill), pod("d", "127.64.0.2", &decode)];
    let endpoints = pods.iter().flat_map(|pod| {
        let labels = pod.labels.clone();
        let pod = Pod { namespace: "ns".into(), name: pod.name.into(), ip: pod.ip, labels };
        pod.endpoints(&[8000], None)
    });
    picker.set_endpoints(endpoints.collect());
    let mut body = crate::Body::default();
    body.push(bytes::Bytes::from_static(br#"{"model":"m","prompt":"x"}"#));
    let headers = HeaderMap::new();
    let now = std::time::Instant::now();
    for _ in 0..20 {
        let request = crate::Request {
            path: "/v1/completions",
            headers: &headers,
            body: Some(&body),
            subset: None,
            now,
        };
        let picked = picker.pick(&request).unwrap_or_else(|refused| panic!("{refused}"));
        let destinations: Vec<_> = picked.destinations.iter().map(ToString::to_string).collect();
        assert_eq!(destinations, ["127.64.0.2:8000"]);
    }
}

#[test]
fn objectives_and_rewrites_are_for_the_pool_that_they_name() {
    let refer = |name: &str| json!({ "group": POOLS[0], "kind": "InferencePool", "name": name });
    let rule = json!({ "matches": [{ "model": { "value": "m" } }],
        "targets": [{ "modelRewrite": "a", "weight": 9 }, { "modelRewrite": "b" }] });
    let (mine, early) = (json!({ "name": "p" }), json!({ "name": "p", "group": POOLS[1] }));
    let mut listed = listed(&[
        to(refer("p")),
        (Kind::Pool, "ns/p", json!({})),
        (Kind::Objective, "ns/low", json!({ "priority": -1, "poolRef": mine })),
        (Kind::Objective, "ns/usual", json!({ "poolRef": mine })),
        (Kind::Objective, "ns/early", json!({ "priority": 5, "poolRef": early })),
        (Kind::Objective, "ns/other", json!({ "priority": 5, "poolRef": { "name": "q" } })),
        (Kind::Objective, "elsewhere/far", json!({ "priority": 5, "poolRef": mine })),
        (Kind::Rewrite, "ns/r", json!({ "poolRef": mine, "rules": [rule, 7] })),
        (Kind::Rewrite, "ns/other", json!({ "poolRef": { "name": "q" }, "rules": [rule] })),
    ]);
    let first = assembled(&listed, &Around::default(), SETTINGS);
    let priorities = BTreeMap::from([("low".to_owned(), -1), ("usual".to_owned(), 0)]);
    assert_eq!((first.objectives.len(), &first.objectives[0].1), (1, &priorities));
    let rewrites = &first.rewrites[0].1;
    assert_eq!((rewrites.len(), rewrites[0].name.as_str()), (1, "r"));
    let [rule] = &rewrites[0].rules[..] else { panic!("{rewrites:?}") };
    assert_eq!(rule.models, ["m"]);
    assert_eq!(rule.targets, [("a".to_owned(), 9), ("b".to_owned(), 1)]);
    listed.remove(Kind::Objective, "ns", "low");
    listed.retain(Kind::Rewrite, |_, name| name != "r");
    let then = assembled(&listed, &Around::default(), SETTINGS);
    assert_eq!((then.objectives[0].1.len(), then.rewrites[0].1.len()), (1, 0));
}

#[test]
fn a_pool_knows_whether_its_picker_is_there() {
    let refer = json!({ "group": POOLS[0], "kind": "InferencePool", "name": "p" });
    let around = Around { services: vec![service(Target::Number(1), None)], ..Around::default() };
    for (picker, want) in [
        (json!({}), true),
        (json!({ "name": "s" }), true),
        (json!({ "name": "none" }), false),
        (json!({ "name": "s", "kind": "Deployment" }), false),
    ] {
        let spec = json!({ "endpointPickerRef": picker });
        let listed = listed(&[to(refer.clone()), (Kind::Pool, "ns/p", spec)]);
        let assembled = assembled(&listed, &around, SETTINGS);
        let pool = assembled.routing.backends.pools.values().next().unwrap();
        assert_eq!(pool.has_picker, want, "{picker}");
    }
}

#[test]
fn a_pool_is_picked_from_as_the_configuration_of_its_picker_says() {
    let refer = json!({ "group": POOLS[0], "kind": "InferencePool", "name": "p" });
    let spec = json!({ "endpointPickerRef": { "name": "p-epp" } });
    let mut listed = listed(&[to(refer), (Kind::Pool, "ns/p", spec)]);
    let mut before = Backends::default();
    let random = "apiVersion: inference.networking.x-k8s.io/v1alpha1\nkind: \
                  EndpointPickerConfig\nplugins:\n- type: random-picker\n";
    let configs = [(None, true), (Some(random), true), (Some(random), false), (Some("x"), true)];
    for (config, is_new) in configs {
        if let Some(text) = config {
            let metadata = json!({ "namespace": "ns", "name": "p-epp-config" });
            listed.put(Kind::Config, json!({ "metadata": metadata, "data": { "a.yaml": text } }));
        }
        let assembled = assemble(&listed, &Around::default(), SETTINGS, &before);
        let (key, pool) = assembled.routing.backends.pools.iter().next().unwrap();
        assert_eq!(pool.config.as_deref(), config);
        let mark = Endpoint {
            namespace: String::new(),
            name: String::new(),
            address: SETTINGS.address,
            metrics: SETTINGS.address,
            labels: BTreeMap::new(),
        };
        assert_eq!(pool.picker.endpoints().is_empty(), is_new, "{config:?}");
        pool.picker.set_endpoints(vec![mark]);
        assert_eq!(key.name, "p");
        before = assembled.routing.backends;
    }
}
