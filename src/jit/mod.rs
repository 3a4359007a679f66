//! The JIT compilers: machine code for verified programs.
//!
//! | file | what |
//! |---|---|
//! | `count` | instruction counting at the least cost |
//! | `code` | code memory: no mapping is writable and executable |
//! | `loops` | the loops of a program |
//! | `emitted` | code as data |
//! | `disassemble` | code as text |
//! | `layout` | the layout of a run for machine code |
//! | `runtime` | the convention between machine code and Rust, and the shims |
//! | `arm64` | the code for arm64 |
//! | `x86_64` | the code for x86-64 |
//!
//! The results of a run are exactly those of the interpreters, including the instruction
//! count. Machine code shares the fast interpreter's [`Run`](crate::engine): frames, tail
//! calls and callbacks are the same, and an operation without code of its own is executed
//! by the interpreter's step. If the budget may not last until the next check, the
//! interpreter continues with the function, and counts one by one.

mod arm64;
mod code;
mod count;
#[cfg(feature = "cli")]
mod disassemble;
mod emitted;
mod layout;
mod loops;
mod runtime;
#[cfg(test)]
mod testing;
mod x86_64;

use crate::engine::{Counting, EntryPoints, Native};
use crate::lower::Lowered;
use crate::spec::context::Arch;
use code::CodeMemory;
use count::Counts;
#[cfg(feature = "cli")]
pub use disassemble::{MachineInsn, disassemble};
pub use emitted::Emitted;

/// Whether this host can execute the code emitted for it.
pub(crate) const RUNS_HERE: bool = cfg!(all(
    unix,
    any(
        target_arch = "x86_64",
        all(target_arch = "aarch64", target_endian = "little")
    )
));

/// Compiles a lowered program to machine code; none if the host can't execute it.
pub(crate) fn compile(lowered: &Lowered, counting: Counting) -> Option<Native> {
    if !RUNS_HERE {
        return None;
    }
    let emitted = emit_with(Arch::HOST, lowered, counting, false)?;
    let memory = CodeMemory::new(&emitted.bytes).ok()?;
    let start = memory.start();
    let address = |offset: usize| start + offset as u64;
    let functions = emitted.entries.iter();
    let functions = functions.map(|(_, offset)| address(*offset)).collect();
    let entry_points = emitted.entry_points;
    let entry_points = EntryPoints {
        function: address(entry_points.function),
        main: address(entry_points.main),
        tail: address(entry_points.tail),
        in_place: address(entry_points.in_place),
    };
    let extent = start..start + emitted.bytes.len() as u64;
    Some(Native::new(memory, entry_points, functions, extent))
}

/// The machine code that `compile` makes executable: for listings, on any host. None for a
/// program that is too large.
#[must_use]
pub fn emit(lowered: &Lowered) -> Option<Emitted> {
    emit_for(Arch::HOST, lowered, Counting::Exact)
}

/// The machine code for a given architecture. It contains addresses of this process, and
/// can only be read if the host is of another architecture.
#[must_use]
pub fn emit_for(machine: Arch, lowered: &Lowered, counting: Counting) -> Option<Emitted> {
    emit_with(machine, lowered, counting, true)
}

/// The same; if it is not to be listed, [`Emitted::ops`] may be empty.
fn emit_with(
    machine: Arch,
    lowered: &Lowered,
    counting: Counting,
    is_listed: bool,
) -> Option<Emitted> {
    let counts = Counts::of(lowered, counting);
    match machine {
        Arch::X86_64 => x86_64::emit(lowered, &counts, x86_64::Features::of_host(), is_listed),
        Arch::Arm64 => arm64::emit(lowered, &counts, arm64::Features::of_host()),
    }
}

/// The architecture's extensions that generated code uses: those of the host, if it has
/// this architecture; empty if there are none.
#[must_use]
pub fn extensions(machine: Arch) -> &'static str {
    match machine {
        Arch::X86_64 if x86_64::Features::of_host().bmi2 => "BMI2",
        Arch::Arm64 if arm64::Features::of_host().lse => "LSE",
        _ => "",
    }
}
