//! Roles, bindings, and who may hand on what. Texts are those of kube-apiserver 1.36.3.

use serde_json::{Value, json};

use super::super::*;
use crate::builtin::{Resource, resource};

const GROUP: &str = "rbac.authorization.k8s.io";

fn user(name: &str) -> User {
    let groups = vec!["dev".to_owned(), AUTHENTICATED.to_owned()];
    User { name: name.to_owned(), groups, ..User::default() }
}

fn role(name: &str, namespace: &str, rules: Value) -> Value {
    let kind = if namespace.is_empty() { "ClusterRole" } else { "Role" };
    json!({ "kind": kind, "metadata": { "name": name, "namespace": namespace }, "rules": rules })
}

fn binding(name: &str, namespace: &str, role: &str, subject: Value) -> Value {
    let kind = if namespace.is_empty() { "ClusterRoleBinding" } else { "RoleBinding" };
    let (role_kind, role) = role.split_once('/').unwrap();
    json!({
        "kind": kind, "metadata": { "name": name, "namespace": namespace },
        "roleRef": { "kind": role_kind, "name": role }, "subjects": [subject],
    })
}

fn rule(groups: &[&str], resources: &[&str], verbs: &[&str]) -> Value {
    json!({ "apiGroups": groups, "resources": resources, "verbs": verbs })
}

fn wish<'a>(verb: &'a str, resource: &'a str, namespace: &'a str, name: &'a str) -> Attributes<'a> {
    let (resource, group) = resource.split_once('.').unwrap_or((resource, ""));
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    Attributes { verb, target: Target::Resource { group, resource, subresource, namespace, name } }
}

fn path<'a>(verb: &'a str, path: &'a str) -> Attributes<'a> {
    Attributes { verb, target: Target::Path(path) }
}

#[test]
fn rules_let_users_do_what_they_say() {
    let named = json!({
        "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["s"], "verbs": ["get"],
    });
    let objects = [
        role("r", "a", json!([rule(&[""], &["pods", "pods/log"], &["get", "list"]), named])),
        role("s", "a", json!([rule(&["apps"], &["*/status"], &["*"])])),
        role(
            "c",
            "",
            json!([rule(&["*"], &["nodes"], &["get"]), {
                "nonResourceURLs": ["/metrics", "/x/*"], "verbs": ["get"],
            }]),
        ),
        binding("r", "a", "Role/r", json!({ "kind": "User", "name": "u" })),
        binding("s", "a", "Role/s", json!({ "kind": "Group", "name": "dev" })),
        binding("c", "", "ClusterRole/c", json!({ "kind": "User", "name": "u" })),
        binding("lost", "a", "Role/none", json!({ "kind": "User", "name": "u" })),
    ];
    let rbac = Rbac::new(&objects);
    for (wish, want) in [
        (wish("get", "pods", "a", "p"), true),
        (wish("list", "pods", "a", ""), true),
        (wish("get", "pods/log", "a", "p"), true),
        (wish("get", "pods/status", "a", "p"), false),
        (wish("watch", "pods", "a", ""), false),
        (wish("get", "pods", "b", "p"), false),
        (wish("list", "pods", "", ""), false),
        (wish("get", "secrets", "a", "s"), true),
        (wish("get", "secrets", "a", "t"), false),
        (wish("list", "secrets", "a", ""), false),
        (wish("patch", "deployments/status.apps", "a", "d"), true),
        (wish("patch", "deployments.apps", "a", "d"), false),
        (wish("get", "nodes", "", "n"), true),
        (wish("get", "nodes.metrics.k8s.io", "a", "n"), true),
        (path("get", "/metrics"), true),
        (path("get", "/x/y"), true),
        (path("get", "/y"), false),
        (path("post", "/metrics"), false),
    ] {
        assert_eq!(rbac.allows(&user("u"), &wish), want, "{wish:?}");
    }
    assert!(!rbac.allows(&user("v"), &wish("get", "pods", "a", "p")));
    assert!(rbac.allows(&User::admin(), &wish("get", "anything", "", "")));
}

#[test]
fn accounts_are_bound_by_their_namespace() {
    let reads = role("r", "", json!([rule(&[""], &["pods"], &["get"])]));
    let subject = json!({ "kind": "ServiceAccount", "name": "s" });
    let far = json!({ "kind": "ServiceAccount", "name": "s", "namespace": "b" });
    let objects = [
        reads,
        binding("own", "a", "ClusterRole/r", subject.clone()),
        binding("far", "a", "ClusterRole/r", far),
        binding("nowhere", "", "ClusterRole/r", subject),
    ];
    let rbac = Rbac::new(&objects);
    let get = wish("get", "pods", "a", "p");
    assert!(rbac.allows(&User::account("a", "s", ""), &get));
    assert!(rbac.allows(&User::account("b", "s", ""), &get));
    assert!(!rbac.allows(&User::account("c", "s", ""), &get));
    assert!(!rbac.allows(&User::account("a", "s", ""), &wish("get", "pods", "b", "p")));
    assert_eq!(
        rbac.reason(&User::account("a", "s", ""), &get).unwrap(),
        "RBAC: allowed by RoleBinding \"own/a\" of ClusterRole \"r\" to ServiceAccount \"s/a\""
    );
}

