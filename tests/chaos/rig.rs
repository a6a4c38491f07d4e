//! Fleets whose instances each have a link of their own, and the log of what they did.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, Once};
use std::time::Duration;

use leader_core::{Clock, Event, EventsError, Instance, Lost, Moment, Role, Stamped, State, Tick, Timing, leader_only};
use leader_tests::checker::{Ends, Line, violations};
use leader_tests::{Proxy, RedisServer, eventually};
use tokio::sync::{Mutex as Turn, MutexGuard};
use tokio::task::JoinHandle;

pub(crate) const TTL: Duration = ms(2_000);
/// The bound of every wait for something whose own bound is judged afterwards.
pub(crate) const PATIENCE: Duration = ms(20_000);
/// The group that ticks every second.
pub(crate) const STEADY: &str = "steady";
/// The group whose body goes on until it is dropped.
pub(crate) const RESTLESS: &str = "restless";

pub(crate) const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

pub(crate) fn timing() -> Timing {
    Timing::from_ttl(TTL)
}

/// The clock of beliefs, events and everything measured here.
pub(crate) fn now() -> Moment {
    Clock::system().now()
}

/// Scenarios measure times: a second one beside would be measured along.
pub(crate) async fn turn() -> MutexGuard<'static, ()> {
    static TURN: Turn<()> = Turn::const_new(());
    static WATCH: Once = Once::new();
    WATCH.call_once(|| drop(std::thread::spawn(watch_for_stillness)));
    TURN.lock().await
}

/// Tells when the machine stood still: no time measured meanwhile means anything, and leases end.
fn watch_for_stillness() {
    loop {
        let before = now();
        std::thread::sleep(ms(10));
        let took = now().since(before);
        if took > ms(250) {
            println!("this process stood still for {took:?}");
        }
    }
}

/// What a body is to know of its instance.
#[derive(Clone)]
struct Stage {
    namespace: String,
    id: String,
    log: Log,
    polls: Polls,
}

/// When a body was polled, by term.
pub(crate) type Polls = Arc<Mutex<BTreeMap<u64, Vec<Moment>>>>;

impl Stage {
    fn note(&self, tick: &Tick) {
        self.log.push(Line {
            event: "tick".to_owned(),
            instance: self.id.clone(),
            mono_ns: now().as_nanos(),
            group: Some(format!("{}:{}", self.namespace, tick.group())),
            job: Some(tick.job().to_string()),
            scheduled_at: Some(tick.scheduled_at().to_string()),
            fence: Some(tick.fence()),
            term: Some(tick.term()),
            until_ns: None,
        });
    }
}

#[leader_only(group = "steady", every = "1s")]
async fn beat(tick: Tick, State(stage): State<Stage>) {
    stage.note(&tick);
}

/// Wants to be polled all the time, and keeps when it was.
#[leader_only(group = "restless", every = "1s")]
async fn restless(tick: Tick, State(stage): State<Stage>) {
    stage.note(&tick);
    loop {
        stage.polls.lock().unwrap().entry(tick.term()).or_default().push(now());
        tokio::time::sleep(ms(1)).await;
    }
}

/// What all instances of a scenario have told.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<Line>>>);

impl Log {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    fn push(&self, line: Line) {
        self.0.lock().unwrap().push(line);
    }

    pub(crate) fn lines(&self) -> Vec<Line> {
        self.0.lock().unwrap().clone()
    }

    /// How often the bodies of a namespace were started.
    pub(crate) fn ticks(&self, namespace: &str) -> usize {
        let lines = self.0.lock().unwrap();
        let of = |line: &&Line| {
            let group = line.group.as_deref().unwrap_or_default();
            line.event == "tick" && group.split(':').next() == Some(namespace)
        };
        lines.iter().filter(of).count()
    }

    /// Waits until the bodies of each of these namespaces were started so many times more.
    pub(crate) async fn more_ticks(&self, namespaces: &[&str], more: usize) {
        let enough: Vec<_> = namespaces.iter().map(|of| (of, self.ticks(of) + more)).collect();
        eventually(PATIENCE, "more ticks", || async {
            enough.iter().all(|(of, enough)| self.ticks(of) >= *enough)
        })
        .await;
    }

