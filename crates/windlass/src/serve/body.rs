//! What a request asks for. Whatever cannot be meant is refused by the name of its member.

mod prompt;
mod sampling;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value};
use windlass_inference::{
    Model,
    engine::{Limits, Request},
};

use super::refused::Refused;

/// The answer of OpenAI's API where a completion has no limit of its own.
const COMPLETION_TOKENS: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Chat,
    Completion,
}

/// Both kinds of bodies: most members are of both. Members that are not here are ignored, as vLLM
/// does.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Body {
    pub(super) model: Option<String>,
    messages: Option<Vec<Value>>,
    prompt: Option<Value>,
    max_tokens: Option<u64>,
    max_completion_tokens: Option<u64>,
    temperature: Option<f32>,
    top_p: Option<f32>,
    top_k: Option<i64>,
    min_p: Option<f32>,
    seed: Option<i64>,
    frequency_penalty: Option<f32>,
    presence_penalty: Option<f32>,
    repetition_penalty: Option<f32>,
    logit_bias: Option<BTreeMap<String, f32>>,
    stop: Option<Value>,
    ignore_eos: Option<bool>,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    n: Option<u64>,
    best_of: Option<u64>,
    echo: Option<bool>,
    suffix: Option<String>,
    logprobs: Option<Value>,
    tools: Option<Vec<Value>>,
    tool_choice: Option<Value>,
    response_format: Option<Value>,
    #[serde(flatten)]
    others: Map<String, Value>,
}

/// Members of vLLM's API that would change the answer.
const CHANGING: [&str; 22] = [
    "add_generation_prompt",
    "allowed_token_ids",
    "audio",
    "bad_words",
    "chat_template",
    "chat_template_kwargs",
    "continue_final_message",
    "documents",
    "functions",
    "include_stop_str_in_output",
    "logits_processors",
    "min_tokens",
    "prediction",
    "prompt_embeds",
    "prompt_logprobs",
    "return_token_ids",
    "skip_special_tokens",
    "stop_token_ids",
    "structured_outputs",
    "top_logprobs",
    "truncate_prompt_tokens",
    "use_beam_search",
];
/// These are on unless they are turned off.
const USUALLY_ON: [&str; 2] = ["add_generation_prompt", "skip_special_tokens"];

/// More of them, or longer ones, would take longer than the tokens they are looked for in.
const MOST_STOPS: usize = 16;
const LONGEST_STOP: usize = 1024;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct StreamOptions {
    include_usage: Option<bool>,
}

#[derive(Debug)]
pub(super) struct Asked {
    pub(super) request: Request,
    pub(super) streams: bool,
    pub(super) tells_usage: bool,
}

