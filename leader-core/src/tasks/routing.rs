//! Which shard of its queue a task lives in. Pure.

use std::collections::BTreeMap;

use crate::names::QueueName;
use crate::store::tasks::{Generation, Generations, Shard};

/// What is known of the generations of each queue.
#[derive(Debug, Default)]
pub(crate) struct Routes(BTreeMap<QueueName, Generations>);

impl Routes {
    pub(crate) fn learn(&mut self, queue: &QueueName, generations: Generations) {
        self.0.insert(queue.clone(), generations);
    }

    /// The queue has a later generation than is known.
    pub(super) fn forget(&mut self, queue: &QueueName) {
        self.0.remove(queue);
    }

    pub(super) fn of(&self, queue: &QueueName) -> Option<&Generations> {
        self.0.get(queue)
    }

    /// All shards of a queue that may have tasks.
    pub(super) fn shards(&self, queue: &QueueName) -> Vec<Shard> {
        let most = self.0.get(queue).map_or(1, Generations::most);
        let shard = |index| Shard {
            queue: queue.clone(),
            index,
        };
        (0..most).map(shard).collect()
    }
}

/// The shard of a task in one generation: by its unique key, or else by its own.
pub(super) fn shard_of(queue: &QueueName, unique: Option<&str>, key: &str, generation: Generation) -> Shard {
    let hash = hash(unique.unwrap_or(key));
    let index = u32::try_from(hash % u64::from(generation.shards.max(1))).unwrap_or(0);
    Shard {
        queue: queue.clone(),
        index,
    }
}

/// The shards in which an unfinished task of an earlier generation may have the unique key, besides the newest one's.
pub(super) fn earlier_of(queue: &QueueName, unique: &str, generations: &Generations) -> Vec<Shard> {
    let newest = shard_of(queue, Some(unique), "", generations.newest);
    let mut shards: Vec<_> = generations
        .earlier
        .iter()
        .map(|generation| shard_of(queue, Some(unique), "", *generation))
        .filter(|shard| *shard != newest)
        .collect();
    shards.sort();
    shards.dedup();
    shards
}

/// FNV-1a of 64 bits with a last mixing, so that a few shards get alike many. All builds of all instances must compute alike: it never changes.
///
/// <https://datatracker.ietf.org/doc/html/draft-eastlake-fnv>; the mixing is the finaliser of `MurmurHash3`.
fn hash(text: &str) -> u64 {
    let fnv = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mut mixed = fnv ^ (fnv >> 33);
    mixed = mixed.wrapping_mul(0xff51_afd7_ed55_8ccd);
    mixed ^= mixed >> 33;
    mixed = mixed.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    mixed ^ (mixed >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue() -> QueueName {
        QueueName::new("mail").unwrap()
    }

    fn generation(number: u32, shards: u32) -> Generation {
        Generation { number, shards }
    }

    #[test]
    fn shards_are_chosen_alike_everywhere() {
        let at = |key: &str| shard_of(&queue(), None, key, generation(1, 8)).index;
        // Known to every instance there ever was: what is stored by one is sought by another.
        assert_eq!(["a", "b", "invoice-42", "01JDTQ7VN8R4S3H6Z5W0M9K1XB"].map(at), PLACES);
        assert_eq!(
            shard_of(&queue(), Some("a"), "b", generation(1, 8)).index,
            at("a"),
            "the unique key decides"
        );
    }

    const PLACES: [u32; 4] = [3, 0, 5, 1];

    #[test]
    fn shards_get_alike_many() {
        let mut counts = [0_u32; 5];
        for n in 0..10_000 {
            let shard = shard_of(&queue(), None, &format!("invoice-{n}"), generation(1, 5));
            counts[usize::try_from(shard.index).unwrap()] += 1;
        }
        assert!(counts.iter().all(|count| (1800..2200).contains(count)), "{counts:?}");
    }

    #[test]
    fn a_unique_key_is_sought_where_earlier_generations_have_it() {
        let generations = Generations {
            newest: generation(3, 4),
            earlier: vec![generation(2, 1), generation(1, 4)],
        };
        for n in 0..50 {
            let unique = format!("u{n}");
            let newest = shard_of(&queue(), Some(&unique), "", generations.newest);
            let earlier = earlier_of(&queue(), &unique, &generations);
            // In one shard there is but the first; the first generation has it where the third does.
            assert_eq!(earlier.is_empty(), newest.index == 0, "{earlier:?}");
            assert!(earlier.iter().all(|shard| shard.index == 0));
        }
    }

    #[test]
    fn every_shard_that_may_have_tasks_is_known() {
        let mut routes = Routes::default();
        assert_eq!(routes.shards(&queue()).len(), 1);
        let generations = Generations {
            newest: generation(2, 2),
            earlier: vec![generation(1, 5)],
        };
        routes.learn(&queue(), generations);
        assert_eq!(routes.shards(&queue()).len(), 5);
    }
}
