//! Checks the verifier's states against runs: at each instruction of a run, registers and
//! stack slots must lie in a state that the verifier's exploration recorded there.

use std::sync::Arc;

use super::error::Result;
use super::vm::Vm;
use crate::engine::{Step, Watch, WatchedFrame};
use crate::isa::Reg;
use crate::util::{MapId, Pc};
use crate::verifier::oracle::{
    Agreement, Held, HeldDynptr, HeldIterator, ObjectPlace, PacketEnds, Run, Trace, ValuePlace,
    Violation,
};
use crate::vm::dynptr::{Dynptr, DynptrKind};
use crate::vm::events::Event;
use crate::vm::memory::{AccessKind, Address, Body, Problem, Region};
use crate::vm::{Outcome, ProgramHandle};

/// Checks runs of a program against a [`Trace`] of its verification.
///
/// ```
/// use std::sync::Arc;
/// use bpflab::harness::Oracle;
/// use bpflab::isa::assemble;
/// use bpflab::program::Program;
/// use bpflab::spec::ProgType;
/// use bpflab::verifier::{Options, trace};
/// use bpflab::vm::{World, events::Event};
/// use bpflab::Vm;
///
/// let insns = assemble("r0 = *(u32 *)(r1 +0)\nr0 &= 7\nexit")?;
/// let program = Arc::new(Program::new("low", ProgType::SocketFilter, insns));
/// let trace = trace(&program, &Options::default(), 1000)?;
///
/// let mut vm = Vm::with_world(World::default());
/// let handle = vm.load_programs(&[], vec![program])?[0];
/// let event = Event::packet(vec![0; 64]);
/// let checked = Oracle::new(&trace).run(&mut vm, handle, &event);
/// assert_eq!((checked.held, checked.violation), (3, None));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Oracle<'t> {
    trace: &'t Trace,
    limit: u64,
}

/// The result of a checked run.
#[derive(Debug)]
#[non_exhaustive]
pub struct OracleReport {
    /// The outcome as without an oracle. An accepted program must not fault.
    pub outcome: Result<Outcome>,
    /// Instructions at which registers and stack lay in a recorded state.
    pub held: u64,
    /// Instructions that were not checked: the recorded exploration ended before, or the
    /// limit was reached.
    pub unknown: u64,
    /// The first instruction at which a register or stack slot lay in no recorded state.
    pub violation: Option<Violation>,
}

impl<'t> Oracle<'t> {
    /// Creates an oracle from a trace.
    #[must_use]
    pub const fn new(trace: &'t Trace) -> Self {
        Self {
            trace,
            limit: u64::MAX,
        }
    }

    /// Limits the checks to this many instructions of a run.
    #[must_use]
    pub const fn with_limit(self, limit: u64) -> Self {
        Self { limit, ..self }
    }

    /// Runs the program of the trace, loaded as `program`, on an event. After a tail
    /// call nothing is checked: that is another program. If the trace is that of an extension,
    /// `program` is the one that it extends, of which nothing is checked.
    pub fn run(&self, vm: &mut Vm, program: ProgramHandle, event: &Event) -> OracleReport {
        let mut watcher = Watcher {
            oracle: *self,
            context: None,
            done: false,
            held: 0,
            unknown: 0,
            violation: None,
        };
        let outcome = vm.run_watched(program, event, &mut watcher);
        OracleReport {
            outcome,
            held: watcher.held,
            unknown: watcher.unknown,
            violation: watcher.violation,
        }
    }
}

struct Watcher<'t> {
    oracle: Oracle<'t>,
    /// The value of r1 at the start.
    context: Option<u64>,
    /// Whether the run has left the program, or a violation was found.
    done: bool,
    held: u64,
    unknown: u64,
    violation: Option<Violation>,
}

impl Watch for Watcher<'_> {
    fn before(&mut self, step: &Step<'_>) {
        let trace = self.oracle.trace;
        let first = step
            .frames
            .last()
            .map_or(0, |frame| frame.regs[Reg::R1.index()]);
        let context = *self.context.get_or_insert(first);
        let current = step.image.program();
        let extended = trace.program().attach_prog.known();
        if extended.is_some_and(|target| Arc::ptr_eq(current, &target.program)) {
            return;
        }
        let is_elsewhere = !Arc::ptr_eq(current, trace.program());
        let frames = step.frames.get(step.outer..).unwrap_or_default();
        // A tail call from a function to the program itself.
        let mut callees = frames.iter().skip(1);
        self.done |= is_elsewhere || callees.any(|frame| frame.start == Pc(0));
        if self.done || self.held >= self.oracle.limit {
            self.unknown += 1;
            return;
        }
        let seen = Seen {
            step,
            frames,
            context,
        };
        match trace.check(&seen) {
            Agreement::Holds => self.held += 1,
            Agreement::Unknown => self.unknown += 1,
            Agreement::Violated(violation) => {
                self.violation = Some(*violation);
                self.done = true;
            }
        }
    }
}

