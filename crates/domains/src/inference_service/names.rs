//! Every name, label and annotation of the children; nothing else makes them up.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use windlass_api::serving::zerfoo_inference_service::ZerfooInferenceService;

/// Field manager, event source and `managed-by` value.
pub const CONTROLLER: &str = "zerfoo-inference-service-controller";

/// Carries the service's name on every child.
pub const NAME_LABEL: &str = "serving.zerfoo.com/inference-service.name";

/// Tells primary pods from canary pods.
pub(super) const TRACK_LABEL: &str = "serving.zerfoo.com/track";

/// The label that both tracks share, so that one Service can reach both.
pub(super) const APP_LABEL: &str = "app";

/// The model that a Deployment serves. Promotion is recognised by it, after the canary has left the
/// spec.
pub(super) const MODEL_REF_ANNOTATION: &str = "serving.zerfoo.com/model-ref";

/// When the canary stopped receiving traffic. Kept in the cluster so that a restart of the operator
/// does not start the wait again.
pub(super) const DRAIN_STARTED_ANNOTATION: &str = "serving.zerfoo.com/drain-started";

/// The two sets of pods that a service may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Track {
    Primary,
    Canary,
}

impl Track {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Primary => "primary",
            Self::Canary => "canary",
        }
    }
}

/// Which pods a Service reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    Both,
    Only(Track),
}

/// Names of the children of one service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Names {
    namespace: Option<String>,
    name: String,
}

impl Names {
    pub(super) fn of(service: &ZerfooInferenceService) -> Self {
        Self {
            namespace: service.metadata.namespace.clone(),
            name: service.metadata.name.clone().unwrap_or_default(),
        }
    }

    pub(super) fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Deployment of a track, and the Service that reaches this track alone.
    pub(super) fn track(&self, track: Track) -> String {
        format!("{}-{}", self.name, track.as_str())
    }

    /// The stable Service.
    pub(super) fn service(&self) -> String {
        format!("{}-svc", self.name)
    }

    pub(super) fn autoscaler(&self) -> String {
        format!("{}-hpa", self.name)
    }

    pub(super) fn route(&self) -> String {
        format!("{}-route", self.name)
    }

    /// Address of the stable Service, without a cluster domain because that is the cluster's choice.
    pub(super) fn endpoint(&self) -> String {
        format!("http://{}.{}.svc", self.service(), self.namespace().unwrap_or("default"))
    }

    /// Labels of a child; `track` where it belongs to one.
    pub(super) fn labels(&self, track: Option<Track>) -> BTreeMap<String, String> {
        let mut labels = BTreeMap::from([
            (APP_LABEL.to_owned(), self.name.clone()),
            ("app.kubernetes.io/name".to_owned(), "zerfoo".to_owned()),
            ("app.kubernetes.io/instance".to_owned(), self.name.clone()),
            ("app.kubernetes.io/component".to_owned(), "inference".to_owned()),
            ("app.kubernetes.io/managed-by".to_owned(), CONTROLLER.to_owned()),
            (NAME_LABEL.to_owned(), self.name.clone()),
        ]);
        if let Some(track) = track {
            labels.insert(TRACK_LABEL.to_owned(), track.as_str().to_owned());
        }
        labels
    }

    pub(super) fn selector(&self, reach: Reach) -> BTreeMap<String, String> {
        let mut selector = BTreeMap::from([(APP_LABEL.to_owned(), self.name.clone())]);
        if let Reach::Only(track) = reach {
            selector.insert(TRACK_LABEL.to_owned(), track.as_str().to_owned());
        }
        selector
    }

    /// Selector of the primary pods in the form that the scale subresource wants.
    pub(super) fn scale_selector(&self) -> String {
        let terms: Vec<_> = self
            .selector(Reach::Only(Track::Primary))
            .into_iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        terms.join(",")
    }

    pub(super) fn metadata(&self, name: String, track: Option<Track>) -> ObjectMeta {
        ObjectMeta {
            name: Some(name),
            namespace: self.namespace.clone(),
            labels: Some(self.labels(track)),
            ..Default::default()
        }
    }
}
