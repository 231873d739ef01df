//! What cannot work is a compile error that says what to write instead: `tests/ui/*.rs` and what the compiler says of each.
//! After a change, `TRYBUILD=overwrite cargo test -p gradwire-tests --test derive ui` writes the messages anew.

#[test]
fn mistakes_are_told() {
    trybuild::TestCases::new().compile_fail("ui/*.rs");
}
