//! Reads one line, character by character.

use std::borrow::Cow;

use super::error::{AsmError, AsmErrorKind};

pub(super) type Parsed<T> = Result<T, AsmError>;

/// A position in a line. Spaces between tokens are skipped.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'a> {
    line: &'a str,
    number: u32,
    at: usize,
}

impl<'a> Cursor<'a> {
    /// The start of a line without its comment.
    pub fn new(line: &'a str, number: u32) -> Self {
        Self {
            line: &line[..code_length(line)],
            number,
            at: 0,
        }
    }

    /// What is left, from the next token on.
    pub fn rest(&self) -> &'a str {
        self.line.get(self.at..).unwrap_or("").trim_start()
    }

    pub fn at_end(&self) -> bool {
        self.rest().is_empty()
    }

    /// The number of the line, from 1.
    pub const fn line(&self) -> u32 {
        self.number
    }

    fn offset(&self) -> usize {
        self.line.len() - self.rest().len()
    }

    fn advance(&mut self, bytes: usize) {
        self.at = self.offset() + bytes;
    }

    /// An error at the next token.
    pub fn error(&self, kind: AsmErrorKind) -> AsmError {
        let before = self
            .line
            .get(..self.offset())
            .unwrap_or(self.line)
            .chars()
            .count();
        let column = u32::try_from(before + 1).unwrap_or(u32::MAX);
        AsmError {
            line: self.number,
            column,
            kind,
        }
    }

    /// The error that something else should come next.
    pub fn expected(&self, expected: impl Into<Cow<'static, str>>) -> AsmError {
        let found = self
            .rest()
            .split_whitespace()
            .next()
            .unwrap_or("")
            .to_owned();
        self.error(AsmErrorKind::Expected {
            expected: expected.into(),
            found,
        })
    }

    /// Takes a text if it comes next.
    pub fn eat(&mut self, text: &str) -> bool {
        let found = self.rest().starts_with(text);
        if found {
            self.advance(text.len());
        }
        found
    }

    /// Takes a text that must come next.
    pub fn expect(&mut self, text: &'static str) -> Parsed<()> {
        if self.eat(text) {
            Ok(())
        } else {
            Err(self.expected(format!("`{text}`")))
        }
    }

    /// The line must be at its end.
    pub fn expect_end(&self) -> Parsed<()> {
        if self.at_end() {
            Ok(())
        } else {
            Err(self.expected("the end of the line"))
        }
    }

    /// Takes the longest run of such characters, if it isn't empty.
    pub fn run(&mut self, belongs: impl Fn(char) -> bool) -> Option<&'a str> {
        let rest = self.rest();
        let run = &rest[..rest.find(|c| !belongs(c)).unwrap_or(rest.len())];
        self.advance(run.len());
        (!run.is_empty()).then_some(run)
    }

    /// Takes a name: a letter, `_`, `.` or `$`, then those and digits.
    pub fn word(&mut self) -> Option<&'a str> {
        if self.rest().starts_with(|c: char| c.is_ascii_digit()) {
            return None;
        }
        self.run(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | '$'))
    }

    /// The name that comes next, without taking it.
    pub fn peek_word(&self) -> Option<&'a str> {
        let mut ahead = *self;
        ahead.word()
    }

    /// Whether a number comes next, with or without a sign.
    pub fn at_number(&self) -> bool {
        let rest = self.rest();
        let rest = rest.strip_prefix(['+', '-']).unwrap_or(rest).trim_start();
        rest.starts_with(|c: char| c.is_ascii_digit())
    }

    /// Takes a number: decimal, or hexadecimal after `0x`, with or without a sign.
    pub fn number(&mut self, what: &'static str) -> Parsed<i128> {
        let start = *self;
        let negative = self.eat("-");
        if !negative {
            self.eat("+");
        }
        let digits = self.run(|c| c.is_ascii_alphanumeric()).unwrap_or("");
        let value = match digits
            .strip_prefix("0x")
            .or_else(|| digits.strip_prefix("0X"))
        {
            Some(hex) => u64::from_str_radix(hex, 16),
            None => digits.parse(),
        };
        match value {
            Ok(value) if negative => Ok(-i128::from(value)),
            Ok(value) => Ok(i128::from(value)),
            Err(_) => Err(start.expected(what)),
        }
    }

    /// Takes a number that a field must be able to hold.
    pub fn number_in(&mut self, what: &'static str, min: i128, max: i128) -> Parsed<i128> {
        let start = *self;
        let value = self.number(what)?;
        if (min..=max).contains(&value) {
            Ok(value)
        } else {
            Err(start.error(AsmErrorKind::Range {
                what,
                value,
                min,
                max,
            }))
        }
    }

    /// Takes a number of 32 signed bits.
    pub fn i32(&mut self, what: &'static str) -> Parsed<i32> {
        let value = self.number_in(what, i32::MIN.into(), i32::MAX.into())?;
        Ok(i32::try_from(value).unwrap_or_default())
    }

    /// Takes a number of 32 bits, signed or unsigned.
    pub fn bits32(&mut self, what: &'static str) -> Parsed<i32> {
        let value = self.number_in(what, i32::MIN.into(), u32::MAX.into())?;
        Ok(i32::try_from(value)
            .unwrap_or_else(|_| u32::try_from(value).unwrap_or_default().cast_signed()))
    }

    /// Takes a number of 16 signed bits.
    pub fn i16(&mut self, what: &'static str) -> Parsed<i16> {
        let value = self.number_in(what, i16::MIN.into(), i16::MAX.into())?;
        Ok(i16::try_from(value).unwrap_or_default())
    }
}

/// Where a line's comment begins: at `//`, at `;`, or at a `#` that nothing precedes
/// (in `call name#1` it is no comment).
fn code_length(line: &str) -> usize {
    let mut previous = ' ';
    for (at, c) in line.char_indices() {
        let comment = match c {
            ';' => true,
            '#' => previous.is_whitespace(),
            '/' => line[at..].starts_with("//"),
            _ => false,
        };
        if comment {
            return at;
        }
        previous = c;
    }
    line.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_cut() {
        for line in ["r0 = 1 // x", "r0 = 1 ; x", "r0 = 1 # x", "r0 = 1"] {
            assert_eq!(Cursor::new(line, 1).rest().trim_end(), "r0 = 1");
        }
        assert_eq!(Cursor::new("call f#1", 1).rest(), "call f#1");
    }

    #[test]
    fn numbers_have_signs_and_bases() {
        let number = |text| Cursor::new(text, 1).number("a number");
        assert_eq!(number("- 0x10"), Ok(-16));
        assert_eq!(number("+7)"), Ok(7));
        assert_eq!(number("0xffffffffffffffff"), Ok(u64::MAX.into()));
        assert!(number("0x10000000000000000").is_err());
        assert!(number("12ab").is_err());
        assert!(Cursor::new("0x8000", 1).i16("an offset").is_err());
        assert_eq!(Cursor::new("0xffffffff", 1).bits32("a constant"), Ok(-1));
    }

    #[test]
    fn columns_count_characters() {
        let mut cursor = Cursor::new("é = é", 4);
        cursor.run(char::is_alphabetic);
        cursor.expect("=").unwrap();
        let error = cursor.expected("a register");
        assert_eq!(
            error.to_string(),
            "line 4, column 5: expected a register, found `é`"
        );
    }
}
