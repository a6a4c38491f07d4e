//! The terminal: taken for the view, and given back on every way out.

use std::io::{Stdout, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use crossterm::event::{Event, KeyCode, KeyEventKind, KeyModifiers};
use crossterm::{cursor, execute, queue, style, terminal};
use tokio::sync::mpsc;

/// Whether the terminal is ours at the moment.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// The terminal while the view has it; given back when dropped.
#[derive(Debug)]
pub struct Terminal {
    out: Stdout,
}

impl Terminal {
    /// Takes the terminal.
    pub fn take() -> std::io::Result<Self> {
        let earlier = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            // First the terminal, so that the message can be read.
            give_back();
            earlier(panic);
        }));
        terminal::enable_raw_mode()?;
        TAKEN.store(true, Ordering::SeqCst);
        let taken = Self { out: std::io::stdout() };
        execute!(std::io::stdout(), terminal::EnterAlternateScreen, cursor::Hide)?;
        Ok(taken)
    }

    /// Draws a screen over the last one.
    pub fn draw(&self, lines: &[String]) -> std::io::Result<()> {
        let mut out = self.out.lock();
        queue!(out, terminal::BeginSynchronizedUpdate, terminal::DisableLineWrap)?;
        for (row, line) in (0_u16..).zip(lines) {
            let clear = terminal::Clear(terminal::ClearType::UntilNewLine);
            queue!(out, cursor::MoveTo(0, row), style::Print(line), clear)?;
        }
        queue!(
            out,
            terminal::Clear(terminal::ClearType::FromCursorDown),
            terminal::EndSynchronizedUpdate
        )?;
        out.flush()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        give_back();
    }
}

fn give_back() {
    if TAKEN.swap(false, Ordering::SeqCst) {
        // On the way out: there is nobody left to tell of a failure.
        let _ = execute!(
            std::io::stdout(),
            terminal::EnableLineWrap,
            cursor::Show,
            terminal::LeaveAlternateScreen
        );
        let _ = terminal::disable_raw_mode();
    }
}

/// How many lines there is room for.
pub fn height() -> usize {
    terminal::size().map_or(24, |(_, rows)| usize::from(rows))
}

/// The keys that are pressed from now on; Ctrl-C comes as a signal would, since a raw terminal makes none of it.
pub fn keys() -> mpsc::UnboundedReceiver<Key> {
    let (keys, pressed) = mpsc::unbounded_channel();
    // A plain thread: reading keys blocks, and the process does not wait for it at its end.
    std::thread::spawn(move || {
        while let Ok(event) = crossterm::event::read() {
            let Event::Key(key) = event else { continue };
            if key.kind == KeyEventKind::Release {
                continue;
            }
            let control = key.modifiers.contains(KeyModifiers::CONTROL);
            let key = match key.code {
                KeyCode::Char('c' | '\\') if control => Key::Quit,
                KeyCode::Char('q') | KeyCode::Esc => Key::Quit,
                KeyCode::Tab => Key::NextGroup,
                KeyCode::Char(letter) => Key::Letter(letter),
                _ => continue,
            };
            if keys.send(key).is_err() {
                return;
            }
        }
    });
    pressed
}

/// A key that means something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    Quit,
    NextGroup,
    Letter(char),
}
