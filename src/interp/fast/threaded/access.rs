//! Loads and stores.

#![allow(unsafe_code)] // the invariant stands at `Handler`

use super::super::memory::{load_own, load_shared, store_own, store_shared};
use super::call::generic;
use super::cell::{CONSTANT, Cell, Handler, Host, Regs, by_dst_src, by_src};
use crate::isa::Size;

/// Where accesses go: [`Place`](crate::lower::Place) as a constant.
pub(super) const STACK: u8 = 0;
pub(super) const CONTEXT: u8 = 1;
pub(super) const MAP_VALUE: u8 = 2;
pub(super) const PACKET: u8 = 3;
pub(super) const TABLE: u8 = 4;

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
            MAP_VALUE => regs.get::<B>(run, base).wrapping_add(off),
            _ => {
                let address = regs.get::<B>(run, base).wrapping_add(off);
                let entry = (*run).deltas + (address >> 40 & 0xffff) * 8;
                match load_shared(entry, Size::Dw) {
                    0 => 0,
                    delta => address.wrapping_add(delta),
                }
            }
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

unsafe fn load<const PLACE: u8, const SIZE: usize, const D: u8, const B: u8>(
    cell: *const Cell,
    run: *mut Host,
    a: u64,
    b: u64,
    c: u64,
    d: u64,
) {
    let mut regs = Regs(a, b, c, d);
    let size = const { Size::ALL[SIZE] };
    // SAFETY: the caller's; the verifier proved that the access is in bounds.
    unsafe {
        let host = host::<PLACE, B>(cell, run, &regs, (*cell).src);
        if is_other::<PLACE>(host, size) {
            return generic(cell, run, a, b, c, d);
        }
        let value = match PLACE {
            STACK | CONTEXT | PACKET => load_own(host, size),
            _ => load_shared(host, size),
        };
        regs.set::<D>(run, (*cell).dst, value);
        regs.go(cell.add(1), run)
    }
}

unsafe fn store<const PLACE: u8, const SIZE: usize, const B: u8, const S: u8>(
    cell: *const Cell,
    run: *mut Host,
    a: u64,
    b: u64,
    c: u64,
    d: u64,
) {
    let regs = Regs(a, b, c, d);
    let size = const { Size::ALL[SIZE] };
    // SAFETY: the caller's; the verifier proved that the access is in bounds.
    unsafe {
        let host = host::<PLACE, B>(cell, run, &regs, (*cell).dst);
        if is_other::<PLACE>(host, size) {
            return generic(cell, run, a, b, c, d);
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

fn handler(table: &Table, place: u8, size: Size, first: u8, second: u8) -> Option<Handler> {
    let number = Size::ALL.iter().position(|known| *known == size)?;
    let places = table.get(usize::from(place))?.get(number)?;
    let second = usize::from(second);
    places.get(usize::from(first))?.get(second).copied()
}

/// The function of an [`Op::Load`](crate::lower::Op::Load).
pub(super) fn load_handler(place: u8, size: Size, dst: u8, base: u8) -> Option<Handler> {
    handler(&LOAD, place, size, dst, base)
}

/// The function of an [`Op::Store`](crate::lower::Op::Store).
pub(super) fn store_handler(place: u8, size: Size, base: u8, src: u8) -> Option<Handler> {
    handler(&STORE, place, size, base, src)
}
