//! The state of a machine: memory, maps, the world and what programs gave out.
//! Engines run programs on it; helpers act on it.

use std::fmt;
use std::sync::{Arc, Mutex};

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::attach::{Guards, Sessions, Site};
use super::cpus::{CpuError, Seat};
use super::deferred::Deferred;
use super::events::{Event, Placed};
use super::fault::{Fault, HelperProblem};
use super::given::{Destination, Emitted, Given};
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
use super::passing::Passing;
use super::probed::Probed;
use super::sockets::state::Sockets;
use super::world::World;
use crate::program::Program;
use crate::spec::ProgType;
use crate::util::HelperId;

/// Memory, maps and world: all that programs act on.
///
/// One of them is one CPU, which one thread uses at a time. [`fork`](Self::fork) makes
/// another CPU of the same machine for another thread.
pub struct Machine {
    /// The address space.
    pub space: Space,
    /// The mocked outside.
    pub world: World,
    /// The kernel memory that the address space has: the world's.
    kernel: KernelMemory,
    pub(super) maps: Vec<LoadedMap>,
    /// For each region of the address space the map that it stands for.
    pub(super) by_region: Vec<Option<MapHandle>>,
    /// Helpers that a test replaced. All CPUs share a function, one at a time.
    pub(super) mocks: FxHashMap<HelperId, Arc<Mutex<Mock>>>,
    /// Calls that are to fail.
    pub injections: Injections,
    /// Memory that helpers lent to a program: ring-buffer records, the last one last.
    lent: SmallVec<[Lent; 2]>,
    /// Addresses of the `bpf_spin_lock`s that the program holds.
    pub(super) locks: SmallVec<[u64; 1]>,
    /// Storage of objects that are there for the event under way only.
    pub(super) passing: Passing,
    /// Callbacks that will run later, on all CPUs.
    pub(super) deferred: Arc<Deferred>,
    /// Which of them runs now.
    pub(super) running: Option<u64>,
    /// Loads that found nothing ([`probed`](super::Outcome::probed)).
    probed: Probed,
    /// What kernel functions keep.
    pub(super) kfuncs: KfuncState,
    /// What `bpf_get_current_task` returns, once it was asked for.
    task: Option<Address>,
    pub(super) given: Given,
    current: Option<Current>,
    pub(super) sockets: Sockets,
    /// Attached programs that are active, and events in the middle of runs.
    pub(super) nesting: Nesting,
    seat: Seat,
    /// What outcomes may be asked for.
    names: Arc<Names>,
}

/// Who can fire an event on a machine in the middle of a run.
pub trait Fire: Send + Sync {
    /// Runs the programs that are attached where the event happens.
    ///
    /// # Errors
    /// [`HelperProblem::Callback`] with the fault of a program that stopped,
    /// [`HelperProblem::Other`] for an event that can't be.
    fn fire(&self, machine: &mut Machine, event: &Event) -> Result<Outcome, HelperProblem>;
}

/// What a CPU keeps of attached programs while they run.
#[derive(Default)]
pub(super) struct Nesting {
    pub guards: Guards,
    pub sessions: Sessions,
    /// Who fires events meanwhile.
    pub firing: Option<Arc<dyn Fire>>,
    /// What came of such events, until it is collected.
    pub nested: Vec<Nested>,
}

/// A ring-buffer record that a program has reserved.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lent {
    /// The ring buffer.
    pub map: MapHandle,
    /// Where the record is in its data area.
    pub record: Record,
    /// The region that the program writes to.
    region: Address,
    /// What the program was given.
    address: u64,
}

/// The program that runs, and what it has reserved, locked, given out, and not found.
pub(super) struct OfRun {
    current: Option<Current>,
    lent: SmallVec<[Lent; 2]>,
    locks: SmallVec<[u64; 1]>,
    given: Given,
    probed: Probed,
}

/// The program that runs now, as helpers need to know it.
#[derive(Debug)]
pub struct Current {
    /// Its type.
    pub prog_type: ProgType,
    /// Its context, and the packet if it has one.
    pub placed: Placed,
}

impl Machine {
    /// A machine without maps in this world.
    #[must_use]
    pub fn new(world: World) -> Self {
        Self {
            space: Space::over(world.kernel_memory().blocks().clone()),
            kernel: world.kernel_memory().clone(),
            seat: Seat::first(world.cpu(), world.cpus()),
            world,
            maps: Vec::new(),
            by_region: Vec::new(),
            mocks: FxHashMap::default(),
            injections: Injections::default(),
            lent: SmallVec::new(),
            locks: SmallVec::new(),
            passing: Passing::default(),
            deferred: Arc::default(),
            running: None,
            probed: Probed::default(),
            kfuncs: KfuncState::default(),
            task: None,
            given: Given::default(),
            current: None,
            sockets: Sockets::default(),
            nesting: Nesting::default(),
            names: Arc::default(),
        }
    }

