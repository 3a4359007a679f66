//! Programs of several functions with types.

use crate::btf::FuncInfo;
use crate::program::{Program, Subprogram};
use crate::util::{Pc, TypeId};

/// Adds a function that starts there.
pub(super) fn add_function(
    program: &mut Program,
    name: &str,
    start: Pc,
    ty: TypeId,
    is_global: bool,
) {
    let function = Subprogram::new(name, start).with_type_id(ty);
    program.subprograms.push(function.with_global(is_global));
    program.func_info.push(FuncInfo {
        insn_off: start.0,
        ty,
    });
}
