//! The emitter: the code so far, labels, and stubs.

use dynasmrt::{DynamicLabel, DynasmApi, DynasmLabelApi};
use smallvec::SmallVec;

use super::assembler::Assembler;
use super::division::{Division, Special};
use super::features::Features;
use super::operand::{At, Digit, Opcode};
use super::pins::{Pin, Pins};
use super::regs::{FIRST, Host, LEFT, RUN, host};
use super::round::Round;
use crate::engine::in_head;
use crate::isa::{Reg, Size, Width};
use crate::jit::count::Counts;
use crate::jit::emitted::EntryPoints;
use crate::jit::layout;
use crate::jit::loops::Loops;
use crate::lower::{Lowered, Target};

/// Appends instructions to an emitter's code.
macro_rules! asm {
    ($emitter:expr $(; $($code:tt)*)?) => {{
        let ops = &mut $emitter.code;
        dynasmrt::dynasm!(ops ; .arch x64 $(; $($code)*)?)
    }};
}
pub(super) use asm;

/// The state of a program's code generation.
pub(super) struct Emitter<'a> {
    pub lowered: &'a Lowered,
    pub counts: &'a Counts,
    pub code: Assembler,
    /// The host's extensions.
    pub features: Features,
    /// For each operation, if something refers to its code, 1 + the index of the label in
    /// `op_labels`; else 0.
    labels: Vec<u32>,
    op_labels: Vec<DynamicLabel>,
    /// For each function the label of its entry.
    pub functions: Vec<DynamicLabel>,
    /// Rarely executed code, written at the end of the function.
    pub stubs: Vec<(DynamicLabel, Stub)>,
    /// The ends of the current function.
    pub ends: Ends,
    /// What the current function's spare registers hold.
    pub pins: Pins,
    /// What the first spare register within one operation holds, if known.
    pub held: Option<Pin>,
    /// The current round of an unrolled loop.
    pub round: Option<Round>,
    pub loops: Loops,
    /// The registers that the current function changes and has to save.
    pub changed: SmallVec<[Host; 4]>,
    /// Whether it makes calls outside of stubs.
    pub calls: bool,
    /// Whether it makes tail calls.
    pub tail_calls: bool,
    /// Whether its frame has a number of loops left.
    pub counts_loops: bool,
    /// Whether it is the main program.
    pub is_main: bool,
    /// Whether the main program uses the register of the frame.
    pub has_frame: bool,
    /// Whether there are functions besides the main program, which may stop the run.
    pub has_functions: bool,
    /// Whether its frame escapes.
    pub frame_escapes: bool,
    /// Whether the host's stack is 8 bytes off the alignment for calls.
    pub is_odd: bool,
    /// Whether 8 bytes of padding were pushed for the alignment.
    pub is_padded: bool,
    /// The entry points of the program.
    pub entry_points: EntryPoints<DynamicLabel>,
    /// The start of the main program in another program's frame.
    pub in_place: DynamicLabel,
    /// Where functions that stop the run return to in the main program.
    pub unwound: DynamicLabel,
}

/// The labels of the ends of a function.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ends {
    /// r0 and the number of instructions left are in their registers; the frame is still
    /// there.
    pub leave: DynamicLabel,
    /// The function was left: r0 is in its register, the count in the run.
    pub back: DynamicLabel,
    /// The run stops.
    pub stop: DynamicLabel,
}

/// Code deferred to the end of a function.
#[derive(Debug, Clone, Copy)]
pub(super) enum Stub {
    /// Bails out: the interpreter continues at an operation.
    Bail(Target),
    /// A forward jump that changes the count.
    Edge {
        /// What it subtracts from the number of instructions left.
        taken: i32,
        /// Its target.
        label: DynamicLabel,
    },
    /// The interpreter's step executes the operation, and the code continues after it.
    Step(Target),
    /// The result of a division by a special number, without a host division.
    Division {
        division: Division,
        by: Special,
        /// Where the code continues.
        back: DynamicLabel,
    },
    /// `r0` = 0: a look-up found nothing.
    Nothing {
        /// Where the code continues.
        back: DynamicLabel,
    },
}

/// The offset of a field of a frame's head.
fn at(offset: usize) -> i32 {
    i32::try_from(offset).unwrap_or_default()
}

