use super::*;

#[test]
fn secrets_are_taken_out_and_the_words_around_them_stay() {
    for (text, want) in [
        // Bearer tokens and headers.
        ("Authorization: Bearer abc.def-123", "Authorization: ***"),
        ("sent bearer abcdefgh12345 to host", "sent bearer *** to host"),
        ("authorization: Basic dXNlcjpwYXNz!", "authorization: ***"),
        ("{\"Authorization\": \"Bearer abcdef123456\"}", "{\"Authorization\": \"***\"}"),
        // Tokens that are known by their shape.
        ("using hf_AbCdEf0123456789", "using ***"),
        ("(hf_AbCdEf0123456789).", "(***)."),
        ("key AKIAIOSFODNN7EXAMPLE is unknown", "key *** is unknown"),
        ("ASIAIOSFODNN7EXAMPLE", "***"),
        ("got ghp_0123456789abcdef0123", "got ***"),
        ("sk-proj-0123456789abcdef", "***"),
        (
            "jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.c2lnbmF0dXJlLXRleHQ end",
            "jwt *** end",
        ),
        // Addresses.
        (
            "GET https://b.s3.amazonaws.com/k?X-Amz-Credential=AKIA%2F2026&X-Amz-Expires=60&X-Amz-Signature=ab12 403",
            "GET https://b.s3.amazonaws.com/k?X-Amz-Credential=***&X-Amz-Expires=60&X-Amz-Signature=*** 403",
        ),
        (
            "https://b.example.com/k?X-Amz-Security-Token=a%2Bb\\u0026x=1",
            "https://b.example.com/k?X-Amz-Security-Token=***\\u0026x=1",
        ),
        (
            "https://a.blob.core.windows.net/c?se=1&sig=ab%3D",
            "https://a.blob.core.windows.net/c?se=1&sig=***",
        ),
        ("https://user:pass@host.example/x", "https://***@host.example/x"),
        ("clone https://token@git.example now", "clone https://***@git.example now"),
        ("https://host.example/a@b", "https://host.example/a@b"),
        // Names with values.
        ("password=hunter2", "password=***"),
        ("PASSWORD = hunter2 and more", "PASSWORD = *** and more"),
        ("db_password: 'a b c' tail", "db_password: '***' tail"),
        ("{\"api_key\":\"x1\",\"n\":1}", "{\"api_key\":\"***\",\"n\":1}"),
        ("apiKey=abc;other=1", "apiKey=***;other=1"),
        ("HF_TOKEN=abc", "HF_TOKEN=***"),
        ("token: abcdef", "token: ***"),
        ("AWS_SECRET_ACCESS_KEY=a/b+c", "AWS_SECRET_ACCESS_KEY=***"),
        ("aws_access_key_id=x", "aws_access_key_id=***"),
        ("serve --api-key abc model", "serve --api-key *** model"),
        ("serve --api-key=abc model", "serve --api-key=*** model"),
        ("password=ä", "password=***"),
    ] {
        assert_eq!(redact(text), want, "{text}");
    }
}

#[test]
fn what_is_no_secret_stays() {
    for text in [
        "",
        "Repository Not Found for url: https://huggingface.co/api/models/x.",
        "max_tokens=512 token_count=3 tokenizer=bpe",
        "hf_hub_download failed",
        "the bearer of bad news",
        "secret \"token\" not found",
        "couldn't find key k in Secret ns/c",
        "references non-existent secret key: k",
        "MountVolume.SetUp failed for volume \"secret\" : configmap \"c\" not found",
        "unexpected token: }",
        "invalid token in line 3",
        "password=",
        "--api-key --port 80",
        "sha256:a4040bdeadbeef",
        "größer als erwartet: 401",
    ] {
        assert_eq!(redact(text), text);
    }
}

proptest::proptest! {
    #[test]
    fn any_text_can_be_read_and_nothing_is_found_twice(text in "[ -~äß\n]{0,80}") {
        let once = redact(&text);
        proptest::prop_assert_eq!(redact(&once), once);
    }
}
