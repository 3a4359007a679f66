//! The beginning and the end of runs, and the running program.

use super::run_state::Current;
use super::state::Machine;
use crate::spec::ProgType;
use crate::vm::events::Placed;
use crate::vm::events::attach::Site;
use crate::vm::memory::Space;
use crate::vm::world::kernel::KernelError;

impl Machine {
    /// The running program, if there is one.
    #[must_use]
    pub const fn current(&self) -> Option<&Current> {
        self.run.current.as_ref()
    }

    /// Where the running program is attached, as far as helpers know it.
    pub const fn site(&mut self) -> Option<&mut Site> {
        match &mut self.run.current {
            Some(current) => Some(&mut current.placed.site),
            None => None,
        }
    }

    /// The running program, and the memory with its context.
    pub(in crate::vm) fn current_mut(&mut self) -> Option<(&mut Current, &mut Space)> {
        Some((self.run.current.as_mut()?, &mut self.space))
    }

    /// A program of this type begins to run on an event.
    ///
    /// # Errors
    /// [`KernelError::Full`] if there is no address left for the event's socket.
    pub fn enter(&mut self, prog_type: ProgType, placed: Placed) -> Result<(), KernelError> {
        self.run.current = Some(Current { prog_type, placed });
        self.pass_references();
        self.point_to_socket()
    }

    /// Gives the program that begins the references among its arguments.
    #[cold]
    pub fn pass_references(&mut self) {
        if let Some(current) = &self.run.current {
            for object in &current.placed.references {
                self.run.held.acquire(*object);
            }
        }
    }

    /// Takes the reference that a member of a structure of operations returns, if it returns one.
    #[cold]
    pub fn take_returned(&mut self, r0: u64) {
        let is_member = |current: &Current| current.prog_type == ProgType::StructOps;
        if self.run.current.as_ref().is_some_and(is_member) {
            self.run.held.release(r0);
        }
    }

    /// Ends the program: releases its locks and references, and removes its event from
    /// memory.
    pub fn leave(&mut self) {
        if !self.run.locks.is_empty() {
            self.release_locks();
        }
        self.forget_sockets();
        self.remove_event_storage();
        self.forget_held();
        if let Some(current) = &self.run.current {
            current.placed.remove(&mut self.space);
        }
        self.run.current = None;
    }

    /// Swaps the current event for `other`: for programs that run by turns, each on an event
    /// that stays in memory.
    pub const fn exchange_event(&mut self, other: &mut Option<Current>) {
        std::mem::swap(&mut self.run.current, other);
    }

    /// Releases the locks of a program that faulted: programs on other CPUs may wait for them.
    #[cold]
    fn release_locks(&mut self) {
        for lock in std::mem::take(&mut self.run.locks) {
            // It was there when the lock was taken, and maps are never removed.
            let _ = self.space.store(lock, 4, 0);
        }
    }

    /// `len` bytes of the current packet, `at` bytes from the program's `data` pointer. Very
    /// negative offsets are relative to a header ([`Placed::legacy_bytes`]). `None` if there
    /// is no packet or it does not have these bytes.
    #[must_use]
    pub fn packet_bytes(&self, at: i32, len: usize) -> Option<Vec<u8>> {
        self.run
            .current
            .as_ref()?
            .placed
            .legacy_bytes(&self.space, at, len)
    }
}
