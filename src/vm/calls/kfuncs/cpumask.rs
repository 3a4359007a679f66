//! CPU masks (`kernel/bpf/cpumask.c`). A `struct bpf_cpumask` is an allocated object: the
//! bits, as in a `struct cpumask`, followed by a reference count.

use super::object::{New, allocate, give_back, share};
use crate::btf::{FieldKind, Kind, SpecialField};
use crate::util::Errno;
use crate::vm::machine::objects::Maker;
use crate::vm::machine::{Call, HelperProblem};

type Result = std::result::Result<u64, HelperProblem>;
type Bits = Vec<u64>;

/// Size of a `struct cpumask` without BTF: 8192 CPUs, as in distribution kernels.
pub(super) const DEFAULT_SIZE: u32 = 1024;

/// The bits of the existing CPUs.
fn read(call: &Call<'_>, arg: usize) -> std::result::Result<Bits, HelperProblem> {
    let cpus = call.machine.world.cpus();
    let mut bytes = vec![0; cpus.div_ceil(64) as usize * 8];
    if call
        .machine
        .space
        .probe(call.arg(arg), &mut bytes)
        .is_none()
    {
        call.read(arg, bytes.len())?;
        return Err(call.wrong(arg, "a struct cpumask"));
    }
    let (words, _) = bytes.as_chunks();
    let words = words.iter().map(|word| u64::from_le_bytes(*word));
    Ok(words
        .zip(full(cpus))
        .map(|(word, full)| word & full)
        .collect())
}

fn write(call: &mut Call<'_>, arg: usize, bits: &[u64]) -> Result {
    let bytes: Vec<u8> = bits.iter().flat_map(|word| word.to_le_bytes()).collect();
    call.write(arg, &bytes).map(|()| 0)
}

/// A mask with all CPUs.
fn full(cpus: u32) -> Bits {
    (0..cpus.div_ceil(64))
        .map(|word| match cpus - word * 64 {
            left @ ..64 => (1 << left) - 1,
            _ => u64::MAX,
        })
        .collect()
}

/// The first CPU from `from` on; the number of CPUs if there is none.
fn first_from(call: &Call<'_>, bits: &[u64], from: u32) -> u32 {
    let cpus = call.machine.world.cpus();
    (from..cpus).find(|cpu| has(bits, *cpu)).unwrap_or(cpus)
}

fn has(bits: &[u64], cpu: u32) -> bool {
    let word = bits.get(cpu as usize / 64);
    word.is_some_and(|word| word >> (cpu % 64) & 1 == 1)
}

pub(super) fn create(call: &mut Call<'_>) -> Result {
    let program = call.engine.program();
    let btf = program.and_then(|program| program.kernel_btf.as_ref());
    let size = btf.and_then(|btf| {
        let found = btf.find("cpumask", Kind::Struct)?;
        btf.size_of(found.id()).ok()
    });
    let size = size.unwrap_or(DEFAULT_SIZE);
    let count = SpecialField::new(FieldKind::Refcount, size);
    let new = New {
        name: "bpf_cpumask",
        size: size as usize + 8,
        fields: [count].into_iter().collect(),
        ty: None,
        maker: Maker::Cpumask,
    };
    allocate(call.machine, new)
}

pub(super) fn acquire(call: &mut Call<'_>) -> Result {
    share(call, Maker::Cpumask)
}

pub(super) fn release(call: &mut Call<'_>) -> Result {
    give_back(call, Maker::Cpumask)
}

pub(super) fn first(call: &mut Call<'_>) -> Result {
    let bits = read(call, 1)?;
    Ok(first_from(call, &bits, 0).into())
}

pub(super) fn first_zero(call: &mut Call<'_>) -> Result {
    let bits: Bits = read(call, 1)?.iter().map(|word| !word).collect();
    Ok(first_from(call, &bits, 0).into())
}

/// Combines the two masks in these arguments, word by word.
fn both(
    call: &Call<'_>,
    args: [usize; 2],
    join: fn(u64, u64) -> u64,
) -> std::result::Result<Bits, HelperProblem> {
    let [first, second] = args;
    let (first, second) = (read(call, first)?, read(call, second)?);
    Ok(first.iter().zip(second).map(|(a, b)| join(*a, b)).collect())
}

const AND: fn(u64, u64) -> u64 = |a, b| a & b;
const OR: fn(u64, u64) -> u64 = |a, b| a | b;
const XOR: fn(u64, u64) -> u64 = |a, b| a ^ b;
const WITHOUT: fn(u64, u64) -> u64 = |a, b| a & !b;

fn is_empty(bits: &[u64]) -> bool {
    bits.iter().all(|word| *word == 0)
}

pub(super) fn first_and(call: &mut Call<'_>) -> Result {
    let bits = both(call, [1, 2], AND)?;
    Ok(first_from(call, &bits, 0).into())
}