    /// Says which program is loaded, so that outcomes know its name.
    pub(crate) fn add_names(&mut self, program: &Program) {
        Arc::make_mut(&mut self.names).add_program(program);
    }

    /// An outcome of which nothing came yet.
    pub(crate) fn outcome(&self) -> Outcome {
        Outcome {
            names: Some(self.names.clone()),
            ..Outcome::default()
        }
    }

    /// Another CPU of the same machine. The two share the maps, as they are now and
    /// later, and what has an address only: functions, maps themselves. Mocked helpers
    /// are shared, too: one call at a time. World and outputs are its own from now on,
    /// and so is what lies in memory for one CPU: stack, context, packet, records that
    /// were reserved and not released, whatever the test put there.
    ///
    /// Chance goes another way on each CPU, the same each time, as in the kernel.
    ///
    /// # Errors
    /// [`CpuError::Missing`] where the machine has not so many CPUs, [`CpuError::Taken`]
    /// where the number is in use.
    pub fn fork(&self, cpu: u32) -> Result<Self, CpuError> {
        Ok(Self {
            seat: self.seat.take(cpu)?,
            space: self.space.fork(),
            kernel: self.kernel.clone(),
            world: self.world.on_cpu(cpu),
            maps: self.maps.clone(),
            by_region: self.by_region.clone(),
            mocks: self.mocks.clone(),
            injections: self.injections.fork(),
            lent: SmallVec::new(),
            locks: SmallVec::new(),
            passing: Passing::default(),
            deferred: self.deferred.clone(),
            running: None,
            probed: Probed::default(),
            kfuncs: self.kfuncs.fork(),
            task: self.task,
            given: Given::default(),
            current: None,
            sockets: self.sockets.fork(),
            nesting: Nesting::default(),
            names: self.names.clone(),
        })
    }

    /// Takes the CPU that the world was moved to, if it was moved: to be called before
    /// programs run, which may then rely on its number being one that maps have values
    /// for. They find the world's kernel memory, with the current task as it is now.
    ///
    /// # Errors
    /// [`CpuError::Taken`]; [`CpuError::Missing`] where the world was replaced by one
    /// with more CPUs.
    #[inline]
    pub fn settle(&mut self) -> Result<(), CpuError> {
        let kernel = self.world.kernel_memory().blocks();
        if self.seat.number() != self.world.cpu() || !kernel.same(self.space.kernel()) {
            self.move_to_world()?;
        }
        self.world.refresh();
        Ok(())
    }

