//! Requests executed by the store's real steps, wrapped where a wrong rule is wanted.

use std::rc::Rc;
use std::time::Duration;

use leader_core::__seam::{
    Campaign, ClaimBatch, ClaimReply, Claimed, End, Release, Renewal, Renewed, Reply, SettleBatch, TakeOver, TakenOver,
    Want, Writer,
};
use leader_core::{Holder, Origin, Overlap, Ran};

use super::config::{Config, Mutant, Property, units};
use super::state::{Message, State, Verdict, WANT, What, at, group, holder, job, number_of, owner};

/// The schedule's text; what it says counts for nothing here.
const SCHEDULE: &str = "every 1s";

/// What became of a request.
pub struct Executed {
    pub answer: What,
    /// It gave a lease back.
    pub released: bool,
    pub broken: Option<Property>,
}

/// Executes a request of an instance at this instant.
pub fn execute(state: &mut State, config: &Config, slot: usize, message: &Message) -> Executed {
    let before = Rc::clone(&state.store);
    let mut sender = Sender {
        holder: holder(slot, message.life),
        config,
        state,
    };
    let (mut broken, mut released) = (None, false);
    let answer = match &message.what {
        What::Campaign { known, yields } => What::Answer(sender.campaign(*known, *yields)),
        What::Renew { term } => What::Answer(sender.renew(*term)),
        What::Release { term } => {
            released = sender.release(*term);
            What::Answer(Reply::Released)
        }
        What::TakeOver { term } => sender.take_over(*term),
        What::Claim(claim) => {
            let verdict = sender.claim(*claim);
            if let Verdict::Won(fence) = verdict {
                let held = slot_holds(state, slot, message.life, claim.term);
                if !held {
                    broken = Some(Property::ClaimUnderLease);
                }
                let again = before
                    .job(&job())
                    .is_some_and(|job| job.open.iter().any(|run| run.fence == fence));
                if !again && fence <= before.fence() {
                    broken = Some(Property::NumbersRise);
                }
            }
            What::Claimed(*claim, verdict)
        }
        _ => unreachable!("an answer is not executed"),
    };
    let after = &state.store;
    if after.term() < before.term() || after.fence() < before.fence() || after.term() > after.fence() {
        broken = broken.or(Some(Property::NumbersRise));
    }
    let mine = |(name, ends): (&Holder, _)| owner(name) == (slot, message.life) && state.store_now() < ends;
    let prolongs = matches!(message.what, What::Campaign { .. } | What::Renew { .. });
    let changed = (after.lease(), after.term()) != (before.lease(), before.term());
    if message.void && prolongs && changed && after.lease().is_some_and(mine) {
        broken = broken.or(Some(Property::NoGhost));
    }
    Executed {
        answer,
        released,
        broken: broken.or_else(|| ledger(&before, state, config)),
    }
}

fn slot_holds(state: &State, slot: usize, life: u16, term: u64) -> bool {
    let mine = |(name, ends): (&Holder, _)| owner(name) == (slot, life) && state.store_now() < ends;
    state.store.term() == term && state.store.lease().is_some_and(mine)
}

/// What must hold of the job's part of the ledger.
fn ledger(before: &leader_core::__seam::GroupSteps, state: &State, config: &Config) -> Option<Property> {
    let job = state.store.job(&job())?;
    let cursor_before = before.job(&super::state::job()).and_then(|job| job.cursor);
    if job.cursor < cursor_before {
        return Some(Property::CursorRises);
    }
    let of_open = job.open.iter().map(|run| run.tick);
    let of_records = job
        .records
        .iter()
        .filter(|record| record.outcome.is_ran())
        .map(|record| record.first);
    let mut runs = [0_u8; 2];
    for tick in of_open.chain(of_records) {
        let number = number_of(config, tick.as_second())?;
        runs[usize::from(number)] += 1;
    }
    runs.iter().any(|runs| *runs > 1).then_some(Property::TickOnce)
}

struct Sender<'a> {
    holder: Holder,
    config: &'a Config,
    state: &'a mut State,
}

