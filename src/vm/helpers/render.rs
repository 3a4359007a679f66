//! The second pass over a format: print it with the arguments that the first packed
//! (`bstr_printf`, `number`, `pointer` in `lib/vsprintf.c`).

use super::ctype::is_alnum;
use crate::vm::world::Random;

/// A text as printed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Printed {
    /// What fits the room, without the NUL that ends it.
    pub text: Vec<u8>,
    /// How long it would be with room enough.
    pub len: u64,
}

/// Digits of a pointer that has no width of its own.
const POINTER_WIDTH: i32 = 16;

/// Flags, width and kind of one conversion (`struct printf_spec`).
#[derive(Debug, Clone, Copy, Default)]
struct Spec {
    left: bool,
    plus: bool,
    space: bool,
    zero: bool,
    upper: bool,
    hex: bool,
    signed: bool,
    /// How many characters it fills at least; `None` where it says nothing.
    width: Option<i32>,
}

/// Text that goes into a room of fixed size; what does not fit only counts.
struct Out {
    text: Vec<u8>,
    room: usize,
    len: u64,
}

impl Out {
    fn put(&mut self, text: &[u8]) {
        let left = self.room.saturating_sub(self.text.len());
        self.text.extend(text.iter().take(left));
        self.len += text.len() as u64;
    }

    /// Puts a character `count` times, or not at all below 0.
    fn pad(&mut self, byte: u8, count: i64) {
        let count = u64::try_from(count).unwrap_or_default();
        let left = self.room.saturating_sub(self.text.len());
        let put = usize::try_from(count).unwrap_or(usize::MAX).min(left);
        self.text.resize(self.text.len() + put, byte);
        self.len += count;
    }

    fn is_full(&self) -> bool {
        self.len >= self.room as u64
    }

    /// A text in its width (`widen_string`).
    fn string(&mut self, text: &[u8], spec: Spec) {
        let missing = i64::from(spec.width.unwrap_or(0)) - length(text);
        if !spec.left {
            self.pad(b' ', missing);
        }
        self.put(text);
        if spec.left {
            self.pad(b' ', missing);
        }
    }

    /// A number (`number`): width, sign, then zeros or spaces, then digits.
    fn number(&mut self, number: u64, spec: Spec) {
        let negative = spec.signed && number.cast_signed() < 0;
        let magnitude = if negative {
            number.wrapping_neg()
        } else {
            number
        };
        let digits = match (spec.hex, spec.upper) {
            (false, _) => magnitude.to_string(),
            (true, false) => format!("{magnitude:x}"),
            (true, true) => format!("{magnitude:X}"),
        };
        let sign: &[u8] = match spec.signed {
            true if negative => b"-",
            true if spec.plus => b"+",
            true if spec.space => b" ",
            _ => b"",
        };
        let taken = length(sign) + length(digits.as_bytes());
        let missing = i64::from(spec.width.unwrap_or(-1)) - taken;
        if !spec.left && !spec.zero {
            self.pad(b' ', missing);
        }
        self.put(sign);
        if !spec.left && spec.zero {
            self.pad(b'0', missing);
        }
        self.put(digits.as_bytes());
        if spec.left {
            self.pad(b' ', missing);
        }
    }

    /// A pointer (`pointer_string`): 16 digits unless a width is given.
    fn pointer(&mut self, value: u64, spec: Spec) {
        self.number(
            value,
            Spec {
                hex: true,
                zero: spec.zero || spec.width.is_none(),
                width: spec.width.or(Some(POINTER_WIDTH)),
                ..spec
            },
        );
    }
}

/// Bytes of a text; none comes near what an `i64` holds.
fn length(text: &[u8]) -> i64 {
    i64::try_from(text.len()).unwrap_or(i64::MAX)
}

/// The packed arguments, taken one after the other. Past the end come zeros.
struct Packed {
    bytes: Vec<u8>,
    at: usize,
}

impl Packed {
    fn byte(&mut self) -> u8 {
        let byte = self.bytes.get(self.at).copied().unwrap_or_default();
        self.at += 1;
        byte
    }

    fn number<const N: usize>(&mut self) -> [u8; N] {
        self.at = self.at.next_multiple_of(4);
        std::array::from_fn(|_| self.byte())
    }

    /// The text up to a NUL, which is not taken yet.
    fn text(&self) -> Vec<u8> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        rest.iter().copied().take_while(|byte| *byte != 0).collect()
    }
}

