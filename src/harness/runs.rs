//! Runs of one program that were made ready, and the context that they find: what a
//! [`Runner`](super::Runner) and several [`Runners`](super::Runners) have in common.

use std::sync::Arc;

use super::error::Result;
use crate::interp::{Finished, Prepared};
use crate::program::Program;
use crate::vm::events::{Event, EventError, EventKind};
use crate::vm::memory::{Address, Body, SharedBytes};
use crate::vm::{Machine, RanOn};

/// Runs of a program on an event that lies in a machine's memory.
pub(super) struct Runs<'v> {
    prepared: Prepared<'v>,
    /// What r1 holds at the start.
    address: u64,
    context: Option<Context>,
    /// Whether contexts differ in length.
    grows: bool,
    pub program: &'v Program,
    /// The last run that came to its end.
    pub last: Option<Finished>,
}

/// The bytes of the context.
struct Context {
    bytes: Arc<SharedBytes>,
    /// How many at the start are not for programs.
    hidden: usize,
    has_pointers: bool,
}

impl Context {
    /// Puts bytes there, at most as many as there are, and zeros behind them.
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

    /// That of the region at an address.
    fn of(machine: &Machine, at: u64) -> Option<Self> {
        let region = machine.space.region(Address::from_register(at)?)?;
        match &region.body {
            Body::Bytes { bytes, .. } => Some(Self {
                bytes: bytes.clone(),
                hidden: region.hidden as usize,
                has_pointers: !region.pointers.is_empty(),
            }),
            Body::Elements(_) | Body::Pages(_) | Body::Opaque => None,
        }
    }
}

impl<'v> Runs<'v> {
    /// Runs on an event that was placed in the machine's memory at `address`.
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

    /// Runs the program once, on the machine that it was made ready for and that has its
    /// event as the current one.
    #[inline]
    pub fn run(&mut self, machine: &mut Machine) -> Result<Finished> {
        machine.settle()?;
        let finished = self.prepared.start(machine)?;
        self.last = Some(finished);
        Ok(finished)
    }

    /// The engine that runs the program, or led on by a tail call ran it.
    pub const fn ran_on(&self) -> RanOn {
        self.prepared.ran_on()
    }

    /// Gives the next run a context with these bytes, and zeros behind them.
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

    /// The same where there is no room for the bytes: strings make records of one
    /// tracepoint differ in length, and of bytes nobody says how many there are.
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
                format!("of '{program}' has {room} bytes, {len} were given")
            }
            None => format!("of '{program}' can't be set: it has no bytes"),
        };
        Err(EventError::Context { problem }.into())
    }
}
