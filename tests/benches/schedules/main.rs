//! What schedules cost: to read one, to find its next tick, to keep and to plan very many.
//!
//! `cargo bench -p leader-tests --bench schedules` takes some 20 s after the build. The `cron` crate is what searches our calendar; it and `croner` are
//! measured on the same expressions and instants in the same run, and each figure is told as a multiple of `cron`'s own. `cron` alone is
//! wrong when clocks change, and is shown for its speed only.

mod many;
#[path = "../sampling.rs"]
mod sampling;

use std::hint::black_box;
use std::str::FromStr;

use chrono::{DateTime, TimeZone, Utc};
use jiff::Timestamp;
use leader_core::{Schedule, Zone};
use sampling::{Case, compare};

/// What is measured: name, expression in our dialect, the same for `cron`, which has no fields without seconds and counts weekdays
/// from Sunday = 1.
const EXPRESSIONS: [(&str, &str, &str); 4] = [
    ("every 5 minutes", "*/5 * * * *", "0 */5 * * * *"),
    ("weekdays at 09:00", "0 9 * * 1-5", "0 0 9 * * 2-6"),
    ("monthly at 02:30", "30 2 1 * *", "0 30 2 1 * *"),
    ("29 February", "0 0 29 2 *", "0 0 0 29 2 *"),
];

/// Instants of 2026, the same for everybody.
struct Instants {
    at: Vec<i64>,
    next: usize,
}

impl Instants {
    fn new() -> Self {
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        let at = (0..4096).map(|_| {
            // SplitMix64 (Steele, Lea, Flood 2014).
            state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            1_767_225_600 + i64::try_from((mixed ^ (mixed >> 31)) % 31_536_000).unwrap_or_default()
        });
        Self {
            at: at.collect(),
            next: 0,
        }
    }

    fn take(&mut self) -> i64 {
        self.next = (self.next + 1) % self.at.len();
        self.at[self.next]
    }

    fn jiff(&mut self) -> Timestamp {
        Timestamp::from_second(self.take()).expect("a second of 2026")
    }

    fn chrono<Z: TimeZone>(&mut self, zone: &Z) -> DateTime<Z> {
        let utc = DateTime::<Utc>::from_timestamp(self.take(), 0).expect("a second of 2026");
        utc.with_timezone(zone)
    }
}

/// A yardstick, and what is measured by it.
type Table = (Case<'static>, Vec<Case<'static>>);

fn parse(expr: &'static str, theirs: &'static str) -> Table {
    let cron = Case::new("cron", move || {
        black_box(cron::Schedule::from_str(black_box(theirs)).is_ok());
    });
    let cases = vec![
        Case::new("ours", move || {
            black_box(Schedule::cron(black_box(expr)).is_ok());
        }),
        Case::new("ours, the gate alone", move || {
            black_box(leader_core::Cron::parse(black_box(expr)).is_ok());
        }),
        Case::new("croner", move || {
            black_box(croner::Cron::from_str(black_box(expr)).is_ok());
        }),
    ];
    (cron, cases)
}

fn next<Z: TimeZone + 'static>(expr: &str, theirs: &str, zone: &Zone, chrono: Z) -> Table {
    let ours = Schedule::cron(expr).and_then(|schedule| schedule.in_zone(zone.clone()));
    let ours = ours.expect("a legal expression");
    let back = ours.clone();
    let cron = cron::Schedule::from_str(theirs).expect("a legal expression");
    let croner = croner::Cron::from_str(expr).expect("a legal expression");
    let (mut a, mut b, mut c, mut d) = (Instants::new(), Instants::new(), Instants::new(), Instants::new());
    let theirs = chrono.clone();
    let cron = Case::new("cron, next", move || {
        black_box(cron.after(&c.chrono(&chrono)).next());
    });
    let cases = vec![
        Case::new("ours, next", move || {
            black_box(ours.next(a.jiff()));
        }),
        Case::new("ours, prev", move || {
            black_box(back.prev(b.jiff()));
        }),
        Case::new("croner, next", move || {
            black_box(croner.find_next_occurrence(&d.chrono(&theirs), false).is_ok());
        }),
        instant(),
    ];
    (cron, cases)
}

/// What every case pays for its instant.
fn instant() -> Case<'static> {
    let mut instants = Instants::new();
    Case::new("an instant to ask about", move || {
        black_box(instants.jiff());
    })
}

fn show(title: &str, (mut yardstick, cases): Table) {
    compare(title, &mut yardstick, cases);
}

fn main() {
    let berlin = Zone::new("Europe/Berlin").expect("a zone of the database");
    for (name, expr, theirs) in EXPRESSIONS {
        show(&format!("parse: {name}"), parse(expr, theirs));
    }
    for (name, expr, theirs) in EXPRESSIONS {
        let title = format!("UTC: {name}");
        show(&title, next(expr, theirs, &Zone::UTC, Utc));
    }
    for (name, expr, theirs) in EXPRESSIONS {
        let title = format!("Europe/Berlin: {name}");
        show(&title, next(expr, theirs, &berlin, chrono_tz::Europe::Berlin));
    }
    // A word on the command line chooses cases.
    if std::env::args()
        .skip(1)
        .all(|word| word.starts_with('-') || word == "many")
    {
        many::show();
    }
}
