//! The convention between machine code and Rust, and the functions that machine code calls.
//!
//! The convention is the same for every architecture; `x86_64/frame.rs` and
//! `arm64/frame.rs` implement it.
//!
//! **Host registers.** Calls clobber BPF's r0 to r5; a function saves those of r6 to r9
//! that it changes on the host's stack. Further registers hold the run, the end of the
//! current frame (a host address, see `engine/stack.rs`), and the number of instructions
//! left (see `count`). The value of r10 is in the frame's head; few instructions need it.
//!
//! **Functions.** A function is called with its caller's end of frame, r1 to r5 in their
//! registers, and the count such that the phase of its first operation holds; it bails if
//! the count is negative. It moves the end of the frame by [`STRIDE`], zeroes the bytes of
//! [`Function::zeroed`](crate::lower::Function), and sets in the head `loops_left` if it
//! has an [`Op::MayGoto`](crate::lower::Op), `clean` to
//! [`Function::stack`](crate::lower::Function) if it has an `Op::TailCall`. It returns with
//! r0 in its register, the end of the frame as before, and the number of instructions left
//! without phase or margin. A function whose frame escapes calls [`shims::leave`] before.
//! The caller checks the count again, for the callee may have used up any number.
//!
//! **Entry points.** Rust enters a function by
//! [`EntryPoints::function`](crate::engine::EntryPoints), and the main program by
//! `EntryPoints::main`, with the arguments of the fast interpreter's `Enter`: the run, the
//! function's address, the number of instructions left, the caller's end of frame, and r1.
//! They save the registers that Rust's convention preserves, take r2 to r5 from the run (for
//! functions, and for the main function of an extension), store in [`Run::unwind`] where to
//! return if a function may stop the run, and return r0 and the number of instructions left. They
//! are reentrant: functions called by machine code may enter again. The main program is entered
//! in no other way, so its code begins at its entry point, and its exits return to Rust.
//!
//! **Tail calls.** A main program jumps to the `EntryPoints::tail` of the tail call's
//! target, which replaces it: on x86-64 with the host's stack and registers as Rust's call
//! left them, with the run and the caller's end of frame as arguments; on arm64 with the
//! state in which the main program was called itself. That entry point loads r1 and the count
//! from the run; the frame stays as it is, with its `clean`. Rust enters a program in this
//! way by `EntryPoints::in_place`.
//!
//! **Calls of Rust.** Before any shim that takes the run, [`Run::left`] is set to the
//! number of instructions left, with the current operation counted, and `host.frame_end` to
//! the end of the frame. Afterwards the count is loaded from there. A shim returns r0 and
//! the status of an [`Answer`].
//!
//! **Stopping.** [`STOPPED`] means that [`Run::end`] has the reason. The code unwinds at
//! once to the entry point: it restores the host's stack pointer from [`Run::unwind`], and
//! its return value is ignored.
//!
//! **Code that does not count** has no number of instructions left, in no register and not
//! in the run, and never bails.
//!
//! **Bailing.** If few instructions are left, the registers are stored to the run, and
//! [`shims::finish`] executes the rest of the function, including its exit.

#![allow(unsafe_code)] // the invariant is at `with`

use crate::engine::fast::{End, Next, Run, Stop, Tail};
use crate::lower::{BoundMap, Target};
use crate::vm::Machine;

/// The result of a shim, in the host's first two result registers.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct Answer {
    /// r0, or the code at which to continue.
    pub value: u64,
    /// One of the following.
    pub status: u64,
}

/// Success: continue with the next operation, or the function has ended.
pub(super) const DONE: u64 = 0;
/// The run stops.
pub(super) const STOPPED: u64 = 1;
/// From a step: continue at its target. From a tail call: it had no target, continue with
/// the next operation.
pub(super) const ON: u64 = 2;
/// From a step: the function ends. From a tail call in a main program: jump to the code at
/// `value`, which replaces this program.
pub(super) const AWAY: u64 = 3;

