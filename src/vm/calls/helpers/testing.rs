//! A machine for the tests of helper bodies.

use std::sync::Arc;

use crate::program::{MapDef, Program};
use crate::spec::{MapType, ProgType};
use crate::util::{Errno, HelperId, Pc};
use crate::vm::events::Event;
use crate::vm::machine::{Call, Callbacks};
use crate::vm::maps::{self, Map};
use crate::vm::memory::{Region, SharedBytes};
use crate::vm::{Fault, FaultKind, HelperProblem, Machine, MapHandle, World};

/// A machine, and a callback function for helpers that call back.
pub struct Bench {
    /// The machine.
    pub machine: Machine,
    /// Runs for every callback, with its arguments.
    pub callback: Box<Function>,
}

/// A callback function: its r0, or `None` for a fault.
type Function = dyn FnMut(&mut Machine, [u64; 5]) -> Option<u64>;

struct Engine<'a>(&'a mut Function);

impl Callbacks for Engine<'_> {
    fn call_back(
        &mut self,
        machine: &mut Machine,
        function: u64,
        args: [u64; 5],
    ) -> Result<u64, Box<Fault>> {
        let program = Program::new("test", ProgType::Kprobe, Vec::new());
        let budget = FaultKind::Budget(function);
        (self.0)(machine, args)
            .ok_or_else(|| Box::new(Fault::at(&program, Pc(0), "exit".into(), budget)))
    }
}

impl Bench {
    /// A machine with four CPUs and no maps.
    pub fn new() -> Self {
        Self {
            machine: Machine::new(World::default()),
            callback: Box::new(|_, _| Some(0)),
        }
    }

    /// A machine that runs a program of this type on an event.
    pub fn on(prog_type: ProgType, event: &Event) -> Self {
        Self::new().running(prog_type, event)
    }

    /// Starts running a program of this type on an event.
    pub fn running(self, prog_type: ProgType, event: &Event) -> Self {
        let mut bench = self;
        let placed = event.place(prog_type, &mut bench.machine.space).unwrap();
        bench.machine.enter(prog_type, placed).unwrap();
        bench
    }

    /// The value of r1 at program start.
    pub fn context(&self) -> u64 {
        self.machine.current().unwrap().placed.r1()
    }

    /// The return value of a helper that must not end the program.
    pub fn ok<const N: usize>(&mut self, helper: HelperId, args: [u64; N]) -> u64 {
        self.call(helper, args).unwrap()
    }

    /// The error that a helper returns.
    pub fn errno<const N: usize>(&mut self, helper: HelperId, args: [u64; N]) -> Errno {
        let returned = self.ok(helper, args).cast_signed();
        assert!((-4095..0).contains(&returned), "{returned} is no error");
        Errno(u16::try_from(-returned).unwrap())
    }

    /// Calls a helper; missing arguments are 0.
    pub fn call<const N: usize>(
        &mut self,
        helper: HelperId,
        args: [u64; N],
    ) -> Result<u64, HelperProblem> {
        self.body(|call| super::call(helper, call), args)
    }

    /// Calls the body of a helper or kfunc.
    pub fn body<const N: usize>(
        &mut self,
        body: impl FnOnce(&mut Call<'_>) -> Result<u64, HelperProblem>,
        args: [u64; N],
    ) -> Result<u64, HelperProblem> {
        let mut all = [0; 5];
        all[..N].copy_from_slice(&args);
        let mut call = Call {
            machine: &mut self.machine,
            engine: &mut Engine(&mut *self.callback),
            args: all,
        };
        body(&mut call)
    }

    /// Puts bytes into memory and returns the address.
    pub fn memory(&mut self, bytes: &[u8]) -> u64 {
        let region = Region::bytes("memory", Arc::new(SharedBytes::from_bytes(bytes)));
        self.machine.space.insert(region).unwrap().register()
    }

    /// The bytes at an address.
    pub fn bytes(&self, at: u64, len: usize) -> Vec<u8> {
        self.machine.space.read(at, len).unwrap()
    }

    /// Adds a map; returns its address, its handle and the map.
    pub fn map(
        &mut self,
        map_type: MapType,
        key: u32,
        value: u32,
        entries: u32,
    ) -> (u64, MapHandle, Arc<dyn Map>) {
        self.add(&MapDef::new("m", map_type, key, value, entries))
    }

    /// Adds a map with this definition.
    pub fn add(&mut self, def: &MapDef) -> (u64, MapHandle, Arc<dyn Map>) {
        let map = maps::create(def, self.machine.world.cpus()).unwrap();
        let handle = self.machine.add_map(map.clone()).unwrap();
        (self.machine.map_address(handle).unwrap(), handle, map)
    }
}
