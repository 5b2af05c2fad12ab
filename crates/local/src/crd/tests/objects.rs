//! What happens to objects.

use serde_json::{Value, json};

use super::{compile, lines, object, only, read, validate_definition, widget, with_spec};

/// Prunes, defaults and validates as for a new object.
fn create(spec: Value) -> Result<Value, Vec<String>> {
    let definition = compile(&widget());
    let version = only(&definition);
    let mut object = object(spec);
    version.prune(&mut object);
    version.drop_nulls(&mut object);
    version.default(&mut object);
    let causes = version.validate(&object, None);
    if causes.is_empty() { Ok(object["spec"].take()) } else { Err(lines(&causes)) }
}

const SKIPPED: &str = "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";

/// Chains and nests of every kind that the grammar has, each with that many links.
fn chains(links: usize) -> Vec<String> {
    let around = |open: &str, inner: &str, close: &str| {
        format!("{}{inner}{}", open.repeat(links), close.repeat(links))
    };
    vec![
        format!("self{} == 1", ".a".repeat(links)),
        format!("self{} == 1", "[0]".repeat(links)),
        format!("self{} == 1", ".?a".repeat(links)),
        format!("1{} > 1", "+1".repeat(links)),
        format!("1{} > 1", "*1".repeat(links)),
        format!("true{}", " == true".repeat(links)),
        format!("1{}", " in [1]".repeat(links)),
        format!("true{}", " && true".repeat(links)),
        format!("true{}", " || true && false".repeat(links)),
        format!("{}true", "!".repeat(links)),
        format!("{}1 < 2", "-".repeat(links)),
        format!("{}true", "true ? true : ".repeat(links)),
        format!("'a'{} == 'a'", ".lowerAscii()".repeat(links)),
        format!("[1]{} == [1]", ".map(x, x)".repeat(links)),
        around("(", "true", ")"),
        around("[", "1", "]"),
        around("{1: ", "1", "}"),
        around("size(", "'a'", ")"),
        around("[1].all(x, ", "true", ")"),
    ]
}

#[test]
fn rules_that_cannot_be_read_let_nothing_through() {
    let crd = with_spec(json!({
        "type": "object", "x-kubernetes-preserve-unknown-fields": true,
        "x-kubernetes-validations": [{"rule": "self.("}],
    }));
    let definition = read(&crd);
    let found = only(&definition).validate(&object(json!({})), None);
    assert_eq!(
        lines(&found),
        ["<nil>: Invalid value: null: some validation rules of the definition cannot be read; \
          correct them first"]
    );
}

#[test]
fn rules_that_nest_without_end_end_nothing() {
    // As little stack as any thread has that runs them.
    let thread = std::thread::Builder::new().stack_size(2 << 20);
    let work = || {
        for rule in chains(90).into_iter().chain(chains(900)).chain(chains(50_000)) {
            let crd = with_spec(json!({
                "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                "x-kubernetes-validations": [{"rule": rule}],
            }));
            // Refused or not: whoever is asked goes on.
            if validate_definition(&crd, None).is_empty() {
                let definition = compile(&crd);
                only(&definition).validate(&object(json!({"a": [1]})), None);
            }
        }
    };
    thread.spawn(work).unwrap().join().unwrap();
}

#[test]
fn defaults_fill_what_is_absent_or_null_where_none_may_stand() {
    let filled =
        json!({"color": "blue", "defnn": "y", "lim": {"cpu": "1"}, "nul": "x", "replicas": 1});
    assert_eq!(create(json!({"color": "blue"})), Ok(filled));
    let nulls = json!({"color": "blue", "nul": null, "nuln": null, "defnn": null, "nodef": null, "lim": null});
    let kept = json!({"color": "blue", "defnn": "y", "lim": {"cpu": "1"}, "nul": null, "nuln": null, "replicas": 1});
    assert_eq!(create(nulls), Ok(kept));
}

#[test]
fn defaults_reach_into_lists_but_create_no_parents() {
    let made = create(json!({"color": "blue", "items": [{"name": "a"}], "plain": [{}, {"a": 1}]}))
        .unwrap();
    assert_eq!(made["items"], json!([{"name": "a", "proto": "TCP"}]));
    assert_eq!(made["plain"], json!([{"a": 7}, {"a": 1}]));
    assert_eq!(made.get("one"), None);
}

