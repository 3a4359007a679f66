//! Exploration: simulates every path of the program, one instruction at a time
//! (`do_check`).
//!
//! Where both ways of a branch are possible, the current state follows one and a copy for
//! the other is pushed on a stack. A path ends at the outermost exit, or where an explored
//! state subsumes the current one. Then the state that was pushed last is taken up.

pub(super) mod counts;
pub(super) mod position;
pub(super) mod worklist;

use self::worklist::Resume;
use super::branch::Comparison;
use super::call::helper::Exit;
use super::env::Verifier;
use super::history::{LinkedSet, NO_PC};
use super::liveness::CallChain;
use super::log::log;
use super::memory::insn::MemoryOperand;
use super::missing::Feature;
use super::reg::{Kind, MapRef, RegState};
use super::reject::{Reject, VerifyResult, reject};
use super::speculation::is_recoverable;
use super::state::{Frame, State};
use super::structure::{self, PriorCheck};
use crate::isa::{CallTarget, DecodeError, Insn, Pseudo, Reg};
use crate::spec::kfuncs::THROW;
use crate::spec::limits::MAX_INSNS;
use crate::spec::{MapType, ProgFlags};
use crate::util::{Errno, MapId, Pc};

/// Where a path continues after an instruction.
enum Next {
    /// At this instruction.
    At(Pc),
    /// In another frame.
    Frame(Pc),
    /// The path has ended.
    End,
}

