//! What is served: the built-in kinds and those of the definitions.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, OnceLock},
};

use jiff::Timestamp;
use serde_json::Value;

use super::documents::Documents;
use crate::{
    builtin::{self, Resource, Storage},
    crd,
    error::{Error, Subject},
    show::{self, Include},
    store::Object,
    types::{self, Typed},
};

pub(super) const DEFINITIONS: &str = "apiextensions.k8s.io/customresourcedefinitions";

/// One resource of one version, with all that is needed to read and write its objects.
pub struct Served {
    pub resource: Resource,
    pub source: Source,
    pub api_version: String,
    /// The resource in the store.
    pub stored_as: Arc<str>,
    /// What precedes the metadata when an object is printed.
    pub head: String,
}

pub enum Source {
    Builtin(Typed<'static>),
    Custom(Custom),
}

pub struct Custom {
    pub definition: Arc<crd::Definition>,
    at: usize,
    /// The version of the definition: objects that are older may lack its defaults.
    since: u64,
    /// Of the definition: another one of the same name defines another kind.
    pub(super) uid: String,
}

impl Custom {
    pub fn version(&self) -> &crd::Version {
        &self.definition.versions[self.at]
    }
}

impl Served {
    fn new(resource: Resource, source: Source) -> Self {
        let api_version = resource.api_version();
        let stored_as = resource.stored_as().unwrap_or((&resource.group, &resource.plural));
        let stored_as = format!("{}/{}", stored_as.0, stored_as.1).into();
        let head = format!(
            "\"kind\":{},\"apiVersion\":{},",
            Value::from(&*resource.kind),
            Value::from(&*api_version)
        );
        Self { resource, source, api_version, stored_as, head }
    }

    pub fn typed(&self) -> Typed<'_> {
        match &self.source {
            Source::Builtin(typed) => *typed,
            Source::Custom(custom) => custom.version().typed(),
        }
    }

    pub(crate) fn table(&self, objects: &[&Value], include: Include, now: Timestamp) -> Value {
        let columns = match &self.source {
            Source::Builtin(_) => None,
            Source::Custom(custom) => Some(&*custom.version().columns),
        };
        show::table(&self.resource, columns, objects, include, now)
    }

    pub(super) fn is(&self, group: &str, plural: &str) -> bool {
        self.resource.group == group && self.resource.plural == plural
    }

    /// Whether its objects are definitions.
    pub(super) fn defines(&self) -> bool {
        self.is("apiextensions.k8s.io", "customresourcedefinitions")
    }

    /// As errors about an object name it, by its plural.
    pub(crate) fn subject(&self, name: &str) -> Subject {
        Subject::new(&self.resource.group, &self.resource.plural, name)
    }

    /// As errors of validation name it, by its kind. A second view is judged as what is stored.
    pub(super) fn subject_kind(&self, name: &str) -> Subject {
        let group = match self.resource.storage {
            Storage::Shared { group, .. } => group,
            _ => &*self.resource.group,
        };
        Subject::new(group, &self.resource.kind, name)
    }

    /// Whether the stored form is what readers of this version get.
    pub(crate) fn shows_as_stored(&self, object: &Object) -> bool {
        match &self.source {
            Source::Builtin(_) => !matches!(self.resource.storage, Storage::Shared { .. }),
            Source::Custom(custom) => {
                object.version() > custom.since && custom.definition.versions.len() == 1
            }
        }
    }

    /// Whole, as a reader of this version knows it.
    pub fn show(&self, object: &Object) -> Value {
        let mut value = object.to_value(&self.api_version, &self.resource.kind);
        if self.shows_as_stored(object) {
            return value;
        }
        match &self.source {
            Source::Builtin(_) => super::events::to_new(&mut value),
            Source::Custom(custom) => {
                custom.version().drop_nulls(&mut value);
                custom.version().default(&mut value);
            }
        }
        value
    }

    /// As it is stored.
    pub(super) fn to_stored(&self, mut value: Value) -> Value {
        if matches!(self.resource.storage, Storage::Shared { .. }) {
            super::events::to_core(&mut value);
        }
        value
    }

    pub(super) fn default(&self, object: &mut Value) {
        match &self.source {
            Source::Builtin(_) if self.defines() => {
                builtin::default(&self.resource, object);
                crd::default_definition(object);
            }
            Source::Builtin(_) => builtin::default(&self.resource, object),
            Source::Custom(custom) => custom.version().default(object),
        }
    }
}

pub struct Catalog {
    at: u64,
    served: Vec<Arc<Served>>,
    by_path: HashMap<(String, String, String), Arc<Served>>,
    builtin_versions: BTreeSet<(String, String)>,
    custom_versions: BTreeSet<(String, String)>,
    definitions: HashMap<String, (u64, Arc<crd::Definition>)>,
    pub(super) documents: OnceLock<Documents>,
}

