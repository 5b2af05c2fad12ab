//! How messages become a prompt: the Jinja template of the model file, with what such templates use.

#[cfg(test)]
mod tests;

use jiff::{Timestamp, tz::TimeZone};
use minijinja::{Environment, ErrorKind, Value, context, syntax::SyntaxConfig};

use crate::{Error, Tokenizer};

const NAME: &str = "chat";

/// A template takes steps for each message; what takes more goes in circles.
const DEEPEST: usize = 64;

/// Steps that a template may take: many for each message of a long chat.
const FUEL: u64 = 2_000_000;

#[derive(Debug)]
pub struct Template {
    environment: Environment<'static>,
    /// Why it cannot be read.
    broken: Option<minijinja::Error>,
    bos: String,
    eos: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub role: String,
    pub content: String,
}

impl Template {
    /// One that cannot be read refuses all messages: the model has other uses.
    pub(crate) fn new(text: &str, tokenizer: &Tokenizer) -> Result<Self, Error> {
        Self::with_tokens(text, tokenizer.bos(), tokenizer.eos())
    }

    fn with_tokens(text: &str, bos: &str, eos: &str) -> Result<Self, Error> {
        let mut environment = Environment::new();
        // As the templates are written for.
        let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
        environment.set_syntax(syntax.map_err(|source| Error::Template { source })?);
        environment.set_recursion_limit(DEEPEST);
        environment.set_fuel(Some(FUEL));
        environment
            .set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        environment.add_function("raise_exception", raise);
        let broken = environment.add_template_owned(NAME, text.to_owned()).err();
        if let Some(error) = &broken {
            tracing::warn!(%error, "cannot read the chat template of the model");
        }
        Ok(Self { environment, broken, bos: bos.to_owned(), eos: eos.to_owned() })
    }

    /// The prompt that an answer of the assistant follows. Fails with what the template says of
    /// messages that it does not take.
    pub fn render(&self, messages: &[Message], now: Timestamp) -> Result<String, minijinja::Error> {
        if let Some(broken) = &self.broken {
            let text = format!("cannot read the chat template of the model: {broken}");
            return Err(minijinja::Error::new(ErrorKind::SyntaxError, text));
        }
        let date = move |format: &str| now.to_zoned(TimeZone::UTC).strftime(format).to_string();
        let message = |message: &Message| {
            context! { role => message.role.as_str(), content => message.content.as_str() }
        };
        let messages: Vec<Value> = messages.iter().map(message).collect();
        self.environment.get_template(NAME)?.render(context! {
            messages,
            add_generation_prompt => true,
            bos_token => self.bos.as_str(),
            eos_token => self.eos.as_str(),
            strftime_now => Value::from_function(date),
        })
    }
}

fn raise(message: String) -> Result<Value, minijinja::Error> {
    Err(minijinja::Error::new(ErrorKind::InvalidOperation, message))
}
