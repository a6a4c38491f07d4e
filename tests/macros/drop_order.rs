//! Arguments are taken apart, and dropped, as those of a plain `async fn`.
#![allow(clippy::future_not_send, reason = "the log is counted on one thread")]

use std::cell::RefCell;
use std::rc::Rc;

use leader_core::leader_only;
use leader_core::testing::as_leader;

use crate::block_on;

type Log = Rc<RefCell<Vec<&'static str>>>;

struct Noisy(&'static str, Log);

impl Drop for Noisy {
    fn drop(&mut self) {
        self.1.borrow_mut().push(self.0);
    }
}

struct Pair {
    left: Noisy,
    right: Noisy,
}

/// The same function, plain and gated.
macro_rules! twins {
    ($(#[$attr:meta])* $name:ident) => {
        $(#[$attr])*
        async fn $name(first: Noisy, _: Noisy, _unused: Noisy, Pair { left, .. }: Pair, mut last: Noisy, log: Log) {
            let _local = Noisy("local", Rc::clone(&log));
            last.0 = "last, renamed";
            log.borrow_mut().push("body");
            drop(first);
            log.borrow_mut().push(left.0);
        }
    };
}

twins!(plain);
twins!(
    #[leader_only]
    gated
);

fn arguments() -> (Log, [Noisy; 4], Pair) {
    let log = Log::default();
    let noisy = |name| Noisy(name, Rc::clone(&log));
    let names = ["first", "wildcard", "unused", "last"].map(noisy);
    let (left, right) = (noisy("left"), noisy("right"));
    (log, names, Pair { left, right })
}

#[test]
fn a_gated_body_drops_what_a_plain_one_drops_in_its_order() {
    let (expected, [a, b, c, d], pair) = arguments();
    block_on(plain(a, b, c, pair, d, Rc::clone(&expected)));
    let (log, [a, b, c, d], pair) = arguments();
    block_on(as_leader(gated(a, b, c, pair, d, Rc::clone(&log)))).unwrap();
    assert_eq!(*log.borrow(), *expected.borrow());
    assert_eq!(log.borrow().len(), 9);
}

#[test]
fn a_skipped_call_drops_its_arguments_too() {
    let (log, [a, b, c, d], pair) = arguments();
    block_on(gated(a, b, c, pair, d, Rc::clone(&log))).unwrap_err();
    assert_eq!(*log.borrow(), ["last", "left", "right", "unused", "wildcard", "first"]);
}

#[test]
fn every_part_of_a_pair_is_named() {
    let (_, _, Pair { left, right }) = arguments();
    assert_eq!((left.0, right.0), ("left", "right"));
}
