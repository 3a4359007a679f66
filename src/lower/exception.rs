//! Exception callbacks: where a program continues after `bpf_throw`.

use crate::program::{Program, exception_callbacks};
use crate::util::Pc;

/// The slot of the program's exception callback, as named by its main function
/// (`check_btf_func`, `kernel/bpf/verifier.c`).
pub(crate) fn exception_callback(program: &Program) -> Option<Pc> {
    let btf = program.btf.as_ref()?;
    let main = program.subprograms.first()?.type_id?;
    let name = exception_callbacks(btf, main).next()?;
    let mut functions = program.subprograms.iter();
    let found = functions.find(|function| function.name == name);
    found.map(|function| function.start)
}
