//! Follows an access of the object in a type of the target.

use rustc_hash::FxHashSet;

use super::access::{Access, MAX_LEN, Step};
use super::compat;
use super::error::Fault;
use super::kind::{Group, RelocationKind};
use crate::btf::{Btf, essential_name};
use crate::util::TypeId;

/// The access in the target's type `root` that corresponds to the object's; `None` if the
/// type doesn't have it.
pub(super) fn follow<'a>(
    local: &Access<'_>,
    target: &'a Btf,
    root: TypeId,
) -> Result<Option<Access<'a>>, Fault> {
    let mut access = Access::new(target, root, local.kind);
    let found = match local.kind.group() {
        Group::Type => {
            let same = match local.kind {
                RelocationKind::TypeMatches => compat::types_match,
                _ => compat::types_are_compatible,
            };
            same(local.btf, local.root, target, root)
        }
        Group::Enumerator => enumerator(local, &mut access),
        Group::Field => field(local, &mut access)?,
    };
    Ok(found.then_some(access))
}

/// Finds the enumerator of the same name, ignoring flavors.
fn enumerator(local: &Access<'_>, access: &mut Access<'_>) -> bool {
    let wanted = local
        .steps
        .first()
        .and_then(|step| step.name)
        .map(essential_name);
    let Ok(ty) = access.btf.resolve(access.root) else {
        return false;
    };
    let found = (0u32..)
        .zip(ty.enumerators())
        .find(|(_, value)| Some(essential_name(value.name)) == wanted);
    let Some((index, value)) = found else {
        return false;
    };
    access.raw.push(index);
    access.steps.push(Step {
        ty: ty.id(),
        index,
        name: Some(value.name),
    });
    true
}

/// Finds members by name, elements by index.
fn field(local: &Access<'_>, access: &mut Access<'_>) -> Result<bool, Fault> {
    let target = access.btf;
    let mut ty = target.resolve(access.root)?;
    for (position, step) in local.steps.iter().enumerate() {
        if let Some(name) = step.name {
            let wanted = local.btf.ty(step.ty).member(step.index);
            let wanted = wanted.map_or(TypeId(0), |member| member.ty);
            let mut search = Search {
                name,
                access,
                searched: FxHashSet::default(),
            };
            let Some(found) = search.member(ty.id())? else {
                return Ok(false);
            };
            if !compat::fields_are_compatible(local.btf, wanted, target, found) {
                return Ok(false);
            }
            ty = target.resolve(found)?;
            continue;
        }
        if position > 0 {
            let Some(array) = ty.array() else {
                return Ok(false);
            };
            if step.index >= array.len && !access.ends_in(array) {
                return Ok(false);
            }
            ty = target.resolve(array.element)?;
        }
        if access.raw.len() == MAX_LEN {
            return Err(Fault::TooDeep);
        }
        access.raw.push(step.index);
        access.element(ty.id(), step.index)?;
    }
    Ok(true)
}

/// The search for a named member through anonymous structs and unions.
struct Search<'s, 'a> {
    name: &'s str,
    access: &'s mut Access<'a>,
    /// Types that were searched without success.
    searched: FxHashSet<TypeId>,
}

impl Search<'_, '_> {
    /// The type of the member of `within`; extends the access to it.
    fn member(&mut self, within: TypeId) -> Result<Option<TypeId>, Fault> {
        let ty = self.access.btf.resolve(within)?;
        if self.searched.contains(&ty.id()) {
            return Ok(None);
        }
        let start = self.access.bit_offset;
        for (index, member) in (0u32..).zip(ty.members()) {
            if member.name != self.name && !member.name.is_empty() {
                continue;
            }
            if self.access.raw.len() == MAX_LEN {
                return Err(Fault::TooDeep);
            }
            self.access.raw.push(index);
            self.access.bit_offset = start.saturating_add(u64::from(member.bit_offset));
            if member.name == self.name {
                self.access.steps.push(Step {
                    ty: ty.id(),
                    index,
                    name: Some(member.name),
                });
                return Ok(Some(member.ty));
            }
            if let Some(found) = self.member(member.ty)? {
                return Ok(Some(found));
            }
            self.access.raw.pop();
        }
        self.access.bit_offset = start;
        self.searched.insert(ty.id());
        Ok(None)
    }
}
