//! The state of a machine: memory, maps, the world and what programs gave out.
//! Engines run programs on it; helpers act on it through a [`Call`].
//!
//! A machine holds the helpers that a test replaced, and those take a call on the
//! machine: that is why both stand in one file.

use std::fmt;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::events::Placed;
use super::fault::{Fault, HelperProblem};
use super::handle::{MapHandle, ProgramHandle};
use super::maps::{Kind, Map};
use super::memory::{AccessKind, Address, Pointer, Region, Rights, Space, SpaceFull};
use super::outcome::Output;
use super::world::World;
use crate::spec::{MapFlags, ProgType};
use crate::util::HelperId;

/// Memory, maps and world: all that programs act on.
pub struct Machine {
    /// The address space.
    pub space: Space,
    /// The mocked outside.
    pub world: World,
    maps: Vec<LoadedMap>,
    by_address: FxHashMap<u64, MapHandle>,
    /// Helpers that a test replaced.
    pub(super) mocks: FxHashMap<HelperId, Mock>,
    /// Memory that helpers lent to a program, by address: ring-buffer records.
    pub(super) lent: FxHashMap<u64, Lent>,
    outputs: Vec<Output>,
    current: Option<Current>,
    /// Where `task_struct` is, once a program has asked.
    task: Option<Address>,
}

/// A map with its place in the address space.
#[derive(Debug, Clone)]
struct LoadedMap {
    map: Arc<dyn Map>,
    /// What a program holds for the map itself.
    handle: Address,
    /// Where element 0 of its values is.
    values: Option<Address>,
}

/// A ring-buffer record that a program has reserved.
#[derive(Debug, Clone)]
pub(super) struct Lent {
    /// The ring buffer.
    pub map: MapHandle,
    /// What the ring buffer calls the record.
    pub record: usize,
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
            space: Space::new(),
            world,
            maps: Vec::new(),
            by_address: FxHashMap::default(),
            mocks: FxHashMap::default(),
            lent: FxHashMap::default(),
            outputs: Vec::new(),
            current: None,
            task: None,
        }
    }

    /// Adds a map and gives it its addresses.
    ///
    /// # Errors
    /// [`SpaceFull`] when there are too many.
    pub fn add_map(&mut self, map: Arc<dyn Map>) -> Result<MapHandle, SpaceFull> {
        let def = map.def();
        let name = &def.name;
        let handle = self.space.insert(Region::opaque(format!("map {name}")))?;
        let rights = if def.flags.contains(MapFlags::RDONLY_PROG) {
            Rights::Read
        } else if def.flags.contains(MapFlags::WRONLY_PROG) {
            Rights::Write
        } else {
            Rights::ReadWrite
        };
        let values = match map.slab() {
            Some(slab) => {
                let region = Region::elements(format!("map value {name}"), slab.clone());
                Some(self.space.insert(region.with_rights(rights))?)
            }
            None => None,
        };
        let id = MapHandle(u32::try_from(self.maps.len()).map_err(|_| SpaceFull)?);
        self.by_address.insert(handle.register(), id);
        self.maps.push(LoadedMap {
            map,
            handle,
            values,
        });
        Ok(id)
    }

    /// A map by its handle.
    #[must_use]
    pub fn map(&self, map: MapHandle) -> Option<&Arc<dyn Map>> {
        self.maps.get(map.index()).map(|loaded| &loaded.map)
    }

    /// All maps, in the order in which they were added.
    pub fn maps(&self) -> impl Iterator<Item = (MapHandle, &Arc<dyn Map>)> {
        (0..)
            .map(MapHandle)
            .zip(self.maps.iter().map(|loaded| &loaded.map))
    }

    /// What a register holds for the map itself.
    #[must_use]
    pub fn map_address(&self, map: MapHandle) -> Option<u64> {
        self.maps
            .get(map.index())
            .map(|loaded| loaded.handle.register())
    }

    /// The map that a register points to.
    #[must_use]
    pub fn map_at(&self, register: u64) -> Option<MapHandle> {
        self.by_address.get(&register).copied()
    }

    /// The address of an element's value.
    #[must_use]
    pub fn value_address(&self, map: MapHandle, element: usize) -> Option<u64> {
        let loaded = self.maps.get(map.index())?;
        let size = loaded.map.slab()?.value_size();
        Some(loaded.values?.plus(Region::element_offset(size, element)))
    }

    /// The program in a slot of the prog array that a register points to; `None`
    /// where it is no prog array or the slot is empty. Engines use it for
    /// `bpf_tail_call`.
    #[must_use]
    pub fn tail_call_target(&self, map: u64, index: u64) -> Option<ProgramHandle> {
        let map = self.map(self.map_at(map)?)?;
        match map.kind() {
            // The kernel takes the low 32 bits of the index.
            Kind::ProgArray(array) => array.get(u32::try_from(index & 0xffff_ffff).ok()?),
            _ => None,
        }
    }

    /// The program that runs now, if one does.
    #[must_use]
    pub const fn current(&self) -> Option<&Current> {
        self.current.as_ref()
    }

    /// A program of this type begins to run on an event.
    pub fn enter(&mut self, prog_type: ProgType, placed: Placed) {
        self.current = Some(Current { prog_type, placed });
    }

    /// The program has ended: gives the event back, to be read and removed.
    pub fn leave(&mut self) -> Option<Placed> {
        self.current.take().map(|current| current.placed)
    }

    /// Bytes of the current packet, `at` bytes from where the program's `data`
    /// points; `None` where the packet has none there, or there is no packet.
    #[must_use]
    pub fn packet_bytes(&self, at: i32, len: usize) -> Option<Vec<u8>> {
        let packet = self.current.as_ref()?.placed.packet_bytes(&self.space)?;
        let at = usize::try_from(at).ok()?;
        Some(packet.get(at..at.checked_add(len)?)?.to_vec())
    }

    /// The program that runs now, to move its packet; with the memory it lies in.
    pub(super) fn current_mut(&mut self) -> Option<(&mut Current, &mut Space)> {
        Some((self.current.as_mut()?, &mut self.space))
    }

    /// The address of the current task's `task_struct`, which has no bytes here.
    ///
    /// # Errors
    /// [`SpaceFull`] when there is no address left.
    pub(super) fn task_address(&mut self) -> Result<u64, SpaceFull> {
        let task = match self.task {
            Some(task) => task,
            None => self.space.insert(Region::opaque("task_struct"))?,
        };
        self.task = Some(task);
        Ok(task.register())
    }

    /// Records something that a program gave out.
    pub fn output(&mut self, output: Output) {
        self.outputs.push(output);
    }

    /// Takes what programs have given out since the last call.
    pub fn take_outputs(&mut self) -> Vec<Output> {
        std::mem::take(&mut self.outputs)
    }

    /// Puts a function of the test in place of a helper's body.
    pub fn mock_helper(&mut self, helper: HelperId, body: Mock) {
        self.mocks.insert(helper, body);
    }

    /// Says what a register points to, in words.
    #[must_use]
    pub fn pointer(&self, register: u64) -> Pointer {
        self.space.pointer(register)
    }
}

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

