//! Reads what was scraped, by a reading of its own: no part of what wrote it.

use std::collections::BTreeMap;

/// The labels of a series.
pub(crate) type Labels = BTreeMap<String, String>;

/// What was scraped.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scrape {
    /// The kind of each metric, by its name as its first line says it.
    pub(crate) kinds: BTreeMap<String, String>,
    pub(crate) samples: Vec<(String, Labels, f64)>,
    pub(crate) ended: bool,
}

impl Scrape {
    pub(crate) fn read(text: &str) -> Self {
        let mut scrape = Self::default();
        assert!(text.ends_with('\n'));
        for line in text.lines() {
            assert!(!scrape.ended, "after the end: {line}");
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').unwrap();
                let known = scrape.kinds.insert(name.to_owned(), kind.to_owned());
                assert_eq!(known, None, "{name} is there twice");
            } else if line == "# EOF" {
                scrape.ended = true;
            } else if !line.starts_with("# ") {
                let (series, value) = line.rsplit_once(' ').unwrap();
                let (name, labels) = match series.split_once('{') {
                    Some((name, rest)) => (name, labels(rest.strip_suffix('}').unwrap())),
                    None => (series, Labels::new()),
                };
                let sample = (name.to_owned(), labels, value.parse().unwrap());
                scrape.samples.push(sample);
            }
        }
        let mut series: Vec<_> = scrape.samples.iter().map(|(name, labels, _)| (name, labels)).collect();
        series.sort();
        assert!(series.windows(2).all(|two| two[0] != two[1]), "a series is there twice");
        scrape
    }

    /// The sum of the series that have all of these labels.
    pub(crate) fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let all: Vec<_> = self.series(name, labels).collect();
        assert!(!all.is_empty(), "no series {name} {labels:?}");
        all.into_iter().map(|(_, value)| value).sum()
    }

    pub(crate) fn series<'a>(
        &'a self,
        name: &'a str,
        labels: &'a [(&'a str, &'a str)],
    ) -> impl Iterator<Item = (&'a Labels, f64)> {
        self.samples.iter().filter_map(move |(of, has, value)| {
            let all = labels
                .iter()
                .all(|(label, wanted)| has.get(*label).is_some_and(|value| value == wanted));
            (of == name && all).then_some((has, *value))
        })
    }
}

fn labels(text: &str) -> Labels {
    let mut labels = Labels::new();
    for pair in text.split("\",") {
        let (name, value) = pair.split_once("=\"").unwrap();
        let value = value.strip_suffix('"').unwrap_or(value);
        let known = labels.insert(name.to_owned(), value.to_owned());
        assert_eq!(known, None, "{name} is there twice: {text}");
    }
    labels
}
