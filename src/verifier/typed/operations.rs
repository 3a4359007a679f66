//! Kernel objects of struct_ops programs: arguments of another type, and what the programs may
//! write (`is_valid_access` and `btf_struct_access` of each structure of operations).

use std::ops::Range;

use crate::btf::{Btf, Kind};
use crate::spec::struct_ops::{Operations, Place, Span, Writable};
use crate::util::TypeId;
use crate::verifier::env::Verifier;
use crate::verifier::reject::{VerifyResult, reject, unmodelled};

/// A store to a kernel object: which bytes of which structure.
#[derive(Clone, Copy)]
struct Store<'a> {
    btf: &'a Btf,
    /// The structure's name.
    name: &'a str,
    off: u32,
    size: u32,
}

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
        let member = self.attach?.member()?;
        Some(member.operations)
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
        let ty = btf.ty(id);
        let name = ty.name();
        let store = Store {
            btf,
            name,
            off,
            size,
        };
        let is_past = store.end() > ty.size().unwrap_or_default();
        match operations.writable {
            Writable::Whole(wanted) if name != wanted => {
                reject!(EACCES, "only access to {wanted} is supported")
            }
            Writable::Whole(_) if is_past => {
                reject!(EACCES, "write access at off {off} with size {size}")
            }
            Writable::Whole(_) => Ok(()),
            Writable::Members(structures) => {
                match structures.iter().find(|(structure, _)| name == *structure) {
                    Some((_, places)) => store.check_member(places),
                    None => reject!(EACCES, "only read is supported"),
                }
            }
            Writable::Spans { spans, silent } => {
                let own = || spans.iter().filter(|span| span.structure == name);
                match own().any(|span| store.is_in(*span)) {
                    true if !is_past => Ok(()),
                    _ if silent => reject!(EACCES, ""),
                    _ if own().next().is_none() => {
                        reject!(EACCES, "write access to this struct is not supported")
                    }
                    _ if is_past => reject!(
                        EACCES,
                        "write access for struct {name} at off {off} with size {size}"
                    ),
                    _ => reject!(
                        EACCES,
                        "write access at off {off} with size {size} on read-only part of {name}"
                    ),
                }
            }
        }
    }
}

impl Store<'_> {
    fn end(&self) -> u32 {
        self.off.saturating_add(self.size)
    }

    /// Checks that the store begins and ends in one of these places.
    fn check_member(&self, places: &[Place]) -> VerifyResult {
        let Self {
            name, off, size, ..
        } = *self;
        let found = places.iter().find_map(|place| {
            let (bytes, in_parts) = self.bytes(place)?;
            let hit = off == bytes.start || in_parts && bytes.contains(&off);
            hit.then_some(bytes.end)
        });
        let Some(last) = found else {
            reject!(EACCES, "no write support to {name} at off {off}");
        };
        if self.end() > last {
            reject!(
                EACCES,
                "write access at off {off} with size {size} beyond the member of {name} ended at \
                 {last}"
            );
        }
        Ok(())
    }

    /// Whether all bytes are in this member.
    fn is_in(&self, span: Span) -> bool {
        let place = [(span.structure, span.path)];
        let bytes = self.bytes(&place).map(|(bytes, _)| bytes);
        bytes.is_some_and(|bytes| {
            let end = bytes.end.saturating_sub(span.is_string.into());
            bytes.start <= self.off && self.end() <= end
        })
    }

    /// The bytes of a place, and whether a store may begin at any of them.
    fn bytes(&self, place: &[(&str, &str)]) -> Option<(Range<u32>, bool)> {
        let (mut start, mut end, mut in_parts) = (0u32, 0, false);
        for (structure, path) in place {
            let structure = self.btf.find(structure, Kind::Struct)?.id();
            let field = self.btf.field(structure, path).ok()?;
            start = start.checked_add(u32::try_from(field.bit_offset / 8).ok()?)?;
            end = start.checked_add(u32::try_from(field.bit_size.div_ceil(8)).ok()?)?;
            let ty = self.btf.resolve(field.ty).ok()?;
            in_parts = ty.array().is_some() || ty.kind() == Kind::Struct;
        }
        Some((start..end, in_parts))
    }
}
