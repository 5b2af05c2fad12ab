//! `windlass render`: what manifests become, by the same functions as in the reconciler.

use std::{future::Future, sync::LazyLock, task::Poll};

use anyhow::anyhow;
use jiff::Timestamp;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Map, Value};
use windlass_domains::aim::service::reasons as aim;
use windlass_engine::{
    conditions::{ConditionSet, Status, reasons, types},
    domain::{Domain, Overall},
    error::Category,
    fetch::{Documents, Serves},
    pipeline::look,
};

use crate::{
    cli::RenderFlags,
    documents::{self, Document},
    exit::BadInput,
    kinds::{KindName, Visitor},
    names, output, schema,
};

pub(crate) fn run(flags: &RenderFlags) -> anyhow::Result<()> {
    let mut objects = Vec::new();
    let documents = documents::read(&flags.files)?;
    if documents.is_empty() {
        return Err(BadInput("the given files hold no object".to_owned()).into());
    }
    let documents: Vec<Document> = documents
        .into_iter()
        .map(|document| read(document, flags))
        .collect::<anyhow::Result<_>>()?;
    // A cluster that knows every kind and has nothing but what is given. Documents never make it wait.
    let cluster = Documents {
        objects: documents.iter().map(|document| document.value.clone()).collect(),
        serves: Serves::Everything,
    };
    for document in &documents {
        let kind = document.value["kind"].as_str().and_then(KindName::of);
        // The others only say something to those.
        if let Some(kind) = kind {
            let merges = flags.kinds.aim.merges();
            let render = Render { document, cluster: &cluster, merges };
            objects.extend(kind.visit(&flags.kinds, render)?);
        }
    }
    output::print_yaml(&objects)
}

/// The document as the API server would have it.
fn read(mut document: Document, flags: &RenderFlags) -> anyhow::Result<Document> {
    let definition = definition_of(&document)?;
    schema::check(definition, &document.value).map_err(|problem| document.place.bad(problem))?;
    let namespaced = definition.spec.scope == "Namespaced";
    prepare(&mut document, namespaced, &flags.namespace)?;
    schema::fill(definition, &mut document.value);
    forget_config(&mut document.value);
    check_name(&definition.spec.names.kind, &document)?;
    Ok(document)
}

/// A service without a config reports that of its template, and then its status would not tell whether
/// it has one itself.
fn forget_config(object: &mut Value) {
    if let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) {
        status.remove("resolvedRuntimeConfig");
    }
}

struct Render<'a> {
    document: &'a Document,
    cluster: &'a Documents,
    /// Whether runtime configs of the cluster fill those of namespaces.
    merges: bool,
}

impl Visitor for Render<'_> {
    type Output = anyhow::Result<Vec<Value>>;

    fn visit<D: Domain>(self, domain: D) -> Self::Output {
        render_as(&domain, &self)
    }
}

fn definition_of(document: &Document) -> Result<&'static CustomResourceDefinition, BadInput> {
    let field = |name: &str| document.value.get(name).and_then(Value::as_str).unwrap_or_default();
    let (version, kind) = (field("apiVersion"), field("kind"));
    if version.is_empty() || kind.is_empty() {
        return Err(document.place.bad("an object needs apiVersion and kind"));
    }
    // Made once: it takes longer than everything else together.
    static KNOWN: LazyLock<Vec<CustomResourceDefinition>> = LazyLock::new(windlass_api::crds);
    let known = &*KNOWN;
    let fits = |definition: &&CustomResourceDefinition| {
        let spec = &definition.spec;
        spec.names.kind == kind
            && spec
                .versions
                .iter()
                .any(|served| format!("{}/{}", spec.group, served.name) == version)
    };
    known.iter().find(fits).ok_or_else(|| {
        let names: Vec<_> = known.iter().map(describe).collect();
        document.place.bad(format!("unknown kind {kind} of {version}; known: {}", names.join(", ")))
    })
}

fn describe(definition: &CustomResourceDefinition) -> String {
    let version = definition.spec.versions.first().map(|version| version.name.as_str());
    let spec = &definition.spec;
    format!("{} of {}/{}", spec.names.kind, spec.group, version.unwrap_or_default())
}

