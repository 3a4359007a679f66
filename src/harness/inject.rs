//! Fault injection: calls that fail because the test says so.

use super::error::Result;
use super::vm::Vm;
use crate::vm::inject::{Injection, InjectionHandle, Injections};

impl Vm {
    /// Makes calls of helpers and kfuncs fail from now on, on this CPU and on
    /// [CPUs](Self::cpu) created later. The handle counts the failed calls, and the outcome
    /// lists them.
    ///
    /// A failed call has none of the function's effects, and does not reach a
    /// [mock](Self::mock_helper). Runs with injections begin on the checked interpreter.
    ///
    /// ```
    /// use bpflab::util::Errno;
    /// use bpflab::vm::Injection;
    /// use bpflab::{Object, Vm};
    ///
    /// # fn main() -> bpflab::Result<()> {
    /// let mut vm = Vm::new(Object::open("tests/objects/perf_output.bpf.o")?)?;
    /// let full = vm.inject(Injection::buffer_full().on_map("records").nth(2))?;
    /// vm.attach_all()?;
    ///
    /// let open = vm.tracepoint("syscalls/sys_enter_openat")?;
    /// let first = vm.fire(open.clone())?;
    /// assert_eq!(first.records("records").count(), 1);
    /// let second = vm.fire(open)?;
    /// assert_eq!(second.records("records").count(), 0);
    /// assert_eq!(second.injected[0].errno, Some(Errno::ENOSPC));
    /// assert_eq!((full.calls(), full.count()), (2, 1));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Inject`](super::Error::Inject) for a function that does not exist or can't
    /// fail, [`Error::NoMap`](super::Error::NoMap) for an unknown map.
    pub fn inject(&mut self, injection: Injection) -> Result<InjectionHandle> {
        injection.check()?;
        if let Some(map) = &injection.map {
            self.map(map)?;
        }
        Ok(self.machine.injections.add(injection))
    }

    /// Removes all injections.
    pub fn clear_injections(&mut self) -> &mut Self {
        self.machine.injections = Injections::default();
        self
    }
}
