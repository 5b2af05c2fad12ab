//! The table of the built-in kinds, as `cargo xtask types` made it from a real API server.

use std::{borrow::Cow, collections::HashMap, sync::OnceLock};

use serde_json::Value;

use super::{Id, Typed, Types, read};

static TYPES: &str = include_str!("../../data/types.txt");
static DOCS: &[u8] = include_bytes!("../../data/docs.lz4");

/// All types that the built-in kinds use.
#[derive(Debug, Default)]
pub struct Builtin {
    types: Types,
    /// By `apiVersion` and `kind`.
    kinds: HashMap<(Cow<'static, str>, Cow<'static, str>), Id>,
    named: HashMap<&'static str, Id>,
    names: HashMap<Id, &'static str>,
    docs: OnceLock<Value>,
}

/// The table, read when first asked for.
pub fn builtin() -> &'static Builtin {
    static TABLE: OnceLock<Builtin> = OnceLock::new();
    TABLE.get_or_init(|| {
        let read = read::read(TYPES);
        let kinds = read.kinds.iter().filter_map(|(version, kind, name)| {
            Some(((Cow::from(*version), Cow::from(*kind)), *read.named.get(name)?))
        });
        Builtin {
            kinds: kinds.collect(),
            names: read.named.iter().map(|(name, id)| (*id, *name)).collect(),
            named: read.named,
            types: read.types,
            docs: OnceLock::new(),
        }
    })
}

impl Builtin {
    pub fn kind(&self, api_version: &str, kind: &str) -> Option<Typed<'_>> {
        let id = self.kinds.get(&(Cow::from(api_version), Cow::from(kind)))?;
        Some(Typed { types: &self.types, id: *id })
    }

    /// A type by its name in OpenAPI, as in `io.k8s.api.core.v1.PodSpec`.
    pub fn named(&self, name: &str) -> Option<Typed<'_>> {
        self.named.get(name).map(|id| Typed { types: &self.types, id: *id })
    }

    /// The metadata of every object.
    pub fn object_meta(&self) -> Option<Typed<'_>> {
        self.named("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")
    }

    /// The name of a type in OpenAPI. Scalars, lists and maps have none.
    pub fn name(&self, id: Id) -> Option<&'static str> {
        self.names.get(&id).copied()
    }

    /// The same for a type of any table, of which other tables have none.
    pub fn name_of(&self, typed: Typed<'_>) -> Option<&'static str> {
        if std::ptr::eq(typed.types, &self.types) { self.name(typed.id) } else { None }
    }

    /// What a type, or a field of it, is for. Named by its name in OpenAPI.
    pub fn description(&self, name: &str, field: Option<&str>) -> Option<&str> {
        let docs = self.docs().get(name)?;
        match field {
            Some(field) => docs.get(1)?.get(field)?.get(0)?.as_str(),
            None => docs.get(0)?.as_str(),
        }
    }

    /// The values that the documentation gives for a field.
    pub fn allowed(&self, name: &str, field: &str) -> Vec<&str> {
        let docs = self.docs().get(name).and_then(|docs| docs.get(1)?.get(field)?.as_array());
        docs.into_iter().flatten().skip(1).filter_map(Value::as_str).collect()
    }

    /// Unpacked when a person asks for the first time.
    fn docs(&self) -> &Value {
        self.docs.get_or_init(|| {
            let text = lz4_flex::block::decompress_size_prepended(DOCS).unwrap_or_default();
            serde_json::from_slice(&text).unwrap_or_default()
        })
    }
}
