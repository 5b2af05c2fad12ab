//! What answers look like.

use serde_json::{Value, json};
use windlass_inference::engine::Reason;

use crate::serve::body::Kind;

/// What all parts of an answer begin with.
#[derive(Clone, Debug)]
pub(crate) struct Head {
    pub(crate) kind: Kind,
    pub(crate) id: String,
    /// Seconds since 1970.
    pub(crate) created: i64,
    pub(crate) model: String,
    pub(crate) prompt_tokens: usize,
}

impl Head {
    pub(super) fn whole(&self, text: &str, reason: Reason, tokens: usize) -> Value {
        let (object, choice) = match self.kind {
            Kind::Chat => {
                ("chat.completion", json!({"message": {"role": "assistant", "content": text}}))
            }
            Kind::Completion => ("text_completion", json!({"text": text})),
        };
        let choices = json!([choice_of(choice, Some(reason))]);
        self.around(object, choices, json!({"usage": self.usage(tokens)}))
    }

    /// Chats begin with who speaks.
    pub(super) fn first(&self) -> Option<Value> {
        let delta = json!({"delta": {"role": "assistant", "content": ""}});
        (self.kind == Kind::Chat).then(|| self.part(delta, None))
    }

    pub(super) fn text(&self, text: &str) -> Value {
        let choice = match self.kind {
            Kind::Chat => json!({"delta": {"content": text}}),
            Kind::Completion => json!({"text": text}),
        };
        self.part(choice, None)
    }

    pub(super) fn end(&self, reason: Reason) -> Value {
        let choice = match self.kind {
            Kind::Chat => json!({"delta": {}}),
            Kind::Completion => json!({"text": ""}),
        };
        self.part(choice, Some(reason))
    }

    pub(super) fn usage_part(&self, tokens: usize) -> Value {
        self.around(self.part_object(), json!([]), json!({"usage": self.usage(tokens)}))
    }

    fn part(&self, choice: Value, reason: Option<Reason>) -> Value {
        self.around(self.part_object(), json!([choice_of(choice, reason)]), json!({}))
    }

    fn part_object(&self) -> &'static str {
        match self.kind {
            Kind::Chat => "chat.completion.chunk",
            Kind::Completion => "text_completion",
        }
    }

    fn around(&self, object: &str, choices: Value, more: Value) -> Value {
        let mut body = json!({
            "id": self.id,
            "object": object,
            "created": self.created,
            "model": self.model,
            "choices": choices,
        });
        merge(&mut body, more);
        body
    }

    fn usage(&self, tokens: usize) -> Value {
        json!({
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": tokens,
            "total_tokens": self.prompt_tokens + tokens,
        })
    }
}

pub(crate) fn name(reason: Reason) -> &'static str {
    match reason {
        Reason::Stop => "stop",
        Reason::Length => "length",
    }
}

fn choice_of(choice: Value, reason: Option<Reason>) -> Value {
    let mut whole = json!({"index": 0, "logprobs": null, "finish_reason": reason.map(name)});
    merge(&mut whole, choice);
    whole
}

fn merge(body: &mut Value, more: Value) {
    if let (Some(body), Value::Object(more)) = (body.as_object_mut(), more) {
        body.extend(more);
    }
}
