//! The `rbpf` crate: an interpreter that checks memory, and machine code that doesn't.

#![expect(
    unsafe_code,
    reason = "its machine code is not checked, and it wants to keep memory"
)]

use std::time::{Duration, Instant};

use super::engine::{Absent, Engine, Loaded, low32};
use super::programs::Program;

/// Its interpreter or its JIT.
#[derive(Debug)]
pub struct Rbpf {
    pub is_jit: bool,
}

/// A program in one of its virtual machines.
struct Running {
    vm: ::rbpf::EbpfVmRaw<'static>,
    memory: &'static mut [u8],
    is_jit: bool,
}

impl Rbpf {
    /// The result of a run of this code, or why there is none.
    ///
    /// # Safety
    /// On every path the code stays within its input and its stack: machine code does not check.
    #[allow(dead_code, reason = "the benchmarks have programs")]
    pub unsafe fn result(&self, code: Vec<u8>, input: &[u8]) -> Result<u64, Absent> {
        self.running(code, input)?.once()
    }

    fn running(&self, code: Vec<u8>, input: &[u8]) -> Result<Running, Absent> {
        // Leaked because the virtual machine borrows them; they are short.
        let code: &'static [u8] = code.leak();
        let memory = aligned(input);
        #[cfg_attr(
            not(target_arch = "x86_64"),
            expect(unused_mut, reason = "only its JIT does")
        )]
        let mut vm = ::rbpf::EbpfVmRaw::new(Some(code)).map_err(|error| error.to_string())?;
        if self.is_jit {
            #[cfg(not(target_arch = "x86_64"))]
            return Err("it makes code for x86-64 only".to_owned());
            #[cfg(target_arch = "x86_64")]
            vm.jit_compile().map_err(|error| error.to_string())?;
        }
        Ok(Running {
            vm,
            memory,
            is_jit: self.is_jit,
        })
    }
}

impl Engine for Rbpf {
    fn load(&self, program: &Program) -> Result<Box<dyn Loaded>, Absent> {
        let code = program
            .flat()
            .ok_or("it has no maps, and helpers of its own only")?;
        Ok(Box::new(self.running(code, &(program.input)())?))
    }
}

/// The bytes at an 8-byte aligned address.
fn aligned(bytes: &[u8]) -> &'static mut [u8] {
    let words = vec![0_u64; bytes.len().div_ceil(8)].leak();
    let memory = zerocopy::IntoBytes::as_mut_bytes(words);
    memory[..bytes.len()].copy_from_slice(bytes);
    &mut memory[..bytes.len()]
}

impl Running {
    fn once(&mut self) -> Result<u64, Absent> {
        let (start, length) = (self.memory.as_mut_ptr(), self.memory.len());
        // The virtual machine requires a 'static reference, but uses it during the run only.
        // SAFETY: the memory is never freed, and nothing else uses it during a run.
        let memory: &'static mut [u8] = unsafe { std::slice::from_raw_parts_mut(start, length) };
        if !self.is_jit {
            let result = self.vm.execute_program(memory);
            return result.map_err(|error| error.to_string());
        }
        #[cfg(not(target_arch = "x86_64"))]
        unreachable!("there is no code for this host");
        // SAFETY: programs stay within their memory: the caller of `result` says so, and the
        // interpreter, which checks, ran those of the benchmarks to the end.
        #[cfg(target_arch = "x86_64")]
        let result = unsafe { self.vm.execute_program_jit(memory) };
        #[cfg(target_arch = "x86_64")]
        result.map_err(|error| error.to_string())
    }
}

impl Loaded for Running {
    fn run(&mut self, times: u32) -> (Duration, u32) {
        let mut last = 0;
        let start = Instant::now();
        for _ in 0..times {
            last = std::hint::black_box(self.once().expect("it runs"));
        }
        (start.elapsed(), low32(last))
    }
}
