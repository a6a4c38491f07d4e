//! What the clock shows, after these samples.

mod hours;

use super::*;

fn moment(seconds: u64) -> Moment {
    Moment::from_nanos((1000 + seconds) * 1_000_000_000)
}

fn millis(millis: u64) -> Moment {
    Moment::from_nanos(1_000_000_000_000 + millis * 1_000_000)
}

fn wall(text: &str) -> Timestamp {
    format!("2026-03-02T{text}Z").parse().unwrap()
}

/// Noon, and so many seconds.
fn noon(seconds: i64) -> Timestamp {
    wall("12:00:00") + SignedDuration::from_secs(seconds)
}

/// A clock that follows a store whose time at `moment(0)` was noon.
fn at_noon() -> PlanningClock {
    let mut clock = PlanningClock::new(noon(0), moment(0));
    assert!(clock.sample(moment(0), moment(0), noon(0)));
    clock.follow(moment(0));
    clock
}

fn sample(clock: &mut PlanningClock, second: u64, off: i64) -> bool {
    let server = noon(i64::try_from(second).unwrap() + off);
    clock.sample(moment(second), moment(second), server)
}

fn ms(span: Duration) -> u128 {
    span.as_millis()
}

#[test]
fn the_first_sample_sets_the_clock() {
    for off in ["09:00:00", "15:00:00"] {
        let mut clock = PlanningClock::new(wall(off), moment(0));
        assert_eq!(clock.bound(moment(0)), Duration::MAX);
        assert!(clock.offset_of(wall(off), moment(0)).is_none() && !clock.waits());
        assert!(clock.sample(moment(0), moment(0), wall("12:00:00")));
        assert!(clock.waits() && !clock.has_followed());
        assert_eq!(clock.at(moment(0)), wall(off), "it was not told to follow");
        clock.follow(moment(0));
        assert_eq!(clock.at(moment(5)), wall("12:00:05"));
        assert_eq!(clock.moment_of(wall("12:00:07"), moment(5)), moment(7));
        assert_eq!(clock.moment_of(wall("11:00:07"), moment(5)), moment(5));
        assert_eq!(ms(clock.bound(moment(0))), 1);
        let offset = clock.offset_of(wall(off), moment(0)).unwrap();
        assert_eq!(offset.by, wall(off).duration_since(wall("12:00:00")));
    }
}

/// An answer that waited for seconds in a busy process says little of the store's time.
#[test]
fn a_first_sample_is_trusted_no_further_than_its_round_trip() {
    let mut clock = PlanningClock::new(wall("12:00:00"), moment(0));
    clock.sample(moment(0), moment(6), wall("12:00:00"));
    clock.follow(moment(6));
    assert_eq!(clock.at(moment(6)), wall("12:00:06"));
    assert_eq!(ms(clock.bound(moment(6))), 6000);
    let mut wrong = PlanningClock::new(wall("09:00:00"), moment(0));
    wrong.sample(moment(0), moment(6), wall("12:00:00"));
    wrong.follow(moment(6));
    assert_eq!(wrong.at(moment(6)), wall("12:00:00"));
}

#[test]
fn small_errors_are_slewed_forwards_and_stood_out_backwards() {
    for off in [-1, 1] {
        let mut clock = at_noon();
        let mut last = clock.at(moment(0));
        for step in 1..=100_000_u64 {
            let at = millis(step * 2);
            if step % 1_000 == 0 {
                // The store's clock is off by a second from now on.
                sample(&mut clock, step / 500, off);
            }
            let shown = clock.at(at);
            assert!(shown >= last, "never backwards: {last} {shown}");
            assert!(
                shown.duration_since(last).as_micros() <= 2_040,
                "nor in leaps: {last} {shown}"
            );
            last = shown;
            let ahead = shown.duration_since(noon(0))
                - SignedDuration::from_millis(i64::try_from(step).unwrap() * 2 + off * 1_000);
            assert!(
                off > 0 || step < 1_500 || ahead.as_micros() <= 5_000,
                "{step}: still ahead by {ahead:?}"
            );
        }
        let error = last.duration_since(noon(200 + off));
        assert!(error.abs().as_micros() <= 5_000, "{error:?}");
    }
}

