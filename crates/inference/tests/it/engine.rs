//! Several requests on one engine.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::sync::mpsc::UnboundedReceiver;
use windlass_inference::{
    Engine, Model,
    engine::{Event, Figures, Limits, Reason, Request},
    sample::Sampling,
};

use crate::tiny::CONTEXT;

fn engine(model: &Arc<Model>, sequences: usize) -> Engine {
    Engine::start(Arc::clone(model), Limits { sequences, tokens: CONTEXT as usize }).unwrap()
}

fn request(model: &Model, prompt: &str, max_tokens: usize) -> Request {
    Request {
        prompt: model.tokenizer.encode(prompt).unwrap(),
        max_tokens,
        sampling: Sampling::default(),
        stops: Vec::new(),
        ignore_end: true,
    }
}

/// The text, how many tokens it took, and why it ended.
fn answer(mut events: UnboundedReceiver<Event>) -> (String, usize, Reason) {
    let (mut text, mut tokens) = (String::new(), 0);
    loop {
        match events.blocking_recv().unwrap() {
            Event::Text { text: more, tokens: count } => {
                text += &more;
                tokens += count;
            }
            Event::Finished(reason) => return (text, tokens, reason),
            Event::Failed(why) => panic!("{why}"),
        }
    }
}

fn until(engine: &Engine, rule: impl Fn(&Figures) -> bool) -> Figures {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let figures = engine.figures();
        if rule(&figures) {
            return figures;
        }
        assert!(Instant::now() < deadline, "{figures:?}");
        std::thread::yield_now();
    }
}

#[test]
fn answers_are_the_same_alone_and_at_once() {
    let model = crate::model();
    let prompts = ["hello", "a longer prompt than that", "12", "x"];
    let alone = engine(&model, 1);
    let alone = prompts.map(|prompt| answer(alone.submit(request(&model, prompt, 24))));
    let many = engine(&model, 3);
    let at_once = prompts.map(|prompt| many.submit(request(&model, prompt, 24))).map(answer);
    assert_eq!(at_once, alone);
    assert!(alone.iter().all(|(_, tokens, reason)| (*tokens, *reason) == (24, Reason::Length)));
}

#[test]
fn a_prompt_that_takes_several_steps_is_answered_alike() {
    let model = crate::model();
    let engine = engine(&model, 2);
    let long = "some words of a prompt ".repeat(20);
    let first = answer(engine.submit(request(&model, &long, 8)));
    let beside = engine.submit(request(&model, "hello", 60));
    assert_eq!(answer(engine.submit(request(&model, &long, 8))), first);
    answer(beside);
    assert!(first.1 == 8 && model.tokenizer.encode(&long).unwrap().len() > 256);
}

#[test]
fn an_answer_ends_at_a_stop_that_is_not_part_of_it() {
    let model = crate::model();
    let engine = engine(&model, 1);
    let (whole, ..) = answer(engine.submit(request(&model, "hello", 40)));
    let characters: Vec<char> = whole.chars().collect();
    let stop: String = characters[5..8].iter().collect();
    let stops = vec![stop.clone()];
    let stopped = engine.submit(Request { stops, ..request(&model, "hello", 40) });
    let (text, tokens, reason) = answer(stopped);
    assert_eq!((text.as_str(), reason), (whole.split(&stop).next().unwrap(), Reason::Stop));
    assert!(tokens < 40);
}

#[test]
fn a_model_ends_by_its_own_token() {
    let model = crate::model();
    let engine = engine(&model, 1);
    let sampling = Sampling { bias: vec![(2, 1000.0)], ..Sampling::default() };
    let biased = Request { sampling, ignore_end: false, ..request(&model, "hello", 9) };
    assert_eq!(answer(engine.submit(biased.clone())), (String::new(), 1, Reason::Stop));
    let ignoring = Request { ignore_end: true, ..biased };
    assert_eq!(answer(engine.submit(ignoring)), (String::new(), 9, Reason::Length));
}

#[test]
fn what_is_known_of_a_prompt_is_not_computed_again() {
    let model = crate::model();
    let long = "hello 12 ".repeat(40);
    let ask = |engine: &Engine, end: &str| {
        answer(engine.submit(request(&model, &format!("{long}{end}"), 9)))
    };
    let alone = |end: &str| ask(&engine(&model, 1), end);
    let engine = engine(&model, 2);
    assert_eq!(ask(&engine, "once"), alone("once"));
    let before = engine.figures().prompt_tokens;
    for end in ["once", "twice", "", "and again"] {
        assert_eq!(ask(&engine, end), alone(end), "{end}");
    }
    let more = engine.figures().prompt_tokens - before;
    assert!(before > 100 && more < 50, "{before} {more}");
}

#[test]
fn an_empty_prompt_is_refused() {
    let model = crate::model();
    let engine = engine(&model, 1);
    let refused = engine.submit(Request { prompt: Vec::new(), ..request(&model, "hello", 1) });
    let mut refused = refused;
    assert_eq!(refused.blocking_recv(), Some(Event::Failed("the prompt is empty".to_owned())));
}

#[test]
fn sequences_wait_for_room_for_their_tokens() {
    let model = crate::model();
    let shape = model.network.shape();
    let limits = |sequences, tokens| Limits { sequences, tokens };
    assert_eq!(limits(4, 1024).room(shape), 4096);
    // As much memory as there is, but always enough for one.
    let each = (2 << 30) / shape.cache_bytes();
    assert_eq!(limits(1 << 20, 1024).room(shape), each);
    assert_eq!(limits(usize::MAX, each + 7).room(shape), each + 7);
}

#[test]
fn who_does_not_listen_any_more_is_not_computed_for() {
    let model = crate::model();
    let engine = engine(&model, 1);
    let mut endless = engine.submit(request(&model, "hello", CONTEXT as usize - 9));
    let waiting = engine.submit(request(&model, "hello", CONTEXT as usize - 9));
    endless.blocking_recv().unwrap();
    let figures = until(&engine, |figures| figures.running == 1);
    assert!(figures.waiting == 1 && figures.cache_usage > 0.0, "{figures:?}");
    drop(waiting);
    until(&engine, |figures| figures.waiting == 0);
    drop(endless);
    let figures = until(&engine, |figures| figures.running == 0);
    assert!(figures.answer_tokens < 40_000, "{figures:?}");
    assert_eq!((figures.cache_usage, figures.prompt_tokens), (0.0, 1));
    // And the next one has the place.
    answer(engine.submit(request(&model, "hello", 2)));
}
