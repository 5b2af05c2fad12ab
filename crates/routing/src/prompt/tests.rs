use bytes::Bytes;

use super::*;
use crate::prefix::Blocks;

const GAIE: Reading = Reading { dialect: Dialect::Gaie, limit: usize::MAX, strict: false };
const LLM_D: Reading = Reading { dialect: Dialect::LlmD, limit: usize::MAX, strict: false };

fn parts(api: Api, body: &str, reading: Reading) -> Result<Vec<String>, Unusable> {
    let input = read(api, &Body::from(Bytes::copy_from_slice(body.as_bytes())), reading)?;
    let text = |part: Part| String::from_utf8(part.kept).unwrap();
    Ok(input.parts.into_iter().map(text).collect())
}

#[test]
fn the_api_is_known_by_its_path() {
    for (path, want) in [
        ("/v1/completions", Api::Completions),
        ("/x/v1/chat/completions?a=b", Api::Chat),
        ("/v1/responses", Api::Responses),
        ("/v1/conversations/v1/responses", Api::Conversations),
        ("/v1/embeddings", Api::Other),
    ] {
        assert_eq!(Api::of(path), want, "{path}");
    }
}

#[test]
fn prompts_become_bytes() {
    let blocks = r#"{"messages":[{"role":"user","content":[{"type":"text","text":"hi","x":1},
        {"type":"image_url","image_url":{"url":"u","detail":"low"}},{"type":"input_audio","input_audio":{"format":"wav"}}]}]}"#;
    let blocks_text = concat!(
        r#"[{"role":"user","content":[{"type":"text","text":"hi","image_url":{},"input_audio":{},"video_url":{}},"#,
        r#"{"type":"image_url","image_url":{"url":"u"},"input_audio":{},"video_url":{}},"#,
        r#"{"type":"input_audio","image_url":{},"input_audio":{"format":"wav"},"video_url":{}}]}]"#,
    );
    for (api, body, want) in [
        (Api::Completions, r#"{"prompt":"a\u00e9\n"}"#, "aé\n"),
        (
            Api::Chat,
            r#"{"messages":[{"content":null},{"content":"x","role":"user","name":"n"},{"role":""}]}"#,
            r#"[{"content":""},{"role":"user","content":"x"},{"content":""}]"#,
        ),
        (Api::Chat, blocks, blocks_text),
        (
            Api::Responses,
            r#"{"tools":[{"b":1.0,"a":null}],"input":"x","instructions":"<"}"#,
            r#"[{"instructions":"\u003c"},{"tools":[{"a":null,"b":1}]},{"input":"x"}]"#,
        ),
        (
            Api::Conversations,
            r#"{"items":[{"type":"message","role":"","content":"c","id":"i"},{}]}"#,
            r#"[{"type":"message","content":"c"},{}]"#,
        ),
        (Api::Other, r#"{"input":"x"}"#, ""),
    ] {
        assert_eq!(parts(api, body, GAIE).unwrap().concat(), want, "{body}");
    }
}

#[test]
fn unusable_prompts_are_refused() {
    for (api, body, want) in [
        (Api::Completions, r#"{}"#, NO_PROMPT),
        (Api::Completions, r#"{"prompt":""}"#, NO_PROMPT),
        (Api::Completions, r#"{"prompt":[]}"#, NO_PROMPT),
        (Api::Completions, r#"{"prompt":5}"#, NO_PROMPT),
        (Api::Chat, r#"{"prompt":"x"}"#, NO_MESSAGES),
        (Api::Chat, r#"{"messages":[]}"#, NO_MESSAGES),
        (Api::Chat, r#"{"messages":"x"}"#, NO_MESSAGES),
        (Api::Chat, r#"{"messages":[{"role":"user","content":5}]}"#, NO_MESSAGES),
        (Api::Chat, r#"{"messages":[{"role":5}]}"#, NO_MESSAGES),
        (Api::Responses, r#"{"input":null}"#, NO_INPUT),
        (Api::Responses, r#"{"prompt":"x"}"#, NO_INPUT),
        (Api::Conversations, r#"{"items":[]}"#, NO_ITEMS),
    ] {
        assert_eq!(parts(api, body, GAIE), Err(want), "{body}");
    }
}

#[test]
fn several_prompts_are_told_apart() {
    let strict = Reading { strict: true, ..GAIE };
    for (body, want) in [
        (r#"{"prompt":["a","b\n"]}"#, &["a", "b\n"][..]),
        (r#"{"prompt":[1, 2]}"#, &["[1, 2]"]),
        (r#"{"prompt":[[1,2],[3]]}"#, &["[1,2]", "[3]"]),
    ] {
        assert_eq!(parts(Api::Completions, body, GAIE).unwrap(), want, "{body}");
        assert_eq!(parts(Api::Completions, body, strict), Err(NO_PROMPT), "{body}");
    }
}

#[test]
fn chat_of_the_other_dialect_is_plain_text() {
    let body = r#"{"tools":[{"b":1,"a":2}],"messages":[{"role":"user","content":"a\nb"},{"role":"tool","content":[{"type":"text","text":"c"}]}]}"#;
    assert_eq!(parts(Api::Chat, body, LLM_D).unwrap(), ["[{\"a\":2,\"b\":1}]usera\nbtoolc"]);
}

#[test]
fn a_chat_hashes_to_the_known_value() {
    let body = serde_json::json!({"messages": [
        {"role": "user", "content": format!("Tom & <Jerry> \u{2028} {}", "x".repeat(40))},
    ]});
    let body = Body::from(Bytes::from(body.to_string()));
    let input = read(Api::Chat, &body, GAIE).unwrap();
    assert_eq!(input.parts[0].length, 106);
    let blocks = Blocks { dialect: Dialect::Gaie, size: 16, max: 256 };
    assert_eq!(blocks.chain(&input.parts[0], "m", b""), [0x2cb9_6a87_333d_cfce]);
}

#[test]
fn only_so_many_bytes_are_kept_but_all_are_counted() {
    let body = Body::from(Bytes::from_static(br#"{"prompt":"abc\ndefghi"}"#));
    let input = read(Api::Completions, &body, Reading { limit: 5, ..GAIE }).unwrap();
    assert_eq!(input.parts, [Part { kept: b"abc\nd".to_vec(), length: 10 }]);
    assert_eq!((input.tokens(Dialect::Gaie), input.tokens(Dialect::LlmD)), (2, 3));
}

#[test]
fn a_cut_body_gives_what_it_has() {
    for (text, want) in [
        ("{\"prompt\":\"abc\\", "abc\u{fffd}"),
        ("{\"prompt\":\"abc", "abc"),
        ("{\"model\":\"m\",\"messages\":[{\"role\"", ""),
        ("{\"prompt\":[1,2", ""),
    ] {
        let mut body = Body::from(Bytes::copy_from_slice(text.as_bytes()));
        body.cut();
        let input = read(Api::Completions, &body, GAIE).unwrap();
        let got: Vec<u8> = input.parts.into_iter().flat_map(|part| part.kept).collect();
        assert_eq!(String::from_utf8(got).unwrap(), want, "{text}");
    }
}
