//! Objects that programs allocate (`bpf_obj_new` and its like, `kernel/bpf/helpers.c`).
//!
//! An object is a region of memory of its own, named after its type, so that whoever uses
//! it after it is freed is seen. Reference counts, lists and trees are in its bytes, as in
//! the kernel.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::fault::HelperProblem;
use super::super::helpers::Call;
use super::super::machine::Machine;
use super::super::memory::{Address, Region, SharedBytes};
use super::fields::{Field, FieldKind, fields};
use super::held::object_name;
use super::{list, rbtree};
use crate::util::TypeId;

type Result = std::result::Result<u64, HelperProblem>;
type Done = std::result::Result<(), HelperProblem>;

/// An object that a program allocated.
#[derive(Debug, Clone)]
pub(super) struct Object {
    /// Its size in bytes; of one CPU's part, where there is one for each.
    pub size: usize,
    /// What is special in it.
    pub fields: Arc<[Field]>,
    /// Whether there is one for each CPU.
    pub per_cpu: bool,
    region: Address,
}

/// The objects that are alive, by address.
#[derive(Debug, Default)]
pub(super) struct Objects {
    live: BTreeMap<u64, Object>,
}

impl Objects {
    /// The object that an address lies in, and where it begins.
    pub(super) fn at(&self, address: u64) -> Option<(u64, &Object)> {
        let (start, object) = self.live.range(..=address).next_back()?;
        (address - start < object.size as u64).then_some((*start, object))
    }
}

impl Object {
    /// The field of this kind, of which there is one at most.
    fn field(&self, kind: FieldKind) -> Option<u64> {
        let found = self.fields.iter().find(|field| field.kind == kind);
        found.map(|field| u64::from(field.offset))
    }
}

/// Bytes from one CPU's part of an object to the next one's.
fn stride(size: usize) -> usize {
    size.next_multiple_of(8)
}

/// Makes an object of `size` bytes, to which the program holds a reference.
pub(super) fn allocate(
    machine: &mut Machine,
    name: &str,
    size: usize,
    fields: Arc<[Field]>,
    per_cpu: bool,
) -> Result {
    let copies = if per_cpu {
        machine.world.cpus() as usize
    } else {
        1
    };
    let bytes = SharedBytes::zeroed(stride(size).saturating_mul(copies));
    let window = 0..if per_cpu { bytes.len() } else { size };
    let region = Region::window(object_name(name), Arc::new(bytes), window);
    let region = machine.space.insert(region)?;
    let object = Object {
        size,
        fields,
        per_cpu,
        region,
    };
    let at = region.register();
    if let Some(count) = object.field(FieldKind::Refcount) {
        set(machine, at.wrapping_add(count), 4, 1)?;
    }
    machine.kfuncs.objects.live.insert(at, object);
    machine.acquire(at);
    Ok(at)
}

fn set(machine: &Machine, at: u64, size: usize, value: u64) -> Done {
    let stored = machine.space.store(at, size, value);
    stored.map_err(|fault| HelperProblem::Other(fault.to_string()))
}

/// Makes an object of the program's type in argument 1.
fn new(call: &mut Call<'_>, per_cpu: bool) -> Result {
    let id = TypeId(call.arg_u32(1));
    let program = call.engine.program();
    let btf = program.and_then(|program| program.btf.as_ref());
    let known = btf.and_then(|btf| Some((btf, btf.resolve(id).ok()?, btf.size_of(id).ok()?)));
    let Some((btf, ty, size)) = known.filter(|(_, ty, _)| ty.kind().is_composite()) else {
        let problem = format!("argument 1 is {id}, which is no struct of the program's BTF");
        return Err(HelperProblem::Other(problem));
    };
    let (name, fields) = (ty.name().to_owned(), fields(btf, id));
    allocate(call.machine, &name, size as usize, fields.into(), per_cpu)
}

pub(super) fn obj_new(call: &mut Call<'_>) -> Result {
    new(call, false)
}

pub(super) fn percpu_obj_new(call: &mut Call<'_>) -> Result {
    new(call, true)
}

