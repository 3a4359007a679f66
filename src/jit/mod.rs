//! Machine code for verified programs.
//!
//! | file | what |
//! |---|---|
//! | `count` | where instructions are counted, at the least cost |
//! | `code` | code memory: written, then executable, never both |
//! | `loops` | where a program has loops |
//! | `emitted` | code as data |
//! | `disassemble` | code as text |
//! | `layout` | where machine code finds what in a run |
//! | `runtime` | what machine code and Rust agree on, and what machine code calls |
//! | `arm64` | the code for arm64 |
//! | `x86_64` | the code for x86-64 |
//!
//! What comes of a run is what comes of it in the interpreters, bit by bit, the count of
//! instructions included. Machine code shares the fast interpreter's
//! [`Run`](crate::interp): frames, tail calls and callbacks are the same, and an
//! operation that has no code of its own is done by the interpreter's step. Where the
//! budget may not last until the next look at it, the interpreter goes on with the
//! function, and counts one by one.

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

use crate::interp::{Native, Ways};
use crate::lower::Lowered;
use crate::spec::context::Arch;
use code::CodeMemory;
use count::Counts;
#[cfg(feature = "cli")]
pub use disassemble::{MachineInsn, disassemble};
pub use emitted::Emitted;

/// Whether this host executes what is emitted for it.
pub(crate) const RUNS_HERE: bool = cfg!(all(
    unix,
    any(
        target_arch = "x86_64",
        all(target_arch = "aarch64", target_endian = "little")
    )
));

/// Machine code for a lowered program; none where the host can't execute it.
pub(crate) fn compile(lowered: &Lowered) -> Option<Native> {
    if !RUNS_HERE {
        return None;
    }
    let emitted = emit(lowered)?;
    let memory = CodeMemory::new(&emitted.bytes).ok()?;
    let functions = emitted.entries.iter();
    let functions = functions
        .map(|(_, offset)| memory.address(*offset))
        .collect();
    let ways = emitted.ways;
    let ways = Ways {
        function: memory.address(ways.function),
        main: memory.address(ways.main),
        tail: memory.address(ways.tail),
    };
    let start = memory.address(0);
    let extent = start..start + emitted.bytes.len() as u64;
    Some(Native::new(memory, ways, functions, extent))
}

/// The machine code that `compile` makes executable: for listings, on any host. None
/// for a program that is too large.
#[must_use]
pub fn emit(lowered: &Lowered) -> Option<Emitted> {
    emit_for(Arch::HOST, lowered)
}

/// The machine code for a machine that need not be the host. It names addresses of this
/// process all the same, and is for reading only then.
#[must_use]
pub fn emit_for(machine: Arch, lowered: &Lowered) -> Option<Emitted> {
    let counts = Counts::of(lowered);
    match machine {
        Arch::X86_64 => x86_64::emit(lowered, &counts, x86_64::Features::of_host()),
        Arch::Arm64 => arm64::emit(lowered, &counts, arm64::Features::of_host()),
    }
}

/// The extensions of a machine that code for it uses here: what the host has, if it is
/// one; empty if there are none.
#[must_use]
pub fn extensions(machine: Arch) -> &'static str {
    match machine {
        Arch::X86_64 if x86_64::Features::of_host().bmi2 => "BMI2",
        Arch::Arm64 if arm64::Features::of_host().lse => "LSE",
        _ => "",
    }
}
