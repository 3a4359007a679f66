//! Kernel objects of struct_ops programs: arguments of a larger type, and what the programs may
//! write (`is_valid_access` and `btf_struct_access` of each structure of operations).

use crate::btf::{Btf, Kind};
use crate::spec::ProgType;
use crate::spec::struct_ops::{self, Operations, Writable};
use crate::util::TypeId;
use crate::verifier::env::Verifier;
use crate::verifier::reject::{VerifyResult, reject, unmodelled};

impl Verifier<'_> {
    /// The structure that the program gets for an argument of this type.
    pub(in crate::verifier) fn promoted(&self, id: TypeId) -> TypeId {
        let operations = self.operations().and_then(|operations| operations.promoted);
        let (Some((from, to)), Some(btf)) = (operations, &self.program.kernel_btf) else {
            return id;
        };
        let larger = btf.find(to, Kind::Struct);
        larger
            .filter(|_| btf.ty(id).name() == from)
            .map_or(id, |larger| larger.id())
    }

    /// The structure of operations that the program implements a member of.
    fn operations(&self) -> Option<&'static Operations> {
        let program = self.program;
        let btf = program.kernel_btf.as_ref()?;
        let structure = btf.get(program.attach_btf_id?)?;
        (program.prog_type == ProgType::StructOps).then(|| struct_ops::find(structure.name()))?
    }

    /// Checks a store of a struct_ops program to a kernel object.
    pub(super) fn check_operations_write(
        &self,
        btf: &Btf,
        id: TypeId,
        off: u32,
        size: u32,
    ) -> VerifyResult {
        let Some(operations) = self.operations() else {
            unmodelled!(StructOps);
        };
        let name = btf.ty(id).name();
        let end = off.saturating_add(size);
        match operations.writable {
            Writable::Whole(wanted) if name != wanted => {
                reject!(EACCES, "only access to {wanted} is supported")
            }
            Writable::Whole(_) => {
                if end > btf.ty(id).size().unwrap_or_default() {
                    reject!(EACCES, "write access at off {off} with size {size}");
                }
                Ok(())
            }
            Writable::Members { structure, .. } if name != structure => {
                reject!(EACCES, "only read is supported")
            }
            Writable::Members { structure, members } => {
                let mut found = members.iter().filter_map(|(within, path)| {
                    let within = btf.find(within, Kind::Struct)?.id();
                    let field = btf.field(within, path).ok()?;
                    let start = u32::try_from(field.bit_offset / 8).ok()?;
                    let bytes = u32::try_from(field.bit_size.div_ceil(8)).ok()?;
                    let is_array = btf.resolve(field.ty).is_ok_and(|ty| ty.array().is_some());
                    let inside = start..start.saturating_add(bytes);
                    let hit = off == start || is_array && inside.contains(&off);
                    hit.then_some(inside.end)
                });
                let Some(last) = found.next() else {
                    reject!(EACCES, "no write support to {structure} at off {off}");
                };
                if end > last {
                    reject!(
                        EACCES,
                        "write access at off {off} with size {size} beyond the member of \
                         {structure} ended at {last}"
                    );
                }
                Ok(())
            }
        }
    }
}
