//! The canonical form of a state: moments from now, numbers and attempts by rank, instances in any order. States of one form go on
//! alike, and are visited once.
//!
//! It tells apart what the machine and the store tell (`marks`), and nothing that they do not. That ranks suffice: whatever the store
//! mints is above every number that anybody has seen, as long as the store loses nothing.

use leader_core::__seam::{CampaignReply, Mark, Reply};
use leader_core::Moment;

use super::config::{Config, Fault, SLOTS, UNIT};
use super::state::{Message, State, Verdict, What, number_of, owner, tick, units_since, units_until};

#[derive(Clone, Copy)]
enum Piece {
    Plain(u64),
    Number(u64),
    Attempt(u64),
    Life(u16),
}

/// Room for the work, used again and again.
#[derive(Default)]
pub struct Canon {
    pieces: [Vec<Piece>; SLOTS],
    store: Vec<Piece>,
    numbers: Vec<u64>,
    attempts: Vec<u64>,
    lives: Vec<u16>,
    holders: Vec<(usize, u16)>,
}

/// The numbers of a state, in order: their places are their ranks.
pub fn ranks(state: &State, config: &Config) -> Vec<u64> {
    let mut canon = Canon::default();
    canon.gather(state, config);
    canon.numbers
}

impl Canon {
    /// 64 bits of the canonical form.
    pub fn fingerprint(&mut self, state: &State, config: &Config) -> u64 {
        self.gather(state, config);
        let mut of_processes = [0; SLOTS];
        for (slot, sum) in of_processes[..config.instances].iter_mut().enumerate() {
            self.rank_within(slot);
            *sum = self.sum(&self.pieces[slot], if config.symmetric() { 0 } else { slot as u64 });
        }
        if config.symmetric() {
            of_processes[..config.instances].sort_unstable();
        }
        let mut sum = self.sum(&self.store, 0);
        for of_process in &of_processes[..config.instances] {
            sum = mix(sum, *of_process);
        }
        sum
    }

    fn gather(&mut self, state: &State, config: &Config) {
        self.holders.clear();
        self.numbers.clear();
        self.numbers.push(0);
        let (now, mut pieces) = (state.store_now(), std::mem::take(&mut self.store));
        pieces.clear();
        let holders = &mut self.holders;
        state.store.marks(now, &mut |mark| {
            if let Mark::Holder(holder) = mark {
                holders.push(owner(holder));
            }
            pieces.push(piece(mark, now, config));
        });
        pieces.push(Piece::Number(state.led));
        pieces.push(Piece::Plain(bytes(&state.faults)));
        pieces.push(Piece::Plain(bytes(&state.started)));
        pieces.push(Piece::Plain(state.calm.map_or(0, |calm| 1 + u64::from(calm))));
        pieces.push(Piece::Plain(until_ticks(state, config)));
        note_numbers(&pieces, &mut self.numbers);
        self.store = pieces;
        for slot in 0..config.instances {
            let mut pieces = std::mem::take(&mut self.pieces[slot]);
            pieces.clear();
            process_pieces(state, config, slot, &mut pieces);
            let own = self.holders.iter().enumerate().filter(|(_, owner)| owner.0 == slot);
            for (place, (_, life)) in own {
                pieces.push(Piece::Plain(1000 + place as u64));
                pieces.push(Piece::Life(*life));
            }
            note_numbers(&pieces, &mut self.numbers);
            self.pieces[slot] = pieces;
        }
        self.numbers.sort_unstable();
        self.numbers.dedup();
    }

    fn rank_within(&mut self, slot: usize) {
        self.attempts.clear();
        self.lives.clear();
        for piece in &self.pieces[slot] {
            match piece {
                Piece::Attempt(number) => self.attempts.push(*number),
                Piece::Life(life) => self.lives.push(*life),
                _ => {}
            }
        }
        self.attempts.sort_unstable();
        self.attempts.dedup();
        self.lives.sort_unstable();
        self.lives.dedup();
    }