impl Answer {
    /// Success with r0, or that the run stops.
    fn of(r0: Option<u64>) -> Self {
        match r0 {
            Some(value) => Self {
                value,
                status: DONE,
            },
            None => Self {
                value: 0,
                status: STOPPED,
            },
        }
    }
}

/// The functions that machine code calls. An operation is given by its index.
///
/// # Safety
/// Only machine code calls these functions, with the run that it was entered with
/// (`Run::execute_native`): that waits for the machine code, which waits for the function, so
/// nothing else uses the run or its machine meanwhile.
pub(super) mod shims {
    use super::{Answer, BoundMap, Run, Target, calls};
    use crate::engine::fast::look_up_at;

    /// Executes any operation except a call of a program's function, a tail call, or an
    /// exit. All registers are in the run.
    ///
    /// # Safety
    /// See the [module](self).
    pub unsafe extern "C" fn step(run: *mut Run<'_>, at: Target) -> u64 {
        // SAFETY: guaranteed by the caller.
        unsafe { calls::step(run, at) }
    }

    /// The pointer that a context field loads as; 0 if it is none. Needs no count.
    ///
    /// # Safety
    /// See the [module](self).
    pub unsafe extern "C" fn pointer(run: *const Run<'_>, off: u32, size: u32) -> u64 {
        // SAFETY: guaranteed by the caller.
        unsafe { calls::pointer(run, off, size) }.unwrap_or(0)
    }

    /// Calls a helper: returns r0.
    ///
    /// # Safety
    /// See the [module](self).
    pub unsafe extern "C" fn helper(
        r1: u64,
        r2: u64,
        r3: u64,
        r4: u64,
        r5: u64,
        run: *mut Run<'_>,
        at: Target,
        helper: u32,
    ) -> Answer {
        // SAFETY: guaranteed by the caller.
        Answer::of(unsafe { calls::helper(run, at, helper, [r1, r2, r3, r4, r5]) })
    }

    /// Looks up a key, which is at a host address, in a map of the current program: returns
    /// r0. Needs no count.
    ///
    /// # Safety
    /// The map is one of the running program's, and the verifier proved that a key of its size
    /// is in bounds at `key`.
    pub unsafe extern "C" fn look_up(map: *const BoundMap, key: u64, cpu: u64) -> u64 {
        // SAFETY: guaranteed by the caller.
        unsafe { look_up_at(&*map, cpu, key) }
    }

    /// Makes pointers to an escaping frame stale when its function ends: returns `r0`.
    /// Needs no count.
    ///
    /// # Safety
    /// See the [module](self).
    pub unsafe extern "C" fn leave(run: *mut Run<'_>, r0: u64) -> u64 {
        // SAFETY: guaranteed by the caller.
        unsafe { calls::leave(run) };
        r0
    }

    /// Executes the rest of a function, from an operation on, in the interpreter, including
    /// its exit: returns r0. All registers are in the run.
    ///
    /// # Safety
    /// See the [module](self).
    pub unsafe extern "C" fn finish(run: *mut Run<'_>, at: Target) -> Answer {
        // SAFETY: guaranteed by the caller.
        Answer::of(unsafe { calls::finish(run, at) })
    }

    /// A tail call by the operation at `at`; r1 to r5 are in the run. Returns the r0 of the
    /// target program if that was executed instead of the rest of the function, or
    /// [`ON`](super::ON), or, if `in_main`, [`AWAY`](super::AWAY).
    ///
    /// # Safety
    /// See the [module](self).
    pub unsafe extern "C" fn tail_call(run: *mut Run<'_>, at: Target, in_main: u32) -> Answer {
        // SAFETY: guaranteed by the caller.
        unsafe { calls::tail_call(run, at, in_main != 0) }
    }
}

/// The functions of [`shims`], under the same contract.
mod calls {
    use crate::vm::memory::Address;

