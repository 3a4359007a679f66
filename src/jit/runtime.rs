//! What machine code and Rust agree on, and what machine code calls.
//!
//! The convention is the same for every machine; how code keeps to it is its own business
//! (`x86_64/frame.rs`, `arm64/frame.rs`).
//!
//! **Host registers.** BPF's r0 to r5 are lost in calls, those of r6 to r9 that a function
//! changes are kept for its caller by the function itself, on the host's stack. Besides
//! there are the run, the end of the frame under way (a host address, see
//! `interp/stack.rs`), and how many instructions are left (see `count`). What r10 holds is
//! in the frame's head; few instructions ask for it.
//!
//! **Functions.** A function is called with its caller's end of frame and r1 to r5 in
//! their registers, and the count such that the phase of its first operation holds; it
//! bails where that is below zero. It moves the end of the frame by [`STRIDE`], makes
//! zero what [`Function::zeroed`](crate::lower::Function) says, and sets in the head
//! `loops_left` if it has an [`Op::MayGoto`](crate::lower::Op), `clean` to
//! [`Function::stack`](crate::lower::Function) if it has an `Op::TailCall`. It returns with r0 in its
//! register, the end of the frame as it was, and the number of instructions left as it is,
//! without phase or margin. A function that lends its frame calls [`shims::leave`] before.
//! The caller looks at the count again, for the callee may have used up any number.
//!
//! **Ways in.** Rust enters a function by [`Ways::function`](crate::interp::Ways), called
//! with the run and the function's address, and the main program by `Ways::main`. They
//! keep what Rust's convention asks for, take count, end of the frame and r1 to r5 (the
//! main program has r1 only) out of the run ([`Run::left`], `host`), note in
//! [`Run::unwind`] where to come back, and return r0; the count is in [`Run::left`] then.
//! They may be entered again in the middle of what machine code called. The main program
//! is not called otherwise, so its way in may keep r6 to r9 in its place.
//!
//! **Tail calls.** A main program with a tail call is left to another one by a jump to
//! that one's `Ways::tail`, with all as the first one found it: the caller's end of frame,
//! its registers, the host's stack. That way takes r1 and the count out of the run; the
//! frame stays as it is, with its `clean`.
//!
//! **Calls of Rust.** Before any shim that takes the run, [`Run::left`] is the number of
//! instructions left, that of the operation under way counted, and `host.frame_end` the
//! end of the frame. Afterwards the count is taken from there. What a shim gives besides r0
//! is an [`Answer`]'s status.
//!
//! **Stopping.** [`STOPPED`] means that [`Run::end`] says why. The code unwinds at once to
//! the way in: the host's stack pointer is [`Run::unwind`] again, and what it returns is
//! of no account.
//!
//! **Bailing.** Where few instructions are left, the registers go into the run, and
//! [`shims::finish`] executes the rest of the function, its leaving included.

#![allow(unsafe_code)] // the invariant stands at `with`

use crate::interp::{End, Next, Run, Stop, Tail};
use crate::lower::{BoundMap, Target};
use crate::vm::Machine;

/// What a shim gives: in the first two registers of results of the host.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct Answer {
    /// r0, or where to go on.
    pub value: u64,
    /// One of the following.
    pub status: u64,
}

/// All is well: on with the next operation, or the function has ended.
pub(super) const DONE: u64 = 0;
/// The run stops.
pub(super) const STOPPED: u64 = 1;
/// Of a step: on at its target. Of a tail call: it led nowhere, on with the next operation.
pub(super) const ON: u64 = 2;
/// Of a step: the function ends. Of a tail call in a main program: on at the code that
/// `value` says, in the place of this.
pub(super) const AWAY: u64 = 3;

impl Answer {
    /// r0, or that the run stops.
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

/// What machine code calls. An operation is given by its index.
pub(super) mod shims {
    use super::{Answer, BoundMap, Run, Target, calls};

    /// Does what an operation says, whichever it is but a call of a function of the
    /// program, a tail call, or an exit. All registers are in the run.
    pub extern "C" fn step(run: *mut Run<'_>, at: Target) -> u64 {
        calls::step(run, at)
    }

    /// The pointer that a field of the context loads as; 0 where it is none. It does not
    /// ask for the count.
    pub extern "C" fn pointer(run: *const Run<'_>, off: u32, size: u32) -> u64 {
        calls::pointer(run, off, size).unwrap_or(0)
    }

    /// Calls a helper: gives r0.
    pub extern "C" fn helper(
        r1: u64,
        r2: u64,
        r3: u64,
        r4: u64,
        r5: u64,
        run: *mut Run<'_>,
        at: Target,
        helper: u32,
    ) -> Answer {
        Answer::of(calls::helper(run, at, helper, [r1, r2, r3, r4, r5]))
    }