#[test]
fn several_kinds_of_errors_are_told_at_once() {
    let errors = create(json!({
        "color": "pink", "replicas": 11, "max": "x", "flag": "no", "when": "never", "name": "ABCDEF", "num": 0.5,
    }));
    let want = [
        "spec.color: Unsupported value: \"pink\": supported values: \"blue\", \"red\", \"green\"",
        "spec.flag: Invalid value: \"string\": spec.flag in body must be of type boolean: \"string\"",
        "spec.max: Invalid value: \"string\": spec.max in body must be of type integer: \"string\"",
        "spec.name: Too long: may not be more than 5 bytes",
        "spec.num: Invalid value: 0.5: spec.num in body should be greater than 0.5",
        "spec.replicas: Invalid value: 11: spec.replicas in body should be less than or equal to 10",
        "spec.when: Invalid value: \"never\": spec.when in body must be of type date-time: \"never\"",
        SKIPPED,
    ];
    assert_eq!(errors.unwrap_err(), want);
}

#[test]
fn each_limit_has_its_text() {
    for (spec, want) in [
        (
            json!({"name": "A", "num": 0.7, "replicas": 1.5, "dur": "abc"}),
            &[
                "spec.dur: Invalid value: \"abc\": spec.dur in body must be of type duration: \"abc\"",
                "spec.name: Invalid value: \"A\": spec.name in body should be at least 2 chars long",
                "spec.num: Invalid value: 0.7: spec.num in body should be a multiple of 0.5",
                "spec.replicas: Invalid value: \"float64\": spec.replicas in body must be of type int32: \"float64\"",
                "<nil>: Invalid value: \"\": Checked value must be of type integer with format int32 in spec.replicas",
                ".spec.replicas: Invalid value: 0: .spec.replicas accessor error: 1.5 is of the type float64, expected int64",
                SKIPPED,
            ][..],
        ),
        (
            json!({"size": "x", "free": []}),
            &[
                "spec.free: Invalid value: \"array\": spec.free in body must be of type object: \"array\"",
                "spec.size: Invalid value: \"x\": spec.size in body should match '^[0-9]+(Gi)?$'",
                SKIPPED,
            ],
        ),
        (
            json!({"items": [{"name": "a"}, {"name": "a"}, {"proto": "UDP"}, {"name": "b"}], "tags": ["a", "b", "a", "abcde"]}),
            &[
                "spec.items[2].name: Required value",
                "spec.items: Too many: 4: must have at most 3 items",
                "spec.tags[3]: Too long: may not be more than 4 bytes",
                "spec.items[1]: Duplicate value: {\"name\":\"a\"}",
                "spec.tags[2]: Duplicate value: \"a\"",
                SKIPPED,
            ],
        ),
        (
            json!({"items": ["x", {"name": "a"}], "b64": ""}),
            &[
                "spec.b64: Invalid value: \"\": spec.b64 in body must be of type byte: \"\"",
                "spec.items[0]: Invalid value: \"string\": spec.items[0] in body must be of type object: \"string\"",
                "spec.items[0]: Invalid value: \"x\": must be an object for an array of list-type map",
                SKIPPED,
            ],
        ),
        (
            json!({"items": [], "labels": {}, "plain": [{}, {"a": 10}]}),
            &[
                "spec.items: Invalid value: 0: spec.items in body should have at least 1 items",
                "spec.labels: Invalid value: 0: spec.labels in body should have at least 1 properties",
                "spec.plain[1].a: Invalid value: 10: spec.plain[1].a in body should be less than or equal to 9",
            ],
        ),
        (
            json!({"labels": {"a": "abcd", "b": 5, "c": ""}, "one": {}, "notx": "x", "allo": 7}),
            &[
                "spec.allo: Invalid value: 7: spec.allo in body should be less than or equal to 5",
                "<nil>: Invalid value: \"\": \"spec.allo\" must validate all the schemas (allOf)",
                "spec.labels: Too many: 3: must have at most 2 items",
                "spec.labels.a: Too long: may not be more than 3 bytes",
                "spec.labels.b: Invalid value: \"integer\": spec.labels.b in body must be of type string: \"integer\"",
                "<nil>: Invalid value: \"\": \"spec.notx\" must not validate the schema (not)",
                "<nil>: Invalid value: \"\": \"spec.one\" must validate one and only one schema (oneOf). Found none valid",
                "spec.one.a: Required value",
                SKIPPED,
            ],
        ),
        (
            json!({"one": {"a": "", "b": ""}, "emb": {}, "b64": "!!", "ip4": "1.2.3"}),
            &[
                "spec.b64: Invalid value: \"!!\": spec.b64 in body must be of type byte: \"!!\"",
                "spec.ip4: Invalid value: \"1.2.3\": spec.ip4 in body must be of type ipv4: \"1.2.3\"",
                "<nil>: Invalid value: \"\": \"spec.one\" must validate one and only one schema (oneOf). Found 2 valid alternatives",
                "spec.emb.apiVersion: Required value",
                "spec.emb.kind: Required value",
                SKIPPED,
            ],
        ),
        (
            json!({"replicas": 3_000_000_000_i64, "max": 1e20}),
            &[
                "spec.max: Invalid value: \"number\": spec.max in body must be of type integer: \"number\"",
                "<nil>: Invalid value: \"\": Checked value must be of type integer (default format) in spec.max",
                "<nil>: Invalid value: \"\": Checked value must be of type integer with format int32 in spec.replicas",
                "spec.replicas: Invalid value: 3000000000: spec.replicas in body should be less than or equal to 10",
                ".spec.replicas: Invalid value: 3000000000: should be less than or equal to 2147483647",
                SKIPPED,
            ],
        ),
    ] {
        let mut spec = spec;
        spec["color"] = json!("blue");
        assert_eq!(create(spec.clone()).unwrap_err(), want, "{spec}");
    }
}

