//! What a task is called in the whole fleet, and what makes a new name.

use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;

use crate::names::QueueName;
use crate::store::tasks::Shard;

/// Which task it is: its queue, the part of the queue that it lives in, and a key that no other task of that part has.
///
/// Written as `<queue>~<shard>~<key>`, and read again from that:
///
/// ```
/// use leader_core::TaskId;
///
/// let id: TaskId = "invoices~2~01JDTQ7VN8R4S3H6Z5W0M9K1XB".parse()?;
/// assert_eq!((id.queue().as_str(), id.shard()), ("invoices", 2));
/// assert_eq!(id.to_string(), "invoices~2~01JDTQ7VN8R4S3H6Z5W0M9K1XB");
/// # Ok::<(), leader_core::TaskIdError>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId {
    shard: Shard,
    key: Arc<str>,
}

impl TaskId {
    pub(crate) fn new(shard: Shard, key: impl Into<Arc<str>>) -> Self {
        Self { shard, key: key.into() }
    }

    /// The queue.
    #[must_use]
    pub fn queue(&self) -> &QueueName {
        &self.shard.queue
    }

    /// Which part of the queue, from 0.
    #[must_use]
    pub fn shard(&self) -> u32 {
        self.shard.index
    }

    /// What the task is called within that part.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Where the store keeps it.
    pub(crate) fn place(&self) -> &Shard {
        &self.shard
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}~{}~{}", self.shard.queue, self.shard.index, self.key)
    }
}