#[test]
fn a_step_is_followed_forwards_when_three_samples_agree() {
    let mut clock = at_noon();
    assert!(!sample(&mut clock, 1, 7200));
    assert!(!sample(&mut clock, 2, 7200) && clock.suspects());
    assert_eq!(clock.at(moment(2)), noon(2));
    assert!(!clock.waits());
    assert!(sample(&mut clock, 3, 7200) && !clock.suspects());
    assert!(clock.waits());
    assert_eq!(clock.at(moment(4)), noon(4));
    assert_eq!(clock.moment_of(noon(5), moment(4)), moment(5));
    assert_eq!(clock.store_at(moment(4)), noon(7204));
    clock.follow(moment(4));
    assert_eq!(clock.at(moment(4)), noon(7204));
    assert!(ms(clock.bound(moment(4))) <= 50, "{:?}", clock.bound(moment(4)));
}

/// A clock that nobody lets leap goes on as if nothing had happened, and needs no leap back.
#[test]
fn a_step_that_is_taken_back_is_forgotten() {
    let mut clock = at_noon();
    for second in [1, 2, 3] {
        sample(&mut clock, second, 7200);
    }
    assert!(clock.waits());
    assert!(ms(clock.bound(moment(3))) >= 7_200_000, "not slewed away yet");
    for second in [61, 62, 63] {
        assert!(clock.waits());
        sample(&mut clock, second, 0);
    }
    assert!(!clock.waits());
    assert_eq!(clock.at(moment(63)), noon(63));
    clock.follow(moment(63));
    assert_eq!(clock.at(moment(64)), noon(64), "nothing to follow");
}

/// Three samples that each say something else are no step; nor are three answers to one look.
#[test]
fn samples_must_agree_with_each_other_and_be_of_their_own() {
    let mut clock = at_noon();
    for (second, off) in [(1, 7200), (2, 3600), (3, -50), (4, 7200), (5, 7205), (6, 7200)] {
        assert!(!sample(&mut clock, second, off));
    }
    assert_eq!(clock.at(moment(6)), noon(6));
    // One that says that nothing has happened breaks a row.
    let mut clock = at_noon();
    for (second, off) in [(1, 60), (2, 60), (3, 0), (4, 60), (5, 60)] {
        assert!(!sample(&mut clock, second, off));
    }
    let mut clock = at_noon();
    let answer = |clock: &mut PlanningClock, sent, received| clock.sample(moment(sent), moment(received), noon(61));
    assert!(!answer(&mut clock, 1, 2));
    for _ in 0..5 {
        assert!(!answer(&mut clock, 1, 2), "one look");
    }
    assert!(!clock.sample(moment(3), moment(3), noon(63)));
    assert!(clock.sample(moment(4), moment(4), noon(64)), "the third look");
}

#[test]
fn a_step_back_is_stood_out() {
    let mut clock = at_noon();
    for second in [1, 2, 3] {
        sample(&mut clock, second, -600);
    }
    assert!(!clock.waits());
    assert_eq!(clock.moment_of(noon(3), moment(3)), moment(3));
    assert_eq!(clock.moment_of(noon(4), moment(3)), moment(604));
    let late = |clock: &PlanningClock, at| ms(clock.bound(moment(at)));
    assert!((600_000..=600_200).contains(&late(&clock, 3)));
    let mut last = clock.at(moment(3));
    for second in 4..=603 {
        let shown = clock.at(moment(second));
        // Up to the last second, in which it would be slewed if it did not stand already.
        assert_eq!(shown, last, "after {second} s");
        last = shown;
        if second % 5 == 0 {
            sample(&mut clock, second, -600);
            assert_eq!(clock.moment_of(noon(4), moment(second)), moment(604));
        }
    }
    assert_eq!(clock.at(moment(605)), noon(5));
    assert!(late(&clock, 605) <= 120, "{:?}", clock.bound(moment(605)));
}

