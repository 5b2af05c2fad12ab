//! The parameters of one plugin.

use std::time::Duration;

use serde_json::{Map, Value};

use super::{Dialect, Error, raw};

/// What was asked for is taken out; what is left was not known.
pub(super) struct Params {
    plugin: String,
    values: Map<String, Value>,
}

impl Params {
    pub(super) fn new(plugin: &str, values: Map<String, Value>) -> Self {
        let values = values.into_iter().filter(|(_, value)| !value.is_null()).collect();
        Self { plugin: plugin.into(), values }
    }

    pub(super) fn bad(&self, parameter: &str, rule: &'static str) -> Error {
        Error::Parameter { plugin: self.plugin.clone(), parameter: parameter.into(), rule }
    }

    fn take<T>(
        &mut self,
        key: &str,
        rule: &'static str,
        read: impl FnOnce(Value) -> Option<T>,
    ) -> Result<Option<T>, Error> {
        let Some(value) = self.values.remove(key) else { return Ok(None) };
        read(value).map(Some).ok_or_else(|| self.bad(key, rule))
    }

    pub(super) fn int(&mut self, key: &str) -> Result<Option<i64>, Error> {
        self.take(key, "a whole number", |value| value.as_i64())
    }

    /// Zero and less mean the default.
    pub(super) fn size(&mut self, key: &str, default: usize) -> Result<usize, Error> {
        let given = self.int(key)?.and_then(|size| usize::try_from(size).ok());
        Ok(given.filter(|size| *size > 0).unwrap_or(default))
    }

    pub(super) fn port(&mut self, key: &str, default: u16) -> Result<u16, Error> {
        let read = |value: Value| value.as_i64().and_then(|port| u16::try_from(port.max(0)).ok());
        Ok(self.take(key, "a port number", read)?.unwrap_or(default))
    }

    pub(super) fn float(&mut self, key: &str) -> Result<Option<f64>, Error> {
        self.take(key, "a number", |value| value.as_f64())
    }

    pub(super) fn bool(&mut self, key: &str, default: bool) -> Result<bool, Error> {
        Ok(self.take(key, "true or false", |value| value.as_bool())?.unwrap_or(default))
    }

    /// Empty counts as not given.
    pub(super) fn text(&mut self, key: &str) -> Result<Option<String>, Error> {
        let read = |value: Value| value.as_str().map(str::to_owned);
        Ok(self.take(key, "a text", read)?.filter(|text| !text.is_empty()))
    }

    pub(super) fn texts(&mut self, key: &str) -> Result<Vec<String>, Error> {
        let read = |value: Value| -> Option<Vec<String>> {
            value.as_array()?.iter().map(|item| Some(item.as_str()?.to_owned())).collect()
        };
        Ok(self.take(key, "a list of texts", read)?.unwrap_or_default())
    }

    pub(super) fn duration(&mut self, key: &str, default: Duration) -> Result<Duration, Error> {
        let read = |value: Value| raw::duration(value.as_str()?);
        let given = self.take(key, "a duration like 2m", read)?;
        Ok(given.filter(|duration| !duration.is_zero()).unwrap_or(default))
    }

    pub(super) fn object(&mut self, key: &str) -> Result<Params, Error> {
        let read = |value: Value| match value {
            Value::Object(members) => Some(members),
            _ => None,
        };
        let members = self.take(key, "an object", read)?.unwrap_or_default();
        Ok(Params::new(&self.plugin, members))
    }

    pub(super) fn rest(&mut self) -> Value {
        Value::Object(std::mem::take(&mut self.values))
    }

    /// Names of other plugins that only steer where data comes from; here there is one source.
    pub(super) fn ignore_names(&mut self) {
        let steers = |key: &str| {
            ["ProducerName", "PluginName", "PluginType"].iter().any(|end| key.ends_with(end))
        };
        self.values.retain(|key, _| !steers(key));
    }

    /// One dialect ignores what it does not know, the other refuses it.
    pub(super) fn end(self, dialect: Dialect, warnings: &mut Vec<String>) -> Result<(), Error> {
        for parameter in self.values.into_iter().map(|(key, _)| key) {
            let unknown = Error::UnknownParameter { plugin: self.plugin.clone(), parameter };
            match dialect {
                Dialect::Gaie => warnings.push(unknown.to_string()),
                Dialect::LlmD => return Err(unknown),
            }
        }
        Ok(())
    }
}