    /// The world was moved to another CPU, or is another world.
    #[inline(never)]
    fn move_to_world(&mut self) -> Result<(), CpuError> {
        let cpu = self.world.cpu();
        if self.seat.number() != cpu {
            self.seat = self.seat.take(cpu)?;
        }
        let kernel = self.world.kernel_memory();
        if !kernel.blocks().same(self.space.kernel()) {
            // What was loaded brings its types.
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

    /// Whether programs and maps can be added: no other CPU is in use.
    ///
    /// # Errors
    /// [`CpuError::Shared`] with `what` was to be added.
    pub fn may_add(&self, what: &'static str) -> Result<(), CpuError> {
        self.seat.adds(what)
    }

    /// Gives a record of a ring buffer an address of its own, until it is given
    /// [back](Self::take_back).
    pub(super) fn lend(
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
        self.lent.push(Lent {
            map,
            record,
            region,
            address,
        });
        Ok(address)
    }

    /// Takes back what was lent at an address.
    pub(super) fn take_back(&mut self, address: u64) -> Option<Lent> {
        let at = self.lent.iter().rposition(|lent| lent.address == address)?;
        let lent = self.lent.remove(at);
        self.space.remove(lent.region);
        Some(lent)
    }

    /// What programs have reserved in ring buffers and neither submitted nor
    /// discarded, and what else the one that runs now has to give back: the verifier
    /// lets no program end with any.
    #[must_use]
    pub fn unreleased(&self) -> Vec<Pointer> {
        if self.lent.is_empty() && self.holds_nothing() {
            return Vec::new();
        }
        let records = self.lent.iter().map(|lent| lent.address);
        let mut addresses: Vec<_> = records.chain(self.held_sockets()).collect();
        addresses.sort_unstable();
        let records = addresses.into_iter().map(|address| self.pointer(address));
        records.chain(self.still_held()).collect()
    }

    /// Whether the program that runs now holds neither sockets nor anything that kernel
    /// functions gave it.
    fn holds_nothing(&self) -> bool {
        self.sockets.holds_nothing() && self.kfuncs.holds_nothing()
    }

    /// The address of the current task's `struct task_struct`.
    pub(super) fn task_address(&self) -> Result<u64, HelperProblem> {
        Ok(self.world.task_address()?)
    }

    /// The program that runs now, if one does.
    #[must_use]
    pub const fn current(&self) -> Option<&Current> {
        self.current.as_ref()
    }

    /// What helpers know of the place where the program that runs now is attached.
    pub const fn site(&mut self) -> Option<&mut Site> {
        match &mut self.current {
            Some(current) => Some(&mut current.placed.site),
            None => None,
        }
    }

    /// The program that runs now and the memory that its event lies in.
    pub(super) fn current_mut(&mut self) -> Option<(&mut Current, &mut Space)> {
        Some((self.current.as_mut()?, &mut self.space))
    }

    /// A program of this type begins to run on an event.
    ///
    /// # Errors
    /// [`KernelError::Full`] where the event's socket finds no address.
    pub fn enter(&mut self, prog_type: ProgType, placed: Placed) -> Result<(), KernelError> {
        self.kfuncs.begin();
        self.current = Some(Current { prog_type, placed });
        self.point_to_socket()
    }

    /// The program has ended: what it held is released, and its event is taken out of
    /// memory.
    pub fn leave(&mut self) {
        if !self.locks.is_empty() {
            self.release_locks();
        }
        self.forget_sockets();
        self.forget_owners();
        self.forget_held();
        if let Some(current) = &self.current {
            current.placed.remove(&mut self.space);
        }
        self.current = None;
    }

    /// Puts another event in the place of the current one, which is where the other was
    /// then: for programs that run by turns, each on an event that stays in memory.
    pub const fn exchange_event(&mut self, other: &mut Option<Current>) {
        std::mem::swap(&mut self.current, other);
    }

    /// What the run under way has of its own, so that another program can run.
    pub(super) fn take_run(&mut self) -> OfRun {
        OfRun {
            current: self.current.take(),
            lent: std::mem::take(&mut self.lent),
            locks: std::mem::take(&mut self.locks),
            given: std::mem::take(&mut self.given),
            probed: std::mem::take(&mut self.probed),
        }
    }

    /// Gives it back.
    pub(super) fn put_run(&mut self, run: OfRun) {
        self.current = run.current;
        self.lent = run.lent;
        self.locks = run.locks;
        self.given = run.given;
        self.probed = run.probed;
    }

    /// Releases what a program held that stopped at a fault: programs on other CPUs wait.
    #[cold]
    fn release_locks(&mut self) {
        for lock in std::mem::take(&mut self.locks) {
            // It was there when the lock was taken, and maps stay.
            let _ = self.space.store(lock, 4, 0);
        }
    }

    /// Bytes of the current packet, `at` bytes from where the program's `data`
    /// points, or, far below zero, from one of its headers
    /// ([`Placed::legacy_bytes`]); `None` where the packet has none there, or there
    /// is no packet.
    #[must_use]
    pub fn packet_bytes(&self, at: i32, len: usize) -> Option<Vec<u8>> {
        self.current
            .as_ref()?
            .placed
            .legacy_bytes(&self.space, at, len)
    }

    /// Records something that a program gave out.
    pub fn output(&mut self, output: Output) {
        self.given.push(output);
    }

    /// Takes what programs have given out since the last call.
    pub fn take_outputs(&mut self) -> Vec<Output> {
        if self.given.is_empty() {
            return Vec::new();
        }
        let mut given = std::mem::take(&mut self.given);
        let taken = given.take(|to, data| match to {
            Destination::Ring(map) => {
                let map = self.map_name(map);
                Output::RingBuf { map, data }
            }
            Destination::Perf(map, cpu) => {
                let map = self.map_name(map);
                Output::Perf { map, cpu, data }
            }
        });
        self.given = given;
        taken
    }

    /// Shows what programs have given out since the last call, and forgets it: the same as
    /// [`take_outputs`](Self::take_outputs) for someone who sees millions of records.
    pub fn drain_outputs(&mut self, each: impl FnMut(Emitted<'_>)) {
        self.given.drain(each);
    }

    /// Notes a load that found nothing and read zero, if there is room for it.
    #[cold]
    pub fn note_probed(&self, fault: impl FnOnce() -> Box<Fault>) {
        self.probed.note(fault);
    }

    /// Takes the loads that found nothing since the last call, at most 16.
    pub fn take_probed(&mut self) -> Vec<Fault> {
        self.probed.take()
    }

    /// Puts a function of the test in place of a helper's body, here and on CPUs that
    /// are [forked](Self::fork) later.
    pub fn mock_helper(&mut self, helper: HelperId, body: Mock) {
        self.mocks.insert(helper, Arc::new(Mutex::new(body)));
    }

    /// The same for a kernel function.
    pub fn mock_kfunc(&mut self, name: &str, body: Mock) {
        self.kfuncs.mock(name, body);
    }

    /// Whether a test put a function in place of some helper's or kernel function's body.
    #[must_use]
    pub fn has_mocks(&self) -> bool {
        !self.mocks.is_empty() || self.kfuncs.has_mocks()
    }

    /// Whether a test put a function in place of this helper's body.
    #[must_use]
    pub fn is_mocked(&self, helper: HelperId) -> bool {
        self.mocks.contains_key(&helper)
    }

    /// Says what a register points to, in words.
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
