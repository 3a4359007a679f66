//! The kernel's text of an object by its BTF type (`btf_type_show`, `kernel/bpf/btf.c`).
//!
//! The type is traversed and printed: `(struct pair){.a = (int)1,.b = (int)2,}`. Zero members
//! are left out, and so are structs and arrays that contain only zeros: each is first
//! traversed without printing. The object is read in pieces of 32 bytes; unreadable parts are
//! left out, and an error is returned with the text.
//!
//! Oddities are the kernel's: elements of an array have no names, and neither have the
//! members of structs in it; an array of pointers repeats its first pointer; an enum is read
//! as 4 bytes.

mod name;

use bitflags::bitflags;

use crate::btf::{Btf, Encoding, Kind, LayoutError, Member, Type};
use crate::util::{Errno, TypeId};

bitflags! {
    /// Print flags (`BTF_F_…`, `include/uapi/linux/bpf.h`).
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(super) struct ShowFlags: u64 {
        /// On one line, without indentation.
        const COMPACT = 1;
        /// Without names of members and types.
        const NONAME = 1 << 1;
        /// Raw pointers instead of hashes.
        const PTR_RAW = 1 << 2;
        /// Zeros included.
        const ZERO = 1 << 3;
    }
}

/// Access to the machine's memory.
pub(super) trait Memory {
    /// Copies kernel memory.
    fn read(&mut self, at: u64, len: usize) -> Result<Vec<u8>, Errno>;
    /// The output of `%p` for an address: 16 digits.
    fn hashed(&self, address: u64) -> String;
}

/// An object's text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Shown {
    /// The whole text.
    pub text: Vec<u8>,
    /// Result of the last read.
    pub status: Result<(), Errno>,
}

/// Bytes read at once.
const AHEAD: u64 = 32;
/// Maximum size of a number (`BTF_SHOW_OBJ_BASE_TYPE_SIZE`).
const NUMBER: usize = 16;
/// Maximum nesting of structs and arrays: the kernel refuses deeper types.
const MAX_DEPTH: usize = 64;
/// Maximum number of printed parts: an array in malicious BTF may have billions of elements.
const MAX_PARTS: usize = 1 << 20;
/// Maximum indentation of a line.
const MAX_INDENT: usize = 32;

/// Prints the object of type `id` at an address.
pub(super) fn show(
    btf: &Btf,
    id: TypeId,
    at: u64,
    flags: ShowFlags,
    memory: &mut dyn Memory,
) -> Shown {
    let mut show = Show {
        btf,
        flags,
        memory,
        text: Vec::new(),
        status: Ok(()),
        depth: 0,
        shown_depth: 0,
        check_depth: None,
        in_array: false,
        chars: false,
        terminated: false,
        member: None,
        ty: None,
        id,
        end: 0,
        ahead: Vec::new(),
        ahead_at: 0,
        parts: MAX_PARTS,
    };
    show.show(id, at, 0);
    Shown {
        text: show.text,
        status: show.status,
    }
}

/// State of the traversal (`struct btf_show`).
struct Show<'a> {
    btf: &'a Btf,
    flags: ShowFlags,
    memory: &'a mut dyn Memory,
    text: Vec<u8>,
    status: Result<(), Errno>,
    /// Number of enclosing structs and arrays.
    depth: usize,
    /// Depth of the deepest value shown since the check began.
    shown_depth: usize,
    /// While checking for values without printing: the depth inside the checked struct.
    check_depth: Option<usize>,
    /// Whether elements of an array are being shown.
    in_array: bool,
    /// Whether the elements are characters.
    chars: bool,
    /// Whether a NUL ended the text.
    terminated: bool,
    member: Option<Member<'a>>,
    /// The current type: its kind, and the ID of its declaration.
    ty: Option<Kind>,
    id: TypeId,
    /// End of the whole object.
    end: u64,
    ahead: Vec<u8>,
    ahead_at: u64,
    parts: usize,
}

impl<'a> Show<'a> {
    /// Shows the object of type `id` at `at`.
    fn show(&mut self, id: TypeId, at: u64, bit: u8) {
        let Ok(ty) = self.btf.resolve(id) else { return };
        self.resolved(ty, id, at, bit);
    }

    fn resolved(&mut self, ty: Type<'a>, id: TypeId, at: u64, bit: u8) {
        let Some(left) = self.parts.checked_sub(1) else {
            return;
        };
        self.parts = left;
        if self.depth > MAX_DEPTH {
            return;
        }
        match ty.kind() {
            Kind::Int => self.scalar(ty, id, at, |show, bytes| show.int(ty, bytes, bit)),
            Kind::Ptr => self.scalar(ty, id, at, Self::pointer),
            Kind::Enum | Kind::Enum64 => {
                self.scalar(ty, id, at, |show, bytes| show.enumerator(ty, bytes));
            }
            Kind::Struct | Kind::Union => {
                self.unless_zero(|show| show.structure(ty, id, at));
            }
            Kind::Array => self.unless_zero(|show| show.array(ty, id, at)),
            kind => {
                let number = kind as u32;
                self.print(format!("<unsupported kind:{number}>").as_bytes());
            }
        }
    }

