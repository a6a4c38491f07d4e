//! What `tests/TRACK_RECORD.md` names is there, and every test that is named after a report is named by it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use super::{root, sources};

const RECORD: &str = "tests/TRACK_RECORD.md";

/// Where tests are.
const PACKAGES: &[&str] = &["leader-core/src", "leader-macros/src", "examples", "tests"];

/// A test: its file below the root, and its function.
type Test = (String, String);

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn record() -> String {
    fs::read_to_string(root().join(RECORD)).expect("the record")
}

/// What stands between backticks.
fn spans(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// The tests that a text names, as `path::function`.
fn named(text: &str) -> BTreeSet<Test> {
    let pair = |span: &str| {
        let (path, function) = span.split_once(".rs::")?;
        Some((format!("{path}.rs"), function.to_owned()))
    };
    spans(text).filter_map(pair).collect()
}

/// The functions of a source that run as tests: those with the attribute, and those that a macro runs on each store.
fn tests(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut attribute = false;
    for line in text.lines().map(str::trim) {
        if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
            attribute = true;
        } else if let Some(name) = function(line) {
            if std::mem::take(&mut attribute) {
                found.insert(name);
            }
        } else if !line.starts_with("#[") && !line.starts_with("//") {
            attribute = false;
        }
    }
    let lists = ["on_each_store!(", "on_each_server!("].map(|list| text.split(list).skip(1));
    for list in lists.into_iter().flatten() {
        let list = list.split(')').next().unwrap_or_default();
        let names = list.split(',').map(str::trim).filter(|name| !name.is_empty());
        let defined = names.filter(|name| text.contains(&format!("fn {name}(")));
        found.extend(defined.map(str::to_owned));
    }
    found
}

/// The name of the function that a line begins.
fn function(line: &str) -> Option<String> {
    let line = line.strip_prefix("pub ").unwrap_or(line);
    let line = line.strip_prefix("async ").unwrap_or(line);
    let name = line.strip_prefix("fn ")?;
    Some(name.chars().take_while(|c| is_word(*c)).collect())
}

/// The tests of all files.
fn all() -> BTreeMap<String, BTreeSet<String>> {
    let mut all = BTreeMap::new();
    for package in PACKAGES {
        for (path, text) in sources(&root().join(package)) {
            let path = path.strip_prefix(root()).expect("below the root");
            all.insert(path.to_string_lossy().into_owned(), tests(&text));
        }
    }
    all
}

/// Whether a name is that of a report: `case_` or `leases_` and a number, or `fault_` and a letter.
fn is_of_a_report(name: &str) -> bool {
    let number = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit());
    name.strip_prefix("case_").is_some_and(number)
        || name.strip_prefix("leases_").is_some_and(number)
        || name
            .strip_prefix("fault_")
            .is_some_and(|rest| rest.as_bytes().get(1) == Some(&b'_'))
}

/// The rows of the tables without their heads, and whether each is to say what holds it.
fn rows(text: &str) -> Vec<(&str, bool)> {
    let lines: Vec<_> = text.lines().collect();
    let (mut rows, mut held) = (Vec::new(), false);
    for (at, line) in lines.iter().enumerate().filter(|(_, line)| line.starts_with("| ")) {
        if lines.get(at + 1).is_some_and(|below| below.starts_with("|---")) {
            held = line.ends_with("| held by |");
        } else {
            rows.push((*line, held));
        }
    }
    rows
}

#[test]
fn every_test_of_the_record_exists() {
    let (record, all) = (record(), all());
    let mut wrong = Vec::new();
    let named = named(&record);
    for (path, function) in &named {
        match all.get(path) {
            None => wrong.push(format!("`{path}` is no source")),
            Some(tests) if !tests.contains(function) => wrong.push(format!("`{path}` has no test `{function}`")),
            Some(_) => {}
        }
    }
    let is_file = |span: &&str| span.starts_with(char::is_alphabetic) && span.contains('/') && !span.contains("::");
    let files = spans(&record).filter(is_file);
    for file in files.filter(|file| !root().join(file).exists()) {
        wrong.push(format!("`{file}` is not there"));
    }
    assert!(wrong.is_empty(), "{RECORD}:\n{}", wrong.join("\n"));
    assert!(named.len() > 100, "only {} tests are read", named.len());
}

#[test]
fn every_test_of_a_report_is_in_the_record() {
    let named = named(&record());
    let mut missing = Vec::new();
    for (path, tests) in all() {
        for test in tests.into_iter().filter(|test| is_of_a_report(test)) {
            if !named.contains(&(path.clone(), test.clone())) {
                missing.push(format!("`{path}::{test}`"));
            }
        }
    }
    assert!(missing.is_empty(), "{RECORD} lacks\n{}", missing.join("\n"));
}

#[test]
fn every_row_of_the_record_says_what_holds_it() {
    let text = record();
    let (mut wrong, mut seen) = (Vec::new(), BTreeSet::new());
    let rows = rows(&text);
    for (row, held) in &rows {
        let first = row.split(" | ").next().unwrap_or_default();
        if !seen.insert(first) {
            wrong.push(format!("twice: {row}"));
        }
        if *held && named(row).is_empty() && !row.contains("Not yet: ") {
            wrong.push(format!("held by nothing: {row}"));
        }
    }
    assert!(wrong.is_empty(), "{RECORD}:\n{}", wrong.join("\n"));
    let held = rows.iter().filter(|(_, held)| *held).count();
    assert!(held > 100, "only {held} rows are read");
}
