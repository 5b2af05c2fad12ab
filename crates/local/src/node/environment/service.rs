//! Variables that tell where services are.

use std::net::SocketAddr;

use k8s_openapi::api::core::v1::Service;

use super::Variables;

/// For each service with an address. The API's own comes from [`of_api`].
pub(super) fn variables(services: &[Service]) -> Variables {
    let mut found = Variables::new();
    for service in services {
        let (Some(name), Some(spec)) = (&service.metadata.name, &service.spec) else { continue };
        let Some(host) = spec.cluster_ip.as_deref().filter(|ip| !matches!(*ip, "" | "None")) else {
            continue;
        };
        let ports = spec.ports.iter().flatten().map(|port| Port {
            name: port.name.as_deref().unwrap_or_default(),
            number: port.port,
            protocol: port.protocol.as_deref().unwrap_or("TCP"),
        });
        add(&mut found, name, host, &ports.collect::<Vec<_>>());
    }
    found
}

/// As if it were the service `kubernetes`, but where the API really listens.
pub(super) fn of_api(address: SocketAddr) -> Variables {
    let mut found = Variables::new();
    let port = Port { name: "https", number: address.port().into(), protocol: "TCP" };
    add(&mut found, "kubernetes", &address.ip().to_string(), &[port]);
    found
}

struct Port<'a> {
    name: &'a str,
    number: i32,
    protocol: &'a str,
}

fn add(found: &mut Variables, service: &str, host: &str, ports: &[Port<'_>]) {
    let prefix = upper(service);
    found.insert(format!("{prefix}_SERVICE_HOST"), host.to_owned());
    for (at, port) in ports.iter().enumerate() {
        let number = port.number.to_string();
        let protocol = port.protocol.to_lowercase();
        let address = match host.contains(':') {
            true => format!("{protocol}://[{host}]:{number}"),
            false => format!("{protocol}://{host}:{number}"),
        };
        if at == 0 {
            found.insert(format!("{prefix}_SERVICE_PORT"), number.clone());
            found.insert(format!("{prefix}_PORT"), address.clone());
        }
        if !port.name.is_empty() {
            found.insert(format!("{prefix}_SERVICE_PORT_{}", upper(port.name)), number.clone());
        }
        let link = format!("{prefix}_PORT_{number}_{}", port.protocol.to_uppercase());
        found.insert(format!("{link}_PROTO"), protocol);
        found.insert(format!("{link}_PORT"), number);
        found.insert(format!("{link}_ADDR"), host.to_owned());
        found.insert(link, address);
    }
}

fn upper(name: &str) -> String {
    name.replace('-', "_").to_uppercase()
}