    /// The one judgement of every scenario, after all its instances have stopped.
    pub(crate) fn judge(&self, scenario: &str) {
        let lines = self.lines();
        let count = |event: &str| lines.iter().filter(|line| line.event == event).count();
        let (elected, lost, ticks) = (count("elected"), count("lost"), count("tick"));
        println!("{scenario}: {elected} leaderships, {ticks} bodies started");
        assert_eq!(elected, lost, "every leadership has ended");
        assert!(elected > 0);
        let violations = violations(&lines, &Ends::new());
        assert!(violations.is_empty(), "{scenario}:\n{}", violations.join("\n"));
    }

    /// Notes what the checker judges.
    fn tell(&self, namespace: &str, id: &str, stamped: &Stamped) {
        let (event, group, term, until) = match &stamped.event {
            Event::Elected { group, term, .. } => ("elected", group, *term, None),
            Event::Lost { group, term, ended, .. } => ("lost", group, *term, Some(ended.as_nanos())),
            _ => return,
        };
        self.push(Line {
            event: event.to_owned(),
            instance: id.to_owned(),
            mono_ns: stamped.at.as_nanos(),
            group: Some(format!("{namespace}:{group}")),
            fence: Some(term),
            until_ns: until,
            ..Line::default()
        });
    }
}

/// The instances of one namespace that take part in the election of one group.
#[derive(Clone)]
pub(crate) struct Fleet {
    pub(crate) namespace: String,
    pub(crate) group: &'static str,
    log: Log,
}

impl Fleet {
    pub(crate) fn new(namespace: impl Into<String>, group: &'static str, log: &Log) -> Self {
        Self {
            namespace: namespace.into(),
            group,
            log: log.clone(),
        }
    }

    /// One more instance, on a link of its own. `first_start` promises that nobody has led before.
    pub(crate) async fn join(&self, id: impl Into<String>, port: u16, first_start: bool) -> Member {
        let proxy = Proxy::start(port).await;
        self.join_by(proxy, id, first_start).await
    }

    /// One more instance, on a link that was made before.
    pub(crate) async fn join_by(&self, proxy: Proxy, id: impl Into<String>, first_start: bool) -> Member {
        let id = id.into();
        let polls = Polls::default();
        let bootstrap = leader_core::bootstrap(proxy.url())
            .namespace(self.namespace.clone())
            .service("chaos")
            .instance_id(id.clone())
            .timing(timing())
            .drain(ms(500))
            .first_start(first_start)
            .groups([self.group])
            .campaign_only([self.group])
            .state(Stage {
                namespace: self.namespace.clone(),
                id: id.clone(),
                log: self.log.clone(),
                polls: Arc::clone(&polls),
            });
        let mut events = bootstrap.events();
        let told = Arc::<Mutex<Vec<Stamped>>>::default();
        let following = tokio::spawn({
            let (told, log) = (Arc::clone(&told), self.log.clone());
            let (namespace, id) = (self.namespace.clone(), id.clone());
            async move {
                loop {
                    match events.recv().await {
                        Ok(stamped) => {
                            log.tell(&namespace, &id, &stamped);
                            told.lock().unwrap().push(stamped);
                        }
                        Err(EventsError::Stopped) => return,
                        Err(error) => panic!("{namespace}: {id}: {error}"),
                    }
                }
            }
        });
        Member {
            instance: bootstrap.await.unwrap(),
            id,
            group: self.group,
            proxy,
            polls,
            told,
            following,
        }
    }

    /// Two instances; the first of them is the first in the race as well.
    pub(crate) async fn pair(&self, port: u16) -> (Member, Member) {
        let a = self.join("a", port, true).await;
        a.leads().await;
        (a, self.join("b", port, true).await)
    }
}

/// One instance.
pub(crate) struct Member {
    pub(crate) instance: Instance,
    pub(crate) id: String,
    pub(crate) group: &'static str,
    pub(crate) proxy: Proxy,
    pub(crate) polls: Polls,
    told: Arc<Mutex<Vec<Stamped>>>,
    following: JoinHandle<()>,
}

/// What it has told, for the message of a failure.
impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} of {}", self.id, self.instance.namespace())?;
        for stamped in self.told.lock().unwrap().iter() {
            writeln!(f, "  {stamped:?}")?;
        }
        Ok(())
    }
}

impl Member {
    pub(crate) fn is_leader(&self) -> bool {
        self.instance.is_leader(self.group)
    }

    pub(crate) fn pick<T>(&self, pick: impl Fn(&Stamped) -> Option<T>) -> Vec<T> {
        self.told.lock().unwrap().iter().filter_map(pick).collect()
    }

    /// Every grant: its term, and when it was told.
    pub(crate) fn grants(&self) -> Vec<(u64, Moment)> {
        self.pick(|stamped| match stamped.event {
            Event::Elected { term, .. } => Some((term, stamped.at)),
            _ => None,
        })
    }

