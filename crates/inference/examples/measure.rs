//! How fast a model is on this machine: `cargo run --release --example measure -- FILE`.

#![allow(clippy::print_stdout, reason = "that is what it is for")]

use std::{error::Error, path::PathBuf, sync::Arc, time::Instant};

use windlass_inference::{
    Engine, Model,
    engine::{Event, Limits, Request},
    sample::Sampling,
    template::Message,
};

fn main() -> Result<(), Box<dyn Error>> {
    let path = PathBuf::from(std::env::args_os().nth(1).ok_or("which file?")?);
    let started = Instant::now();
    let model = Arc::new(Model::load(&path)?);
    println!("loaded in {:.2?}", started.elapsed());
    let engine = Engine::start(Arc::clone(&model), Limits { sequences: 8, tokens: 2048 })?;
    let ask = |prompt: Vec<u32>, max_tokens: usize, ignore_end: bool| {
        let sampling = Sampling::default();
        engine.submit(Request { prompt, max_tokens, sampling, stops: Vec::new(), ignore_end })
    };
    let question = "Please name the capital city of France.".to_owned();
    let messages = [Message { role: "user".to_owned(), content: question }];
    let template = model.template.as_ref().ok_or("no chat template")?;
    let prompt = template.render(&messages, jiff::Timestamp::UNIX_EPOCH)?;
    let mut events = ask(model.tokenizer.encode(&prompt)?, 64, false);
    while let Some(event) = events.blocking_recv() {
        if let Event::Text { text, .. } = event {
            print!("{text}");
        }
    }
    println!();
    for round in 0..3 {
        // Another beginning each time: what is known of a prompt is not computed again.
        let text = format!("{round}. {}", "The sea was calm that day. ".repeat(30));
        let mut hundred = model.tokenizer.encode(&text)?;
        hundred.truncate(100);
        let begun = Instant::now();
        let mut events = ask(hundred, 128, true);
        let mut first = None;
        let mut tokens = 0;
        while let Some(event) = events.blocking_recv() {
            if let Event::Text { .. } = event {
                first.get_or_insert_with(|| begun.elapsed());
                tokens += 1;
            }
        }
        let first = first.unwrap_or_default();
        let rate = f64::from(tokens - 1) / (begun.elapsed() - first).as_secs_f64();
        println!("first token after {first:.2?}, then {rate:.1} tokens/s");
    }
    let begun = Instant::now();
    let four: Vec<_> = (0..4).map(|n| ask(vec![n + 20; 16], 64, true)).collect();
    for mut events in four {
        while events.blocking_recv().is_some() {}
    }
    println!("four at once: {:.1} tokens/s", 256.0 / begun.elapsed().as_secs_f64());
    Ok(())
}