    /// Looks up a key, which is at a host address, in a map of the program under way: gives
    /// r0. It does not ask for the count.
    pub extern "C" fn look_up(map: *const BoundMap, key: u64, cpu: u64) -> u64 {
        calls::look_up(map, key, cpu)
    }

    /// Ends the life of the frame of a function that lends it: gives back its r0. It does
    /// not ask for the count.
    pub extern "C" fn leave(run: *mut Run<'_>, r0: u64) -> u64 {
        calls::leave(run);
        r0
    }

    /// Executes the rest of a function, from an operation on, in the interpreter, its
    /// leaving included: gives r0. All registers are in the run.
    pub extern "C" fn finish(run: *mut Run<'_>, at: Target) -> Answer {
        Answer::of(calls::finish(run, at))
    }

    /// A tail call by the operation at `at`; r1 to r5 are in the run. Gives the r0 of the
    /// program, when that was executed in place of the rest of the function, or
    /// [`ON`](super::ON), or, where `in_main`, [`AWAY`](super::AWAY).
    pub extern "C" fn tail_call(run: *mut Run<'_>, at: Target, in_main: u32) -> Answer {
        calls::tail_call(run, at, in_main != 0)
    }
}

mod calls {
    use crate::interp::look_up_at;
    use crate::vm::memory::Address;

    use super::{
        AWAY, Answer, BoundMap, DONE, End, Machine, Next, ON, Run, STOPPED, Stop, Tail, Target,
    };

    /// Lets `f` work on the run, with the count of instructions in its form, and keeps
    /// why it stops.
    fn with<'a, T>(
        run: *mut Run<'a>,
        f: impl FnOnce(&mut Run<'a>, &mut Machine) -> Result<T, Stop>,
    ) -> Option<T> {
        // SAFETY: machine code gets the run from `Run::execute_native`, which waits for it,
        // as the machine code waits for us: nobody else uses the run and its machine.
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

    pub(super) fn step(run: *mut Run<'_>, at: Target) -> u64 {
        let next = with(run, |run, machine| {
            run.know_number();
            let op = run.lowered.ops().get(at as usize).copied();
            op.map_or(Ok(Next::Exit), |op| run.step(machine, at, op))
        });
        match next {
            Some(Next::Follow) => DONE,
            Some(Next::Goto(_)) => ON,
            Some(Next::Exit) => AWAY,
            None => STOPPED,
        }
    }

    pub(super) fn pointer(run: *const Run<'_>, off: u32, size: u32) -> Option<u64> {
        // SAFETY: as in `with`.
        let (run, machine) = unsafe { (&*run, &*(*run).machine) };
        let context = Address::from_register(run.context_address)?;
        let fields = &machine.space.region(context)?.pointers;
        let field = fields.iter().find(|f| f.offset == off && f.size == size);
        field.map(|field| field.value)
    }

    #[inline(always)]
    pub(super) fn helper(
        run: *mut Run<'_>,
        at: Target,
        helper: u32,
        args: [u64; 5],
    ) -> Option<u64> {
        // It was a `u16` in the operation.
        let helper = u16::try_from(helper).unwrap_or(u16::MAX);
        with(run, |run, machine| run.helper(machine, at, helper, args))
    }

    #[inline(always)]
    pub(super) fn look_up(map: *const BoundMap, key: u64, cpu: u64) -> u64 {
        // SAFETY: the map is one of the program's, which lives as long as its code, and
        // the verifier proved that the key is there.
        unsafe { look_up_at(&*map, cpu, key) }
    }

    pub(super) fn leave(run: *mut Run<'_>) {
        // SAFETY: as in `with`.
        let (run, machine) = unsafe { (&mut *run, &mut *(*run).machine) };
        run.renew(machine);
    }

    pub(super) fn finish(run: *mut Run<'_>, at: Target) -> Option<u64> {
        with(run, |run, machine| run.finish(machine, at))
    }

    pub(super) fn tail_call(run: *mut Run<'_>, at: Target, in_main: bool) -> Answer {
        let mut on = None;
        let led = with(run, |run, machine| {
            run.take_over(at);
            match run.tail_target(machine, at)? {
                Tail::Nowhere => on = Some(ON),
                Tail::Checked(image) => return run.run_checked(machine, image),
                Tail::Fast(image, lowered) => match image.native().filter(|_| in_main) {
                    Some(native) => {
                        run.leave_to(machine, image, lowered);
                        on = Some(AWAY);
                        return Ok(native.tail());
                    }
                    _ => return run.run_in_place(machine, image, lowered),
                },
            }
            Ok(0)
        });
        match (led, on) {
            (Some(value), Some(status)) => Answer { value, status },
            (led, _) => Answer::of(led),
        }
    }
}