    fn sum(&self, pieces: &[Piece], seed: u64) -> u64 {
        let mut sum = mix(0x9E37_79B9_7F4A_7C15, seed);
        for piece in pieces {
            let word = match piece {
                Piece::Plain(word) => *word,
                Piece::Number(number) => rank(&self.numbers, number),
                Piece::Attempt(number) => rank(&self.attempts, number),
                // From the present one, which every process tells of.
                Piece::Life(life) => self.lives.len() as u64 - rank(&self.lives, life),
            };
            sum = mix(sum, word);
        }
        sum
    }
}

fn rank<T: Ord>(sorted: &[T], value: &T) -> u64 {
    sorted
        .iter()
        .position(|other| other == value)
        .map_or(u64::MAX, |at| at as u64)
}

fn mix(sum: u64, word: u64) -> u64 {
    let mut mixed = sum ^ word;
    mixed = (mixed ^ mixed >> 32).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    mixed = (mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (mixed ^ mixed >> 32).wrapping_add(0x9E37_79B9_7F4A_7C15)
}

fn bytes(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

/// How long it is to the last tick, and to the end of time where it ends.
fn until_ticks(state: &State, config: &Config) -> u64 {
    let Some(last) = config.ticks.checked_sub(1) else {
        return 0;
    };
    let left = (tick(config, last) - state.wall_seconds()).max(0).cast_unsigned();
    left | config.horizon.saturating_sub(state.time) << 32
}

/// Where an instant is among the ticks: only they are compared, and a first cursor before them.
fn among_ticks(config: &Config, instant: i64) -> u64 {
    let place = |number: &u8| tick(config, *number) <= instant;
    let before = (0..config.ticks).filter(place).count() as u64;
    2 * before + u64::from(number_of(config, instant).is_some())
}

fn note_numbers(pieces: &[Piece], numbers: &mut Vec<u64>) {
    for piece in pieces {
        if let Piece::Number(number) = piece
            && !numbers.contains(number)
        {
            numbers.push(*number);
        }
    }
}

/// A moment or a number as it counts.
fn piece(mark: Mark<'_>, now: Moment, config: &Config) -> Piece {
    match mark {
        Mark::Plain(word) => Piece::Plain(word),
        Mark::Due(at) => Piece::Plain(units_until(at, now)),
        // Beyond a TTL every trust and every silence is over.
        Mark::Since(at) => Piece::Plain(units_since(at, now).min(config.ttl + 1)),
        Mark::Vacant(at) => {
            let longest = config.yields.iter().copied().max().unwrap_or(0);
            Piece::Plain(units_since(at, now).min(longest))
        }
        Mark::Instant(millis) => Piece::Plain(among_ticks(config, millis.div_euclid(1000))),
        Mark::Number(number) => Piece::Number(number),
        Mark::Attempt(number) => Piece::Attempt(number),
        // Told among the pieces of whose it is.
        Mark::Holder(_) => Piece::Plain(0),
    }
}

fn process_pieces(state: &State, config: &Config, slot: usize, pieces: &mut Vec<Piece>) {
    let process = &*state.processes[slot];
    let now = state.now(slot);
    process.machine.marks(&mut |mark| pieces.push(piece(mark, now, config)));
    pieces.push(Piece::Life(process.life));
    let gate = process.gate;
    let flags = [gate.trust_until != 0, gate.open_until != 0, process.wedged];
    pieces.push(Piece::Plain(
        flags.iter().fold(0, |sum, flag| sum * 2 + u64::from(*flag)),
    ));
    pieces.push(Piece::Plain(units_until(Moment::from_nanos(gate.trust_until), now)));
    if gate.trust_until != 0 {
        pieces.push(Piece::Number(gate.term));
    }
    if config.faults[Fault::Slip as usize] > 0 {
        let ago = process
            .slipped_at
            .map_or(config.ttl, |at| (state.time - at).min(config.ttl));
        pieces.push(Piece::Plain(ago));
    }
    let work = &process.work;
    if work.term != 0 || work.claim.is_some() || work.last_claim != 0 {
        pieces.push(Piece::Number(work.term));
        pieces.push(Piece::Number(work.known));
        pieces.push(Piece::Plain(
            work.cursor.map_or(u64::MAX, |cursor| among_ticks(config, cursor)),
        ));
        pieces.push(Piece::Plain(work.last_claim));
        pieces.push(Piece::Attempt(work.asks.unwrap_or(0)));
        if let Some((request, claim)) = work.claim {
            pieces.push(Piece::Attempt(request));
            claim_pieces(config, claim, pieces);
        }
        for fence in &work.running {
            pieces.push(Piece::Plain(2000));
            pieces.push(Piece::Number(*fence));
        }
    }
    for message in &process.messages {
        message_pieces(config, message, message.life == process.life, pieces);
    }
}

fn claim_pieces(config: &Config, claim: super::state::Claim, pieces: &mut Vec<Piece>) {
    pieces.push(Piece::Number(claim.term));
    for word in [
        claim.number,
        among_ticks(config, claim.tick),
        among_ticks(config, claim.cursor),
    ] {
        pieces.push(Piece::Plain(word));
    }
}

fn message_pieces(config: &Config, message: &Message, alive: bool, pieces: &mut Vec<Piece>) {
    let mut tell = |kind: u64, number: u64, word: u64| {
        pieces.push(Piece::Plain(3000 + 2 * kind + u64::from(message.void)));
        pieces.push(Piece::Life(message.life));
        // Nobody waits for the answers of a dead process; their order is told by their place.
        pieces.push(if alive {
            Piece::Attempt(message.attempt)
        } else {
            Piece::Plain(0)
        });
        pieces.push(Piece::Number(number));
        pieces.push(Piece::Plain(word));
    };
    let span = |span: std::time::Duration| span.as_nanos().div_ceil(UNIT.as_nanos()).try_into().unwrap_or(u64::MAX);
    match &message.what {
        What::Campaign { known, yields } => tell(0, *known, *yields),
        What::Renew { term } => tell(1, *term, 0),
        What::Release { term } => tell(2, *term, 0),
        What::TakeOver { term } => tell(3, *term, 0),
        What::Told { term } => tell(4, *term, 0),
        What::TakenOver { term, cursor } => {
            tell(5, *term, cursor.map_or(u64::MAX, |cursor| among_ticks(config, cursor)));
        }
        What::Answer(Reply::Campaign(reply)) => match *reply {
            CampaignReply::Acquired { term } => tell(6, term, 0),
            CampaignReply::Held { remaining, term } => tell(7, term, remaining.map_or(u64::MAX, span)),
            CampaignReply::Stale { term } => tell(8, term, 0),
            CampaignReply::Yielded { remaining, term } => tell(9, term, span(remaining)),
            CampaignReply::Quarantined { remaining, term } => tell(10, term, span(remaining)),
        },
        What::Answer(Reply::Renewed) => tell(11, 0, 0),
        What::Answer(Reply::NotYours { held, term }) => tell(12, *term, u64::from(*held)),
        What::Answer(Reply::Released) => tell(13, 0, 0),
        What::Answer(Reply::Failed) => tell(14, 0, 0),
        What::Claim(claim) => {
            tell(15, 0, 0);
            claim_pieces(config, *claim, pieces);
        }
        What::Claimed(claim, verdict) => {
            match *verdict {
                Verdict::Won(fence) => tell(16, fence, 0),
                Verdict::Moved(cursor) => tell(17, 0, among_ticks(config, cursor)),
                Verdict::Overlapped => tell(18, 0, 0),
                Verdict::NotYours => tell(19, 0, 0),
            }
            claim_pieces(config, *claim, pieces);
        }
    }
}