/// Gives the reference in argument 1 back.
fn give_back(call: &mut Call<'_>, per_cpu: bool) -> Result {
    let at = call.arg(1);
    let object = call.machine.kfuncs.objects.live.get(&at);
    if object.is_none_or(|object| object.per_cpu != per_cpu) {
        let wanted = if per_cpu {
            "an object that bpf_percpu_obj_new() made"
        } else {
            "an object that bpf_obj_new() made"
        };
        return Err(call.wrong(1, wanted));
    }
    call.machine.release(1, at)?;
    drop_object(call.machine, at).map(|_| 0)
}

pub(super) fn obj_drop(call: &mut Call<'_>) -> Result {
    give_back(call, false)
}

pub(super) fn percpu_obj_drop(call: &mut Call<'_>) -> Result {
    give_back(call, true)
}

/// One more reference to the object in argument 1, unless nobody has one any more.
pub(super) fn refcount_acquire(call: &mut Call<'_>) -> Result {
    let at = call.arg(1);
    let object = call.machine.kfuncs.objects.live.get(&at);
    let Some(count) = object.and_then(|object| object.field(FieldKind::Refcount)) else {
        return Err(call.wrong(1, "an allocated object with a bpf_refcount"));
    };
    let more = |count: u64| if count == 0 { 0 } else { count + 1 };
    let old = call.machine.space.update(at.wrapping_add(count), 4, more);
    if old.map_err(|fault| HelperProblem::Access { arg: 1, fault })? == 0 {
        return Ok(0);
    }
    call.machine.acquire(at);
    Ok(at)
}

/// Takes one reference from the object at an address, and frees it after the last one,
/// with all that it owns. Whether there is such an object: others are left alone.
///
/// # Errors
/// [`HelperProblem::Other`] where what it owns is not what it should be.
pub fn drop_object(machine: &mut Machine, at: u64) -> std::result::Result<bool, HelperProblem> {
    // Objects may own objects, as deep as a program likes.
    let mut left = vec![at];
    let mut found = false;
    while let Some(at) = left.pop() {
        let Some(object) = machine.kfuncs.objects.live.get(&at).cloned() else {
            continue;
        };
        found = true;
        if let Some(count) = object.field(FieldKind::Refcount) {
            let less = |count: u64| count.saturating_sub(1);
            let old = machine.space.update(at.wrapping_add(count), 4, less);
            let old = old.map_err(|fault| HelperProblem::Other(fault.to_string()))?;
            if old > 1 {
                continue;
            }
        }
        let copies = if object.per_cpu {
            machine.world.cpus()
        } else {
            1
        };
        for copy in 0..u64::from(copies) {
            let part = at.wrapping_add(copy * stride(object.size) as u64);
            left.extend(owned(machine, &object.fields, part)?);
        }
        machine.kfuncs.objects.live.remove(&at);
        machine.space.remove(object.region);
    }
    Ok(found)
}

/// Frees what the fields at an address own, and makes them zero: before the value of a
/// map is replaced or deleted (`bpf_obj_free_fields`, `kernel/bpf/syscall.c`).
///
/// # Errors
/// [`HelperProblem::Other`] where what they own is not what it should be.
pub fn free_fields(machine: &mut Machine, fields: &[Field], at: u64) -> Done {
    for object in owned(machine, fields, at)? {
        drop_object(machine, object)?;
    }
    Ok(())
}

/// The objects that the fields at an address own, which they don't any more.
fn owned(
    machine: &Machine,
    fields: &[Field],
    at: u64,
) -> std::result::Result<Vec<u64>, HelperProblem> {
    let mut found = Vec::new();
    for field in fields {
        let at = at.wrapping_add(u64::from(field.offset));
        match field.kind {
            FieldKind::ListHead => found.extend(list::take_all(machine, at)?),
            FieldKind::RbRoot => found.extend(rbtree::take_all(machine, at)?),
            FieldKind::Kptr | FieldKind::PercpuKptr => {
                let old = machine.space.update(at, 8, |_| 0);
                found.extend(old.ok().filter(|object| *object != 0));
            }
            _ => {}
        }
    }
    Ok(found)
}