#[test]
fn an_embedded_object_has_a_kind_and_metadata() {
    let embedded = |emb: Value| create(json!({"color": "blue", "emb": emb}));
    let whole = json!({"apiVersion": "v1", "kind": "X", "metadata": {"labels": {"a": "b"}}, "spec": {"free": 1}});
    assert_eq!(embedded(whole.clone()).unwrap()["emb"], whole);
    let said = embedded(json!({"apiVersion": "a/b/c", "kind": ""})).unwrap_err();
    assert_eq!(
        said,
        [
            "spec.emb.apiVersion: Invalid value: \"a/b/c\": unexpected GroupVersion string: a/b/c",
            "spec.emb.kind: Invalid value: \"\": must not be empty",
        ]
    );
    let said = embedded(json!({"apiVersion": "v1", "kind": "X", "metadata": {"labels": {"a": 5}}}));
    assert!(
        said.unwrap_err()[0]
            .starts_with("spec.emb.metadata: Invalid value: {\"labels\":{\"a\":5}}: ")
    );
}

#[test]
fn wrong_types_are_named_as_go_names_them() {
    let errors = create(json!({
        "color": 5, "when": 5, "flag": 1, "b64": true, "size": 1.5, "num": "x", "plain": {}, "items": {}, "labels": [], "dur": [],
    }));
    let want = [
        "spec.b64: Invalid value: \"\": spec.b64 in body must be of type byte: \"\"",
        "spec.color: Invalid value: \"integer\": spec.color in body must be of type string: \"integer\"",
        "spec.color: Unsupported value: 5: supported values: \"blue\", \"red\", \"green\"",
        "spec.flag: Invalid value: \"integer\": spec.flag in body must be of type boolean: \"integer\"",
        "spec.items: Invalid value: \"object\": spec.items in body must be of type array: \"object\"",
        "spec.labels: Invalid value: \"array\": spec.labels in body must be of type object: \"array\"",
        "spec.num: Invalid value: \"string\": spec.num in body must be of type number: \"string\"",
        "spec.plain: Invalid value: \"object\": spec.plain in body must be of type array: \"object\"",
        "spec.size: Invalid value: \"number\": spec.size in body must be of type integer,string: \"number\"",
        "<nil>: Invalid value: \"\": \"spec.size\" must validate at least one schema (anyOf)",
        "spec.size: Invalid value: \"number\": spec.size in body must be of type integer: \"number\"",
        "<nil>: Invalid value: \"\": Checked value must be of type integer (default format) in spec.size",
        "spec.when: Invalid value: \"int64\": spec.when in body must be of type date-time: \"int64\"",
        SKIPPED,
    ];
    assert_eq!(errors.unwrap_err(), want);
}

