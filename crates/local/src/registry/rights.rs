//! Who may do what, as the stored roles say.

use std::sync::{Arc, PoisonError};

use serde_json::{Value, json};

use super::{Body, Registry, Target, Write, body::meta};
use crate::{
    auth::{self, Attributes, Escalation, Rbac, Reviewer, TokenRequest, Tokens, User},
    builtin,
    error::{Error, Subject},
    store::{Key, State, Transaction},
    types,
};

const GROUP: &str = "rbac.authorization.k8s.io";
const KINDS: [(&str, &str); 4] = [
    ("roles", "Role"),
    ("rolebindings", "RoleBinding"),
    ("clusterroles", "ClusterRole"),
    ("clusterrolebindings", "ClusterRoleBinding"),
];

/// The versions at which each of the four kinds last changed.
pub(super) type At = [u64; 4];

fn changed(state: &State) -> At {
    KINDS.map(|(plural, _)| state.changed(&format!("{GROUP}/{plural}")))
}

/// The request as its kind reads it: a map with maps in it.
fn read_request(body: Body) -> Result<Value, Error> {
    const VERSION: &str = "authentication.k8s.io/v1";
    let unreadable = |text: String| {
        let kind = "TokenRequest in version \"v1\" cannot be handled as a TokenRequest";
        Error::BadRequest(format!("{kind}: {text}"))
    };
    let Some(typed) = types::builtin().kind(VERSION, "TokenRequest") else {
        return Err(Error::NoSuchResource);
    };
    let decoded = builtin::decode_kind(VERSION, "TokenRequest", body.value, typed);
    let mut request = decoded.map_err(|unfit| unreadable(unfit.read))?.object;
    for field in ["metadata", "spec"] {
        if !request.get(field).is_some_and(Value::is_object) {
            request[field] = json!({});
        }
    }
    Ok(request)
}

impl Registry {
    /// Made anew when a role or a binding has changed.
    ///
    /// Must not be called while the state is held for reading.
    pub fn rights(&self) -> Arc<Rbac> {
        let mut cached = self.rights.lock().unwrap_or_else(PoisonError::into_inner);
        let at = changed(&self.store.read());
        if let Some((known, rights)) = &*cached
            && *known == at
        {
            return rights.clone();
        }
        let (at, objects) = {
            let state = self.store.read();
            let objects = KINDS.iter().flat_map(|(plural, kind)| {
                let resource = format!("{GROUP}/{plural}");
                let all = state.list(&resource, "").map(|(_, object)| object.clone());
                all.map(|object| object.to_value(&format!("{GROUP}/v1"), kind)).collect::<Vec<_>>()
            });
            (changed(&state), objects.collect::<Vec<_>>())
        };
        let rights = Arc::new(Rbac::new(&objects));
        *cached = Some((at, rights.clone()));
        rights
    }

    /// Nobody hands out rights that it does not have.
    pub(super) fn check_rights(
        &self,
        target: &Target,
        new: &Value,
        old: Option<&Value>,
        write: &Write,
    ) -> Result<(), Error> {
        let served = &target.served;
        if served.resource.group != GROUP || self.settings.allows_everything {
            return Ok(());
        }
        let checked = auth::escalation(
            &self.rights(),
            &write.user,
            &served.resource,
            &target.namespace,
            new,
            old,
        );
        checked.map_err(|refused| match refused {
            Escalation::Forbidden(text) => {
                Error::forbidden(served.subject(meta(new, "name")), text)
            }
            Escalation::NoRole { kind, name } => {
                let plural = if kind == "Role" { "roles" } else { "clusterroles" };
                Error::NotFound(Subject::new(GROUP, plural, &name))
            }
        })
    }

    /// The right to change objects does not include that to make them.
    pub(super) fn check_may_create(&self, target: &Target, write: &Write) -> Result<(), Error> {
        if self.settings.allows_everything {
            return Ok(());
        }
        let resource = &target.served.resource;
        let wish = Attributes {
            verb: "create",
            target: auth::Target::Resource {
                group: &resource.group,
                resource: &resource.plural,
                subresource: "",
                namespace: &target.namespace,
                name: &target.name,
            },
        };
        match self.rights().allows(&write.user, &wish) {
            true => Ok(()),
            false => Err(Error::forbidden(target.subject(), auth::denial(&write.user, &wish))),
        }
    }

    /// Who bears this token, and for which of the audiences.
    pub fn bearer(
        &self,
        tokens: &Tokens,
        token: &str,
        audiences: &[String],
    ) -> Option<(User, Vec<String>)> {
        if tokens.is_admin(token) {
            return Some((User::admin(), audiences.to_vec()));
        }
        let claims = tokens.check(token, audiences, self.store.now())?;
        let state = self.store.read();
        let find = |resource: &str, namespace: &str, name: &str| {
            state.get(&Key::new(&resource.into(), namespace, name)).map(|found| found.value())
        };
        let account = find("/serviceaccounts", &claims.namespace, &claims.account);
        let bound = claims.bound.as_ref().and_then(|bound| match &*bound.kind {
            "Pod" => find("/pods", &claims.namespace, &bound.name),
            "Secret" => find("/secrets", &claims.namespace, &bound.name),
            _ => find("/nodes", "", &bound.name),
        });
        let holds = claims.holds(account, bound);
        holds.then(|| (claims.user(), claims.audiences.clone()))
    }

