//! Finds uninitialised bytes that leave a program.
//!
//! A [`Tracker`] watches a run of the checked interpreter. It knows which bits of registers, of
//! stack frames and of reserved ring-buffer records are undefined, follows them through
//! arithmetic, loads, stores and calls, and notes where they reach a map, a record, a packet or
//! user memory. All other memory is defined: maps and contexts begin with zeros or values.
//!
//! Only runs for which [`Machine::finds_uninit`](crate::vm::Machine::finds_uninit) is set have a
//! tracker. For the others the cost is one test for each run.
//!
//! | file | purpose |
//! |---|---|
//! | `bits` | undefined bits of results of arithmetic |
//! | `shadow` | undefined bits of memory |
//! | `calls`, `pending`, `printed` | what calls send and define |
//! | `found`, `names` | what was found, and its names in C |

mod bits;
mod calls;
mod found;
mod names;
mod pending;
mod printed;
mod shadow;

use bits::{Known, alu, neg};
use found::{Draft, Found, value_at};
use shadow::{Frame, Record, Shadow};

use super::image::Image;
use super::watch::{Step, Watch};
use crate::isa::{AtomicOp, CallTarget, Insn, Operand, Reg, Width, movsx, sign_extend32};
use crate::spec::helpers::id;
use crate::util::Pc;
use crate::vm::memory::{Address, Body};
use crate::vm::{Fault, Leak, LeakTarget, Machine, SourceLine};

/// Follows the undefined bits of one run.
pub(super) struct Tracker<'w> {
    /// The undefined bits of registers.
    regs: [u64; Reg::COUNT],
    shadow: Shadow,
    found: Found,
    /// Whether the instruction before was a call.
    after_call: bool,
    /// Another observer of the run.
    beside: Option<&'w mut (dyn Watch + 'w)>,
}

impl Watch for Tracker<'_> {
    fn before(&mut self, step: &Step<'_>) {
        self.step(step);
        if let Some(beside) = &mut self.beside {
            beside.before(step);
        }
    }

    fn interrupt(
        &mut self,
        machine: &mut Machine,
        image: &Image,
        pc: Pc,
    ) -> Result<(), Box<Fault>> {
        match &mut self.beside {
            Some(beside) => beside.interrupt(machine, image, pc),
            None => Ok(()),
        }
    }
}

impl<'w> Tracker<'w> {
    /// A tracker for a run, which another observer may watch, too.
    pub fn new(beside: Option<&'w mut (dyn Watch + 'w)>) -> Self {
        Self {
            regs: [0; Reg::COUNT],
            shadow: Shadow::default(),
            found: Found::default(),
            after_call: false,
            beside,
        }
    }
}