#[test]
fn a_spec_that_is_missing_or_no_object_is_told() {
    assert_eq!(create(Value::Null).unwrap_err(), ["spec: Required value", SKIPPED]);
    assert_eq!(
        create(json!(5)).unwrap_err(),
        [
            "spec: Invalid value: \"integer\": spec in body must be of type object: \"integer\"",
            ".spec.replicas: Invalid value: 0: .spec.replicas accessor error: 5 is of the type int64, expected map[string]interface{}",
            SKIPPED,
        ]
    );
}

#[test]
fn unknown_fields_go_and_are_named() {
    let definition = compile(&widget());
    let mut object = json!({
        "apiVersion": "ex.io/v1", "kind": "Widget", "foo": {}, "metadata": {"name": "w"},
        "spec": {
            "q": {"b": 1}, "items": [{"name": "x", "u": 1}], "labels": {"a": {"b": 1}},
            "free": {"z": {"y": 1}}, "any": [{"b": null}], "color": {"x": 1},
            "emb": {"metadata": {"name": "m"}, "zz": 1},
        },
    });
    let unknown = only(&definition).prune(&mut object);
    assert_eq!(unknown, ["foo", "spec.color.x", "spec.items[0].u", "spec.labels.a.b", "spec.q"]);
    assert_eq!(
        object["spec"],
        json!({
            "items": [{"name": "x"}], "labels": {"a": {}}, "free": {"z": {"y": 1}}, "any": [{"b": null}],
            "color": {}, "emb": {"metadata": {"name": "m"}, "zz": 1},
        })
    );
}

/// What an update from one spec to another is told.
fn update(old: Value, new: Value) -> Vec<String> {
    let definition = compile(&widget());
    let version = only(&definition);
    let (mut old, mut new) = (object(old), object(new));
    version.default(&mut old);
    version.default(&mut new);
    lines(&version.validate(&new, Some(&old)))
}

#[test]
fn rules_speak_in_their_own_words() {
    let blue = |mut spec: Value| {
        spec["color"] = json!("blue");
        create(spec).unwrap_err()
    };
    assert_eq!(blue(json!({"max": 2000})), ["spec: Invalid value: color blue max"]);
    assert_eq!(
        blue(json!({"replicas": 3, "max": 2, "num": 200.0})),
        [
            "spec.replicas: Forbidden: replicas over max",
            "spec: Invalid value: failed rule: !has(self.num) || self.num < 100.0",
        ]
    );
    let definition = compile(&widget());
    let mut bad = object(json!({"color": "blue"}));
    bad["metadata"]["name"] = json!("bad");
    assert_eq!(lines(&only(&definition).validate(&bad, None)), ["<nil>: Invalid value: bad name"]);
}

#[test]
fn transition_rules_compare_with_the_item_of_the_same_key() {
    assert_eq!(
        update(json!({"color": "blue"}), json!({"color": "red"})),
        ["spec.color: Invalid value: \"red\": color is immutable"]
    );
    let items = |items: Value| json!({"color": "blue", "items": items});
    let old = items(json!([{"name": "a", "v": 5}, {"name": "b", "v": 1}]));
    assert_eq!(
        update(old.clone(), items(json!([{"name": "b", "v": 0}, {"name": "a", "v": 6}]))),
        ["spec.items[0].v: Invalid value: 0: only up"]
    );
    let swapped =
        items(json!([{"name": "b", "v": 1}, {"name": "a", "v": 6}, {"name": "c", "v": 0}]));
    assert_eq!(update(old, swapped), Vec::<String>::new());
}

