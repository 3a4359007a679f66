//! Accesses as instructions of x86-64. The invariant is at the module above.

use std::arch::asm;

use crate::isa::{Size, Width};

define_loads_and_stores! {
    B "movzx {value:e}, byte ptr [{host}]" "mov byte ptr [{host}], {value:l}"
    H "movzx {value:e}, word ptr [{host}]" "mov word ptr [{host}], {value:x}"
    W "mov {value:e}, dword ptr [{host}]" "mov dword ptr [{host}], {value:e}"
    Dw "mov {value:r}, qword ptr [{host}]" "mov qword ptr [{host}], {value:r}"
    ; four "mov {a}, [{host}]" "mov {b}, [{host} + 8]"
        "mov {c}, [{host} + 16]" "mov {d}, [{host} + 24]"
}

/// Stores the low bytes of `new` if the number is `old` (zero-extended); returns the number.
///
/// # Safety
/// As of [`load`], and the number is aligned.
#[inline(always)]
pub(super) unsafe fn compare_exchange(host: u64, width: Width, old: u64, new: u64) -> u64 {
    macro_rules! exchange {
        ($instruction:literal) => {{
            let there: u64;
            asm!(
                $instruction,
                host = in(reg) host,
                new = in(reg) new,
                inout("rax") old => there,
                options(nostack),
            );
            there
        }};
    }
    // SAFETY: guaranteed by the caller; rax is only written if the numbers differ.
    unsafe {
        match width {
            Width::W32 => exchange!("lock cmpxchg dword ptr [{host}], {new:e}"),
            Width::W64 => exchange!("lock cmpxchg qword ptr [{host}], {new}"),
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
        ($instruction:literal) => {{
            let old: u64;
            asm!(
                $instruction,
                host = in(reg) host,
                value = inout(reg) value => old,
                options(nostack),
            );
            old
        }};
    }
    // SAFETY: guaranteed by the caller.
    unsafe {
        match width {
            Width::W32 => add!("lock xadd dword ptr [{host}], {value:e}"),
            Width::W64 => add!("lock xadd qword ptr [{host}], {value}"),
        }
    }
}
