//! Accesses as instructions of arm64. The invariant is at the module above.

use std::arch::asm;

use crate::isa::{Size, Width};

const _: () = assert!(
    cfg!(target_endian = "little"),
    "build with `--cfg bytewise`"
);

define_loads_and_stores! {
    B "ldrb {value:w}, [{host}]" "strb {value:w}, [{host}]"
    H "ldrh {value:w}, [{host}]" "strh {value:w}, [{host}]"
    W "ldr {value:w}, [{host}]" "str {value:w}, [{host}]"
    Dw "ldr {value:x}, [{host}]" "str {value:x}, [{host}]"
    ; four "ldp {a}, {b}, [{host}]" "ldp {c}, {d}, [{host}, #16]"
}

/// Stores the low bytes of `new` if the number is `old` (zero-extended); returns the number.
///
/// # Safety
/// As of [`load`], and the number is aligned.
#[inline(always)]
pub(super) unsafe fn compare_exchange(host: u64, width: Width, old: u64, new: u64) -> u64 {
    macro_rules! exchange {
        ($load:literal, $compare:literal, $store:literal) => {{
            let there: u64;
            asm!(
                "2:",
                $load,
                $compare,
                "b.ne 3f",
                $store,
                "cbnz {failed:w}, 2b",
                "3:",
                host = in(reg) host,
                old = in(reg) old,
                new = in(reg) new,
                there = out(reg) there,
                failed = out(reg) _,
                options(nostack),
            );
            there
        }};
    }
    // SAFETY: guaranteed by the caller.
    unsafe {
        match width {
            Width::W32 => exchange!(
                "ldaxr {there:w}, [{host}]",
                "cmp {there:w}, {old:w}",
                "stlxr {failed:w}, {new:w}, [{host}]"
            ),
            Width::W64 => exchange!(
                "ldaxr {there:x}, [{host}]",
                "cmp {there:x}, {old:x}",
                "stlxr {failed:w}, {new:x}, [{host}]"
            ),
        }
    }
}

/// Adds to a number and returns the old one.
///
/// # Safety
/// As of [`compare_exchange`].
#[inline(always)]
pub(super) unsafe fn add(host: u64, width: Width, value: u64) -> u64 {
    macro_rules! add {
        ($load:literal, $add:literal, $store:literal) => {{
            let old: u64;
            asm!(
                "2:",
                $load,
                $add,
                $store,
                "cbnz {failed:w}, 2b",
                host = in(reg) host,
                value = in(reg) value,
                old = out(reg) old,
                new = out(reg) _,
                failed = out(reg) _,
                options(nostack, preserves_flags),
            );
            old
        }};
    }
    // SAFETY: guaranteed by the caller.
    unsafe {
        match width {
            Width::W32 => add!(
                "ldaxr {old:w}, [{host}]",
                "add {new:w}, {old:w}, {value:w}",
                "stlxr {failed:w}, {new:w}, [{host}]"
            ),
            Width::W64 => add!(
                "ldaxr {old:x}, [{host}]",
                "add {new:x}, {old:x}, {value:x}",
                "stlxr {failed:w}, {new:x}, [{host}]"
            ),
        }
    }
}
