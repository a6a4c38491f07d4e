//! Makes the faults of a plan happen.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::fault::{Fault, FaultKind};
use super::seen::Seen;
use super::world::{World, lock};
use crate::clock::of_timers;
use crate::runtime::process::Process;

/// How long an orchestrator waits for a process that it has asked to end.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

impl World {
    /// Lets a fault begin. It ends by itself.
    pub(super) fn afflict(self: &Arc<Self>, fault: &Fault, number: usize) {
        let (machine, until) = (&self.machines[fault.instance], of_timers() + fault.lasts);
        match fault.kind {
            FaultKind::Delay
            | FaultKind::LostRequest
            | FaultKind::LostReply
            | FaultKind::LateRequest
            | FaultKind::CutOut
            | FaultKind::CutIn
            | FaultKind::Held
            | FaultKind::Refused => {
                // Each message that it happens to is counted.
                lock(&machine.way.weather).begin(fault.kind, until, fault.strength);
                self.see(&Seen::Fault(fault));
                return;
            }
            FaultKind::Pause => self.pause(fault.instance, fault.lasts),
            FaultKind::Crash => {
                let Some((who, ..)) = self.living(fault.instance) else {
                    return;
                };
                self.kill(who);
                self.start_later(fault.instance, fault.lasts);
            }
            FaultKind::Restart => {
                let (world, instance) = (Arc::clone(self), fault.instance);
                tokio::spawn(async move {
                    world.shut_down(instance, PATIENCE).await;
                    world.start(instance);
                });
            }
            FaultKind::Panic => {
                let Some((_, _, Some(handle))) = self.living(fault.instance) else {
                    return;
                };
                crate::testing::panic(&handle);
            }
            FaultKind::WallStep => {
                let step = jiff::SignedDuration::from_millis(fault.strength);
                machine.step_wall(step);
                let (me, instance, lasts) = (self.weak(), fault.instance, fault.lasts);
                tokio::spawn(async move {
                    sleep(lasts).await;
                    if let Some(world) = Weak::upgrade(&me) {
                        world.machines[instance].put_wall_right();
                    }
                });
            }
            FaultKind::StepDown => self.ask_to_step_down(fault.instance),
            _ => self.servers.afflict(fault, number, &self.groups()),
        }
        self.count(fault.kind);
        self.see(&Seen::Fault(fault));
    }

    fn pause(&self, instance: usize, lasts: Duration) {
        let Some((who, process, _)) = self.living(instance) else {
            return;
        };
        process.stop();
        let mut life = lock(&self.machines[instance].life);
        life.stops += 1;
        life.stopped += 1;
        drop(life);
        let me = self.weak();
        tokio::spawn(async move {
            sleep(lasts).await;
            let Some(world) = Weak::upgrade(&me) else { return };
            let mut life = lock(&world.machines[who.instance].life);
            life.stops = life.stops.saturating_sub(1);
            let goes_on = life.stops == 0;
            drop(life);
            if goes_on && let Some((_, process, _)) = world.living(who.instance) {
                process.go_on();
            }
        });
    }

    /// Whoever leads the first group is asked to step down, by this instance.
    fn ask_to_step_down(&self, instance: usize) {
        let Some((who, process, Some(handle))) = self.living(instance) else {
            return;
        };
        // One at a time: which of two hears the end first is for tokio's own dice.
        if self.machines[instance].asking.swap(true, Ordering::SeqCst) {
            return;
        }
        let me = self.weak();
        let timing = self.setting.timing;
        tokio::spawn(async move {
            let bound = PATIENCE + 4 * timing.ttl();
            for status in handle.groups() {
                let Some(stood) = me.upgrade().and_then(|world| world.stood(who)) else {
                    break;
                };
                let (began, handle) = (of_timers(), handle.clone());
                let asking = Process::from(Arc::clone(&process)).hold(async move {
                    // What becomes of it is not the point.
                    let _ = handle.step_down(status.group.as_str()).await;
                });
                let _ = timeout(2 * bound, asking).await;
                let Some(world) = me.upgrade() else { return };
                if world.stood(who) == Some(stood) {
                    world.see(&Seen::Called {
                        who,
                        what: "step_down",
                        took: began.elapsed(),
                        bound,
                    });
                }
            }
            if let Some(world) = me.upgrade() {
                world.machines[who.instance].asking.store(false, Ordering::SeqCst);
            }
        });
    }

    /// Ends everything that is wrong.
    pub(super) fn heal(self: &Arc<Self>) {
        self.servers.heal();
        for (instance, machine) in self.machines.iter().enumerate() {
            lock(&machine.way.weather).clear();
            lock(&machine.life).stops = 0;
            machine.put_wall_right();
            if let Some((_, process, _)) = self.living(instance) {
                process.go_on();
            }
            self.start(instance);
        }
        self.see(&Seen::Healed);
    }
}