    /// Shows one value.
    fn scalar(&mut self, ty: Type<'a>, id: TypeId, at: u64, print: impl FnOnce(&mut Self, &[u8])) {
        if let Some(bytes) = self.start(ty, id, at) {
            print(self, &bytes);
            self.ended();
        }
    }

    /// Shows a struct or an array unless all of it is zero.
    fn unless_zero(&mut self, show: impl Fn(&mut Self)) {
        if self.depth > 0 && !self.flags.contains(ShowFlags::ZERO) {
            let member = self.member;
            let inside = self.depth + 1;
            if self.check_depth.is_none() {
                self.check_depth = Some(inside);
                self.shown_depth = 0;
            }
            show(self);
            self.member = member;
            if self.check_depth != Some(inside) {
                // Part of an outer check.
                return;
            }
            self.check_depth = None;
            if self.shown_depth <= self.depth {
                return;
            }
        }
        show(self);
    }

    fn structure(&mut self, ty: Type<'a>, id: TypeId, at: u64) {
        if !self.open(ty, id, at) {
            return;
        }
        for member in ty.members() {
            self.member = Some(member);
            let at = at.wrapping_add(u64::from(member.bit_offset / 8));
            let bit = u8::try_from(member.bit_offset % 8).unwrap_or_default();
            match member.bitfield {
                Some(width) if width > 0 => {
                    if let Some(ty) = self.btf.get(member.ty)
                        && let Some(bytes) = self.start(ty, member.ty, at)
                    {
                        self.bits(&bytes, bit.into(), width.into());
                    }
                    self.ended();
                }
                _ => self.show(member.ty, at, bit),
            }
            self.member = None;
        }
        self.close(b"}");
    }

    fn array(&mut self, ty: Type<'a>, id: TypeId, at: u64) {
        let Some(array) = ty.array() else { return };
        let Ok(element) = self.btf.resolve(array.element) else {
            return;
        };
        // The kernel uses size 0 for pointers here.
        let size = match element.kind() {
            Kind::Ptr => 0,
            _ => element.size().unwrap_or_default(),
        };
        self.chars = element.kind() == Kind::Int && size == 1;
        self.terminated = false;
        if !self.open(ty, id, at) {
            return;
        }
        let mut at = at;
        for _ in 0..array.len {
            self.in_array = true;
            self.member = None;
            self.resolved(element, array.element, at, 0);
            self.in_array = false;
            self.member = None;
            at = at.wrapping_add(size.into());
            if self.terminated || self.parts == 0 {
                break;
            }
        }
        self.chars = false;
        self.terminated = false;
        self.close(b"]");
    }

    fn int(&mut self, ty: Type<'a>, bytes: &[u8], bit: u8) {
        let Some(int) = ty.int() else { return };
        let signed = int.encoding == Encoding::Signed;
        let whole = bit == 0 && int.offset == 0;
        let number = number(bytes);
        match int.bits {
            128 if whole => self.wide(number),
            8 if whole && self.chars => self.character(bytes, signed),
            width @ (8 | 16 | 32 | 64) if whole => {
                self.value(
                    integer(number, width, signed).as_bytes(),
                    masked(number, width) != 0,
                );
            }
            width => {
                let from = u32::from(bit) + u32::from(int.offset);
                self.bits(bytes, from, width.into());
            }
        }
    }

    /// Shows an element of a character array.
    fn character(&mut self, bytes: &[u8], signed: bool) {
        let byte = bytes.first().copied().unwrap_or_default();
        if self.terminated {
            return;
        }
        if byte == 0 {
            self.terminated = true;
            return;
        }
        let text = match byte {
            b' '..=b'~' | 0xa0.. => vec![b'\'', byte, b'\''],
            _ => integer(byte.into(), 8, signed).into_bytes(),
        };
        self.value(&text, true);
    }

    /// Shows a bit-field in hexadecimal.
    fn bits(&mut self, bytes: &[u8], from: u32, width: u32) {
        let (skipped, shift) = ((from / 8) as usize, from % 8);
        let number = number(bytes.get(skipped..).unwrap_or_default()) >> shift;
        let mask = 1u128.checked_shl(width).map_or(u128::MAX, |bit| bit - 1);
        self.wide(number & mask);
    }

    /// Shows a number of up to 128 bits in hexadecimal.
    fn wide(&mut self, number: u128) {
        let text = format!("{number:#x}");
        self.value(text.as_bytes(), number != 0);
    }

    fn pointer(&mut self, bytes: &[u8]) {
        let address = u64::try_from(masked(number(bytes), 64)).unwrap_or_default();
        let digits = match self.flags.contains(ShowFlags::PTR_RAW) {
            true => format!("{address:016x}"),
            false => self.memory.hashed(address),
        };
        self.value(format!("0x{digits}").as_bytes(), address != 0);
    }

