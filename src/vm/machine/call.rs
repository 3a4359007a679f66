//! One call of a helper: its arguments, and checked access to the memory they point to.

use std::sync::Arc;

use smallvec::SmallVec;

use super::super::events::Event;
use super::super::maps::Map;
use super::super::memory::AccessKind;
use super::fault::{Fault, HelperProblem};
use super::outcome::Outcome;
use super::state::Machine;
use crate::program::Program;
use crate::vm::events::attach::Level;
use crate::vm::maps::MapHandle;
use crate::vm::world::World;

/// Bytes copied out of memory; small copies need no allocation.
pub type Bytes = SmallVec<[u8; 64]>;

/// Result of a helper body: r0, or why the program can't go on.
pub type Returned = Result<u64, HelperProblem>;

/// One call of a helper.
#[non_exhaustive]
pub struct Call<'a> {
    /// The machine that the helper acts on.
    #[doc(hidden)]
    pub machine: &'a mut Machine,
    /// The engine, for helpers that call back into the program.
    #[doc(hidden)]
    pub engine: &'a mut dyn Callbacks,
    /// Registers r1 to r5.
    pub args: [u64; 5],
}

/// What an engine provides to helpers.
pub trait Callbacks {
    /// Runs the program's function at register value `function` with these arguments, and
    /// returns its r0.
    ///
    /// # Errors
    /// [`Fault`] if the function stops before its end.
    fn call_back(
        &mut self,
        machine: &mut Machine,
        function: u64,
        args: [u64; 5],
    ) -> Result<u64, Box<Fault>>;

    /// The running program, if the engine has it.
    fn program(&self) -> Option<&Arc<Program>> {
        None
    }
}

impl Call<'_> {
    /// Argument `n`, from 1 to 5.
    #[must_use]
    pub fn arg(&self, n: usize) -> u64 {
        n.checked_sub(1)
            .and_then(|n| self.args.get(n))
            .copied()
            .unwrap_or_default()
    }

    /// Argument `n` of type `u32` or `int` in the prototype: the low 32 bits.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "as the kernel's prototypes do"
    )]
    pub fn arg_u32(&self, n: usize) -> u32 {
        self.arg(n) as u32
    }

    /// Argument `n` of type `int` in the prototype: the low 32 bits, signed.
    #[must_use]
    pub fn arg_i32(&self, n: usize) -> i32 {
        self.arg_u32(n).cast_signed()
    }

    /// Argument `n` of type `u32` in the prototype, as a size.
    #[must_use]
    pub fn size(&self, n: usize) -> usize {
        self.arg_u32(n) as usize
    }

    /// The mocked world.
    pub const fn world(&mut self) -> &mut World {
        &mut self.machine.world
    }

    /// Copies out `len` bytes at the address in argument `n`.
    ///
    /// # Errors
    /// [`HelperProblem::Access`] unless all of them are readable.
    pub fn read(&self, n: usize, len: usize) -> Result<Bytes, HelperProblem> {
        let mut bytes = Bytes::new();
        self.read_into(n, len, &mut bytes)?;
        Ok(bytes)
    }

    /// As [`read`](Self::read), into the empty buffer `bytes`. Without a move of the buffer
    /// the shortest helpers are fastest.
    pub(in crate::vm) fn read_into(
        &self,
        n: usize,
        len: usize,
        bytes: &mut Bytes,
    ) -> Result<(), HelperProblem> {
        if len > bytes.inline_size() {
            // Don't allocate memory for bytes that don't exist.
            self.check(n, len, AccessKind::Read)?;
        }
        bytes.resize(len, 0);
        let read = self.machine.space.read_into(self.arg(n), bytes);
        read.map_err(|fault| HelperProblem::Access { arg: n, fault })
    }

    /// Copies bytes to the address in argument `n`.
    ///
    /// # Errors
    /// [`HelperProblem::Access`] unless all of them are writable.
    pub fn write(&mut self, n: usize, bytes: &[u8]) -> Result<(), HelperProblem> {
        let written = self.machine.space.write(self.arg(n), bytes);
        written.map_err(|fault| HelperProblem::Access { arg: n, fault })
    }

    /// Checks an access of `len` bytes at the address in argument `n`.
    ///
    /// # Errors
    /// [`HelperProblem::Access`] unless all of them are accessible.
    #[doc(hidden)]
    pub fn check(&self, n: usize, len: usize, kind: AccessKind) -> Result<(), HelperProblem> {
        if len == 0 {
            return Ok(());
        }
        let checked = self.machine.space.check(self.arg(n), len, kind);
        checked.map_err(|fault| HelperProblem::Access { arg: n, fault })
    }

    /// The map in argument `n`.
    ///
    /// # Errors
    /// [`HelperProblem::Argument`] if the argument is not a map.
    #[doc(hidden)]
    pub fn map(&self, n: usize) -> Result<(MapHandle, Arc<dyn Map>), HelperProblem> {
        let handle = self.map_handle(n)?;
        Ok((handle, self.map_of(n, handle)?.clone()))
    }

    /// The handle of the map in argument `n`.
    ///
    /// # Errors
    /// [`HelperProblem::Argument`] if the argument is not a map.
    #[doc(hidden)]
    pub fn map_handle(&self, n: usize) -> Result<MapHandle, HelperProblem> {
        self.machine
            .map_at(self.arg(n))
            .ok_or_else(|| self.wrong(n, "a map"))
    }

    /// The map with this handle; `n` is the argument for the error.
    pub(in crate::vm) fn map_of(
        &self,
        n: usize,
        handle: MapHandle,
    ) -> Result<&Arc<dyn Map>, HelperProblem> {
        let map = self.machine.map(handle);
        map.ok_or_else(|| self.wrong(n, "a map"))
    }

    /// The error for an invalid argument.
    #[must_use]
    pub fn wrong(&self, n: usize, wanted: &'static str) -> HelperProblem {
        HelperProblem::Argument {
            arg: n,
            found: self.machine.pointer(self.arg(n)),
            wanted,
        }
    }

    /// Fires an event during the run, for mocks of helpers that reach a traced function.
    /// Programs attached there run unless a program active on the CPU blocks them, as in
    /// Linux. The results are also in the outcome of the run ([`Outcome::nested`]).
    ///
    /// ```
    /// # fn main() -> bpflab::Result<()> {
    /// # let mut vm = bpflab::Vm::with_world(bpflab::vm::World::default());
    /// let wakeup = vm.tracepoint("syscalls/sys_enter_write")?;
    /// vm.mock_helper("bpf_send_signal", move |call| call.fire(&wakeup).map(|_| 0))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`HelperProblem::Callback`] with the fault of a program that stopped,
    /// [`HelperProblem::Other`] for an event that can't be fired.
    pub fn fire(&mut self, event: &Event) -> Result<Outcome, HelperProblem> {
        self.machine.interrupt(Level::Task, event)
    }

    /// Calls the program's function in argument `n`.
    ///
    /// # Errors
    /// [`HelperProblem::Callback`] if the function stops before its end.
    pub fn call_back(&mut self, n: usize, args: [u64; 5]) -> Result<u64, HelperProblem> {
        let function = self.arg(n);
        let result = self.engine.call_back(self.machine, function, args);
        result.map_err(HelperProblem::Callback)
    }
}

/// The error for a map of an unsupported type.
#[cold]
pub(in crate::vm) fn unfit(arg: usize, map: &dyn Map) -> HelperProblem {
    HelperProblem::MapType {
        arg,
        map: map.def().name.clone(),
        map_type: map.def().map_type,
    }
}
