//! The code so far, labels, and what is put off to its end.

use dynasmrt::{DynamicLabel, DynasmApi};
use smallvec::SmallVec;

use super::assembler::Assembler;
use super::division::{Division, Special};
use super::features::Features;
use super::operand::{At, Digit, Opcode};
use super::pins::{Pin, Pins};
use super::regs::{FIRST, Host, LEFT, RUN, host};
use super::round::Round;
use crate::interp::in_head;
use crate::isa::{Reg, Size, Width};
use crate::jit::count::Counts;
use crate::jit::emitted::Ways;
use crate::jit::layout;
use crate::jit::loops::Loops;
use crate::lower::{Lowered, Target};

/// Instructions into an emitter's code.
macro_rules! asm {
    ($emitter:expr $(; $($code:tt)*)?) => {{
        let ops = &mut $emitter.code;
        dynasmrt::dynasm!(ops ; .arch x64 $(; $($code)*)?)
    }};
}
pub(super) use asm;

/// A program's code in the making.
pub(super) struct Emitter<'a> {
    pub lowered: &'a Lowered,
    pub counts: &'a Counts,
    pub code: Assembler,
    /// What the host can do.
    pub features: Features,
    /// For each operation the label of its code.
    pub labels: Vec<DynamicLabel>,
    /// For each function the label of its entry.
    pub functions: Vec<DynamicLabel>,
    /// What is rarely executed.
    pub stubs: Vec<(DynamicLabel, Stub)>,
    /// How the function under way ends.
    pub ends: Ends,
    /// What its spare registers hold.
    pub pins: Pins,
    /// What the first spare register for the code of one operation holds, if it is known.
    pub held: Option<Pin>,
    /// The round of a loop under way.
    pub round: Option<Round>,
    pub loops: Loops,
    /// Which registers it changes that it has to keep.
    pub changed: SmallVec<[Host; 4]>,
    /// Whether it calls anything that is not put off.
    pub calls: bool,
    /// Whether it is the main program.
    pub is_main: bool,
    /// Whether it lends its frame.
    pub lends: bool,
    /// Whether the host's stack is 8 bytes off where calls want it.
    pub is_odd: bool,
    /// Whether 8 bytes were pushed so that it is not.
    pub is_padded: bool,
    /// The ways into the program.
    pub ways: Ways<DynamicLabel>,
    /// Where the main program begins, and where it does so in a frame that was another
    /// one's.
    pub main: DynamicLabel,
    pub in_place: DynamicLabel,
}

/// Where a function's code goes on at its ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ends {
    /// r0 and the number of instructions left are in their registers; the frame is
    /// still there.
    pub leave: DynamicLabel,
    /// The function was left: r0 is in its register, the number in the run.
    pub back: DynamicLabel,
    /// The run stops.
    pub stop: DynamicLabel,
}

/// Code that is put off to the end of a function.
#[derive(Debug, Clone, Copy)]
pub(super) enum Stub {
    /// The interpreter goes on at an operation.
    Bail(Target),
    /// A jump forward that changes the count.
    Edge {
        /// What it takes from the number of instructions left.
        taken: i32,
        /// Where it leads.
        label: DynamicLabel,
    },
    /// The interpreter's step does the operation, and the code goes on after it.
    Step(Target),
    /// What comes of a division by a number that it does not need the host for.
    Division {
        division: Division,
        by: Special,
        /// Where the code goes on.
        back: DynamicLabel,
    },
    /// `r0` = 0: a look-up found nothing.
    Nothing {
        /// Where the code goes on.
        back: DynamicLabel,
    },
}

/// Where a field of a frame's head is.
fn at(offset: usize) -> i32 {
    i32::try_from(offset).unwrap_or_default()
}

impl<'a> Emitter<'a> {
    pub(super) fn new(lowered: &'a Lowered, counts: &'a Counts, features: Features) -> Self {
        let mut code = Assembler::new(lowered.ops().len());
        let labels = lowered.ops().iter().map(|_| code.new_dynamic_label());
        let labels = labels.collect();
        let functions = lowered.functions().iter();
        let functions: Vec<_> = functions.map(|_| code.new_dynamic_label()).collect();
        let ways = Ways {
            function: code.new_dynamic_label(),
            main: code.new_dynamic_label(),
            tail: code.new_dynamic_label(),
        };
        let in_place = code.new_dynamic_label();
        let main = functions.first().copied().unwrap_or(ways.main);
        let ends = Ends {
            leave: code.new_dynamic_label(),
            back: code.new_dynamic_label(),
            stop: code.new_dynamic_label(),
        };
        Self {
            lowered,
            counts,
            code,
            features,
            labels,
            functions,
            stubs: Vec::new(),
            ends,
            pins: Pins::default(),
            held: None,
            round: None,
            loops: Loops::of(lowered.ops()),
            changed: SmallVec::new(),
            calls: false,
            is_main: false,
            lends: false,
            is_odd: false,
            is_padded: false,
            ways,
            main,
            in_place,
        }
    }

