//! One call of a helper: its arguments, and checked ways to what they point to.

use std::sync::Arc;

use smallvec::SmallVec;

use super::super::attach::Level;
use super::super::events::Event;
use super::super::fault::{Fault, HelperProblem};
use super::super::handle::MapHandle;
use super::super::machine::Machine;
use super::super::maps::Map;
use super::super::memory::AccessKind;
use super::super::outcome::Outcome;
use crate::program::Program;

/// Bytes that were copied out of memory; few of them cost no allocation.
pub type Bytes = SmallVec<[u8; 64]>;

/// What a body returns: r0, or why the program can't go on.
pub type Returned = Result<u64, HelperProblem>;

/// One call of a helper.
pub struct Call<'a> {
    /// The machine it acts on.
    pub machine: &'a mut Machine,
    /// The engine, for helpers that call back into the program.
    pub engine: &'a mut dyn Callbacks,
    /// Registers r1 to r5.
    pub args: [u64; 5],
}

/// What an engine lets helpers do.
pub trait Callbacks {
    /// Runs the function of the program at `function`, a register's value, with
    /// these arguments, and returns its r0.
    ///
    /// # Errors
    /// [`Fault`] when the function stops before its end.
    fn call_back(
        &mut self,
        machine: &mut Machine,
        function: u64,
        args: [u64; 5],
    ) -> Result<u64, Box<Fault>>;

    /// The program that runs, where the engine knows it.
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

    /// Argument `n` where the prototype says `u32` or `int`: its low half.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "as the kernel's prototypes do"
    )]
    pub fn arg_u32(&self, n: usize) -> u32 {
        self.arg(n) as u32
    }

    /// Argument `n` where the prototype says `int`: its low half, signed.
    #[must_use]
    pub fn arg_i32(&self, n: usize) -> i32 {
        self.arg_u32(n).cast_signed()
    }

    /// Argument `n` where the prototype says it is a size, a `u32`.
    #[must_use]
    pub fn size(&self, n: usize) -> usize {
        self.arg_u32(n) as usize
    }

    /// Copies out `len` bytes that argument `n` points to.
    ///
    /// # Errors
    /// [`HelperProblem::Access`] unless all of them may be read.
    pub fn read(&self, n: usize, len: usize) -> Result<Bytes, HelperProblem> {
        let mut bytes = Bytes::new();
        self.read_into(n, len, &mut bytes)?;
        Ok(bytes)
    }

    /// The same into `bytes`, which is empty: bytes that stay where they are cost
    /// the shortest helpers least.
    pub(super) fn read_into(
        &self,
        n: usize,
        len: usize,
        bytes: &mut Bytes,
    ) -> Result<(), HelperProblem> {
        if len > bytes.inline_size() {
            // No memory is taken for bytes that are not there.
            self.check(n, len, AccessKind::Read)?;
        }
        bytes.resize(len, 0);
        let read = self.machine.space.read_into(self.arg(n), bytes);
        read.map_err(|fault| HelperProblem::Access { arg: n, fault })
    }

    /// Copies bytes to where argument `n` points.
    ///
    /// # Errors
    /// [`HelperProblem::Access`] unless all of them may be written.
    pub fn write(&mut self, n: usize, bytes: &[u8]) -> Result<(), HelperProblem> {
        let written = self.machine.space.write(self.arg(n), bytes);
        written.map_err(|fault| HelperProblem::Access { arg: n, fault })
    }

    /// Whether `len` bytes that argument `n` points to may be accessed.
    ///
    /// # Errors
    /// [`HelperProblem::Access`] unless all of them may.
    pub fn check(&self, n: usize, len: usize, kind: AccessKind) -> Result<(), HelperProblem> {
        if len == 0 {
            return Ok(());
        }
        let checked = self.machine.space.check(self.arg(n), len, kind);
        checked.map_err(|fault| HelperProblem::Access { arg: n, fault })
    }

    /// The map that argument `n` points to.
    ///
    /// # Errors
    /// [`HelperProblem::Argument`] where it is none.
    pub fn map(&self, n: usize) -> Result<(MapHandle, Arc<dyn Map>), HelperProblem> {
        let handle = self.map_handle(n)?;
        Ok((handle, self.map_of(n, handle)?.clone()))
    }

    /// The handle of the map that argument `n` points to.
    ///
    /// # Errors
    /// [`HelperProblem::Argument`] where it is none.
    pub fn map_handle(&self, n: usize) -> Result<MapHandle, HelperProblem> {
        self.machine
            .map_at(self.arg(n))
            .ok_or_else(|| self.wrong(n, "a map"))
    }

    /// The map that argument `n`, whose handle this is, points to.
    pub(super) fn map_of(
        &self,
        n: usize,
        handle: MapHandle,
    ) -> Result<&Arc<dyn Map>, HelperProblem> {
        let map = self.machine.map(handle);
        map.ok_or_else(|| self.wrong(n, "a map"))
    }

    /// The error for an argument that is not what it should be.
    #[must_use]
    pub fn wrong(&self, n: usize, wanted: &'static str) -> HelperProblem {
        HelperProblem::Argument {
            arg: n,
            found: self.machine.pointer(self.arg(n)),
            wanted,
        }
    }

    /// Fires an event in the middle of the run, for a mock that stands for a helper which
    /// reaches a traced function: programs that are attached there run, unless those that
    /// are active on the CPU keep them from it, as in Linux. What came of it is in the
    /// outcome of the run, too ([`Outcome::nested`]).
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
    /// [`HelperProblem::Other`] for an event that can't be.
    pub fn fire(&mut self, event: &Event) -> Result<Outcome, HelperProblem> {
        self.machine.interrupt(Level::Task, event)
    }

    /// Calls the program's function that argument `n` points to.
    ///
    /// # Errors
    /// [`HelperProblem::Callback`] when it stops before its end.
    pub fn call_back(&mut self, n: usize, args: [u64; 5]) -> Result<u64, HelperProblem> {
        let function = self.arg(n);
        let result = self.engine.call_back(self.machine, function, args);
        result.map_err(HelperProblem::Callback)
    }
}

/// The error for a map that a helper can't be called on.
#[cold]
pub(super) fn unfit(arg: usize, map: &dyn Map) -> HelperProblem {
    HelperProblem::MapType {
        arg,
        map: map.def().name.clone(),
        map_type: map.def().map_type,
    }
}
