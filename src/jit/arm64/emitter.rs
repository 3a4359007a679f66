//! The emitter: the code so far, constants, and the reach of branches.
//!
//! Rarely executed code is deferred to stubs. Conditional branches lead to these, so they
//! are written at the end of the function, or in an island in the middle of it, jumped
//! over, before the oldest branch to a stub is out of reach ([`Emitter::island`]).

use dynasmrt::aarch64::{
    Aarch64Relocation, encode_logical_immediate_32bit, encode_logical_immediate_64bit,
};
use dynasmrt::{DynamicLabel, DynasmApi, DynasmLabelApi, VecAssembler};
use smallvec::SmallVec;

use super::features::Features;
use super::labels::{Labels, Stub};
use super::regs::{CONSTANT, Host, LEFT, ZERO, host};
use crate::isa::{Operand, Width, sign_extend32};
use crate::jit::count::Counts;
use crate::lower::{Lowered, Target};

/// Appends instructions to an emitter's code.
macro_rules! asm {
    ($emitter:expr $(; $($code:tt)*)?) => {{
        let ops = &mut $emitter.code;
        dynasmrt::dynasm!(ops ; .arch aarch64 $(; $($code)*)?)
    }};
}
pub(super) use asm;

/// The 64-bit or 32-bit form of a register instruction.
macro_rules! by_width {
    ($emitter:expr, $width:expr, $name:ident, $a:expr, $b:expr $(, $c:expr $(, $d:expr)?)?) => {
        match $width {
            Width::W64 => asm!($emitter ; $name X($a), X($b) $(, X($c) $(, X($d))?)?),
            Width::W32 => asm!($emitter ; $name W($a), W($b) $(, W($c) $(, W($d))?)?),
        }
    };
}
pub(super) use by_width;

/// The reach of a conditional branch, in bytes.
const REACH: usize = 1 << 20;
/// The most code of one operation, in bytes, including its stubs.
const MOST_OF_OP: usize = 256;
/// The most code of one stub, in bytes.
const MOST_OF_STUB: usize = 256;

/// The state of a program's code generation.
pub(super) struct Emitter<'a> {
    pub lowered: &'a Lowered,
    pub counts: &'a Counts,
    pub code: VecAssembler<Aarch64Relocation>,
    /// The host's extensions.
    pub features: Features,
    pub labels: Labels,
    /// For each operation so far the offset of its code.
    pub offsets: Vec<usize>,
    /// The code that all steps of the interpreter share.
    pub step: DynamicLabel,
    /// The code that returns to Rust.
    pub return_to_rust: DynamicLabel,
    /// The start of the main program in another program's frame.
    pub in_place: DynamicLabel,
    /// Whether the current function is the main program, and whether its frame escapes.
    pub is_main: bool,
    pub frame_escapes: bool,
    /// Whether it uses the value of r10.
    pub has_number: bool,
    /// Host registers that it saves for its caller.
    pub kept: SmallVec<[Host; 5]>,
    /// The offset of the oldest branch to a stub.
    oldest: Option<usize>,
    /// A label in reach that leads to the stop code.
    near_stop: Option<DynamicLabel>,
}

impl<'a> Emitter<'a> {
    pub(super) fn new(lowered: &'a Lowered, counts: &'a Counts, features: Features) -> Self {
        let mut code = VecAssembler::new(0);
        let labels = Labels::new(&mut code, lowered);
        Self {
            lowered,
            counts,
            features,
            return_to_rust: code.new_dynamic_label(),
            in_place: code.new_dynamic_label(),
            is_main: false,
            frame_escapes: false,
            has_number: false,
            kept: SmallVec::new(),
            labels,
            offsets: Vec::with_capacity(lowered.ops().len()),
            step: code.new_dynamic_label(),
            oldest: None,
            near_stop: None,
            code,
        }
    }

    /// The offset of the next code.
    pub(super) fn offset(&self) -> usize {
        self.code.offset().0
    }

    /// The label of a new stub. A conditional branch reaches it from here.
    pub(super) fn stub(&mut self, stub: Stub) -> DynamicLabel {
        self.oldest.get_or_insert(self.code.offset().0);
        let label = self.code.new_dynamic_label();
        self.labels.add_stub(label, stub)
    }

    /// A label in reach that leads to the stop code.
    pub(super) fn stop(&mut self) -> DynamicLabel {
        match self.near_stop {
            Some(label) => label,
            None => {
                let label = self.stub(Stub::Stop);
                *self.near_stop.insert(label)
            }
        }
    }

    /// Writes the waiting stubs if branches would otherwise go out of reach.
    pub(super) fn island(&mut self) {
        let since = self.oldest.map_or(0, |oldest| self.offset() - oldest);
        if since + self.labels.waiting() * MOST_OF_STUB > REACH / 2 {
            let over = self.code.new_dynamic_label();
            asm!(self ; b =>over);
            self.stubs();
            asm!(self ; =>over);
        }
    }

    /// Writes the waiting stubs.
    pub(super) fn stubs(&mut self) {
        // Stubs may add more stubs.
        while let Some((label, stub)) = self.labels.next_stub() {
            asm!(self ; =>label);
            self.emit_stub(stub);
        }
        (self.oldest, self.near_stop) = (None, None);
    }

    /// Whether a conditional branch reaches from one operation to another.
    pub(super) fn reaches(&self, from: Target, to: Target) -> bool {
        match self.offsets.get(to as usize) {
            // Written already.
            Some(offset) => self.offset() + MOST_OF_OP - offset < REACH,
            // Waiting stubs may be written in between.
            None => (to.abs_diff(from) as usize + 1) * MOST_OF_OP < REACH / 2,
        }
    }

