//! CO-RE relocation: adapts an access compiled against one kernel's types to another
//! kernel's types.
//!
//! A relocation refers to a type of the object and an access from it (`0:1:2`). The
//! target's types with the same name, ignoring flavors (`___x`), are its candidates; in
//! each the access is followed by member names. The results of all candidates that have it
//! must agree; the result replaces the compiler's value in the instruction. If no candidate
//! has it, the result is 0 for an existence check, and otherwise a poisoned instruction: an
//! invalid helper call, which the verifier rejects if it is reachable. The rules are those
//! of libbpf's `relo_core.c`.

mod access;
mod compat;
mod error;
mod kind;
mod patch;
mod search;
mod value;

use rustc_hash::FxHashMap;

pub(in crate::object) use compat::types_are_compatible;
pub use error::{Ambiguity, CoreError, Fault};
pub use kind::{Group, RelocationKind};
pub use patch::{POISON, is_poison, poison};

use crate::btf::{Btf, CoreRelo, essential_name};
use crate::isa::RawInsn;
use crate::util::{Pc, TypeId};
use access::Access;
use patch::Patched;
use value::Outcome;

/// The result of a relocation.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Resolution {
    /// The kind of relocation.
    pub kind: RelocationKind,
    /// The access in the object, in C: `struct task_struct___old.state`.
    pub access: String,
    /// The same with its indices and offset, as libbpf logs it:
    /// `struct task_struct___old.state (0:1 @ offset 24)`.
    pub local: String,
    /// The access in the target, in the same form; `None` if the target doesn't have it.
    pub target: Option<String>,
    /// The new contents of the instruction.
    pub result: Relocated,
}

/// Contents of a relocated instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relocated {
    /// This number.
    Value(u64),
    /// A [`poison`]ed call, because the target doesn't have the access.
    Missing,
    /// A [`poison`]ed call, because the target's field has another size, and a signed
    /// integer, struct or float can't be accessed at another size.
    WrongSize,
}

impl Resolution {
    /// The number in the instruction, if it wasn't poisoned.
    #[must_use]
    pub const fn value(&self) -> Option<u64> {
        match self.result {
            Relocated::Value(value) => Some(value),
            Relocated::Missing | Relocated::WrongSize => None,
        }
    }
}

/// A target type with the local type's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Candidate {
    /// Index into the targets.
    target: usize,
    id: TypeId,
}

/// Relocates the instructions of one object for one target.
///
/// ```
/// # use bpflab::btf::{Btf, Builder, CoreRelo, Encoding, Member};
/// # use bpflab::isa::RawInsn;
/// # use bpflab::object::core::Relocator;
/// # fn table(bit_offset: u32) -> (Btf, u32, bpflab::util::TypeId) {
/// #     let mut b = Builder::new();
/// #     let access = b.string("0:0");
/// #     let int = b.int("int", 4, Encoding::Signed);
/// #     let id = b.structure("task", 16, &[Member { name: "pid", ty: int, bit_offset, bitfield: None }]);
/// #     (b.build().unwrap(), access, id)
/// # }
/// # let ((local, access, ty), (target, ..)) = (table(0), table(64));
/// // local: struct task { int pid; }, target: struct task { long flags; int pid; }
/// let mut insns = [RawInsn::new(0x61, 0, 1, 0, 0)]; // r0 = *(u32 *)(r1 + 0)
/// let record = CoreRelo { insn_off: 0, ty, access, kind: 0 };
/// let done = Relocator::new(&local, &[target]).relocate(&mut insns, 0, &record)?;
/// assert_eq!(insns[0].off, 8);
/// assert_eq!(done.local, "struct task.pid (0:0 @ offset 0)");
/// # Ok::<(), bpflab::object::core::CoreError>(())
/// ```
#[derive(Debug)]
pub struct Relocator<'a> {
    local: &'a Btf,
    targets: &'a [Btf],
    /// Candidates of each local type, cached. As in libbpf, candidates that lack an access
    /// that others have are dropped permanently.
    candidates: FxHashMap<TypeId, Vec<Candidate>>,
}

impl<'a> Relocator<'a> {
    /// For the object's own BTF and the target's: the kernel's first, then those of its
    /// modules, which are searched for types missing from the kernel.
    #[must_use]
    pub fn new(local: &'a Btf, targets: &'a [Btf]) -> Self {
        Self {
            local,
            targets,
            candidates: FxHashMap::default(),
        }
    }

    /// The access of a record in C, even if it can't be relocated: for messages about its
    /// instruction.
    #[must_use]
    pub fn access(&self, record: &CoreRelo) -> String {
        match self.parse(record) {
            Ok(access) => access.c(),
            Err(_) => self.local.type_name(record.ty),
        }
    }

    /// Relocates the instruction at `at`, an index into `insns`; the record's own
    /// offset, which counts from its section, is not used.
    ///
    /// # Errors
    /// [`CoreError`] if the record is invalid, candidates disagree, or the instruction
    /// isn't the one the compiler made for this access. A missing target is not an error:
    /// the instruction is poisoned.
    pub fn relocate(
        &mut self,
        insns: &mut [RawInsn],
        at: usize,
        record: &CoreRelo,
    ) -> Result<Resolution, CoreError> {
        let kind = RelocationKind::from_number(record.kind);
        self.try_relocate(insns, at, record)
            .map_err(|fault| CoreError {
                insn: Pc::from_index(at),
                kind,
                access: self.access(record),
                fault,
            })
    }

