//! Runnable examples of `leader-core`; see the `examples` folder.
//!
//! The library holds what they share: the reading of a command line.

use std::str::FromStr;
use std::time::Duration;

/// A command line of the form `--name value`, `--name=value` and `--flag`.
#[derive(Debug)]
pub struct CommandLine {
    usage: &'static str,
    rest: Vec<String>,
}

impl CommandLine {
    /// The arguments of this process. `--help` prints `usage` and ends it.
    #[must_use]
    pub fn of_process(usage: &'static str) -> Self {
        let rest: Vec<String> = std::env::args().skip(1).collect();
        if rest.iter().any(|word| word == "--help" || word == "-h") {
            println!("{usage}");
            std::process::exit(0);
        }
        Self { usage, rest }
    }

    /// Takes a flag.
    pub fn flag(&mut self, name: &str) -> bool {
        let at = self.rest.iter().position(|word| word == name);
        at.map(|at| self.rest.remove(at)).is_some()
    }

    /// Takes an option's value; the last one counts when it is given twice.
    pub fn value(&mut self, name: &str) -> Option<String> {
        let mut value = None;
        while let Some(at) = self.rest.iter().position(|word| {
            let tail = word.strip_prefix(name);
            tail.is_some_and(|tail| tail.is_empty() || tail.starts_with('='))
        }) {
            let word = self.rest.remove(at);
            value = Some(match word.split_once('=') {
                Some((_, value)) => value.to_owned(),
                None if self.rest.get(at).is_some_and(|next| !next.starts_with("--")) => self.rest.remove(at),
                None => self.refuse(&format!("`{name}` needs a value")),
            });
        }
        value
    }

    /// Takes an option's value and reads it; `what` says what it should be.
    pub fn parsed<T: FromStr>(&mut self, name: &str, what: &str) -> Option<T> {
        let text = self.value(name)?;
        match text.parse() {
            Ok(value) => Some(value),
            Err(_) => self.refuse(&format!("`{name} {text}`: write {what}")),
        }
    }

    /// Takes an option whose value is a span of time.
    pub fn span(&mut self, name: &str) -> Option<Duration> {
        let text = self.value(name)?;
        match span(&text) {
            Ok(span) => Some(span),
            Err(message) => self.refuse(&format!("`{name}`: {message}")),
        }
    }

    /// Takes an option that must be given.
    pub fn required(&mut self, name: &str) -> String {
        self.value(name)
            .unwrap_or_else(|| self.refuse(&format!("`{name}` is missing")))
    }

    /// Refuses whatever has not been taken.
    pub fn finish(self) {
        if let Some(word) = self.rest.first() {
            self.refuse(&format!("`{word}` is not known"));
        }
    }

    /// Ends the process with a message and exit code 2.
    pub fn refuse(&self, message: &str) -> ! {
        eprintln!("error: {message}\n\n{}", self.usage);
        std::process::exit(2)
    }
}

/// A positive span of time, such as `2s`, `1500ms` or `1m30s`.
///
/// # Errors
/// The whole message for people.
pub fn span(text: &str) -> Result<Duration, String> {
    match leader_core::parse_duration(text) {
        Ok(Duration::ZERO) => Err(format!("`{text}`: the span must be positive")),
        Ok(span) => Ok(span),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(words: &[&str]) -> CommandLine {
        CommandLine {
            usage: "",
            rest: words.iter().map(|word| (*word).to_owned()).collect(),
        }
    }

    #[test]
    fn options_are_taken_in_any_order_and_both_forms() {
        let mut line = line(&["--ttl=2s", "--json", "--seconds", "12", "--id", "a"]);
        assert_eq!(line.parsed::<u64>("--seconds", "a number"), Some(12));
        assert_eq!(line.span("--ttl"), Some(Duration::from_secs(2)));
        assert!(line.flag("--json") && !line.flag("--json"));
        assert_eq!(line.value("--id").as_deref(), Some("a"));
        assert_eq!(line.value("--id"), None);
        line.finish();
    }

    #[test]
    fn spans_are_positive() {
        assert_eq!(span("1500ms"), Ok(Duration::from_millis(1500)));
        assert_eq!(span("1m30s"), Ok(Duration::from_secs(90)));
        for bad in ["", "4", "-3s", "0s", "soon"] {
            assert!(span(bad).is_err(), "{bad}");
        }
    }
}