#[test]
fn whoever_looks_again_pauses_whatever_the_clock_does() {
    let pause = Duration::from_secs(2);
    for off in [-600, -3, -1, 0, 1, 600] {
        let mut clock = at_noon();
        for second in [1, 2, 3] {
            sample(&mut clock, second, off);
        }
        let again = clock.after(moment(3), pause);
        let paused = clock.moment_of(again, moment(3)).since(moment(3));
        assert!(paused >= Duration::from_millis(1_900), "{off}: {paused:?}");
        // No longer than the clock stands.
        let stands = Duration::from_secs(u64::try_from(-off).unwrap_or(0));
        assert!(paused <= stands + Duration::from_millis(2_200), "{off}: {paused:?}");
    }
    let clock = at_noon();
    assert_eq!(clock.after(Moment::MAX, Duration::MAX), clock.at(Moment::MAX));
}

/// A machine that was moved, or asleep: its monotonic clock has missed an hour, and the store's time is an hour ahead.
#[test]
fn a_pause_of_the_monotonic_clock_is_a_step_forwards() {
    let mut clock = at_noon();
    sample(&mut clock, 10, 0);
    for second in [11, 12, 13] {
        sample(&mut clock, second, 3600);
    }
    clock.follow(moment(13));
    assert_eq!(clock.at(moment(14)), noon(3614));
}

#[test]
fn an_error_within_the_round_trip_is_left_alone() {
    let mut clock = at_noon();
    let sent = moment(10);
    clock.sample(sent, sent + Duration::from_millis(400), noon(10));
    assert_eq!(clock.at(moment(11)), noon(11));
}

/// A long answer takes nothing away from what better ones have said.
#[test]
fn the_bound_grows_with_time_and_not_with_a_slow_answer() {
    let mut clock = at_noon();
    // Nothing is known of the clock's rate yet.
    assert_eq!(ms(clock.bound(moment(10))), 201);
    for second in 1..=2_000 {
        sample(&mut clock, second, 0);
    }
    let best = clock.bound(moment(2_000));
    assert!(best <= Duration::from_millis(2), "{best:?}");
    let after = clock.bound(moment(2_100));
    // 500 ppm of 100 s, and what the measurement leaves open.
    assert!((50..=55).contains(&ms(after)), "{after:?}");
    clock.sample(moment(2_100), moment(2_106), noon(2_103));
    assert!(clock.bound(moment(2_106)) < Duration::from_millis(150));
    let offset = clock.offset_of(noon(2_107), moment(2_106)).unwrap();
    assert!(offset.by.as_millis().abs_diff(1_000) < 60 && offset.error < Duration::from_millis(150));
}

/// A monotonic clock that is wrong by 1 % is followed, and the bound says how well.
#[test]
fn a_drift_is_followed_for_hours() {
    for rate in [990, 1_010] {
        let mut clock = at_noon();
        for look in 1..=5_760_u64 {
            // Every 2.5 s of its own time.
            let now = millis(look * 2_500);
            let store = noon(0) + SignedDuration::from_millis(i64::try_from(look * 2_500 * rate / 1_000).unwrap());
            let error = clock.at(now).duration_since(store).unsigned_abs();
            assert!(error <= clock.bound(now), "{look}: {error:?} {:?}", clock.bound(now));
            assert!(error <= Duration::from_millis(60), "{look}: {error:?}");
            clock.sample(now, now, store);
        }
        let now = millis(5_760 * 2_500);
        assert!(clock.bound(now + Duration::from_secs(10)) <= Duration::from_millis(150));
    }
}

#[test]
fn the_moment_of_a_time_is_the_first_that_shows_it() {
    let mut clocks = vec![at_noon(), PlanningClock::new(noon(0), moment(0))];
    for off in [-1_000, -600, -2, -1, 1, 2, 600] {
        let mut clock = at_noon();
        for second in [1, 2, 3] {
            sample(&mut clock, second, off);
        }
        clocks.push(clock);
    }
    for clock in &clocks {
        let mut wall = noon(3);
        for step in 0..400_i64 {
            wall += SignedDuration::from_nanos(step * 7_654_321 + 1);
            let at = clock.moment_of(wall, moment(3));
            assert!(clock.at(at) >= wall, "{clock:?} {wall}");
            let before = at - Duration::from_nanos(1);
            assert!(before < moment(3) || clock.at(before) < wall, "{clock:?} {wall}");
        }
    }
}

