//! The state of a machine: memory, maps, the world and the outputs of programs.
//! Engines run programs on it; helpers act on it.

use std::fmt;
use std::sync::{Arc, Mutex};

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::attach::{Guards, Sessions, Site};
use super::cpus::{CpuClaim, CpuError};
use super::deferred::Deferred;
use super::event_storage::EventStorage;
use super::events::{Event, Placed};
use super::fault::{Fault, HelperProblem};
use super::handle::MapHandle;
use super::helpers::Mock;
use super::inject::Injections;
use super::kernel::{KernelError, KernelMemory};
use super::kfuncs::state::State as KfuncState;
use super::loaded::LoadedMap;
use super::maps::Record;
use super::memory::{Address, Pointer, Region, SharedBytes, Space, SpaceFull};
use super::names::Names;
use super::outcome::{Nested, Outcome, Output};
use super::output_buffer::{Destination, Emitted, OutputBuffer};
use super::probed::Probed;
use super::sockets::state::Sockets;
use super::world::World;
use crate::program::Program;
use crate::spec::ProgType;
use crate::util::HelperId;

/// One CPU with its memory, maps and world. One thread uses it at a time.
///
/// [`fork`](Self::fork) makes another CPU of the same machine for another thread.
pub struct Machine {
    /// The address space.
    pub space: Space,
    /// The mocked environment.
    pub world: World,
    /// The world's kernel memory, which the address space uses.
    kernel: KernelMemory,
    pub(super) maps: Vec<LoadedMap>,
    /// For each region of the address space, the map whose own address it is.
    pub(super) by_region: Vec<Option<MapHandle>>,
    /// Helpers that a test mocked. All CPUs share a mock; a lock allows one call at a time.
    pub(super) mocks: FxHashMap<HelperId, Arc<Mutex<Mock>>>,
    /// Injected failures of calls.
    pub injections: Injections,
    /// Ring-buffer records that programs reserved, the latest one last.
    reserved: SmallVec<[ReservedRecord; 2]>,
    /// Addresses of the `bpf_spin_lock`s that the program holds.
    pub(super) locks: SmallVec<[u64; 1]>,
    /// Local storage of objects that exist only during the current event.
    pub(super) event_storage: EventStorage,
    /// Deferred callbacks (timers, work queues), on all CPUs.
    pub(super) deferred: Arc<Deferred>,
    /// The deferred callback that runs now.
    pub(super) running: Option<u64>,
    /// Loads of unmapped addresses that read 0 ([`probed`](super::Outcome::probed)).
    probed: Probed,
    /// The state of kfuncs.
    pub(super) kfuncs: KfuncState,
    /// The result of `bpf_get_current_task`, once a program called it.
    task: Option<Address>,
    pub(super) outputs: OutputBuffer,
    current: Option<Current>,
    pub(super) sockets: Sockets,
    /// Which attached programs are active, and events in the middle of runs.
    pub(super) nesting: Nesting,
    cpu_claim: CpuClaim,
    /// The names that outcomes accept.
    names: Arc<Names>,
}

/// Fires an event on a machine in the middle of a run.
pub trait Fire: Send + Sync {
    /// Runs the programs that are attached to the event's hook.
    ///
    /// # Errors
    /// [`HelperProblem::Callback`] with the fault of a program that stopped,
    /// [`HelperProblem::Other`] if the event can't fire.
    fn fire(&self, machine: &mut Machine, event: &Event) -> Result<Outcome, HelperProblem>;
}

/// A CPU's state of attached programs while they run.
#[derive(Default)]
pub(super) struct Nesting {
    pub guards: Guards,
    pub sessions: Sessions,
    /// Fires events in the middle of runs.
    pub firing: Option<Arc<dyn Fire>>,
    /// Outcomes of such events, until they are taken.
    pub nested: Vec<Nested>,
}

/// A ring-buffer record that a program has reserved.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReservedRecord {
    /// The ring buffer.
    pub map: MapHandle,
    /// Position of the record in the map's data area.
    pub record: Record,
    /// The region that the program writes to.
    region: Address,
    /// The address that the program got.
    address: u64,
}

