//! uBPF, in C: an interpreter that checks memory, and machine code that doesn't. Built as
//! `docs/peers.md` says; `BPFLAB_UBPF` has the path of its library.

#![expect(
    unsafe_code,
    reason = "functions of a C library and machine code are called"
)]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::{NonNull, null_mut};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use libloading::Library;

use super::engine::{Absent, Engine, Loaded, low32, words};
use super::installed::Peer;
use super::programs::Program;

/// The library.
pub const UBPF: Peer = Peer {
    name: "uBPF",
    variable: "BPFLAB_UBPF",
};

/// Its interpreter or its JIT.
#[derive(Debug)]
pub struct Ubpf {
    pub is_jit: bool,
}

/// `struct ubpf_vm`, which the library allocates.
enum Vm {}

/// `ubpf_jit_fn`: memory and its length in bytes; returns r0.
type Code = unsafe extern "C" fn(*mut c_void, usize) -> u64;

/// The functions of `ubpf.h`.
struct Functions {
    create: unsafe extern "C" fn() -> *mut Vm,
    destroy: unsafe extern "C" fn(*mut Vm),
    load: unsafe extern "C" fn(*mut Vm, *const c_void, u32, *mut *mut c_char) -> c_int,
    exec: unsafe extern "C" fn(*const Vm, *mut c_void, usize, *mut u64) -> c_int,
    compile: unsafe extern "C" fn(*mut Vm, *mut *mut c_char) -> Option<Code>,
    /// Holds the addresses above.
    _library: Library,
}

unsafe extern "C" {
    /// C's.
    fn free(pointer: *mut c_void);
}

/// A program in a virtual machine.
struct Running {
    functions: &'static Functions,
    vm: NonNull<Vm>,
    /// Its machine code, which lives as long as `vm`.
    code: Option<Code>,
    memory: Vec<u64>,
    /// The bytes of the input in `memory`.
    length: usize,
}

/// Opens the library once.
fn functions() -> Result<&'static Functions, Absent> {
    static FUNCTIONS: OnceLock<Result<Functions, Absent>> = OnceLock::new();
    let functions = FUNCTIONS.get_or_init(|| {
        let library = UBPF.open()?;
        let lacks = |error: libloading::Error| format!("{}: {error}", UBPF.variable);
        // SAFETY: `vm/inc/ubpf.h` declares the functions with the types of `Functions`, and the
        // library stays open beside their addresses.
        unsafe {
            Ok(Functions {
                create: *library.get(b"ubpf_create").map_err(lacks)?,
                destroy: *library.get(b"ubpf_destroy").map_err(lacks)?,
                load: *library.get(b"ubpf_load").map_err(lacks)?,
                exec: *library.get(b"ubpf_exec").map_err(lacks)?,
                compile: *library.get(b"ubpf_compile").map_err(lacks)?,
                _library: library,
            })
        }
    });
    functions.as_ref().map_err(Clone::clone)
}

/// The text of an error message, which is freed.
fn text(message: *mut c_char) -> String {
    if message.is_null() {
        return "it gives no reason".to_owned();
    }
    // SAFETY: `ubpf_load` and `ubpf_compile` allocate a string that ends in a zero, and leave it
    // to their caller.
    unsafe {
        let text = CStr::from_ptr(message).to_string_lossy().trim().to_owned();
        free(message.cast());
        text
    }
}

impl Ubpf {
    /// The result of a run of this code, or why there is none.
    ///
    /// # Safety
    /// On every path the code stays within its input and its stack: machine code does not check.
    /// The functions of the library must do what `ubpf.h` says.
    #[allow(dead_code, reason = "the benchmarks have programs")]
    pub unsafe fn result(&self, code: &[u8], input: &[u8]) -> Result<u64, Absent> {
        self.running(code, input)?.once()
    }

    fn running(&self, code: &[u8], input: &[u8]) -> Result<Running, Absent> {
        let functions = functions()?;
        // SAFETY: it has no conditions.
        let vm = NonNull::new(unsafe { (functions.create)() }).ok_or("no memory")?;
        let mut running = Running {
            functions,
            vm,
            code: None,
            memory: words(input),
            length: input.len(),
        };
        let length = u32::try_from(code.len()).map_err(|_| "too long")?;
        let mut message = null_mut();
        // SAFETY: the virtual machine is new, and the library copies the code.
        let failed =
            unsafe { (functions.load)(vm.as_ptr(), code.as_ptr().cast(), length, &mut message) };
        if failed != 0 {
            return Err(text(message));
        }
        if self.is_jit {
            // SAFETY: the virtual machine has its program.
            let code = unsafe { (functions.compile)(vm.as_ptr(), &mut message) };
            running.code = Some(code.ok_or_else(|| text(message))?);
        }
        Ok(running)
    }
}

impl Engine for Ubpf {
    fn load(&self, program: &Program) -> Result<Box<dyn Loaded>, Absent> {
        functions()?;
        let code = program
            .flat()
            .ok_or("it has neither maps nor the helpers of Linux")?;
        Ok(Box::new(self.running(&code, &(program.input)())?))
    }
}

impl Running {
    fn once(&mut self) -> Result<u64, Absent> {
        let memory = self.memory.as_mut_ptr().cast();
        if let Some(code) = self.code {
            // SAFETY: programs stay within their memory, which is ours: the caller of `result`
            // says so, and the interpreter, which checks, ran those of the benchmarks to the end.
            // The code lives as long as `vm`.
            return Ok(unsafe { code(memory, self.length) });
        }
        let mut result = 0;
        // SAFETY: the virtual machine has its program, and the memory is ours.
        let failed =
            unsafe { (self.functions.exec)(self.vm.as_ptr(), memory, self.length, &mut result) };
        match failed {
            0 => Ok(result),
            _ => Err("its interpreter stopped".to_owned()),
        }
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
            last = std::hint::black_box(self.once().expect("it runs"));
        }
        (start.elapsed(), low32(last))
    }
}
