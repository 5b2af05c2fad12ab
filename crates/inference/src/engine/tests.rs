use super::*;

#[test]
fn an_engine_that_has_failed_says_so() {
    let stats = Arc::new(Stats::new(1));
    let fail = |jobs: &blocking::Receiver<work::Job>| {
        jobs.recv().unwrap();
        panic!("as it is meant to");
    };
    let engine = Engine::run_by(stats, fail).unwrap();
    assert!(engine.is_alive());
    let request = || Request {
        prompt: vec![1],
        max_tokens: 1,
        sampling: Sampling::default(),
        stops: Vec::new(),
        ignore_end: false,
    };
    assert_eq!(engine.submit(request()).blocking_recv(), None);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(engine.ended());
    assert!(!engine.is_alive());
    let told = engine.submit(request()).blocking_recv();
    assert_eq!(told, Some(Event::Failed("the engine has ended".to_owned())));
}
