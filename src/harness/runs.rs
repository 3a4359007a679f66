//! Prepared runs of one program and their context: the common part of
//! [`Runner`](super::Runner) and `Runners`.

use std::sync::Arc;

use super::error::Result;
use crate::engine::{Finished, Prepared};
use crate::program::Program;
use crate::spec::ProgType;
use crate::vm::events::{Event, EventError, EventKind};
use crate::vm::memory::{Address, Body, SharedBytes};
use crate::vm::{Machine, RanOn};

/// Prepared runs of a program on an event in a machine's memory.
pub(super) struct Runs<'v> {
    prepared: Prepared<'v>,
    /// The value of r1 at the start.
    address: u64,
    context: Option<Context>,
    /// Whether contexts differ in length.
    grows: bool,
    pub program: &'v Program,
    /// The last completed run.
    pub last: Option<Finished>,
}

/// The context's bytes.
struct Context {
    bytes: Arc<SharedBytes>,
    /// How many bytes at the start are hidden from programs.
    hidden: usize,
    has_pointers: bool,
}

impl Context {
    /// Copies bytes to the start, at most as many as fit, and zeroes the rest.
    #[inline]
    fn fill(&self, bytes: &[u8]) {
        const ZEROS: [u8; 64] = [0; 64];
        if let Some(seen) = bytes.get(self.hidden..) {
            self.bytes.write(self.hidden, seen);
        }
        let mut at = bytes.len().max(self.hidden);
        while let Some(rest) = self.bytes.len().checked_sub(at).filter(|rest| *rest > 0) {
            let zeros = &ZEROS[..rest.min(ZEROS.len())];
            self.bytes.write(at, zeros);
            at += zeros.len();
        }
    }

    /// The context of the region at an address.
    fn of(machine: &Machine, at: u64) -> Option<Self> {
        let region = machine.space.region(Address::from_register(at)?)?;
        match &region.body {
            Body::Bytes { bytes, .. } => Some(Self {
                bytes: bytes.clone(),
                hidden: region.hidden as usize,
                has_pointers: !region.pointers.is_empty(),
            }),
            Body::Elements(_) | Body::Pages(_) | Body::Object(_) | Body::Opaque => None,
        }
    }
}

impl<'v> Runs<'v> {
    /// Prepares runs on an event placed in the machine's memory at `address`.
    pub fn new(
        machine: &Machine,
        prepared: Prepared<'v>,
        address: u64,
        program: &'v Program,
        event: &Event,
    ) -> Self {
        Self {
            prepared,
            address,
            context: Context::of(machine, address),
            grows: matches!(event.kind(), EventKind::Tracepoint | EventKind::Bytes),
            program,
            last: None,
        }
    }

    /// Runs the program once. `machine` must be the one it was prepared for, with its event
    /// as the current one.
    // An entry is so short that each jump counts: what many runs skip is in functions marked
    // `cold`, which the compiler places aside. Always inlined, so that the result is in registers:
    // one in memory is read in other pieces than it was written, for which the processor waits.
    #[inline(always)]
    pub fn run(&mut self, machine: &mut Machine) -> Result<Finished> {
        machine.settle()?;
        let is_member = self.program.prog_type == ProgType::StructOps;
        if is_member && self.last.is_some() {
            machine.pass_references();
        }
        let finished = self.prepared.start(machine)?;
        if is_member {
            machine.take_returned(finished.r0);
        }
        self.last = Some(finished);
        Ok(finished)
    }

    /// The engine that runs the program, or ran it after a tail call.
    pub const fn ran_on(&self) -> RanOn {
        self.prepared.ran_on()
    }

    /// Sets the next run's context to these bytes followed by zeros.
    ///
    /// # Errors
    /// `Error::Event` for more bytes than the context has, unless contexts differ in
    /// length, and for one that holds pointers.
    #[inline]
    pub fn set_context(&mut self, machine: &mut Machine, bytes: &[u8]) -> Result<()> {
        match &self.context {
            Some(context) if !context.has_pointers && bytes.len() <= context.bytes.len() => {
                context.fill(bytes);
                Ok(())
            }
            _ => self.grow_context(machine, bytes),
        }
    }

    /// The same when the bytes don't fit: records of one tracepoint differ in length
    /// because of strings, and plain bytes have no fixed length.
    #[cold]
    fn grow_context(&mut self, machine: &mut Machine, bytes: &[u8]) -> Result<()> {
        let program = &self.program.name;
        let problem = match &mut self.context {
            Some(context) if context.has_pointers => {
                format!("can't be set for '{program}': it holds pointers")
            }
            Some(context) if self.grows => {
                context.bytes = Arc::new(SharedBytes::zeroed(bytes.len()));
                context.fill(bytes);
                let at = Address::from_register(self.address);
                let space = &mut machine.space;
                if let Some(mut region) = at.and_then(|at| space.region_mut(at)) {
                    region.body = Body::Bytes {
                        bytes: context.bytes.clone(),
                        window: 0..bytes.len(),
                    };
                }
                self.prepared.move_context(context.bytes.host_address());
                return Ok(());
            }
            Some(context) => {
                let (room, len) = (context.bytes.len(), bytes.len());
                format!("of '{program}' has {room} bytes, {len} given")
            }
            None => format!("of '{program}' can't be set: it has no bytes"),
        };
        Err(EventError::Context { problem }.into())
    }
}
