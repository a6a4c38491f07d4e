//! A link that can be made to fail: a TCP proxy on loopback.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep_until};

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Requests.
    ToServer,
    /// Replies.
    ToClient,
    /// Both ways.
    Both,
}

impl Direction {
    /// Whether the way `index` is meant: 0 to the server, 1 to the client.
    fn has(self, index: usize) -> bool {
        match self {
            Self::ToServer => index == TO_SERVER,
            Self::ToClient => index == TO_CLIENT,
            Self::Both => true,
        }
    }
}

const TO_SERVER: usize = 0;
const TO_CLIENT: usize = 1;

/// A proxy between clients and a server on loopback, whose faults act at once and on open connections too. It ends when dropped, and
/// its connections with it.
///
/// Requests are told apart, so that a fault can be aimed at one: what is sent is the protocol of Redis, without TLS.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    shared: Arc<Shared>,
    accepting: AbortHandle,
}

#[derive(Debug)]
struct Shared {
    rules: watch::Sender<Rules>,
    accepted: AtomicU64,
    hits: AtomicU64,
}

/// What happens to connections now.
#[derive(Clone, Debug, Default)]
struct Rules {
    target: u16,
    refusing: bool,
    /// How often all connections were cut: a connection that began under another number is to end.
    cuts: u64,
    /// How often all connections were black-holed: one that began under another number swallows everything.
    black_holes: u64,
    stalled: [bool; 2],
    delay: [Duration; 2],
    aimed: Vec<Aimed>,
}

/// A fault of the next requests with a piece of text in them.
#[derive(Clone, Debug)]
struct Aimed {
    marker: String,
    fault: Fault,
    left: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Reset,
    DropReply,
}

impl Proxy {
    /// Starts a proxy to a port of loopback.
    ///
    /// # Panics
    /// When loopback has no free port.
    pub async fn start(target: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let port = listener.local_addr().expect("it is bound").port();
        let rules = Rules {
            target,
            ..Rules::default()
        };
        let shared = Arc::new(Shared {
            rules: watch::Sender::new(rules),
            accepted: AtomicU64::new(0),
            hits: AtomicU64::new(0),
        });
        let accepting = tokio::spawn(accept(listener, Arc::clone(&shared))).abort_handle();
        Self {
            port,
            shared,
            accepting,
        }
    }

    /// The URL for clients.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    /// Leads new connections to another port; open ones stay where they are.
    pub fn set_target(&self, target: u16) {
        self.change(|rules| rules.target = target);
    }

    /// Resets all connections, and each new one as soon as it is made, until [`heal`](Self::heal).
    pub fn cut(&self) {
        self.change(|rules| {
            rules.cuts += 1;
            rules.refusing = true;
        });
    }

    /// Holds bytes back, of open and of new connections, until [`heal`](Self::heal) lets them go on.
    pub fn stall(&self, direction: Direction) {
        self.change(|rules| (0..2).for_each(|way| rules.stalled[way] |= direction.has(way)));
    }

    /// Lets the open connections swallow everything for ever, ends included, as if an old route dropped all packets. New ones work.
    pub fn black_hole(&self) {
        self.change(|rules| rules.black_holes += 1);
    }

    /// Delays all bytes of a direction.
    pub fn delay(&self, direction: Direction, by: Duration) {
        self.change(|rules| {
            for way in (0..2).filter(|way| direction.has(*way)) {
                rules.delay[way] = by;
            }
        });
    }

    /// Hands the next `count` requests that contain `marker` to the server, and resets their connections in place of a reply. The
    /// server has run the request when the client learns of the reset.
    pub fn reset_after_request(&self, marker: &str, count: u64) {
        self.aim(marker, Fault::Reset, count);
    }

    /// Hands the next `count` requests that contain `marker` to the server, and swallows their replies: a connection with such a
    /// gap stays open and silent.
    pub fn drop_replies(&self, marker: &str, count: u64) {
        self.aim(marker, Fault::DropReply, count);
    }

