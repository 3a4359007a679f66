//! What a pointer parameter takes (`get_kfunc_ptr_arg_type`).

use super::Call;
use crate::btf::{Btf, FieldKind, Kind as BtfKind, Type};
use crate::isa::Reg;
use crate::spec::call::{DynptrUse, Precondition};
use crate::spec::kfuncs::ParameterKind;
use crate::verifier::attach_target::kind_name;
use crate::verifier::context_type;
use crate::verifier::env::Verifier;
use crate::verifier::reg::Kind;
use crate::verifier::reject::{VerifyResult, reject};

/// The nesting of structures up to which they count as plain memory.
const MAX_NESTING: u32 = 3;

/// What a pointer parameter takes (`enum kfunc_ptr_arg_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Takes {
    /// The program's context.
    Context,
    /// Null, which is not checked further.
    Null,
    /// A dynptr.
    Dynptr(DynptrUse),
    /// An iterator.
    Iterator,
    /// A string in a read-only map.
    ConstString,
    /// A map.
    Map,
    /// A special field in a map's value.
    Field(FieldKind),
    /// A stack slot for the interrupt state.
    IrqFlag,
    /// A kernel object.
    Object,
    /// A function of the program.
    Callback,
    /// Memory of the parameter's type.
    Memory,
    /// Memory with its size in the next argument.
    SizedMemory,
    /// An object that the program allocated.
    Allocated,
    /// An object whose references are counted.
    Refcounted,
    /// A list head or a tree root.
    Root(FieldKind),
    /// A node of a list or a tree.
    Node(FieldKind),
    /// A `struct bpf_res_spin_lock`.
    Lock,
}

impl Verifier<'_> {
    /// What parameter number `at`, a pointer to `pointed`, takes.
    pub(super) fn kfunc_pointer(
        &self,
        call: &Call<'_>,
        at: usize,
        pointed: Type<'_>,
    ) -> VerifyResult<Takes> {
        let Some((parameter, argument)) =
            std::iter::zip(call.kfunc.parameters, call.kfunc.arguments).nth(at)
        else {
            reject!(EFAULT, "{call} has no argument {at}");
        };
        let reg = Reg::ARGUMENTS.get(at).map(|reg| self.reg(*reg));
        let Some(reg) = reg else {
            reject!(EFAULT, "{call} has too many arguments");
        };
        if call.is("bpf_cast_to_kern_ctx")
            || context_type::is_context(call.btf, pointed.id(), self.program.prog_type)
        {
            return Ok(Takes::Context);
        }
        if parameter.name.ends_with("__nullable") && reg.is_null() {
            return Ok(Takes::Null);
        }
        let dynptr = argument.preconditions.iter().find_map(|one| match one {
            Precondition::Dynptr(of) => Some(*of),
            _ => None,
        });
        if let Some(dynptr) = dynptr {
            return Ok(Takes::Dynptr(dynptr));
        }
        match parameter.kind {
            ParameterKind::Allocated => return Ok(Takes::Allocated),
            ParameterKind::Refcounted => return Ok(Takes::Refcounted),
            ParameterKind::ListHead => return Ok(Takes::Root(FieldKind::ListHead)),
            ParameterKind::RbRoot => return Ok(Takes::Root(FieldKind::RbRoot)),
            ParameterKind::ListNode => return Ok(Takes::Node(FieldKind::ListNode)),
            ParameterKind::RbNode => return Ok(Takes::Node(FieldKind::RbNode)),
            ParameterKind::ResSpinLock => return Ok(Takes::Lock),
            ParameterKind::Iterator => return Ok(Takes::Iterator),
            ParameterKind::ConstString => return Ok(Takes::ConstString),
            ParameterKind::Map => return Ok(Takes::Map),
            ParameterKind::Workqueue => return Ok(Takes::Field(FieldKind::Workqueue)),
            ParameterKind::TaskWork => return Ok(Takes::Field(FieldKind::TaskWork)),
            ParameterKind::IrqFlag => return Ok(Takes::IrqFlag),
            _ => {}
        }
        let (kind, name) = (kind_name(pointed.kind()), pointed.name());
        // It has a type in BTF, or stands for one that has.
        if matches!(reg.kind, Kind::BtfId { .. }) || reg.has_btf_type() {
            if !pointed.kind().is_composite() {
                reject!(
                    EINVAL,
                    "kernel function {} args#{at} pointer type {kind} {name} is not supported",
                    call.kfunc.name
                );
            }
            return Ok(Takes::Object);
        }
        if parameter.kind == ParameterKind::Callback {
            return Ok(Takes::Callback);
        }
        let sized = self.has_size_behind(call, at);
        if is_number(pointed) {
            // Memory of any type that a number has.
        } else if let Some(fault) = plain_fault(call.btf, pointed, 0)
            && !(sized && pointed.kind() == BtfKind::Void)
        {
            let void = if sized { "void, " } else { "" };
            let nesting = match fault {
                Fault::TooDeep => "max struct nesting depth exceeded\n",
                Fault::Pointer => "",
            };
            reject!(
                EINVAL,
                "{nesting}arg#{at} pointer type {kind} {name} must point to {void}scalar, \
                 or struct with scalar"
            );
        }
        Ok(if sized {
            Takes::SizedMemory
        } else {
            Takes::Memory
        })
    }

    /// Whether the next argument is the size of this one's memory.
    fn has_size_behind(&self, call: &Call<'_>, at: usize) -> bool {
        let next = at + 1;
        let size = call.kfunc.parameters.get(next).is_some_and(|parameter| {
            matches!(
                parameter.kind,
                ParameterKind::Size | ParameterKind::ConstantSize
            )
        });
        let reg = Reg::ARGUMENTS.get(next);
        size && reg.is_some_and(|reg| self.reg(*reg).is_scalar())
    }
}

/// Whether the type is a number (`btf_type_is_scalar`).
pub(super) fn is_number(ty: Type<'_>) -> bool {
    ty.kind() == BtfKind::Int || ty.kind().is_any_enum()
}

/// Why a structure is not plain memory.
pub(super) enum Fault {
    /// It has a member that is neither a number, an array of them, nor such a structure.
    Pointer,
    /// The kernel looks only at four levels.
    TooDeep,
}

/// Why a type is no structure of numbers (`__btf_type_is_scalar_struct`).
pub(super) fn plain_fault(btf: &Btf, ty: Type<'_>, nesting: u32) -> Option<Fault> {
    if !ty.kind().is_composite() {
        return Some(Fault::Pointer);
    }
    for member in ty.members() {
        let Ok(mut inner) = btf.resolve(member.ty) else {
            return Some(Fault::Pointer);
        };
        if inner.kind().is_composite() {
            if nesting >= MAX_NESTING {
                return Some(Fault::TooDeep);
            }
            if let Some(fault) = plain_fault(btf, inner, nesting + 1) {
                return Some(fault);
            }
            continue;
        }
        if let Some(array) = inner.array() {
            match btf.resolve(array.element) {
                Ok(element) if array.len > 0 => inner = element,
                _ => return Some(Fault::Pointer),
            }
        }
        if !is_number(inner) {
            return Some(Fault::Pointer);
        }
    }
    None
}
