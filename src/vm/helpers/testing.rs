//! A machine on which tests call helpers as an engine would.

use std::sync::Arc;

use crate::spec::ProgType;
use crate::util::{Errno, HelperId};
use crate::vm::events::Event;
use crate::vm::fault::{Fault, HelperProblem};
use crate::vm::machine::{Call, Callbacks, Machine};
use crate::vm::memory::{Region, Rights, SharedBytes};
use crate::vm::world::World;

/// Registers of a call of a helper.
type Calls = Vec<[u64; 5]>;

/// What an engine does when a helper calls back.
type CallBack = Box<dyn FnMut(&mut Machine, [u64; 5]) -> Result<u64, Fault>>;

/// A machine and the engine's side of calls.
pub(in crate::vm) struct Bench {
    pub machine: Machine,
    engine: Engine,
}

struct Engine {
    body: CallBack,
    calls: Calls,
}

impl Callbacks for Engine {
    fn call_back(
        &mut self,
        machine: &mut Machine,
        _function: u64,
        args: [u64; 5],
    ) -> Result<u64, Fault> {
        self.calls.push(args);
        (self.body)(machine, args)
    }
}

impl Bench {
    pub fn new() -> Self {
        Self {
            machine: Machine::new(World::default()),
            engine: Engine {
                body: Box::new(|_, _| Ok(0)),
                calls: Vec::new(),
            },
        }
    }

    /// A machine on which a program of this type runs on an event.
    pub fn on(prog_type: ProgType, event: &Event) -> Self {
        let mut bench = Self::new();
        let placed = event.place(prog_type, &mut bench.machine.space).unwrap();
        bench.machine.enter(prog_type, placed);
        bench
    }

    /// What r1 held when the program began.
    pub fn context(&self) -> u64 {
        self.machine.current().unwrap().placed.r1()
    }

    /// What callbacks do.
    pub fn callback(
        &mut self,
        body: impl FnMut(&mut Machine, [u64; 5]) -> Result<u64, Fault> + 'static,
    ) {
        self.engine.body = Box::new(body);
    }

    /// The arguments of callbacks so far.
    pub fn calls(&mut self) -> Calls {
        std::mem::take(&mut self.engine.calls)
    }

    /// Writable memory with these bytes.
    pub fn bytes(&mut self, bytes: &[u8]) -> u64 {
        let block = Arc::new(SharedBytes::from_bytes(bytes));
        let region = Region::bytes("buffer", block);
        self.machine.space.insert(region).unwrap().register()
    }

    /// Read-only memory with a string and its NUL.
    pub fn cstr(&mut self, text: &str) -> u64 {
        let block = Arc::new(SharedBytes::from_bytes(&[text.as_bytes(), b"\0"].concat()));
        let region = Region::bytes("string", block).with_rights(Rights::Read);
        self.machine.space.insert(region).unwrap().register()
    }

    /// Memory as a program reads it.
    pub fn read(&self, at: u64, len: usize) -> Vec<u8> {
        self.machine.space.read(at, len).unwrap()
    }

    /// Calls a helper; arguments that are not given are 0.
    pub fn call<const N: usize>(
        &mut self,
        helper: HelperId,
        args: [u64; N],
    ) -> Result<u64, HelperProblem> {
        let mut registers = [0; 5];
        registers[..N].copy_from_slice(&args);
        let mut call = Call {
            machine: &mut self.machine,
            engine: &mut self.engine,
            args: registers,
        };
        super::call(helper, &mut call)
    }

    /// What a helper returns that has to be able to go on.
    pub fn ok<const N: usize>(&mut self, helper: HelperId, args: [u64; N]) -> u64 {
        self.call(helper, args).unwrap()
    }

    /// The error that a helper returns.
    pub fn errno<const N: usize>(&mut self, helper: HelperId, args: [u64; N]) -> Errno {
        let returned = self.ok(helper, args).cast_signed();
        assert!((-4095..0).contains(&returned), "{returned} is no error");
        Errno(u16::try_from(-returned).unwrap())
    }
}
