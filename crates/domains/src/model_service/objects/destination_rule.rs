//! How the mesh reaches the endpoint picker.

use windlass_api::foreign::destination_rule::{
    DestinationRule, DestinationRuleSpec, Port, PortSettings, Tls, TrafficPolicy,
};

use crate::model_service::names::Names;

/// The picker serves TLS with a certificate of its own making, and only where gateways ask it: its
/// metrics are plain.
pub(crate) fn destination_rule(names: &Names, port: i32) -> DestinationRule {
    DestinationRule {
        metadata: names.epp_metadata(names.epp()),
        spec: DestinationRuleSpec {
            host: names.epp_host(),
            traffic_policy: TrafficPolicy {
                port_level_settings: vec![PortSettings {
                    port: Port { number: port },
                    tls: Tls { mode: "SIMPLE".to_owned(), insecure_skip_verify: true },
                }],
            },
        },
    }
}
