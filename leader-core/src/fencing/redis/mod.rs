//! Fenced writes to Redis or Valkey: scripts that write and compare in one step.
//!
//! There is nothing here that talks to a server. A [`FencedScript`] is text, keys and arguments for `EVAL` with whatever client you have,
//! and reads the answer. The suites run them on Redis 7.0; they need 5 or newer.
//!
//! ```
//! use std::time::Duration;
//!
//! use leader_core::Tick;
//! use leader_core::fencing::redis::{FencedKey, FencedScript};
//!
//! /// With the `redis` crate.
//! async fn run(
//!     connection: &mut redis::aio::MultiplexedConnection,
//!     script: &FencedScript,
//! ) -> Result<Vec<Vec<u8>>, Box<dyn std::error::Error + Send + Sync>> {
//!     let mut command = redis::cmd("EVAL");
//!     command.arg(&*script.source).arg(script.keys.len()).arg(&script.keys).arg(&script.args);
//!     let answer: Vec<Vec<u8>> = command.query_async(connection).await?;
//!     Ok(script.read(&answer)?)
//! }
//!
//! async fn publish(
//!     connection: &mut redis::aio::MultiplexedConnection,
//!     tick: &Tick,
//! ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
//!     let prices = FencedKey::new("prices")?;
//!     run(connection, &prices.set(tick.fence(), "7 9 12")).await?;
//!     let status = FencedKey::new("status")?;
//!     run(connection, &status.hset(tick.fence(), [("state", "fresh"), ("count", "3")])).await?;
//!     // Anything else is a script of your own, which runs only if the fence is not lower.
//!     let trimmed = FencedKey::new("recent")?;
//!     let lua = "redis.call('LPUSH', KEYS[1], ARGV[1]) redis.call('LTRIM', KEYS[1], 0, 9) return redis.call('LLEN', KEYS[1])";
//!     let length = run(connection, &trimmed.eval(tick.fence(), lua).arg("12")).await?;
//!     println!("{} entries", String::from_utf8_lossy(&length[0]));
//!     Ok(())
//! }
//! ```
//!
//! A client that takes a command as words gets them from [`FencedScript::words`]; one that knows `EVALSHA` can use it: the text of a kind
//! of write never changes, keys and values are no part of it.
//!
//! # The guard
//!
//! Beside the data stands a key of our own, the guard, with the highest fence that was taken: for `prices` it is
//! `leader-guard:{prices}`. Why not a field of the data: a string has none, and whatever is deleted would forget it. After a
//! [`del`](FencedKey::del) the guard is still there, and an older run cannot write the key anew.
//!
//! The guard shares the data's slot of a Cluster, by a hash tag. A key that has a tag of its own keeps it: for `{shop}:prices` the guard
//! is `leader-guard-of:{shop}:prices`. A key with a `}` and no tag, such as `a}b`, can have no such companion, and [`FencedKey::new`] says
//! so. Several keys that are written as a whole share one guard by [`FencedKey::guarded_by`]. A user of the server's ACL needs the guards,
//! too: `~leader-guard*`.
//!
//! Each group counts for itself: a key is written by the runs of one group.
//!
//! # How long a guard lives
//!
//! For ever, unless you say otherwise: where it is gone, nothing tells an older run from the first. Where keys come and go by the million,
//! [`keep_guard`](FencedKey::keep_guard) lets guards end, and the rule is then: **without a guard no fence is taken that is older than
//! that span.** A fence tells its age, because none is lower than the microseconds since 1970 at which it was minted; and a guard lives
//! until both its last write and its own fence are as old as the span, and at least as long as the data's TTL. So whoever has a lower
//! fence than an expired guard is older than the span, and refused as [`Refused::Forgotten`]. The price is that a run which lasts
//! longer than the span is refused at keys that nobody has written lately: choose a span that no run reaches, hours rather than
//! minutes. All writers of a key must have the same one.
//!
//! # Where it does not hold
//!
//! - For commands without the guard: everything that writes the key has to go through a script.
//! - On a server that loses guards: by eviction (have `noeviction`), by a failover or restart that forgets acknowledged writes, or by
//!   `FLUSHALL`. With `keep_guard` only fences younger than the span are at risk then; and with it the server's clock must not go back.
//! - A write that fails for a reason of its own, such as `WRONGTYPE`, has raised the guard all the same.

mod key;

use std::borrow::Cow;

use super::Fenced;
pub use key::{FencedKey, KeyError};

/// A fenced write, ready for `EVAL`: made by [`FencedKey`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FencedScript {
    /// The script's text. It is the same for all writes of a kind.
    pub source: Cow<'static, str>,
    /// The keys: the guard, the data, and further keys of a script of your own.
    pub keys: Vec<String>,
    /// The arguments.
    pub args: Vec<Vec<u8>>,
    fence: u64,
}

