//! What a seed makes of a fleet: how large, with which jobs and times, and how bad its days are.

use std::time::Duration;

use leader_core::Timing;
use leader_core::testing::{Faults, Simulation};
use leader_tests::dice::Dice;

use crate::{jobs, tasks};

/// How long each seed is simulated.
pub(crate) const SPAN: Duration = Duration::from_secs(4 * 3_600);

/// The fleet of a seed. Every fourth store forgets, and every third fleet has tasks.
pub(crate) fn simulation(seed: u64) -> Simulation {
    let mut dice = Dice::new(seed);
    let instances = 2 + usize::try_from(dice.below(3).min(dice.below(8))).expect("a few");
    let ttl = [6, 10, 15, 20, 30][usize::try_from(dice.below(5)).expect("a few")];
    // Longer than a lease, some of them.
    let mut faults = Faults::fierce().times(0.3).up_to(Duration::from_secs(10 + 3 * ttl));
    if dice.below(4) == 0 {
        faults = faults.and_loss(0.3);
    }
    let mut simulation = Simulation::new()
        .seed(seed)
        .instances(instances)
        .timing(Timing::from_ttl(Duration::from_secs(ttl)))
        .lasting(SPAN)
        .faults(faults);
    let first = usize::try_from(dice.below(jobs::ALL.len() as u64)).expect("a few");
    let count = 2 + usize::try_from(dice.below(4)).expect("a few");
    for at in 0..count {
        // Steps of 5 meet each of the 12 once.
        let (_, add) = jobs::ALL[(first + 5 * at) % jobs::ALL.len()];
        simulation = add(simulation);
    }
    if dice.below(3) == 0 {
        let first = usize::try_from(dice.below(tasks::ALL.len() as u64)).expect("a few");
        for at in 0..=usize::try_from(dice.below(3)).expect("a few") {
            let (_, add) = tasks::ALL[(first + at) % tasks::ALL.len()];
            simulation = add(simulation);
        }
        let parts = 1 + u32::try_from(dice.below(3)).expect("a few");
        simulation = simulation.configure(move |bootstrap| bootstrap.tasks(|tasks| tasks.shards("two", parts)));
    }
    simulation
}
