//! Raw programs: instructions on memory, as in rbpf, uBPF or sbpf, without an event.

use std::sync::Arc;
use std::time::Instant;

use super::error::{Error, Result};
use super::repeat::{Repeated, Returned};
use super::vm::Vm;
use crate::engine::Finished;
use crate::isa::{AluOp, Insn, Operand, Pseudo, RawInsn, Reg, Width, assemble, encode};
use crate::program::{Initial, MapDef, Program};
use crate::spec::{MapType, ProgType};
use crate::util::{HelperId, MapId, Pc};
use crate::vm::events::Event;
use crate::vm::helpers::Call;
use crate::vm::memory::{Region, SharedBytes};
use crate::vm::{EngineKind, HelperProblem, ProgramHandle, RanOn, Run, World};

/// Bytes of the packet that a verified raw program runs on and never reads.
const PACKET: usize = 64;

/// The name of the map that is a verified program's memory. A map that C code declares has
/// no dot in its name, so a program's own maps differ.
const MEMORY: &str = "bpflab.memory";

/// The instructions that set r1 and r2 in front of a verified program.
const PREFIX: u64 = 2;

/// A program that runs on memory: r1 points to its first byte, r2 is its length.
///
/// It runs [checked](Self::checked), whatever it does, or [verified](Self::verified), on a
/// fast engine.
///
/// ```
/// use bpflab::harness::{EngineKind, RawProgram};
///
/// # fn main() -> bpflab::Result<()> {
/// let program = RawProgram::assemble(
///     "r0 = *(u32 *)(r1 +0)
///      r3 = *(u32 *)(r1 +4)
///      r0 += r3
///      exit",
/// )?;
/// let mut vm = program.verified(&[40, 0, 0, 0, 2, 0, 0, 0])?;
/// vm.set_engine(EngineKind::Jit);
/// assert_eq!(vm.run()?.r0, 42);
/// let repeated = vm.repeat(10_000)?;
/// println!("{:?} for 10,000 runs on {}", repeated.elapsed, repeated.ran_on.engine);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct RawProgram(Program);

impl From<Vec<RawInsn>> for RawProgram {
    fn from(insns: Vec<RawInsn>) -> Self {
        Self(Program::new("main", ProgType::Xdp, insns))
    }
}

/// The program of an object, which keeps its maps, functions and types.
impl From<Program> for RawProgram {
    fn from(program: Program) -> Self {
        Self(program)
    }
}

impl RawProgram {
    /// The program with this text, in the syntax of [`assemble`].
    ///
    /// # Errors
    /// [`Error`] with the line.
    pub fn assemble(text: &str) -> Result<Self> {
        Ok(assemble(text)?.into())
    }

    /// The program with these bytes: 8 for each slot, as in memory or in an ELF section.
    ///
    /// # Errors
    /// [`Error::RawProgram`] if their number is not a positive multiple of 8.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let (insns, rest) = RawInsn::slots(bytes);
        if insns.is_empty() || !rest.is_empty() {
            let len = bytes.len();
            let problem = format!("{len} bytes of instructions, expected a positive multiple of 8");
            return Err(Error::RawProgram(problem));
        }
        Ok(insns.into())
    }

    /// Prepares it to run on a copy of this memory in the checked interpreter, which checks
    /// each access: for any bytes, and with [helpers](RawVm::set_helper) of one's own under
    /// any number. If there is no memory, r1 and r2 are 0.
    ///
    /// # Errors
    /// [`Error::MapCreate`] if one of its maps can't be created, [`Error::Space`] if the
    /// machine has no address left.
    pub fn checked(self, memory: &[u8]) -> Result<RawVm> {
        let (mut vm, program) = loaded(self.0, Vm::load_unverified_programs)?;
        let bytes = Arc::new(SharedBytes::from_bytes(memory));
        let mut args = [0; 5];
        if !memory.is_empty() {
            let region = Region::bytes("memory", Arc::clone(&bytes));
            let address = vm.machine.space.insert(region)?;
            args = [address.register(), memory.len() as u64, 0, 0, 0];
        }
        let memory = Memory::Region { bytes, args };
        Ok(RawVm {
            vm,
            program,
            memory,
        })
    }

    /// Verifies it and prepares it to run on a copy of this memory, on any engine: see
    /// [`RawVm::set_engine`].
    ///
    /// No program type of Linux gets bare memory, so the memory is the value of an array
    /// map, and two instructions in front of the program set r1 and r2. Positions in the
    /// verifier's messages and in faults include them (three slots; two without memory). The
    /// program may call the helpers of an XDP program.
    ///
    /// # Errors
    /// [`Error::Unverified`] with the report if the verifier rejects the program,
    /// [`Error::MapCreate`] if one of its maps can't be created.
    pub fn verified(self, memory: &[u8]) -> Result<RawVm> {
        let (vm, program) = loaded(with_memory(self.0, memory)?, Vm::load_programs)?;
        let memory = if memory.is_empty() {
            Memory::None
        } else {
            Memory::Map
        };
        Ok(RawVm {
            vm,
            program,
            memory,
        })
    }
}

