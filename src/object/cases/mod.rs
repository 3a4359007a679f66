//! Cases: programs as they reach the kernel, one JSON object a line, with what the
//! kernel said of them. It is the format in which bpflab exchanges programs:
//! reproducers, findings of fuzzers, collections with verdicts.
//!
//! | key | meaning |
//! |---|---|
//! | `id` | unique name |
//! | `object`, `program`, `section`, `type_name` | where it comes from |
//! | `prog_type`, `expected_attach_type`, `attach_btf_id`, `attach_prog_fd`, `attach_btf_name`, `prog_flags`, `license`, `kern_name` | as in `BPF_PROG_LOAD` |
//! | `insns`, `insn_cnt` | instructions in hexadecimal, 8 bytes each; their number |
//! | `fixups` | `[[instruction, map], …]`: the 64-bit immediate there names that map; -1: it stays as it is |
//! | `maps` | definitions ([`CaseMap`]) |
//! | `btf`, `func_info` | name of the program's BTF, `btf/NAME.btf` beside the file; records of 8 bytes in hexadecimal |
//! | `runs` | `[{"data": hex, "retval": n}, …]`: what `BPF_PROG_TEST_RUN` gave |
//! | `kernel` | what the kernel said ([`KernelSays`]) |
//!
//! Only `insns` and `prog_type` must be there. Keys that aren't in the table are kept.

mod case;
mod convert;
mod hex;
mod reader;

pub use case::{Case, CaseMap, Fixup, KernelSays, Run};
pub use convert::btf_name;
pub use hex::Hex;
pub use reader::{CaseError, CaseProblem, Cases, read_case};