#[test]
fn denials_have_kubernetes_words() {
    for (wish, want) in [
        (
            wish("get", "deployments.apps", "a", "x"),
            r#"User "u" cannot get resource "deployments" in API group "apps" in the namespace "a""#,
        ),
        (
            wish("patch", "widgets/status.ex.io", "", "x"),
            r#"User "u" cannot patch resource "widgets/status" in API group "ex.io" at the cluster scope"#,
        ),
        (path("get", "/foo"), r#"User "u" cannot get path "/foo""#),
    ] {
        assert_eq!(denial(&user("u"), &wish), want);
    }
}

#[test]
fn bootstrap_roles_serve_clients() {
    let mut objects = bootstrap();
    objects.push(binding("v", "a", "ClusterRole/view", json!({ "kind": "User", "name": "v" })));
    objects.push(binding("e", "a", "ClusterRole/edit", json!({ "kind": "User", "name": "e" })));
    objects.push(binding("w", "a", "ClusterRole/admin", json!({ "kind": "User", "name": "w" })));
    let mut custom = role("widgets", "", json!([rule(&["ex.io"], &["widgets"], &["get"])]));
    custom["metadata"]["labels"] = json!({ "rbac.authorization.k8s.io/aggregate-to-view": "true" });
    objects.push(custom);
    let rbac = Rbac::new(&objects);
    for (name, wish, want) in [
        ("v", path("get", "/apis/apps/v1"), true),
        ("v", wish("create", "selfsubjectaccessreviews.authorization.k8s.io", "", ""), true),
        ("v", wish("list", "pods", "a", ""), true),
        ("v", wish("get", "secrets", "a", "s"), false),
        ("v", wish("create", "pods", "a", ""), false),
        ("v", wish("get", "widgets.ex.io", "a", "w"), true),
        ("e", wish("get", "widgets.ex.io", "a", "w"), true),
        ("w", wish("get", "widgets.ex.io", "a", "w"), true),
        ("e", wish("get", "secrets", "a", "s"), true),
        ("e", wish("create", "deployments.apps", "a", ""), true),
        ("e", wish("create", "serviceaccounts/token", "a", "s"), true),
        ("e", wish("create", "roles.rbac.authorization.k8s.io", "a", ""), false),
        ("w", wish("create", "roles.rbac.authorization.k8s.io", "a", ""), true),
        ("w", wish("create", "clusterroles.rbac.authorization.k8s.io", "", ""), false),
    ] {
        assert_eq!(rbac.allows(&user(name), &wish), want, "{name} {wish:?}");
    }
    let admin = objects.iter().find(|object| object["metadata"]["name"] == "admin").unwrap();
    assert!(admin["rules"].as_array().unwrap().len() > 10);
}

#[test]
fn roles_that_gather_each_other_come_to_an_end() {
    let gathering = |name: &str| {
        json!({
            "kind": "ClusterRole", "metadata": { "name": name, "labels": { "a": "b" } },
            "aggregationRule": { "clusterRoleSelectors": [{ "matchLabels": { "a": "b" } }] },
        })
    };
    let mut leaf = role("leaf", "", json!([rule(&[""], &["pods"], &["get"])]));
    leaf["metadata"]["labels"] = json!({ "a": "b" });
    let (one, two) = (gathering("one"), gathering("two"));
    assert_eq!(aggregated(&one, &[&one, &two, &leaf]), [rule(&[""], &["pods"], &["get"])]);
}

fn makers() -> Vec<Value> {
    let things = &["roles", "rolebindings", "clusterroles"];
    let mut objects = bootstrap();
    objects.push(role("maker", "", json!([rule(&[GROUP], things, &["create", "update"])])));
    objects.push(binding("maker", "", "ClusterRole/maker", json!({ "kind": "User", "name": "u" })));
    objects
}

fn of(plural: &str) -> &'static Resource {
    resource(GROUP, "v1", plural).unwrap()
}

fn forbidden(plural: &str, object: &Value) -> String {
    let objects = makers();
    match escalation(&Rbac::new(&objects), &user("u"), of(plural), "a", object, None) {
        Err(Escalation::Forbidden(text)) => text,
        other => panic!("{other:?}"),
    }
}

