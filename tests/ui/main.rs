//! What the compiler says: one mistake a file, each message on the token that is wrong.
//!
//! The expected texts are those of the toolchain that the workspace is tested with; `TRYBUILD=overwrite` writes them anew.

#[test]
fn mistakes_are_told_where_they_are() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("ui/fail/*.rs");
}
