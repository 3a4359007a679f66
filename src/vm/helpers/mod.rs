//! Bodies of helpers, by topic. Which helper has which body stands in the helper
//! table of [`spec`](crate::spec); this module expands that column.

use std::sync::Arc;

use super::fault::{Fault, HelperProblem};
use super::handle::MapHandle;
use super::machine::Machine;
use super::maps::Map;
use crate::spec::helpers as spec;
use crate::util::HelperId;

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
    ) -> Result<u64, Fault>;
}

/// A helper's body: r0, or why the program can't go on. An error that the program
/// is told of is a result, negated ([`Errno::to_ret`](crate::util::Errno::to_ret)).
pub type Body = fn(&mut Call<'_>) -> Result<u64, HelperProblem>;

/// A helper as a test supplies it.
pub type Mock = Box<dyn FnMut(&mut Call<'_>) -> Result<u64, HelperProblem> + Send>;

impl Call<'_> {
    /// Argument `n`, from 1 to 5.
    #[must_use]
    pub fn arg(&self, n: usize) -> u64 {
        n.checked_sub(1).and_then(|n| self.args.get(n)).copied().unwrap_or_default()
    }

    /// Copies out `len` bytes that argument `n` points to.
    ///
    /// # Errors
    /// [`HelperProblem::Access`] unless all of them may be read.
    pub fn read(&self, n: usize, len: usize) -> Result<Vec<u8>, HelperProblem> {
        let read = self.machine.space.read(self.arg(n), len);
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

    /// The map that argument `n` points to.
    ///
    /// # Errors
    /// [`HelperProblem::Argument`] where it is none.
    pub fn map(&self, n: usize) -> Result<(MapHandle, Arc<dyn Map>), HelperProblem> {
        let handle = self.machine.map_at(self.arg(n));
        let found = handle.and_then(|handle| Some((handle, self.machine.map(handle)?.clone())));
        found.ok_or_else(|| self.wrong(n, "a map"))
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

    /// Calls the program's function that argument `n` points to.
    ///
    /// # Errors
    /// [`HelperProblem::Callback`] when it stops before its end.
    pub fn call_back(&mut self, n: usize, args: [u64; 5]) -> Result<u64, HelperProblem> {
        let function = self.arg(n);
        let result = self.engine.call_back(self.machine, function, args);
        result.map_err(|fault| HelperProblem::Callback(Box::new(fault)))
    }
}

/// Does what `call helper` does: the test's own body if there is one, or ours.
///
/// # Errors
/// [`HelperProblem`] when there is no body or an argument is not what it should be.
pub fn call(helper: HelperId, call: &mut Call<'_>) -> Result<u64, HelperProblem> {
    // Out of the table while it runs: a mock has the whole machine at hand.
    if let Some(mut mock) = call.machine.mocks.remove(&helper) {
        let result = mock(call);
        call.machine.mocks.entry(helper).or_insert(mock);
        return result;
    }
    match body(helper) {
        Some(body) => body(call),
        None => Err(spec::helper(helper)
            .map_or(HelperProblem::Unknown, |helper| HelperProblem::Missing(helper.name))),
    }
}