    /// Ends everything but black holes, and takes back what was aimed and has not been hit.
    pub fn heal(&self) {
        self.change(|rules| {
            *rules = Rules {
                target: rules.target,
                cuts: rules.cuts,
                black_holes: rules.black_holes,
                ..Rules::default()
            };
        });
    }

    /// How many connections were accepted so far, those that were reset at once included.
    #[must_use]
    pub fn accepted(&self) -> u64 {
        self.shared.accepted.load(Ordering::SeqCst)
    }

    /// How many requests were hit by an aimed fault so far.
    #[must_use]
    pub fn hits(&self) -> u64 {
        self.shared.hits.load(Ordering::SeqCst)
    }

    fn aim(&self, marker: &str, fault: Fault, left: u64) {
        let marker = marker.to_owned();
        self.change(|rules| rules.aimed.push(Aimed { marker, fault, left }));
    }

    fn change(&self, change: impl FnOnce(&mut Rules)) {
        self.shared.rules.send_modify(change);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    // The connections end with this task.
    let mut links = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => if let Ok((client, _)) = accepted {
                shared.accepted.fetch_add(1, Ordering::SeqCst);
                let link = Link::new(Arc::clone(&shared));
                links.spawn(link.serve(client));
            },
            Some(_) = links.join_next() => {}
        }
    }
}

/// One connection.
struct Link {
    shared: Arc<Shared>,
    /// The rules as it began.
    born: Rules,
    /// No reply goes through any more.
    silent: AtomicBool,
    /// It ends with a reset.
    reset: AtomicBool,
}

impl Link {
    fn new(shared: Arc<Shared>) -> Self {
        let born = shared.rules.borrow().clone();
        Self {
            shared,
            born,
            silent: AtomicBool::new(false),
            reset: AtomicBool::new(false),
        }
    }

    async fn serve(self, mut client: TcpStream) {
        let server = TcpStream::connect(("127.0.0.1", self.born.target)).await;
        let (Ok(mut server), false) = (server, self.born.refusing) else {
            let _ = client.set_zero_linger();
            return;
        };
        let _ = client.set_nodelay(true);
        let _ = server.set_nodelay(true);
        let resets = {
            let (requests, answer) = client.split();
            let (replies, ask) = server.split();
            tokio::select! {
                () = self.cut() => true,
                _ = async { tokio::join!(self.carry(TO_SERVER, requests, ask), self.carry(TO_CLIENT, replies, answer)) } => {
                    self.reset.load(Ordering::SeqCst)
                }
            }
        };
        if resets {
            let _ = client.set_zero_linger();
            let _ = server.set_zero_linger();
        }
    }

    /// Resolves when the connection is to be cut.
    async fn cut(&self) {
        let mut rules = self.shared.rules.subscribe();
        let cut = |rules: &Rules| rules.cuts != self.born.cuts && rules.black_holes == self.born.black_holes;
        let _ = rules.wait_for(cut).await;
    }

    /// Carries the bytes of one direction until their end. What was read waits in a queue, so that a delay holds nothing up.
    async fn carry(&self, way: usize, mut from: ReadHalf<'_>, to: WriteHalf<'_>) {
        let (queue, queued) = mpsc::unbounded_channel();
        let reading = async move {
            let mut buffer = vec![0; 65_536];
            while let Ok(count @ 1..) = from.read(&mut buffer).await {
                let _ = queue.send((Instant::now(), buffer[..count].to_vec()));
            }
            drop(queue);
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = self.write(way, to, queued) => {}
            () = reading => {}
        }
    }

    async fn write(&self, way: usize, mut to: WriteHalf<'_>, mut queued: mpsc::UnboundedReceiver<(Instant, Vec<u8>)>) {
        let mut requests = Requests::default();
        while let Some((read, bytes)) = queued.recv().await {
            if !self.passes(way, read).await {
                continue;
            }
            let passed = match way {
                TO_SERVER => {
                    requests.take(&bytes);
                    self.ask(&mut to, &mut requests).await
                }
                _ if self.silent.load(Ordering::SeqCst) => ControlFlow::Continue(()),
                _ => proceed(&to.write_all(&bytes).await),
            };
            if passed.is_break() {
                return;
            }
        }
        if !self.passes(way, Instant::now()).await {
            // The other side never hears of the end either.
            std::future::pending::<()>().await;
        }
        if way == TO_SERVER || !self.silent.load(Ordering::SeqCst) {
            let _ = to.shutdown().await;
        }
    }