/// What comes of a call: r0, or why the program can't go on. An error that the
/// program is told of is a result, negated ([`Errno::to_ret`](crate::util::Errno::to_ret)).
pub type Returned = Result<u64, HelperProblem>;

/// A helper's body.
pub type Body = fn(&mut Call<'_>) -> Returned;

/// A helper as a test supplies it.
pub type Mock = Box<dyn FnMut(&mut Call<'_>) -> Returned + Send>;

impl Call<'_> {
    /// Argument `n`, from 1 to 5.
    #[must_use]
    pub fn arg(&self, n: usize) -> u64 {
        n.checked_sub(1)
            .and_then(|n| self.args.get(n))
            .copied()
            .unwrap_or_default()
    }

    /// Argument `n` as the kernel takes a `u32`: its low half.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "the kernel truncates")]
    pub fn arg32(&self, n: usize) -> u32 {
        self.arg(n) as u32
    }

    /// Argument `n` as the kernel takes an `int`: its low half.
    #[must_use]
    pub fn arg_int(&self, n: usize) -> i32 {
        self.arg32(n).cast_signed()
    }

    /// Argument `n` as a size in bytes that the kernel takes as a `u32`.
    #[must_use]
    pub fn arg_size(&self, n: usize) -> usize {
        self.arg32(n) as usize
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

    /// Checks that `len` bytes may be written where argument `n` points, before
    /// anything of that size is made.
    ///
    /// # Errors
    /// [`HelperProblem::Access`] unless all of them may.
    pub fn check_writable(&self, n: usize, len: usize) -> Result<(), HelperProblem> {
        if len == 0 {
            return Ok(());
        }
        match self
            .machine
            .space
            .locate(self.arg(n), len, AccessKind::Write)
        {
            Ok(_) => Ok(()),
            Err(fault) => Err(HelperProblem::Access { arg: n, fault }),
        }
    }

    /// The string that argument `n` points to, without its NUL.
    ///
    /// # Errors
    /// [`HelperProblem::Access`] when its memory ends before a NUL.
    pub fn cstr(&self, n: usize) -> Result<Vec<u8>, HelperProblem> {
        let mut text = Vec::new();
        for at in self.arg(n).. {
            let byte = self.machine.space.load(at, 1);
            match byte.map_err(|fault| HelperProblem::Access { arg: n, fault })? {
                0 => break,
                byte => text.extend(u8::try_from(byte)),
            }
        }
        Ok(text)
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

impl fmt::Debug for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Machine")
            .field("maps", &self.maps)
            .field("world", &self.world)
            .finish_non_exhaustive()
    }
}
