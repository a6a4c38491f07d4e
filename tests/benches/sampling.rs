//! Interleaved sampling: every round measures each case once, so that whatever disturbs the machine disturbs all of them, and a
//! case is compared with the clock read of its own round.

use std::time::{Duration, Instant};

/// How long one sample takes.
const SAMPLE: Duration = Duration::from_millis(1);
const ROUNDS: usize = 301;

/// One thing to measure.
pub struct Case<'a> {
    name: &'static str,
    /// Runs it so many times. The loop is inside, so that no call through a pointer is measured.
    time: Box<dyn FnMut(u32) -> Duration + 'a>,
}

impl<'a> Case<'a> {
    pub fn new(name: &'static str, mut run: impl FnMut() + 'a) -> Self {
        Self::timed(name, move |times| {
            let began = Instant::now();
            for _ in 0..times {
                run();
            }
            began.elapsed()
        })
    }

    /// A case that runs itself so many times, and says how long that took.
    pub fn timed(name: &'static str, time: impl FnMut(u32) -> Duration + 'a) -> Self {
        let time = Box::new(time);
        Self { name, time }
    }

    /// How many runs make a sample.
    fn calibrate(&mut self) -> u32 {
        let mut times = 64;
        loop {
            let took = (self.time)(times);
            if took >= SAMPLE / 2 {
                let one = (took / times).max(Duration::from_nanos(1));
                return u32::try_from(SAMPLE.as_nanos() / one.as_nanos())
                    .unwrap_or(u32::MAX)
                    .max(1);
            }
            times *= 2;
        }
    }
}

/// Measures the cases, each against `unit`, and prints the medians.
pub fn compare(title: &str, unit: &mut Case<'_>, mut cases: Vec<Case<'_>>) {
    // A word on the command line chooses cases, for a profiler's sake.
    if let Some(chosen) = std::env::args().skip(1).find(|word| !word.starts_with('-')) {
        cases.retain(|case| title.contains(&chosen) || case.name.contains(&chosen));
    }
    let per_run = |case: &mut Case<'_>, times: u32| (case.time)(times).as_secs_f64() * 1e9 / f64::from(times);
    let unit_times = unit.calibrate();
    let times: Vec<u32> = cases.iter_mut().map(Case::calibrate).collect();
    let mut units = Vec::with_capacity(ROUNDS);
    let mut samples = vec![Vec::with_capacity(ROUNDS); cases.len()];
    let mut ratios = samples.clone();
    for _ in 0..ROUNDS {
        let one = per_run(unit, unit_times);
        units.push(one);
        for (at, case) in cases.iter_mut().enumerate() {
            let cost = per_run(case, times[at]);
            samples[at].push(cost);
            ratios[at].push(cost / one);
        }
    }
    println!("\n{title}");
    println!("{:<52} {:>9} {:>17}", "", "median", unit.name);
    println!("{:<52} {:>6.1} ns {:>15.2} ×", unit.name, median(&mut units), 1.0);
    for (case, (samples, ratios)) in cases.iter().zip(samples.iter_mut().zip(&mut ratios)) {
        println!(
            "{:<52} {:>6.1} ns {:>15.2} ×",
            case.name,
            median(samples),
            median(ratios)
        );
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
