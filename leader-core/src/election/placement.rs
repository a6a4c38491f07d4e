//! Where a group belongs: how long an instance leaves a vacancy to others, and when a leader makes way.
//!
//! Every yield is a delay, never a veto: whoever is better may be gone, and nobody need know.

use std::time::Duration;

/// How long a vacancy is left to instances of a newer version. A roll-out hands its groups on to the new instances, and an old one
/// that has the group to itself is hardly slower.
const NEWER: Duration = Duration::from_millis(200);

/// How well an instance fits a group. Compares by fitness.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fitness {
    /// How many jobs of the group it has.
    pub covered: usize,
    /// The version of its service.
    pub version: Version,
}

/// A version as numbers, for comparing. What has no numbers is older than everything else.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(Vec<u64>);

impl Version {
    /// Reads the numbers before any suffix: `1.12.0-rc.1` is 1, 12, 0.
    #[must_use]
    pub fn read(text: &str) -> Self {
        let text = text.trim_start_matches('v');
        let end = text
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(text.len());
        let mut numbers: Vec<_> = text[..end].split('.').map_while(|part| part.parse().ok()).collect();
        while numbers.last() == Some(&0) {
            numbers.pop();
        }
        Self(numbers)
    }
}

/// How long an instance leaves a vacancy to the `others`, which are eligible as far as it knows.
#[must_use]
pub fn yields<'a>(own: &Fitness, others: impl IntoIterator<Item = &'a Fitness>, ttl: Duration) -> Duration {
    others
        .into_iter()
        .map(|other| one_yields(own, other, ttl))
        .max()
        .unwrap_or_default()
}

fn one_yields(own: &Fitness, other: &Fitness, ttl: Duration) -> Duration {
    if other.covered > own.covered {
        ttl
    } else if other.covered == own.covered && other.version > own.version {
        NEWER.min(ttl)
    } else {
        Duration::ZERO
    }
}

/// A stable order of preference of instances for a group, different for each group (rendezvous hashing: Thaler and
/// Ravishankar, 1996), so that groups that fall vacant together land on different instances.
#[must_use]
pub fn preference(group: &str, instance: &str) -> u16 {
    // FNV-1a; the order need only be stable within a fleet of one version, and even.
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in group.bytes().chain([0]).chain(instance.bytes()) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash ^= hash >> 32;
    hash = hash.wrapping_mul(0xd6e8_feb8_6659_fd93);
    u16::try_from(hash >> 48).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(10);

    fn fit(covered: usize, version: &str) -> Fitness {
        let version = Version::read(version);
        Fitness { covered, version }
    }

    #[test]
    fn versions_compare_by_their_numbers() {
        for (older, newer) in [
            ("", "0.1"),
            ("1.9.9", "1.10"),
            ("v1.2.3", "2"),
            ("abc", "1"),
            ("2024.05.01", "2024.5.2"),
        ] {
            assert!(Version::read(older) < Version::read(newer), "{older} {newer}");
        }
        for (one, two) in [("1.2", "v1.2.0"), ("1.2-rc.1", "1.2+build"), ("", "latest")] {
            assert_eq!(Version::read(one), Version::read(two), "{one} {two}");
        }
    }

    #[test]
    fn only_the_fitter_are_waited_for_and_never_longer_than_one_lease() {
        for (own, others, expected) in [
            (fit(2, "1"), vec![], Duration::ZERO),
            (fit(2, "1"), vec![fit(2, "1"), fit(1, "9")], Duration::ZERO),
            (fit(2, "1"), vec![fit(2, "1.1")], NEWER),
            (fit(0, "9"), vec![fit(1, "1")], TTL),
            (fit(1, "1"), vec![fit(1, "2"), fit(3, "")], TTL),
        ] {
            assert_eq!(yields(&own, &others, TTL), expected, "{own:?} {others:?}");
        }
        let short = Duration::from_millis(100);
        assert_eq!(yields(&fit(1, "1"), &[fit(1, "2")], short), short);
    }

    /// Instances of different builds agree on the order only as long as nobody changes a number here.
    #[test]
    fn preferences_are_the_same_in_every_build() {
        for (group, instance, expected) in [
            ("cleanup", "web-1", 44_088),
            ("cleanup", "web-2", 9_927),
            ("billing", "web-1", 10_352),
            ("", "", 60_542),
        ] {
            assert_eq!(preference(group, instance), expected, "{group} {instance}");
        }
    }
}
