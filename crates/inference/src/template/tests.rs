use super::*;

fn message(role: &str, content: &str) -> Message {
    Message { role: role.to_owned(), content: content.to_owned() }
}

fn rendered(template: &str, messages: &[Message]) -> Result<String, minijinja::Error> {
    let now = "2026-03-04T05:06:07Z".parse().unwrap();
    Template::with_tokens(template, "<s>", "</s>").unwrap().render(messages, now)
}

/// As the file of SmolLM2 has it.
const SMOLLM: &str = "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n' }}{% endif %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

#[test]
fn messages_become_a_prompt_as_the_model_knows_it() {
    assert_eq!(
        rendered(SMOLLM, &[message("user", "Hi & <b>")]).unwrap(),
        "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n\
         <|im_start|>user\nHi & <b><|im_end|>\n<|im_start|>assistant\n"
    );
    assert_eq!(
        rendered(SMOLLM, &[message("system", "Be brief"), message("user", "Hi")]).unwrap(),
        "<|im_start|>system\nBe brief<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    );
}

#[test]
fn what_templates_use_is_there() {
    for (template, want) in [
        ("{{ bos_token }}{{ messages[-1].content | trim }}{{ eos_token }}", "<s>a B</s>"),
        ("{{ messages[0]['content'].strip().upper() }}", "A B"),
        ("{{ messages[0].content.split('B')[0] }}|", " a |"),
        ("{% if messages[0].content.startswith(' a') %}yes{% endif %}", "yes"),
        ("{{ messages[0] | tojson }}", r#"{"role": "user", "content": " a B "}"#),
        ("{{ strftime_now('%d %b %Y') }}", "04 Mar 2026"),
        (
            "{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}{% endfor %}{{ ns.n }}",
            "1",
        ),
        ("{% for m in messages %}\n  {% if true %}\nx\n  {% endif %}\n{% endfor %}", "x\n"),
        ("{% if tools is defined and tools %}tools{% else %}none{% endif %}", "none"),
        (
            "{% for m in messages %}{% if m.role == 'user' %}{% continue %}{% endif %}x{% endfor %}",
            "",
        ),
        ("{%- macro show(m) -%}{{ m.role }}{%- endmacro -%}{{ show(messages[0]) }}", "user"),
    ] {
        let text = rendered(template, &[message("user", " a B ")]).unwrap();
        assert_eq!(text, want, "{template}");
    }
}

#[test]
fn a_template_says_why_it_takes_no_such_messages() {
    let refused = rendered("{{ raise_exception('roles must alternate') }}", &[]).unwrap_err();
    assert!(refused.to_string().contains("roles must alternate"), "{refused}");
    let broken = rendered("{% if %}", &[message("user", "hello")]).unwrap_err();
    assert!(broken.to_string().contains("cannot read the chat template"), "{broken}");
}

#[test]
fn a_template_cannot_go_on_for_ever() {
    let endless = "{% macro a() %}{{ a() }}{% endmacro %}{{ a() }}";
    assert!(rendered(endless, &[]).is_err());
    let long = "{% for a in range(9999) %}{% for b in range(9999) %}{% set c = a %}{% endfor %}{% endfor %}";
    let stopped = rendered(long, &[]).unwrap_err();
    assert_eq!(stopped.kind(), ErrorKind::OutOfFuel, "{stopped}");
}
