//! Probes of the runtime that runs the bodies: what it does not run need not be led.

use super::Engine;
use super::input::Input;
use crate::clock::Moment;
use crate::election::Lost;
use crate::event::Event;
use crate::runtime::watch::Step;

impl Engine {
    pub(super) fn probes_turn(&mut self, now: Moment) {
        match self.watch.look(now) {
            Some(Step::Probe(number)) => {
                let inbox = self.shared.inbox.clone();
                // Runs nothing of the user's: whatever worker is free answers at once. A stopped engine needs no answer.
                self.bodies.spawn(self.shared.config.process.hold(async move {
                    let _ = inbox.send(Input::Probed(number));
                }));
            }
            Some(Step::Wedged(since)) => {
                let running = self.runs.jobs().map(|job| self.jobs[job].name.to_string());
                let running = running.collect();
                self.shared.tell(Event::RuntimeWedged { since, running });
                self.roster.set_wedged(true);
                for group in &mut self.groups {
                    group.election.abandon(now, Lost::Wedged);
                }
                self.elections_turn(now);
            }
            None => {}
        }
    }

    pub(super) fn probed(&mut self, now: Moment, number: u64) {
        if !self.watch.answered(number) {
            return;
        }
        self.shared.tell(Event::RuntimeRecovered);
        self.roster.set_wedged(false);
        for group in &mut self.groups {
            group.election.rejoin(now);
        }
        self.elections_turn(now);
    }
}
