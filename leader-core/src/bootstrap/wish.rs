//! What a job is to do on this instance: for each setting the environment's word, else the code's, else the attribute's.

use std::time::Duration;

use super::fault::Fault;
use super::settings::{Faults, Vars, refused};
use super::time_zones::TimeZones;
use super::tries::Tries;
use super::variables::job_prefix;
use crate::job::record::{Overlap, Record, Trigger};
use crate::schedule::planner::{self, Rule};
use crate::schedule::{Cron, Days, Schedule, ScheduleError, Zone, parse_duration};

/// Changes to one job; given to [`Bootstrap::job`](super::Bootstrap::job). A setting that is not named here stays the attribute's.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct JobSettings {
    off: bool,
    trigger: Option<(Kind, String)>,
    pub(super) timezone: Option<String>,
    pub(super) days: Option<Days>,
    grace: Option<String>,
    jitter: Option<String>,
    pub(super) retries: Option<u32>,
    pub(super) backoff: Option<String>,
    pub(super) except: Option<Vec<String>>,
}

impl JobSettings {
    /// Another cron expression; a bad one is an error of the start.
    pub fn cron(mut self, expression: &str) -> Self {
        self.trigger = Some((Kind::Cron, expression.to_owned()));
        self
    }

    /// A period such as `"30s"`; a bad one is an error of the start. A time zone of the attribute then has no meaning any more.
    pub fn every(mut self, period: &str) -> Self {
        self.trigger = Some((Kind::Every, period.to_owned()));
        self
    }

    /// The time zone on whose wall clock the cron expression is read, such as `"Europe/Berlin"`; a bad name, or a zone for a period,
    /// is an error of the start.
    pub fn timezone(mut self, name: &str) -> Self {
        self.timezone = Some(name.to_owned());
        self
    }

    /// How two restricted day fields of the cron expression combine; an error of the start where nothing is to be combined.
    pub fn days(mut self, days: Days) -> Self {
        self.days = Some(days);
        self
    }

    /// How late a tick may be and still simply run, such as `"30s"`; never more than the distance to the next tick. A bad duration is
    /// an error of the start.
    pub fn grace(mut self, grace: &str) -> Self {
        self.grace = Some(grace.to_owned());
        self
    }

    /// The most that a tick is due later than planned, such as `"30s"`; always less than the distance to the next tick. A bad
    /// duration is an error of the start.
    pub fn jitter(mut self, jitter: &str) -> Self {
        self.jitter = Some(jitter.to_owned());
        self
    }

    /// The calendars on whose days the job does not run, in place of the attribute's; none with `[""; 0]`. Each is given to
    /// [`Bootstrap::calendar`](super::Bootstrap::calendar); one that nobody gave is an error of the start.
    pub fn except<N: Into<String>>(mut self, calendars: impl IntoIterator<Item = N>) -> Self {
        self.except = Some(calendars.into_iter().map(Into::into).collect());
        self
    }

    /// Takes the job off this instance's schedule.
    pub fn off(mut self) -> Self {
        self.off = true;
        self
    }

    /// Both; where they disagree, the later.
    fn and(self, later: &Self) -> Self {
        let later = later.clone();
        Self {
            // A schedule that is given later switches it on again.
            off: later.off || (self.off && later.trigger.is_none()),
            trigger: later.trigger.or(self.trigger),
            timezone: later.timezone.or(self.timezone),
            days: later.days.or(self.days),
            grace: later.grace.or(self.grace),
            jitter: later.jitter.or(self.jitter),
            retries: later.retries.or(self.retries),
            backoff: later.backoff.or(self.backoff),
            except: later.except.or(self.except),
        }
    }
}

/// A kind of schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Cron,
    Every,
}

impl Kind {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Cron => "cron",
            Self::Every => "every",
        }
    }
}

/// What a job is to do on this instance.
#[allow(clippy::large_enum_variant, reason = "one for each job, at the start")]
pub(super) enum Wish {
    Off,
    Live,
    Scheduled(Rule, Tries),
    /// Of each schedule that is made for it; the rule's own stands for them.
    Handler(Rule, Tries),
}

/// Who said a setting, the weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum By {
    Attribute,
    Code,
    Environment,
}

/// What a job is to do; `None` when something of it cannot work, which is then among the faults.
pub(super) fn of<'a>(
    record: &Record,
    changes: impl Iterator<Item = &'a JobSettings>,
    vars: Vars,
    zones: &TimeZones,
    faults: &mut Faults,
) -> Option<Wish> {
    let before = faults.0.len();
    let changes = changes.fold(JobSettings::default(), JobSettings::and);
    let mut wishes = Wishes {
        record,
        prefix: job_prefix(record.name),
        vars,
        zones,
        faults,
    };
    let wish = wishes.gathered(&changes);
    (faults.0.len() == before).then_some(wish).flatten()
}

