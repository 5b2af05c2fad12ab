use proptest::prelude::*;

use super::*;

fn told(stops: &[&str], parts: &[&str]) -> (String, bool) {
    let mut stops = Stops::new(stops.iter().map(|text| (*text).to_owned()));
    let mut told = String::new();
    for part in parts {
        match stops.push(part) {
            Passed::Text(text) => told.push_str(&text),
            Passed::Last(text) => return (told + &text, true),
        }
    }
    (told + &stops.finish(), false)
}

#[test]
fn an_answer_ends_before_the_first_stop_wherever_it_is_cut() {
    for (stops, parts, want) in [
        (&["END"][..], &["one ", "E", "N", "D two"][..], ("one ", true)),
        (&["END"], &["one EN", "C END"], ("one ENC ", true)),
        (&["END"], &["one EN"], ("one EN", false)),
        (&["b", "ab"], &["x", "a", "b"], ("x", true)),
        (&["\n\n"], &["a\n", "b\n", "\nc"], ("a\nb", true)),
        (&["aab"], &["a", "a", "a", "b"], ("a", true)),
        (&["é"], &["caf", "é"], ("caf", true)),
        (&[""], &["text"], ("text", false)),
        (&[], &["text"], ("text", false)),
    ] {
        let (text, stopped) = told(stops, parts);
        assert_eq!((text.as_str(), stopped), want, "{stops:?} {parts:?}");
    }
}

#[test]
fn nothing_is_held_back_that_cannot_be_a_stop() {
    let mut stops = Stops::new(["END".to_owned()]);
    assert_eq!(stops.push("EGG"), Passed::Text("EGG".to_owned()));
    assert_eq!(stops.push("E"), Passed::Text(String::new()));
    assert_eq!(stops.push("G"), Passed::Text("EG".to_owned()));
}

proptest! {
    #[test]
    fn the_cuts_of_a_text_do_not_matter(parts in prop::collection::vec("[abé]{0,3}", 0..8), stop in "[abé]{1,3}") {
        let whole = parts.concat();
        let want = match whole.find(&stop) {
            Some(at) => (whole[..at].to_owned(), true),
            None => (whole.clone(), false),
        };
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        prop_assert_eq!(told(&[&stop], &parts), want);
    }
}
