//! Fenced writes to a SQL database: one condition in the statement, and a look at how many rows it changed.
//!
//! There is nothing here that talks to a database: the statements are text, and work with any driver. They are tested on
//! PostgreSQL; SQLite knows `ON CONFLICT` too.
//!
//! # One row
//!
//! The row keeps the fence of its last write beside what it says, as `fence bigint NOT NULL`:
//!
//! ```sql
//! UPDATE report SET body = $1, fence = $2 WHERE id = $3 AND fence <= $2;
//!
//! INSERT INTO report (id, body, fence) VALUES ($3, $1, $2)
//!     ON CONFLICT (id) DO UPDATE SET body = excluded.body, fence = excluded.fence
//!     WHERE report.fence <= excluded.fence;
//! ```
//!
//! ```
//! use leader_core::Tick;
//! use leader_core::fencing::sql;
//! # struct Db;
//! # impl Db {
//! #     async fn execute(&self, _: &str, _: &[&(dyn std::fmt::Debug + Sync)]) -> Result<u64, std::io::Error> { Ok(1) }
//! # }
//!
//! async fn save(db: &Db, tick: &Tick, id: i64, body: &str) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
//!     let update = "UPDATE report SET body = $1, fence = $2 WHERE id = $3 AND fence <= $2";
//!     // Any driver tells how many rows a statement has changed.
//!     let rows = db.execute(update, &[&body, &sql::bigint(tick.fence())?, &id]).await?;
//!     sql::wrote(rows, &format!("report {id}"), tick.fence())?;
//!     Ok(())
//! }
//! ```
//!
//! `<=`, not `<`: one run writes as often as it likes, and may write again after an answer was lost.
//!
//! The condition needs no level of isolation. Where two statements meet, the second one waits for the first one's transaction, and
//! looks at the row again: under `READ COMMITTED` it changes no row. Under `REPEATABLE READ` and `SERIALIZABLE` PostgreSQL ends
//! it with the error 40001 instead, "could not serialize access"; begin that transaction again, as always with this error, and the
//! second try changes no row.
//!
//! # Many rows, and rows that come and go
//!
//! A statement that changes some of its rows tells nothing of those that refused, and a row that was deleted has forgotten its fence,
//! so that an older run can insert it again. For both there is a table of guards: [`GUARD_TABLE`], one row for whatever is written as a
//! whole. The first statement of the transaction is [`RAISE`]. It changes one row, or none where a newer run has been here; and whoever
//! comes second waits until the transaction has ended, as with `SELECT … FOR UPDATE`.
//!
//! ```
//! use leader_core::Tick;
//! use leader_core::fencing::sql;
//! # struct Transaction;
//! # impl Transaction {
//! #     async fn execute(&self, _: &str, _: &[&(dyn std::fmt::Debug + Sync)]) -> Result<u64, std::io::Error> { Ok(1) }
//! #     async fn commit(self) -> Result<(), std::io::Error> { Ok(()) }
//! # }
//!
//! async fn rebuild(
//!     transaction: Transaction,
//!     tick: &Tick,
//! ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
//!     // Each group counts for itself: its name is part of the resource's.
//!     let resource = format!("{}/totals", tick.group());
//!     let rows = transaction.execute(sql::RAISE, &[&resource, &sql::bigint(tick.fence())?]).await?;
//!     sql::raised(rows, &resource, tick.fence())?; // dropped here, the transaction is rolled back
//!
//!     // From here on nobody with a lower fence writes before this transaction, and nobody at all during it.
//!     transaction.execute("DELETE FROM total", &[]).await?;
//!     transaction.execute("INSERT INTO total SELECT account, sum(amount) FROM entry GROUP BY account", &[]).await?;
//!     transaction.commit().await?;
//!     Ok(())
//! }
//! ```
//!
//! Raise first, then read: what a run computes from what it has read before it raised may rest on what an older run changes after.
//!
//! # Where it does not hold
//!
//! - For statements without the condition: everything that writes to the rows has to carry it.
//! - On MySQL a statement that changes a row to what it was counts no row, unless the client asks for found rows (`CLIENT_FOUND_ROWS`,
//!   as `sqlx` does). `ON CONFLICT` is not known there.
//! - On a replica that was promoted without the last transactions: they are gone, and the fence with them.

use super::{FenceTooHigh, Fenced};

/// The table of guards: one row for each resource, with the highest fence it has taken. Put it among your migrations.
pub const GUARD_TABLE: &str = "\
CREATE TABLE IF NOT EXISTS leader_fence (
    resource text PRIMARY KEY,
    fence bigint NOT NULL
)";

/// Raises a guard: `$1` the resource, `$2` the fence ([`bigint`]). One row is changed, or none where a higher fence was taken; give the
/// number to [`raised`].
///
/// As the first statement of a transaction it holds up all others that raise the same guard, until this one has ended.
pub const RAISE: &str = "\
INSERT INTO leader_fence AS guard (resource, fence) VALUES ($1, $2)
    ON CONFLICT (resource) DO UPDATE SET fence = excluded.fence
    WHERE guard.fence <= excluded.fence";

/// Reads a guard: `$1` the resource. For [`Fenced::holding`], after a refusal.
pub const HELD: &str = "SELECT fence FROM leader_fence WHERE resource = $1";

/// A fence as a `BIGINT`, which drivers know as `i64`.
///
/// # Errors
/// [`FenceTooHigh`] above [`i64::MAX`]. No fence is as high as that.
pub fn bigint(fence: u64) -> Result<i64, FenceTooHigh> {
    i64::try_from(fence).map_err(|_| FenceTooHigh { fence })
}

/// What a conditional write has done: `rows` is the number of rows that it changed, as the driver tells it; `resource` names what was
/// written, for the message.
///
/// A statement for several rows may have changed some and not others, which their number does not tell: raise a guard for them.
///
/// # Errors
/// [`Fenced`] when no row was changed. For an `UPDATE` or `DELETE` that may also mean that there is no such row, as the message says.
pub fn wrote(rows: u64, resource: &str, fence: u64) -> Result<(), Fenced> {
    if rows > 0 {
        return Ok(());
    }
    Err(Fenced {
        may_be_missing: true,
        ..Fenced::by(resource, fence, None)
    })
}

/// What [`RAISE`] has done: `rows` is the number of rows that it changed, as the driver tells it.
///
/// # Errors
/// [`Fenced`] when a newer run has raised the guard: roll the transaction back.
pub fn raised(rows: u64, resource: &str, fence: u64) -> Result<(), Fenced> {
    if rows > 0 {
        Ok(())
    } else {
        Err(Fenced::by(resource, fence, None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_fits_or_is_refused() {
        assert_eq!(bigint(0), Ok(0));
        assert_eq!(bigint(9_223_372_036_854_775_807), Ok(i64::MAX));
        let error = bigint(9_223_372_036_854_775_808).unwrap_err();
        assert!(
            error.to_string().starts_with("9223372036854775808 is no fence"),
            "{error}"
        );
    }

    #[test]
    fn one_row_is_enough() {
        assert_eq!(wrote(1, "report", 5), Ok(()));
        assert_eq!(raised(1, "report", 5), Ok(()));
        assert_eq!(raised(0, "report", 5), Err(Fenced::by("report", 5, None)));
    }
}
