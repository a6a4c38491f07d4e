//! Error text that a `const` panic and a run-time `Display` share.

use std::fmt;

/// Longer than any message: a picture is two lines of at most [`MAX_PICTURE`] bytes, the rest a few sentences.
const CAPACITY: usize = 1024;
/// The longest text that is drawn with a caret line.
const MAX_PICTURE: usize = 256;
/// How much of a text is quoted inside a sentence.
const MAX_QUOTE: usize = 24;

/// A text in a fixed buffer, built in `const` context, where there is no `format!`.
///
/// What does not fit is left out at a character's boundary.
#[derive(Clone, Copy)]
pub struct Message {
    bytes: [u8; CAPACITY],
    len: usize,
}

impl Message {
    pub(super) const fn new() -> Self {
        Self {
            bytes: [0; CAPACITY],
            len: 0,
        }
    }

    /// The text.
    #[must_use]
    pub const fn as_str(&self) -> &str {
        let (text, _) = self.bytes.split_at(self.len);
        match std::str::from_utf8(text) {
            Ok(text) => text,
            // Only whole characters are pushed.
            Err(_) => "",
        }
    }

    pub(super) const fn text(&mut self, text: &str) -> &mut Self {
        self.part(text, 0, text.len())
    }

    pub(super) const fn number(&mut self, number: u64) -> &mut Self {
        let mut unit = 1;
        while number / unit >= 10 {
            unit *= 10;
        }
        while unit > 0 {
            let digit = number / unit % 10;
            self.byte(b'0' + digit as u8);
            unit /= 10;
        }
        self
    }

    /// A part of `text` in backticks, cut to a readable length.
    pub(super) const fn quoted(&mut self, text: &str, at: usize, len: usize) -> &mut Self {
        let end = at + len;
        if len <= MAX_QUOTE {
            self.text("`").part(text, at, end).text("`")
        } else {
            let cut = boundary(text, at + MAX_QUOTE);
            self.text("`").part(text, at, cut).text("…`")
        }
    }

    /// Two lines: `text`, and carets under the part at fault.
    pub(super) const fn picture(&mut self, text: &str, at: usize, len: usize) -> &mut Self {
        if text.len() > MAX_PICTURE {
            let cut = boundary(text, 64);
            return self.text("\n  ").part(text, 0, cut).text("…");
        }
        let out = self.text("\n  ").part(text, 0, text.len()).text("\n  ");
        let bytes = text.as_bytes();
        let mut i = 0;
        while i < at && i < bytes.len() {
            if starts_character(bytes[i]) {
                out.byte(b' ');
            }
            i += 1;
        }
        out.byte(b'^');
        i += 1;
        while i < at + len && i < bytes.len() {
            if starts_character(bytes[i]) {
                out.byte(b'^');
            }
            i += 1;
        }
        out
    }

    /// `text[from..to]` on character boundaries; control characters become blanks, so that the carets stay in place.
    const fn part(&mut self, text: &str, from: usize, to: usize) -> &mut Self {
        let bytes = text.as_bytes();
        let mut i = from;
        while i < to && i < bytes.len() {
            let mut end = i + 1;
            while end < bytes.len() && !starts_character(bytes[end]) {
                end += 1;
            }
            if self.len + (end - i) > CAPACITY {
                return self;
            }
            let control = bytes[i].is_ascii_control() && bytes[i] != b'\n';
            while i < end {
                self.byte(if control { b' ' } else { bytes[i] });
                i += 1;
            }
        }
        self
    }

    pub(super) const fn byte(&mut self, byte: u8) {
        if self.len < CAPACITY {
            self.bytes[self.len] = byte;
            self.len += 1;
        }
    }
}

const fn starts_character(byte: u8) -> bool {
    byte & 0xC0 != 0x80
}

/// The last character boundary at or before `at`.
const fn boundary(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_texts_are_joined() {
        const M: Message = *Message::new().text("a ").number(0).text(" ").number(u64::MAX);
        assert_eq!(M.as_str(), "a 0 18446744073709551615");
    }

    #[test]
    fn carets_count_characters() {
        let m = *Message::new().picture("ü ß x", 3, 2);
        assert_eq!(m.as_str(), "\n  ü ß x\n    ^");
        // At the end there is nothing to underline, only a place to point at.
        assert_eq!(Message::new().picture("ab", 2, 0).as_str(), "\n  ab\n    ^");
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        let long = "ü".repeat(2000);
        let m = *Message::new().picture(&long, 0, 1).quoted(&long, 1000, 1000);
        assert!(m.as_str().ends_with("…`"));
        assert_eq!(Message::new().text(&long).as_str().len(), CAPACITY);
        let odd = format!("a{long}");
        assert_eq!(Message::new().text(&odd).as_str().len(), CAPACITY - 1);
    }
}