impl Tracker<'_> {
    /// What was found.
    pub fn finish(self) -> Vec<Leak> {
        self.found.finish()
    }

    /// Follows the effects of an instruction that is about to be executed.
    fn step(&mut self, step: &Step<'_>) {
        self.follow_frames(step);
        let pending = self.shadow.frames.last_mut();
        if let Some(pending) = pending.and_then(|frame| frame.pending.take()) {
            self.returned(step, *pending);
        }
        let Some(insn) = step.image.insn_at(step.pc) else {
            return;
        };
        self.after_call = matches!(insn, Insn::Call(_) | Insn::CallReg { .. });
        match insn {
            Insn::Call(target) => self.calls(step, target),
            Insn::Exit => self.leave(),
            insn => self.operate(step, insn),
        }
    }

    /// Adds the frame of a function that begins, and removes those of functions that ended.
    fn follow_frames(&mut self, step: &Step<'_>) {
        let depth = step.frames.len();
        while self.shadow.frames.len() > depth {
            self.leave();
        }
        let Some(top) = step.frames.last() else {
            return;
        };
        let begins = self.shadow.frames.len() < depth;
        // The target of a tail call takes the frame over; what it finds there is garbage to it.
        let replaces = self.after_call && step.pc == top.start && !begins;
        let [.., r6, r7, r8, r9, _] = self.regs;
        if begins {
            let frame = Frame::new(top.stack.register(), [r6, r7, r8, r9]);
            self.shadow.frames.push(frame);
        } else if replaces && let Some(frame) = self.shadow.frames.last_mut() {
            *frame = Frame::new(top.stack.register(), frame.saved);
            self.regs = [0; Reg::COUNT];
        }
    }

    /// A function ends.
    fn leave(&mut self) {
        if let Some(frame) = self.shadow.frames.pop() {
            let [.., r6, r7, r8, r9, _] = &mut self.regs;
            [*r6, *r7, *r8, *r9] = frame.saved;
        }
    }

    fn calls(&mut self, step: &Step<'_>, target: CallTarget) {
        match target {
            CallTarget::Subprogram { .. } | CallTarget::Helper(id::tail_call) => {}
            target => self.call(step, target),
        }
    }

    /// An instruction that neither calls nor returns.
    fn operate(&mut self, step: &Step<'_>, insn: Insn) {
        match insn {
            Insn::Alu {
                op,
                width,
                dst,
                src,
            } => {
                let same = src == Operand::Reg(dst);
                let cancels = matches!(op, crate::isa::AluOp::Xor | crate::isa::AluOp::Sub);
                let undefined = match same && cancels {
                    true => 0,
                    false => alu(
                        op,
                        width,
                        known(self, step, Operand::Reg(dst)),
                        known(self, step, src),
                    ),
                };
                self.set(dst, undefined);
            }
            Insn::MovSx {
                width,
                from,
                dst,
                src,
            } => self.set(dst, movsx(width, from, self.reg(src))),
            Insn::Neg { width, dst } => self.set(dst, neg(width, self.reg(dst))),
            Insn::Endian { op, size, dst } => self.set(dst, op.eval(size, self.reg(dst))),
            Insn::AddrSpaceCast { dst, src, .. } => self.set(dst, self.reg(src)),
            Insn::LoadImm64 { dst, .. } | Insn::LoadPseudo { dst, .. } => self.set(dst, 0),
            Insn::Load {
                size,
                dst,
                base,
                off,
            }
            | Insn::LoadAcquire {
                size,
                dst,
                base,
                off,
            } => {
                let at = address(step, base, off);
                self.set(dst, self.shadow.load(at, size.bytes().into()));
            }
            Insn::LoadSx {
                from,
                dst,
                base,
                off,
            } => {
                let at = address(step, base, off);
                let undefined = self.shadow.load(at, from.size().bytes().into());
                self.set(dst, from.extend(undefined));
            }
            Insn::Store {
                size,
                base,
                off,
                src,
            } => {
                let undefined = match src {
                    Operand::Reg(src) => self.reg(src),
                    Operand::Imm(_) => 0,
                };
                self.store(
                    step,
                    address(step, base, off),
                    size.bytes().into(),
                    undefined,
                );
            }
            Insn::StoreRelease {
                size,
                base,
                off,
                src,
            } => {
                let undefined = self.reg(src);
                self.store(
                    step,
                    address(step, base, off),
                    size.bytes().into(),
                    undefined,
                );
            }
            Insn::Atomic {
                op,
                width,
                base,
                off,
                src,
            } => self.atomic(step, op, width, address(step, base, off), src),
            Insn::LoadPacket { .. } => self.set(Reg::R0, 0),
            _ => {}
        }
    }

    fn atomic(&mut self, step: &Step<'_>, op: AtomicOp, width: Width, at: u64, src: Reg) {
        let len = usize::from(width.size().bytes());
        let old = self.shadow.load(at, len);
        let new = self.reg(src);
        let expected = if op.compares() { self.reg(Reg::R0) } else { 0 };
        self.store(step, at, len, old | new | expected);
        if op.compares() {
            self.set(Reg::R0, old);
        } else if op.fetches() {
            self.set(src, old);
        }
    }

    /// Stores a number with these undefined bits.
    fn store(&mut self, step: &Step<'_>, at: u64, len: usize, undefined: u64) {
        let undefined = undefined & u64::MAX >> (64 - 8 * len.clamp(1, 8));
        if self.shadow.store(at, len, undefined) || undefined == 0 {
            return;
        }
        let mask = undefined.to_le_bytes().into_iter().take(len).collect();
        let draft = match target(step, at) {
            Some(to @ LeakTarget::MapValue) => Draft::new(step, to, mask).in_map_at(step, at),
            Some(to) => Draft::new(step, to, mask),
            None => return,
        };
        self.found.add(draft);
    }

    /// The undefined bits of memory, if it has any.
    fn undefined(&self, address: u64, len: usize) -> Option<Vec<u8>> {
        let bytes = self.shadow.bytes(address, len)?;
        let has_any = bytes.iter().any(|bits| *bits != 0);
        has_any.then(|| bytes.to_vec())
    }

    /// A record was reserved.
    fn reserve(&mut self, step: &Step<'_>, base: u64, len: usize, map: u64) {
        // The call is the instruction before, of one slot.
        let call = Pc(step.pc.0.saturating_sub(1));
        self.shadow.records.push(Record {
            base,
            bytes: vec![0xff; len],
            map,
            reserved: SourceLine::at(step.program(), call),
        });
    }

    const fn reg(&self, reg: Reg) -> u64 {
        self.regs[reg.number() as usize]
    }

    const fn set(&mut self, reg: Reg, undefined: u64) {
        self.regs[reg.number() as usize] = undefined;
    }
}

/// The value of an operand, and its undefined bits.
fn known(tracker: &Tracker<'_>, step: &Step<'_>, operand: Operand) -> Known {
    match operand {
        Operand::Reg(reg) => Known {
            value: register(step, reg),
            undefined: tracker.reg(reg),
        },
        Operand::Imm(imm) => Known {
            value: sign_extend32(imm),
            undefined: 0,
        },
    }
}

fn register(step: &Step<'_>, reg: Reg) -> u64 {
    step.frames
        .last()
        .map_or(0, |frame| frame.regs[reg.index()])
}

fn address(step: &Step<'_>, base: Reg, off: i16) -> u64 {
    register(step, base).wrapping_add_signed(off.into())
}

/// Where a store to memory goes that is always defined; `None` if it stays in the kernel.
fn target(step: &Step<'_>, address: u64) -> Option<LeakTarget> {
    let at = Address::from_register(address)?;
    let region = step.machine.space.region(at)?;
    let is_packet = || {
        let packet = step.machine.current()?.placed.packet_base()?;
        (packet.region() == at.region()).then_some(LeakTarget::Packet)
    };
    match &region.body {
        Body::Elements(_) if value_at(step, address).is_some() => Some(LeakTarget::MapValue),
        Body::Bytes { .. } if region.context.is_some() => Some(LeakTarget::Context),
        Body::Bytes { .. } => is_packet(),
        _ => None,
    }
}
