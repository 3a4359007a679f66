//! Objects that programs allocate (`bpf_obj_new` and its like, `kernel/bpf/helpers.c`).
//!
//! They lie in kernel memory, named after their types, where all CPUs see them, and
//! whoever uses one after it is freed is seen. Reference counts, lists and trees are in
//! their bytes, as in the kernel.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::super::fault::HelperProblem;
use super::super::helpers::Call;
use super::super::machine::Machine;
use super::super::memory::{Area, Block, BlockType, NewBlock};
use super::{list, rbtree};
use crate::btf::{FieldKind, SpecialField, SpecialFields};
use crate::util::TypeId;

type Result = std::result::Result<u64, HelperProblem>;
type Done = std::result::Result<(), HelperProblem>;

/// Who makes such objects, and takes them back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Maker {
    /// `bpf_obj_new`.
    Object,
    /// `bpf_percpu_obj_new`: there is one for each CPU.
    PerCpu,
    /// `bpf_cpumask_create`.
    Cpumask,
}

impl Maker {
    /// What an argument is that must be one of these.
    const fn wanted(self) -> &'static str {
        match self {
            Self::Object => "an object that bpf_obj_new() made",
            Self::PerCpu => "an object that bpf_percpu_obj_new() made",
            Self::Cpumask => "a struct bpf_cpumask that bpf_cpumask_create() made",
        }
    }
}

/// An object that a program allocated.
#[derive(Debug, Clone)]
pub(super) struct Object {
    /// Its size in bytes; of one CPU's part, where there is one for each.
    pub size: usize,
    /// What is special in it.
    pub fields: SpecialFields,
    maker: Maker,
    block: Arc<Block>,
}

impl Object {
    /// The field of this kind, of which there is one at most.
    fn field(&self, kind: FieldKind) -> Option<u64> {
        self.fields.find(kind).map(|field| u64::from(field.off))
    }

    /// How many of it there are.
    fn copies(&self, machine: &Machine) -> usize {
        match self.maker {
            Maker::PerCpu => machine.world.cpus() as usize,
            _ => 1,
        }
    }
}

/// The objects that are alive, by address. All CPUs of a machine have the same.
#[derive(Clone, Default)]
pub(super) struct Objects(Arc<Mutex<BTreeMap<u64, Object>>>);

impl Objects {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Object>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The object that an address lies in, and where it begins.
    pub(super) fn at(&self, address: u64) -> Option<(u64, Object)> {
        let live = self.lock();
        let (start, object) = live.range(..=address).next_back()?;
        (address - start < object.size as u64).then(|| (*start, object.clone()))
    }

    /// The object that begins at an address.
    fn get(&self, address: u64) -> Option<Object> {
        self.lock().get(&address).cloned()
    }
}

impl fmt::Debug for Objects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Objects({})", self.lock().len())
    }
}

/// Bytes from one CPU's part of an object to the next one's.
const fn stride(size: usize) -> usize {
    size.next_multiple_of(8)
}

/// What an object is to be.
pub(super) struct New<'a> {
    /// The name of its type.
    pub name: &'a str,
    /// Its size in bytes, of one CPU's part.
    pub size: usize,
    /// What is special in it.
    pub fields: SpecialFields,
    /// Its type.
    pub ty: Option<BlockType>,
    /// Who makes it.
    pub maker: Maker,
}

/// Makes an object, to which the program holds a reference; null where there is no room.
pub(super) fn allocate(machine: &mut Machine, new: New<'_>) -> Result {
    let copies = match new.maker {
        Maker::PerCpu => machine.world.cpus() as usize,
        _ => 1,
    };
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
    machine.kfuncs.objects.lock().insert(at, object);
    machine.acquire(at);
    Ok(at)
}

/// Makes an object of the program's type in argument 1.
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

/// The object that begins where argument 1 points, of this maker's.
fn object(call: &Call<'_>, maker: Maker) -> std::result::Result<Object, HelperProblem> {
    let object = call.machine.kfuncs.objects.get(call.arg(1));
    let object = object.filter(|object| object.maker == maker);
    object.ok_or_else(|| call.wrong(1, maker.wanted()))
}

/// Gives the reference in argument 1 back.
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

/// One more reference to the object in argument 1, unless nobody has one any more.
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

/// Where a CPU's part of the per-CPU object at an address is.
#[must_use]
pub fn percpu_part(machine: &Machine, at: u64, cpu: u32) -> Option<u64> {
    let object = machine.kfuncs.objects.get(at)?;
    let there = object.maker == Maker::PerCpu && cpu < machine.world.cpus();
    there.then(|| at.wrapping_add(u64::from(cpu) * stride(object.size) as u64))
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
        let Some(object) = machine.kfuncs.objects.get(at) else {
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
        for copy in 0..object.copies(machine) {
            let part = at.wrapping_add((copy * stride(object.size)) as u64);
            left.extend(owned(machine, &object.fields, part)?);
        }
        machine.kfuncs.objects.lock().remove(&at);
        machine.space.kernel().free(&object.block);
    }
    Ok(found)
}

/// Frees what the fields at an address own, and makes them zero: before the value of a
/// map is replaced or deleted (`bpf_obj_free_fields`, `kernel/bpf/syscall.c`).
///
/// # Errors
/// [`HelperProblem::Other`] where what they own is not what it should be.
pub fn free_fields(machine: &mut Machine, fields: &[SpecialField], at: u64) -> Done {
    for object in owned(machine, fields, at)? {
        drop_object(machine, object)?;
    }
    Ok(())
}

/// The objects that the fields at an address own, which they don't any more.
fn owned(
    machine: &Machine,
    fields: &[SpecialField],
    at: u64,
) -> std::result::Result<Vec<u64>, HelperProblem> {
    let mut found = Vec::new();
    for field in fields {
        let at = at.wrapping_add(u64::from(field.off));
        match field.kind {
            FieldKind::ListHead => found.extend(list::take_all(machine, at)?),
            FieldKind::RbRoot => found.extend(rbtree::take_all(machine, at)?),
            FieldKind::KptrRef | FieldKind::KptrPercpu => {
                let old = machine.space.update(at, 8, |_| 0);
                found.extend(old.ok().filter(|object| *object != 0));
            }
            _ => {}
        }
    }
    Ok(found)
}