impl Body {
    pub(super) fn read(bytes: &[u8]) -> Result<Self, Refused> {
        // A list would be read as the members in their order.
        if bytes.trim_ascii_start().first() == Some(&b'[') {
            return Err(Refused::bad("", "cannot read the body: it must be an object"));
        }
        let mut reader = serde_json::Deserializer::from_slice(bytes);
        let body = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
            let at = error.path().to_string();
            let param = if at == "." || error.inner().is_syntax() || error.inner().is_eof() {
                ""
            } else {
                &at
            };
            Refused::bad(param, format!("cannot read the body: {}", error.inner()))
        })?;
        reader.end().map_err(|error| Refused::bad("", format!("cannot read the body: {error}")))?;
        Ok(body)
    }

    /// Takes as long as the prompt is, up to a second.
    pub(super) fn understand(
        &self,
        kind: Kind,
        model: &Model,
        limits: Limits,
        now: Timestamp,
    ) -> Result<Asked, Refused> {
        self.refuse_what_there_is_not()?;
        let prompt = match kind {
            Kind::Chat => prompt::of_messages(self.messages.as_deref(), model, now)?,
            Kind::Completion => prompt::of_completion(self.prompt.as_ref(), model)?,
        };
        let max_tokens = self.max_tokens(kind, prompt.len(), limits)?;
        Ok(Asked {
            request: Request {
                prompt,
                max_tokens,
                sampling: self.sampling(model)?,
                stops: self.stops()?,
                ignore_end: self.ignore_eos.unwrap_or(false),
            },
            streams: self.stream.unwrap_or(false),
            tells_usage: self
                .stream_options
                .as_ref()
                .and_then(|options| options.include_usage)
                .unwrap_or(false),
        })
    }

    fn max_tokens(&self, kind: Kind, prompt: usize, limits: Limits) -> Result<usize, Refused> {
        let most = limits.tokens;
        let too_long = |text: String| Refused {
            code: Some("context_length_exceeded"),
            ..Refused::bad(if kind == Kind::Chat { "messages" } else { "prompt" }, text)
        };
        if prompt >= most {
            let text = "tokens, and with its answer it may have";
            return Err(too_long(format!("the prompt has {prompt} {text} {most}")));
        }
        let wanted = match self.max_completion_tokens.or(self.max_tokens) {
            Some(0) => return Err(Refused::bad("max_tokens", "max_tokens must be at least 1")),
            Some(wanted) => usize::try_from(wanted).unwrap_or(usize::MAX),
            None if kind == Kind::Chat => most - prompt,
            None => COMPLETION_TOKENS.min(most - prompt),
        };
        if wanted > most - prompt {
            let text = format!(
                "the prompt has {prompt} tokens and the answer may have {wanted}, \
                 but both together at most {most}"
            );
            return Err(too_long(text));
        }
        Ok(wanted)
    }

    fn stops(&self) -> Result<Vec<String>, Refused> {
        let wrong = || Refused::bad("stop", "stop must be a text or a list of texts");
        let text = |value: &Value| value.as_str().map(str::to_owned).ok_or_else(wrong);
        let stops = match &self.stop {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(stops)) => stops.iter().map(text).collect::<Result<_, _>>()?,
            Some(stop) => vec![text(stop)?],
        };
        if stops.len() > MOST_STOPS || stops.iter().any(|stop| stop.len() > LONGEST_STOP) {
            let text =
                format!("stop may have at most {MOST_STOPS} texts of at most {LONGEST_STOP} bytes");
            return Err(Refused::bad("stop", text));
        }
        Ok(stops)
    }

    /// The name of a member that is not understood, but asks for another answer.
    fn changing(&self) -> Option<&str> {
        let asks = |(name, value): &(&String, &Value)| {
            let name = name.as_str();
            if USUALLY_ON.contains(&name) {
                return **value == Value::Bool(false);
            }
            let is_set = match value {
                Value::Null | Value::Bool(false) => false,
                Value::Array(list) => !list.is_empty(),
                Value::Object(members) => !members.is_empty(),
                Value::String(text) => !text.is_empty(),
                Value::Number(number) => number.as_f64() != Some(0.0),
                Value::Bool(true) => true,
            };
            is_set && (CHANGING.contains(&name) || name.starts_with("guided_"))
        };
        self.others.iter().find(asks).map(|(name, _)| name.as_str())
    }

    /// What would change the answer must not be ignored.
    fn refuse_what_there_is_not(&self) -> Result<(), Refused> {
        let several = |count: Option<u64>| count.is_some_and(|count| count != 1);
        let is_set =
            |value: &Option<Value>| !matches!(value, None | Some(Value::Null | Value::Bool(false)));
        let form = self.response_format.as_ref().and_then(|form| form.get("type"));
        let no_tools = self.tool_choice.as_ref().is_some_and(|choice| choice == "none");
        let has_tools = self.tools.as_ref().is_some_and(|tools| !tools.is_empty());
        for (param, given, message) in [
            ("n", several(self.n), "n must be 1: there is one answer to each request"),
            ("best_of", several(self.best_of), "best_of must be 1"),
            ("echo", self.echo == Some(true), "echo is not supported"),
            (
                "suffix",
                self.suffix.as_ref().is_some_and(|text| !text.is_empty()),
                "suffix is not supported",
            ),
            ("logprobs", is_set(&self.logprobs), "logprobs are not supported"),
            ("tools", has_tools && !no_tools, "tools are not supported"),
            (
                "response_format",
                form.is_some_and(|form| form != "text"),
                "response_format must be text",
            ),
        ] {
            if given {
                return Err(unsupported(param, message.to_owned()));
            }
        }
        match self.changing() {
            Some(name) => Err(unsupported(name, format!("{name} is not supported"))),
            None => Ok(()),
        }
    }
}

fn unsupported(param: &str, message: String) -> Refused {
    Refused { code: Some("unsupported_value"), ..Refused::bad(param, message) }
}
