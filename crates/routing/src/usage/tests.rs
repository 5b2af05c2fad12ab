use proptest::prelude::*;

use super::*;

fn probed(chunks: &[&[u8]]) -> Option<Usage> {
    let mut probe = Probe::default();
    chunks.iter().for_each(|chunk| probe.feed(chunk));
    probe.usage()
}

const STREAM: &str = concat!(
    "data: {\"choices\":[{\"delta\":{\"content\":\"say \\\"usage\\\": {\"}}],\"usage\":null}\n\n",
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":2}}\n\n",
    "data: {\"choices\":[],\"usage\" : {\"prompt_tokens\":7,\"completion_tokens\":5,\"prompt_tokens_details\":{\"cached_tokens\":4}}}\n\n",
    "data: [DONE]\n\n",
);

#[test]
fn the_last_figures_count() {
    let want = Usage { prompt: 7, completion: 5, cached: 4 };
    assert_eq!(probed(&[STREAM.as_bytes()]), Some(want));
}

#[test]
fn all_apis_are_understood() {
    let figures = |prompt, completion, cached| Some(Usage { prompt, completion, cached });
    for (text, want) in [
        (
            r#"{"usage":{"input_tokens":3,"output_tokens":4,"input_tokens_details":{"cached_tokens":1}}}"#,
            figures(3, 4, 1),
        ),
        (
            r#"{"usage":{"prompt_tokens":3,"prompt_token_details":{"cached_tokens":2}}}"#,
            figures(3, 0, 2),
        ),
        (r#"{"usage":{"prompt_tokens":"3","completion_tokens":[4]}}"#, None),
        (r#"{"usage":{"prompt_tokens":-3,"completion_tokens":4.0}}"#, figures(0, 4, 0)),
        (r#"{"usage":5}"#, None),
        (r#"{"usage":{}}"#, None),
        ("not json \"usage\" at all", None),
        ("", None),
    ] {
        assert_eq!(probed(&[text.as_bytes()]), want, "{text}");
    }
}

proptest! {
    #[test]
    fn it_does_not_matter_where_the_answer_is_cut(cuts in proptest::collection::vec(0..STREAM.len(), 0..40)) {
        let mut cuts = cuts;
        cuts.sort_unstable();
        let mut chunks = Vec::new();
        let mut from = 0;
        for cut in cuts.into_iter().chain([STREAM.len()]) {
            chunks.push(&STREAM.as_bytes()[from..cut]);
            from = cut;
        }
        prop_assert_eq!(probed(&chunks), Some(Usage { prompt: 7, completion: 5, cached: 4 }));
    }

    #[test]
    fn any_answer_passes(chunks in proptest::collection::vec("(\"usage\"|[{}:\" a0\\[\\]]){0,8}", 0..12)) {
        let chunks: Vec<&[u8]> = chunks.iter().map(String::as_bytes).collect();
        probed(&chunks);
    }
}
