//! What came of the run, and what is wrong with it.

use std::time::Duration;

use jiff::Timestamp;
use leader_core::TaskFigures;

use crate::ledger::Sums;
use crate::work::Invoice;

/// The whole run, in numbers.
#[derive(Debug)]
pub struct Report {
    pub due: u64,
    pub midnight: Timestamp,
    pub sums: Sums,
    pub figures: TaskFigures,
}

impl Report {
    /// What waits or runs still.
    fn backlog(&self) -> u64 {
        self.figures.pending + self.figures.dispatched + self.figures.running
    }

    /// What is neither charged nor will be.
    fn missed(&self) -> u64 {
        self.due
            .saturating_sub(self.sums.charged)
            .saturating_sub(self.backlog())
    }

    fn drain(&self) -> Duration {
        Duration::try_from(self.sums.last.duration_since(self.midnight)).unwrap_or_default()
    }

    /// The table at the end.
    pub fn table(&self) -> Vec<String> {
        let (sums, counts) = (&self.sums, &self.figures.counts);
        let drain = self.drain();
        #[allow(clippy::cast_precision_loss, reason = "for people")]
        let rate = sums.charged as f64 / drain.as_secs_f64().max(0.001);
        let rows = [
            ("due", self.due, "invoices, all at midnight"),
            (
                "dispatched",
                counts.dispatched,
                "moves to the workers, those after a lost attempt included",
            ),
            ("executed", sums.charged, "rows in the ledger, each written once"),
            (
                "duplicates",
                sums.duplicates,
                "invoices that a second task would have charged",
            ),
            ("early", sums.early, "rows written before midnight"),
            ("attempts", counts.started, "bodies begun"),
            (
                "lost attempts",
                counts.lost,
                "with a killed instance, and made again elsewhere",
            ),
            (
                "confirmed",
                sums.confirmed,
                "attempts that found the row of an earlier one: nothing is charged again",
            ),
            ("late results", counts.late, "refused by the queue"),
            (
                "late writes",
                sums.refused,
                "refused by the ledger, for a fence that is too low",
            ),
            ("missed", self.missed(), "neither charged nor waiting"),
            ("backlog", self.backlog(), "waiting or running"),
        ];
        let line = |(name, number, what): (&str, u64, &str)| format!("  {name:<14} {number:>12}   {what}");
        let mut lines: Vec<_> = rows.into_iter().map(line).collect();
        lines.push(format!(
            "  {:<14} {:>12.3}   s, from midnight to the last row",
            "drain time",
            drain.as_secs_f64()
        ));
        lines.push(format!("  {:<14} {rate:>12.0}   invoices a second", "rate"));
        lines
    }

    /// What may not be.
    pub fn wrong(&self) -> Vec<String> {
        let sums = &self.sums;
        let mut wrong = Vec::new();
        let cents = (0..self.due).map(|number| Invoice::numbered(number).cents).sum::<u64>();
        if (sums.charged, sums.cents) != (self.due, cents) {
            wrong.push(format!(
                "{} of {} invoices were charged, {} of {cents} cents",
                sums.charged, self.due, sums.cents
            ));
        }
        for (what, count) in [
            ("charged twice", sums.duplicates),
            ("missed", self.missed()),
            ("charged before midnight", sums.early),
        ] {
            if count > 0 {
                wrong.push(format!("{count} invoices were {what}"));
            }
        }
        wrong
    }
}
