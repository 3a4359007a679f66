//! The kernel's two passes over a format. The first checks it and packs its
//! arguments into a buffer (`bpf_bprintf_prepare`, `kernel/bpf/helpers.c`); the
//! [second](super::render) prints.
//!
//! BPF allows `%d %i %u %x %X` with `l` or `ll`, `%c`, `%s`, `%p` with `K x s S B`,
//! `%pks`, `%pus`, `%pi4 %pI4 %pi6 %pI6`, and flags `0 + -` and space with a width
//! in front; neither `#` nor a precision.

use super::ctype::{is_punct, is_space};
use super::probe;
use super::render::{self, Printed};
use crate::util::Errno;
use crate::vm::machine::Machine;

/// Bytes of packed arguments (`MAX_BPRINTF_BIN_ARGS`).
const MOST_PACKED: usize = 512;

/// Formats `args` as a program's format says, into `room` bytes with a NUL at the
/// end. `format` has no NUL.
///
/// # Errors
/// `EINVAL` for a format that BPF does not allow or that wants more arguments,
/// `ENOSPC` for strings too long.
pub(super) fn format(
    machine: &mut Machine,
    format: &[u8],
    args: &[u64],
    room: usize,
) -> Result<Printed, Errno> {
    let packed = Pass {
        machine,
        format,
        at: 0,
        args: args.iter(),
        packed: Vec::new(),
    }
    .run()?;
    Ok(render::print(format, packed, room))
}

/// Which strings a conversion reads.
#[derive(Clone, Copy)]
enum Text {
    Any,
    Kernel,
    User,
}

/// The pass over the format.
struct Pass<'a> {
    machine: &'a mut Machine,
    format: &'a [u8],
    /// The byte that is looked at.
    at: usize,
    /// Arguments left.
    args: std::slice::Iter<'a, u64>,
    packed: Vec<u8>,
}