    /// Every loss: the term, when belief ended, and why.
    pub(crate) fn losses(&self) -> Vec<(u64, Moment, Lost)> {
        self.pick(|stamped| match stamped.event {
            Event::Lost {
                term, ended, reason, ..
            } => Some((term, ended, reason)),
            _ => None,
        })
    }

    /// How many renewals have failed so far.
    pub(crate) fn failed_renewals(&self) -> usize {
        self.pick(|stamped| matches!(stamped.event, Event::RenewalFailed { .. }).then_some(()))
            .len()
    }

    pub(crate) async fn leads(&self) {
        let what = format!("{} leads {}", self.id, self.instance.namespace());
        eventually(PATIENCE, &what, || async { self.is_leader() }).await;
    }

    /// Waits for a grant that was told after `after`.
    pub(crate) async fn granted_after(&self, after: Moment) -> (u64, Moment) {
        let granted = || self.grants().into_iter().find(|(_, at)| *at > after);
        let what = format!("{} is elected in {}", self.id, self.instance.namespace());
        eventually(PATIENCE, &what, || async { granted().is_some() }).await;
        granted().unwrap()
    }

    /// Waits for the end of a term: when belief ended, and why.
    pub(crate) async fn lost(&self, term: u64) -> (Moment, Lost) {
        let lost = || self.losses().into_iter().find(|(of, ..)| *of == term);
        let what = format!("{} loses {}", self.id, self.instance.namespace());
        eventually(PATIENCE, &what, || async { lost().is_some() }).await;
        let (_, ended, reason) = lost().unwrap();
        (ended, reason)
    }

    /// The term that it leads under, by its own last word.
    pub(crate) fn term(&self) -> u64 {
        self.grants().last().unwrap().0
    }

    /// Waits until it stands by and knows who leads.
    pub(crate) async fn stands_by(&self, leader: &Member) -> Duration {
        let what = format!("{} stands by in {}", self.id, self.instance.namespace());
        eventually(PATIENCE, &what, || async {
            let status = self.instance.watch(self.group).unwrap().current();
            status.role == Role::Standby && status.leader.as_deref() == Some(&*leader.id)
        })
        .await
    }

    pub(crate) async fn step_down(&self) {
        let stepping = self.instance.step_down(self.group);
        let stepped = tokio::time::timeout(PATIENCE, stepping).await.unwrap();
        assert!(stepped.is_ok(), "{stepped:?}: {self:?}");
    }

    /// Shuts down and keeps the last word; how long that took.
    pub(crate) async fn stop(self) -> Duration {
        let began = now();
        tokio::time::timeout(PATIENCE, self.instance.shutdown()).await.unwrap();
        let took = now().since(began);
        tokio::time::timeout(PATIENCE, self.following).await.unwrap().unwrap();
        took
    }
}

/// The leader of some, and the others.
pub(crate) async fn leader_first(mut members: Vec<Member>) -> (Member, Vec<Member>) {
    let mut leader = None;
    eventually(PATIENCE, "one of them leads", || {
        leader = members.iter().position(Member::is_leader);
        let led = leader.is_some();
        async move { led }
    })
    .await;
    let leader = members.remove(leader.unwrap());
    (leader, members)
}

/// Waits until hand-overs need not wait: a server that was just started may have lost its last writes.
pub(crate) async fn ripen(server: &RedisServer) {
    // Its age is told in whole seconds.
    let enough = TTL.as_secs() + 3;
    eventually(PATIENCE, "the server is old enough", || async {
        server.uptime().await.as_secs() >= enough
    })
    .await;
}

/// Runs the same thing several times side by side, and gives what each gave.
pub(crate) async fn side_by_side<T, F>(count: usize, one: impl Fn(usize) -> F) -> Vec<T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let running: Vec<_> = (0..count).map(|index| tokio::spawn(one(index))).collect();
    let mut given = Vec::new();
    for one in running {
        given.push(one.await.unwrap());
    }
    given
}

/// The least, the middle and the greatest of some spans.
pub(crate) fn spread(mut spans: Vec<Duration>) -> String {
    spans.sort_unstable();
    match spans.as_slice() {
        [] => "none".to_owned(),
        [one] => format!("{one:.1?}"),
        [least, .., greatest] => {
            let middle = spans[spans.len() / 2];
            format!("{least:.1?} … {middle:.1?} … {greatest:.1?} (n = {})", spans.len())
        }
    }
}
