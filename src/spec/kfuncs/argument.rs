//! Preconditions of a kfunc's arguments (`check_kfunc_args`, `kernel/bpf/verifier.c`).

use super::flags::KfuncFlags;
use super::parameter::{Parameter, ParameterKind};
use crate::btf::FieldKind;
use crate::spec::call::{
    Access, ArgSpec, DynptrUse, Extent, IteratorKind, Precondition, Preconditions, RegTypes, Region,
};

/// The arguments for these parameters of a kfunc.
pub(super) fn arguments(parameters: &[Parameter], flags: KfuncFlags) -> Vec<ArgSpec> {
    let is_size = |parameter: &Parameter| {
        matches!(
            parameter.kind,
            ParameterKind::Size | ParameterKind::ConstantSize
        )
    };
    let numbered = parameters.iter().enumerate();
    let arguments = numbered.map(|(number, parameter)| {
        let argument = Argument {
            parameter,
            flags,
            is_first: number == 0,
            is_sized: parameters.get(number + 1).is_some_and(is_size),
        };
        ArgSpec {
            nullable: parameter.nullable,
            preconditions: argument.preconditions().as_slice().to_vec().leak(),
        }
    });
    arguments.collect()
}

/// A parameter, with what determines its preconditions.
struct Argument<'a> {
    parameter: &'a Parameter,
    flags: KfuncFlags,
    is_first: bool,
    /// Whether the next parameter is the size of this one's memory.
    is_sized: bool,
}

impl Argument<'_> {
    fn preconditions(&self) -> Preconditions {
        let number = Preconditions::NONE.and(Precondition::Is(RegTypes::SCALAR));
        let size = Precondition::Size { zero: true };
        match self.parameter.kind {
            // The verifier does not look at them.
            ParameterKind::Ignored | ParameterKind::Program => Preconditions::NONE,
            ParameterKind::Scalar => number,
            ParameterKind::Constant => number.and(Precondition::Constant),
            ParameterKind::Size => number.and(size),
            ParameterKind::ConstantSize => number.and(Precondition::Constant).and(size),
            ParameterKind::BufferSize => number.and(Precondition::ResultSize),
            _ => self.of_pointer(),
        }
    }

    fn of_pointer(&self) -> Preconditions {
        let releases = self.is_first && self.flags.contains(KfuncFlags::RELEASE);
        // KF_RELEASE implies KF_TRUSTED_ARGS.
        let trusted = KfuncFlags::TRUSTED_ARGS | KfuncFlags::RELEASE;
        let trusted = if self.flags.intersects(trusted) {
            Some(Precondition::Trusted)
        } else {
            let rcu = self.flags.contains(KfuncFlags::RCU);
            rcu.then_some(Precondition::TrustedOrRcu)
        };
        let not_null = trusted.map(|_| Precondition::NotNull);
        let list = Preconditions::NONE
            .and_some(not_null.filter(|_| !self.parameter.nullable))
            .and(Precondition::OnlyReference)
            .and(Precondition::Is(self.types()))
            .and_some(trusted.filter(|_| self.is_object()));
        let list = if releases {
            list.and(Precondition::NoOffset).and(Precondition::Released)
        } else {
            list.and(Precondition::OffsetOfType)
        };
        list.and_some(self.target())
    }

    /// Whether the pointer refers to an object whose life the verifier tracks.
    const fn is_object(&self) -> bool {
        matches!(
            self.parameter.kind,
            ParameterKind::Object | ParameterKind::Allocated | ParameterKind::Refcounted
        )
    }

    /// The types of registers that may be passed.
    fn types(&self) -> RegTypes {
        match self.parameter.kind {
            ParameterKind::Context => RegTypes::CTX,
            ParameterKind::Dynptr => RegTypes::DYNPTR,
            ParameterKind::Iterator | ParameterKind::IrqFlag => RegTypes::STACK,
            ParameterKind::ListHead | ParameterKind::RbRoot | ParameterKind::ResSpinLock => {
                RegTypes::HOLDS_FIELDS
            }
            ParameterKind::ListNode
            | ParameterKind::RbNode
            | ParameterKind::Allocated
            | ParameterKind::Refcounted => RegTypes::ALLOCATED,
            ParameterKind::Callback => RegTypes::FUNC,
            ParameterKind::ConstString | ParameterKind::Workqueue | ParameterKind::TaskWork => {
                RegTypes::MAP_VALUE
            }
            ParameterKind::Map => RegTypes::MAP_PTR,
            ParameterKind::Memory => RegTypes::MEMORY,
            ParameterKind::Object => RegTypes::OBJECT,
            _ => RegTypes::SCALAR,
        }
    }

    /// The precondition on what the pointer points to.
    fn target(&self) -> Option<Precondition> {
        let Parameter {
            base, name, uninit, ..
        } = *self.parameter;
        let structure = base.strip_prefix("struct ");
        Some(match self.parameter.kind {
            ParameterKind::Dynptr => Precondition::Dynptr(if uninit {
                DynptrUse::Initialises
            } else {
                DynptrUse::Keeps
            }),
            ParameterKind::Iterator => {
                Precondition::Iterator(structure.and_then(IteratorKind::of_structure))
            }
            ParameterKind::ListHead => Precondition::Field(FieldKind::ListHead),
            ParameterKind::ListNode => Precondition::Field(FieldKind::ListNode),
            ParameterKind::RbRoot => Precondition::Field(FieldKind::RbRoot),
            ParameterKind::RbNode => Precondition::Field(FieldKind::RbNode),
            ParameterKind::Workqueue => Precondition::Field(FieldKind::Workqueue),
            ParameterKind::TaskWork => Precondition::Field(FieldKind::TaskWork),
            ParameterKind::ResSpinLock => Precondition::Field(FieldKind::ResSpinLock),
            ParameterKind::Refcounted => Precondition::Field(FieldKind::Refcount),
            ParameterKind::Callback => Precondition::Callback,
            ParameterKind::ConstString => Precondition::ConstString,
            ParameterKind::Map => Precondition::Map,
            ParameterKind::IrqFlag => Precondition::IrqFlag,
            ParameterKind::Object => Precondition::Object(structure),
            ParameterKind::Memory => Precondition::Memory(Region {
                extent: if self.is_sized {
                    Extent::Next
                } else {
                    Extent::Type(base)
                },
                access: Access::Write,
                // The kernel names output buffers `dst`.
                uninit: name == "dst",
                aligned: false,
            }),
            _ => return None,
        })
    }
}
