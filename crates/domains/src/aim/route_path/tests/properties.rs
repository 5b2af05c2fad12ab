use proptest::prelude::*;

use super::super::evaluate::{Work, single};
use super::*;

/// Pieces that come close to a template, so that more than errors is tried.
fn template() -> impl Strategy<Value = String> {
    let expression = r#"(\.|\.\.|\[|\]|\*|'|"|@|\$|\?\(|\)|==|<|,|:|-|[0-9]|metadata|name|spec|env|labels|annotations|route|value| ){0,12}"#;
    let piece = prop_oneof![
        expression.prop_map(|inside| format!("{{{inside}}}")),
        Just("{.metadata.annotations['route']}".to_owned()),
        Just("{.spec.env[-1].value}".to_owned()),
        any::<String>(),
        "[a-zA-Z0-9./ -]{0,80}",
    ];
    prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

fn is_well_formed(path: &str) -> bool {
    let allowed = |b: u8| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'-' | b'/');
    path.starts_with('/')
        && path.len() <= MAX_PATH
        && path.bytes().all(allowed)
        && !path.contains("//")
        && (path == "/" || !path.ends_with('/'))
}

proptest! {
    #[test]
    fn any_template_gives_a_path_or_an_error(template in template()) {
        let service = chat_bot();
        let rendered = render(&template, &service);
        prop_assert_eq!(&rendered, &render(&template, &service));
        if let Ok(path) = rendered {
            prop_assert!(is_well_formed(path.as_str()), "{path}");
            // A segment that was cut right after a dot would lose it.
            if !path.as_str().split('/').any(|s| s.len() == MAX_SEGMENT && s.ends_with('.')) {
                prop_assert_eq!(normalise(path.as_str()), Ok(path.clone()));
                prop_assert_eq!(render(path.as_str(), &service), Ok(path));
            }
        }
    }

    #[test]
    fn any_value_of_a_service_gives_a_path_or_an_error(name in any::<String>(), note in any::<String>()) {
        let service = json!({"metadata": {"name": name, "annotations": {"a": note}}});
        for template in ["/x/{.metadata.name}", "{.metadata.annotations['a']}", "{..a}"] {
            if let Ok(path) = render(template, &service) {
                prop_assert!(is_well_formed(path.as_str()), "{path}");
            }
        }
        prop_assert!(is_well_formed(default_path(&name, &note).as_str()));
    }

    #[test]
    fn any_expression_ends_within_the_limit(expression in any::<String>()) {
        let mut work = Work::default();
        let _ = single(&expression, &chat_bot(), &mut work);
        prop_assert!(work.done() <= Work::LIMIT);
    }
}
