//! What a program requires of its context, and whether a run may start.

use super::lowered::{Callee, Lowered};
use crate::isa::Size;
use crate::program::Program;
use crate::spec::context::{self, Mode, Yield};
use crate::vm::memory::{Address, Body, PointerField, SharedBytes};
use crate::vm::{Fallback, Machine};

/// The result of an access to a context field, and the unsigned offset; none where the
/// kernel has no such field.
pub(super) fn field_at(
    program: &Program,
    off: i32,
    size: Size,
    mode: Mode,
) -> Option<(u32, Yield)> {
    let off = u32::try_from(off).ok()?;
    let program = program.owner_of_context();
    let attach = program.prog_type.attach_type(program.expected_attach_type);
    let bytes = u32::from(size.bytes());
    let yields = context::check(program.prog_type, attach, program.arch, off, bytes, mode)?;
    Some((off, yields))
}

impl Lowered {
    /// Checks whether a fast engine may run the program now on the event whose context r1
    /// points to. Returns the block with the context's bytes.
    ///
    /// # Errors
    /// Why the checked interpreter has to run it:
    /// - the machine is not the one that the program is bound to, or its number of CPUs has
    ///   changed since,
    /// - the context is not that of the machine's current event, or too small, or its
    ///   pointers were not placed with it,
    /// - a helper that the program calls is mocked, or faults are injected.
    pub fn may_start<'m>(
        &self,
        machine: &'m Machine,
        r1: u64,
    ) -> Result<&'m SharedBytes, Fallback> {
        let is_bound = machine.space.id() == self.space && machine.world.cpus() == self.cpus;
        if !is_bound {
            return Err(Fallback::Machine);
        }
        if self.calls_mock(machine) {
            return Err(Fallback::Mocked);
        }
        if !machine.injections.is_empty() {
            return Err(Fallback::Injected);
        }
        if machine.finds_uninit() {
            return Err(Fallback::Uninit);
        }
        let current = machine.current().ok_or(Fallback::Event)?;
        let placed = current.placed.context;
        let prog_type = self.program.owner_of_context().prog_type;
        if current.prog_type != prog_type || placed.register() != r1 {
            return Err(Fallback::Event);
        }
        let bytes = self.context_bytes(machine, placed);
        bytes.ok_or(Fallback::Context)
    }

    fn calls_mock(&self, machine: &Machine) -> bool {
        machine.has_mocks()
            && self.helpers.iter().any(|helper| match &helper.callee {
                Callee::Helper(id) => machine.is_mocked(*id),
                Callee::Kfunc(callee) => machine.is_mocked_kfunc(callee.name()),
                Callee::Attached(_) => false,
            })
    }

    fn context_bytes<'m>(&self, machine: &'m Machine, at: Address) -> Option<&'m SharedBytes> {
        let region = machine.space.region(at)?;
        let Body::Bytes { bytes, window } = &region.body else {
            return None;
        };
        if window.start != 0 || window.end < self.context.len {
            return None;
        }
        let has = |&(offset, size, or_null): &(u32, u32, bool)| {
            let placed = |f: &PointerField| f.offset == offset && f.size == size;
            let null = || bytes.load(offset as usize, size as usize) == Some(0);
            region.pointers.iter().any(placed) || or_null && null()
        };
        self.context.pointers.iter().all(has).then_some(&**bytes)
    }
}