const GRANT: &str = "user \"u\" (groups=[\"dev\" \"system:authenticated\"]) is attempting to grant \
                     RBAC permissions not currently held:\n";

#[test]
fn rights_that_one_lacks_cannot_be_granted() {
    let both = rule(&[""], &["pods", "secrets"], &["get", "list"]);
    assert_eq!(
        forbidden("roles", &role("r", "a", json!([both]))),
        format!(
            "{GRANT}{{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"get\" \"list\"]}}\n\
             {{APIGroups:[\"\"], Resources:[\"secrets\"], Verbs:[\"get\" \"list\"]}}"
        )
    );
    let named = json!({
        "apiGroups": [""], "resources": ["pods"], "resourceNames": ["x"], "verbs": ["get"],
    });
    assert_eq!(
        forbidden("roles", &role("r", "a", json!([named]))),
        format!(
            "{GRANT}{{APIGroups:[\"\"], Resources:[\"pods\"], ResourceNames:[\"x\"], Verbs:[\"get\"]}}"
        )
    );
    let url = json!({ "nonResourceURLs": ["/x"], "verbs": ["get"] });
    assert_eq!(
        forbidden("clusterroles", &role("r", "", json!([url]))),
        format!("{GRANT}{{NonResourceURLs:[\"/x\"], Verbs:[\"get\"]}}")
    );
    let all =
        binding("r", "a", "ClusterRole/cluster-admin", json!({ "kind": "User", "name": "u" }));
    assert_eq!(
        forbidden("rolebindings", &all),
        format!(
            "{GRANT}{{APIGroups:[\"*\"], Resources:[\"*\"], Verbs:[\"*\"]}}\n\
             {{NonResourceURLs:[\"*\"], Verbs:[\"*\"]}}"
        )
    );
    let mut gathering = role("g", "", json!([]));
    gathering["aggregationRule"] =
        json!({ "clusterRoleSelectors": [{ "matchLabels": { "a": "b" } }] });
    assert_eq!(
        forbidden("clusterroles", &gathering),
        "must have cluster-admin privileges to use the aggregationRule"
    );
}

#[test]
fn rights_that_one_has_can_be_granted() {
    let objects = makers();
    let rbac = Rbac::new(&objects);
    let held = role("r", "a", json!([rule(&[GROUP], &["roles"], &["create"])]));
    let seen = binding("r", "a", "ClusterRole/system:discovery", json!({}));
    assert_eq!(escalation(&rbac, &user("u"), of("roles"), "a", &held, None), Ok(()));
    assert_eq!(escalation(&rbac, &user("u"), of("rolebindings"), "a", &seen, None), Ok(()));
    let all = role("r", "a", json!([rule(&["*"], &["*"], &["*"])]));
    assert_eq!(escalation(&rbac, &User::admin(), of("roles"), "a", &all, None), Ok(()));
    let mut kept = all.clone();
    kept["metadata"]["finalizers"] = json!(["a.io/b"]);
    assert_eq!(escalation(&rbac, &user("u"), of("roles"), "a", &kept, Some(&all)), Ok(()));
    let lost = binding("r", "a", "Role/nope", json!({}));
    assert_eq!(
        escalation(&rbac, &user("u"), of("rolebindings"), "a", &lost, None),
        Err(Escalation::NoRole { kind: "Role".into(), name: "nope".into() })
    );
}

#[test]
fn escalate_and_bind_are_rights_of_their_own() {
    let mut objects = makers();
    let more = [
        rule(&[GROUP], &["roles"], &["escalate"]),
        json!({
            "apiGroups": [GROUP], "resources": ["clusterroles"], "resourceNames": ["cluster-admin"],
            "verbs": ["bind"],
        }),
    ];
    objects.push(role("more", "", json!(more)));
    objects.push(binding("more", "", "ClusterRole/more", json!({ "kind": "User", "name": "u" })));
    let rbac = Rbac::new(&objects);
    let all = role("r", "a", json!([rule(&["*"], &["*"], &["*"])]));
    assert_eq!(escalation(&rbac, &user("u"), of("roles"), "a", &all, None), Ok(()));
    let bound = binding("r", "a", "ClusterRole/cluster-admin", json!({}));
    assert_eq!(escalation(&rbac, &user("u"), of("rolebindings"), "a", &bound, None), Ok(()));
    assert!(escalation(&rbac, &user("u"), of("clusterroles"), "", &all, None).is_err());
}

