//! What the store told by itself.

use std::sync::Mutex;

use leader_core::__seam::{Ears, StoreError};

#[derive(Default)]
pub(crate) struct Heard {
    pub(crate) released: Mutex<Vec<(String, u64)>>,
    pub(crate) asked: Mutex<Vec<(String, u64)>>,
    pub(crate) controlled: Mutex<Vec<(String, u64)>>,
    pub(crate) due: Mutex<Vec<(String, jiff::Timestamp)>>,
    pub(crate) gaps: Mutex<u32>,
}

impl Ears for Heard {
    fn released(&self, group: &str, term: u64) {
        self.released.lock().unwrap().push((group.to_owned(), term));
    }

    fn asked(&self, group: &str, term: u64) {
        self.asked.lock().unwrap().push((group.to_owned(), term));
    }

    fn controlled(&self, group: &str, number: u64) {
        self.controlled.lock().unwrap().push((group.to_owned(), number));
    }

    fn due(&self, group: &str, at: jiff::Timestamp) {
        self.due.lock().unwrap().push((group.to_owned(), at));
    }

    fn deaf(&self, error: StoreError) {
        panic!("{error}");
    }

    fn gap(&self) {
        *self.gaps.lock().unwrap() += 1;
    }
}
