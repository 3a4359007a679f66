//! The same C, compiled for the host without vectorisation.

#![expect(
    unsafe_code,
    reason = "a library is opened and its functions are called"
)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use libloading::Library;

use super::engine::{Absent, Engine, Loaded, low32, words};
use super::programs::{PROGRAMS, Program};

/// Disables what BPF lacks: vector instructions and `memcpy`.
const FLAGS: &[&str] = &[
    "-O2",
    "-fno-builtin",
    "-fno-tree-vectorize",
    "-fno-tree-slp-vectorize",
    "-fno-tree-loop-distribute-patterns",
    "-shared",
    "-fPIC",
];

type Function = unsafe extern "C" fn(*mut u8, u64) -> u64;

/// The programs in a shared object, or the reason why there is none.
#[derive(Debug)]
pub struct Native {
    library: Result<Library, Absent>,
}

struct Compiled {
    function: Function,
    memory: Vec<u64>,
    length: u64,
}

impl Native {
    /// Compiles the programs with `$CC`, by default `cc`.
    pub fn new() -> Self {
        Self { library: compile() }
    }
}

fn compile() -> Result<Library, Absent> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("bpf");
    let flat = PROGRAMS.iter().filter(|program| program.is_flat);
    let sources = flat.map(|program| folder.join(format!("{}.bpf.c", program.name)));
    let name = format!("bpflab-bench-{}.so", std::process::id());
    let object: PathBuf = std::env::temp_dir().join(name);
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let mut command = Command::new(&compiler);
    command.args(FLAGS).arg("-o").arg(&object).args(sources);
    let done = command.output();
    let done = done.map_err(|error| format!("{compiler} can't be started: {error}"))?;
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stderr);
        return Err(format!("{compiler} failed: {said}"));
    }
    // SAFETY: the object was built from our sources, which have no initialisers.
    let library = unsafe { Library::new(&object) };
    // This fails if the compiler generates code for another machine.
    let library = library.map_err(|error| format!("what {compiler} made: {error}"));
    std::fs::remove_file(&object).map_err(|error| error.to_string())?;
    library
}

impl Engine for Native {
    fn load(&self, program: &Program) -> Result<Box<dyn Loaded>, Absent> {
        let library = self.library.as_ref().map_err(Clone::clone)?;
        if !program.is_flat {
            return Err("it has no helpers and maps".to_owned());
        }
        // SAFETY: `bench.h` gives each function this type.
        let function = unsafe { library.get::<Function>(program.name.as_bytes()) };
        let function = *function.map_err(|error| error.to_string())?;
        let input = (program.input)();
        Ok(Box::new(Compiled {
            function,
            memory: words(&input),
            length: input.len() as u64,
        }))
    }
}

impl Loaded for Compiled {
    fn run(&mut self, times: u32) -> (Duration, u32) {
        let mut last = 0;
        let memory = self.memory.as_mut_ptr().cast();
        let start = Instant::now();
        for _ in 0..times {
            // SAFETY: the function reads and writes `length` bytes, which are ours; the
            // library is never closed while the engine that holds it lives, and that is
            // as long as the process.
            let value = unsafe { (self.function)(memory, self.length) };
            last = std::hint::black_box(value);
        }
        (start.elapsed(), low32(last))
    }
}