    fn try_relocate(
        &mut self,
        insns: &mut [RawInsn],
        at: usize,
        record: &CoreRelo,
    ) -> Result<Resolution, Fault> {
        let access = self.parse(record)?;
        let (target, new) = self.resolve(&access)?;
        let c = access.c();
        let mut resolution = Resolution {
            kind: access.kind,
            local: access.with_place(c.clone()),
            access: c,
            target: target.as_ref().map(Access::text),
            result: Relocated::Missing,
        };
        let old = value::of(access.kind, Some(&access))?;
        if let (Some(old), Some(new)) = (old, new) {
            // Without a field in the target there is no size to compare, so any table
            // works.
            let table = target.as_ref().map_or(self.local, |target| target.btf);
            match patch::patch(insns, at, (self.local, old), (table, new))? {
                Patched::Done => {
                    resolution.result = Relocated::Value(new.value);
                    return Ok(resolution);
                }
                Patched::WrongSize => resolution.result = Relocated::WrongSize,
            }
        }
        patch::poison_at(insns, at)?;
        Ok(resolution)
    }

    fn parse(&self, record: &CoreRelo) -> Result<Access<'a>, Fault> {
        let kind = RelocationKind::from_number(record.kind).ok_or(Fault::Kind(record.kind))?;
        let string = self
            .local
            .string(record.access)
            .ok_or(Fault::String(record.access))?;
        Access::parse(self.local, record.ty, kind, string)
    }

    /// The access in the target and its value. No value if no candidate has the access and
    /// the kind is not an existence check.
    fn resolve(
        &mut self,
        local: &Access<'a>,
    ) -> Result<(Option<Access<'a>>, Option<Outcome>), Fault> {
        if local.kind == RelocationKind::TypeIdLocal {
            return Ok((Some(local.clone()), value::of(local.kind, Some(local))?));
        }
        if local.root_type().name().is_empty() {
            return Err(Fault::Anonymous);
        }
        let targets = self.targets;
        let candidates = self
            .candidates
            .entry(local.root)
            .or_insert_with(|| candidates(self.local, local.root, targets));
        let mut kept = Vec::new();
        let mut first: Option<(Access<'a>, Option<Outcome>)> = None;
        for candidate in candidates.iter() {
            let Some(target) = targets.get(candidate.target) else {
                continue;
            };
            let Some(access) = search::follow(local, target, candidate.id)? else {
                continue;
            };
            let outcome = value::of(local.kind, Some(&access))?;
            match &first {
                None => first = Some((access, outcome)),
                Some(first) => agree(first, &(access, outcome))?,
            }
            kept.push(*candidate);
        }
        if let Some((access, outcome)) = first {
            *candidates = kept;
            return Ok((Some(access), outcome));
        }
        Ok((None, value::of(local.kind, None)?))
    }
}

/// The types of the targets with the local type's name and kind. As in libbpf, modules are
/// searched only if the kernel has none.
///
/// Without a kernel, the object's own BTF is the target, and its flavors need not agree: a
/// type resolves to the one without a flavor (the type in the kernel headers at compile
/// time) or, if there is none, to itself.
fn candidates(local: &Btf, root: TypeId, targets: &[Btf]) -> Vec<Candidate> {
    let wanted = local.ty(root);
    let mut found = Vec::new();
    for (target, btf) in targets.iter().enumerate() {
        if target == 1 && !found.is_empty() {
            break;
        }
        let name = essential_name(wanted.name());
        let kernel_ends = btf.kernel().count();
        let is_own = btf.same(local);
        let has_plain = btf.named(name).any(|ty| compat::same_kind(wanted, ty));
        let same = btf.flavors(name).filter(|ty| {
            let is_meant = match (is_own, has_plain) {
                (false, _) => true,
                (true, true) => ty.name() == name,
                (true, false) => ty.id() == root,
            };
            is_meant && compat::same_kind(wanted, *ty) && (target == 0 || ty.id() >= btf.first_id())
        });
        let mut same: Vec<TypeId> = same.map(|ty| ty.id()).collect();
        let is_kernels = |id: &TypeId| id.0 < kernel_ends;
        if same.iter().any(is_kernels) {
            same.retain(is_kernels);
        }
        found.extend(same.into_iter().map(|id| Candidate { target, id }));
    }
    found
}

/// Checks that candidates with the access agree on offset and value.
fn agree(
    (first, one): &(Access<'_>, Option<Outcome>),
    (second, other): &(Access<'_>, Option<Outcome>),
) -> Result<(), Fault> {
    let value = |outcome: &Option<Outcome>| outcome.map(|outcome| outcome.value);
    if first.bit_offset == second.bit_offset && value(one) == value(other) {
        return Ok(());
    }
    let show = |outcome: &Option<Outcome>| {
        value(outcome).map_or_else(|| "nothing".to_owned(), |value| value.to_string())
    };
    Err(Fault::Ambiguous(Box::new(Ambiguity {
        first: (first.text(), show(one)),
        second: (second.text(), show(other)),
    })))
}

#[cfg(test)]
mod tests;