    /// `dst = value`.
    pub(super) fn constant(&mut self, dst: Host, value: u64) {
        let Ok(small) = u32::try_from(value) else {
            return self.wide_constant(dst, value);
        };
        let parts = [small & 0xffff, small >> 16];
        match parts {
            [low, 0] => asm!(self ; movz W(dst), low),
            [0, high] => asm!(self ; movz W(dst), high, lsl 16),
            [low, 0xffff] => asm!(self ; movn W(dst), low ^ 0xffff),
            [0xffff, high] => asm!(self ; movn W(dst), high ^ 0xffff, lsl 16),
            _ if encode_logical_immediate_32bit(small).is_some() => {
                asm!(self ; orr WSP(dst), wzr, small);
            }
            [low, high] => asm!(self ; movz W(dst), low ; movk W(dst), high, lsl 16),
        }
    }

    /// The same for a value of more than 32 bits.
    fn wide_constant(&mut self, dst: Host, value: u64) {
        let parts = [0u32, 16, 32, 48].map(|shift| ((value >> shift & 0xffff) as u32, shift));
        let count = |part: u32| parts.iter().filter(|(p, _)| *p == part).count();
        let (zeros, ones) = (count(0), count(0xffff));
        if zeros.max(ones) < 3 && encode_logical_immediate_64bit(value).is_some() {
            return asm!(self ; orr XSP(dst), xzr, value);
        }
        // The first instruction sets all other parts to zeros or ones.
        let filler = if ones > zeros { 0xffff } else { 0 };
        let mut is_first = true;
        for (part, shift) in parts.into_iter().filter(|(part, _)| *part != filler) {
            match (is_first, filler) {
                (false, _) => asm!(self ; movk X(dst), part, lsl shift),
                (true, 0) => asm!(self ; movz X(dst), part, lsl shift),
                (true, _) => asm!(self ; movn X(dst), part ^ 0xffff, lsl shift),
            }
            is_first = false;
        }
        if is_first {
            asm!(self ; movn X(dst), 0);
        }
    }

    /// The host register with an operand's value; an immediate is loaded into `spare`.
    pub(super) fn operand(&mut self, operand: Operand, width: Width, spare: Host) -> Host {
        match operand {
            Operand::Reg(reg) => host(reg),
            Operand::Imm(0) => ZERO,
            Operand::Imm(imm) => {
                self.immediate(width, spare, imm);
                spare
            }
        }
    }

    /// `dst = imm`, extended for an operand of this width.
    pub(super) fn immediate(&mut self, width: Width, dst: Host, imm: i32) {
        match width {
            Width::W64 => self.constant(dst, sign_extend32(imm)),
            Width::W32 => self.constant(dst, imm.cast_unsigned().into()),
        }
    }

    /// `dst = src + value`, of 64 bits.
    pub(super) fn add(&mut self, dst: Host, src: Host, value: i64) {
        let size = value.unsigned_abs();
        let Some((low, high)) = halves(size) else {
            self.constant(CONSTANT, value.cast_unsigned());
            return asm!(self ; add X(dst), X(src), X(CONSTANT));
        };
        match (value < 0, low, high) {
            (_, 0, 0) => self.copy(dst, src),
            (false, low, 0) => asm!(self ; add XSP(dst), XSP(src), low),
            (true, low, 0) => asm!(self ; sub XSP(dst), XSP(src), low),
            (false, 0, high) => asm!(self ; add XSP(dst), XSP(src), high, lsl 12),
            (true, 0, high) => asm!(self ; sub XSP(dst), XSP(src), high, lsl 12),
            (false, low, high) => asm!(self
                ; add XSP(dst), XSP(src), high, lsl 12
                ; add XSP(dst), XSP(dst), low
            ),
            (true, low, high) => asm!(self
                ; sub XSP(dst), XSP(src), high, lsl 12
                ; sub XSP(dst), XSP(dst), low
            ),
        }
    }

    /// `dst = src`, of 64 bits.
    pub(super) fn copy(&mut self, dst: Host, src: Host) {
        if dst != src {
            asm!(self ; mov X(dst), X(src));
        }
    }

    /// Subtracts `n` from the number of instructions left.
    pub(super) fn take(&mut self, n: i32) {
        self.add(LEFT, LEFT, -i64::from(n));
    }

    /// The same, and sets the flags: negative if few are left.
    pub(super) fn take_and_test(&mut self, n: i32) {
        match (n, n.unsigned_abs()) {
            (1.., size @ 1..0x1000) => asm!(self ; subs X(LEFT), XSP(LEFT), size),
            (_, size @ 1..0x1000) => asm!(self ; adds X(LEFT), XSP(LEFT), size),
            _ => {
                self.take(n);
                asm!(self ; tst X(LEFT), X(LEFT));
            }
        }
    }

    /// Calls a host function. BPF registers r0 to r5 are clobbered.
    pub(super) fn call_host(&mut self, address: usize) {
        self.constant(CONSTANT, address as u64);
        asm!(self ; blr X(CONSTANT));
    }
}

/// Splits a number into the constants of up to two additions: its low 12 bits and the 12
/// above them; none if it has more.
pub(super) fn halves(number: u64) -> Option<(u32, u32)> {
    let number = u32::try_from(number).ok().filter(|n| *n < 1 << 24)?;
    Some((number & 0xfff, number >> 12))
}