impl fmt::Debug for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Why a text is no [`TaskId`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no task's id: {reason}; write it as it was told, `<queue>~<shard>~<key>`")]
#[non_exhaustive]
pub struct TaskIdError {
    /// The refused text, cut to a readable length.
    pub text: String,
    reason: String,
}

/// More of a refused text is not shown.
const SHOWN: usize = 200;

impl FromStr for TaskId {
    type Err = TaskIdError;

    fn from_str(text: &str) -> Result<Self, TaskIdError> {
        read(text).map_err(|reason| TaskIdError {
            text: text.chars().take(SHOWN).collect(),
            reason,
        })
    }
}

fn read(text: &str) -> Result<TaskId, String> {
    let mut parts = text.splitn(3, '~');
    let (Some(queue), Some(index), Some(key)) = (parts.next(), parts.next(), parts.next()) else {
        return Err("it has not three parts with `~` between them".to_owned());
    };
    let queue = QueueName::new(queue.to_owned()).map_err(|error| error.to_string())?;
    // One spelling for each: two texts of one id would be two ids for whoever compares them.
    let Some(index) = index.parse::<u32>().ok().filter(|read| read.to_string() == index) else {
        return Err(format!("its shard `{index}` is no number"));
    };
    if key.is_empty() {
        return Err("its key is empty".to_owned());
    }
    if let Some(odd) = key.chars().find(|c| c.is_control()) {
        return Err(format!("its key contains {odd:?}"));
    }
    Ok(TaskId::new(Shard { queue, index }, key))
}

/// The digits of Crockford: no letter that is taken for another, and sorted as numbers are.
const DIGITS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// Where the keys of new tasks come from: the system's chance, or in a simulation what follows from a seed.
#[derive(Debug, Default)]
pub(crate) struct Keys(Option<Mutex<u64>>);

impl Keys {
    /// Those of one process in a simulation.
    pub(crate) fn seeded(seed: u64) -> Self {
        Self(Some(Mutex::new(seed)))
    }

    /// A key for a new task: a ULID. Later ones sort behind those of earlier milliseconds.
    pub(crate) fn fresh(&self, now: Timestamp) -> String {
        key_of(now, (u128::from(self.number()) << 64) | u128::from(self.number()))
    }

    fn number(&self) -> u64 {
        let Some(seeded) = &self.0 else { return random() };
        // SplitMix64: Steele, Lea and Flood, 2014.
        let mut state = seeded.lock().unwrap_or_else(PoisonError::into_inner);
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

/// The key that time and chance make: 48 bits of milliseconds, and the last 80 of the random ones.
pub(crate) fn key_of(now: Timestamp, random: u128) -> String {
    const MOST: u64 = (1 << 48) - 1;
    let millis = u64::try_from(now.as_millisecond()).unwrap_or(0).min(MOST);
    let whole = (u128::from(millis) << 80) | (random & ((1 << 80) - 1));
    let digit = |at: u32| {
        let index = usize::try_from((whole >> (5 * at)) & 31).expect("five bits are an index");
        char::from(DIGITS[index])
    };
    (0..26).rev().map(digit).collect()
}

/// A number that no other call gives: the standard library seeds its hashers from the system's randomness, each otherwise.
fn random() -> u64 {
    let hasher = RandomState::new().build_hasher();
    hasher.finish() ^ u64::from(std::process::id()).rotate_left(32)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn an_id_is_read_as_it_was_written() {
        for text in [
            "invoices~0~01JDTQ7VN8R4S3H6Z5W0M9K1XB",
            "a:b/c~4294967295~report@2026~x",
        ] {
            let id: TaskId = text.parse().unwrap();
            assert_eq!(id.to_string(), text);
        }
        let id: TaskId = "mail~7~a~b".parse().unwrap();
        assert_eq!((id.queue().as_str(), id.shard(), id.key()), ("mail", 7, "a~b"));
    }

    #[test]
    fn what_is_no_id_is_refused_with_the_reason() {
        for (text, reason) in [
            ("", "not three parts"),
            ("invoices~1", "not three parts"),
            ("~1~key", "it is empty"),
            ("in voices~1~key", "it contains ' '"),
            ("invoices~one~key", "its shard `one` is no number"),
            ("invoices~01~key", "its shard `01` is no number"),
            ("invoices~+1~key", "its shard `+1` is no number"),
            ("invoices~4294967296~key", "is no number"),
            ("invoices~1~", "its key is empty"),
            ("invoices~1~a\nb", "its key contains '\\n'"),
        ] {
            let error = text.parse::<TaskId>().unwrap_err().to_string();
            assert!(
                error.contains(reason) && error.contains("<queue>~<shard>~<key>"),
                "{error}"
            );
        }
        let long = "x".repeat(5000).parse::<TaskId>().unwrap_err();
        assert_eq!(long.text.len(), SHOWN);
    }

    #[test]
    fn a_key_is_a_ulid() {
        let at = |millis| Timestamp::from_millisecond(millis).unwrap();
        // The example of the specification, and its bounds.
        assert_eq!(&key_of(at(1_469_918_176_385), 0)[..10], "01ARYZ6S41");
        assert_eq!(key_of(Timestamp::UNIX_EPOCH, 0), "0".repeat(26));
        assert_eq!(
            key_of(at(-1), u128::MAX),
            format!("{}{}", "0".repeat(10), "Z".repeat(16))
        );
        assert_eq!(key_of(at(1), 33), "00000000010000000000000011");
        assert!(key_of(at(1), u128::MAX) < key_of(at(2), 0));
    }

    #[test]
    fn no_two_keys_are_alike() {
        for source in [Keys::default(), Keys::seeded(1)] {
            let keys: BTreeSet<_> = (0..10_000).map(|_| source.fresh(Timestamp::UNIX_EPOCH)).collect();
            assert_eq!(keys.len(), 10_000);
            // Nor do they share more than the time: every place varies.
            for at in 10..26 {
                let digits: BTreeSet<_> = keys.iter().map(|key| key.as_bytes()[at]).collect();
                assert_eq!(digits.len(), 32, "place {at}");
            }
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_keys() {
        let two = |seed| {
            let keys = Keys::seeded(seed);
            [(); 2].map(|()| keys.fresh(Timestamp::UNIX_EPOCH))
        };
        assert_eq!(two(7), two(7));
        assert_ne!(two(7), two(8));
    }
}
