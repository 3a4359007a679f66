//! The code so far, constants, and how far branches reach.
//!
//! Code that is rarely executed is put off. Conditional branches lead to it, so it is
//! written at the end of the function, or in the middle of it, jumped over, before the
//! oldest branch to it is too far away ([`Emitter::island`]).

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

/// Instructions into an emitter's code.
macro_rules! asm {
    ($emitter:expr $(; $($code:tt)*)?) => {{
        let ops = &mut $emitter.code;
        dynasmrt::dynasm!(ops ; .arch aarch64 $(; $($code)*)?)
    }};
}
pub(super) use asm;

/// The two forms of an instruction of registers, by width.
macro_rules! by_width {
    ($emitter:expr, $width:expr, $name:ident, $a:expr, $b:expr $(, $c:expr $(, $d:expr)?)?) => {
        match $width {
            Width::W64 => asm!($emitter ; $name X($a), X($b) $(, X($c) $(, X($d))?)?),
            Width::W32 => asm!($emitter ; $name W($a), W($b) $(, W($c) $(, W($d))?)?),
        }
    };
}
pub(super) use by_width;

/// How far a conditional branch reaches, in bytes.
const REACH: usize = 1 << 20;
/// The most code that stands for one operation, in bytes, with what of it is put off.
const MOST_OF_OP: usize = 256;
/// The most code that is put off at once, in bytes.
const MOST_OF_STUB: usize = 256;

/// A program's code in the making.
pub(super) struct Emitter<'a> {
    pub lowered: &'a Lowered,
    pub counts: &'a Counts,
    pub code: VecAssembler<Aarch64Relocation>,
    /// What the host can do.
    pub features: Features,
    pub labels: Labels,
    /// For each operation so far where its code begins.
    pub offsets: Vec<usize>,
    /// The code that all steps of the interpreter share.
    pub step: DynamicLabel,
    /// Where code comes back to that was entered from Rust.
    pub way_back: DynamicLabel,
    /// Where the main program begins in a frame that was another one's.
    pub in_place: DynamicLabel,
    /// Whether the function under way is the main program, and whether it lends its frame.
    pub is_main: bool,
    pub lends: bool,
    /// Whether it asks for what r10 holds.
    pub has_number: bool,
    /// Host registers that it keeps for its caller.
    pub kept: SmallVec<[Host; 5]>,
    /// Where the oldest branch is to what is put off.
    oldest: Option<usize>,
    /// Leads to where the run stops.
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
            way_back: code.new_dynamic_label(),
            in_place: code.new_dynamic_label(),
            is_main: false,
            lends: false,
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

    /// Where the code is that comes next.
    pub(super) fn offset(&self) -> usize {
        self.code.offset().0
    }

    /// The label of code that is put off. A conditional branch reaches it from here.
    pub(super) fn stub(&mut self, stub: Stub) -> DynamicLabel {
        self.oldest.get_or_insert(self.code.offset().0);
        let label = self.code.new_dynamic_label();
        self.labels.put_off(label, stub)
    }

    /// The label of code, within reach, that leads to where the run stops.
    pub(super) fn stop(&mut self) -> DynamicLabel {
        match self.near_stop {
            Some(label) => label,
            None => {
                let label = self.stub(Stub::Stop);
                *self.near_stop.insert(label)
            }
        }
    }

    /// Writes what was put off if it is time to.
    pub(super) fn island(&mut self) {
        let since = self.oldest.map_or(0, |oldest| self.offset() - oldest);
        if since + self.labels.waiting() * MOST_OF_STUB > REACH / 2 {
            let over = self.code.new_dynamic_label();
            asm!(self ; b =>over);
            self.stubs();
            asm!(self ; =>over);
        }
    }

    /// Writes what was put off.
    pub(super) fn stubs(&mut self) {
        // Code that is put off may put off more.
        while let Some((label, stub)) = self.labels.next_stub() {
            asm!(self ; =>label);
            self.put_off(stub);
        }
        (self.oldest, self.near_stop) = (None, None);
    }

    /// Whether a conditional branch reaches from one operation to another.
    pub(super) fn reaches(&self, from: Target, to: Target) -> bool {
        match self.offsets.get(to as usize) {
            // Written already.
            Some(offset) => self.offset() + MOST_OF_OP - offset < REACH,
            // What waits may come in between.
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

    /// The same of a value that has more than 32 bits.
    fn wide_constant(&mut self, dst: Host, value: u64) {
        let parts = [0u32, 16, 32, 48].map(|shift| ((value >> shift & 0xffff) as u32, shift));
        let count = |part: u32| parts.iter().filter(|(p, _)| *p == part).count();
        let (zeros, ones) = (count(0), count(0xffff));
        if zeros.max(ones) < 3 && encode_logical_immediate_64bit(value).is_some() {
            return asm!(self ; orr XSP(dst), xzr, value);
        }
        // The first instruction fills all other parts, with zeros or ones.
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

    /// `dst = imm`, as an operand of this width.
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

    /// Takes `n` from the number of instructions left.
    pub(super) fn take(&mut self, n: i32) {
        self.add(LEFT, LEFT, -i64::from(n));
    }

    /// The same; the flags say whether few are left.
    pub(super) fn take_and_look(&mut self, n: i32) {
        match (n, n.unsigned_abs()) {
            (1.., size @ 1..0x1000) => asm!(self ; subs X(LEFT), XSP(LEFT), size),
            (_, size @ 1..0x1000) => asm!(self ; adds X(LEFT), XSP(LEFT), size),
            _ => {
                self.take(n);
                asm!(self ; tst X(LEFT), X(LEFT));
            }
        }
    }

    /// Calls a function of the host. BPF registers r0 to r5 are lost.
    pub(super) fn call_host(&mut self, address: usize) {
        self.constant(CONSTANT, address as u64);
        asm!(self ; blr X(CONSTANT));
    }
}

/// A number as the constants of up to two additions: its low 12 bits and the 12 above
/// them; none if it has more.
pub(super) fn halves(number: u64) -> Option<(u32, u32)> {
    let number = u32::try_from(number).ok().filter(|n| *n < 1 << 24)?;
    Some((number & 0xfff, number >> 12))
}
