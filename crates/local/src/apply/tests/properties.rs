use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;
use crate::{
    apply::{compare::Comparison, walk::set_of},
    types::Form,
};

/// Any JSON at all.
fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-c]{0,2}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 4, |inner| {
        let names = prop_oneof![
            "[a-c]{1}".boxed(),
            prop::sample::select(vec![
                "spec",
                "metadata",
                "status",
                "items",
                "name",
                "tags",
                "ports",
                "port",
                "free",
                "inner",
                "words",
                "limits",
                "labels",
                "managedFields",
                "data",
                "template",
                "containers",
                "env",
                "f:a",
                "v:1",
                ".",
            ])
            .prop_map(str::to_owned)
            .boxed(),
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(names, inner, 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// A configuration of the custom kind that passes the check.
fn config() -> impl Strategy<Value = Value> {
    let word = || "[a-c]".prop_map(String::from);
    let words = || prop::collection::btree_set("[a-c]", 1..3);
    let item = (word(), prop::option::of(word()), prop::option::of(word()));
    let items = prop::collection::vec(item, 1..3).prop_map(|items| {
        let mut fields = Map::new();
        for (name, value, inner) in items {
            let mut item = json!({"name": name});
            if let Some(value) = value {
                item["value"] = json!(value);
            }
            if let Some(inner) = inner {
                item["inner"] = json!({"a": inner});
            }
            fields.insert(name, item);
        }
        fields.values().cloned().collect::<Vec<_>>()
    });
    let size = prop::option::of(0..3i64);
    let color = prop::option::of(word());
    let items = prop::option::of(items);
    let tags = prop::option::of(words());
    let list = prop::option::of(words());
    let free = prop::option::of(word());
    (size, color, items, tags, list, free).prop_map(|(size, color, items, tags, list, free)| {
        let mut spec = Map::new();
        spec.extend(size.map(|size| ("size".into(), json!(size))));
        spec.extend(color.map(|color| ("color".into(), json!(color))));
        spec.extend(items.map(|items| ("items".into(), json!(items))));
        spec.extend(tags.map(|tags| ("tags".into(), json!(tags))));
        spec.extend(list.map(|list| ("words".into(), json!(list))));
        spec.extend(free.map(|free| ("free".into(), json!({free: {"x": 1}}))));
        // Nothing is owned by who applies nothing; that is told elsewhere.
        spec.entry("color").or_insert_with(|| json!("c"));
        json!({"metadata": {"name": "w"}, "spec": spec})
    })
}

fn set() -> impl Strategy<Value = Set> {
    anything().prop_map(|value| set_of(widget(), &json!({"spec": {"free": value}})))
}

fn forced<'a>(manager: &'a str, live: Option<&'a Value>, config: &'a Value) -> Request<'a> {
    Request { force: true, ..request(widget(), manager, live, config) }
}

proptest! {
    #[test]
    fn sets_obey_their_laws(a in set(), b in set(), c in set()) {
        prop_assert_eq!(a.union(&b), b.union(&a));
        prop_assert_eq!(a.intersection(&b), b.intersection(&a));
        prop_assert_eq!(a.union(&b).union(&c), a.union(&b.union(&c)));
        prop_assert_eq!(a.difference(&b).intersection(&b), Set::default());
        prop_assert_eq!(a.difference(&b).union(&a.intersection(&b)), a.clone());
        prop_assert_eq!(a.union(&b).difference(&b), a.difference(&b));
        prop_assert_eq!(a.difference(&a), Set::default());
        prop_assert!(a.union(&b).contains_all(&a));
        prop_assert_eq!(a.contains_all(&b), b.difference(&a).is_empty());
    }

    #[test]
    fn who_gives_nothing_up_removes_nothing(a in config(), b in config(), c in config()) {
        let mut live = apply(forced("b", Some(&apply(forced("a", None, &a)).unwrap()), &b)).unwrap();
        let managed = Managed::read(take_managed(&mut live).as_ref()).unwrap();
        let last = Set::read(&entry(&apply(forced("b", None, &b)).unwrap(), "b", "Apply")["fieldsV1"]);
        let more = merge::merge(widget(), &b, &c);
        let merged = merge::merge(widget(), &live, &more);
        let owned = managed.owned().union(&set_of(widget(), &more));
        prop_assert_eq!(prune::without(widget(), &merged, &last.unwrap(), &owned), merged);
    }

    #[test]
    fn a_set_survives_being_written(set in set()) {
        prop_assert_eq!(Set::read(&set.write()).unwrap(), set.clone());
        for path in set.paths() {
            prop_assert!(set.contains(&path.0));
        }
    }

    #[test]
    fn any_fields_can_be_read_or_refused(value in anything()) {
        if let Ok(set) = Set::read(&value) {
            prop_assert_eq!(Set::read(&set.write()).unwrap().write(), set.write());
        }
    }

    #[test]
    fn nothing_differs_from_itself(value in anything()) {
        for typed in [widget(), deployment()] {
            prop_assert_eq!(Comparison::of(typed, &value, &value), Comparison::default());
        }
    }

    #[test]
    fn no_object_makes_apply_panic(live in anything(), config in anything()) {
        for typed in [widget(), deployment(), config_map()] {
            for force in [false, true] {
                let request = Request { force, ..request(typed, "kubectl", Some(&live), &config) };
                let _ = apply(request);
            }
            let new = update(writer(typed, "m"), Some(&live), config.clone());
            let _ = update(writer(typed, "m"), None, new.clone());
            let _ = same_but_times(&live, &new);
        }
    }

    #[test]
    fn applying_twice_is_applying_once(a in config(), b in config()) {
        let live = apply(forced("a", None, &a)).unwrap();
        let once = apply(forced("b", Some(&live), &b)).unwrap();
        let twice = apply(forced("b", Some(&once), &b)).unwrap();
        prop_assert!(same_but_times(&once, &twice), "{} {}", once, twice);
    }

    #[test]
    fn applying_nothing_removes_what_only_it_owned(a in config(), b in config()) {
        let alone = apply(forced("b", None, &b)).unwrap();
        let first = apply(forced("a", None, &a)).unwrap();
        let both = apply(forced("b", Some(&first), &b)).unwrap();
        let nothing = json!({"metadata": {"name": "w"}});
        let left = apply(forced("a", Some(&both), &nothing)).unwrap();
        let left_of_a = entry(&left, "a", "Apply");
        prop_assert_eq!(left_of_a, Value::Null);
        let set = |object: &Value| {
            let mut object = object.clone();
            take_managed(&mut object);
            set_of(widget(), &object).intersection(&set_of(widget(), &b))
        };
        prop_assert_eq!(set(&left), set(&alone));
        let mut rest = left.clone();
        take_managed(&mut rest);
        prop_assert_eq!(set_of(widget(), &rest).difference(&set_of(widget(), &b)), Set::default());
    }

    #[test]
    fn the_configuration_is_in_the_result(a in config(), b in config()) {
        let live = apply(forced("a", None, &a)).unwrap();
        let merged = apply(forced("b", Some(&live), &b)).unwrap();
        let present = set_of(widget(), &merged);
        prop_assert_eq!(set_of(widget(), &b).difference(&present), Set::default());
        // Every owned path exists.
        for entry in merged["metadata"]["managedFields"].as_array().unwrap() {
            let set = Set::read(&entry["fieldsV1"]).unwrap();
            prop_assert_eq!(set.difference(&present), Set::default());
        }
    }

    #[test]
    fn an_update_gives_each_changed_field_one_owner(a in config(), b in config()) {
        let live = apply(forced("a", None, &a)).unwrap();
        let object = update(writer(widget(), "u"), Some(&live), b.clone());
        let changed = set_of(widget(), &b).difference(&set_of(widget(), &a));
        let changed = changed.difference(&UNOWNED);
        let owned = Set::read(&entry(&object, "u", "Update")["fieldsV1"]).unwrap_or_default();
        prop_assert_eq!(changed.difference(&owned), Set::default());
    }
}

#[test]
fn every_zero_object_is_of_its_type() {
    let Form::Struct(_) = deployment().form() else { panic!("no struct") };
    for typed in [deployment(), config_map(), widget()] {
        assert_eq!(check::check(typed, &typed.zero()), Ok(()));
    }
}