/// The state of one run: the program, its reserved records, locks, outputs and probed loads.
pub(super) struct RunState {
    current: Option<Current>,
    reserved: SmallVec<[ReservedRecord; 2]>,
    locks: SmallVec<[u64; 1]>,
    outputs: OutputBuffer,
    probed: Probed,
}

/// The running program, as far as helpers need to know it.
#[derive(Debug)]
pub struct Current {
    /// Its type.
    pub prog_type: ProgType,
    /// Its context, and the packet if it has one.
    pub placed: Placed,
}

impl Machine {
    /// A machine without maps.
    #[must_use]
    pub fn new(world: World) -> Self {
        Self {
            space: Space::over(world.kernel_memory().blocks().clone()),
            kernel: world.kernel_memory().clone(),
            cpu_claim: CpuClaim::first(world.cpu(), world.cpus()),
            world,
            maps: Vec::new(),
            by_region: Vec::new(),
            mocks: FxHashMap::default(),
            injections: Injections::default(),
            reserved: SmallVec::new(),
            locks: SmallVec::new(),
            event_storage: EventStorage::default(),
            deferred: Arc::default(),
            running: None,
            probed: Probed::default(),
            kfuncs: KfuncState::default(),
            task: None,
            outputs: OutputBuffer::default(),
            current: None,
            sockets: Sockets::default(),
            nesting: Nesting::default(),
            names: Arc::default(),
        }
    }

    /// Adds the names of a loaded program to those that outcomes accept.
    pub(crate) fn add_names(&mut self, program: &Program) {
        Arc::make_mut(&mut self.names).add_program(program);
    }

    /// An empty outcome.
    pub(crate) fn outcome(&self) -> Outcome {
        Outcome {
            names: Some(self.names.clone()),
            ..Outcome::default()
        }
    }

    /// Another CPU of the same machine. The CPUs share maps, the addresses of maps and
    /// functions, and mocked helpers (a lock allows one call at a time). Each CPU has its own
    /// world, outputs, stack, context, packet, reserved records and whatever the test put
    /// into its memory.
    ///
    /// Random numbers differ from CPU to CPU and are the same in every run.
    ///
    /// # Errors
    /// [`CpuError::Missing`] if the machine does not have this CPU, [`CpuError::Taken`]
    /// if it is in use.
    pub fn fork(&self, cpu: u32) -> Result<Self, CpuError> {
        Ok(Self {
            cpu_claim: self.cpu_claim.claim(cpu)?,
            space: self.space.fork(),
            kernel: self.kernel.clone(),
            world: self.world.on_cpu(cpu),
            maps: self.maps.clone(),
            by_region: self.by_region.clone(),
            mocks: self.mocks.clone(),
            injections: self.injections.fork(),
            reserved: SmallVec::new(),
            locks: SmallVec::new(),
            event_storage: EventStorage::default(),
            deferred: self.deferred.clone(),
            running: None,
            probed: Probed::default(),
            kfuncs: self.kfuncs.fork(),
            task: self.task,
            outputs: OutputBuffer::default(),
            current: None,
            sockets: self.sockets.fork(),
            nesting: Nesting::default(),
            names: self.names.clone(),
        })
    }

    /// Switches to the world's CPU and kernel memory, if they changed, and refreshes the
    /// current task. Call it before programs run: they rely on maps having values for the
    /// CPU number.
    ///
    /// # Errors
    /// [`CpuError::Taken`]; [`CpuError::Missing`] if the world was replaced by one with more
    /// CPUs.
    #[inline]
    pub fn settle(&mut self) -> Result<(), CpuError> {
        let kernel = self.world.kernel_memory().blocks();
        if self.cpu_claim.number() != self.world.cpu() || !kernel.same(self.space.kernel()) {
            self.move_to_world()?;
        }
        self.world.refresh();
        Ok(())
    }

    /// The world was moved to another CPU, or was replaced.
    #[inline(never)]
    fn move_to_world(&mut self) -> Result<(), CpuError> {
        let cpu = self.world.cpu();
        if self.cpu_claim.number() != cpu {
            self.cpu_claim = self.cpu_claim.claim(cpu)?;
        }
        let kernel = self.world.kernel_memory();
        if !kernel.blocks().same(self.space.kernel()) {
            // Loaded objects have added their types to the old kernel memory.
            kernel.adopt_types(&self.kernel);
            self.kernel = kernel.clone();
            self.space.set_kernel(kernel.blocks().clone());
        }
        Ok(())
    }

