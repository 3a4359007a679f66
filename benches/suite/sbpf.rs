//! The `solana-sbpf` crate, which checks memory in its interpreter and in its machine
//! code. Version 3 of its instruction set has what clang emits for `-mcpu=v3`.

#![expect(unsafe_code, reason = "its memory is given by address")]

use std::ptr::NonNull;
use std::sync::Arc;
use std::time::{Duration, Instant};

use solana_sbpf::aligned_memory::AlignedMemory;
use solana_sbpf::ebpf::{HOST_ALIGN, MM_HEAP_START, MM_INPUT_START, MM_STACK_START};
use solana_sbpf::elf::Executable;
use solana_sbpf::error::ProgramResult;
use solana_sbpf::memory_region::{MemoryMapping, MemoryRegion};
use solana_sbpf::program::{BuiltinProgram, FunctionRegistry, SBPFVersion};
use solana_sbpf::verifier::RequisiteVerifier;
use solana_sbpf::vm::{CallFrame, Config, ContextObject, EbpfVm, ExecutionMode};

use super::engine::{Absent, Engine, Loaded, low32};
use super::programs::Program;

/// Its interpreter or its JIT.
#[derive(Debug)]
pub struct Sbpf {
    pub is_jit: bool,
}

type Memory = AlignedMemory<HOST_ALIGN>;

/// A program and its memory.
struct Running {
    executable: Executable<Context>,
    context: Context,
    frames: Vec<CallFrame>,
    mode: fn() -> ExecutionMode,
    stack: Memory,
    _others: [Memory; 2],
}

/// The context of a run: memory, and an unlimited instruction budget.
struct Context {
    mapping: MemoryMapping,
    remaining: u64,
}

impl ContextObject for Context {
    fn consume(&mut self, amount: u64) {
        self.remaining = self.remaining.saturating_sub(amount);
    }

    fn get_remaining(&self) -> u64 {
        self.remaining
    }

    fn active_mapping_ptr(&mut self) -> NonNull<MemoryMapping> {
        NonNull::from(&mut self.mapping)
    }
}

impl Sbpf {
    /// The result of a run of this code, or why there is none.
    #[allow(dead_code, reason = "the benchmarks have programs")]
    pub fn result(&self, code: &[u8], input: &[u8]) -> Result<u64, Absent> {
        self.running(code, input)?.times(1)
    }

    fn running(&self, code: &[u8], input: &[u8]) -> Result<Running, Absent> {
        if self.is_jit && cfg!(not(all(target_arch = "x86_64", unix))) {
            return Err("it makes code for x86-64 only".to_owned());
        }
        let loader = Arc::new(BuiltinProgram::new_loader(Config::default()));
        let version = SBPFVersion::V3;
        let functions = FunctionRegistry::default();
        let executable = Executable::from_text_bytes(code, loader, version, functions);
        let executable = executable.map_err(|error| error.to_string())?;
        let verified = executable.verify::<RequisiteVerifier>();
        verified.map_err(|error| error.to_string())?;
        #[cfg(all(target_arch = "x86_64", unix))]
        executable
            .jit_compile()
            .map_err(|error| error.to_string())?;
        let config = executable.get_config();
        let mut stack = Memory::zero_filled(config.stack_size());
        let mut heap = Memory::with_capacity(0);
        let mut input = Memory::from_slice(input);
        let regions = vec![
            executable.get_ro_region(),
            MemoryRegion::new(&mut stack, MM_STACK_START),
            MemoryRegion::new(&mut heap, MM_HEAP_START),
            MemoryRegion::new(&mut input, MM_INPUT_START),
        ];
        // SAFETY: the memories live as long as the context, beside it, and don't move:
        // what is moved are owners of allocations.
        let mapping = unsafe { MemoryMapping::new(regions, config, version) };
        let mapping = mapping.map_err(|error| error.to_string())?;
        Ok(Running {
            context: Context {
                mapping,
                remaining: 0,
            },
            frames: vec![CallFrame::default(); config.max_call_depth],
            mode: match self.is_jit {
                true => || ExecutionMode::Jit,
                false => || ExecutionMode::Interpreted,
            },
            executable,
            stack,
            _others: [heap, input],
        })
    }
}

impl Engine for Sbpf {
    fn load(&self, program: &Program) -> Result<Box<dyn Loaded>, Absent> {
        let code = program
            .flat()
            .ok_or("it has no maps, and helpers of its own only")?;
        Ok(Box::new(self.running(&code, &(program.input)())?))
    }
}

impl Running {
    /// Runs it this many times; the last result.
    fn times(&mut self, times: u32) -> Result<u64, Absent> {
        let loader = self.executable.get_loader().clone();
        let version = self.executable.get_sbpf_version();
        let mut vm = EbpfVm::new(loader, version, &mut self.context, self.stack.len());
        let mut registers = vm.registers;
        registers[1] = MM_INPUT_START;
        let mut last = 0;
        for _ in 0..times {
            vm.registers = registers;
            vm.context().remaining = u64::MAX / 2;
            let mode = &mut (self.mode)();
            let (_, result) = vm.execute_program(&self.executable, mode, &mut self.frames);
            match result {
                ProgramResult::Ok(value) => last = value,
                ProgramResult::Err(error) => return Err(error.to_string()),
            }
        }
        Ok(last)
    }
}

impl Loaded for Running {
    fn run(&mut self, times: u32) -> (Duration, u32) {
        let start = Instant::now();
        let last = self.times(times).expect("it runs");
        (start.elapsed(), low32(last))
    }
}