/// The CPU in argument 1, if it exists.
fn cpu(call: &Call<'_>) -> Option<u32> {
    Some(call.arg_u32(1)).filter(|cpu| *cpu < call.machine.world.cpus())
}

/// Sets or clears a bit and returns its old value. A CPU that does not exist is in no mask.
fn put(call: &mut Call<'_>, value: bool) -> Result {
    let Some(cpu) = cpu(call) else { return Ok(0) };
    let at = call.arg(2).wrapping_add(u64::from(cpu / 64) * 8);
    let bit = 1 << (cpu % 64);
    let change = |word| if value { word | bit } else { word & !bit };
    let old = call.machine.space.update(at, 8, change);
    let old = old.map_err(|fault| HelperProblem::Access { arg: 2, fault })?;
    Ok(u64::from(old & bit != 0))
}

pub(super) fn set_cpu(call: &mut Call<'_>) -> Result {
    put(call, true)
}

pub(super) fn clear_cpu(call: &mut Call<'_>) -> Result {
    put(call, false)
}

pub(super) fn test_cpu(call: &mut Call<'_>) -> Result {
    let bits = read(call, 2)?;
    Ok(cpu(call).is_some_and(|cpu| has(&bits, cpu)).into())
}

pub(super) fn setall(call: &mut Call<'_>) -> Result {
    let all = full(call.machine.world.cpus());
    write(call, 1, &all)
}

pub(super) fn clear(call: &mut Call<'_>) -> Result {
    let none = vec![0; full(call.machine.world.cpus()).len()];
    write(call, 1, &none)
}

/// Writes the combination of two masks to argument 1; returns whether it is not empty.
fn join(call: &mut Call<'_>, join: fn(u64, u64) -> u64) -> Result {
    let bits = both(call, [2, 3], join)?;
    write(call, 1, &bits)?;
    Ok((!is_empty(&bits)).into())
}

pub(super) fn and(call: &mut Call<'_>) -> Result {
    join(call, AND)
}

pub(super) fn or(call: &mut Call<'_>) -> Result {
    join(call, OR).map(|_| 0)
}

pub(super) fn xor(call: &mut Call<'_>) -> Result {
    join(call, XOR).map(|_| 0)
}

pub(super) fn equal(call: &mut Call<'_>) -> Result {
    Ok(is_empty(&both(call, [1, 2], XOR)?).into())
}

pub(super) fn intersects(call: &mut Call<'_>) -> Result {
    Ok((!is_empty(&both(call, [1, 2], AND)?)).into())
}

pub(super) fn subset(call: &mut Call<'_>) -> Result {
    Ok(is_empty(&both(call, [1, 2], WITHOUT)?).into())
}

pub(super) fn empty(call: &mut Call<'_>) -> Result {
    Ok(is_empty(&read(call, 1)?).into())
}

pub(super) fn is_full(call: &mut Call<'_>) -> Result {
    let all = full(call.machine.world.cpus());
    Ok((read(call, 1)? == all).into())
}

pub(super) fn copy(call: &mut Call<'_>) -> Result {
    let bits = read(call, 2)?;
    write(call, 1, &bits)
}

pub(super) fn weight(call: &mut Call<'_>) -> Result {
    let bits = read(call, 1)?;
    Ok(bits.iter().map(|word| u64::from(word.count_ones())).sum())
}

/// A CPU of the mask, different each time: the next one after the last result.
fn distribute(call: &mut Call<'_>, bits: &[u64]) -> u64 {
    let cpus = call.machine.world.cpus();
    let after = call.machine.cpu.distributed.saturating_add(1);
    let mut next = first_from(call, bits, after);
    if next == cpus {
        next = first_from(call, bits, 0);
    }
    if next < cpus {
        call.machine.cpu.distributed = next;
    }
    next.into()
}

pub(super) fn any_distribute(call: &mut Call<'_>) -> Result {
    let bits = read(call, 1)?;
    Ok(distribute(call, &bits))
}

pub(super) fn any_and_distribute(call: &mut Call<'_>) -> Result {
    let bits = both(call, [1, 2], AND)?;
    Ok(distribute(call, &bits))
}

/// `bpf_cpumask_populate`: fills a mask from bytes of the program.
pub(super) fn populate(call: &mut Call<'_>) -> Result {
    let size = call.size(3);
    let cpus = call.machine.world.cpus();
    if size.saturating_mul(8) < cpus as usize {
        return Ok(Errno::EACCES.to_ret());
    }
    let mut bytes = call.read(2, size)?;
    bytes.resize(cpus.div_ceil(64) as usize * 8, 0);
    let (words, _) = bytes.as_chunks();
    let words = words.iter().map(|word| u64::from_le_bytes(*word));
    let bits: Bits = words
        .zip(full(cpus))
        .map(|(word, full)| word & full)
        .collect();
    write(call, 1, &bits)
}
