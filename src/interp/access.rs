//! Loads and stores.

#![allow(unsafe_code)] // the invariant is at `Handler`

use super::call::generic;
use crate::engine::cells::{CONSTANT, Cell, Handler, Host, Regs, by_dst_src, by_src, handler};
use crate::engine::fast::Run;
use crate::isa::{AtomicOp, Size, Width, low32};
use crate::vm::memory::raw;

/// The kinds of [`MemRef`](crate::lower::MemRef), as constants.
pub(super) const STACK: u8 = 0;
pub(super) const CONTEXT: u8 = 1;
pub(super) const MAP_VALUE: u8 = 2;
pub(super) const PACKET: u8 = 3;
pub(super) const TABLE: u8 = 4;
pub(super) const ARENA: u8 = 5;

/// The host address of a machine address (which for map values already includes the delta);
/// 0 if the access has to be checked.
///
/// # Safety
/// As of [`Handler`].
#[inline(always)]
unsafe fn host_of<const KIND: u8>(run: *mut Host, address: u64) -> u64 {
    // SAFETY: guaranteed by the caller; the table of deltas has an entry for each region.
    unsafe {
        let delta = match KIND {
            MAP_VALUE => return address,
            PACKET => (*run.cast::<Run<'_>>()).packet,
            _ => raw::load_own((*run).deltas + (address >> 40 & 0xffff) * 8, Size::Dw),
        };
        match delta {
            0 => 0,
            delta => address.wrapping_add(delta),
        }
    }
}

/// The host address of an access, whose base is at location `B`; 0 if it has to be checked.
///
/// # Safety
/// As of [`Handler`]; the cell is an access.
#[inline(always)]
unsafe fn host<const KIND: u8, const B: u8>(
    cell: *const Cell,
    run: *mut Host,
    regs: &Regs,
    base: u8,
) -> u64 {
    // SAFETY: guaranteed by the caller; the table of deltas has an entry for each region.
    unsafe {
        let off = (*cell).imm;
        match KIND {
            STACK => (*run).frame_end.wrapping_add(off),
            CONTEXT => (*run).context.wrapping_add(off),
            _ => host_of::<KIND>(run, regs.get::<B>(run, base).wrapping_add(off)),
        }
    }
}

/// Whether an access has to be checked.
#[inline(always)]
const fn is_checked<const KIND: u8>(host: u64) -> bool {
    match KIND {
        STACK | CONTEXT | MAP_VALUE => false,
        _ => host == 0,
    }
}

handler! {
    /// `dst` = the number there.
    fn load<const KIND: u8, const SIZE: usize, const D: u8, const B: u8>(cell, run, regs) {
        let size = const { Size::ALL[SIZE] };
        let host = host::<KIND, B>(cell, run, &regs, (*cell).src);
        if is_checked::<KIND>(host) {
            return regs.by(generic, cell, run);
        }
        regs.set::<D>(run, (*cell).dst, read::<KIND>(host, size));
        regs.go(cell.add(1), run)
    }
}

/// The number that a cell stores.
///
/// # Safety
/// As of [`Handler`].
#[inline(always)]
unsafe fn stored<const S: u8>(cell: *const Cell, run: *mut Host, regs: &Regs) -> u64 {
    // SAFETY: guaranteed by the caller.
    unsafe {
        match S {
            CONSTANT => i64::from((*cell).jump).cast_unsigned(),
            _ => regs.get::<S>(run, (*cell).src),
        }
    }
}

handler! {
    /// The number there = `src`.
    fn store<const KIND: u8, const SIZE: usize, const B: u8, const S: u8>(cell, run, regs) {
        let size = const { Size::ALL[SIZE] };
        let host = host::<KIND, B>(cell, run, &regs, (*cell).dst);
        if is_checked::<KIND>(host) {
            return regs.by(generic, cell, run);
        }
        let value = stored::<S>(cell, run, &regs);
        match KIND {
            STACK | CONTEXT | PACKET => raw::store_own(host, size, value),
            _ => raw::store(host, size, value),
        }
        regs.go(cell.add(1), run)
    }
}

handler! {
    /// `dst` = the number at the sum of `src` and `third`.
    fn load_at<const KIND: u8, const SIZE: usize, const I: u8, const D: u8, const B: u8>(
        cell, run, regs
    ) {
        let size = const { Size::ALL[SIZE] };
        let base = regs.get::<B>(run, (*cell).src).wrapping_add((*cell).imm);
        let sum = base.wrapping_add(regs.get::<I>(run, (*cell).third));
        let host = host_of::<KIND>(run, sum);
        if is_checked::<KIND>(host) {
            return regs.by(generic, cell, run);
        }
        regs.set::<D>(run, (*cell).dst, read::<KIND>(host, size));
        regs.go(cell.add(1), run)
    }
}

/// The host address of an access to the arena, 0 if a page is missing, and the access's size.
///
/// # Safety
/// As of [`Handler`].
#[inline(always)]
unsafe fn in_arena(run: *mut Host, pointer: u64, cell: &Cell) -> (u64, Size) {
    // SAFETY: guaranteed by the caller.
    let arena = unsafe { (*run.cast::<Run<'_>>()).lowered.arena() };
    let size = Size::ALL[usize::from(cell.by & 3)];
    let offset = i64::from(low32(pointer)) + cell.imm.cast_signed();
    let host = arena.and_then(|arena| arena.pages.host(offset, size.bytes().into()));
    (host.unwrap_or(0), size)
}

handler! {
    /// `dst` = the number in the arena.
    fn load_arena<const D: u8, const B: u8>(cell, run, regs) {
        let (host, size) = in_arena(run, regs.get::<B>(run, (*cell).src), &*cell);
        if host == 0 {
            return regs.by(generic, cell, run);
        }
        regs.set::<D>(run, (*cell).dst, raw::load(host, size));
        regs.go(cell.add(1), run)
    }
}

handler! {
    /// The number in the arena = `src`.
    fn store_arena<const B: u8, const S: u8>(cell, run, regs) {
        let (host, size) = in_arena(run, regs.get::<B>(run, (*cell).dst), &*cell);
        if host == 0 {
            return regs.by(generic, cell, run);
        }
        let value = stored::<S>(cell, run, &regs);
        raw::store(host, size, value);
        regs.go(cell.add(1), run)
    }
}

/// A load from a host address.
///
/// # Safety
/// `size` readable bytes are at `host`.
#[inline(always)]
unsafe fn read<const KIND: u8>(host: u64, size: Size) -> u64 {
    // SAFETY: guaranteed by the caller.
    unsafe {
        match KIND {
            STACK | CONTEXT | PACKET => raw::load_own(host, size),
            _ => raw::load(host, size),
        }
    }
}

handler! {
    /// The 64 bits of a map's value += `src`, atomically.
    fn add<const B: u8, const S: u8>(cell, run, regs) {
        let host = host::<MAP_VALUE, B>(cell, run, &regs, (*cell).dst);
        let src = regs.get::<S>(run, (*cell).src);
        if raw::operate(host, AtomicOp::Add, Width::W64, src, 0).is_none() {
            return regs.by(generic, cell, run);
        }
        regs.go(cell.add(1), run)
    }
}

macro_rules! sizes {
    ($f:ident, $kind:expr) => {
        [
            by_dst_src!($f, $kind, 0),
            by_dst_src!($f, $kind, 1),
            by_dst_src!($f, $kind, 2),
            by_dst_src!($f, $kind, 3),
        ]
    };
}

macro_rules! kinds {
    ($f:ident) => {
        [
            sizes!($f, STACK),
            sizes!($f, CONTEXT),
            sizes!($f, MAP_VALUE),
            sizes!($f, PACKET),
            sizes!($f, TABLE),
        ]
    };
}

/// By memory kind, size, and the operands' locations.
type Table = [[[[Handler; 6]; 5]; 4]; 5];

/// The operands are the destination and the base.
static LOAD: Table = kinds!(load);
/// The operands are the base and the source.
static STORE: Table = kinds!(store);

/// The same for the arena, of any size.
static LOAD_ARENA: [[Handler; 6]; 5] = by_dst_src!(load_arena);
static STORE_ARENA: [[Handler; 6]; 5] = by_dst_src!(store_arena);

macro_rules! indices {
    ($kind:expr, $size:literal) => {
        [
            by_dst_src!(load_at, $kind, $size, 0),
            by_dst_src!(load_at, $kind, $size, 1),
            by_dst_src!(load_at, $kind, $size, 2),
            by_dst_src!(load_at, $kind, $size, 3),
            by_dst_src!(load_at, $kind, $size, 4),
        ]
    };
}

macro_rules! indexed_sizes {
    ($kind:expr) => {
        [
            indices!($kind, 0),
            indices!($kind, 1),
            indices!($kind, 2),
            indices!($kind, 3),
        ]
    };
}

/// By memory kind from [`MAP_VALUE`] on, size, and the locations of index, destination and
/// base.
static LOAD_AT: [[[[[Handler; 6]; 5]; 5]; 4]; 3] = [
    indexed_sizes!(MAP_VALUE),
    indexed_sizes!(PACKET),
    indexed_sizes!(TABLE),
];

/// By the locations of base and operand.
static ADD: [[Handler; 6]; 5] = by_dst_src!(add);

/// The function of an atomic addition to a map's value.
pub(super) fn add_handler(base: u8, src: u8) -> Option<Handler> {
    ADD.get(usize::from(base))?.get(usize::from(src)).copied()
}

/// The function of a load from the sum of two registers.
pub(super) fn indexed_handler(
    kind: u8,
    size: Size,
    dst: u8,
    base: u8,
    index: u8,
) -> Option<Handler> {
    let number = usize::from(size_number(size));
    let sizes = LOAD_AT.get(usize::from(kind.checked_sub(MAP_VALUE)?))?;
    let handlers = sizes.get(number)?.get(usize::from(index))?;
    handlers
        .get(usize::from(dst))?
        .get(usize::from(base))
        .copied()
}

/// A size's number in [`Size::ALL`].
pub(super) fn size_number(size: Size) -> u8 {
    let sizes = (0..).zip(Size::ALL);
    let mut found = sizes.filter(|(_, known)| **known == size);
    found.next().map_or(0, |(number, _)| number)
}

fn function(table: &Table, kind: u8, size: Size, first: u8, second: u8) -> Option<Handler> {
    let number = usize::from(size_number(size));
    let handlers = table.get(usize::from(kind))?.get(number)?;
    let second = usize::from(second);
    handlers.get(usize::from(first))?.get(second).copied()
}

/// The function of an [`Op::Load`](crate::lower::Op::Load).
pub(super) fn load_handler(kind: u8, size: Size, dst: u8, base: u8) -> Option<Handler> {
    if kind == ARENA {
        return of_arena(&LOAD_ARENA, dst, base);
    }
    function(&LOAD, kind, size, dst, base)
}

/// The function of an [`Op::Store`](crate::lower::Op::Store).
pub(super) fn store_handler(kind: u8, size: Size, base: u8, src: u8) -> Option<Handler> {
    if kind == ARENA {
        return of_arena(&STORE_ARENA, base, src);
    }
    function(&STORE, kind, size, base, src)
}

fn of_arena(table: &[[Handler; 6]; 5], first: u8, second: u8) -> Option<Handler> {
    let handlers = table.get(usize::from(first))?;
    handlers.get(usize::from(second)).copied()
}