    /// The label of an operation. (All targets are operations; the first function's
    /// code is a harmless place for what does not exist.)
    pub(super) fn label(&self, op: Target) -> DynamicLabel {
        let round = self.round.as_ref();
        round
            .and_then(|round| round.label(op))
            .or_else(|| self.labels.get(op as usize).copied())
            .unwrap_or(self.ends.stop)
    }

    /// What going on at `to` after `from` takes from the number of instructions left.
    pub(super) fn edge(&self, from: Target, to: Target) -> i32 {
        let ahead = self.round.as_ref().map_or(0, |round| round.ahead(to));
        self.counts.edge(from, to) + ahead
    }

    /// Whether going from `from` to `to` leads to the next round, whose code follows.
    pub(super) fn goes_round(&self, from: Target, to: Target) -> bool {
        let round = self.round.as_ref();
        round.is_some_and(|round| round.has_next(from, to))
    }

    /// The label of code that is put off.
    pub(super) fn stub(&mut self, stub: Stub) -> DynamicLabel {
        let label = self.code.new_dynamic_label();
        self.stubs.push((label, stub));
        label
    }

    /// Where the run keeps a BPF register.
    pub(super) fn saved(reg: Reg) -> i32 {
        layout::saved(reg)
    }

    /// Where the run keeps the number of instructions left.
    pub(super) fn left() -> i32 {
        layout::LEFT
    }

    /// Where the run keeps the host address of the frame's end.
    pub(super) fn frame_end() -> i32 {
        layout::FRAME_END
    }

    /// Where the run keeps what the stack pointer is for who stops.
    pub(super) fn unwind() -> i32 {
        layout::UNWIND
    }

    /// Where the head of a frame has what r10 holds.
    pub(super) fn number() -> i32 {
        at(in_head!(number))
    }

    /// Where the head of a frame has how many of its bytes are its own.
    pub(super) fn clean() -> i32 {
        at(in_head!(clean))
    }

    /// Where the head of a frame has how many loops are left.
    pub(super) fn loops_left() -> i32 {
        at(in_head!(loops_left))
    }

    /// Where the run keeps the host address of the context.
    pub(super) fn context() -> i32 {
        layout::CONTEXT
    }

    /// Where the run keeps the host address of the table of deltas.
    pub(super) fn deltas() -> i32 {
        layout::DELTAS
    }

    /// Where the run keeps what a helper returns that stays the same.
    pub(super) fn known(which: u8) -> i32 {
        layout::known(which)
    }

    /// Where the run keeps one of the context's pointers.
    pub(super) fn pointer(number: usize) -> i32 {
        layout::pointer(number)
    }

    /// Where the run keeps what is added to an address in the packet.
    pub(super) fn packet() -> i32 {
        layout::PACKET
    }

    /// The host register with a BPF register's value; r10's is loaded into `spare`.
    pub(super) fn source(&mut self, reg: Reg, spare: Host) -> Host {
        host(reg).unwrap_or_else(|| {
            self.load_number(spare);
            spare
        })
    }

    /// `dst` = 64 bits of the run.
    pub(super) fn load_field(&mut self, dst: Host, off: i32) {
        self.with_memory(Opcode::load(Size::Dw), dst, At::new(RUN, off));
    }

    /// `dst = value`.
    pub(super) fn constant(&mut self, dst: Host, value: u64) {
        if value == 0 {
            asm!(self ; xor Rd(dst), Rd(dst));
        } else if let Ok(small) = u32::try_from(value) {
            asm!(self ; mov Rd(dst), small.cast_signed());
        } else if let Ok(small) = i32::try_from(value.cast_signed()) {
            asm!(self ; mov Rq(dst), DWORD small);
        } else {
            asm!(self ; mov Rq(dst), QWORD value.cast_signed());
        }
    }

    /// Takes `n` from the number of instructions left.
    pub(super) fn take(&mut self, n: i32) {
        match n {
            0 => {}
            n => self.with_immediate(Digit::SUB, Width::W64, LEFT, n),
        }
    }

    /// Calls a function of the host. BPF registers r0 to r5 are lost.
    pub(super) fn call_host(&mut self, address: usize) {
        self.constant(FIRST, address as u64);
        if self.is_odd {
            asm!(self ; push rax ; call Rq(FIRST) ; pop rcx);
        } else {
            asm!(self ; call Rq(FIRST));
        }
    }
}
