use super::*;
use crate::config::Dialect;

#[test]
fn a_model_name_is_replaced_wherever_the_chunks_end() {
    let text = br#"{"model":"abc","x":1}"#;
    let edit = ModelEdit { range: 9..14, text: Bytes::from_static(b"\"longer\"") };
    for first in 0..=text.len() {
        let chunks =
            [Bytes::copy_from_slice(&text[..first]), Bytes::copy_from_slice(&text[first..])];
        let joined = edited(&chunks, &edit).concat();
        assert_eq!(joined, br#"{"model":"longer","x":1}"#, "{first}");
    }
}

#[test]
fn a_picker_that_fails_is_not_there_and_one_that_refuses_is() {
    let decided =
        |fails_open, pick: &dyn Fn() -> Result<Picked, Refused>| match decide(fails_open, pick) {
            Ok(picked) => Ok(picked.is_some()),
            Err(response) => Err(response.status().as_u16()),
        };
    let refusing = || {
        Err(Refused {
            status: StatusCode::SERVICE_UNAVAILABLE,
            code: "ServiceUnavailable",
            message: String::new(),
            dropped: None,
            dialect: Dialect::Gaie,
        })
    };
    assert_eq!(decided(true, &|| panic!("as a test")), Ok(false));
    assert_eq!(decided(false, &|| panic!("as a test")), Err(503));
    assert_eq!(decided(true, &refusing), Err(503));
    assert_eq!(decided(false, &refusing), Err(503));
}