    /// Hands on the requests that have come whole.
    async fn ask(&self, to: &mut WriteHalf<'_>, requests: &mut Requests) -> ControlFlow<()> {
        while let Some(request) = requests.next() {
            let fault = self.shared.fault_of(&request);
            if fault.is_some() {
                self.silent.store(true, Ordering::SeqCst);
            }
            proceed(&to.write_all(&request).await)?;
            if fault == Some(Fault::Reset) {
                self.reset.store(true, Ordering::SeqCst);
                // The server reads the request before the end, and closes: only then does the client hear of anything.
                let _ = to.shutdown().await;
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }

    /// Waits until bytes read at `read` may go on; `false` when they are swallowed.
    async fn passes(&self, way: usize, read: Instant) -> bool {
        let mut rules = self.shared.rules.subscribe();
        loop {
            let (stalled, due) = {
                let rules = rules.borrow_and_update();
                if rules.black_holes != self.born.black_holes {
                    return false;
                }
                (rules.stalled[way], read + rules.delay[way])
            };
            if !stalled && due <= Instant::now() {
                return true;
            }
            tokio::select! {
                () = sleep_until(due), if !stalled => {}
                _ = rules.changed() => {}
            }
        }
    }
}

impl Shared {
    /// The fault that is aimed at this request; it counts.
    fn fault_of(&self, request: &[u8]) -> Option<Fault> {
        let mut hit = None;
        self.rules.send_if_modified(|rules| {
            let is_in = |marker: &str| request.windows(marker.len()).any(|piece| piece == marker.as_bytes());
            let aimed = rules.aimed.iter_mut();
            if let Some(aimed) = aimed.filter(|aimed| aimed.left > 0).find(|aimed| is_in(&aimed.marker)) {
                aimed.left -= 1;
                hit = Some(aimed.fault);
                self.hits.fetch_add(1, Ordering::SeqCst);
            }
            false
        });
        hit
    }
}

fn proceed(written: &std::io::Result<()>) -> ControlFlow<()> {
    if written.is_ok() {
        ControlFlow::Continue(())
    } else {
        ControlFlow::Break(())
    }
}

/// Cuts a stream of bytes into requests.
#[derive(Debug, Default)]
struct Requests(VecDeque<u8>);

impl Requests {
    fn take(&mut self, bytes: &[u8]) {
        self.0.extend(bytes);
    }

    /// The next request that has come whole.
    fn next(&mut self) -> Option<Vec<u8>> {
        let length = length(self.0.make_contiguous())?;
        Some(self.0.drain(..length).collect())
    }
}

/// The length of the first request: an array of strings, or whatever else was sent.
fn length(bytes: &[u8]) -> Option<usize> {
    if *bytes.first()? != b'*' {
        return Some(bytes.len());
    }
    let (words, mut at) = number(bytes, 1)?;
    for _ in 0..words {
        let (length, begins) = number(bytes, at + 1)?;
        at = begins + length + 2;
    }
    (at <= bytes.len()).then_some(at)
}

/// The number that begins at `at`, and where its line ends.
fn number(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let line = bytes.get(at..)?;
    let end = line.windows(2).position(|two| two == b"\r\n")?;
    let text = std::str::from_utf8(&line[..end]).ok()?;
    Some((text.parse().ok()?, at + end + 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_cut_at_their_ends() {
        let two = b"*2\r\n$4\r\nECHO\r\n$4\r\na\r\nb\r\n*1\r\n$4\r\nPING\r\n";
        for piece in 1..two.len() {
            let (mut requests, mut found) = (Requests::default(), Vec::new());
            for bytes in two.chunks(piece) {
                requests.take(bytes);
                while let Some(request) = requests.next() {
                    found.push(request);
                }
            }
            assert_eq!(found, [&two[..24], &two[24..]], "in pieces of {piece}");
        }
    }
}
