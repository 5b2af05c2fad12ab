//! Bodies in every format, a letter before them says which: read or refused, and what was read is
//! read the same again, as JSON and by its kind.
#![no_main]

use libfuzzer_sys::fuzz_target;
use windlass_fuzz::{json, kind, survives};
use windlass_local::{builtin, http::fuzzing};

fuzz_target!(|data: &[u8]| {
    let Some((&format, bytes)) = data.split_first() else { return };
    let value = match format {
        b'y' => fuzzing::body("application/yaml", bytes),
        b'p' => {
            let bytes = [b"k8s\0", bytes].concat();
            fuzzing::body("application/vnd.kubernetes.protobuf", &bytes)
        }
        _ => json(bytes),
    };
    let Some(value) = value else { return };
    assert!(survives(&value), "{value}");
    let Some((resource, typed)) = kind(&value) else { return };
    let Ok(decoded) = builtin::decode(resource, value, typed) else { return };
    let again = builtin::decode(resource, decoded.object.clone(), typed).expect("not of its kind");
    assert_eq!(again.unknown, Vec::<String>::new());
    assert_eq!(again.object, decoded.object, "decoded differently");
    let mut object = decoded.object;
    builtin::default(resource, &mut object);
    let mut twice = object.clone();
    builtin::default(resource, &mut twice);
    assert_eq!(twice, object, "defaulted differently");
    drop(builtin::validate(resource, &object, None));
    drop(builtin::validate(resource, &object, Some(&object)));
    drop(builtin::warnings(resource, &object, None));
});
