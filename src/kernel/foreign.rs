//! Programs that someone else has loaded into the kernel, as what others attach to.

use std::sync::Arc;

use super::error::{Command, KernelError};
use super::sys::ProgFd;
use crate::btf::{Btf, FuncInfo};
use crate::program::{Program, TargetProgram};
use crate::spec::ProgType;
use crate::util::{Errno, Reader, TypeId};
use crate::verifier::loaded_target::loaded_functions;

/// The program with this id in the running kernel (`bpftool prog`), as one that other programs
/// attach to ([`Object::set_attach_program`](crate::Object::set_attach_program)). A load of such a
/// program names it by its id.
///
/// The kernel does not tell everything. Which attach type the program has is not known: it is taken
/// to be the first of its type. Whether a static function has the type that its BTF says, whether
/// a function may move packet bytes or sleep, is not known either: a verdict that rests on it is
/// unjudged.
///
/// # Errors
/// There is no such program, or this process may not read it (it takes `CAP_SYS_ADMIN`); tracing
/// programs and extensions, whose attach type and target decide and are not known.
pub fn loaded_target(id: u32) -> Result<TargetProgram, KernelError> {
    let failed = |errno| KernelError::new(Command::ObjGetInfo, format!("program {id}"), errno);
    let refused = |log: String| KernelError {
        log,
        ..failed(Errno::ENOTSUPP)
    };
    let types = ProgFd::by_id(id)
        .and_then(|fd| fd.types())
        .map_err(failed)?;
    let prog_type = ProgType::from_number(types.prog_type)
        .ok_or_else(|| refused(format!("its type has number {}", types.prog_type)))?;
    if matches!(prog_type, ProgType::Tracing | ProgType::Ext) {
        return Err(refused(format!(
            "the kernel does not tell what a program of type {prog_type} attaches to; give its \
             object"
        )));
    }
    let btf = types.btf.map(|btf| btf.bytes()).transpose();
    let btf = btf.map_err(failed)?;
    let btf = btf.map(|bytes| Btf::parse(&bytes)).transpose();
    let mut program = Program::new(types.name, prog_type, Vec::new());
    program.btf = btf.map_err(|error| refused(format!("its BTF: {error}")))?;
    program.attach_btf_id = (types.attach_btf_id != 0).then_some(TypeId(types.attach_btf_id));
    program.expected_attach_type = prog_type.attach_types().first().copied();
    program.func_info = func_info(&types.func_info);
    let functions = loaded_functions(&program);
    Ok(TargetProgram {
        program: Arc::new(program),
        functions,
        kernel_id: Some(id),
    })
}

fn func_info(bytes: &[u8]) -> Vec<FuncInfo> {
    let mut reader = Reader::at(bytes, 0);
    let mut next = || {
        let insn_off = reader.u32().ok()?;
        let ty = TypeId(reader.u32().ok()?);
        Some(FuncInfo { insn_off, ty })
    };
    std::iter::from_fn(&mut next).collect()
}
