//! Which instance a gated call asks: that of the run it is made in, else the only one of the process.

use std::borrow::Cow;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwapOption;
use jiff::Timestamp;
use rustc_hash::FxHashMap;

use super::gate::{Gate, Lead, Pass};
use crate::names::GroupName;

/// Why a gated call did not run here. Never an error of the body.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Skipped {
    /// This instance does not lead the function's group.
    NotLeader {
        /// The function's group.
        group: Cow<'static, str>,
        /// The instance that leads it, as last seen.
        leader: Option<String>,
        /// Since when.
        since: Option<Timestamp>,
    },
    /// No instance runs in this process: [`bootstrap`](crate::bootstrap) has not been called, or it was shut down.
    NotBootstrapped,
    /// Several instances run in this process and the call was made in the scope of none: wrap it in `instance.scope(…)`.
    Ambiguous,
}

impl std::fmt::Display for Skipped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotLeader {
                group,
                leader: Some(leader),
                since: Some(since),
            } => write!(f, "not leader of `{group}`: {leader} leads since {since:.0}"),
            Self::NotLeader {
                group,
                leader: Some(leader),
                since: None,
            } => write!(f, "not leader of `{group}`: {leader} leads"),
            Self::NotLeader { group, .. } => write!(f, "not leader of `{group}`: nobody is known to lead it"),
            Self::NotBootstrapped => f.write_str(
                "no instance runs in this process: call `leader_core::bootstrap(..)` first, or `leader_core::testing::as_leader` in a unit test",
            ),
            Self::Ambiguous => {
                f.write_str("several instances run in this process: make the call inside `instance.scope(..)` of the one that is meant")
            }
        }
    }
}

impl std::error::Error for Skipped {}

/// The gates of one instance.
#[derive(Debug)]
pub(crate) struct Gates {
    /// Sorted by group.
    sorted: Box<[Arc<Gate>]>,
    /// Every gated call looks here: with many groups a search would cost more than the clock.
    by_group: FxHashMap<GroupName, Arc<Gate>>,
}

impl Gates {
    pub(crate) fn new(gates: impl IntoIterator<Item = Arc<Gate>>) -> Self {
        let mut sorted: Vec<_> = gates.into_iter().collect();
        sorted.sort_by(|a, b| a.group().cmp(b.group()));
        let by_group = sorted.iter().map(|gate| (gate.group().clone(), Arc::clone(gate)));
        Self {
            by_group: by_group.collect(),
            sorted: sorted.into(),
        }
    }

    #[inline]
    pub(crate) fn get(&self, group: &str) -> Option<&Arc<Gate>> {
        self.by_group.get(group)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Gate>> {
        self.sorted.iter()
    }
}

/// What a task runs under.
#[derive(Debug)]
pub(crate) struct Scope {
    /// `None` in a unit test's open scope.
    gates: Option<Arc<Gates>>,
    body: Body,
}

/// The gated body that a task is in.
#[derive(Debug)]
enum Body {
    /// None.
    Outside,
    /// A run, or one that was let in by the leadership of its caller.
    Led(Lead),
    /// A plain call, which keeps its place in the drain as long as it lasts.
    Counted(Pass),
}

impl Scope {
    /// The scope of a body that was let in, of an instance, or (with neither) of a unit test.
    pub(crate) fn new(gates: Option<Arc<Gates>>, lead: Option<Lead>) -> Self {
        let body = lead.map_or(Body::Outside, Body::Led);
        Self { gates, body }
    }