    /// Whether no other CPU of the machine is in use.
    pub(super) fn is_alone(&self) -> bool {
        self.may_add("").is_ok()
    }

    /// Checks that programs and maps can be added: no other CPU may be in use.
    ///
    /// # Errors
    /// [`CpuError::Shared`] with `what`, the kind of thing to add.
    pub fn may_add(&self, what: &'static str) -> Result<(), CpuError> {
        self.cpu_claim.check_alone(what)
    }

    /// Maps a reserved ring-buffer record at an address of its own, until
    /// [`unmap_record`](Self::unmap_record).
    pub(super) fn map_record(
        &mut self,
        map: MapHandle,
        area: Arc<SharedBytes>,
        record: Record,
    ) -> Result<u64, SpaceFull> {
        let name = self.maps.get(map.index()).ok_or(SpaceFull)?;
        let name = name.record_name.clone();
        let window = record.at..record.at + record.len;
        let region = self.space.insert(Region::window(name, area, window))?;
        let address = region.plus(record.at as u64);
        self.reserved.push(ReservedRecord {
            map,
            record,
            region,
            address,
        });
        Ok(address)
    }

    /// Unmaps the reserved record at an address.
    pub(super) fn unmap_record(&mut self, address: u64) -> Option<ReservedRecord> {
        let at = self
            .reserved
            .iter()
            .rposition(|reserved| reserved.address == address)?;
        let reserved = self.reserved.remove(at);
        self.space.remove(reserved.region);
        Some(reserved)
    }

    /// Ring-buffer records that programs have reserved and neither submitted nor discarded,
    /// and the references that the running program has not released. The verifier rejects
    /// programs that can end with any.
    #[must_use]
    pub fn unreleased(&self) -> Vec<Pointer> {
        if self.reserved.is_empty() && self.holds_nothing() {
            return Vec::new();
        }
        let records = self.reserved.iter().map(|reserved| reserved.address);
        let mut addresses: Vec<_> = records.chain(self.unreleased_sockets()).collect();
        addresses.sort_unstable();
        let records = addresses.into_iter().map(|address| self.pointer(address));
        records.chain(self.still_held()).collect()
    }

    /// Whether the running program holds no references to sockets or from kfuncs.
    fn holds_nothing(&self) -> bool {
        self.sockets.holds_nothing() && self.kfuncs.holds_nothing()
    }

    /// The address of the current task's `struct task_struct`.
    pub(super) fn task_address(&self) -> Result<u64, HelperProblem> {
        Ok(self.world.task_address()?)
    }

    /// The running program, if there is one.
    #[must_use]
    pub const fn current(&self) -> Option<&Current> {
        self.current.as_ref()
    }

    /// Where the running program is attached, as far as helpers know it.
    pub const fn site(&mut self) -> Option<&mut Site> {
        match &mut self.current {
            Some(current) => Some(&mut current.placed.site),
            None => None,
        }
    }

    /// The running program, and the memory with its context.
    pub(super) fn current_mut(&mut self) -> Option<(&mut Current, &mut Space)> {
        Some((self.current.as_mut()?, &mut self.space))
    }

    /// A program of this type begins to run on an event.
    ///
    /// # Errors
    /// [`KernelError::Full`] if there is no address left for the event's socket.
    pub fn enter(&mut self, prog_type: ProgType, placed: Placed) -> Result<(), KernelError> {
        self.kfuncs.begin();
        self.current = Some(Current { prog_type, placed });
        self.point_to_socket()
    }

    /// Ends the program: releases its locks and references, and removes its event from
    /// memory.
    pub fn leave(&mut self) {
        if !self.locks.is_empty() {
            self.release_locks();
        }
        self.forget_sockets();
        self.remove_event_storage();
        self.forget_held();
        if let Some(current) = &self.current {
            current.placed.remove(&mut self.space);
        }
        self.current = None;
    }

