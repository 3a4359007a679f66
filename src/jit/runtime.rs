//! What machine code calls.

#![allow(unsafe_code)] // the invariant stands at `with`

use crate::interp::{DONE, End, Next, Run, STOPPED, Stop};
use crate::lower::Target;
use crate::vm::Machine;

/// What machine code calls, each with the run first. An operation is given by its
/// index, and the number of instructions left, the operation's included, is right.
pub(super) mod shims {
    use super::{DONE, Run, STOPPED, Target, calls};

    /// Does what an operation says, whichever it is: [`DONE`] to follow, 2 to go to its
    /// target, 3 to end the function, or [`STOPPED`].
    pub extern "C" fn step(run: *mut Run<'_>, at: Target) -> u32 {
        calls::step(run, at)
    }

    /// The pointer that a field of the context loads as; 0 where it is none.
    pub extern "C" fn pointer(run: *const Run<'_>, off: u32, size: u32) -> u64 {
        calls::pointer(run, off, size).unwrap_or(0)
    }

    /// Calls a helper.
    pub extern "C" fn helper(run: *mut Run<'_>, at: Target, helper: u32) -> u32 {
        calls::helper(run, at, helper).map_or(STOPPED, |()| DONE)
    }

    /// Makes the frame of a function to be called.
    pub extern "C" fn enter(run: *mut Run<'_>, at: Target, function: u32) -> u32 {
        calls::enter(run, at, function).map_or(STOPPED, |()| DONE)
    }

    /// Ends the frame of the function under way.
    pub extern "C" fn leave(run: *mut Run<'_>) {
        calls::leave(run);
    }

    /// Goes on in the interpreter before an operation, until the function's frame is
    /// gone.
    pub extern "C" fn finish(run: *mut Run<'_>, at: Target) -> u32 {
        calls::finish(run, at).map_or(STOPPED, |()| DONE)
    }

    /// A tail call: [`FOLLOW`](super::FOLLOW), a status as of a function, or where the
    /// code of another program begins.
    pub extern "C" fn tail_call(run: *mut Run<'_>, at: Target) -> u64 {
        calls::tail_call(run, at)
    }
}

/// Of a tail call: it led nowhere.
pub(super) const FOLLOW: u64 = 2;
/// Of a step: on at the target.
pub(super) const GO_TO: u32 = 2;
/// Of a step: the function ends.
pub(super) const ENDS: u32 = 3;

mod calls {
    use crate::vm::memory::Address;

    use super::{DONE, ENDS, End, FOLLOW, GO_TO, Machine, Next, Run, STOPPED, Stop, Target};

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

    pub(super) fn step(run: *mut Run<'_>, at: Target) -> u32 {
        let next = with(run, |run, machine| {
            let op = run.lowered.ops().get(at as usize).copied();
            op.map_or(Ok(Next::Exit), |op| run.step(machine, at, op))
        });
        match next {
            Some(Next::Follow) => DONE,
            Some(Next::Goto(_)) => GO_TO,
            Some(Next::Exit) => ENDS,
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

    pub(super) fn helper(run: *mut Run<'_>, at: Target, helper: u32) -> Option<()> {
        // It was a `u16` in the operation.
        let helper = u16::try_from(helper).unwrap_or(u16::MAX);
        with(run, |run, machine| run.call_helper(machine, at, helper))
    }

    pub(super) fn enter(run: *mut Run<'_>, at: Target, function: u32) -> Option<()> {
        let function = u16::try_from(function).unwrap_or(u16::MAX);
        with(run, |run, machine| {
            run.call(machine, at, function).map(|_| ())
        })
    }

    pub(super) fn leave(run: *mut Run<'_>) {
        with(run, |run, machine| {
            run.exit(machine, 0);
            Ok(())
        });
    }

    pub(super) fn finish(run: *mut Run<'_>, at: Target) -> Option<()> {
        with(run, |run, machine| {
            let floor = run.depth().saturating_sub(1);
            go_on(run, machine, at, floor)
        })
    }

    /// The interpreters go on until the frames are down to `floor`.
    fn go_on(
        run: &mut Run<'_>,
        machine: &mut Machine,
        at: Target,
        floor: usize,
    ) -> Result<(), Stop> {
        match run.execute(machine, at, floor) {
            Ok(r0) => run.host.regs[0] = r0,
            Err(Stop::Checked) => run.host.regs[0] = run.go_on_checked(machine, floor)?,
            Err(stop) => return Err(stop),
        }
        Ok(())
    }

    pub(super) fn tail_call(run: *mut Run<'_>, at: Target) -> u64 {
        let led = with(run, |run, machine| {
            let floor = run.depth().saturating_sub(1);
            match run.tail_call(machine) {
                Ok(Next::Goto(to)) => match run.native().and_then(|native| native.entry(to)) {
                    Some(start) => return Ok(start),
                    None => go_on(run, machine, to, floor)?,
                },
                Ok(_) => return Ok(FOLLOW),
                Err(Stop::Checked) => run.host.regs[0] = run.go_on_checked(machine, floor)?,
                Err(stop) => return Err(stop),
            }
            Ok(u64::from(DONE))
        });
        let _ = at;
        led.unwrap_or(u64::from(STOPPED))
    }
}