    use super::{AWAY, Answer, DONE, End, Machine, Next, ON, Run, STOPPED, Stop, Tail, Target};

    /// Calls `f` with the run, converting the instruction count for it, and records why it
    /// stops.
    unsafe fn with<'a, T>(
        run: *mut Run<'a>,
        f: impl FnOnce(&mut Run<'a>, &mut Machine) -> Result<T, Stop>,
    ) -> Option<T> {
        // SAFETY: guaranteed by the caller: nothing else uses the run and its machine.
        let (run, machine) = unsafe { (&mut *run, &mut *(*run).machine) };
        run.executed = (run.granted - run.left).cast_unsigned();
        let result = f(run, machine);
        run.left = run.granted - run.executed.cast_signed();
        match result {
            Ok(value) => Some(value),
            Err(stop) => {
                run.end = Some(End::Stop(stop));
                None
            }
        }
    }

    pub(super) unsafe fn step(run: *mut Run<'_>, at: Target) -> u64 {
        let step = |run: &mut Run<'_>, machine: &mut Machine| {
            run.load_frame_pointer();
            let op = run.lowered.ops().get(at as usize).copied();
            op.map_or(Ok(Next::Exit), |op| run.step(machine, at, op))
        };
        // SAFETY: guaranteed by the caller.
        let next = unsafe { with(run, step) };
        match next {
            Some(Next::Follow) => DONE,
            Some(Next::Goto(_)) => ON,
            Some(Next::Exit) => AWAY,
            None => STOPPED,
        }
    }

    pub(super) unsafe fn pointer(run: *const Run<'_>, off: u32, size: u32) -> Option<u64> {
        // SAFETY: as in `with`.
        let (run, machine) = unsafe { (&*run, &*(*run).machine) };
        let context = Address::from_register(run.context_address)?;
        let fields = &machine.space.region(context)?.pointers;
        let field = fields.iter().find(|f| f.offset == off && f.size == size);
        field.map(|field| field.value)
    }

    #[inline(always)]
    pub(super) unsafe fn helper(
        run: *mut Run<'_>,
        at: Target,
        helper: u32,
        args: [u64; 5],
    ) -> Option<u64> {
        // The operation has it as a `u16`.
        let helper = u16::try_from(helper).unwrap_or(u16::MAX);
        // SAFETY: guaranteed by the caller.
        unsafe { with(run, |run, machine| run.helper(machine, at, helper, args)) }
    }

    pub(super) unsafe fn leave(run: *mut Run<'_>) {
        // SAFETY: as in `with`.
        let (run, machine) = unsafe { (&mut *run, &mut *(*run).machine) };
        run.renew(machine);
    }

    pub(super) unsafe fn finish(run: *mut Run<'_>, at: Target) -> Option<u64> {
        // SAFETY: guaranteed by the caller.
        unsafe { with(run, |run, machine| run.finish(machine, at)) }
    }

    pub(super) unsafe fn tail_call(run: *mut Run<'_>, at: Target, in_main: bool) -> Answer {
        let mut on = None;
        let call = |run: &mut Run<'_>, machine: &mut Machine| {
            run.take_over(at);
            match run.tail_target(machine, at)? {
                Tail::Nowhere => on = Some(ON),
                Tail::Checked(image) => return run.run_checked(machine, image),
                Tail::Fast(image, lowered) => {
                    match image.native(run.counting).filter(|_| in_main) {
                        Some(native) => {
                            run.leave_to(machine, image, lowered);
                            on = Some(AWAY);
                            return Ok(native.tail());
                        }
                        _ => return run.run_in_place(machine, image, lowered),
                    }
                }
            }
            Ok(0)
        };
        // SAFETY: guaranteed by the caller.
        let led = unsafe { with(run, call) };
        match (led, on) {
            (Some(value), Some(status)) => Answer { value, status },
            (led, _) => Answer::of(led),
        }
    }
}
