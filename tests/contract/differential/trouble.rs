//! What happens to a server, done to both: time passes, its clock is stepped, it forgets, fills up, follows another, restarts.

use std::time::Duration;

use jiff::SignedDuration;
use leader_core::__seam::{Left, Part, Written};
use leader_core::{GroupName, Holder};
use redis::Value;

use super::{INSTANT, JOBS, MID, OVER, Pair};
use crate::bench::{LONG, job};

impl Pair<'_> {
    pub(super) async fn trouble(&mut self) {
        let group = self.choice.of(&self.groups.clone()).clone();
        let rolls_back = self.saved.is_some() && self.choice.chance(25);
        let what = match self.choice.below(100) {
            _ if rolls_back => self.restart().await,
            0..=39 => self.wait(),
            40..=46 => self.step_clock(),
            47..=62 => self.lose(&group).await,
            63..=67 => self.flush().await,
            68..=76 => self.write_lease(&group).await,
            77..=86 => self.run_full().await,
            87..=92 => self.follow().await,
            93..=97 => self.save().await,
            _ => self.restart().await,
        };
        let Some(what) = what else { return };
        self.tally.count("trouble", what.clone());
        self.note(&what, "");
    }

    #[allow(clippy::unnecessary_wraps, reason = "like the others")]
    fn wait(&mut self) -> Option<String> {
        let spans = [
            INSTANT,
            OVER,
            Duration::from_millis(749),
            Duration::from_millis(1_250),
            MID,
            MID + INSTANT,
            2 * MID,
            LONG + MID,
        ];
        let span = *self.choice.of(&spans);
        self.lane.pass(span);
        Some(format!("passes {span:?}"))
    }

    fn step_clock(&mut self) -> Option<String> {
        let by = *self.choice.of(&[-1, -900, -3_000, -3_600_000, 1, 2_999, 3_600_000]);
        if self.lane.is_readonly() {
            // A replica keeps what has ended, until its primary says that it goes.
            return None;
        }
        self.lane.step_clock(SignedDuration::from_millis(by));
        self.forgets();
        Some(format!("clock {by} ms"))
    }

    /// Numbers may come again.
    fn forgets(&mut self) {
        for (_, names) in &mut self.sides {
            names.rises = false;
        }
    }

    async fn lose(&mut self, group: &GroupName) -> Option<String> {
        let name = *self.choice.of(&JOBS);
        let part = match self.choice.below(10) {
            0..=2 => Part::Lease,
            3 | 4 => Part::State,
            5 => Part::Fence,
            6 => Part::Beats,
            7 | 8 if !self.renames => Part::Job(job(name)),
            _ => Part::All,
        };
        if self.lane.is_readonly() {
            return None;
        }
        let lane = &mut *self.lane;
        let parts: Vec<String> = match &part {
            Part::Lease => vec![lane.lease(group.as_str())],
            Part::State => vec![lane.part(group.as_str(), "lease")],
            Part::Fence => vec![lane.part(group.as_str(), "fence")],
            Part::Beats => vec![lane.part(group.as_str(), "beats")],
            Part::Job(_) => vec![lane.part(group.as_str(), &format!("job:{name}"))],
            Part::All => {
                let apart = [
                    "lease",
                    "fence",
                    "beats",
                    "coverage",
                    "control",
                    "acts",
                    "schedules",
                    "payloads",
                ];
                let of_jobs = ["job", "ran", "passed"];
                let of_jobs = of_jobs.iter().flat_map(|part| JOBS.map(|job| format!("{part}:{job}")));
                let parts = apart.iter().map(|part| (*part).to_owned()).chain(of_jobs);
                let keys = parts.map(|part| lane.part(group.as_str(), &part));
                keys.chain([lane.lease(group.as_str())]).collect()
            }
        };
        let words: Vec<&str> = std::iter::once("DEL").chain(parts.iter().map(String::as_str)).collect();
        lane.command(&words).await;
        let namespace = self.lane.namespace.clone();
        self.server.as_ref()?.lose(&namespace, group, &part);
        self.forgets();
        let word = format!("{part:?}");
        let word = word.split('(').next().unwrap_or_default().to_owned();
        self.note(&format!("of {group} {name}"), "");
        Some(format!("loses {word}"))
    }

    async fn flush(&mut self) -> Option<String> {
        if self.lane.is_readonly() {
            return None;
        }
        self.lane.command(&["FLUSHALL"]).await;
        self.server.as_ref()?.flush();
        self.forgets();
        Some("flush".to_owned())
    }

    async fn write_lease(&mut self, group: &GroupName) -> Option<String> {
        let foreign = ["pod-7", "other#zzzz", "c#00000000000000ff"];
        let holder = match self.choice.below(4) {
            3 => self.choice.of(&self.holders.clone()).to_string(),
            at => foreign[at].to_owned(),
        };
        let lasts = *self.choice.of(&[INSTANT, MID, LONG, 2 * LONG]);
        let kind = self.choice.below(6);
        if self.lane.is_short() {
            return None;
        }
        let key = self.lane.lease(group.as_str());
        let millis = lasts.as_millis().to_string();
        self.lane.command(&["DEL", &key]).await;
        let holder_written = Holder::from_store(&holder);
        let (word, written) = match kind {
            0 => {
                self.lane.command(&["LPUSH", &key, "x"]).await;
                ("other type", Written::OtherType)
            }
            1 => {
                self.lane.command(&["SET", &key, &holder]).await;
                ("endless", Written::Holder(holder_written, None))
            }
            _ => {
                self.lane.command(&["SET", &key, &holder, "PX", &millis]).await;
                ("foreign", Written::Holder(holder_written, Some(lasts)))
            }
        };
        let namespace = self.lane.namespace.clone();
        self.server.as_ref()?.write_lease(&namespace, group, written);
        self.note(&format!("{group} {holder} {lasts:?}"), "");
        Some(format!("writes {word}"))
    }

    async fn run_full(&mut self) -> Option<String> {
        let full = self.choice.chance(60);
        self.lane.set_full(full).await;
        self.server.as_ref()?.set_full(full);
        Some(format!("full {full}"))
    }

    async fn follow(&mut self) -> Option<String> {
        let readonly = self.choice.chance(50);
        self.lane.set_readonly(readonly).await;
        self.sides[1].0.store = self.lane.connect_anew();
        self.server.as_ref()?.set_readonly(readonly);
        Some(format!("readonly {readonly}"))
    }

    /// What a later restart may roll back to.
    async fn save(&mut self) -> Option<String> {
        if self.lane.appendonly || self.lane.is_short() || !self.choice.chance(30) {
            return None;
        }
        self.lane.command(&["SAVE"]).await;
        self.saved = Some(self.server.as_ref()?.snapshot());
        Some("save".to_owned())
    }

    async fn restart(&mut self) -> Option<String> {
        let kind = self.choice.below(4);
        // A new process takes as long as some hundred questions.
        let may = self.choice.chance(if self.saved.is_some() { 100 } else { 20 });
        let short = self.lane.is_short();
        if short || !may {
            return None;
        }
        let (word, left) = match kind {
            0 => ("nothing", Left::Nothing),
            1.. if self.saved.is_some() => ("as of earlier", Left::AsOf(self.saved.clone()?)),
            _ => ("everything", Left::Everything),
        };
        if word == "everything" && !self.lane.appendonly {
            self.lane.command(&["SAVE"]).await;
            self.saved = Some(self.server.as_ref()?.snapshot());
        }
        self.lane.restart(kind != 0).await;
        self.sides[1].0.store = self.lane.store.clone();
        self.server.as_ref()?.restart(left);
        if kind == 0 {
            self.saved = None;
        }
        self.forgets();
        Some(format!("restart with {word}"))
    }

    /// What both know of the leases, to the last number.
    pub(super) async fn compare_leases(&mut self) {
        let Some(server) = self.server.clone() else { return };
        for group in self.groups.clone() {
            let looks = server.leases();
            let look = looks.iter().find(|look| look.group == group);
            let (lease, state) = (self.lane.lease(group.as_str()), self.lane.part(group.as_str(), "lease"));
            let fence = self.lane.part(group.as_str(), "fence");
            let commands: [&[&str]; 5] = [
                &["TYPE", &lease],
                &["GET", &lease],
                &["PTTL", &lease],
                &["HGET", &state, "term"],
                &["GET", &fence],
            ];
            let read = self.lane.pipeline(&commands).await;
            let [kind, holder, left, term, fence] = read.try_into().expect("five answers");
            let holder = if text(&kind) == "string" {
                text(&holder)
            } else {
                String::new()
            };
            let Value::Int(left) = left else { panic!("no TTL") };
            let (term, fence) = (text(&term), text(&fence));
            let number = |text: String| text.parse::<u64>().unwrap_or(0);
            let told = (holder, number(term), number(fence), u64::try_from(left).ok());
            let known = look.map_or((String::new(), 0, 0, None), |look| {
                let holder = look.holder.as_ref().map(ToString::to_string).unwrap_or_default();
                let left = look.ends_in.map(|left| u64::try_from(left.as_millis()).unwrap());
                (holder, look.term, look.fence, left)
            });
            self.agree("lease", &format!("lease {group}"), [Ok(known), Ok(told)]);
        }
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::BulkString(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::SimpleString(text) => text.clone(),
        Value::Nil | Value::ServerError(_) => String::new(),
        other => panic!("{other:?}"),
    }
}