    fn lead(&self) -> Option<&Lead> {
        match &self.body {
            Body::Outside => None,
            Body::Led(lead) => Some(lead),
            Body::Counted(pass) => Some(pass.lead()),
        }
    }
}

tokio::task_local! {
    static SCOPE: Scope;
}

/// The live instances of the process, and the one that calls outside any scope mean.
static LIVE: Mutex<Vec<Arc<Gates>>> = Mutex::new(Vec::new());
static ONLY: ArcSwapOption<Only> = ArcSwapOption::const_empty();

#[derive(Debug)]
enum Only {
    One(Arc<Gates>),
    Several,
}

fn change_live(change: impl FnOnce(&mut Vec<Arc<Gates>>)) {
    let mut live = LIVE.lock().unwrap_or_else(PoisonError::into_inner);
    change(&mut live);
    let only = match live.as_slice() {
        [] => None,
        [one] => Some(Only::One(Arc::clone(one))),
        _ => Some(Only::Several),
    };
    ONLY.store(only.map(Arc::new));
}

/// Makes an instance known to calls outside any scope.
pub(crate) fn register(gates: &Arc<Gates>) {
    change_live(|live| live.push(Arc::clone(gates)));
}

/// Takes an instance out again; twice does no harm.
pub(crate) fn unregister(gates: &Arc<Gates>) {
    change_live(|live| live.retain(|other| !Arc::ptr_eq(other, gates)));
}

/// Runs a future in a scope.
pub(crate) fn within<F: Future>(scope: Scope, future: F) -> impl Future<Output = F::Output> {
    SCOPE.scope(scope, future)
}

/// The leadership that the present gated body runs under; `None` outside one.
///
/// It does not cross `tokio::spawn`: clone it into the task.
#[must_use]
pub fn current() -> Option<Lead> {
    SCOPE.try_with(|scope| scope.lead().cloned()).ok().flatten()
}

/// A call that was let in. Counts in the drain until its body has ended.
#[derive(Debug)]
pub struct Entry(Scope);

impl Entry {
    /// Runs the body; `current()` works inside.
    // Not an `async fn`: that would hold the body twice.
    pub fn run<F: Future>(self, body: F) -> impl Future<Output = F::Output> {
        within(self.0, body)
    }
}

/// Decides, once and locally, whether a call of a function of `group` runs here.
///
/// # Errors
/// [`Skipped`], when it does not.
pub fn enter(group: &str) -> Result<Entry, Skipped> {
    match SCOPE.try_with(|scope| enter_in(scope, group)) {
        Ok(decided) => decided,
        Err(_outside) => match ONLY.load().as_deref() {
            Some(Only::One(gates)) => enter_gates(gates, group),
            Some(Only::Several) => Err(Skipped::Ambiguous),
            None => Err(Skipped::NotBootstrapped),
        },
    }
}

fn enter_in(scope: &Scope, group: &str) -> Result<Entry, Skipped> {
    let of_group = |lead: &&Lead| lead.is_of_a_term() && lead.group().as_str() == group;
    if let Some(lead) = scope.lead().filter(of_group) {
        // Inside a body of the same group the body's own leadership decides, draining or not. The drain counts the outer body.
        if !lead.is_leading() {
            return Err(not_leader(lead.gate()));
        }
        return Ok(Entry(Scope::new(scope.gates.clone(), Some(lead.clone()))));
    }
    match &scope.gates {
        Some(gates) => enter_gates(gates, group),
        None => Ok(open_entry(group)),
    }
}

fn enter_gates(gates: &Arc<Gates>, group: &str) -> Result<Entry, Skipped> {
    let gate = gates.get(group).ok_or_else(|| Skipped::NotLeader {
        group: Cow::Owned(group.to_owned()),
        leader: None,
        since: None,
    })?;
    let pass = gate.enter().ok_or_else(|| not_leader(gate))?;
    Ok(Entry(Scope {
        gates: Some(Arc::clone(gates)),
        body: Body::Counted(pass),
    }))
}

/// The entry of a unit test: any group, always led.
fn open_entry(group: &str) -> Entry {
    let name = GroupName::new(group.to_owned()).unwrap_or_else(|_| {
        // The macros check the name at compile time; a test's own text falls back to the plain group.
        GroupName::new(crate::names::DEFAULT_GROUP).expect("the default group's name is legal")
    });
    let lead = Lead::new(Arc::new(Gate::always_open(name)), 1, 1);
    Entry(Scope::new(None, Some(lead)))
}

fn not_leader(gate: &Gate) -> Skipped {
    let status = gate.status().borrow();
    Skipped::NotLeader {
        group: status.group.to_text(),
        leader: status.leader.clone(),
        since: status.since,
    }
}