/// A step of a run, in the form that the trace checks.
struct Seen<'a> {
    step: &'a Step<'a>,
    /// The frames of the program.
    frames: &'a [WatchedFrame],
    context: u64,
}

impl Run for Seen<'_> {
    fn pc(&self) -> Pc {
        self.step.pc
    }

    fn depth(&self) -> usize {
        self.frames.len()
    }

    fn start(&self, frame: usize) -> Pc {
        let found = self.frames.get(frame);
        found.map_or(Pc(0), |frame| frame.start)
    }

    fn callsite(&self, frame: usize) -> Option<Pc> {
        // The first one may be called by another program.
        self.frames.get(frame).filter(|_| frame > 0)?.callsite
    }

    fn is_callback(&self, frame: usize) -> bool {
        let found = self.frames.get(frame).filter(|_| frame > 0);
        found.is_some_and(|frame| frame.is_callback)
    }

    fn reg(&self, frame: usize, reg: Reg) -> u64 {
        let found = self.frames.get(frame);
        found.map_or(0, |frame| frame.regs[reg.index()])
    }

    fn slot(&self, frame: usize, slot: usize) -> Option<u64> {
        let below = (slot as u64 + 1) * 8;
        let end = self.frames.get(frame)?.regs[Reg::FP.index()];
        self.step
            .machine
            .space
            .load(end.wrapping_sub(below), 8)
            .ok()
    }

    fn context(&self) -> u64 {
        self.context
    }

    fn packet(&self) -> Option<PacketEnds> {
        let machine = self.step.machine;
        let placed = &machine.current()?.placed;
        let base = placed.packet_base()?;
        let range = placed.packet_range(&machine.space)?;
        Some(PacketEnds {
            meta: base.plus(range.meta as u64),
            data: base.plus(range.data as u64),
            end: base.plus(range.end as u64),
        })
    }

    fn map(&self, map: MapId) -> Option<u64> {
        let handle = *self.step.image.maps().get(map.index())?;
        self.step.machine.map_address(handle)
    }

    fn value(&self, map: Option<MapId>, address: u64) -> Option<ValuePlace> {
        let machine = self.step.machine;
        let address = Address::from_register(address)?;
        if let Some(map) = map {
            let handle = *self.step.image.maps().get(map.index())?;
            let first = Address::from_register(machine.value_address(handle, 0)?)?;
            if first.region() != address.region() {
                return None;
            }
        }
        match &machine.space.region(address)?.body {
            Body::Elements(slab) => Some(ValuePlace {
                offset: address.offset(),
                span: Region::element_span(slab.value_size()),
            }),
            _ => None,
        }
    }

    fn function(&self, start: Pc) -> u64 {
        self.step.image.function_address(i64::from(start.0))
    }

    fn is_readable(&self, address: u64, len: u64) -> bool {
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        let space = &self.step.machine.space;
        let writable = || space.check(address, len, AccessKind::Write).is_ok();
        space.check(address, len, AccessKind::Read).is_ok() || writable()
    }

    fn is_freed(&self, address: u64) -> bool {
        let access = self.step.machine.space.check(address, 1, AccessKind::Read);
        access.is_err_and(|fault| fault.problem == Problem::Freed)
    }

    fn object(&self, address: u64) -> Option<ObjectPlace> {
        let memory = self.step.machine.world.kernel_memory();
        let object = memory.object_at(address)?;
        let ty = object.block_type()?;
        Some(ObjectPlace {
            btf: ty.btf.clone(),
            ty: ty.id,
            offset: address.wrapping_sub(object.address()),
        })
    }

    fn dynptr(&self, address: u64) -> Option<HeldDynptr> {
        let machine = self.step.machine;
        let found = Dynptr::load(&machine.space, address).ok()?;
        if found.is_null() {
            return Some(HeldDynptr { kind: None });
        }
        let kind = found.kind()?;
        // The memory of packets moves.
        let start = found.data.wrapping_add(found.offset.into());
        let is_plain = matches!(kind, DynptrKind::Local | DynptrKind::Ringbuf);
        if is_plain && !self.is_readable(start, found.size().into()) {
            return None;
        }
        let kind = Some(kind.name());
        Some(HeldDynptr { kind })
    }

    fn iterator(&self, address: u64) -> Option<HeldIterator> {
        let (structure, drained) = self.step.machine.held_iterator(address)?;
        Some(HeldIterator { structure, drained })
    }

    fn held(&self) -> Held {
        let machine = self.step.machine;
        let (rcu, preempt) = machine.critical_sections();
        Held {
            references: machine.held_references().to_vec(),
            count: machine.count_references(),
            interrupts: machine.saved_interrupts().to_vec(),
            rcu,
            preempt,
        }
    }
}
