use super::{MODEL, manifest};
use crate::control::{TensorManifest, WrongLengths};
use crate::{Datatype, OperationId};

#[test]
fn lists_nested_tensors_with_their_lengths() {
    let manifest = manifest();
    let fields: Vec<_> =
        manifest.fields.iter().map(|field| (field.name.as_str(), field.extents.as_slice())).collect();
    let expected: [(&str, &[u64]); 3] = [("embedding", &[100, 8]), ("head.weight", &[10, 4]), ("bias", &[7])];
    assert_eq!(fields, expected);
    assert_eq!(manifest.fingerprint, MODEL.fingerprint);
}

#[test]
fn refuses_wrong_numbers_of_lengths() {
    for found in [0, 1, 3] {
        let error = TensorManifest::from_layout(&MODEL, &vec![1; found]).unwrap_err();
        assert_eq!(error, WrongLengths { expected: 2, found });
    }
}

#[test]
fn names_the_first_difference() {
    let ours = manifest();
    assert_eq!(ours.first_difference(&ours), None);
    let difference = |change: fn(&mut TensorManifest)| {
        let mut theirs = manifest();
        theirs.fingerprint += 1;
        change(&mut theirs);
        ours.first_difference(&theirs).unwrap()
    };
    assert_eq!(
        difference(|theirs| theirs.fields[0].extents[0] = 101),
        "field embedding: extents [100, 8] against [101, 8]"
    );
    assert_eq!(
        difference(|theirs| theirs.fields[1].datatype = Datatype::F64),
        "field head.weight: f32 against f64"
    );
    assert_eq!(
        difference(|theirs| theirs.fields[1].wire = Datatype::F16),
        "field head.weight: travels as bf16 against f16"
    );
    assert_eq!(
        difference(|theirs| {
            theirs.fields[2].operation = OperationId(1);
            theirs.fields[2].operation_name = "sum".to_owned();
        }),
        "field bias: reduced by average against sum"
    );
    assert_eq!(difference(|theirs| theirs.fields[2].name = "b".to_owned()), "field bias against b");
    assert_eq!(difference(|theirs| drop(theirs.fields.pop())), "field bias: only one of them has it");
    assert_eq!(
        difference(|theirs| theirs.fields[2].run_time_length = false),
        "field bias: its length is known at run time only, on one of them"
    );
    assert_eq!(difference(|_| ()), "structs Model and Model: fields nested differently");
    // Both at once: the first in layout order is named.
    assert_eq!(
        difference(|theirs| {
            theirs.fields[2].extents[0] = 8;
            theirs.fields[1].wire = Datatype::F32;
        }),
        "field head.weight: travels as bf16 against f32"
    );
}