/// The settings of one job.
pub(super) struct Wishes<'a> {
    pub(super) record: &'a Record,
    prefix: String,
    vars: Vars,
    zones: &'a TimeZones,
    faults: &'a mut Faults,
}

impl Wishes<'_> {
    fn gathered(&mut self, changes: &JobSettings) -> Option<Wish> {
        let cron = self.var("cron").map(|text| (Kind::Cron, text));
        let every = self.var("every").map(|text| (Kind::Every, text));
        if let (Some((_, cron)), Some(_)) = (&cron, &every) {
            let reason = format!("{} is set as well: unset one of them", self.variable("every"));
            self.refuse("cron", By::Environment, cron, reason);
            return None;
        }
        let by_environment = cron.or(every);
        if by_environment
            .as_ref()
            .is_some_and(|(_, text)| text.eq_ignore_ascii_case("off"))
        {
            return Some(Wish::Off);
        }
        if by_environment.is_none() && changes.off {
            return Some(Wish::Off);
        }
        let environment = by_environment.map(|trigger| (trigger, By::Environment));
        let code = || changes.trigger.clone().map(|trigger| (trigger, By::Code));
        let written = match self.record.trigger {
            Trigger::Cron(text) => Some((Kind::Cron, text)),
            Trigger::Every(text) => Some((Kind::Every, text)),
            Trigger::WhileLeading => {
                self.refuse_ticks(environment.or_else(code), changes);
                return Some(Wish::Live);
            }
            Trigger::Handler => {
                self.refuse_own_schedule(environment.or_else(code), changes);
                return self.pattern(changes);
            }
            Trigger::Call => return Some(Wish::Off),
        };
        let attribute = || written.map(|(kind, text)| ((kind, text.to_owned()), By::Attribute));
        let ((kind, text), by) = environment.or_else(code).or_else(attribute)?;
        let zone = self.zone(kind, changes);
        let days = self.days(changes);
        let schedule = match kind {
            Kind::Cron => self.cron(&text, by, days, zone.map(|(zone, _)| zone)),
            Kind::Every => self.every(&text, by, days, zone),
        };
        let (policies, tries) = self.policies(changes);
        Some(Wish::Scheduled(policies(schedule?), tries))
    }

    /// What a schedule gets besides its ticks.
    pub(super) fn policies(&mut self, changes: &JobSettings) -> (impl FnOnce(Schedule) -> Rule + use<>, Tries) {
        let grace = self.duration("grace", changes.grace.as_ref(), self.record.grace);
        let jitter = self.duration("jitter", changes.jitter.as_ref(), self.record.jitter);
        let tries = self.tries(changes);
        let (missed, max_missed, max_age) = (self.record.missed, self.record.max_missed, self.record.max_age);
        let (seed, overlap) = (planner::seed(self.record.name), self.record.overlap);
        let rule = move |schedule| {
            let rule = Rule::new(schedule);
            Rule {
                grace: grace.unwrap_or(rule.grace),
                missed,
                max_missed,
                max_age,
                jitter: jitter.unwrap_or_default(),
                seed,
                one_at_a_time: overlap == Overlap::Replace,
                ..rule
            }
        };
        (rule, tries)
    }

    fn variable(&self, setting: &str) -> String {
        format!("{}_{}", self.prefix, setting.to_uppercase())
    }

    pub(super) fn var(&self, setting: &str) -> Option<String> {
        self.vars.get(&self.variable(setting))
    }

    /// A fault of a setting that somebody gave: by its variable, or by its name.
    pub(super) fn refuse(&mut self, setting: &'static str, by: By, value: &str, reason: String) {
        self.faults.0.push(match by {
            By::Environment => refused(&self.variable(setting), value, &reason),
            By::Code | By::Attribute => Fault::JobSetting {
                job: self.record.name.to_owned(),
                setting,
                reason,
            },
        });
    }

    fn refuse_schedule(&mut self, setting: &'static str, by: By, value: &str, error: ScheduleError) {
        self.faults.0.push(match by {
            By::Environment => refused(&self.variable(setting), value, &error.to_string()),
            By::Code | By::Attribute => Fault::Schedule {
                job: self.record.name.to_owned(),
                error,
            },
        });
    }

    /// A body that lives as long as a leadership has no ticks that a setting could mean.
    fn refuse_ticks(&mut self, trigger: Option<((Kind, String), By)>, changes: &JobSettings) {
        const REASON: &str = "the body runs while its group is led, and can only be `off`";
        if let Some(((kind, text), by)) = trigger {
            self.refuse(kind.word(), by, &text, REASON.to_owned());
        }
        for (setting, said) in [
            ("timezone", changes.timezone.is_some()),
            ("days", changes.days.is_some()),
            ("grace", changes.grace.is_some()),
            ("jitter", changes.jitter.is_some()),
            ("retries", changes.retries.is_some()),
            ("backoff", changes.backoff.is_some()),
            ("except", changes.except.is_some()),
        ] {
            if let Some(value) = self.var(setting) {
                self.refuse(setting, By::Environment, &value, REASON.to_owned());
            } else if said {
                self.refuse(setting, By::Code, "", REASON.to_owned());
            }
        }
    }

    fn zone(&mut self, kind: Kind, changes: &JobSettings) -> Option<(Zone, By)> {
        let environment = self.var("timezone").map(|name| (name, By::Environment));
        let code = || changes.timezone.clone().map(|name| (name, By::Code));
        let attribute = || self.record.timezone.map(|name| (name.to_owned(), By::Attribute));
        let (name, by) = environment.or_else(code).or_else(attribute)?;
        if kind == Kind::Every && by == By::Attribute {
            // It belongs to the expression that the period replaces.
            return None;
        }
        match self.zones.zone(&name) {
            Ok(zone) => Some((zone, by)),
            Err(error) => {
                self.refuse_schedule("timezone", by, &name, error);
                None
            }
        }
    }

    fn days(&mut self, changes: &JobSettings) -> (Days, By) {
        match self.var("days").as_deref() {
            Some("or") => return (Days::Or, By::Environment),
            Some("and") => return (Days::And, By::Environment),
            Some(other) => self.refuse("days", By::Environment, other, "write `or` or `and`".to_owned()),
            None => {}
        }
        match changes.days {
            Some(days) => (days, By::Code),
            None => (self.record.days, By::Attribute),
        }
    }

    fn cron(&mut self, text: &str, by: By, (days, days_by): (Days, By), zone: Option<Zone>) -> Option<Schedule> {
        let cron = match Cron::parse_with(text, days) {
            Ok(cron) => cron,
            Err(error) => {
                self.refuse_schedule("cron", by, text, error);
                // The way out that the message names is a setting of the attribute: here it is another.
                if by == By::Environment && Cron::parse_with(text, Days::Or).is_ok() {
                    self.hint_at_days();
                }
                return None;
            }
        };
        // Said for an older expression it is ignored, like the attribute's.
        let said = days_by > By::Attribute && days_by >= by && days != Days::Unsaid;
        if said && cron.days() == Days::Unsaid {
            self.refuse("days", days_by, word(days), Days::without_effect(text).to_string());
        }
        let schedule = Schedule::from_cron(text, cron);
        match zone {
            Some(zone) => schedule.in_zone(zone).ok(),
            None => Some(schedule),
        }
    }

    fn hint_at_days(&mut self) {
        let variable = self.variable("days");
        if let Some(Fault::Variable { reason, .. }) = self.faults.0.last_mut() {
            reason.push_str("; in the environment `days` is ");
            reason.push_str(&variable);
        }
    }

    fn every(&mut self, text: &str, by: By, days: (Days, By), zone: Option<(Zone, By)>) -> Option<Schedule> {
        let schedule = match Schedule::every(text) {
            Ok(schedule) => schedule,
            Err(error) => {
                self.refuse_schedule("every", by, text, error);
                return None;
            }
        };
        if let Some((zone, zone_by)) = zone {
            let name = zone.name();
            if let Err(error) = schedule.clone().in_zone(zone) {
                self.refuse_schedule("timezone", zone_by, name, error);
            }
        }
        let (days, days_by) = days;
        if days_by > By::Attribute && days_by >= by && days != Days::Unsaid {
            let reason = format!(
                "`{schedule}` has no day fields: a period counts real time; name days with `cron`, or take `days` out"
            );
            self.refuse("days", days_by, word(days), reason);
        }
        Some(schedule)
    }

    fn duration(
        &mut self,
        setting: &'static str,
        code: Option<&String>,
        written: Option<Duration>,
    ) -> Option<Duration> {
        let environment = self.var(setting).map(|text| (text, By::Environment));
        let Some((text, by)) = environment.or_else(|| code.map(|text| (text.clone(), By::Code))) else {
            return written;
        };
        match parse_duration(&text) {
            Ok(duration) => Some(duration),
            Err(error) => {
                self.refuse(setting, by, &text, error.to_string());
                None
            }
        }
    }
}

fn word(days: Days) -> &'static str {
    match days {
        Days::And => "and",
        Days::Or | Days::Unsaid => "or",
    }
}
