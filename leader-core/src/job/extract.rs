//! What a job's arguments may be, and where their values come from.

use std::any::{Any, TypeId, type_name};
use std::collections::BTreeMap;
use std::fmt;

use super::gate::Lead;
use super::tick::Tick;

/// A value given to `bootstrap(..).state(value)`, handed to every job that asks for its type.
///
/// ```
/// use leader_core::{State, leader_only};
///
/// #[derive(Clone)]
/// struct Db;
///
/// #[leader_only(cron = "0 3 * * *")]
/// async fn vacuum(State(db): State<Db>) {
///     let _: Db = db;
/// }
/// ```
///
/// A job that asks for a type nobody gave is refused when the instance starts; `Option<State<T>>` is `None` instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(
    clippy::exhaustive_structs,
    reason = "jobs take it apart in their arguments: `State(db): State<Db>`"
)]
pub struct State<T>(pub T);

/// An argument of a job: [`Tick`], [`Lead`], [`State<T>`] or `Option<State<T>>`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument of a job",
    label = "not something that a job can be given",
    note = "a job's arguments are `Tick`, `Lead`, `State<T>` (a value given to `bootstrap(..).state(value)`) and `Option<State<T>>`",
    note = "without a trigger (`cron`, `every`, `while_leading`) the function may take any arguments"
)]
pub trait Extract: Sized + sealed::Sealed {
    #[doc(hidden)]
    fn extract(given: &Given<'_>) -> Self;
    #[doc(hidden)]
    fn need(_needs: &mut Needs) {}
}

/// An argument of a `while_leading` body: every one but [`Tick`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument of a `while_leading` body",
    label = "not something that such a body can be given",
    note = "its arguments are `Lead`, `State<T>` (a value given to `bootstrap(..).state(value)`) and `Option<State<T>>`; it has no \
            `Tick`, because it runs at no planned instant"
)]
pub trait ExtractLeading: Extract {}

impl ExtractLeading for Lead {}
impl<T: Clone + Send + Sync + 'static> ExtractLeading for State<T> {}
impl<T: Clone + Send + Sync + 'static> ExtractLeading for Option<State<T>> {}

mod sealed {
    #[diagnostic::do_not_recommend]
    impl<T: Clone + Send + Sync + 'static> Sealed for super::State<T> {}
    pub trait Sealed {}
    impl Sealed for super::Tick {}
    impl Sealed for super::Lead {}
    impl<T: Clone + Send + Sync + 'static> Sealed for Option<super::State<T>> {}
}

/// What a run offers to its body's arguments.
#[doc(hidden)]
#[derive(Debug)]
pub struct Given<'a> {
    pub(crate) tick: Option<&'a Tick>,
    pub(crate) lead: &'a Lead,
    pub(crate) states: &'a States,
    /// What the schedule carries, as JSON, where it was made at run time.
    pub(crate) payload: Option<&'a str>,
}

impl Extract for Tick {
    fn extract(given: &Given<'_>) -> Self {
        // A `while_leading` body, which has none, takes `ExtractLeading` arguments only.
        given.tick.cloned().expect("a scheduled body has a tick")
    }

    fn need(needs: &mut Needs) {
        needs.tick = true;
    }
}

impl Extract for Lead {
    fn extract(given: &Given<'_>) -> Self {
        given.lead.clone()
    }
}

impl<T: Clone + Send + Sync + 'static> Extract for State<T> {
    fn extract(given: &Given<'_>) -> Self {
        state(given.states)
    }

    fn need(needs: &mut Needs) {
        need_state::<T>(needs);
    }
}

/// A state that was asked for.
pub(crate) fn state<T: Clone + 'static>(states: &States) -> State<T> {
    // `need_state` lists the type, and a missing one refuses the start.
    State(states.get::<T>().expect("the state was checked at the start"))
}

/// Asks for a state.
pub(crate) fn need_state<T: 'static>(needs: &mut Needs) {
    needs.states.push((TypeId::of::<T>(), type_name::<T>()));
}

impl<T: Clone + Send + Sync + 'static> Extract for Option<State<T>> {
    fn extract(given: &Given<'_>) -> Self {
        given.states.get::<T>().map(State)
    }
}

/// What the arguments of a body ask for.
#[doc(hidden)]
#[derive(Debug, Default)]
pub struct Needs {
    pub(crate) states: Vec<(TypeId, &'static str)>,
    pub(crate) tick: bool,
}

/// The values given to `.state(..)`, by type.
#[derive(Default)]
pub(crate) struct States {
    values: BTreeMap<TypeId, (&'static str, Box<dyn Any + Send + Sync>)>,
    /// Types that were given twice.
    pub(crate) doubled: Vec<&'static str>,
}

impl fmt::Debug for States {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.values.values().map(|(name, _)| name))
            .finish()
    }
}

impl States {
    pub(crate) fn insert<T: Clone + Send + Sync + 'static>(&mut self, value: T) {
        let name = type_name::<T>();
        if self.values.insert(TypeId::of::<T>(), (name, Box::new(value))).is_some() {
            self.doubled.push(name);
        }
    }

    pub(crate) fn get<T: Clone + 'static>(&self) -> Option<T> {
        self.values.get(&TypeId::of::<T>())?.1.downcast_ref::<T>().cloned()
    }

    pub(crate) fn has(&self, id: TypeId) -> bool {
        self.values.contains_key(&id)
    }
}