/// What the API server would have filled in.
fn prepare(document: &mut Document, namespaced: bool, namespace: &str) -> Result<(), BadInput> {
    let place = document.place.clone();
    let metadata = document.value.get_mut("metadata").and_then(Value::as_object_mut);
    let Some(metadata) = metadata.filter(|m| m.get("name").is_some_and(Value::is_string)) else {
        return Err(place.bad("metadata.name is required"));
    };
    if namespaced {
        metadata.entry("namespace").or_insert_with(|| namespace.into());
    }
    metadata.entry("generation").or_insert_with(|| 1.into());
    Ok(())
}

/// By the rule for all kinds, then by that of this one. Those that hold for old objects too are the
/// domain's.
fn check_name(kind: &str, document: &Document) -> Result<(), BadInput> {
    let name = document.value["metadata"]["name"].as_str().unwrap_or_default();
    names::dns_subdomain(name)
        .map_err(|rule| document.place.bad(format!("metadata.name {rule}, got {name:?}")))?;
    let rule = KindName::of(kind).map_or(Ok(()), |kind| kind.check_new_name(name));
    rule.map_err(|rule| document.place.bad(rule))
}

fn render_as<D: Domain>(domain: &D, given: &Render<'_>) -> anyhow::Result<Vec<Value>> {
    let Render { document, cluster, merges } = *given;
    let object: D::Object = serde_path_to_error::deserialize(&document.value)
        .map_err(|error| document.place.bad(format!("{}: {}", error.path(), error.inner())))?;
    let look = at_once(look(domain, cluster, &object, Timestamp::UNIX_EPOCH))
        .ok_or_else(|| anyhow!("rendering waited for a cluster"))?;
    let errors = look.health.components.iter().flat_map(|component| &component.errors);
    if let Some(error) = errors.into_iter().find(|e| e.category == Category::InvalidSpec) {
        let field = error.field.as_deref().unwrap_or("spec");
        return Err(document.place.bad(format!("{field}: {}", error.message)).into());
    }
    // Some say it in their own words only.
    let ready = look.health.manual.as_ref().and_then(|own| own.conditions.get(types::READY));
    if let Some(refusal) = ready.filter(|ready| ready.reason == reasons::INVALID_SPEC) {
        return Err(document.place.bad(&refusal.message).into());
    }
    if let Some(own) = &look.health.manual {
        let overall = Overall { state: own.state, ready: false, message: String::new() };
        let status = domain.status(&object, &look.observed, &overall);
        check_failure(&own.conditions, has_config(&status, cluster, merges), document)?;
    }
    Ok(look.plan.tiers().concat().into_iter().map(|desired| desired.body.clone()).collect())
}

/// What the spec alone makes impossible is bad input. What is missing may be in the cluster, so that is
/// only said; a gateway may be named by a runtime config there.
fn check_failure(
    conditions: &ConditionSet,
    has_config: bool,
    document: &Document,
) -> Result<(), BadInput> {
    let failure = conditions.get(aim::FAILURE).filter(|failure| failure.status == Status::True);
    let Some(failure) = failure else { return Ok(()) };
    let told = match failure.reason.as_str() {
        aim::ROUTE_FAILED => conditions.get(aim::ROUTING_READY).unwrap_or(failure),
        _ => failure,
    };
    let problem = document.place.bad(&told.message);
    match failure.reason.as_str() {
        aim::ROUTE_TEMPLATE_INVALID => Err(problem),
        aim::ROUTE_FAILED if has_config => Err(problem),
        _ => {
            eprintln!("warning: {problem}");
            Ok(())
        }
    }
}

/// Whether the runtime config that counts is among the given objects, with the one that fills it.
fn has_config(status: &Map<String, Value>, cluster: &Documents, merges: bool) -> bool {
    let Some(reference) = status.get("resolvedRuntimeConfig") else { return false };
    let has = |kind: &Value, namespace: &Value| {
        cluster.objects.iter().any(|object| {
            let metadata = &object["metadata"];
            object["kind"] == *kind
                && metadata["name"] == reference["name"]
                && metadata["namespace"] == *namespace
        })
    };
    has(&reference["kind"], &reference["namespace"])
        && (!merges || has(&"AIMClusterRuntimeConfig".into(), &Value::Null))
}

fn at_once<T>(future: impl Future<Output = T>) -> Option<T> {
    let mut future = std::pin::pin!(future);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match future.as_mut().poll(&mut context) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}
