//! Format strings of the printing helpers.
//!
//! There are two steps, as in the kernel. [`Format::prepare`] checks the format and fetches
//! the memory that arguments point to (`bpf_bprintf_prepare`, `kernel/bpf/helpers.c`);
//! arguments are stored in a buffer of 512 bytes. [`Format::print`] then writes the line
//! (`bstr_printf`, `lib/vsprintf.c`).
//!
//! `%p` prints a hash of the pointer: with a fixed key here, with a key chosen at boot in the
//! kernel. `%ps`, `%pS` and `%pB` print the [world's](crate::vm::Symbols) symbol for an
//! address, or a number if there is none.

use std::hash::Hasher;

use rustc_hash::FxHasher;

use super::probe::From;
use super::string::is_space;
use crate::spec::limits;
use crate::util::Errno;
use crate::vm::machine::Machine;

/// A checked format with its arguments.
#[derive(Debug)]
pub(super) struct Format {
    parts: Vec<Part>,
}

/// A printed line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// The text that fits, without the final NUL.
    pub text: Vec<u8>,
    /// Length of the whole line.
    pub len: u64,
}

/// A piece of a line.
#[derive(Debug)]
enum Part {
    /// Text of the format itself.
    Plain(Vec<u8>),
    Number(Field, Number),
    /// A string, a symbol or, with one byte, a character.
    Str(Field, Vec<u8>),
    /// Text formatted when it was fetched: flags and width don't apply.
    Printed(Vec<u8>),
}

/// Flags and width.
#[derive(Debug, Clone, Copy, Default)]
struct Field {
    left: bool,
    plus: bool,
    space: bool,
    zero: bool,
    width: Option<usize>,
}

#[derive(Debug, Clone, Copy)]
struct Number {
    value: u64,
    conversion: Conversion,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Conversion {
    Signed,
    Unsigned,
    Hex,
    UpperHex,
}

/// `FIELD_WIDTH_MAX`.
const MAX_WIDTH: usize = (1 << 23) - 1;

impl Format {
    /// Checks a format and fetches its arguments. `args` must have at least one argument per
    /// conversion.
    pub(super) fn prepare(
        format: &[u8],
        args: &[u64],
        machine: &mut Machine,
    ) -> Result<Self, Errno> {
        let mut preparer = Preparer {
            format,
            at: 0,
            args: args.iter(),
            used: 0,
            parts: Vec::new(),
            machine,
        };
        preparer.run()?;
        Ok(Self {
            parts: preparer.parts,
        })
    }

    /// Prints into `size` bytes; the last one is for the NUL.
    pub(super) fn print(&self, size: usize) -> Line {
        let mut sink = Sink {
            text: Vec::new(),
            size: size as u64,
            len: 0,
        };
        for part in &self.parts {
            match part {
                Part::Plain(text) => sink.push(text),
                Part::Number(field, number) => sink.number(*field, *number),
                Part::Str(field, text) => sink.padded(*field, text),
                // As in the kernel, its length does not count if nothing fits.
                Part::Printed(text) if sink.len < sink.size => sink.push(text),
                Part::Printed(_) => {}
            }
        }
        Line {
            text: sink.text,
            len: sink.len,
        }
    }
}

/// State of [`Format::prepare`].
struct Preparer<'a> {
    format: &'a [u8],
    at: usize,
    args: std::slice::Iter<'a, u64>,
    /// Used bytes of the argument buffer.
    used: usize,
    parts: Vec<Part>,
    machine: &'a mut Machine,
}

