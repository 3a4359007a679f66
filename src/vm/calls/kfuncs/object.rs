//! Objects that programs allocate (`bpf_obj_new` and others, `kernel/bpf/helpers.c`).
//!
//! They are in kernel memory, named after their types and visible to all CPUs; use after free
//! is detected. Reference counts, lists and trees are stored in their bytes, as in the
//! kernel.

use crate::btf::{FieldKind, SpecialFields};
use crate::util::TypeId;
use crate::vm::machine::objects::{Maker, Object, drop_object, stride};
use crate::vm::machine::{Call, HelperProblem, Machine};
use crate::vm::memory::{Area, BlockType, NewBlock};

type Result = std::result::Result<u64, HelperProblem>;

/// Description of a new object.
pub(super) struct New<'a> {
    /// The name of its type.
    pub name: &'a str,
    /// Size in bytes; of one CPU's part for a per-CPU object.
    pub size: usize,
    /// Special fields of the type.
    pub fields: SpecialFields,
    /// Its type.
    pub ty: Option<BlockType>,
    /// The allocating kfunc.
    pub maker: Maker,
}

/// Allocates an object and acquires a reference for the program; null if there is no room.
pub(super) fn allocate(machine: &mut Machine, new: New<'_>) -> Result {
    let copies = new.maker.copies(machine.world.cpus()) as usize;
    let block = machine.space.kernel().insert(
        Area::Heap,
        NewBlock::bytes(
            format!("object of type {}", new.name),
            stride(new.size).saturating_mul(copies - 1) + new.size,
            new.ty,
        ),
    );
    let Ok(block) = block else { return Ok(0) };
    block.set_writable(true);
    let at = block.address();
    let object = Object {
        size: new.size,
        fields: new.fields,
        maker: new.maker,
        block,
    };
    if let Some(count) = object.field(FieldKind::Refcount) {
        let stored = machine.space.store(at.wrapping_add(count), 4, 1);
        stored.map_err(|fault| HelperProblem::Other(fault.to_string()))?;
    }
    machine.shared.objects.lock().insert(at, object);
    machine.acquire(at);
    Ok(at)
}

/// Allocates an object of the program's BTF type in argument 1.
fn new(call: &mut Call<'_>, maker: Maker) -> Result {
    let id = TypeId(call.arg_u32(1));
    let program = call.engine.program();
    let btf = program.and_then(|program| program.btf.clone());
    let known = btf
        .as_ref()
        .and_then(|btf| Some((btf, btf.resolve(id).ok()?, btf.size_of(id).ok()?)));
    let Some((btf, ty, size)) = known.filter(|(_, ty, _)| ty.kind().is_composite()) else {
        let problem = format!("argument 1 is {id}, which is no struct of the program's BTF");
        return Err(HelperProblem::Other(problem));
    };
    let new = New {
        name: ty.name(),
        size: size as usize,
        fields: SpecialFields::of(btf, id),
        ty: Some(BlockType {
            btf: btf.clone(),
            id,
        }),
        maker,
    };
    allocate(call.machine, new)
}

pub(super) fn obj_new(call: &mut Call<'_>) -> Result {
    new(call, Maker::Object)
}

pub(super) fn percpu_obj_new(call: &mut Call<'_>) -> Result {
    new(call, Maker::PerCpu)
}

/// The object at the address in argument 1, allocated by this kfunc.
fn object(call: &Call<'_>, maker: Maker) -> std::result::Result<Object, HelperProblem> {
    let object = call.machine.shared.objects.get(call.arg(1));
    let object = object.filter(|object| object.maker == maker);
    object.ok_or_else(|| call.wrong(1, maker.wanted()))
}

/// Releases the reference in argument 1.
pub(super) fn give_back(call: &mut Call<'_>, maker: Maker) -> Result {
    object(call, maker)?;
    let at = call.arg(1);
    call.machine.release(1, at)?;
    drop_object(call.machine, at).map(|_| 0)
}

pub(super) fn obj_drop(call: &mut Call<'_>) -> Result {
    give_back(call, Maker::Object)
}

pub(super) fn percpu_obj_drop(call: &mut Call<'_>) -> Result {
    give_back(call, Maker::PerCpu)
}

/// Acquires another reference to the object in argument 1 unless its count is 0.
pub(super) fn share(call: &mut Call<'_>, maker: Maker) -> Result {
    let Some(count) = object(call, maker)?.field(FieldKind::Refcount) else {
        return Err(call.wrong(1, "an allocated object with a bpf_refcount"));
    };
    let at = call.arg(1);
    let more = |count: u64| if count == 0 { 0 } else { count + 1 };
    let old = call.machine.space.update(at.wrapping_add(count), 4, more);
    if old.map_err(|fault| HelperProblem::Access { arg: 1, fault })? == 0 {
        return Ok(0);
    }
    call.machine.acquire(at);
    Ok(at)
}

pub(super) fn refcount_acquire(call: &mut Call<'_>) -> Result {
    share(call, Maker::Object)
}

/// The address of a CPU's part of the per-CPU object at an address.
#[must_use]
pub fn percpu_part(machine: &Machine, at: u64, cpu: u32) -> Option<u64> {
    let object = machine.shared.objects.get(at)?;
    let there = object.maker == Maker::PerCpu && cpu < machine.world.cpus();
    there.then(|| at.wrapping_add(u64::from(cpu) * stride(object.size) as u64))
}
