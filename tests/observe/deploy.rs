//! Alert rules and the dashboard: every metric and every label in them is one that there is.

use std::collections::BTreeSet;

use leader_core::{MetricKind, Metrics};
use serde_json::Value;

const RULES: &str = include_str!("../../examples/deploy/rules.yml");
const DASHBOARD: &str = include_str!("../../examples/deploy/grafana/leader-core.json");

/// The names under which something is scraped.
fn scraped() -> BTreeSet<String> {
    let names = Metrics::ALL.iter().flat_map(|metric| match metric.kind {
        MetricKind::Histogram => ["_bucket", "_sum", "_count"]
            .map(|suffix| format!("{}{suffix}", metric.name))
            .to_vec(),
        _ => vec![metric.name.to_owned()],
    });
    names.collect()
}

/// Every word of a text that may be a metric's name.
fn named(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    words.filter(|word| word.starts_with("leader_")).collect()
}

/// The labels that an expression matches, groups by or shows.
fn labels(text: &str) -> BTreeSet<&str> {
    let mut labels = BTreeSet::new();
    for (before, _) in text
        .match_indices("=~\"")
        .chain(text.match_indices("=\""))
        .chain(text.match_indices("!=\""))
    {
        let name = text[..before].trim_end_matches(['!', '=', '~']);
        labels.insert(
            name.rsplit(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
                .next()
                .unwrap_or(""),
        );
    }
    for part in text.split("by (").skip(1) {
        labels.extend(part.split(')').next().unwrap().split(',').map(str::trim));
    }
    labels
}

/// Prometheus keeps a label `job` of its own and calls ours by another name.
fn known_labels() -> BTreeSet<&'static str> {
    let ours = Metrics::ALL.iter().flat_map(|metric| metric.labels).copied();
    let ours = ours.map(|label| if label == "job" { "exported_job" } else { label });
    ours.chain(["le", "job", "instance"]).collect()
}

fn look_at(what: &str, text: &str) {
    let scraped = scraped();
    for name in named(text) {
        assert!(scraped.contains(name), "{what}: there is no {name}");
    }
    let known = known_labels();
    for label in labels(text) {
        assert!(known.contains(label), "{what}: no metric has a label {label}: {text}");
    }
}

#[test]
fn alerts_are_about_metrics_that_there_are() {
    let expressions: Vec<_> = RULES
        .lines()
        .filter_map(|line| line.trim().strip_prefix("expr: "))
        .collect();
    assert_eq!(expressions.len(), RULES.matches("- alert: ").count());
    assert!(expressions.len() > 10);
    for expression in expressions {
        look_at("rules.yml", expression);
    }
    // What they tell people to look at, too.
    for word in RULES.split('`').filter(|word| word.starts_with("leader_")) {
        assert!(scraped().contains(word), "there is no {word}");
    }
}

#[test]
fn the_dashboard_shows_metrics_that_there_are() {
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    assert!(dashboard["id"].is_null() && dashboard["uid"].is_string());
    let mut expressions = Vec::new();
    let panels = dashboard["panels"].as_array().unwrap();
    for panel in panels.iter().filter(|panel| panel["type"] != "row") {
        let title = panel["title"].as_str().unwrap();
        assert!(!panel["description"].as_str().unwrap().is_empty(), "{title}");
        assert!(panel["fieldConfig"]["defaults"]["unit"].is_string(), "{title}");
        // Alerts that a panel names are there.
        for alert in panel["description"]
            .as_str()
            .unwrap()
            .split(|c: char| !c.is_alphanumeric())
        {
            let is_alert = alert.chars().filter(char::is_ascii_uppercase).count() > 1;
            assert!(
                !is_alert || RULES.contains(&format!("- alert: {alert}\n")),
                "{title}: {alert}"
            );
        }
        for target in panel["targets"].as_array().unwrap() {
            assert_eq!(target["datasource"]["uid"], "${datasource}", "{title}");
            let expression = target["expr"].as_str().unwrap();
            assert!(expression.contains("job=~\"$scrape\""), "{title}: {expression}");
            expressions.push(expression);
        }
    }
    let variables = dashboard["templating"]["list"].as_array().unwrap();
    expressions.extend(
        variables
            .iter()
            .filter_map(|variable| variable["query"]["query"].as_str()),
    );
    expressions.extend(
        dashboard["annotations"]["list"]
            .as_array()
            .unwrap()
            .iter()
            .map(|list| list["expr"].as_str().unwrap()),
    );
    assert!(expressions.len() > 20);
    for expression in expressions {
        look_at("the dashboard", expression);
    }
}