#[test]
fn what_was_wrong_before_may_stay_but_not_change() {
    let old = json!({"color": "blue", "name": "ABCDEF", "max": 2000, "labels": {"a": "abcd"}});
    let mut new = old.clone();
    new["flag"] = json!(true);
    // `spec` has changed, so its own rule speaks; what lies beneath has not.
    assert_eq!(update(old.clone(), new), ["spec: Invalid value: color blue max"]);
    assert_eq!(update(old.clone(), old.clone()), Vec::<String>::new());
    let mut worse = old.clone();
    worse["max"] = json!(1);
    worse["name"] = json!("ABCDEFG");
    assert_eq!(update(old, worse)[0], "spec.name: Too long: may not be more than 5 bytes");
}

/// The causes of one rule on `spec`, for a new object or an update.
fn rule(schema: Value, rule: Value, new: Value, old: Option<Value>) -> Vec<String> {
    let mut schema = schema;
    schema["x-kubernetes-validations"] = json!([rule]);
    let definition = compile(&with_spec(schema));
    lines(&only(&definition).validate(&object(new), old.map(object).as_ref()))
}

#[test]
fn rules_match_more_patterns_than_are_remembered() {
    let schema = json!({"type": "object", "properties": {
        "text": {"type": "string"}, "pattern": {"type": "string"}}});
    let matches = json!({"rule": "self.text.matches(self.pattern)"});
    for number in (0..200).chain(0..200) {
        for (text, passes) in [(format!("a{number}"), true), ("b".to_owned(), false)] {
            let spec = json!({"text": text, "pattern": format!("^a{number}$")});
            let causes = rule(schema.clone(), matches.clone(), spec, None);
            assert_eq!(causes.is_empty(), passes, "{number}: {causes:?}");
        }
    }
    let said = rule(schema, matches, json!({"text": "a", "pattern": "("}), None);
    assert!(said[0].contains("'(' not a valid regex"), "{said:?}");
}

#[test]
fn rules_see_values_through_the_schema() {
    let schema = json!({"type": "object", "properties": {
        "n": {"type": "number"}, "i": {"type": "integer"}, "t": {"type": "string", "format": "date-time"},
        "d": {"type": "string", "format": "duration"}, "b": {"type": "string", "format": "byte"},
        "e": {"x-kubernetes-int-or-string": true}, "namespace": {"type": "string"}, "a-b": {"type": "string"},
        "m": {"type": "object", "additionalProperties": {"type": "integer"}},
        "s": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
    }});
    let value = json!({
        "n": 5, "i": 5, "t": "2020-01-02T03:04:05Z", "d": "90s", "b": "aGk=", "e": "5", "namespace": "x",
        "a-b": "y", "m": {"in": 1, "a.b": 2}, "s": ["a", "b"],
    });
    for text in [
        "self.n < 5.5",
        "self.i == 5",
        "self.t.getFullYear() == 2020",
        "self.d > duration('1m')",
        "size(self.b) == 2",
        "type(self.e) == string ? self.e == '5' : false",
        "self.__namespace__ == 'x' && self.a__dash__b == 'y'",
        "self.m['in'] == 1 && self.m['a.b'] == 2",
        "self.m.all(k, self.m[k] > 0)",
        "self.s.exists_one(x, x == 'a') && self.s.indexOf('b') == 1",
        "!has(self.zz)",
    ] {
        assert_eq!(
            rule(schema.clone(), json!({"rule": text}), value.clone(), None),
            Vec::<String>::new(),
            "{text}"
        );
    }
}

#[test]
fn an_error_while_a_rule_runs_is_told_with_the_rule() {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let text = json!({"rule": "self.n > 0"});
    assert_eq!(
        rule(schema.clone(), text, json!({}), None),
        ["spec: Invalid value: \"object\": no such key: n evaluating rule: self.n > 0"]
    );
    for (text, want) in [
        ("size(self.l) > 0", "no such key: l"),
        (
            "duration('x') > duration('1s')",
            "type conversion error from 'string' to 'google.protobuf.Duration'",
        ),
    ] {
        assert_eq!(
            rule(schema.clone(), json!({"rule": text}), json!({}), None),
            [format!("spec: Invalid value: \"object\": {want} evaluating rule: {text}")]
        );
    }
    let text = json!({"rule": "1 / self.n > 0", "message": "n must divide"});
    assert_eq!(
        rule(schema, text, json!({"n": 0}), None),
        ["spec: Invalid value: \"object\": division by zero evaluating rule: n must divide"]
    );
}

