//! The engine inside the test's own process, and short ways to the objects it works on.

use std::{marker::PhantomData, sync::Arc, time::Duration};

use jiff::Timestamp;
use k8s_openapi::{
    api::{
        authentication::v1::TokenRequest,
        core::v1::{Event, ServiceAccount},
        rbac::v1::ClusterRoleBinding,
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, Config, Resource,
    api::{
        ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams,
        TypeMeta,
    },
    config::{AuthInfo, Kubeconfig},
    core::GroupVersionKind,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use windlass_engine::{
    apis::Apis,
    controller::{Controller, Runtime, optional_kinds},
    kind::{Kind, Scope},
    metrics::Metrics,
    queue::Delays,
};
use windlass_tests::{
    Cluster, Need, Space,
    audit::{self, Write},
    eventually, until,
};

use super::widget::{FINALIZER, Ordered, Passes, Widget, WidgetDomain, definitions};

/// A running controller of one kind, and the namespace it works in.
pub(super) struct Engine {
    pub(super) cluster: Cluster,
    pub(super) space: Space,
    pub(super) passes: Passes,
    resource: ApiResource,
    scope: Scope,
    user: String,
    stop: CancellationToken,
}

/// How to run it.
#[derive(Clone, Copy, Default)]
pub(super) struct Setup {
    pub(super) finalizer: bool,
    /// Retry soon what a person has to mend; otherwise only an event within the test's time does.
    pub(super) impatient: bool,
    /// Of the cluster.
    pub(super) needs: &'static [Need],
}

impl Engine {
    pub(super) async fn start(name: &str) -> Option<Self> {
        Self::start_with::<Widget>(name, Setup::default()).await
    }

    pub(super) async fn start_with<K: Ordered>(name: &str, setup: Setup) -> Option<Self> {
        let cluster = crate::bare(setup.needs).await?;
        let space = cluster.space(name).await;
        // Where it lives outlasts where it works, as with an operator.
        let home = cluster.space(&format!("{name}-home")).await;
        install(&cluster.client).await;
        let client = client_of_its_own(&cluster, &home).await;
        let resource = ApiResource::erase::<K>(&());
        let reads: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
        until("rights and kinds to be known", || async {
            reads.list(&ListParams::default()).await.map_err(|error| error.to_string())
        })
        .await;
        let passes = Passes::default();
        let stop = CancellationToken::new();
        let domain = WidgetDomain::<K> {
            finalizer: setup.finalizer.then_some(FINALIZER),
            passes: passes.clone(),
            kind: PhantomData,
        };
        run(domain, client, &space, setup, stop.clone()).await;
        let user = format!("system:serviceaccount:{}:engine", home.name);
        let scope = Kind::of::<K>().scope;
        Some(Self { cluster, space, passes, resource, scope, user, stop })
    }

    pub(super) fn api(&self) -> Api<DynamicObject> {
        let client = self.space.client.clone();
        match self.scope {
            Scope::Namespaced => Api::namespaced_with(client, &self.space.name, &self.resource),
            Scope::Cluster => Api::all_with(client, &self.resource),
        }
    }

    pub(super) async fn create(&self, name: &str, spec: Value) -> DynamicObject {
        self.create_with(name, json!({}), spec).await
    }

    pub(super) async fn create_with(
        &self,
        name: &str,
        mut metadata: Value,
        spec: Value,
    ) -> DynamicObject {
        metadata["name"] = name.into();
        let object = json!({ "apiVersion": "test.windlass.dev/v1", "kind": self.resource.kind,
            "metadata": metadata, "spec": spec });
        let object = serde_json::from_value(object).unwrap();
        self.api().create(&PostParams::default(), &object).await.unwrap()
    }

    /// A merge patch, as a user's edit is.
    pub(super) async fn edit(&self, name: &str, patch: Value) {
        let params = PatchParams { field_manager: Some("somebody".into()), ..Default::default() };
        self.api().patch(name, &params, &Patch::Merge(&patch)).await.unwrap();
    }

    pub(super) async fn order(&self, name: &str, spec: Value) {
        self.edit(name, json!({ "spec": spec })).await;
    }

    pub(super) async fn get(&self, name: &str) -> Option<Value> {
        let found = self.api().get_opt(name).await.unwrap();
        found.map(|object| serde_json::to_value(object).unwrap())
    }

    /// Waits for a condition that speaks of the object's current generation.
    pub(super) async fn wait(&self, name: &str, type_: &str, status: &str, reason: &str) -> Value {
        let what = format!("{type_}={status} {reason} of {name}");
        let read = || async { self.get(name).await.unwrap() };
        eventually(&what, read, |object| {
            let found = condition(object, type_);
            found["status"] == status
                && found["reason"] == reason
                && found["observedGeneration"] == object["metadata"]["generation"]
        })
        .await
    }

    pub(super) async fn wait_ready(&self, name: &str) -> Value {
        self.wait(name, "Ready", "True", "AllComponentsReady").await
    }

    pub(super) async fn wait_paused(&self, name: &str) -> Value {
        let read = || async { self.get(name).await.unwrap() };
        let paused = |object: &Value| condition(object, "ReconciliationPaused")["status"] == "True";
        eventually("the object to be paused", read, paused).await
    }

    /// Makes it look at an object again, and returns after a pass that began after this call.
    pub(super) async fn look_again(&self, name: &str) {
        // Passes over one object follow each other, so the verdict of the second ends the first.
        for _ in 0..2 {
            let before = self.passes.verdicts(name);
            let poke = json!({ "metadata": { "annotations": { "poke": before.to_string() } } });
            self.edit(name, poke).await;
            self.wait_verdicts(name, before + 1).await;
        }
    }

    pub(super) async fn wait_verdicts(&self, name: &str, count: usize) {
        let verdicts = || async { self.passes.verdicts(name) };
        eventually("another pass", verdicts, |now| *now >= count).await;
    }

    /// What it has written so far to objects of a resource, a subresource after a slash.
    pub(super) fn writes(&self, resource: &str) -> Vec<Write> {
        let mut writes = audit::writes(&self.cluster.audit_log, &self.user);
        writes.retain(|write| resource.is_empty() || write.resource == resource);
        writes
    }

    /// Reasons and counts of the Events about an object.
    pub(super) async fn events(&self, name: &str) -> Vec<(String, i32)> {
        let params = ListParams::default().fields(&format!("involvedObject.name={name}"));
        let found = self.space.api::<Event>().list(&params).await.unwrap();
        let count = |event: &Event| event.series.as_ref().and_then(|series| series.count);
        let told = |event: Event| (event.reason.clone().unwrap(), count(&event).unwrap_or(1));
        found.items.into_iter().map(told).collect()
    }

    /// Applies as another field manager, by force.
    pub(super) async fn apply_as(&self, manager: &str, object: &Value) {
        let types: TypeMeta = serde_json::from_value(object.clone()).unwrap();
        let resource = ApiResource::from_gvk(&GroupVersionKind::try_from(types).unwrap());
        let api: Api<DynamicObject> =
            Api::namespaced_with(self.space.client.clone(), &self.space.name, &resource);
        let (name, params) = (object["metadata"]["name"].as_str(), PatchParams::apply(manager));
        api.patch(name.unwrap(), &params.force(), &Patch::Apply(object)).await.unwrap();
    }

    /// Returns when it has gone.
    pub(super) async fn delete(&self, name: &str, params: DeleteParams) {
        drop(self.api().delete(name, &params).await.unwrap());
        eventually("its end", || self.get(name), Option::is_none).await;
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// The condition of an object, or null.
pub(super) fn condition<'a>(object: &'a Value, type_: &str) -> &'a Value {
    let conditions = object["status"]["conditions"].as_array();
    let found = conditions.into_iter().flatten().find(|condition| condition["type"] == type_);
    found.unwrap_or(&Value::Null)
}

pub(super) fn message(object: &Value, type_: &str) -> String {
    condition(object, type_)["message"].as_str().unwrap_or_default().to_owned()
}

async fn run<K: Ordered>(
    domain: WidgetDomain<K>,
    client: Client,
    space: &Space,
    setup: Setup,
    stop: CancellationToken,
) {
    let apis = Apis::new(optional_kinds(&domain));
    apis.probe(&client).await.unwrap();
    let millis = Duration::from_millis;
    let slow = if setup.impatient { (millis(300), millis(600)) } else { (HOUR, HOUR) };
    let runtime = Runtime {
        watching: client.clone(),
        client,
        apis,
        metrics: Metrics::default(),
        clock: Arc::new(Timestamp::now),
        instance: space.name.clone(),
        namespaces: vec![space.name.clone()],
        concurrency: 4,
        delays: Delays { slow, ..Delays::default() },
    };
    let controller = Controller::start(domain, runtime);
    tokio::spawn(async move { controller.work(stop).await });
}

const HOUR: Duration = Duration::from_secs(3600);

async fn install(client: &Client) {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    for definition in definitions() {
        let name = definition["metadata"]["name"].as_str().unwrap();
        let params = PatchParams::apply("test").force();
        api.patch(name, &params, &Patch::Apply(&definition)).await.unwrap();
    }
}

/// With all rights, but under a name of its own, so that its requests can be told from the test's.
async fn client_of_its_own(cluster: &Cluster, home: &Space) -> Client {
    let account: ServiceAccount =
        serde_json::from_value(json!({ "metadata": { "name": "engine" } })).unwrap();
    home.create(&account).await;
    let binding: ClusterRoleBinding = serde_json::from_value(json!({
        "metadata": { "name": format!("engine-{}", home.name) },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin" },
        "subjects": [{ "kind": "ServiceAccount", "name": "engine", "namespace": home.name }],
    }))
    .unwrap();
    let bindings: Api<ClusterRoleBinding> = Api::all(home.client.clone());
    bindings.create(&PostParams::default(), &binding).await.unwrap();
    let accounts: Api<ServiceAccount> = home.api();
    let request = TokenRequest::default();
    let answer = accounts.create_token_request("engine", &PostParams::default(), &request).await;
    let token = answer.unwrap().status.unwrap().token;
    let file = Kubeconfig::read_from(&cluster.kubeconfig).unwrap();
    let mut config = Config::from_custom_kubeconfig(file, &Default::default()).await.unwrap();
    config.auth_info = AuthInfo { token: Some(token.into()), ..AuthInfo::default() };
    Client::try_from(config).unwrap()
}

/// The resource of a typed child, for reading it as plain JSON.
pub(super) async fn child<K>(engine: &Engine, name: &str) -> Option<Value>
where
    K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
{
    let resource = ApiResource::erase::<K>(&());
    let api: Api<DynamicObject> =
        Api::namespaced_with(engine.space.client.clone(), &engine.space.name, &resource);
    let found = api.get_opt(name).await.unwrap();
    found.map(|object| serde_json::to_value(object).unwrap())
}

/// Waits until there is one that satisfies the check.
pub(super) async fn wait_child<K>(
    engine: &Engine,
    name: &str,
    check: impl Fn(&Value) -> bool,
) -> Value
where
    K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
{
    let what = format!("{} {name}", K::kind(&()));
    let read = || child::<K>(engine, name);
    eventually(&what, read, |found| found.as_ref().is_some_and(&check)).await.unwrap()
}