impl Preparer<'_> {
    /// The byte `ahead` of the current one; 0 past the end.
    fn peek(&self, ahead: usize) -> u8 {
        self.format.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn run(&mut self) -> Result<(), Errno> {
        let mut plain = Vec::new();
        while self.at < self.format.len() {
            let byte = self.peek(0);
            if byte.is_ascii_control() && !is_space(byte) {
                return Err(Errno::EINVAL);
            }
            self.at += 1;
            if byte == b'%' && self.peek(0) != b'%' {
                self.parts.push(Part::Plain(std::mem::take(&mut plain)));
                self.conversion()?;
                continue;
            }
            self.at += usize::from(byte == b'%');
            plain.push(byte);
        }
        self.parts.push(Part::Plain(plain));
        Ok(())
    }

    /// Parses one conversion, after the `%`.
    fn conversion(&mut self) -> Result<(), Errno> {
        let arg = *self.args.next().ok_or(Errno::EINVAL)?;
        let field = self.field();
        let letter = self.peek(0);
        self.at += 1;
        let part = match letter {
            b'p' => self.pointer(field, arg)?,
            b's' => Part::Str(field, self.string(arg, From::address(arg))?),
            b'c' => {
                self.room(1)?;
                Part::Str(field, vec![arg.to_le_bytes()[0]])
            }
            letter => self.number(field, arg, letter)?,
        };
        self.parts.push(part);
        Ok(())
    }

    fn field(&mut self) -> Field {
        let mut field = Field::default();
        loop {
            match self.peek(0) {
                b'-' => field.left = true,
                b'+' => field.plus = true,
                b' ' => field.space = true,
                b'0' => field.zero = true,
                _ => break,
            }
            self.at += 1;
        }
        let mut width = None::<i32>;
        while let digit @ b'0'..=b'9' = self.peek(0) {
            // An int that overflows in the kernel; a negative width means no width.
            let tens = width.unwrap_or(0).wrapping_mul(10);
            width = Some(tens.wrapping_add(i32::from(digit - b'0')));
            self.at += 1;
        }
        field.width = width.map(|width| usize::try_from(width).unwrap_or(0).min(MAX_WIDTH));
        field
    }

    /// Parses an integer conversion that begins with `letter`.
    fn number(&mut self, field: Field, arg: u64, letter: u8) -> Result<Part, Errno> {
        let (mut letter, mut long) = (letter, false);
        for _ in 0..2 {
            if letter == b'l' {
                long = true;
                letter = self.peek(0);
                self.at += 1;
            }
        }
        let conversion = match letter {
            b'd' | b'i' => Conversion::Signed,
            b'u' => Conversion::Unsigned,
            b'x' => Conversion::Hex,
            b'X' => Conversion::UpperHex,
            _ => return Err(Errno::EINVAL),
        };
        self.word(if long { 8 } else { 4 })?;
        let value = match (long, conversion) {
            (true, _) => arg,
            (false, Conversion::Signed) => extended(arg),
            (false, _) => arg & 0xffff_ffff,
        };
        Ok(Part::Number(field, Number { value, conversion }))
    }

    /// Parses a conversion after `%p`.
    fn pointer(&mut self, field: Field, arg: u64) -> Result<Part, Errno> {
        let (kind, second) = (self.peek(0), self.peek(1));
        let part = match (kind, second) {
            (0, _) => self.hashed(field, arg)?,
            (kind, _) if is_space(kind) || is_punct(kind) => self.hashed(field, arg)?,
            (b'k' | b'u', b's') => {
                self.at += 2;
                let from = if kind == b'k' {
                    From::Kernel
                } else {
                    From::User
                };
                Part::Printed(self.string(arg, from)?)
            }
            (b'K', _) => self.hashed(field, arg)?,
            (b'x', _) => {
                self.word(8)?;
                pointer(field, arg)
            }
            (b's' | b'S', _) => {
                self.word(8)?;
                let symbols = self.machine.world.symbols();
                let text = match kind {
                    b's' => symbols.name(arg),
                    _ => symbols.describe(arg),
                };
                Part::Str(field, text.into_bytes())
            }
            (b'B', _) => self.fetched(self.machine.world.symbols().describe_return(arg)),
            (b'i' | b'I', b'4' | b'6') => self.ip_address(arg, kind, second)?,
            _ => return Err(Errno::EINVAL),
        };
        // Further alphanumeric modifiers are ignored.
        while is_alnum(self.peek(0)) {
            self.at += 1;
        }
        Ok(part)
    }

    /// `%p` and `%pK`.
    fn hashed(&mut self, field: Field, arg: u64) -> Result<Part, Errno> {
        self.word(8)?;
        Ok(pointer(field, hash(arg)))
    }

    fn ip_address(&mut self, arg: u64, style: u8, version: u8) -> Result<Part, Errno> {
        let len = if version == b'4' { 4 } else { 16 };
        if self.left() < len {
            return Err(Errno::ENOSPC);
        }
        let bytes = From::Kernel.copy(self.machine, arg, len);
        let bytes = bytes.unwrap_or_else(|_| vec![0; len]);
        let parts = |size: usize, print: fn(&[u8]) -> String, between: &str| {
            let parts: Vec<_> = bytes.chunks(size).map(print).collect();
            parts.join(between)
        };
        let hex = |pair: &[u8]| pair.iter().map(|byte| format!("{byte:02x}")).collect();
        let text = match (style, version) {
            (b'I', b'4') => parts(1, |byte| format!("{}", byte[0]), "."),
            (_, b'4') => parts(1, |byte| format!("{:03}", byte[0]), "."),
            (b'I', _) => parts(2, hex, ":"),
            _ => parts(2, hex, ""),
        };
        Ok(self.fetched(text))
    }

    /// Text that is stored in the buffer now, truncated to the room left.
    fn fetched(&mut self, mut text: String) -> Part {
        let (len, left) = (text.len(), self.left());
        text.truncate(left.saturating_sub(1));
        self.used += len + 1;
        Part::Printed(text.into_bytes())
    }

    /// A string, truncated to the room left; empty if it can't be read.
    fn string(&mut self, at: u64, from: From) -> Result<Vec<u8>, Errno> {
        let next = self.peek(0);
        if next != 0 && !is_space(next) && !is_punct(next) {
            return Err(Errno::EINVAL);
        }
        let left = self.left();
        if left == 0 {
            return Err(Errno::ENOSPC);
        }
        let mut text = from
            .copy_str(self.machine, at, left)
            .unwrap_or_else(|_| vec![0]);
        self.used += text.len();
        text.pop();
        Ok(text)
    }

    const fn left(&self) -> usize {
        limits::MAX_PRINTF_BINARY_ARGS.saturating_sub(self.used)
    }

    /// Reserves `len` bytes of the buffer.
    const fn room(&mut self, len: usize) -> Result<(), Errno> {
        if self.left() < len {
            return Err(Errno::ENOSPC);
        }
        self.used += len;
        Ok(())
    }

    /// Reserves `len` bytes of the buffer, aligned for a number.
    const fn word(&mut self, len: usize) -> Result<(), Errno> {
        self.used = self.used.next_multiple_of(4);
        self.room(len)
    }
}