impl Verifier<'_> {
    /// Explores a function from its start with its initial registers (`do_check_common`).
    pub(super) fn explore_subprogram(&mut self, number: u32) -> VerifyResult {
        let start = self.subprogram(number).start;
        self.state = State {
            first: start,
            pc: start,
            last: NO_PC,
            branches: 1,
            sleepable: self.program.flags.contains(ProgFlags::SLEEPABLE),
            ..State::new(Frame::new(None, number, 0))
        };
        self.position.go_to(start);
        self.log.touch_all();
        self.log_restart();
        self.set_arguments(number)?;
        self.liveness.reset_current();
        self.explore()?;
        self.arena.clear();
        if !self.log.is_full() {
            self.log.truncate(0);
        }
        Ok(())
    }

    fn explore(&mut self) -> VerifyResult {
        let mut prev = NO_PC;
        // Whether to log the whole state before the next instruction.
        let mut show_state = false;
        loop {
            self.position.begin(prev);
            let pc = self.pc();
            let processed = self.counts.count_insn();
            if let Some(survey) = &mut self.survey {
                survey.count(pc);
            }
            if processed > MAX_INSNS as u64 {
                let text = format!("BPF program is too large. Processed {processed} insn");
                return Err(self.refuse(Reject::new(Errno::E2BIG, text)));
            }
            self.state.last = prev;
            self.state.pc = pc;
            if !self.privileges.bpf_capable {
                self.state.make_precise();
            }
            let info = self.insn_info(pc);
            let (prune_point, jmp_point) = (info.prune_point, info.jmp_point);
            // No run comes here.
            let is_cut = self.options.order_free && self.state.contradiction.is_some();
            let pruned = is_cut
                || prune_point && self.is_visited(pc).map_err(|reject| self.refuse(reject))?;
            let next = if pruned {
                if self.survey.is_some() {
                    self.note_state(true);
                }
                if show_state {
                    let way = self.way();
                    log!(self, "\nfrom {prev} to {pc}{way}: safe\n");
                } else {
                    log!(self, "{pc}: safe\n");
                }
                Next::End
            } else {
                if jmp_point {
                    self.note_step(None, LinkedSet::default());
                }
                if self.survey.is_some() {
                    self.note_state(false);
                }
                if self.log.is_on() {
                    if self.log.is_full() && show_state {
                        let way = self.way();
                        log!(self, "\nfrom {prev} to {pc}{way}:");
                        self.log_state();
                        show_state = false;
                    }
                    self.log_insn();
                }
                if !self.state.speculative {
                    self.facts.see(pc);
                    if let Some(recorder) = &mut self.recorder
                        && !recorder.record(&self.state)
                    {
                        reject!(E2BIG, "more states than the recorder takes");
                    }
                }
                prev = pc;
                self.step().map_err(|reject| self.refuse(reject))?
            };
            match next {
                Next::At(next) => self.position.go_to(next),
                Next::Frame(next) => {
                    show_state = true;
                    self.position.go_to(next);
                }
                Next::End => {
                    self.log.touch_all();
                    self.end_of_path()?;
                    self.update_liveness();
                    let Some(resume) = self.worklist.pop(&mut self.state) else {
                        return Ok(());
                    };
                    self.position.go_to(resume.pc);
                    prev = resume.prev;
                    if !self.log.is_full() {
                        self.log.truncate(resume.log_len);
                    }
                    self.liveness.reset_current();
                    show_state = true;
                }
            }
        }
    }

    /// Simulates the current instruction. A speculative path ends at a barrier, and an error on
    /// it becomes one.
    fn step(&mut self) -> VerifyResult<Next> {
        let pc = self.pc();
        let speculative = self.state.speculative;
        if speculative && self.speculation.has_barrier_before(pc) {
            return Ok(Next::End);
        }
        self.begin_marks();
        let next = match self.check_insn() {
            Err(reject) if speculative && is_recoverable(&reject) => {
                if !reject.text().is_empty() {
                    log!(self, "{}\n", reject.text());
                }
                self.speculation.put_barrier_before(pc);
                Next::End
            }
            next => next?,
        };
        self.liveness.commit();
        if speculative && self.speculation.has_barrier_after(pc) {
            return Ok(Next::End);
        }
        Ok(next)
    }

    /// How the current path came here, for the log.
    const fn way(&self) -> &'static str {
        if self.state.speculative {
            " (speculative execution)"
        } else {
            ""
        }
    }

    /// Adds the current instruction and the path that led to it to a reject.
    #[cold]
    fn refuse(&self, reject: Reject) -> Reject {
        reject.at(self.pc()).with_trail(|| self.trail())
    }

    /// Simulates one instruction (`do_check_insn`).
    fn check_insn(&mut self) -> VerifyResult<Next> {
        let pc = self.pc();
        let Some(insn) = self.structure.code.insn(pc) else {
            return Err(self.refuse_slot(pc));
        };
        let next = Pc(pc.0 + insn.slots());
        if let Some(feature) = Feature::of_insn(self.program, &insn) {
            // For these instructions, the kernel first checks the register that is written.
            if let Insn::LoadPseudo { dst, .. } = insn {
                self.check_write(dst)?;
            }
            return Err(Reject::unmodelled(feature));
        }
        match insn {
            Insn::Alu {
                op,
                width,
                dst,
                src,
            } => self.check_alu(op, width, dst, src)?,
            Insn::MovSx {
                width,
                from,
                dst,
                src,
            } => self.check_movsx(width, from, dst, src)?,
            Insn::Neg { width, dst } => self.check_neg(width, dst)?,
            Insn::Endian { op, size, dst } => self.check_endian(op, size, dst)?,
            Insn::AddrSpaceCast { dst, src, to, .. } => {
                self.check_arena()?;
                self.check_read(src)?;
                self.check_write(dst)?;
                *self.reg_mut(dst) = if to == 0 {
                    RegState::ARENA
                } else {
                    RegState::UNKNOWN
                };
            }
            Insn::LoadImm64 { dst, value } => {
                self.check_write(dst)?;
                *self.reg_mut(dst) = RegState::constant(value);
            }
            Insn::LoadPseudo { dst, source } => self.check_pseudo(dst, source)?,
            Insn::Load {
                size,
                dst,
                base,
                off,
            } => {
                self.check_load(dst, MemoryOperand { base, off, size }, None, false)?;
            }
            Insn::LoadSx {
                from,
                dst,
                base,
                off,
            } => {
                let size = from.size();
                self.check_load(dst, MemoryOperand { base, off, size }, Some(from), false)?;
            }
            Insn::Store {
                size,
                base,
                off,
                src,
            } => {
                self.check_store(MemoryOperand { base, off, size }, src, false)?;
            }
            Insn::Atomic {
                op,
                width,
                base,
                off,
                src,
            } => {
                self.check_atomic(op, width, base, off, src)?;
            }
            Insn::LoadAcquire {
                size,
                dst,
                base,
                off,
            } => {
                self.check_load_acquire(dst, MemoryOperand { base, off, size })?;
            }
            Insn::StoreRelease {
                size,
                base,
                off,
                src,
            } => {
                self.check_store_release(MemoryOperand { base, off, size }, src)?;
            }
            Insn::LoadPacket { index, .. } => {
                return Ok(Next::At(self.check_packet_load(index, next)?));
            }
            Insn::Jump { .. } | Insn::JumpLong { .. } => {
                self.counts.count_jump();
                return Ok(Next::At(target(&insn, pc)));
            }
            Insn::JumpIf {
                op,
                width,
                dst,
                src,
                ..
            } => {
                self.counts.count_jump();
                let target = target(&insn, pc);
                let jump = Comparison {
                    op,
                    width,
                    dst,
                    src,
                    target,
                };
                return Ok(Next::At(self.check_jump_if(&jump, next)?));
            }
            Insn::MayGoto { .. } => {
                self.counts.count_jump();
                self.check_may_goto(next)?;
                return Ok(Next::At(target(&insn, pc)));
            }
            Insn::Call(call) => {
                self.counts.count_jump();
                let to = self.check_call(call, next)?;
                self.log.touch(Reg::R0);
                if self.throws(call) {
                    self.check_leak(Exit::Throw, THROW)?;
                    return Ok(Next::End);
                }
                return Ok(Next::At(to));
            }
            Insn::CallReg { .. } => reject!(EINVAL, "unknown opcode 8d"),
            Insn::Exit => {
                self.counts.count_jump();
                return self.check_exit();
            }
        }
        Ok(Next::At(next))
    }

    /// The reject for a slot that is not a valid instruction, reached by a path.
    fn refuse_slot(&mut self, pc: Pc) -> Reject {
        let Some(Err(error)) = self.code().get(pc) else {
            return Reject::new(Errno::EFAULT, format!("invalid insn idx {pc}"));
        };
        match self.check_before_slot(&error) {
            Ok(()) => structure::reserved(&error),
            Err(reject) => reject,
        }
    }

    /// Performs the checks that the kernel makes before it reports an invalid slot.
    fn check_before_slot(&mut self, error: &DecodeError) -> VerifyResult {
        match structure::prior_check(error) {
            Some(PriorCheck::LegacyLoads) => self.check_legacy_loads()?,
            Some(PriorCheck::PacketContext) => self.check_packet_context()?,
            Some(PriorCheck::Arena) => self.check_arena()?,
            None => {}
        }
        match structure::read_before(error)? {
            Some(reg) => self.check_read(reg),
            None => Ok(()),
        }
    }

    /// Checks that the program has an arena, which a cast between address spaces needs.
    fn check_arena(&self) -> VerifyResult {
        if self.structure.has_arena {
            return Ok(());
        }
        reject!(
            EINVAL,
            "addr_space_cast insn can only be used in a program that has an associated arena"
        )
    }

    fn check_call(&mut self, call: CallTarget, next: Pc) -> VerifyResult<Pc> {
        match call {
            CallTarget::Helper(id) => self.check_helper_call(id, next),
            CallTarget::Subprogram { rel } => {
                let target = i64::from(self.pc().0) + 1 + i64::from(rel);
                self.check_subprogram_call(Pc(u32::try_from(target).unwrap_or(u32::MAX)), next)
            }
            CallTarget::Kfunc { id, fd_index } => self.check_kfunc_call(id, fd_index, next),
        }
    }

    /// Whether a call ends all functions of the program by an exception.
    fn throws(&self, call: CallTarget) -> bool {
        let CallTarget::Kfunc { id, fd_index: 0 } = call else {
            return false;
        };
        let btf = self.program.kernel_btf.as_ref();
        let callee = btf.and_then(|btf| btf.get(id));
        callee.is_some_and(|callee| callee.name() == THROW)
    }

    /// The exit of a function (`process_bpf_exit_full`).
    fn check_exit(&mut self) -> VerifyResult<Next> {
        let outermost = self.state.current() == 0;
        let exit = if outermost {
            Exit::Program
        } else {
            Exit::Return
        };
        self.check_leak(exit, "BPF_EXIT instruction in main prog")?;
        if outermost {
            self.check_return_code(Reg::R0)?;
            return Ok(Next::End);
        }
        Ok(Next::Frame(self.check_return()?))
    }

    /// `may_goto` leaves the loop once its budget is used up. Both ways are possible, so
    /// the loop always terminates.
    fn check_may_goto(&mut self, next: Pc) -> VerifyResult {
        let pc = self.pc();
        let before = self.previous_entry(pc);
        let queued = self.push_branch(next, pc, Errno::ENOMEM)?;
        queued.may_goto_depth += 1;
        if let Some(before) = before {
            self.widen_pending(before);
        }
        Ok(())
    }

    /// Loads a 64-bit immediate that stands for a map, a function or another object
    /// (`check_ld_imm`).
    fn check_pseudo(&mut self, dst: Reg, source: Pseudo) -> VerifyResult {
        self.check_write(dst)?;
        let map = |index| MapRef {
            id: MapId(index),
            inner: false,
        };
        let kind = match source {
            Pseudo::MapIdx { index } => Kind::MapPtr {
                map: map(index),
                uid: 0,
            },
            Pseudo::MapIdxValue { index, off } => {
                let map = map(index);
                let def = self.map(map);
                // An address in user space.
                if def.is_some_and(|def| def.map_type == MapType::Arena) {
                    *self.reg_mut(dst) = RegState::UNKNOWN;
                    return Ok(());
                }
                let kind = Kind::MapValue { map, uid: 0 };
                let pointer = RegState {
                    // The offset is below the value's size.
                    off: off.cast_signed(),
                    ..RegState::pointer(kind, Default::default())
                };
                *self.reg_mut(dst) = pointer;
                return Ok(());
            }
            Pseudo::Func { rel } => {
                let target = i64::from(self.pc().0) + 1 + i64::from(rel);
                let target = Pc(u32::try_from(target).unwrap_or(u32::MAX));
                let Some(subprogram) = self.subprogram_at(target) else {
                    reject!(EFAULT, "no function begins at insn {target}");
                };
                if self.program.func_info.is_empty() {
                    reject!(EINVAL, "missing btf func_info");
                }
                if self.subprogram(subprogram).global {
                    reject!(EINVAL, "callback function not static");
                }
                Kind::Func { subprogram }
            }
            Pseudo::BtfId { id, .. } => {
                *self.reg_mut(dst) = self.kernel_symbol(id)?;
                return Ok(());
            }
            Pseudo::MapFd { fd } | Pseudo::MapValue { fd, .. } => {
                reject!(EBADF, "fd {fd} is not pointing to valid bpf_map")
            }
        };
        *self.reg_mut(dst) = RegState::pointer(kind, Default::default());
        Ok(())
    }

    /// Pushes the other branch's state: a copy of the current one, to be explored from `pc`
    /// (`push_stack`). Returns the copy so that the caller can change it. If too many are
    /// pushed, the reject carries the error number `full`, which depends on the caller.
    pub(crate) fn push_branch(
        &mut self,
        pc: Pc,
        prev: Pc,
        full: Errno,
    ) -> VerifyResult<&mut State> {
        if let Some(text) = self.worklist.too_complex() {
            return Err(Reject::new(full, format!("{text}.")));
        }
        Ok(self.push_state(pc, prev))
    }

    /// Like [`push_branch`](Self::push_branch), but if too many states are pushed, only logs
    /// it. Linux 6.18 behaves like this at a tail call: `check_helper_call` mistakes the null
    /// pointer from `push_stack` for a state.
    pub(crate) fn push_branch_without_limit(&mut self, pc: Pc, prev: Pc) {
        if let Some(text) = self.worklist.too_complex() {
            log!(self, "{text}.\n");
        }
        self.push_state(pc, prev);
    }

    fn push_state(&mut self, pc: Pc, prev: Pc) -> &mut State {
        self.arena.count_branch(&self.state);
        let log_len = self.log.len();
        let resume = Resume { pc, prev, log_len };
        self.worklist.push(&self.state, resume)
    }

    /// Adds the current instruction to the jump history, for a step that the code alone
    /// doesn't determine (`push_jmp_history`). Two entries of one instruction are merged.
    pub(crate) fn note_step(&mut self, stack: Option<(u8, u8)>, linked: LinkedSet) {
        let (pc, prev) = (self.pc(), self.position.prev());
        if !self.position.note() || self.state.history.len() == 0 {
            self.state.history.push(pc, prev);
        }
        self.state.history.note(stack, linked);
    }

    /// Notes an access to a stack slot that the `bpf_fastcall` pattern may use for spills
    /// (`check_fastcall_stack_contract`).
    pub(crate) fn check_fastcall_contract(&mut self, frame: u8, off: i32) {
        if let Some(frame) = self.state.frames.get(usize::from(frame)) {
            let info = self.structure.info(self.pc());
            self.usage.touch_stack(frame.subprogram, &info, off);
        }
    }

    /// Starts collecting the stack reads and writes of the current instruction.
    fn begin_marks(&mut self) {
        let (state, structure) = (&self.state, self.structure);
        let chain = || CallChain::of(state, structure, state.current());
        self.liveness.begin(chain, self.pc());
    }

    /// Propagates the stack reads and writes that were collected for each function
    /// (`bpf_update_live_stack`).
    pub(crate) fn update_liveness(&mut self) {
        let (state, structure) = (&self.state, self.structure);
        let chain = |frame| CallChain::of(state, structure, frame);
        self.liveness
            .update(structure, chain, state.current(), &mut self.log);
    }
}

/// The target of a jump, already checked to be inside the function.
fn target(insn: &Insn, pc: Pc) -> Pc {
    let target = insn.jump_target(pc).unwrap_or_default();
    Pc(u32::try_from(target).unwrap_or(u32::MAX))
}
