//! The known cases, through the picker itself.

mod disaggregated;
mod requests;
mod scoring;

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::{Value, json};

use super::*;
use crate::endpoint::{Cache, Load, Lora};

const HEAD: &str =
    "apiVersion: inference.networking.x-k8s.io/v1alpha1\nkind: EndpointPickerConfig\n";

/// A picker with endpoints 10.0.0.1:8000 and so on, named A, B, C ….
struct Bench {
    picker: Picker,
    now: Instant,
    headers: HeaderMap,
    subset: Option<Vec<String>>,
    path: &'static str,
}

impl Bench {
    fn new(config: Config) -> Self {
        Self::with(config, Settings::default())
    }

    fn with(config: Config, settings: Settings) -> Self {
        let picker = Picker::new(config, Settings { seed: Some(1), ..settings });
        Self {
            now: picker.0.began + Duration::from_secs(1),
            picker,
            headers: HeaderMap::new(),
            subset: None,
            path: "/v1/completions",
        }
    }

    fn config(text: &str) -> Self {
        Self::new(Config::parse(&format!("{HEAD}{text}")).unwrap())
    }

    /// One endpoint for each role; an empty role is no label.
    fn roles(self, roles: &[&str]) -> Self {
        let endpoint = |(index, role): (usize, &&str)| {
            let name = char::from(b'A' + index as u8).to_string();
            let address = SocketAddr::from(([10, 0, 0, index as u8 + 1], 8000));
            let label = ("llm-d.ai/role".to_owned(), (*role).to_owned());
            let labels = BTreeMap::from_iter((!role.is_empty()).then_some(label));
            Endpoint { namespace: "ns".into(), name, address, metrics: address, labels }
        };
        self.picker.set_endpoints(roles.iter().enumerate().map(endpoint).collect());
        self
    }

    /// Endpoints that are this busy.
    fn loads(self, loads: &[(u32, f64)]) -> Self {
        let bench = self.roles(&vec![""; loads.len()]);
        loads.iter().enumerate().for_each(|(index, load)| bench.set(index, load.0, load.1));
        bench
    }

    fn set(&self, index: usize, waiting: u32, kv: f64) {
        let state = &self.picker.members()[index].state;
        state.set_load(Load { waiting, running: 0, kv });
        state.set_updated(self.picker.since(self.now));
    }

    fn try_bytes(&self, body: Option<&[u8]>) -> Result<Picked, Refused> {
        let body = body.map(|body| Body::from(Bytes::copy_from_slice(body)));
        self.try_body(body.as_ref())
    }

    fn try_body(&self, body: Option<&Body>) -> Result<Picked, Refused> {
        self.picker.pick(&Request {
            path: self.path,
            headers: &self.headers,
            body,
            subset: self.subset.as_deref(),
            now: self.now,
        })
    }

    fn try_pick(&self, body: &Value) -> Result<Picked, Refused> {
        self.try_bytes(Some(body.to_string().as_bytes()))
    }

    fn pick(&self, body: &Value) -> Picked {
        self.try_pick(body).unwrap_or_else(|refused| panic!("{refused}"))
    }

    /// The names of the endpoints for this prompt.
    fn names(&self, prompt: &str) -> String {
        name(&self.pick(&prompt_of(prompt)))
    }

    fn header(&mut self, name: &'static str, value: &str) {
        self.headers.insert(name, value.parse().unwrap());
    }
}

fn prompt_of(prompt: &str) -> Value {
    json!({"model": "m", "prompt": prompt})
}

/// `A`, or `AB` for two destinations.
fn name(picked: &Picked) -> String {
    let letter = |address: &SocketAddr| match address.ip() {
        std::net::IpAddr::V4(ip) => char::from(b'A' + ip.octets()[3] - 1),
        std::net::IpAddr::V6(_) => '6',
    };
    picked.destinations.iter().map(letter).collect()
}

fn header<'a>(picked: &'a Picked, name: &str) -> Option<&'a str> {
    let found = picked.set_headers.iter().find(|(key, _)| key.as_str() == name);
    found.map(|(_, value)| value.to_str().unwrap())
}

fn refused(result: Result<Picked, Refused>) -> (u16, String) {
    match result {
        Ok(picked) => panic!("picked {}", name(&picked)),
        Err(refused) => (refused.status.as_u16(), refused.body()),
    }
}