#[test]
fn the_ends_of_time_are_no_trap() {
    for first in [Timestamp::MIN, Timestamp::MAX, Timestamp::UNIX_EPOCH] {
        for server in [Timestamp::MIN, Timestamp::MAX, Timestamp::UNIX_EPOCH] {
            let mut clock = PlanningClock::new(first, moment(0));
            for second in [1, 2, 3, 4, 5, 6] {
                clock.sample(moment(second), moment(second), if second < 3 { first } else { server });
                clock.follow(moment(second));
            }
            for at in [Moment::ZERO, moment(6), Moment::MAX] {
                let shown = clock.at(at);
                assert!((Timestamp::MIN..=Timestamp::MAX).contains(&shown));
                let _ = (clock.bound(at), clock.offset_of(Timestamp::MIN, at), clock.store_at(at));
                for wall in [Timestamp::MIN, Timestamp::MAX] {
                    assert!(clock.moment_of(wall, at) >= at);
                }
            }
        }
    }
}

/// One that is sent when the answer before it has come is another look, however near.
#[test]
fn looks_that_follow_each_other_closely_confirm_a_step() {
    let mut clock = at_noon();
    let mut look = |from: u64| {
        let server = noon(60) + SignedDuration::from_millis(i64::try_from(from).unwrap());
        clock.sample(millis(from), millis(from + 100), server)
    };
    assert_eq!([1000, 1100, 1200].map(&mut look), [false, false, true]);
}

#[test]
fn a_clock_that_stands_does_it_to_the_end_and_is_slewed_after_that() {
    let mut clock = at_noon();
    for second in [1, 2, 3] {
        sample(&mut clock, second, -60);
    }
    let stands_at = clock.at(moment(3));
    // A second is missing still.
    sample(&mut clock, 62, -60);
    for at in [62_200, 62_600, 62_900] {
        assert_eq!(clock.at(millis(at)), stands_at, "{at}");
    }
    // It goes on, and an error that is found then is slewed away as any other: a second within fifty.
    sample(&mut clock, 70, -59);
    let late = |clock: &PlanningClock, second: u64| {
        let store = noon(i64::try_from(second).unwrap() - 59);
        store.duration_since(clock.at(moment(second))).as_millis()
    };
    assert!((900..=1100).contains(&late(&clock, 70)), "{}", late(&clock, 70));
    assert!((400..=600).contains(&late(&clock, 95)), "{}", late(&clock, 95));
    assert!(late(&clock, 125) <= 5, "{}", late(&clock, 125));
}

/// What a slow answer leaves open might still be missing: no tick is to be early by it.
#[test]
fn a_clock_that_stands_goes_on_when_the_store_has_caught_up_for_certain() {
    let mut clock = at_noon();
    for second in [1, 2, 3] {
        sample(&mut clock, second, -60);
    }
    let stands_at = clock.at(moment(3));
    // The store's time at the answer is between noon and a second, and four seconds.
    clock.sample(moment(60), moment(63), noon(1));
    let lowest = clock.believed.unwrap().low;
    let left = u64::try_from(stands_at.as_nanosecond() - lowest).unwrap();
    assert!((500_000_000..=2_000_000_000).contains(&left), "{left}");
    let goes_on = moment(63) + Duration::from_nanos(left);
    assert_eq!(clock.at(goes_on), stands_at);
    assert_eq!(
        clock.at(goes_on + Duration::from_millis(1)),
        stands_at + SignedDuration::from_millis(1)
    );
}

/// Two seconds are made up for by running faster, and more in a leap.
#[test]
fn an_error_of_the_longest_that_is_slewed_is_slewed() {
    for (nanos, waits) in [(0, false), (1, true)] {
        let mut clock = at_noon();
        for second in [1, 2, 3] {
            let server = noon(i64::try_from(second).unwrap() + 2) + SignedDuration::from_nanos(nanos);
            clock.sample(moment(second), moment(second), server);
        }
        assert_eq!(clock.waits(), waits, "{nanos}: {clock:?}");
    }
}

/// Nothing can be said of a rate between them.
#[test]
fn two_answers_of_one_moment_are_taken() {
    let mut clock = at_noon();
    for _ in 0..2 {
        sample(&mut clock, 0, 0);
    }
    assert_eq!(clock.at(moment(1)), noon(1));
}
