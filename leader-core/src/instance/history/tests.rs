//! Which records are asked for.

use super::*;

fn record(second: i64, outcome: Outcome, origin: Origin) -> LedgerRecord {
    let at = Timestamp::from_second(second).unwrap();
    LedgerRecord {
        first: at,
        last: at,
        count: 1,
        outcome,
        origin,
        fence: 1,
        term: 1,
        instance: "a".to_owned(),
        holder: crate::names::Holder::from_store("a#0000000000000007"),
        settled_at: at,
        claimed_at: at,
        error: String::new(),
        tries: 1,
    }
}

#[test]
fn filters_narrow_down_and_the_newest_come_first() {
    let records: Vec<_> = [
        (9, Outcome::Ran(Ran::Ok), Origin::Manual),
        (8, Outcome::Ran(Ran::Error), Origin::Schedule),
        (7, Outcome::Blackout, Origin::Schedule),
        (6, Outcome::Ran(Ran::Cancelled), Origin::Schedule),
        (5, Outcome::Ran(Ran::Lost), Origin::Manual),
        (4, Outcome::Ran(Ran::Ok), Origin::Schedule),
        (3, Outcome::Fenced, Origin::Schedule),
    ]
    .map(|(second, outcome, origin)| record(second, outcome, origin))
    .into();
    let kept = |filter: Filter| {
        let kept = filter.keep(records.clone());
        kept.iter().map(|record| record.last.as_second()).collect::<Vec<_>>()
    };
    let all = Filter::default();
    assert_eq!(kept(all.clone()), [9, 8, 7, 6, 5, 4, 3]);
    let newest = Some(2);
    assert_eq!(kept(Filter { newest, ..all.clone() }), [9, 8]);
    let before = Timestamp::from_second(6).ok();
    assert_eq!(
        kept(Filter {
            newest,
            before,
            ..all.clone()
        }),
        [5, 4],
        "bounded after it is narrowed"
    );
    let outcomes = vec![Outcome::Ran(Ran::Ok), Outcome::Blackout];
    assert_eq!(
        kept(Filter {
            outcomes,
            ..all.clone()
        }),
        [9, 7, 4]
    );
    let failures = true;
    assert_eq!(
        kept(Filter {
            failures,
            ..all.clone()
        }),
        [8, 5, 3]
    );
    let origin = Some(Origin::Manual);
    assert_eq!(
        kept(Filter {
            failures,
            origin,
            ..all
        }),
        [5]
    );
}
