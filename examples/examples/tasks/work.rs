//! The task: one invoice, charged.

use std::time::Duration;

use leader_core::{State, Task, task};
use serde::{Deserialize, Serialize};

use crate::ledger::Ledger;

/// The queue that invoices wait in.
pub const QUEUE: &str = "invoices";
/// The election whose leader dispatches them: the queue has one part.
pub const GROUP: &str = "dispatch:invoices:0";

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Invoice {
    pub number: u64,
    pub cents: u64,
}

impl Invoice {
    /// Some invoice of that number: whoever adds them up can compute the sum.
    pub fn numbered(number: u64) -> Self {
        let cents = 100 + number * 7919 % 9901;
        Self { number, cents }
    }
}

/// How long an invoice takes besides its charge.
#[derive(Clone, Copy, Debug)]
pub struct Toil(pub Duration);

/// Charges an invoice. It may be run again at any point: the row in the ledger says what was done already.
#[task(queue = QUEUE, retries = 10, backoff = "100ms..2s")]
pub async fn charge(
    invoice: Invoice,
    task: Task,
    State(ledger): State<Ledger>,
    State(toil): State<Toil>,
) -> anyhow::Result<()> {
    // Stands for what is looked up before, and for the letter that is written afterwards.
    let before = toil.0 / 16 * u32::try_from(invoice.number % 16).unwrap_or(0);
    tokio::time::sleep(before).await;
    ledger.charge(&invoice, &task).await?;
    tokio::time::sleep(toil.0.saturating_sub(before)).await;
    Ok(())
}