/// Prints a format that the first pass has found good into `room` bytes.
pub(super) fn print(format: &[u8], packed: Vec<u8>, room: usize) -> Printed {
    let mut out = Out {
        text: Vec::new(),
        room,
        len: 0,
    };
    let mut args = Packed {
        bytes: packed,
        at: 0,
    };
    let mut rest = format;
    while !rest.is_empty() {
        let plain = rest.iter().take_while(|byte| **byte != b'%').count();
        let (text, conversion) = rest.split_at(plain);
        out.put(text);
        rest = match conversion.split_first() {
            Some((_, conversion)) => convert(conversion, &mut args, &mut out),
            None => &[],
        };
    }
    // The last byte of the room is the NUL's.
    out.text.truncate(room.saturating_sub(1));
    Printed {
        text: out.text,
        len: out.len,
    }
}

/// Prints one conversion, of which the percent sign has been taken, and gives back
/// what follows it.
fn convert<'a>(conversion: &'a [u8], args: &mut Packed, out: &mut Out) -> &'a [u8] {
    let (mut spec, rest) = Spec::parse(conversion);
    let Some((kind, rest)) = rest.split_first() else {
        return &[];
    };
    match kind {
        b'%' => out.put(b"%"),
        b'c' => {
            let byte = args.byte();
            out.string(&[byte], spec);
        }
        b's' => {
            let text = args.text();
            args.at += text.len() + 1;
            out.string(&text, spec);
        }
        b'p' => {
            pointer(rest, spec, args, out);
            // Whatever letters follow count as the pointer's.
            let letters = rest.iter().take_while(|byte| is_alnum(**byte)).count();
            return rest.get(letters..).unwrap_or_default();
        }
        b'l' => {
            let rest = rest.strip_prefix(b"l").unwrap_or(rest);
            let Some((kind, rest)) = rest.split_first() else {
                return &[];
            };
            spec.set_kind(*kind);
            out.number(u64::from_le_bytes(args.number()), spec);
            return rest;
        }
        kind => {
            spec.set_kind(*kind);
            let bytes = args.number();
            let number = match spec.signed {
                true => i64::from(i32::from_le_bytes(bytes)).cast_unsigned(),
                false => u32::from_le_bytes(bytes).into(),
            };
            out.number(number, spec);
        }
    }
    rest
}

/// Prints a pointer by the letter behind `%p`.
fn pointer(rest: &[u8], spec: Spec, args: &mut Packed, out: &mut Out) {
    let kind = rest.first().copied().unwrap_or_default();
    match kind {
        b's' | b'S' => {
            let text = symbol(u64::from_le_bytes(args.number()));
            out.string(text.as_bytes(), spec);
        }
        b'x' => out.pointer(u64::from_le_bytes(args.number()), spec),
        // The sysctl kptr_restrict is 0: %pK is %p.
        b'K' => out.pointer(hashed(u64::from_le_bytes(args.number())), spec),
        kind if !is_alnum(kind) => out.pointer(hashed(u64::from_le_bytes(args.number())), spec),
        // The first pass has printed it. Where the room is used up, the kernel
        // neither counts it nor takes it.
        _ => {
            if !out.is_full() {
                let text = args.text();
                args.at += text.len() + 1;
                out.put(&text);
            }
        }
    }
}

/// A kernel address as a symbol: there are no symbols here, so a number
/// (`sprint_symbol`).
pub(super) fn symbol(address: u64) -> String {
    format!("{address:#x}")
}

/// What `%p` shows instead of an address: 32 bits that are the same for the same
/// address. The kernel hashes with a key that it draws at boot, we with none: a
/// SplitMix64 step from the address. Null and error pointers are shown as they are.
fn hashed(address: u64) -> u64 {
    const MAX_ERRNO: u64 = 4095;
    match address {
        0 => 0,
        error if error > u64::MAX - MAX_ERRNO => error,
        address => Random::new(address).next_u32().into(),
    }
}

impl Spec {
    /// Flags and width; gives back what follows.
    fn parse(mut text: &[u8]) -> (Self, &[u8]) {
        let mut spec = Self::default();
        while let Some((flag, rest)) = text.split_first() {
            match flag {
                b'-' => spec.left = true,
                b'+' => spec.plus = true,
                b' ' => spec.space = true,
                b'0' => spec.zero = true,
                _ => break,
            }
            text = rest;
        }
        while let Some((digit @ b'0'..=b'9', rest)) = text.split_first() {
            // An int that the kernel lets overflow.
            let width = spec.width.unwrap_or(0).wrapping_mul(10);
            spec.width = Some(width.wrapping_add(i32::from(digit - b'0')));
            text = rest;
        }
        (spec, text)
    }

    const fn set_kind(&mut self, kind: u8) {
        self.signed = matches!(kind, b'd' | b'i');
        self.hex = matches!(kind, b'x' | b'X');
        self.upper = kind == b'X';
    }
}
