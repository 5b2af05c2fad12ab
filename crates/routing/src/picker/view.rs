//! What a request says, read once.

use std::borrow::Cow;

use bytes::Bytes;
use http::{HeaderMap, header::CONTENT_LENGTH};

use super::{Inner, ModelEdit, Refused, Request, admission, headers};
use crate::{
    body::Body,
    json,
    prompt::{self, Api, Input, Reading},
    random::Random,
    scan::{Member, Verdict},
};

pub(super) struct View<'a> {
    pub(super) headers: &'a HeaderMap,
    /// As the request names it.
    pub(super) incoming: String,
    /// The name that the engine will be given. Empty where the request names none.
    pub(super) model: String,
    pub(super) salt: Vec<u8>,
    pub(super) input: Input,
    pub(super) priority: i32,
    pub(super) model_edit: Option<ModelEdit>,
}

impl View<'_> {
    /// Of the body as it is sent on. If not all of it was shown, only the client can know it.
    pub(super) fn length(&self, headers: &HeaderMap, body: &Body) -> Option<usize> {
        let said = || headers::one(headers, &CONTENT_LENGTH)?.parse().ok();
        match &self.model_edit {
            None => (!body.is_cut()).then_some(body.len()),
            Some(edit) => {
                let before: usize = if body.is_cut() { said()? } else { body.len() };
                before.checked_sub(edit.range.len())?.checked_add(edit.text.len())
            }
        }
    }
}

/// `limit`: how many bytes of a prompt anybody looks at.
pub(super) fn read<'a>(
    inner: &Inner,
    request: &Request<'a>,
    body: &Body,
    limit: usize,
    random: &mut Random,
) -> Result<View<'a>, Refused> {
    let go_compat = inner.settings.go_compat;
    let api = match Api::of(path(request)) {
        Api::Other if go_compat => Api::Completions,
        api => api,
    };
    let object = match body.verdict() {
        Verdict::Object => true,
        Verdict::Unfinished => body.is_cut(),
        Verdict::Null | Verdict::Refused => false,
    };
    // Nothing is demanded of a body whose form we do not know.
    if !object && body.verdict() != Verdict::Null && api != Api::Other {
        return Err(inner.refuse_bad_request("Error unmarshaling request body".into()));
    }
    let incoming =
        text(body, Member::Model).map(|name| String::from_utf8_lossy(&name).into_owned());
    if incoming.is_none() && api != Api::Other && !body.is_cut() {
        return Err(inner.refuse_bad_request("model not found in request body".into()));
    }
    let incoming = incoming.filter(|_| object);
    // It may come later, where it cannot be replaced any more.
    if incoming.is_none() && object && body.is_cut() && wants_another(inner, request.headers) {
        return Err(inner.refuse_bad_request("model not found in request body".into()));
    }
    let target = incoming.as_ref().map(|name| target(inner, request.headers, name, random));
    let reading = Reading { dialect: inner.config.dialect, limit, strict: go_compat };
    let input = if object { prompt::read(api, body, reading) } else { Ok(Input::default()) };
    let objective = headers::last(request.headers, &headers::OBJECTIVE);
    let objectives = inner.objectives.load();
    Ok(View {
        headers: request.headers,
        input: input.map_err(|why| inner.refuse_prompt(why))?,
        salt: text(body, Member::CacheSalt).unwrap_or_default().into_owned(),
        priority: objective.and_then(|name| objectives.get(name)).copied().unwrap_or(0),
        model_edit: model_edit(body, incoming.as_deref(), target.as_deref()),
        model: target.unwrap_or_default(),
        incoming: incoming.unwrap_or_default(),
    })
}

fn path<'a>(request: &Request<'a>) -> &'a str {
    let header = |name: &str| request.headers.get(name).and_then(|value| value.to_str().ok());
    let own = Some(request.path).filter(|path| !path.is_empty());
    own.or_else(|| header("x-original-path"))
        .or_else(|| header("x-forwarded-path"))
        .unwrap_or("/v1/completions")
}

/// The value of a member that is a text.
fn text(body: &Body, member: Member) -> Option<Cow<'_, [u8]>> {
    let raw = body.member(member)?;
    match raw {
        Cow::Borrowed([b'"', quoted @ .., b'"']) => Some(json::unescaped(quoted)),
        Cow::Owned(raw) => match raw.as_slice() {
            [b'"', quoted @ .., b'"'] => Some(Cow::Owned(json::unescaped(quoted).into_owned())),
            _ => None,
        },
        Cow::Borrowed(_) => None,
    }
}

/// Whether the model may have to go by another name.
fn wants_another(inner: &Inner, headers: &HeaderMap) -> bool {
    !inner.rewrites.load().is_empty() || asked(headers).is_some()
}

fn asked(headers: &HeaderMap) -> Option<&str> {
    headers::last(headers, &headers::REWRITE).filter(|name| !name.is_empty())
}

fn target(inner: &Inner, headers: &HeaderMap, incoming: &str, random: &mut Random) -> String {
    let rewrites = inner.rewrites.load();
    if let Some((rule, target)) = admission::rewritten(&rewrites, incoming, random) {
        inner.metrics.rewritten(rule, incoming, target);
        return target.to_owned();
    }
    asked(headers).unwrap_or(incoming).to_owned()
}

fn model_edit(body: &Body, incoming: Option<&str>, target: Option<&str>) -> Option<ModelEdit> {
    let (incoming, target) = (incoming?, target?);
    if incoming == target {
        return None;
    }
    let text = Bytes::from(serde_json::to_string(target).ok()?);
    Some(ModelEdit { range: body.span(Member::Model)?, text })
}
