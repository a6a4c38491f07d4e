//! What people write for a zone that is none: abbreviations, and a place for each.

use crate::schedule::ascii::is_alike;

/// An abbreviation in capitals, and the zones that it is used in; the second is empty, or another meaning.
#[rustfmt::skip]
pub(super) const ABBREVIATIONS: [(&str, &str, &str); 52] = [
    ("PST", "America/Los_Angeles", ""), ("PDT", "America/Los_Angeles", ""), ("PT", "America/Los_Angeles", ""),
    ("MST", "America/Denver", "America/Phoenix"), ("MDT", "America/Denver", ""), ("MT", "America/Denver", ""),
    ("CST", "America/Chicago", "Asia/Shanghai"), ("CDT", "America/Chicago", ""), ("CT", "America/Chicago", ""),
    ("EST", "America/New_York", "America/Panama"), ("EDT", "America/New_York", ""), ("ET", "America/New_York", ""),
    ("AST", "America/Halifax", "Asia/Riyadh"), ("ADT", "America/Halifax", ""),
    ("AKST", "America/Anchorage", ""), ("AKDT", "America/Anchorage", ""), ("HST", "Pacific/Honolulu", ""),
    ("BRT", "America/Sao_Paulo", ""), ("ART", "America/Argentina/Buenos_Aires", ""),
    ("BST", "Europe/London", "Asia/Dhaka"), ("WET", "Europe/Lisbon", ""), ("WEST", "Europe/Lisbon", ""),
    ("CET", "Europe/Berlin", "Europe/Paris"), ("CEST", "Europe/Berlin", "Europe/Paris"),
    ("MET", "Europe/Berlin", "Europe/Paris"), ("MEST", "Europe/Berlin", "Europe/Paris"),
    ("MEZ", "Europe/Berlin", ""), ("MESZ", "Europe/Berlin", ""),
    ("EET", "Europe/Helsinki", "Europe/Athens"), ("EEST", "Europe/Helsinki", "Europe/Athens"),
    ("MSK", "Europe/Moscow", ""), ("TRT", "Europe/Istanbul", ""),
    ("SAST", "Africa/Johannesburg", ""), ("CAT", "Africa/Maputo", ""), ("EAT", "Africa/Nairobi", ""), ("WAT", "Africa/Lagos", ""),
    ("IST", "Asia/Kolkata", "Europe/Dublin"), ("PKT", "Asia/Karachi", ""), ("GST", "Asia/Dubai", ""), ("IDT", "Asia/Jerusalem", ""),
    ("JST", "Asia/Tokyo", ""), ("KST", "Asia/Seoul", ""), ("SGT", "Asia/Singapore", ""), ("HKT", "Asia/Hong_Kong", ""),
    ("WIB", "Asia/Jakarta", ""), ("ICT", "Asia/Bangkok", ""),
    ("AEST", "Australia/Sydney", "Australia/Brisbane"), ("AEDT", "Australia/Sydney", ""), ("ACST", "Australia/Adelaide", ""),
    ("AWST", "Australia/Perth", ""), ("NZST", "Pacific/Auckland", ""), ("NZDT", "Pacific/Auckland", ""),
];

/// The zones that an abbreviation is used in.
pub(super) const fn places(name: &str) -> Option<(&'static str, &'static str)> {
    let mut i = 0;
    while i < ABBREVIATIONS.len() {
        let (word, first, second) = ABBREVIATIONS[i];
        if is_alike(name.as_bytes(), word.as_bytes()) {
            return Some((first, second));
        }
        i += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::names::NAMES;
    use super::*;

    #[test]
    fn every_abbreviation_has_zones_and_is_none() {
        for (word, first, second) in ABBREVIATIONS {
            assert!(NAMES.contains(&first), "{word}");
            assert!(second.is_empty() || NAMES.contains(&second), "{word}");
            assert!(!NAMES.contains(&word), "{word}");
            assert_eq!(
                places(&word.to_lowercase()),
                Some((first, second)),
                "{word} is there once"
            );
        }
    }
}
