//! The tokens of what was asked.

use jiff::Timestamp;
use serde_json::Value;
use windlass_inference::{Model, template::Message};

use super::super::refused::Refused;

const ROLES: [&str; 5] = ["system", "developer", "user", "assistant", "tool"];

pub(super) fn of_messages(
    messages: Option<&[Value]>,
    model: &Model,
    now: Timestamp,
) -> Result<Vec<u32>, Refused> {
    let Some(messages) = messages.filter(|messages| !messages.is_empty()) else {
        return Err(Refused::bad("messages", "messages must be a list with at least one message"));
    };
    let messages = messages.iter().enumerate().map(message).collect::<Result<Vec<_>, _>>()?;
    let Some(template) = &model.template else {
        let text = "the model has no chat template; ask for a completion instead";
        return Err(Refused::bad("messages", text));
    };
    let prompt = template.render(&messages, now).map_err(|error| {
        let why = error.detail().map_or_else(|| error.to_string(), str::to_owned);
        Refused::bad("messages", format!("the model does not take these messages: {why}"))
    })?;
    encode(model, &prompt, "messages")
}

pub(super) fn of_completion(prompt: Option<&Value>, model: &Model) -> Result<Vec<u32>, Refused> {
    let wrong = || Refused::bad("prompt", "prompt must be a text or a list of tokens");
    match prompt {
        None | Some(Value::Null) => Err(Refused::bad("prompt", "there is no prompt")),
        Some(Value::String(text)) => encode(model, text, "prompt"),
        Some(Value::Array(list)) => match &list[..] {
            [Value::String(text)] => encode(model, text, "prompt"),
            [Value::Array(tokens)] => of_tokens(tokens, model),
            [Value::Number(_), ..] => of_tokens(list, model),
            [Value::String(_) | Value::Array(_), ..] => {
                Err(Refused::bad("prompt", "there may be only one prompt in a request"))
            }
            _ => Err(wrong()),
        },
        Some(_) => Err(wrong()),
    }
}

fn message((index, value): (usize, &Value)) -> Result<Message, Refused> {
    let param = |member: &str| format!("messages[{index}]{member}");
    let Some(members) = value.as_object() else {
        return Err(Refused::bad(&param(""), "a message must be an object"));
    };
    let role = members.get("role").and_then(Value::as_str);
    let Some(role) = role.filter(|role| ROLES.contains(role)) else {
        let text = format!("role must be one of {}", ROLES.join(", "));
        return Err(Refused::bad(&param(".role"), text));
    };
    // Templates know the older name.
    let role = if role == "developer" { "system" } else { role }.to_owned();
    let wrong =
        || Refused::bad(&param(".content"), "content must be a text or a list of text parts");
    let content = match members.get("content") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => {
            let text = |part: &Value| {
                let is_text = part.get("type").is_none_or(|kind| kind == "text");
                part.get("text").and_then(Value::as_str).filter(|_| is_text).map(str::to_owned)
            };
            parts.iter().map(text).collect::<Option<Vec<_>>>().ok_or_else(wrong)?.join("\n")
        }
        // An answer may have been a call of a tool only.
        None | Some(Value::Null) if role == "assistant" => String::new(),
        _ => return Err(wrong()),
    };
    Ok(Message { role, content })
}

fn of_tokens(tokens: &[Value], model: &Model) -> Result<Vec<u32>, Refused> {
    let size = model.tokenizer.size();
    let token = |value: &Value| {
        let token = value.as_u64().and_then(|token| u32::try_from(token).ok());
        token.filter(|token| (*token as usize) < size)
    };
    let tokens: Option<Vec<u32>> = tokens.iter().map(token).collect();
    match tokens {
        Some(tokens) if !tokens.is_empty() => Ok(tokens),
        Some(_) => Err(Refused::bad("prompt", "the prompt is empty")),
        None => Err(Refused::bad("prompt", format!("tokens must be numbers below {size}"))),
    }
}

fn encode(model: &Model, text: &str, param: &str) -> Result<Vec<u32>, Refused> {
    let tokens =
        model.tokenizer.encode(text).map_err(|error| Refused::failed(error.to_string()))?;
    if tokens.is_empty() {
        return Err(Refused::bad(param, "the prompt is empty"));
    }
    Ok(tokens)
}
