//! Cases: programs as loaded into the kernel, one JSON object per line, with the kernel's
//! verdict. It is bpflab's exchange format for programs: reproducers, fuzzer findings,
//! collections with verdicts.
//!
//! | key | meaning |
//! |---|---|
//! | `id` | unique name |
//! | `object`, `program`, `section`, `type_name` | where it comes from |
//! | `prog_type`, `expected_attach_type`, `attach_btf_id`, `attach_prog_fd`, `attach_btf_name`, `prog_flags`, `license`, `kern_name` | as in `BPF_PROG_LOAD` |
//! | `insns`, `insn_cnt` | instructions in hexadecimal, 8 bytes each; their number |
//! | `fixups` | `[[instruction, map], …]`: the 64-bit immediate at `instruction` refers to `map`; -1: it is not changed |
//! | `maps` | definitions ([`CaseMap`]) |
//! | `btf`, `func_info` | name of the program's BTF, `btf/NAME.btf` beside the file; records of 8 bytes in hexadecimal |
//! | `runs` | `[{"data": hex, "retval": n}, …]`: results of `BPF_PROG_TEST_RUN` |
//! | `kernel` | the kernel's verdict ([`KernelSays`]) |
//!
//! Only `insns` and `prog_type` are required. Unknown keys are preserved.

mod case;
mod convert;
mod hex;
mod reader;

pub use case::{Case, CaseMap, Fixup, KernelSays, Run};
pub use convert::btf_name;
pub use hex::Hex;
pub(crate) use reader::types_folder;
pub use reader::{CaseError, CaseProblem, Cases, read_case};
