//! What the long commands print: whoever reads it may go away, and a disk may have no room for it.

use std::fmt;
use std::io::Write;
use std::panic::resume_unwind;

/// Prints a line as `println!` does. Where that cannot be, the program ends as by a panic, so that what it has started ends with it, but says
/// why in one line.
#[macro_export]
macro_rules! say {
    ($($text:tt)*) => {
        $crate::say::line(format_args!($($text)*))
    };
}

/// See [`say!`](crate::say!).
///
/// # Panics
/// When the line cannot be written.
pub fn line(text: fmt::Arguments<'_>) {
    if let Err(error) = writeln!(std::io::stdout(), "{text}") {
        eprintln!("stopped: what it tells cannot be written ({error})");
        // Without the hook, which would tell where in the code.
        resume_unwind(Box::new("nobody hears"));
    }
}
