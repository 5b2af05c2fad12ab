//! Who answers for a Service, in slices of endpoints and, for older readers, as one Endpoints.

mod mirror;
mod mirrored;
mod mirroring;
mod slices;
#[cfg(test)]
mod tests;
mod wanted;

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use k8s_openapi::api::{
    core::v1::{Endpoints, Pod, Service},
    discovery::v1::EndpointSlice,
};
use kube::{
    Api, Resource, ResourceExt,
    api::{DeleteParams, ListParams, Preconditions},
    core::Request,
};
use tokio::sync::OnceCell;

use super::{
    Caches, Context, Controller, Error, Key, Queue, pods::is_for_ended_namespace, posting,
};
use slices::{Change, SERVICE_NAME, changes};

pub(super) use mirroring::Mirroring;

pub(super) struct EndpointSlices {
    context: Context,
    /// Done once the Endpoints are gone whose Services went while nobody looked.
    swept: OnceCell<()>,
}

impl Controller for EndpointSlices {
    const NAME: &'static str = "endpointslice";

    fn new(context: Context, queue: &Arc<Queue>) -> Self {
        let caches = &context.caches;
        caches.services.feed(queue, |service: &Service| [Key::of(service)]);
        let known = Arc::downgrade(caches);
        caches.pods.feed(queue, move |pod: &Pod| services_of(&known, pod));
        caches.endpoint_slices.feed(queue, service_of);
        Self { context, swept: OnceCell::new() }
    }

    async fn reconcile(&self, key: &Key) -> Result<Option<Duration>, Error> {
        self.swept.get_or_try_init(|| self.sweep()).await?;
        // The slices of a Service that is gone go by their owner reference; Endpoints have none.
        let Some(service) = self.context.caches.services.get(key) else {
            return self.remove_mirror(key).await.map(|()| None);
        };
        let Some(selector) = wanted::selector(&service) else { return Ok(None) };
        if service.metadata.deletion_timestamp.is_some() {
            return Ok(None);
        }
        let mut pods = self.context.caches.pods.within(&key.namespace);
        pods.retain(|pod| wanted::selects(selector, pod));
        let written = async {
            self.write_slices(key, &service, &pods).await?;
            self.write_mirror(key, &service, &pods).await
        };
        match written.await {
            // What is missing there would go with the rest anyway.
            Err(error) if is_for_ended_namespace(error.cause()) => Ok(None),
            written => written.map(|()| None),
        }
    }
}

impl EndpointSlices {
    async fn write_slices(
        &self,
        key: &Key,
        service: &Service,
        pods: &[Arc<Pod>],
    ) -> Result<(), Error> {
        let mine = slices_of(&self.context.caches, key);
        write(&self.context, key, changes(service, pods, &mine), &mine).await
    }

    async fn remove_mirror(&self, key: &Key) -> Result<(), Error> {
        let api: Api<Endpoints> = self.context.api(&key.namespace);
        let old = api.get_opt(&key.name).await.map_err(Error::on("read endpoints", &key.name))?;
        match old {
            Some(old) if mirror::is_ours(&old) => self.delete_mirror(&old).await,
            _ => Ok(()),
        }
    }

    async fn delete_mirror(&self, old: &Endpoints) -> Result<(), Error> {
        let (namespace, name) = (old.namespace().unwrap_or_default(), old.name_any());
        let only = Preconditions { uid: old.metadata.uid.clone(), resource_version: None };
        let params = DeleteParams::default().preconditions(only);
        match self.context.api::<Endpoints>(&namespace).delete(&name, &params).await {
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(()),
            deleted => deleted.map(drop).map_err(Error::on("delete endpoints", &name)),
        }
    }

    /// A Service may have gone while nobody was here to see it.
    async fn sweep(&self) -> Result<(), Error> {
        let all: Api<Endpoints> = Api::all(self.context.client.clone());
        let all = all.list(&ListParams::default()).await;
        for old in all.map_err(Error::on("list", "endpoints"))?.items {
            if mirror::is_ours(&old) && self.context.caches.services.get(&Key::of(&old)).is_none() {
                self.delete_mirror(&old).await?;
            }
        }
        Ok(())
    }

    /// Read anew each time: what is overwritten has to be what is there now.
    async fn write_mirror(
        &self,
        key: &Key,
        service: &Service,
        pods: &[Arc<Pod>],
    ) -> Result<(), Error> {
        let api: Api<Endpoints> = self.context.api(&key.namespace);
        let old = api.get_opt(&key.name).await.map_err(Error::on("read endpoints", &key.name))?;
        let Some(endpoints) = mirror::endpoints(service, pods, old.as_ref()) else {
            return Ok(());
        };
        let written = match old {
            Some(_) => api.replace(&key.name, &posting(), &endpoints).await,
            None => api.create(&posting(), &endpoints).await,
        };
        written.map(drop).map_err(Error::on("write endpoints", &key.name))
    }
}

/// Makes the changes to the slices of a Service.
async fn write(
    context: &Context,
    key: &Key,
    changes: Vec<Change>,
    known: &[EndpointSlice],
) -> Result<(), Error> {
    let cache = &context.caches.endpoint_slices;
    let api: Api<EndpointSlice> = context.api(&key.namespace);
    for change in changes {
        match change {
            Change::Create(slice) => {
                let made = send(context, key, &slice).await;
                cache.note(made.map_err(Error::on("create a slice of", &key.name))?);
            }
            Change::Update(slice) => {
                let name = slice.metadata.name.clone().unwrap_or_default();
                let made = send(context, key, &slice).await;
                cache.note(made.map_err(Error::on("update the slice", &name))?);
            }
            Change::Delete(name) => {
                let gone = api.delete(&name, &DeleteParams::default()).await;
                let gone = gone.map_err(Error::on("delete the slice", &name))?;
                if let Some(slice) = known.iter().find(|s| s.metadata.name.as_ref() == Some(&name))
                {
                    cache.note_deletion(slice, gone);
                }
            }
        }
    }
    Ok(())
}

/// Creates it, or replaces the one of its name.
async fn send(context: &Context, key: &Key, slice: &EndpointSlice) -> kube::Result<EndpointSlice> {
    let body = slices::body(slice).to_string().into_bytes();
    let request = Request::new(EndpointSlice::url_path(&(), Some(&key.namespace)));
    let request = match &slice.metadata.name {
        Some(name) => request.replace(name, &posting(), body),
        None => request.create(&posting(), body),
    };
    let request = request.map_err(kube::Error::BuildRequest)?;
    context.client.request(request).await
}

/// All that say they are this Service's, whoever has made them.
fn slices_of(caches: &Caches, key: &Key) -> Vec<EndpointSlice> {
    let all = caches.endpoint_slices.within(&key.namespace);
    let mine = all.iter().filter(|slice| service_of(slice).as_ref() == Some(key));
    mine.map(|slice| (**slice).clone()).collect()
}

/// Those that select this pod.
fn services_of(caches: &Weak<Caches>, pod: &Pod) -> Vec<Key> {
    let Some(caches) = caches.upgrade() else { return Vec::new() };
    let all = caches.services.within(pod.metadata.namespace.as_deref().unwrap_or_default());
    let selecting = all.iter().filter(|service| {
        wanted::selector(service).is_some_and(|selector| wanted::selects(selector, pod))
    });
    selecting.map(|service| Key::of(&**service)).collect()
}

fn service_of(slice: &EndpointSlice) -> Option<Key> {
    let name = slice.metadata.labels.as_ref()?.get(SERVICE_NAME)?;
    Some(Key::new(slice.metadata.namespace.as_deref().unwrap_or_default(), name))
}
