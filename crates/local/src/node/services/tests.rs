use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use super::*;

fn seen(services: &[Value], slices: &[Value]) -> Seen {
    let mut seen = Seen::default();
    for service in services {
        let service: Service = serde_json::from_value(service.clone()).unwrap();
        let event = Event::Apply(service);
        take(&mut BTreeMap::new(), &mut seen.services, event);
    }
    for slice in slices {
        let slice: EndpointSlice = serde_json::from_value(slice.clone()).unwrap();
        take(&mut BTreeMap::new(), &mut seen.slices, Event::Apply(slice));
    }
    seen
}

fn service(address: &str, ports: Value) -> Value {
    json!({
        "metadata": {"name": "s", "namespace": "ns"},
        "spec": {"clusterIP": address, "ports": ports},
    })
}

fn slice(name: &str, endpoints: Value) -> Value {
    json!({
        "metadata": {"name": name, "namespace": "ns", "labels": {SERVICE_NAME: "s"}},
        "addressType": "IPv4",
        "ports": [{"name": "http", "port": 8080}],
        "endpoints": endpoints,
    })
}

#[test]
fn only_ports_with_a_ready_endpoint_are_listened_on() {
    let ports = json!([{"name": "http", "port": 80}, {"name": "other", "port": 81}]);
    let ready = json!([{"addresses": ["127.64.0.1"], "conditions": {"ready": true}}]);
    let mixed = json!([
        {"addresses": ["127.64.0.3"]},
        {"addresses": ["127.64.0.2"], "conditions": {"ready": false}},
        {"addresses": ["not one"]},
    ]);
    let here = service("127.96.0.9", ports.clone());
    for (services, slices, want) in [
        (vec![here.clone()], vec![], vec![]),
        (vec![], vec![slice("s-1", ready.clone())], vec![]),
        (vec![service("None", ports.clone())], vec![slice("s-1", ready.clone())], vec![]),
        (vec![service("10.96.0.9", ports.clone())], vec![slice("s-1", ready.clone())], vec![]),
        // What else is on this machine, and the API's own address.
        (vec![service("127.0.0.1", ports.clone())], vec![slice("s-1", ready.clone())], vec![]),
        (vec![service("127.96.0.1", ports)], vec![slice("s-1", ready.clone())], vec![]),
        (
            vec![here],
            vec![slice("s-1", ready), slice("s-2", mixed)],
            vec![("127.96.0.9:80", vec!["127.64.0.1:8080", "127.64.0.3:8080"])],
        ),
    ] {
        let found = wanted(&seen(&services, &slices));
        let found: Vec<(String, Vec<String>)> = found
            .iter()
            .map(|(at, answering)| {
                (at.to_string(), answering.endpoints.iter().map(ToString::to_string).collect())
            })
            .collect();
        let want: Vec<(String, Vec<String>)> = want
            .into_iter()
            .map(|(at, all)| (at.to_owned(), all.into_iter().map(str::to_owned).collect()))
            .collect();
        assert_eq!(found, want);
    }
}

#[test]
fn a_list_counts_when_it_is_complete() {
    let service: Service =
        serde_json::from_value(service("127.96.0.9", json!([{"port": 1}]))).unwrap();
    let mut seen = BTreeMap::new();
    let mut fresh = BTreeMap::new();
    take(&mut fresh, &mut seen, Event::Apply(service.clone()));
    take(&mut fresh, &mut seen, Event::<Service>::Init);
    assert_eq!(seen.len(), 1);
    take(&mut fresh, &mut seen, Event::<Service>::InitDone);
    assert_eq!(seen.len(), 0);
    take(&mut fresh, &mut seen, Event::Apply(service.clone()));
    assert!(take(&mut fresh, &mut seen, Event::Delete(service)));
    assert!(seen.is_empty());
}

/// Says its own name to whoever connects.
async fn echo(name: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.write_all(name.as_bytes()).await.unwrap();
        }
    });
    address
}

async fn ask(address: SocketAddr) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    text
}

#[tokio::test]
async fn connections_go_round_and_past_those_who_refuse() {
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let (a, b) = (echo("a").await, echo("b").await);
    let forwarder = Forwarder::bind(free, vec![a, b]).await.unwrap();
    let mut answers = vec![ask(free).await, ask(free).await, ask(free).await, ask(free).await];
    answers.sort();
    assert_eq!(answers, ["a", "a", "b", "b"]);
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    forwarder.set(vec![nobody, b]);
    for _ in 0..4 {
        assert_eq!(ask(free).await, "b");
    }
    drop(forwarder);
    let gone = async { while TcpStream::connect(free).await.is_ok() {} };
    tokio::time::timeout(Duration::from_secs(10), gone).await.unwrap();
}