    /// Swaps the current event for `other`: for programs that run by turns, each on an event
    /// that stays in memory.
    pub const fn exchange_event(&mut self, other: &mut Option<Current>) {
        std::mem::swap(&mut self.current, other);
    }

    /// Takes the state of the current run, so that another program can run.
    pub(super) fn take_run(&mut self) -> RunState {
        RunState {
            current: self.current.take(),
            reserved: std::mem::take(&mut self.reserved),
            locks: std::mem::take(&mut self.locks),
            outputs: std::mem::take(&mut self.outputs),
            probed: std::mem::take(&mut self.probed),
        }
    }

    /// Restores the state of a run.
    pub(super) fn put_run(&mut self, run: RunState) {
        self.current = run.current;
        self.reserved = run.reserved;
        self.locks = run.locks;
        self.outputs = run.outputs;
        self.probed = run.probed;
    }

    /// Releases the locks of a program that faulted: programs on other CPUs may wait for them.
    #[cold]
    fn release_locks(&mut self) {
        for lock in std::mem::take(&mut self.locks) {
            // It was there when the lock was taken, and maps are never removed.
            let _ = self.space.store(lock, 4, 0);
        }
    }

    /// `len` bytes of the current packet, `at` bytes from the program's `data` pointer. Very
    /// negative offsets are relative to a header ([`Placed::legacy_bytes`]). `None` if there
    /// is no packet or it does not have these bytes.
    #[must_use]
    pub fn packet_bytes(&self, at: i32, len: usize) -> Option<Vec<u8>> {
        self.current
            .as_ref()?
            .placed
            .legacy_bytes(&self.space, at, len)
    }

    /// Records an output of a program.
    pub fn output(&mut self, output: Output) {
        self.outputs.push(output);
    }

    /// Takes the outputs of programs since the last call.
    pub fn take_outputs(&mut self) -> Vec<Output> {
        if self.outputs.is_empty() {
            return Vec::new();
        }
        let mut outputs = std::mem::take(&mut self.outputs);
        let taken = outputs.take(|to, data| match to {
            Destination::Ring(map) => {
                let map = self.map_name(map);
                Output::RingBuf { map, data }
            }
            Destination::Perf(map, cpu) => {
                let map = self.map_name(map);
                Output::Perf { map, cpu, data }
            }
        });
        self.outputs = outputs;
        taken
    }

    /// Calls `each` with the outputs since the last call and removes them. Like
    /// [`take_outputs`](Self::take_outputs), without an allocation per record.
    pub fn drain_outputs(&mut self, each: impl FnMut(Emitted<'_>)) {
        self.outputs.drain(each);
    }

    /// Notes a load of an unmapped address that read 0, if there is room for it.
    #[cold]
    pub fn note_probed(&self, fault: impl FnOnce() -> Box<Fault>) {
        self.probed.note(fault);
    }

    /// Takes the loads of unmapped addresses since the last call, at most 16.
    pub fn take_probed(&mut self) -> Vec<Fault> {
        self.probed.take()
    }

    /// Mocks a helper on this CPU and on CPUs that are [forked](Self::fork) later.
    pub fn mock_helper(&mut self, helper: HelperId, body: Mock) {
        self.mocks.insert(helper, Arc::new(Mutex::new(body)));
    }

    /// Mocks a kfunc, like [`mock_helper`](Self::mock_helper).
    pub fn mock_kfunc(&mut self, name: &str, body: Mock) {
        self.kfuncs.mock(name, body);
    }

    /// Whether any helper or kfunc is mocked.
    #[must_use]
    pub fn has_mocks(&self) -> bool {
        !self.mocks.is_empty() || self.kfuncs.has_mocks()
    }

    /// Whether this helper is mocked.
    #[must_use]
    pub fn is_mocked(&self, helper: HelperId) -> bool {
        self.mocks.contains_key(&helper)
    }

    /// Describes what a register points to.
    #[must_use]
    pub fn pointer(&self, register: u64) -> Pointer {
        self.space.pointer(register)
    }
}

impl fmt::Debug for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Machine")
            .field("maps", &self.maps)
            .field("world", &self.world)
            .finish_non_exhaustive()
    }
}