impl Pass<'_> {
    /// The byte `ahead` of the current one; 0 at the end, as a NUL is there.
    fn peek(&self, ahead: usize) -> u8 {
        let byte = self.format.get(self.at + ahead);
        byte.copied().unwrap_or_default()
    }

    fn run(mut self) -> Result<Vec<u8>, Errno> {
        while self.at < self.format.len() {
            let byte = self.peek(0);
            if byte.is_ascii() && !(byte == b' ' || byte.is_ascii_graphic() || is_space(byte)) {
                return Err(Errno::EINVAL);
            }
            self.at += 1;
            match (byte, self.peek(0)) {
                (b'%', b'%') => self.at += 1,
                (b'%', _) => self.conversion()?,
                _ => {}
            }
        }
        Ok(self.packed)
    }

    /// What follows a percent sign. Leaves `at` behind what was checked.
    fn conversion(&mut self) -> Result<(), Errno> {
        let arg = *self.args.next().ok_or(Errno::EINVAL)?;
        while matches!(self.peek(0), b'0' | b'+' | b'-' | b' ') {
            self.at += 1;
        }
        while self.peek(0).is_ascii_digit() {
            self.at += 1;
        }
        let kind = self.peek(0);
        self.at += 1;
        match kind {
            b'p' => self.pointer(arg),
            b's' => self.string(Text::Any, arg),
            b'c' => {
                let [low, ..] = arg.to_le_bytes();
                self.room(1)?;
                self.packed.push(low);
                Ok(())
            }
            b'l' => {
                self.at += usize::from(self.peek(0) == b'l');
                self.at += 1;
                match self.format.get(self.at - 1) {
                    Some(b'd' | b'i' | b'u' | b'x' | b'X') => self.number(&arg.to_le_bytes()),
                    _ => Err(Errno::EINVAL),
                }
            }
            b'd' | b'i' | b'u' | b'x' | b'X' => {
                let [a, b, c, d, ..] = arg.to_le_bytes();
                self.number(&[a, b, c, d])
            }
            _ => Err(Errno::EINVAL),
        }
    }

    /// What follows `%p`.
    fn pointer(&mut self, arg: u64) -> Result<(), Errno> {
        let (kind, more) = (self.peek(0), self.peek(1));
        match (kind, more) {
            (0, _) => self.number(&arg.to_le_bytes()),
            _ if is_space(kind) || is_punct(kind) => self.number(&arg.to_le_bytes()),
            (b'k' | b'u', b's') => {
                self.at += 2;
                let text = if kind == b'k' {
                    Text::Kernel
                } else {
                    Text::User
                };
                self.string(text, arg)
            }
            (b'K' | b'x' | b's' | b'S', _) => {
                self.at += 1;
                self.number(&arg.to_le_bytes())
            }
            (b'B', _) => {
                self.at += 1;
                self.printed(&render::symbol(arg))
            }
            (b'i' | b'I', b'4' | b'6') => {
                self.at += 2;
                self.address(kind == b'I', if more == b'4' { 4 } else { 16 }, arg)
            }
            _ => Err(Errno::EINVAL),
        }
    }

    /// An IP address in memory, in network order; zeros where it can't be read.
    fn address(&mut self, separated: bool, len: usize, arg: u64) -> Result<(), Errno> {
        self.room(len)?;
        let bytes = probe::kernel_bytes(self.machine, arg, len).unwrap_or_else(|_| vec![0; len]);
        let text = match (len, separated) {
            (4, true) => joined(&bytes, 1, ".", |quad| u8::to_string(&quad)),
            (4, false) => joined(&bytes, 1, ".", |quad| format!("{quad:03}")),
            (_, true) => joined(&bytes, 2, ":", |byte| format!("{byte:02x}")),
            (_, false) => joined(&bytes, 2, "", |byte| format!("{byte:02x}")),
        };
        self.printed(&text)
    }

    /// A string in memory; an empty one where it can't be read. It may only be
    /// followed by a space, a sign or the end.
    fn string(&mut self, text: Text, arg: u64) -> Result<(), Errno> {
        let next = self.peek(0);
        if next != 0 && !is_space(next) && !is_punct(next) {
            return Err(Errno::EINVAL);
        }
        let room = self.room(1)?;
        let read = match text {
            Text::Any => probe::any_str(self.machine, arg, room),
            Text::Kernel => probe::kernel_str(self.machine, arg, room),
            Text::User => probe::user_str(self.machine, arg, room),
        };
        self.packed.extend(read.unwrap_or_else(|_| vec![0]));
        Ok(())
    }

    /// Packs a text that this pass has printed; the second one only copies it.
    fn printed(&mut self, text: &str) -> Result<(), Errno> {
        let room = self.room(0)?.saturating_sub(1);
        self.packed.extend(text.bytes().take(room));
        self.packed.push(0);
        Ok(())
    }

    /// Packs a number at a multiple of 4.
    fn number(&mut self, bytes: &[u8]) -> Result<(), Errno> {
        let aligned = self.packed.len().next_multiple_of(4);
        self.packed.resize(aligned, 0);
        self.room(bytes.len())?;
        self.packed.extend_from_slice(bytes);
        Ok(())
    }

    /// Bytes left in the buffer, if there are as many as wanted.
    fn room(&self, wanted: usize) -> Result<usize, Errno> {
        let left = MOST_PACKED.saturating_sub(self.packed.len());
        (left >= wanted).then_some(left).ok_or(Errno::ENOSPC)
    }
}

/// Bytes in groups of `group`, with a separator between these.
fn joined(bytes: &[u8], group: usize, separator: &str, text: impl Fn(u8) -> String) -> String {
    let groups = bytes.chunks(group);
    let texts: Vec<String> = groups
        .map(|group| group.iter().map(|b| text(*b)).collect())
        .collect();
    texts.join(separator)
}

#[cfg(test)]
mod tests;
