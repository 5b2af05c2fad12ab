//! Services and where they lead.

use serde_json::{Value, json};

use super::Object;

pub(super) fn service(object: &Object<'_>) -> Vec<Value> {
    let ports: Vec<String> = object
        .list("spec.ports")
        .iter()
        .map(|port| {
            let protocol = port["protocol"].as_str().unwrap_or("TCP");
            match port["nodePort"].as_i64().unwrap_or_default() {
                0 => format!("{}/{protocol}", port["port"]),
                node => format!("{}:{node}/{protocol}", port["port"]),
            }
        })
        .collect();
    let cluster_ip = object.list("spec.clusterIPs").first().and_then(Value::as_str);
    vec![
        object.name(),
        json!(object.text("spec.type")),
        json!(cluster_ip.unwrap_or("<none>")),
        json!(external_ip(object)),
        json!(if ports.is_empty() { "<none>".to_owned() } else { ports.join(",") }),
        object.age(),
        json!(labels(object.find("spec.selector"))),
    ]
}

fn external_ip(object: &Object<'_>) -> String {
    let texts = |values: &[Value], name: Option<&str>| -> Vec<String> {
        let text = |value: &Value| match name {
            Some(name) => value[name].as_str().map(str::to_owned),
            None => value.as_str().map(str::to_owned),
        };
        values.iter().filter_map(text).collect()
    };
    let own = texts(object.list("spec.externalIPs"), None);
    let (mut all, nothing) = match object.text("spec.type") {
        "ClusterIP" | "NodePort" => (Vec::new(), "<none>"),
        "LoadBalancer" => {
            let ingress = object.list("status.loadBalancer.ingress");
            let mut all = texts(ingress, Some("ip"));
            all.extend(texts(ingress, Some("hostname")));
            (all, "<pending>")
        }
        "ExternalName" => return object.text("spec.externalName").to_owned(),
        _ => return "<unknown>".to_owned(),
    };
    all.extend(own);
    if all.is_empty() { nothing.to_owned() } else { all.join(",") }
}

/// `a=b,c=d`, sorted.
pub(super) fn labels(map: Option<&Value>) -> String {
    let pairs: Vec<String> = map
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    if pairs.is_empty() { "<none>".to_owned() } else { pairs.join(",") }
}

pub(super) fn endpoints(object: &Object<'_>) -> Vec<Value> {
    let mut all = Vec::new();
    for subset in object.list("subsets") {
        let addresses = subset["addresses"].as_array().into_iter().flatten();
        let addresses: Vec<&str> = addresses.filter_map(|address| address["ip"].as_str()).collect();
        let ports: Vec<&Value> = subset["ports"].as_array().into_iter().flatten().collect();
        if ports.is_empty() {
            all.extend(addresses.iter().map(|address| (*address).to_owned()));
        }
        for port in ports {
            all.extend(addresses.iter().map(|address| match address.contains(':') {
                true => format!("[{address}]:{}", port["port"]),
                false => format!("{address}:{}", port["port"]),
            }));
        }
    }
    vec![object.name(), json!(some_of(all, "<none>")), object.age()]
}

pub(super) fn endpoint_slice(object: &Object<'_>) -> Vec<Value> {
    let ports =
        object.list("ports").iter().map(|port| match (&port["port"], port["name"].as_str()) {
            (Value::Number(number), _) => number.to_string(),
            (_, Some(name)) => name.to_owned(),
            _ => "*".to_owned(),
        });
    let addresses = object.list("endpoints").iter().flat_map(|endpoint| {
        let addresses = endpoint["addresses"].as_array().into_iter().flatten();
        addresses.filter_map(Value::as_str).map(str::to_owned)
    });
    vec![
        object.name(),
        json!(object.text("addressType")),
        json!(some_of(ports.collect(), "<unset>")),
        json!(some_of(addresses.collect(), "<unset>")),
        object.age(),
    ]
}

/// The first three and how many there are beyond them.
fn some_of(all: Vec<String>, nothing: &str) -> String {
    const SHOWN: usize = 3;
    match all.len() {
        0 => nothing.to_owned(),
        len if len > SHOWN => format!("{} + {} more...", all[..SHOWN].join(","), len - SHOWN),
        _ => all.join(","),
    }
}