    fn enumerator(&mut self, ty: Type<'a>, bytes: &[u8]) {
        let width = if ty.kind() == Kind::Enum { 32 } else { 64 };
        let raw = masked(number(bytes), width);
        let known = ty
            .enumerators()
            .find(|known| masked(known.value().cast_unsigned(), width) == raw);
        match known {
            // An enumerator is shown even if its value is zero.
            Some(known) => self.value(known.name.as_bytes(), true),
            None => {
                let text = integer(raw, width, ty.is_signed_enum());
                self.value(text.as_bytes(), raw != 0);
            }
        }
    }

    /// Prints a value unless it is zero and zeros are hidden.
    fn value(&mut self, text: &[u8], is_set: bool) {
        if !is_set && !self.flags.contains(ShowFlags::ZERO) && self.depth > 0 {
            return;
        }
        let line = [
            &self.indent(),
            self.name().as_bytes(),
            text,
            self.delimiter(),
            self.newline(),
        ]
        .concat();
        self.print(&line);
        self.shown_depth = self.shown_depth.max(self.depth);
    }

    /// Starts a struct or an array; false if it can't be read.
    fn open(&mut self, ty: Type<'a>, id: TypeId, at: u64) -> bool {
        if self.start(ty, id, at).is_none() {
            return false;
        }
        let line = [&self.indent(), self.name().as_bytes(), self.newline()].concat();
        self.print(&line);
        self.depth += 1;
        true
    }

    /// Ends a struct or an array.
    fn close(&mut self, bracket: &[u8]) {
        self.depth -= 1;
        let line = [&self.indent(), bracket, self.delimiter(), self.newline()].concat();
        self.print(&line);
        self.ended();
    }

    /// Starts an object of a type and returns the bytes that were read ahead.
    fn start(&mut self, ty: Type<'a>, id: TypeId, at: u64) -> Option<Vec<u8>> {
        (self.ty, self.id) = (Some(ty.kind()), id);
        let size = match self.btf.size_of(ty.id()) {
            Ok(size) => u64::from(size),
            Err(error) => {
                self.status = Err(match error {
                    LayoutError::TooLarge(_) => Errno::E2BIG,
                    _ => Errno::EINVAL,
                });
                return None;
            }
        };
        let known = if self.depth == 0 {
            self.end = at.wrapping_add(size);
            None
        } else {
            self.known(at, size.min(NUMBER as u64))
        };
        if known.is_some() {
            return known;
        }
        let left = self.end.saturating_sub(at).min(AHEAD);
        let left = usize::try_from(left).unwrap_or_default();
        match self.memory.read(at, left) {
            Ok(mut bytes) => {
                self.status = Ok(());
                self.ahead.clone_from(&bytes);
                self.ahead_at = at;
                bytes.resize(bytes.len().max(NUMBER), 0);
                Some(bytes)
            }
            Err(errno) => {
                self.status = Err(errno);
                None
            }
        }
    }

    /// Bytes from the read-ahead buffer.
    fn known(&self, at: u64, size: u64) -> Option<Vec<u8>> {
        let from = at.checked_sub(self.ahead_at)?;
        if from.checked_add(size)? >= AHEAD {
            return None;
        }
        let bytes = self.ahead.get(usize::try_from(from).ok()?..)?;
        let mut bytes = bytes.to_vec();
        bytes.resize(bytes.len().max(NUMBER), 0);
        Some(bytes)
    }

    fn ended(&mut self) {
        (self.ty, self.id) = (None, TypeId(0));
    }

    fn print(&mut self, text: &[u8]) {
        if self.check_depth.is_none() {
            self.text.extend_from_slice(text);
        }
    }

    const fn is_compact(&self) -> bool {
        self.flags.contains(ShowFlags::COMPACT)
    }

    fn indent(&self) -> Vec<u8> {
        match self.is_compact() {
            true => Vec::new(),
            false => vec![b' '; self.depth.min(MAX_INDENT)],
        }
    }

    const fn newline(&self) -> &'static [u8] {
        if self.is_compact() { b"" } else { b"\n" }
    }

    fn delimiter(&self) -> &'static [u8] {
        match self.ty {
            _ if self.depth == 0 => b"",
            Some(Kind::Union) if self.is_compact() => b"|",
            _ => b",",
        }
    }

    /// The name in front of a value.
    fn name(&self) -> String {
        if self.in_array {
            // The array's own name has the element type.
            return String::new();
        }
        let (member, id) = match &self.member {
            Some(member) => (member.name, member.ty),
            None => ("", self.id),
        };
        let names = !self.flags.contains(ShowFlags::NONAME);
        name::of(self.btf, id, member, names)
    }
}

/// The first 16 bytes as a number.
fn number(bytes: &[u8]) -> u128 {
    let mut word = [0; 16];
    for (to, from) in word.iter_mut().zip(bytes) {
        *to = *from;
    }
    u128::from_le_bytes(word)
}

/// The lowest `width` bits.
const fn masked(number: u128, width: u8) -> u128 {
    number & (u128::MAX >> (128 - width as u32))
}

/// A number of up to 64 bits in decimal.
fn integer(number: u128, width: u8, signed: bool) -> String {
    let shift = 128 - u32::from(width);
    match signed {
        true => ((number << shift).cast_signed() >> shift).to_string(),
        false => masked(number, width).to_string(),
    }
}

#[cfg(test)]
mod tests;
