//! How often a failed run of a job is tried again: for each setting the environment's word, else the code's, else the attribute's.

use super::wish::{By, JobSettings, Wishes};
use crate::schedule::{Backoff, MOST_RETRIES};

/// What a job's runs get that fail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tries {
    pub(super) retries: u32,
    pub(super) backoff: Backoff,
}

impl JobSettings {
    /// How often a run that failed is tried again, up to 1000 times; 0 for never. More is an error of the start.
    pub fn retries(mut self, retries: u32) -> Self {
        self.retries = Some(retries);
        self
    }

    /// How long a run that failed pauses before its next try: the first pause, such as `"1s"`, which doubles up to 60 s, or the first
    /// and the longest, such as `"1s..5m"`. A bad one is an error of the start.
    pub fn backoff(mut self, backoff: &str) -> Self {
        self.backoff = Some(backoff.to_owned());
        self
    }
}

impl Wishes<'_> {
    pub(super) fn tries(&mut self, changes: &JobSettings) -> Tries {
        let environment = self.var("backoff").map(|text| (text, By::Environment));
        let code = || changes.backoff.clone().map(|text| (text, By::Code));
        let mut backoff = self.record.backoff.unwrap_or_default();
        if let Some((text, by)) = environment.or_else(code) {
            match Backoff::read(&text) {
                Ok(read) => backoff = read,
                Err(error) => self.refuse("backoff", by, &text, error.message(&text).as_str().to_owned()),
            }
        }
        let retries = self.retries(changes);
        Tries { retries, backoff }
    }

    fn retries(&mut self, changes: &JobSettings) -> u32 {
        let given = match (self.var("retries"), changes.retries) {
            (Some(text), _) => Some((text.parse().ok(), text, By::Environment)),
            (None, Some(count)) => Some((Some(count), count.to_string(), By::Code)),
            (None, None) => None,
        };
        match given {
            None => self.record.retries,
            Some((Some(count), ..)) if count <= MOST_RETRIES => count,
            Some((_, text, by)) => {
                self.refuse(
                    "retries",
                    by,
                    &text,
                    format!("write a whole number from 0 to {MOST_RETRIES}"),
                );
                0
            }
        }
    }
}
