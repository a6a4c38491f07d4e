//! What the compiler says: one mistake a file, each message on the token that is wrong.
//!
//! The expected texts are those of one toolchain, and with another the suite says so instead of comparing;
//! `TRYBUILD=overwrite` writes them anew.

/// The compiler whose texts are expected.
const COMPILER: &str = "rustc 1.95.";

#[test]
fn mistakes_are_told_where_they_are() {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = std::process::Command::new(rustc)
        .arg("--version")
        .output()
        .expect("a compiler");
    let version = String::from_utf8_lossy(&version.stdout).into_owned();
    if !version.starts_with(COMPILER) && std::env::var_os("TRYBUILD").is_none() {
        eprintln!("NOT COMPARED: the expected texts are those of {COMPILER}x, and this is {version}");
        return;
    }
    let cases = trybuild::TestCases::new();
    cases.compile_fail("ui/fail/*.rs");
}
