//! Programs that someone else has loaded into the kernel, as what others attach to.

use super::call::signature;
use crate::btf::{FuncInfo, Linkage};
use crate::program::{Program, TargetFunction, exception_callbacks};

/// The functions of a program that someone else has loaded, as far as their types tell.
pub(crate) fn loaded_functions(program: &Program) -> Vec<TargetFunction> {
    let Some(btf) = &program.btf else {
        return Vec::new();
    };
    let main = program.func_info.first().map(|main| main.ty);
    let callback = main.and_then(|main| exception_callbacks(btf, main).next());
    let function = |info: &FuncInfo| {
        let ty = btf.ty(info.ty);
        let is_main = Some(info.ty) == main;
        TargetFunction {
            type_id: info.ty,
            reliable: if is_main {
                let signature = signature::of(program, 0, main, false);
                Some(signature.is_ok_and(|signature| signature.is_main()))
            } else {
                // It was verified by its type; a static one by its calls.
                (ty.linkage() == Some(Linkage::Global)).then_some(true)
            },
            exception_callback: callback == Some(ty.name()),
            changes_packet: None,
            might_sleep: None,
        }
    };
    program.func_info.iter().map(function).collect()
}