#[test]
fn reasons_and_field_paths_shape_the_cause() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    for (extra, want) in [
        (json!({"reason": "FieldValueRequired"}), "spec: Required value: no"),
        (json!({"reason": "FieldValueForbidden"}), "spec: Forbidden: no"),
        (json!({"reason": "FieldValueDuplicate"}), "spec: Duplicate value"),
        (json!({"reason": "FieldValueInvalid"}), "spec: Invalid value: no"),
        (json!({"fieldPath": ".a"}), "spec.a: Invalid value: no"),
        (json!({"messageExpression": "'not ' + self.a"}), "spec: Invalid value: not x"),
        (json!({"messageExpression": "self.b"}), "spec: Invalid value: no"),
    ] {
        let mut text = json!({"rule": "false", "message": "no"});
        text.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        assert_eq!(rule(schema.clone(), text, json!({"a": "x"}), None), [want]);
    }
}

#[test]
fn an_optional_old_self_lets_rules_judge_new_objects() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let text = json!({
        "rule": "oldSelf.hasValue() ? self.a == oldSelf.value().a : self.a == 'first'",
        "optionalOldSelf": true, "message": "no",
    });
    let run = |new: &str, old: Option<&str>| {
        rule(schema.clone(), text.clone(), json!({"a": new}), old.map(|old| json!({"a": old})))
    };
    assert_eq!(run("first", None), Vec::<String>::new());
    assert_eq!(run("other", None), ["spec: Invalid value: no"]);
    assert_eq!(run("x", Some("x")), Vec::<String>::new());
    assert_eq!(run("y", Some("x")), ["spec: Invalid value: no"]);
}

#[test]
fn sets_and_list_maps_are_equal_in_any_order() {
    let schema = json!({"type": "object", "properties": {
        "s": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "l": {"type": "array", "items": {"type": "string"}},
    }});
    let run = |text: &str, new: Value, old: Value| {
        rule(schema.clone(), json!({"rule": text, "message": "changed"}), new, Some(old))
    };
    let (new, old) = (json!({"s": ["b", "a"]}), json!({"s": ["a", "b"]}));
    assert_eq!(run("self.s == oldSelf.s", new, old), Vec::<String>::new());
    let (new, old) = (json!({"l": ["b", "a"]}), json!({"l": ["a", "b"]}));
    assert_eq!(run("self.l == oldSelf.l", new, old), ["spec: Invalid value: changed"]);
}

#[test]
fn a_write_of_the_status_answers_for_the_status_only() {
    let mut crd = with_spec(
        json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}}),
    );
    let schema = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    schema["properties"]["status"] =
        json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    crd["spec"]["versions"][0]["subresources"] = json!({"status": {}});
    let definition = compile(&crd);
    let old = json!({"spec": {}});
    let new = json!({"spec": {}, "status": {"n": "x"}});
    assert_eq!(
        lines(&only(&definition).validate_status(&new, Some(&old))),
        ["status.n: Invalid value: \"string\": n in body must be of type integer: \"string\""]
    );
    assert!(
        only(&definition)
            .validate_status(&json!({"spec": {}, "status": {"n": 1}}), Some(&old))
            .is_empty()
    );
}

#[test]
fn scale_follows_its_paths() {
    let definition = compile(&widget());
    let scale = only(&definition).scale.as_ref().unwrap();
    let mut object = object(json!({"color": "blue"}));
    object["status"] = json!({"replicas": 2, "selector": "a=b"});
    scale.set(&mut object, 3);
    let shown = scale.of(&object);
    assert_eq!(shown["spec"], json!({"replicas": 3}));
    assert_eq!(shown["status"], json!({"replicas": 2, "selector": "a=b"}));
    assert_eq!(scale.spec_path(), ["spec", "replicas"]);
    assert_eq!(scale.of(&json!({}))["spec"], json!({}));
}
