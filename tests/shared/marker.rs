//! USDT probes as `sys/sdt.h` makes them: a nop, and an ELF note with its address, name and
//! argument locations.

#![expect(unsafe_code, reason = "instructions that do nothing")]

use std::ffi::CStr;

/// A USDT probe with two arguments of eight bytes, in the first two argument registers.
macro_rules! marker {
    ($name:literal, $first:expr, $second:expr) => {{
        let (first, second): (u64, u64) = ($first, $second);
        // SAFETY: a nop has no effect and does not read its operands.
        #[cfg(target_arch = "x86_64")]
        unsafe {
            std::arch::asm!(
                note!($name, "8@%rdi 8@%rsi"),
                in("rdi") first,
                in("rsi") second,
                options(nomem, nostack, preserves_flags),
            );
        }
        // SAFETY: as above.
        #[cfg(target_arch = "aarch64")]
        unsafe {
            std::arch::asm!(
                note!($name, "8@x0 8@x1"),
                in("x0") first,
                in("x1") second,
                options(nomem, nostack, preserves_flags),
            );
        }
    }};
}

/// The nop and its note.
macro_rules! note {
    ($name:literal, $arguments:literal) => {
        concat!(
            "990: nop\n",
            ".pushsection .note.stapsdt,\"\",\"note\"\n",
            ".balign 4\n",
            ".4byte 992f-991f, 994f-993f, 3\n",
            "991: .asciz \"stapsdt\"\n",
            "992: .balign 4\n",
            "993: .8byte 990b\n",
            ".8byte _.stapsdt.base\n",
            ".8byte 0\n",
            ".asciz \"server\"\n",
            ".asciz \"",
            $name,
            "\"\n",
            ".asciz \"",
            $arguments,
            "\"\n",
            "994: .balign 4\n",
            ".popsection\n",
            ".ifndef _.stapsdt.base\n",
            ".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n",
            ".weak _.stapsdt.base\n",
            ".hidden _.stapsdt.base\n",
            "_.stapsdt.base: .space 1\n",
            ".size _.stapsdt.base, 1\n",
            ".popsection\n",
            ".endif\n",
        )
    };
}

/// `request__start(id, path)`.
#[inline(never)]
pub fn request_start(id: u64, path: &CStr) {
    marker!("request__start", id, path.as_ptr().addr() as u64);
}

/// `request__done(id, status)`.
#[inline(never)]
pub fn request_done(id: u64, status: u64) {
    marker!("request__done", id, status);
}
