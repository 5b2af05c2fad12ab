//! Services: the stable address, and one per track for gateways to choose from.

use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::deployment::PORT_NAME;
use crate::inference_service::names::{Names, Reach, Track};

/// Port of every Service, whatever the server listens on.
pub(crate) const SERVICE_PORT: i32 = 80;

/// The address that users know; what it reaches follows the traffic.
pub(crate) fn stable(names: &Names, reach: Reach) -> Service {
    cluster_ip(names, names.service(), None, reach)
}

/// Reaches one track only.
pub(crate) fn for_track(names: &Names, track: Track) -> Service {
    cluster_ip(names, names.track(track), Some(track), Reach::Only(track))
}

fn cluster_ip(names: &Names, name: String, track: Option<Track>, reach: Reach) -> Service {
    Service {
        metadata: names.metadata(name, track),
        spec: Some(ServiceSpec {
            type_: Some("ClusterIP".to_owned()),
            selector: Some(names.selector(reach)),
            ports: Some(vec![ServicePort {
                name: Some(PORT_NAME.to_owned()),
                port: SERVICE_PORT,
                target_port: Some(IntOrString::String(PORT_NAME.to_owned())),
                ..Default::default()
            }]),
            ..Default::default()
        }),
        ..Default::default()
    }
}