/// The hash printed for a secret address: null and error pointers are not hashed.
pub(super) fn hash(address: u64) -> u64 {
    if address == 0 || address >= 4095_u64.wrapping_neg() {
        return address;
    }
    let mut hasher = FxHasher::default();
    hasher.write_u64(address);
    hasher.finish() >> 32
}

/// The low 32 bits, sign-extended to 64.
#[expect(clippy::cast_possible_truncation, reason = "the low bits are meant")]
const fn extended(value: u64) -> u64 {
    ((value as u32).cast_signed() as i64).cast_unsigned()
}

/// A pointer in hexadecimal: 16 digits unless a width is given.
fn pointer(field: Field, value: u64) -> Part {
    let field = match field.width {
        Some(_) => field,
        None => Field {
            width: Some(16),
            zero: true,
            ..field
        },
    };
    let conversion = Conversion::Hex;
    Part::Number(field, Number { value, conversion })
}

/// `ispunct` of the kernel's `ctype.h`, which includes Latin-1.
const fn is_punct(byte: u8) -> bool {
    byte.is_ascii_punctuation() || matches!(byte, 0xa1..=0xbf | 0xd7 | 0xf7)
}

/// `isalnum` of the kernel's `ctype.h`.
const fn is_alnum(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte >= 0xc0 && !is_punct(byte)
}

/// State of [`Format::print`].
struct Sink {
    text: Vec<u8>,
    size: u64,
    len: u64,
}

impl Sink {
    /// Room left, without the byte for the NUL.
    fn left(&self) -> usize {
        let left = self.size.saturating_sub(1).saturating_sub(self.len);
        usize::try_from(left).unwrap_or(usize::MAX)
    }

    fn push(&mut self, text: &[u8]) {
        let kept = text.get(..self.left()).unwrap_or(text);
        self.text.extend_from_slice(kept);
        self.len += text.len() as u64;
    }

    fn fill(&mut self, count: usize, byte: u8) {
        let kept = count.min(self.left());
        self.text.resize(self.text.len() + kept, byte);
        self.len += count as u64;
    }

    fn padded(&mut self, field: Field, text: &[u8]) {
        let padding = field.width.unwrap_or(0).saturating_sub(text.len());
        if field.left {
            self.push(text);
            self.fill(padding, b' ');
        } else {
            self.fill(padding, b' ');
            self.push(text);
        }
    }

    fn number(&mut self, field: Field, number: Number) {
        let signed = number.conversion == Conversion::Signed;
        let negative = signed && number.value.cast_signed() < 0;
        let digits = match number.conversion {
            Conversion::Signed => number.value.cast_signed().unsigned_abs().to_string(),
            Conversion::Unsigned => number.value.to_string(),
            Conversion::Hex => format!("{:x}", number.value),
            Conversion::UpperHex => format!("{:X}", number.value),
        };
        let sign: &[u8] = match (negative, signed && field.plus, signed && field.space) {
            (true, ..) => b"-",
            (_, true, _) => b"+",
            (_, _, true) => b" ",
            _ => b"",
        };
        if !field.zero || field.left {
            return self.padded(field, &[sign, digits.as_bytes()].concat());
        }
        self.push(sign);
        let width = field.width.unwrap_or(0).saturating_sub(sign.len());
        self.fill(width.saturating_sub(digits.len()), b'0');
        self.push(digits.as_bytes());
    }
}

#[cfg(test)]
mod tests;