impl Catalog {
    /// Definitions that have not changed are taken from the `old` one: what is compiled stays so.
    pub(super) fn new(at: u64, definitions: &[Arc<Object>], old: Option<&Self>) -> Self {
        let mut catalog = Self {
            at,
            served: Vec::new(),
            by_path: HashMap::new(),
            builtin_versions: BTreeSet::new(),
            custom_versions: BTreeSet::new(),
            definitions: HashMap::new(),
            documents: OnceLock::new(),
        };
        let table = types::builtin();
        for resource in builtin::RESOURCES.iter() {
            let Some(typed) = table.kind(&resource.api_version(), &resource.kind) else {
                tracing::error!(kind = &*resource.kind, "a built-in kind has no type");
                continue;
            };
            catalog.add(Served::new(resource.clone(), Source::Builtin(typed)));
        }
        // They have no objects, so any type is theirs.
        if let Some(any) = table.kind("v1", "Namespace") {
            for resource in builtin::UNMADE.iter() {
                catalog.add(Served::new(resource.clone(), Source::Builtin(any)));
            }
        }
        for object in definitions {
            catalog.define(object, old);
        }
        catalog
    }

    fn define(&mut self, object: &Arc<Object>, old: Option<&Self>) {
        let (name, version) = (object.meta("name"), object.version());
        let known = old.and_then(|old| old.definitions.get(name));
        let definition = match known.filter(|(at, _)| *at == version) {
            Some((_, definition)) => definition.clone(),
            None => match crd::Definition::read(object) {
                Ok(definition) => Arc::new(definition),
                Err(causes) => {
                    return tracing::error!(name, ?causes, "a stored definition cannot be served");
                }
            },
        };
        self.definitions.insert(name.to_owned(), (version, definition.clone()));
        if !definition.established {
            return;
        }
        for resource in definition.resources() {
            let at = definition.versions.iter().position(|each| each.name == resource.version);
            if let Some(at) = at {
                let custom = Custom {
                    definition: definition.clone(),
                    at,
                    since: version,
                    uid: object.uid().to_owned(),
                };
                self.add(Served::new(resource, Source::Custom(custom)));
            }
        }
    }

    fn add(&mut self, served: Served) {
        let resource = &served.resource;
        let [group, version] = [&resource.group, &resource.version].map(|text| text.to_string());
        let versions = match served.source {
            Source::Builtin(_) => &mut self.builtin_versions,
            Source::Custom(_) => &mut self.custom_versions,
        };
        versions.insert((group.clone(), version.clone()));
        let path = (group, version, resource.plural.to_string());
        let served = Arc::new(served);
        self.by_path.insert(path, served.clone());
        self.served.push(served);
    }

    pub(super) fn at(&self) -> u64 {
        self.at
    }

    /// In the order of the built-in table, then by definition.
    pub fn served(&self) -> &[Arc<Served>] {
        &self.served
    }

    pub fn resources(&self) -> Vec<&Resource> {
        self.served.iter().map(|served| &served.resource).collect()
    }

    pub fn definitions(&self) -> impl Iterator<Item = &Arc<crd::Definition>> {
        self.definitions.values().map(|(_, definition)| definition)
    }

    pub fn find(&self, group: &str, version: &str, plural: &str) -> Result<Arc<Served>, Error> {
        let path = (group.to_owned(), version.to_owned(), plural.to_owned());
        if let Some(served) = self.by_path.get(&path) {
            return Ok(served.clone());
        }
        let (group, version, _) = path;
        let builtin = self.builtin_versions.contains(&(group, version));
        Err(if builtin { Error::NoSuchResource } else { Error::NoSuchPath })
    }

    /// The resource in whose objects an owner of this kind would be found.
    pub(super) fn stored_kind(&self, api_version: &str, kind: &str) -> Option<&Arc<Served>> {
        let same = |served: &&Arc<Served>| {
            served.api_version == api_version && served.resource.kind == kind
        };
        self.served.iter().find(same)
    }

    /// One view of the objects that are stored as this.
    pub(super) fn stored(&self, stored_as: &str) -> Option<&Arc<Served>> {
        self.served.iter().find(|served| &*served.stored_as == stored_as)
    }

    /// One view of every resource that has objects.
    pub(super) fn each_stored(&self) -> impl Iterator<Item = &Arc<Served>> {
        let mut seen = BTreeSet::new();
        self.served.iter().filter(move |served| {
            served.resource.storage != Storage::Nothing && seen.insert(served.stored_as.clone())
        })
    }
}