impl<'a> Emitter<'a> {
    pub(super) fn new(
        lowered: &'a Lowered,
        counts: &'a Counts,
        features: Features,
        is_listed: bool,
    ) -> Self {
        let mut code = Assembler::new(lowered.ops().len(), is_listed);
        let functions = lowered.functions().iter();
        let functions: Vec<_> = functions.map(|_| code.new_dynamic_label()).collect();
        let tail = code.new_dynamic_label();
        let entry_points = EntryPoints {
            function: code.new_dynamic_label(),
            main: code.new_dynamic_label(),
            tail,
            in_place: tail,
        };
        let in_place = code.new_dynamic_label();
        let unwound = code.new_dynamic_label();
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
            labels: vec![0; lowered.ops().len()],
            op_labels: Vec::new(),
            functions,
            stubs: Vec::new(),
            ends,
            pins: Pins::default(),
            held: None,
            round: None,
            loops: Loops::of(lowered.ops(), lowered.logarithms().iter().map(|it| it.end)),
            changed: SmallVec::new(),
            calls: false,
            tail_calls: false,
            counts_loops: false,
            is_main: false,
            has_frame: true,
            has_functions: false,
            frame_escapes: false,
            is_odd: false,
            is_padded: false,
            entry_points,
            in_place,
            unwound,
        }
    }

    /// The label of an operation: the target of a jump, or of a stub. (All targets are
    /// operations; for others the first function's code is a harmless target.)
    pub(super) fn label(&mut self, op: Target) -> DynamicLabel {
        let round = self.round.as_ref();
        if let Some(label) = round.and_then(|round| round.label(op)) {
            return label;
        }
        let Some(number) = self.labels.get_mut(op as usize) else {
            return self.ends.stop;
        };
        if *number == 0 {
            self.op_labels.push(self.code.new_dynamic_label());
            *number = u32::try_from(self.op_labels.len()).unwrap_or(0);
        }
        let label = self.op_labels.get(*number as usize - 1);
        label.copied().unwrap_or(self.ends.stop)
    }

    /// The code of an operation begins here.
    #[inline(always)]
    pub(super) fn begin(&mut self, op: Target) {
        let round = self.round.as_ref();
        let is_repeated = round.is_some_and(|round| round.label(op).is_some());
        if !is_repeated {
            self.code.note_here();
        }
        // Only a jump, or a stub of the operation before, refers to an operation.
        let is_known = self.loops.is_target(op) || self.labels.get(op as usize) != Some(&0);
        if is_repeated || is_known {
            self.place(op);
        }
    }

    /// The label of an operation is here.
    fn place(&mut self, op: Target) {
        let label = self.label(op);
        asm!(self ; =>label);
    }

    /// What the edge from `from` to `to` subtracts from the number of instructions left.
    #[inline]
    pub(super) fn edge(&self, from: Target, to: Target) -> i32 {
        let ahead = self.round.as_ref().map_or(0, |round| round.ahead(to));
        self.counts.edge(from, to) + ahead
    }

    /// Whether the edge from `from` to `to` leads to the next round, whose code follows.
    pub(super) fn goes_round(&self, from: Target, to: Target) -> bool {
        let round = self.round.as_ref();
        round.is_some_and(|round| round.has_next(from, to))
    }

    /// The label of a new stub.
    pub(super) fn stub(&mut self, stub: Stub) -> DynamicLabel {
        if let Stub::Step(at) = stub {
            self.label(at + 1);
        }
        let label = self.code.new_dynamic_label();
        self.stubs.push((label, stub));
        label
    }

    /// The run's offset of a BPF register.
    pub(super) fn saved(reg: Reg) -> i32 {
        layout::saved(reg)
    }

    /// The run's offset of the number of instructions left.
    pub(super) fn left() -> i32 {
        layout::LEFT
    }

    /// The run's offset of the host address of the frame's end.
    pub(super) fn frame_end() -> i32 {
        layout::FRAME_END
    }

    /// The run's offset of the stack pointer to restore when the run stops.
    pub(super) fn unwind() -> i32 {
        layout::UNWIND
    }

    /// The head's offset of the value of r10.
    pub(super) fn number() -> i32 {
        at(in_head!(number))
    }

    /// The head's offset of the number of clean bytes.
    pub(super) fn clean() -> i32 {
        at(in_head!(clean))
    }

    /// The head's offset of the number of loops left.
    pub(super) fn loops_left() -> i32 {
        at(in_head!(loops_left))
    }

    /// The run's offset of the host address of the context.
    pub(super) fn context() -> i32 {
        layout::CONTEXT
    }

    /// The run's offset of the host address of the table of deltas.
    pub(super) fn deltas() -> i32 {
        layout::DELTAS
    }

    /// The run's offset of a helper's constant result.
    pub(super) fn known(which: u8) -> i32 {
        layout::known(which)
    }

    /// The run's offset of one of the context's pointers.
    pub(super) fn pointer(number: usize) -> i32 {
        layout::pointer(number)
    }

    /// The run's offset of the packet's delta.
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

    /// Subtracts `n` from the number of instructions left.
    #[inline]
    pub(super) fn take(&mut self, n: i32) {
        match n {
            0 => {}
            n => self.with_immediate(Digit::SUB, Width::W64, LEFT, n),
        }
    }

    /// Calls a host function. BPF registers r0 to r5 are clobbered.
    pub(super) fn call_host(&mut self, address: usize) {
        self.constant(FIRST, address as u64);
        if self.is_odd {
            asm!(self ; push rax ; call Rq(FIRST) ; pop rcx);
        } else {
            asm!(self ; call Rq(FIRST));
        }
    }
}
