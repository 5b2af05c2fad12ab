//! The table of the built-in kinds.

use std::{collections::HashMap, sync::OnceLock};

use super::{Id, Typed, Types};

/// All types that the built-in kinds use.
#[derive(Debug, Default)]
pub struct Builtin {
    types: Types,
    /// By `apiVersion` and `kind`.
    kinds: HashMap<(String, String), Id>,
}

/// The table, read when first asked for.
pub fn builtin() -> &'static Builtin {
    static TABLE: OnceLock<Builtin> = OnceLock::new();
    TABLE.get_or_init(Builtin::default)
}

impl Builtin {
    pub fn kind(&self, api_version: &str, kind: &str) -> Option<Typed<'_>> {
        let key = (api_version.to_owned(), kind.to_owned());
        self.kinds.get(&key).map(|id| Typed { types: &self.types, id: *id })
    }
}
