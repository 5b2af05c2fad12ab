use std::io;

use kube::core::Status;
use kube::core::response::{StatusCause, StatusDetails};

use super::*;

fn api(code: u16, reason: &str) -> kube::Error {
    kube::Error::Api(Status::failure("server says no", reason).with_code(code).boxed())
}

fn api_with_cause(code: u16, reason: &str, cause: &str) -> kube::Error {
    let cause = StatusCause { reason: cause.into(), message: String::new(), field: ".spec".into() };
    let details = StatusDetails {
        name: String::new(),
        group: String::new(),
        kind: String::new(),
        uid: String::new(),
        causes: vec![cause],
        retry_after_seconds: 0,
    };
    let status = Status::failure("server says no", reason).with_code(code).with_details(details);
    kube::Error::Api(status.boxed())
}

#[derive(Debug, thiserror::Error)]
#[error("cannot read the thing")]
struct Wrapped(#[source] kube::Error);

#[test]
fn g19_api_answers_have_their_category_and_reason() {
    use Category::*;
    for (code, reason, category, want) in [
        (404, "NotFound", MissingDownstream, "NotFound"),
        (404, "", MissingDownstream, "NotFound"),
        (401, "Unauthorized", Auth, "Unauthorized"),
        (403, "Forbidden", Auth, "Forbidden"),
        (422, "Invalid", InvalidSpec, "InvalidSpec"),
        (422, "SomethingNew", InvalidSpec, "InvalidSpec"),
        (409, "Conflict", Infrastructure, "Conflict"),
        (409, "AlreadyExists", InvalidSpec, "AlreadyExists"),
        (500, "InternalError", Infrastructure, "ServiceUnavailable"),
        (503, "", Infrastructure, "ServiceUnavailable"),
        (500, "ServerTimeout", Infrastructure, "Timeout"),
        (504, "", Infrastructure, "Timeout"),
        (502, "", Infrastructure, "ServerError"),
        (400, "BadRequest", InvalidSpec, "ClientError"),
        (410, "Gone", InvalidSpec, "ClientError"),
        (429, "TooManyRequests", Infrastructure, "RateLimited"),
        (429, "", Infrastructure, "RateLimited"),
        // A known reason is more exact than the code it came with.
        (404, "Forbidden", Auth, "Forbidden"),
        (0, "", Unknown, "UnknownError"),
    ] {
        let got = categorise(&api(code, reason));
        assert_eq!((got.category, got.reason.as_str()), (category, want), "{code} {reason}");
    }
}

#[test]
fn g19_a_wrapped_answer_is_found_through_its_wrapping() {
    let got = categorise_any(&Wrapped(api(404, "NotFound")));
    assert_eq!(got.category, Category::MissingDownstream);
    assert!(is_not_found(&got));
}

#[test]
fn an_already_categorised_error_is_kept_however_deep_it_sits() {
    #[derive(Debug, thiserror::Error)]
    #[error("outer")]
    struct Outer(#[source] Error);
    let got = categorise_any(&Outer(Error::auth("TokenExpired", "log in again")));
    assert_eq!((got.category, got.reason.as_str()), (Category::Auth, "TokenExpired"));
}

#[test]
fn network_failures_are_infrastructure_with_their_own_reason() {
    for (kind, want) in [
        (io::ErrorKind::ConnectionRefused, "ConnectionRefused"),
        (io::ErrorKind::TimedOut, "NetworkTimeout"),
        (io::ErrorKind::ConnectionReset, "ConnectionReset"),
        (io::ErrorKind::BrokenPipe, "NetworkError"),
        (io::ErrorKind::NetworkUnreachable, "NetworkError"),
    ] {
        let got = categorise(&kube::Error::Service(Box::new(io::Error::from(kind))));
        assert_eq!(got.reason, want, "{kind}");
        assert_eq!(got.category, Category::Infrastructure, "{kind}");
    }
}

#[test]
fn a_failed_name_lookup_is_recognised_by_the_connectors_text() {
    #[derive(Debug, thiserror::Error)]
    #[error("dns error: no such host")]
    struct Connect;
    assert_eq!(categorise(&kube::Error::Service(Box::new(Connect))).reason, "DNSFailure");
}

#[test]
fn w18_an_unrecognised_error_counts_as_infrastructure() {
    let got = categorise_any(&io::Error::other("odd"));
    assert_eq!((got.category, got.reason.as_str()), (Category::Unknown, "UnknownError"));
    assert_eq!(got.message, "odd");
    assert!(got.category.is_infrastructure());
    assert_eq!(got.category.to_string(), "Unknown");
}

#[test]
fn not_found_is_seen_through_a_change_of_category() {
    let renamed = Error::missing_upstream("ConfigNotFound", "config x not found")
        .with_cause(Error::from(api(404, "NotFound")));
    assert!(is_not_found(&renamed));
    assert!(!is_not_found(&Error::missing_upstream("ConfigNotFound", "")));
    assert!(!is_not_found(&Error::from(api(403, "Forbidden"))));
}

#[test]
fn a_field_owned_by_another_manager_is_told_from_a_plain_conflict() {
    let conflict = api_with_cause(409, "Conflict", "FieldManagerConflict");
    assert!(is_field_conflict(&conflict));
    assert!(!is_field_conflict(&api(409, "Conflict")));
    assert_eq!(categorise(&conflict).reason, "Conflict");
}

#[test]
fn w01_a_failed_write_is_categorised_by_what_it_means_for_writing() {
    use Category::*;
    for (error, category, reason) in [
        (api(422, "Invalid"), InvalidSpec, "InvalidSpec"),
        (api(403, "Forbidden"), Auth, "Forbidden"),
        (
            api_with_cause(403, "Forbidden", "NamespaceTerminating"),
            MissingUpstream,
            "NamespaceTerminating",
        ),
        (api(404, "NotFound"), MissingUpstream, "ReferenceNotFound"),
        (api(409, "Conflict"), Infrastructure, "Conflict"),
        (api(503, "ServiceUnavailable"), Infrastructure, "ServiceUnavailable"),
    ] {
        let got = categorise_write(&error);
        assert_eq!((got.category, got.reason.as_str()), (category, reason), "{error}");
        assert_eq!(got.message, "server says no");
    }
}

#[test]
fn the_text_is_reason_and_message_or_whichever_exists() {
    for (reason, message, want) in
        [("A", "b", "A: b"), ("A", "", "A"), ("", "b", "b"), ("", "", "unknown error")]
    {
        assert_eq!(Error::auth(reason, message).to_string(), want);
    }
    assert_eq!(Error::auth("", "").with_cause(io::Error::other("why")).to_string(), "why");
}

#[test]
fn the_text_of_retriable_failures_is_stable() {
    let one = Error::infrastructure("A", "b");
    for (causes, want) in [
        (vec![one.clone()], "infrastructure error (1 failure)"),
        (vec![one.clone(), one], "infrastructure errors (2 failures)"),
    ] {
        assert_eq!(InfrastructureError { causes }.to_string(), want);
    }
}

#[test]
fn the_chain_names_each_cause_once() {
    let error = Error::auth("A", "b").with_cause(Wrapped(api(403, "Forbidden")));
    let line = chain(&error);
    assert!(line.starts_with("A: b: cannot read the thing: ApiError: "), "{line}");
    assert_eq!(line.matches("cannot read the thing").count(), 1);
    assert_eq!(chain(&Error::auth("", "").with_cause(io::Error::other("why"))), "why");
}