#[test]
fn admins_stand_for_others() {
    let rbac = Rbac::default();
    let account = [("Impersonate-User", "system:serviceaccount:ns:sa")];
    let stood = impersonation(&User::admin(), account, &rbac);
    let mut want = User::account("ns", "sa", "");
    assert_eq!(stood, Impersonation::As(want.clone()));
    let full = [
        ("impersonate-user", "x"),
        ("impersonate-group", "g"),
        ("impersonate-uid", "1"),
        ("impersonate-extra-scopes", "s"),
    ];
    want = User { name: "x".into(), uid: "1".into(), ..User::default() };
    want.groups = vec!["g".into(), AUTHENTICATED.into()];
    want.extra.insert("scopes".into(), vec!["s".into()]);
    assert_eq!(impersonation(&User::admin(), full, &rbac), Impersonation::As(want));
    assert_eq!(impersonation(&User::admin(), [("Accept", "x")], &rbac), Impersonation::None);
    let groups = [("Impersonate-Group", "g")];
    assert_eq!(impersonation(&User::admin(), groups, &rbac), Impersonation::Incomplete);
    let refused = impersonation(&user("u"), [("Impersonate-User", "x")], &rbac);
    let text =
        r#"User "u" cannot impersonate resource "users" in API group "" at the cluster scope"#;
    assert_eq!(
        refused,
        Impersonation::Forbidden { resource: "users", name: "x".into(), text: text.into() }
    );
}

fn answer(kind: &str, body: Value, by: &User) -> Result<Value, Refusal> {
    let objects = makers();
    let rbac = Rbac::new(&objects);
    let authenticate = |token: &str, _: &[String]| {
        (token == "t").then(|| (user("u"), vec![Tokens::audience().to_owned()]))
    };
    let reviewer = Reviewer {
        user: by,
        rbac: &rbac,
        authenticate: &authenticate,
        time: "2026-01-01T00:00:00Z",
        namespace: "",
    };
    review(kind, body, &reviewer)
}

#[test]
fn reviews_answer_as_a_real_server() {
    let get = |verb: &str, resource: &str, group: &str| json!({ "spec": { "resourceAttributes": { "verb": verb, "resource": resource, "group": group } } });
    for (kind, body, want) in [
        ("SelfSubjectAccessReview", get("get", "pods", ""), json!({ "allowed": false })),
        (
            "SelfSubjectAccessReview",
            get("create", "roles", GROUP),
            json!({ "allowed": true, "reason":
                "RBAC: allowed by ClusterRoleBinding \"maker\" of ClusterRole \"maker\" to User \"u\"" }),
        ),
        (
            "SelfSubjectAccessReview",
            json!({ "spec": { "nonResourceAttributes": { "verb": "get", "path": "/healthz" } } }),
            json!({ "allowed": true, "reason": "RBAC: allowed by ClusterRoleBinding \
                \"system:discovery\" of ClusterRole \"system:discovery\" to Group \"system:authenticated\"" }),
        ),
        (
            "SubjectAccessReview",
            json!({ "spec": { "groups": ["system:masters"], "resourceAttributes": { "verb": "get" } } }),
            json!({ "allowed": true }),
        ),
        (
            "TokenReview",
            json!({ "spec": { "token": "bad" } }),
            json!({ "user": {}, "error": "invalid bearer token" }),
        ),
        (
            "TokenReview",
            json!({ "spec": { "token": "t" } }),
            json!({
                "authenticated": true, "audiences": [Tokens::audience()],
                "user": { "username": "u", "groups": ["dev", "system:authenticated"] },
            }),
        ),
        (
            "SelfSubjectReview",
            json!({}),
            json!({ "userInfo": { "username": "u", "groups": ["dev", "system:authenticated"] } }),
        ),
    ] {
        let answered = answer(kind, body, &user("u")).expect(kind);
        assert_eq!(answered["status"], want, "{kind}");
    }
    let rules =
        answer("SelfSubjectRulesReview", json!({ "spec": { "namespace": "a" } }), &user("u"));
    let rules = rules.unwrap();
    assert_eq!(rules["spec"], json!({}));
    assert_eq!(rules["status"]["incomplete"], false);
    assert_eq!(rules["status"]["resourceRules"][0]["apiGroups"], json!([GROUP]));
}

#[test]
fn questions_without_sense_are_refused() {
    let causes = |kind: &str, body: Value| match answer(kind, body, &user("u")) {
        Err(Refusal::Invalid(causes)) => causes[0].to_string(),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        causes("SelfSubjectAccessReview", json!({ "spec": {} })),
        "spec.resourceAttributes: Invalid value: null: exactly one of nonResourceAttributes or \
         resourceAttributes must be specified"
    );
    assert_eq!(
        causes("SubjectAccessReview", json!({ "spec": { "resourceAttributes": {} } })),
        "spec.user: Invalid value: \"\": at least one of user or group must be specified"
    );
    let bad = |text: &str| Err(Refusal::BadRequest(text.to_owned()));
    assert_eq!(
        answer("SelfSubjectRulesReview", json!({}), &user("u")),
        bad("no namespace on request")
    );
}
