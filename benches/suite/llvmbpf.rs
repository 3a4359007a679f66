//! llvmbpf, in C++: machine code by LLVM, which doesn't check memory. `docs/peers.md` says how to
//! build it with `benches/peers/llvmbpf.cpp`; `BPFLAB_LLVMBPF` has the path of the library.

#![expect(
    unsafe_code,
    reason = "functions of a library and machine code are called"
)]

use std::ffi::{CStr, c_char, c_void};
use std::ptr::NonNull;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use libloading::Library;

use super::engine::{Absent, Engine, Loaded, low32, words};
use super::installed::Peer;
use super::programs::Program;

/// The library.
pub const LLVMBPF: Peer = Peer {
    name: "llvmbpf",
    variable: "BPFLAB_LLVMBPF",
};

/// Its JIT; it has no interpreter.
#[derive(Debug)]
pub struct Llvmbpf;

/// Memory and its length in bytes; returns r0.
type Code = unsafe extern "C" fn(*mut c_void, usize) -> u64;

/// `bpflab_llvmbpf_compile`.
type Compile = unsafe extern "C" fn(
    *const c_void,
    usize,
    *mut Option<Code>,
    *mut c_char,
    usize,
) -> *mut c_void;

/// The functions of `benches/peers/llvmbpf.cpp`.
struct Functions {
    compile: Compile,
    destroy: unsafe extern "C" fn(*mut c_void),
    /// Holds the addresses above.
    _library: Library,
}

/// A compiled program.
struct Running {
    functions: &'static Functions,
    vm: NonNull<c_void>,
    /// The machine code, which lives as long as `vm`.
    code: Code,
    memory: Vec<u64>,
    /// The bytes of the input in `memory`.
    length: usize,
}

/// Opens the library once.
fn functions() -> Result<&'static Functions, Absent> {
    static FUNCTIONS: OnceLock<Result<Functions, Absent>> = OnceLock::new();
    let functions = FUNCTIONS.get_or_init(|| {
        let library = LLVMBPF.open()?;
        let lacks = |error: libloading::Error| format!("{}: {error}", LLVMBPF.variable);
        // SAFETY: `benches/peers/llvmbpf.cpp` defines the functions with the types of
        // `Functions`, and the library stays open beside their addresses.
        unsafe {
            Ok(Functions {
                compile: *library.get(b"bpflab_llvmbpf_compile").map_err(lacks)?,
                destroy: *library.get(b"bpflab_llvmbpf_destroy").map_err(lacks)?,
                _library: library,
            })
        }
    });
    functions.as_ref().map_err(Clone::clone)
}

impl Llvmbpf {
    /// The result of a run of this code, or why there is none.
    ///
    /// # Safety
    /// On every path the code stays within its input and its stack: machine code does not check.
    #[allow(dead_code, reason = "the benchmarks have programs")]
    pub unsafe fn result(&self, code: &[u8], input: &[u8]) -> Result<u64, Absent> {
        Ok(self.running(code, input)?.once())
    }

    fn running(&self, code: &[u8], input: &[u8]) -> Result<Running, Absent> {
        let functions = functions()?;
        let mut function = None;
        let mut error: [c_char; 256] = [0; 256];
        // SAFETY: the library copies the code, and writes a string of at most the buffer's size.
        let vm = unsafe {
            (functions.compile)(
                code.as_ptr().cast(),
                code.len(),
                &mut function,
                error.as_mut_ptr(),
                error.len(),
            )
        };
        let (Some(vm), Some(code)) = (NonNull::new(vm), function) else {
            // SAFETY: the buffer ends in a zero, before and after the call.
            let text = unsafe { CStr::from_ptr(error.as_ptr()) };
            return Err(text.to_string_lossy().into_owned());
        };
        Ok(Running {
            functions,
            vm,
            code,
            memory: words(input),
            length: input.len(),
        })
    }
}

impl Engine for Llvmbpf {
    fn load(&self, program: &Program) -> Result<Box<dyn Loaded>, Absent> {
        functions()?;
        let code = program
            .flat()
            .ok_or("it has neither maps nor the helpers of Linux")?;
        Ok(Box::new(self.running(&code, &(program.input)())?))
    }
}

impl Running {
    fn once(&mut self) -> u64 {
        // SAFETY: programs stay within their memory, which is ours: the caller of `result` says
        // so, and interpreters that check ran those of the benchmarks to the end. The code lives
        // as long as `vm`.
        unsafe { (self.code)(self.memory.as_mut_ptr().cast(), self.length) }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // SAFETY: the virtual machine is ours, and used no more.
        unsafe { (self.functions.destroy)(self.vm.as_ptr()) }
    }
}

impl Loaded for Running {
    fn run(&mut self, times: u32) -> (Duration, u32) {
        let mut last = 0;
        let start = Instant::now();
        for _ in 0..times {
            last = std::hint::black_box(self.once());
        }
        (start.elapsed(), low32(last))
    }
}