/// A machine with this program alone.
fn loaded(
    program: Program,
    load: impl FnOnce(&mut Vm, &[MapDef], Vec<Arc<Program>>) -> Result<Vec<ProgramHandle>>,
) -> Result<(Vm, ProgramHandle)> {
    let mut vm = Vm::with_world(World::default());
    let maps = Arc::clone(&program.maps);
    load(&mut vm, &maps, vec![Arc::new(program)])?;
    // It is the only one.
    Ok((vm, ProgramHandle(0)))
}

/// The program after two instructions that set r1 and r2.
fn with_memory(mut program: Program, memory: &[u8]) -> Result<Program> {
    let too_long = |_| Error::RawProgram(format!("{} bytes of memory", memory.len()));
    let len = i32::try_from(memory.len()).map_err(too_long)?;
    let set = |dst, imm| Insn::Alu {
        op: AluOp::Mov,
        width: Width::W64,
        dst,
        src: Operand::Imm(imm),
    };
    let first = if memory.is_empty() {
        set(Reg::R1, 0)
    } else {
        let mut def = MapDef::new(MEMORY, MapType::Array, 4, len.cast_unsigned(), 1);
        def.initial.push(Initial::Bytes {
            key: vec![0; 4],
            value: memory.into(),
        });
        let index = MapId::from_index(program.maps.len()).0;
        program.maps = program.maps.iter().cloned().chain([def]).collect();
        let source = Pseudo::MapIdxValue { index, off: 0 };
        let dst = Reg::R1;
        Insn::LoadPseudo { dst, source }
    };
    let mut insns = encode(&[first, set(Reg::R2, len)]);
    let more = u32::try_from(insns.len()).unwrap_or_default();
    insns.append(&mut program.insns);
    program.insns = insns;
    // The main program starts with the two instructions; every other function moves.
    for function in program.subprograms.iter_mut().filter(|f| f.start != Pc(0)) {
        function.start.0 += more;
    }
    for info in program.func_info.iter_mut().filter(|i| i.insn_off != 0) {
        info.insn_off += more;
    }
    for line in program.lines.iter_mut().filter(|line| line.insn_off != 0) {
        line.insn_off += more;
    }
    for access in &mut program.accesses {
        access.pc.0 += more;
    }
    Ok(program)
}

/// A raw program with its memory, ready to run. The memory keeps what each run wrote.
#[derive(Debug)]
pub struct RawVm {
    vm: Vm,
    program: ProgramHandle,
    memory: Memory,
}

/// The program's memory.
#[derive(Debug)]
enum Memory {
    /// A region of the machine; the values of r1 to r5.
    Region {
        bytes: Arc<SharedBytes>,
        args: [u64; 5],
    },
    /// The value of the map [`MEMORY`].
    Map,
    /// A verified program without memory.
    None,
}

impl RawVm {
    /// Chooses the engine of a verified program; a checked one always runs on the checked
    /// interpreter.
    pub fn set_engine(&mut self, engine: EngineKind) -> &mut Self {
        self.vm.set_engine(engine);
        self
    }

    /// The engine that runs the program, and why it is not the chosen one.
    ///
    /// # Errors
    /// [`Error::NoProgram`] if the machine was replaced through [`vm`](Self::vm).
    pub fn engine(&self) -> Result<RanOn> {
        self.vm.engine_of(self.program)
    }

    /// Limits each run to this many instructions (default 2^28).
    pub fn set_budget(&mut self, instructions: u64) -> &mut Self {
        self.vm.set_budget(instructions);
        self
    }

