//! The store's rules: what `campaign.lua`, `renew.lua` and `release.lua` do to the keys of one group.

use crate::config::{Config, FSYNC, Mutant, Young};
use crate::state::{ENDLESS, NOBODY, Store, UNBORN, slot_of};

/// What a campaign asks.
#[derive(Clone, Copy, Debug)]
pub struct Ask {
    pub slot: usize,
    pub holder: u8,
    pub known: u8,
    pub yields: u8,
}

/// What else the script sees.
#[derive(Clone, Copy, Debug)]
pub struct Server {
    pub uptime: i8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Taken; the term is still to be minted.
    Acquired,
    /// Another's, for so long still.
    Held(u8),
    Stale,
    Yielded(u8),
    Quarantined(u8),
}

fn signed(number: u8) -> i8 {
    number.cast_signed()
}

impl Store {
    pub fn campaign(&mut self, config: &Config, ask: Ask, server: Server) -> Verdict {
        let ttl = config.ttl[ask.slot];
        self.quarantine = self.quarantine.max(ttl);
        let no_mark = config.has(Mutant::NoBirthMark);
        if (self.born == UNBORN || self.born < 0) && !no_mark {
            self.born = 0;
        }

        let is_own = |name: u8| {
            let same_id = |name| config.one_id || slot_of(name) == ask.slot;
            name != NOBODY && (name == ask.holder || config.only_one && same_id(name))
        };
        let held = self.holder != NOBODY;
        let own = is_own(self.holder);
        if held && !own {
            if self.holder != self.last {
                return Verdict::Held(self.left);
            }
            if self.ttl > 0 && self.left > self.ttl && !config.has(Mutant::NeverClamp) {
                self.left = if config.has(Mutant::ClampTooShort) {
                    1
                } else if config.has(Mutant::ClampToOwnTtl) {
                    ttl
                } else {
                    self.ttl
                };
            }
            return Verdict::Held(self.left);
        }

        let mut seen = self.seen;
        if seen < 0 && !config.has(Mutant::SeenStaysInFuture) {
            seen = if config.has(Mutant::SeenInFutureIsOld) {
                config.old
            } else {
                0
            };
            self.seen = seen;
        }
        let mut wait = if no_mark {
            0
        } else {
            signed(self.quarantine) - self.born
        };
        let last_ttl = signed(self.ttl.max(ttl));
        let by_age = signed(self.quarantine) - server.uptime;
        let leads = if config.has(Mutant::LateRenewalForgotten) { 1 } else { 2 };
        let young = match config.young {
            Young::BySeen if !self.released && ask.known <= self.term => {
                (signed(FSYNC) + leads * last_ttl - seen).min(by_age)
            }
            Young::BySeen | Young::ByAge => by_age,
        };
        if !config.has(Mutant::NeverYoung) {
            wait = wait.max(young);
        }
        let knows = ask.known >= self.term || config.has(Mutant::ExemptWithoutTerm);
        let exempt = is_own(self.last) && knows;
        if !held && !self.released && !exempt && !config.has(Mutant::VanishedIsVacant) {
            wait = wait.max(signed(self.ttl) - seen);
        }
        if wait > 0 {
            return Verdict::Quarantined(wait.cast_unsigned());
        }
        if self.term > ask.known && !config.has(Mutant::NeverStale) {
            return Verdict::Stale;
        }
        if !own && ask.yields > 0 {
            let vacant = if self.released {
                self.vacant
            } else {
                seen - signed(self.ttl)
            };
            let mark = if no_mark {
                config.old
            } else {
                self.born - signed(self.quarantine)
            };
            let mut since = vacant.min(mark).max(0);
            if config.has(Mutant::YieldForEver) {
                since = 0;
            }
            let rest = signed(ask.yields) - since;
            if rest > 0 {
                return Verdict::Yielded(rest.cast_unsigned());
            }
        }
        self.holder = ask.holder;
        self.left = ttl;
        self.last = ask.holder;
        self.ttl = ttl;
        self.seen = 0;
        self.released = false;
        self.vacant = config.old;
        Verdict::Acquired
    }

    /// Whether it was the sender's.
    pub fn renew(&mut self, config: &Config, slot: usize, holder: u8, term: u8) -> bool {
        let same_term = self.term == term || config.has(Mutant::RenewOfAnyTerm);
        let same_holder =
            self.holder == holder || config.has(Mutant::RenewAcquires) && self.holder == NOBODY && self.last == holder;
        if !(same_holder && same_term) {
            return false;
        }
        self.holder = holder;
        self.left = config.ttl[slot];
        self.ttl = config.ttl[slot];
        self.seen = 0;
        true
    }

    /// Whether it was the sender's.
    pub fn release(&mut self, config: &Config, holder: u8, term: u8) -> bool {
        let same_term = self.term == term || config.has(Mutant::ReleaseOfAnyTerm);
        if self.holder != holder || !same_term {
            return false;
        }
        self.vacate();
        self.released = self.term == term;
        self.vacant = 0;
        true
    }

    /// The lease key is deleted.
    pub fn vacate(&mut self) {
        self.holder = NOBODY;
        self.left = 0;
    }

    /// The lease never ends by itself.
    pub fn persist(&mut self) {
        self.left = ENDLESS;
    }
}
