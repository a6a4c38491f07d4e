//! Which name of the database was probably meant.

/// More changes than these are another name.
const MOST_CHANGES: usize = 2;
/// So many changes, or more.
const FAR: usize = MOST_CHANGES + 1;
/// Longer names are nobody's.
const LONGEST: usize = 40;

/// The name that was probably meant: of the same place, or with a letter or two changed.
pub(super) const fn nearest(wrong: &str, names: &[&'static str]) -> Option<&'static str> {
    let wrong = wrong.as_bytes();
    // Short words are near to everything.
    if wrong.len() < 4 || wrong.len() > LONGEST || is_signed(wrong) {
        return None;
    }
    let (mut best, mut least) = (None, FAR);
    let mut i = 0;
    while i < names.len() {
        let count = distance(wrong, names[i].as_bytes());
        if count < least {
            (best, least) = (Some(names[i]), count);
        }
        i += 1;
    }
    best
}

/// How far a wrong name is from a right one.
const fn distance(wrong: &[u8], right: &[u8]) -> usize {
    let ((region, place), (right_region, right_place)) = (parts(wrong), parts(right));
    let in_place = changes(place, right_place);
    if region.is_empty() && !right_region.is_empty() {
        // A place alone, such as `Berlin`; or no slash, as in `EuropeBerlin`.
        let without_slash = if changes(wrong, right) <= 1 { 1 } else { FAR };
        return min(within(in_place, tolerance(right_place.len() - 1)), without_slash);
    }
    let in_place = within(in_place, tolerance(right_place.len()));
    if in_place == FAR {
        return FAR;
    }
    min(
        in_place + within(changes(region, right_region), tolerance(right_region.len())),
        FAR,
    )
}

/// How many changes leave a word of so many letters the same word: `Munich` is not `Zurich`, nor `Nope` Nome.
const fn tolerance(letters: usize) -> usize {
    match letters {
        0..=3 => 0,
        4..=7 => 1,
        _ => MOST_CHANGES,
    }
}

const fn within(changes: usize, most: usize) -> usize {
    if changes > most { FAR } else { changes }
}

const fn is_signed(bytes: &[u8]) -> bool {
    let mut i = 0;
    while i < bytes.len() {
        if bytes[i] == b'+' || bytes[i].is_ascii_digit() {
            return true;
        }
        i += 1;
    }
    false
}

/// What stands before the last slash, and after it.
const fn parts(name: &[u8]) -> (&[u8], &[u8]) {
    let mut from = name.len();
    while from > 0 && name[from - 1] != b'/' {
        from -= 1;
    }
    let (before, place) = name.split_at(from);
    match before {
        [region @ .., _] => (region, place),
        [] => (&[], place),
    }
}

/// How many letters must be put in, taken out or changed to make `a` of `b`, without regard to case; the common distance of
/// Levenshtein, looked at only near the diagonal, because more than [`MOST_CHANGES`] are of no interest.
const fn changes(a: &[u8], b: &[u8]) -> usize {
    let (a_len, b_len) = (a.len(), b.len());
    if a_len.abs_diff(b_len) > MOST_CHANGES || b_len > LONGEST {
        return FAR;
    }
    let mut row = [FAR; LONGEST + 1];
    let mut j = 0;
    while j <= b_len && j <= MOST_CHANGES {
        row[j] = j;
        j += 1;
    }
    let mut i = 1;
    while i <= a_len {
        let low = i.saturating_sub(MOST_CHANGES);
        let high = min(i + MOST_CHANGES, b_len);
        let mut diagonal = if low == 0 { row[0] } else { row[low - 1] };
        let mut left = FAR;
        let mut least = FAR;
        let mut j = low;
        while j <= high {
            let above = if j < i + MOST_CHANGES { row[j] } else { FAR };
            let mut here = above + 1;
            if j == 0 {
                here = i;
            } else {
                let differs = !is_alike(a[i - 1], b[j - 1]);
                here = min(here, min(left + 1, diagonal + differs as usize));
            }
            diagonal = row[j];
            row[j] = min(here, FAR);
            left = row[j];
            least = min(least, row[j]);
            j += 1;
        }
        if least == FAR {
            return FAR;
        }
        i += 1;
    }
    row[b_len]
}

/// Blanks and dashes are often written for underscores.
const fn is_alike(a: u8, b: u8) -> bool {
    a.eq_ignore_ascii_case(&b) || b == b'_' && (a == b' ' || a == b'-')
}

const fn min(a: usize, b: usize) -> usize {
    if a < b { a } else { b }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_counted_up_to_two() {
        for (a, b, count) in [
            ("abc", "abc", 0),
            ("ABC", "abc", 0),
            ("abc", "abd", 1),
            ("abc", "ab", 1),
            ("ab", "abc", 1),
            ("bc", "abc", 1),
            ("abc", "cab", 2),
            ("abcdef", "abcd", 2),
            ("abcd", "abcdef", 2),
            ("abcdef", "badcfe", 3),
            ("abc", "xyz", 3),
            ("abcdefgh", "abc", 3),
            ("new york", "New_York", 0),
        ] {
            assert_eq!(changes(a.as_bytes(), b.as_bytes()), count, "{a} {b}");
        }
    }
}
