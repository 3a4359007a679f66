//! The address of a kernel variable (`check_pseudo_btf_id`).

use crate::btf::{Kind as BtfKind, Type};
use crate::spec::helpers::TypeFlags;
use crate::util::TypeId;
use crate::verifier::env::Verifier;
use crate::verifier::reg::{Kind, ObjectType, RegState};
use crate::verifier::reject::{VerifyResult, reject, unmodelled};

/// The section of per-CPU variables.
const PERCPU: &str = ".data..percpu";

impl Verifier<'_> {
    /// A pointer to a kernel variable, or to a function, which is memory of size 0: its
    /// address can be compared but not dereferenced.
    pub(crate) fn kernel_symbol(&self, id: TypeId) -> VerifyResult<RegState> {
        let Some(btf) = &self.program.kernel_btf else {
            unmodelled!(KernelBtf);
        };
        let read_only = |size| RegState::pointer(Kind::Mem { size }, TypeFlags::MEM_RDONLY);
        let symbol = btf.ty(id);
        if symbol.kind() != BtfKind::Var {
            return Ok(read_only(0));
        }
        let type_id = symbol.target_id().unwrap_or_default();
        let object = Kind::BtfId {
            ty: ObjectType::kernel(type_id),
        };
        if is_percpu(symbol) {
            return Ok(RegState::pointer(object, TypeFlags::MEM_PERCPU));
        }
        let is_object = |ty: Type<'_>| ty.kind().is_composite();
        if btf.resolve(type_id).is_ok_and(is_object) {
            return Ok(RegState::pointer(object, TypeFlags::empty()));
        }
        match btf.size_of(type_id) {
            Ok(size) => Ok(read_only(size)),
            Err(_) => reject!(
                EINVAL,
                "ldimm64 unable to resolve the size of type '{}': -22",
                btf.ty(type_id).name()
            ),
        }
    }
}

/// Whether each CPU has its own instance of a variable.
fn is_percpu(symbol: Type<'_>) -> bool {
    let section = symbol.btf().find(PERCPU, BtfKind::Datasec);
    section.is_some_and(|section| {
        let mut variables = section.variables();
        variables.any(|variable| variable.ty == symbol.id())
    })
}