impl Sender<'_> {
    fn campaign(&mut self, known: u64, yields: u64) -> Reply {
        let (now, wall) = (self.state.store_now(), self.state.wall());
        let store = Rc::make_mut(&mut self.state.store);
        let own = store
            .lease()
            .is_some_and(|(holder, ends)| *holder == self.holder && now < ends);
        if own && self.config.has(Mutant::OwnLeaseKeepsTerm) {
            let term = store.term();
            let renewal = Renewal {
                group: group(),
                holder: self.holder.clone(),
                term,
                ttl: self.config.timing.ttl(),
            };
            store.renew(&renewal, now, wall);
            return Reply::Campaign(leader_core::__seam::CampaignReply::Acquired { term });
        }
        let known = if self.config.has(Mutant::NeverStale) {
            known.max(store.term())
        } else {
            known
        };
        let request = Campaign {
            group: group(),
            holder: self.holder.clone(),
            ttl: self.config.timing.ttl(),
            longest: self.config.timing.ttl(),
            known,
            first_start: true,
            only_one: false,
            yields: units(yields),
        };
        Reply::Campaign(store.campaign(&request, now, wall).verdict)
    }

    fn renew(&mut self, term: u64) -> Reply {
        let (now, wall) = (self.state.store_now(), self.state.wall());
        let store = Rc::make_mut(&mut self.state.store);
        let request = Renewal {
            group: group(),
            holder: self.holder.clone(),
            term,
            ttl: self.config.timing.ttl(),
        };
        if let (Some((holder, _)), true) = (store.lease(), self.config.has(Mutant::RenewIgnoresHolder)) {
            let another = Release {
                group: group(),
                holder: holder.clone(),
                term: store.term(),
                draining_since: None,
            };
            if *holder != self.holder && store.release(&another, now, wall) {
                let known = store.term();
                self.campaign(known, 0);
                return Reply::Renewed;
            }
        }
        let known = store.term();
        match store.renew(&request, now, wall) {
            Renewed::Yes { .. } => Reply::Renewed,
            Renewed::NotYours { holder: None, .. } if self.config.has(Mutant::RenewAcquires) => {
                self.campaign(known, 0);
                Reply::Renewed
            }
            Renewed::NotYours { holder, term } => Reply::NotYours {
                held: holder.is_some(),
                term,
            },
        }
    }

    fn release(&mut self, term: u64) -> bool {
        let (now, wall) = (self.state.store_now(), self.state.wall());
        let store = Rc::make_mut(&mut self.state.store);
        let mut request = Release {
            group: group(),
            holder: self.holder.clone(),
            term,
            draining_since: None,
        };
        match (self.config.mutant, store.lease()) {
            (Some(Mutant::ReleaseIgnoresTerm), _) => request.term = store.term(),
            (Some(Mutant::ReleaseIgnoresHolder), Some((holder, _))) => {
                request.holder = holder.clone();
                request.term = store.term();
            }
            _ => {}
        }
        store.release(&request, now, wall)
    }

    fn take_over(&mut self, term: u64) -> What {
        let (now, wall) = (self.state.store_now(), self.state.wall());
        let request = TakeOver {
            group: group(),
            holder: self.holder.clone(),
            term,
            jobs: vec![job()],
            schedules: vec![SCHEDULE.into()],
            writer: Writer::default(),
            elsewhere: None,
            was: vec![Vec::new()],
            beside: Vec::new(),
        };
        let cursor = match Rc::make_mut(&mut self.state.store).take_over(&request, now, wall) {
            TakenOver::Yours { cursors, .. } => cursors.first().map(|cursor| cursor.as_second()),
            TakenOver::NotYours => None,
        };
        What::TakenOver { term, cursor }
    }

    fn claim(&mut self, claim: super::state::Claim) -> Verdict {
        let (now, wall) = (self.state.store_now(), self.state.wall());
        let (slot, life) = owner(&self.holder);
        let alive = &self.state.processes[slot];
        let alive = if alive.life == life {
            alive.work.running.clone()
        } else {
            Vec::new()
        };
        let known = self.state.processes[slot].work.known;
        let store = Rc::make_mut(&mut self.state.store);
        let (mut holder, mut term) = (self.holder.clone(), claim.term);
        if let (Some((name, _)), true) = (store.lease(), self.config.has(Mutant::ClaimOfAnyTerm)) {
            (holder, term) = (name.clone(), store.term());
        }
        let extra = self.config.has(Mutant::ClaimIgnoresCursor);
        let batch = ClaimBatch {
            group: group(),
            holder,
            term,
            known,
            claiming: claim.number,
            first: 0,
            silence: self.config.timing.ttl(),
            patience: Duration::ZERO,
            connected: self.config.timing.ttl(),
            claims: vec![leader_core::__seam::Claim {
                job: job(),
                number: claim.number,
                tick: at(claim.tick),
                cursor: at(claim.cursor),
                want: if extra { Want::Extra(Origin::Schedule) } else { WANT },
                overlap: if extra { Overlap::Allow } else { Overlap::Skip },
                passed: Vec::new(),
                alive,
                further: None,
                schedule: SCHEDULE.into(),
                adopts: "".into(),
                meets: None,
            }],
            writer: Writer::default(),
        };
        match store.claim(&batch, now, wall) {
            Claimed::NotYours => Verdict::NotYours,
            Claimed::Yours(replies) => match &replies[..] {
                [ClaimReply::Won { fence }] => Verdict::Won(*fence),
                [ClaimReply::Moved { cursor, .. }] => Verdict::Moved(cursor.as_second()),
                [ClaimReply::Overlapped] => Verdict::Overlapped,
                other => unreachable!("{other:?}"),
            },
        }
    }
}

/// The end of a run reaches the store.
pub fn settle(state: &mut State, fence: u64) {
    let (now, wall) = (state.store_now(), state.wall());
    let batch = SettleBatch {
        group: group(),
        ends: vec![End {
            job: job(),
            fence,
            ran: Ran::Ok,
            error: String::new(),
            again_in: None,
        }],
    };
    Rc::make_mut(&mut state.store).settle(&batch, now, wall);
}