    /// Answers a question about users and rights, with warnings.
    pub fn review(
        &self,
        target: &Target,
        body: Body,
        write: &Write,
        tokens: Option<&Tokens>,
    ) -> Result<(Value, Vec<String>), Error> {
        let served = &target.served;
        let decoded = served.decode(body)?;
        let warnings = served.judge(decoded.problems, write.validation)?;
        let authenticate =
            |token: &str, audiences: &[String]| self.bearer(tokens?, token, audiences);
        let rights = self.rights();
        let reviewer = Reviewer {
            user: &write.user,
            rbac: &rights,
            authenticate: &authenticate,
            time: &super::seconds(self.store.now()),
            namespace: &target.namespace,
        };
        let answered = auth::review(&served.resource.kind, decoded.object, &reviewer);
        let body = answered.map_err(|refused| match refused {
            auth::Refusal::BadRequest(text) => Error::BadRequest(text),
            auth::Refusal::Invalid(causes) => {
                Error::Invalid { subject: served.subject_kind(""), causes }
            }
        })?;
        Ok((body, warnings))
    }

    /// A token for an account.
    pub async fn issue(
        &self,
        target: &Target,
        body: Body,
        tokens: &Tokens,
    ) -> Result<Value, Error> {
        let account = self.get(target, None).await?;
        let mut body = read_request(body)?;
        let subject = Subject::new("authentication.k8s.io", "TokenRequest", "");
        let (audiences, seconds) =
            auth::token_request(&body).map_err(|causes| Error::Invalid { subject, causes })?;
        let request = TokenRequest {
            namespace: target.namespace.clone(),
            account: target.name.clone(),
            account_uid: account.uid().to_owned(),
            audiences: audiences.clone(),
            seconds,
            bound: self.bound(target, &body)?,
        };
        let issued = tokens.issue(&request, self.store.now()).map_err(|_| Error::Internal)?;
        body["metadata"]["name"] = target.name.as_str().into();
        body["metadata"]["namespace"] = target.namespace.as_str().into();
        body["metadata"]["creationTimestamp"] = super::seconds(self.store.now()).into();
        if body.pointer("/spec/boundObjectRef").is_none() {
            body["spec"]["boundObjectRef"] = Value::Null;
        }
        body["spec"]["audiences"] = audiences.into();
        body["spec"]["expirationSeconds"] = seconds.into();
        body["status"] = json!({
            "token": issued.token,
            "expirationTimestamp": super::seconds(issued.expires),
        });
        Ok(body)
    }

    /// The object with which a token is to end.
    fn bound(&self, target: &Target, body: &Value) -> Result<Option<auth::Bound>, Error> {
        let Some(reference) = body.pointer("/spec/boundObjectRef").filter(|it| it.is_object())
        else {
            return Ok(None);
        };
        let text = |field: &str| reference.get(field).and_then(Value::as_str).unwrap_or_default();
        let (kind, name) = (text("kind"), text("name"));
        let (plural, namespace) = match kind {
            "Pod" => ("pods", &*target.namespace),
            "Secret" => ("secrets", &*target.namespace),
            "Node" => ("nodes", ""),
            other => {
                let text = format!("cannot bind token to object of kind {other:?}");
                return Err(Error::BadRequest(text));
            }
        };
        let key = Key::new(&format!("/{plural}").into(), namespace, name);
        let found = self.store.read().get(&key).cloned();
        let found = found.ok_or_else(|| Error::NotFound(Subject::new("", plural, name)))?;
        let uid = text("uid");
        if !uid.is_empty() && uid != found.uid() {
            return Err(Error::Conflict {
                subject: Subject::new("", plural, name),
                text: format!(
                    "the UID in the bound object reference ({uid}) does not match the UID in \
                     record. The object might have been deleted and then recreated"
                ),
            });
        }
        Ok(Some(auth::Bound {
            kind: kind.to_owned(),
            name: name.to_owned(),
            uid: found.uid().to_owned(),
        }))
    }

    /// Roles and bindings that every cluster has.
    pub(super) fn furnish_rights(&self, tx: &mut Transaction<'_>) -> Result<(), Error> {
        for object in auth::bootstrap() {
            let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default();
            let known = KINDS.iter().find(|(_, known)| *known == kind);
            if let Some((plural, _)) = known {
                let namespace = meta(&object, "namespace").to_owned();
                self.add(tx, GROUP, plural, &namespace, object)?;
            }
        }
        Ok(())
    }
}