    /// Sets what a call of the helper with this number does: the function gets the
    /// arguments, and returns r0. A verified program can only call helpers of Linux, and
    /// runs on the checked interpreter once one is replaced.
    ///
    /// ```
    /// use bpflab::harness::RawProgram;
    ///
    /// # fn main() -> bpflab::Result<()> {
    /// let program = RawProgram::assemble("r1 = 20\n r2 = 22\n call 4000\n exit")?;
    /// let mut vm = program.checked(&[])?;
    /// vm.set_helper(4000, |call| Ok(call.arg(1) + call.arg(2)));
    /// assert_eq!(vm.run()?.r0, 42);
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_helper(
        &mut self,
        number: u32,
        body: impl FnMut(&mut Call<'_>) -> std::result::Result<u64, HelperProblem> + Send + 'static,
    ) -> &mut Self {
        let machine = &mut self.vm.machine;
        machine.mock_helper(HelperId(number), Box::new(body));
        self
    }

    /// The machine: world, maps, verdict.
    pub const fn vm(&mut self) -> &mut Vm {
        &mut self.vm
    }

    /// A copy of the program's memory.
    ///
    /// # Errors
    /// [`Error::NoMap`] if the machine was replaced through [`vm`](Self::vm).
    pub fn memory(&self) -> Result<Vec<u8>> {
        match &self.memory {
            Memory::Region { bytes, .. } => Ok(bytes.to_vec()),
            Memory::Map => {
                let value = self.vm.map(MEMORY)?.get_bytes(&[0; 4])?;
                Ok(value.unwrap_or_default())
            }
            Memory::None => Ok(Vec::new()),
        }
    }

    /// Runs the program once. The count of instructions is its own, without those in front
    /// of a verified program.
    ///
    /// # Errors
    /// [`Error::Fault`] when it faults or exceeds its budget.
    pub fn run(&mut self) -> Result<Finished> {
        match &self.memory {
            Memory::Region { args, .. } => {
                let args = *args;
                self.vm.run_with_args(self.program, args)
            }
            Memory::Map | Memory::None => {
                let event = Event::packet([0; PACKET]);
                let finished = self.vm.runner(self.program, &event)?.run()?;
                Ok(Finished {
                    insns: finished.insns.map(|insns| insns.saturating_sub(PREFIX)),
                    ..finished
                })
            }
        }
    }

    /// Runs the program `count` times, at least once, and measures the time. A fault ends
    /// the runs; the result has it.
    ///
    /// # Errors
    /// As of [`run`](Self::run), except faults.
    pub fn repeat(&mut self, count: u32) -> Result<Repeated> {
        let Memory::Region { args, .. } = self.memory else {
            let event = Event::packet([0; PACKET]);
            return self.vm.runner(self.program, &event)?.repeat(count);
        };
        let start = Instant::now();
        let (returned, fault) = Returned::of(count, || self.vm.run_with_args(self.program, args))?;
        let elapsed = start.elapsed();
        let ran_on = self.engine()?;
        let machine = &mut self.vm.machine;
        let mut outcome = machine.outcome();
        outcome.outputs = machine.take_outputs();
        if let Some(Finished { r0, insns }) = returned.last.filter(|_| fault.is_none()) {
            let program = self.vm.programs.image(self.program)?.program().name.clone();
            outcome.runs.push(Run {
                program,
                r0,
                insns,
                ran_on,
            });
        }
        Ok(Repeated {
            outcome,
            elapsed,
            returned: returned.counts,
            ran_on,
            fault,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUM: &str = "r0 = *(u32 *)(r1 +0)\n r0 += r2\n *(u32 *)(r1 +4) = r0\n exit";

    #[test]
    fn memory_is_the_same_on_all_engines() {
        let program = RawProgram::assemble(SUM).unwrap();
        let memory = [40, 0, 0, 0, 7, 7, 7, 7];
        let mut checked = program.clone().checked(&memory).unwrap();
        let expected = checked.run().unwrap();
        assert_eq!((expected.r0, expected.insns), (48, Some(4)));
        assert_eq!(checked.memory().unwrap(), [40, 0, 0, 0, 48, 0, 0, 0]);
        for engine in [EngineKind::Checked, EngineKind::Interp, EngineKind::Jit] {
            let mut vm = program.clone().verified(&memory).unwrap();
            vm.set_engine(engine);
            assert_eq!(vm.run().unwrap(), expected, "{engine}");
            assert_eq!(vm.memory().unwrap(), checked.memory().unwrap(), "{engine}");
            let repeated = vm.repeat(3).unwrap();
            assert_eq!(repeated.returned, [(48, 3)], "{engine}");
            assert_eq!(repeated.ran_on, vm.engine().unwrap(), "{engine}");
        }
    }

    #[test]
    fn a_program_without_memory_runs() {
        let program = RawProgram::assemble("r0 = r1\n r0 += r2\n exit").unwrap();
        assert_eq!(program.clone().checked(&[]).unwrap().run().unwrap().r0, 0);
        let mut vm = program.verified(&[]).unwrap();
        assert_eq!(vm.run().unwrap().r0, 0);
        assert!(vm.memory().unwrap().is_empty());
    }

    #[test]
    fn what_the_verifier_rejects_runs_checked_only() {
        let program = RawProgram::assemble("r0 = *(u8 *)(r1 +8)\n exit").unwrap();
        let error = program.clone().verified(&[0; 8]).unwrap_err();
        assert!(matches!(error, Error::Unverified(_)), "{error}");
        let mut vm = program.checked(&[0; 8]).unwrap();
        let error = vm.run().unwrap_err();
        assert!(matches!(error, Error::Fault(_)), "{error}");
        let repeated = vm.repeat(2).unwrap();
        assert_eq!(repeated.runs(), 0);
        assert!(repeated.fault.is_some());
        assert_eq!(repeated.outcome.runs.len(), 0);
    }

    #[test]
    fn bytes_that_are_no_instructions_are_an_error() {
        for len in [0, 7, 12] {
            let error = RawProgram::from_bytes(&vec![0; len]).unwrap_err();
            assert!(error.to_string().contains("multiple of 8"), "{error}");
        }
        assert!(RawProgram::assemble("r0 = ").is_err());
    }
}
