//! Loads and stores.

#![allow(unsafe_code)] // the invariant stands at `Handler`

use super::super::memory::{load_own, load_shared, store_own, store_shared, update};
use super::super::run::Run;
use super::call::generic;
use super::cell::{CONSTANT, Cell, Handler, Host, Regs, by_dst_src, by_src, handler};
use crate::isa::{AtomicOp, Size, Width};

/// Where accesses go: [`Place`](crate::lower::Place) as a constant.
pub(super) const STACK: u8 = 0;
pub(super) const CONTEXT: u8 = 1;
pub(super) const MAP_VALUE: u8 = 2;
pub(super) const PACKET: u8 = 3;
pub(super) const TABLE: u8 = 4;

/// The host address of what is at an address (for values of a map its delta is added
/// already); 0 where it has to be judged.
///
/// # Safety
/// As of [`Handler`].
#[inline(always)]
unsafe fn host_of<const PLACE: u8>(run: *mut Host, address: u64) -> u64 {
    // SAFETY: the caller's; the table of deltas has an entry for each region.
    unsafe {
        let delta = match PLACE {
            MAP_VALUE => return address,
            PACKET => (*run.cast::<Run<'_>>()).packet,
            _ => load_shared((*run).deltas + (address >> 40 & 0xffff) * 8, Size::Dw),
        };
        match delta {
            0 => 0,
            delta => address.wrapping_add(delta),
        }
    }
}

/// The host address of an access, whose base is at `B`; 0 where it has to be judged.
///
/// # Safety
/// As of [`Handler`]; the cell is an access.
#[inline(always)]
unsafe fn host<const PLACE: u8, const B: u8>(
    cell: *const Cell,
    run: *mut Host,
    regs: &Regs,
    base: u8,
) -> u64 {
    // SAFETY: the caller's; the table of deltas has an entry for each region.
    unsafe {
        let off = (*cell).imm;
        match PLACE {
            STACK => (*run).frame_end.wrapping_add(off),
            CONTEXT => (*run).context.wrapping_add(off),
            _ => host_of::<PLACE>(run, regs.get::<B>(run, base).wrapping_add(off)),
        }
    }
}

/// Whether an access can't be made here: it has to be judged, or is shared with others
/// and not aligned.
#[inline(always)]
fn is_other<const PLACE: u8>(host: u64, size: Size) -> bool {
    match PLACE {
        STACK | CONTEXT => false,
        PACKET => host == 0,
        MAP_VALUE => !host.is_multiple_of(size.bytes() as u64),
        _ => host == 0 || !host.is_multiple_of(size.bytes() as u64),
    }
}

handler! {
    /// `dst` = what is there.
    fn load<const PLACE: u8, const SIZE: usize, const D: u8, const B: u8>(cell, run, regs) {
        let size = const { Size::ALL[SIZE] };
        let host = host::<PLACE, B>(cell, run, &regs, (*cell).src);
        if is_other::<PLACE>(host, size) {
            return regs.by(generic, cell, run);
        }
        regs.set::<D>(run, (*cell).dst, read::<PLACE>(host, size));
        regs.go(cell.add(1), run)
    }
}

handler! {
    /// What is there = `src`.
    fn store<const PLACE: u8, const SIZE: usize, const B: u8, const S: u8>(cell, run, regs) {
        let size = const { Size::ALL[SIZE] };
        let host = host::<PLACE, B>(cell, run, &regs, (*cell).dst);
        if is_other::<PLACE>(host, size) {
            return regs.by(generic, cell, run);
        }
        let value = match S {
            CONSTANT => i64::from((*cell).jump).cast_unsigned(),
            _ => regs.get::<S>(run, (*cell).src),
        };
        match PLACE {
            STACK | CONTEXT | PACKET => store_own(host, size, value),
            _ => store_shared(host, size, value),
        }
        regs.go(cell.add(1), run)
    }
}

handler! {
    /// `dst` = what is at the sum of `src` and `third`.
    fn load_at<const PLACE: u8, const SIZE: usize, const I: u8, const D: u8, const B: u8>(
        cell, run, regs
    ) {
        let size = const { Size::ALL[SIZE] };
        let base = regs.get::<B>(run, (*cell).src).wrapping_add((*cell).imm);
        let sum = base.wrapping_add(regs.get::<I>(run, (*cell).third));
        let host = host_of::<PLACE>(run, sum);
        if is_other::<PLACE>(host, size) {
            return regs.by(generic, cell, run);
        }
        regs.set::<D>(run, (*cell).dst, read::<PLACE>(host, size));
        regs.go(cell.add(1), run)
    }
}

/// Loads.
///
/// # Safety
/// So many bytes lie there that may be read.
#[inline(always)]
unsafe fn read<const PLACE: u8>(host: u64, size: Size) -> u64 {
    // SAFETY: the caller's.
    unsafe {
        match PLACE {
            STACK | CONTEXT | PACKET => load_own(host, size),
            _ => load_shared(host, size),
        }
    }
}

handler! {
    /// The 64 bits of a map's value += `src`, atomically.
    fn add<const B: u8, const S: u8>(cell, run, regs) {
        let host = host::<MAP_VALUE, B>(cell, run, &regs, (*cell).dst);
        let src = regs.get::<S>(run, (*cell).src);
        if update(host, AtomicOp::Add, Width::W64, src, 0).is_none() {
            return regs.by(generic, cell, run);
        }
        regs.go(cell.add(1), run)
    }
}

macro_rules! sizes {
    ($f:ident, $place:expr) => {
        [
            by_dst_src!($f, $place, 0),
            by_dst_src!($f, $place, 1),
            by_dst_src!($f, $place, 2),
            by_dst_src!($f, $place, 3),
        ]
    };
}

/// A base that is in no register is at no place.
macro_rules! places {
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

/// By place, size, and the places of the operands.
type Table = [[[[Handler; 6]; 5]; 4]; 5];

/// The operands are the destination and the base.
static LOAD: Table = places!(load);
/// The operands are the base and the source.
static STORE: Table = places!(store);

macro_rules! indices {
    ($place:expr, $size:literal) => {
        [
            by_dst_src!(load_at, $place, $size, 0),
            by_dst_src!(load_at, $place, $size, 1),
            by_dst_src!(load_at, $place, $size, 2),
            by_dst_src!(load_at, $place, $size, 3),
            by_dst_src!(load_at, $place, $size, 4),
        ]
    };
}

macro_rules! indexed_sizes {
    ($place:expr) => {
        [
            indices!($place, 0),
            indices!($place, 1),
            indices!($place, 2),
            indices!($place, 3),
        ]
    };
}

/// By place from [`MAP_VALUE`] on, size, and the places of index, destination and base.
static LOAD_AT: [[[[[Handler; 6]; 5]; 5]; 4]; 3] = [
    indexed_sizes!(MAP_VALUE),
    indexed_sizes!(PACKET),
    indexed_sizes!(TABLE),
];

/// By the places of the base and the operand.
static ADD: [[Handler; 6]; 5] = by_dst_src!(add);

/// The function of an atomic addition to a map's value.
pub(super) fn add_handler(base: u8, src: u8) -> Option<Handler> {
    ADD.get(usize::from(base))?.get(usize::from(src)).copied()
}

/// The function of a load from the sum of two registers.
pub(super) fn indexed_handler(
    place: u8,
    size: Size,
    dst: u8,
    base: u8,
    index: u8,
) -> Option<Handler> {
    let number = Size::ALL.iter().position(|known| *known == size)?;
    let sizes = LOAD_AT.get(usize::from(place.checked_sub(MAP_VALUE)?))?;
    let places = sizes.get(number)?.get(usize::from(index))?;
    places
        .get(usize::from(dst))?
        .get(usize::from(base))
        .copied()
}

fn function(table: &Table, place: u8, size: Size, first: u8, second: u8) -> Option<Handler> {
    let number = Size::ALL.iter().position(|known| *known == size)?;
    let places = table.get(usize::from(place))?.get(number)?;
    let second = usize::from(second);
    places.get(usize::from(first))?.get(second).copied()
}

/// The function of an [`Op::Load`](crate::lower::Op::Load).
pub(super) fn load_handler(place: u8, size: Size, dst: u8, base: u8) -> Option<Handler> {
    function(&LOAD, place, size, dst, base)
}

/// The function of an [`Op::Store`](crate::lower::Op::Store).
pub(super) fn store_handler(place: u8, size: Size, base: u8, src: u8) -> Option<Handler> {
    function(&STORE, place, size, base, src)
}