impl FencedScript {
    /// A further key, for a [script of your own](FencedKey::eval). In a Cluster it must have the hash tag of the first.
    #[must_use]
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.keys.push(key.into());
        self
    }

    /// A further argument, for a [script of your own](FencedKey::eval).
    #[must_use]
    pub fn arg(mut self, arg: impl Into<Vec<u8>>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// The whole command as words: `EVAL`, the text, the number of keys, the keys, the arguments.
    #[must_use]
    pub fn words(&self) -> Vec<Vec<u8>> {
        let count = self.keys.len().to_string();
        let head = ["EVAL", &self.source, &count].map(|word| word.as_bytes().to_vec());
        let keys = self.keys.iter().map(|key| key.as_bytes().to_vec());
        head.into_iter().chain(keys).chain(self.args.iter().cloned()).collect()
    }

    /// Reads the answer, a flat list of text: what the write gave, if it was done.
    ///
    /// That is `OK` for a SET, the number of new fields for HSET, the number of keys for DEL, nothing for a raised guard; for a script of
    /// your own each value that it returned, numbers as text, nothing for a trailing `nil` or `false`.
    ///
    /// # Errors
    /// [`Refused`] when nothing was written. An error of the server, be it of your own script, is an error of your client.
    pub fn read<T: AsRef<[u8]>>(&self, answer: &[T]) -> Result<Vec<Vec<u8>>, Refused> {
        let words: Vec<&[u8]> = answer.iter().map(AsRef::as_ref).collect();
        let number = |word: &[u8]| std::str::from_utf8(word).ok()?.parse().ok();
        let (guard, key) = (self.keys[0].clone(), self.keys[1].clone());
        match *words {
            [b"accepted", ref given @ ..] => Ok(given.iter().map(|word| word.to_vec()).collect()),
            [b"fenced", held] => Err(Refused::Fenced(Fenced::by(key, self.fence, number(held)))),
            [b"forgotten", lowest] if number(lowest).is_some() => Err(Refused::Forgotten {
                key,
                fence: self.fence,
                lowest: number(lowest).unwrap_or_default(),
            }),
            [b"odd", found] => Err(Refused::OddGuard {
                guard,
                found: String::from_utf8_lossy(found).into_owned(),
            }),
            _ => Err(Refused::Unread {
                answer: words
                    .iter()
                    .map(|word| String::from_utf8_lossy(word).into_owned())
                    .collect(),
            }),
        }
    }
}

/// Why a fenced write to Redis was not done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// A newer run has written.
    #[error(transparent)]
    Fenced(#[from] Fenced),
    /// There is no guard, and the fence is older than guards are kept: a newer run may have written and been forgotten.
    #[error(
        "`{key}` refuses fence {fence}: it has no guard any more, and without one the lowest fence is {lowest}, because a newer run may \
         have written and been forgotten; end this run, and if runs can last this long, keep guards for longer"
    )]
    Forgotten {
        /// The key.
        key: String,
        /// The fence that was refused.
        fence: u64,
        /// The lowest that was taken at that moment.
        lowest: u64,
    },
    /// What stands in the guard's place is none: another program uses this key.
    #[error(
        "`{guard}` is no guard: it holds `{found}`; nothing was written; delete it if nobody needs it, or name another guard for the \
         data (`FencedKey::guarded_by`)"
    )]
    OddGuard {
        /// The guard's key.
        guard: String,
        /// Its type, or what it holds.
        found: String,
    },
    /// The answer is not one of this script.
    #[error(
        "the answer {answer:?} is not one of a fenced script: give `read` the whole answer to `EVAL`, as a list of text"
    )]
    Unread {
        /// The answer.
        answer: Vec<String>,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read() {
        let script = FencedKey::new("prices").unwrap().set(5, "x");
        assert_eq!(script.read(&["accepted", "OK"]), Ok(vec![b"OK".to_vec()]));
        assert_eq!(script.read(&[b"accepted".to_vec()]), Ok(vec![]));
        let fenced = Fenced::by("prices", 5, Some(9));
        assert_eq!(script.read(&["fenced", "9"]), Err(Refused::Fenced(fenced)));
        let text = |answer: &[&str]| script.read(answer).unwrap_err().to_string();
        assert!(text(&["forgotten", "70"]).contains("the lowest fence is 70"));
        assert!(text(&["odd", "hash"]).starts_with("`leader-guard:{prices}` is no guard: it holds `hash`"));
        for strange in [&[][..], &["OK"], &["fenced"], &["forgotten", "soon"]] {
            assert!(text(strange).contains("not one of a fenced script"), "{strange:?}");
        }
    }
}
