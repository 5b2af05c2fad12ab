//! One question to a container.

use std::time::Duration;

use k8s_openapi::{
    api::core::v1::{Container, Probe},
    apimachinery::pkg::util::intstr::IntOrString,
};
use tokio::{net::TcpStream, time::timeout};

use super::{Target, grpc, http};
use crate::node::process::{self, Launch, Outcome};

/// Asks once. The error is the text of the failure.
pub(super) async fn probe(spec: &Probe, target: &Target, limit: Duration) -> Result<(), String> {
    if let Some(exec) = &spec.exec {
        return command(exec.command.as_deref().unwrap_or_default(), target, limit).await;
    }
    if let Some(get) = &spec.http_get {
        let port = port(&get.port, &target.container)?;
        return http::get(get, &target.host, port, limit).await;
    }
    if let Some(tcp) = &spec.tcp_socket {
        let port = port(&tcp.port, &target.container)?;
        let host = tcp.host.as_deref().filter(|host| !host.is_empty()).unwrap_or(&target.host);
        return match timeout(limit, connect(host, port)).await {
            Ok(connected) => connected.map(|_| ()),
            Err(_) => Err(format!("dial tcp {host}:{port}: i/o timeout")),
        };
    }
    if let Some(grpc) = &spec.grpc {
        let port = u16::try_from(grpc.port).map_err(|_| format!("invalid port {}", grpc.port))?;
        let service = grpc.service.as_deref().unwrap_or_default();
        return grpc::check(&target.host, port, service, limit).await;
    }
    Err("missing probe handler".to_owned())
}

pub(super) async fn connect(host: &str, port: u16) -> Result<TcpStream, String> {
    let connected = TcpStream::connect((host, port)).await;
    connected.map_err(|error| format!("dial tcp {host}:{port}: connect: {}", plain(&error)))
}

/// Without the number that the system's error has.
pub(super) fn plain(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::ConnectionRefused => "connection refused".to_owned(),
        std::io::ErrorKind::ConnectionReset => "connection reset by peer".to_owned(),
        _ => error.to_string(),
    }
}

/// A port by number or by the name that the container gives it.
pub(super) fn port(port: &IntOrString, container: &Container) -> Result<u16, String> {
    let number = match port {
        IntOrString::Int(number) => Some(*number),
        IntOrString::String(name) => {
            let ports = container.ports.as_deref().unwrap_or_default();
            let named = ports.iter().find(|port| port.name.as_ref() == Some(name));
            named.map(|port| port.container_port).or_else(|| name.parse().ok())
        }
    };
    let number = number.and_then(|number| u16::try_from(number).ok()).filter(|port| *port > 0);
    number.ok_or_else(|| match port {
        IntOrString::Int(number) => format!("invalid port number: {number}"),
        IntOrString::String(name) => format!("couldn't find port: {name:?}"),
    })
}

async fn command(command: &[String], target: &Target, limit: Duration) -> Result<(), String> {
    let mut words = command.iter().map(|word| target.mounts.translate(word));
    let Some(program) = words.next() else { return Err("no command".to_owned()) };
    let launch =
        Launch { program: program.into(), args: words.collect(), ..Launch::clone(&target.launch) };
    match process::run(&launch, &target.token, limit).await {
        Outcome::Done { code: 0, .. } => Ok(()),
        Outcome::Done { output, .. } => Err(output),
        Outcome::TooLong => {
            let words = command.join(" ");
            Err(format!("command timed out: {words:?} timed out after {}s", limit.as_secs()))
        }
        Outcome::NotStarted(text) => Err(text),
    }
}
