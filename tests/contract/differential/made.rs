//! Schedules made at run time, among everything else that is asked of both stores.

use leader_core::__seam::{MadeEntry, MadeReply, MakeRequest, Making, Writer};
use leader_core::GroupName;

use super::{JOBS, Pair, SCHEDULES, VERSIONS, both, refused};
use crate::bench::job;

/// What is kept, without what a store makes up.
#[derive(Debug, PartialEq)]
struct Entry {
    name: String,
    ended: bool,
    number: Option<super::Minted>,
    line: Option<(Option<super::Minted>, super::At, String, String, String, String)>,
    payload: Option<String>,
}

impl Pair<'_> {
    pub(super) async fn make(&mut self) {
        let group = self.choice.of(&self.groups.clone()).clone();
        // Mostly the one that is no job of the program.
        let name = *self.choice.of(&[JOBS[0], JOBS[2], JOBS[2], JOBS[2]]);
        let kind = self.choice.below(10);
        let schedule = *self.choice.of(&SCHEDULES);
        let (handler, payload) = (*self.choice.of(&["a", "b"]), *self.choice.of(&["1", "{\"b\":2}"]));
        let version = *self.choice.of(&VERSIONS);
        self.pass_some();
        let mut answers = Vec::new();
        for (bench, names) in &mut self.sides {
            let what = match kind {
                0..=5 => Making::Make {
                    handler: job(handler),
                    schedule: schedule.into(),
                    payload: payload.into(),
                },
                6..=8 => Making::End,
                _ => Making::Forget,
            };
            let request = MakeRequest {
                group: group.clone(),
                name: job(name),
                what,
                by: "ann".to_owned(),
                writer: Writer::new(version, "2026f"),
            };
            let told = bench.store.make(request).await.map(|reply| match reply {
                // What is forgotten changes nothing, and has no instant of its own.
                MadeReply::Done { number, .. } if kind > 8 => ("done", names.act(&group, number), None, false),
                MadeReply::Done { number, at, new } => {
                    ("done", names.act(&group, number), Some(names.instant(at)), new)
                }
                MadeReply::Same { number, at } => ("same", names.act(&group, number), Some(names.instant(at)), false),
                MadeReply::Nothing => ("nothing", None, None, false),
                MadeReply::Taken => ("taken", None, None, false),
                MadeReply::Full { .. } => ("full", None, None, false),
            });
            answers.push(told.map_err(|error| refused(&error)));
        }
        let what = format!("make {group} {name} {kind} {handler} {schedule} {payload} {version:?}");
        self.agree_on("make", &what, both(answers), |(word, ..)| vec![(*word).to_owned()]);
        self.compare_made(&group).await;
        self.compare_control(&group).await;
    }

    pub(super) async fn compare_made(&mut self, group: &GroupName) {
        let after = self.choice.chance(50);
        let mut answers = Vec::new();
        for (bench, names) in &mut self.sides {
            let all = bench.store.made(group, 0).await.unwrap();
            let newest = all.entries.last().map_or(0, |entry| entry.number);
            let read = bench.store.made(group, if after { newest } else { 0 }).await.unwrap();
            let entry = |entry: MadeEntry| Entry {
                name: entry.name,
                ended: entry.ended,
                number: names.act(group, entry.number),
                line: entry.line.map(|line| {
                    let born = names.act(group, line.born);
                    let handler = line.handler.to_string();
                    (
                        born,
                        names.instant(line.at),
                        line.by,
                        line.version,
                        handler,
                        line.schedule,
                    )
                }),
                payload: entry.payload.map(|payload| payload.to_string()),
            };
            let entries: Vec<_> = read.entries.into_iter().map(entry).collect();
            answers.push(Ok((names.act(group, read.up_to), entries)));
        }
        self.agree("made", &format!("made {group}"), both(answers));
        self.log.pop();
    }
}
