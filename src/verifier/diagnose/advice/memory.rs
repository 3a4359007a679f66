//! Accesses that may be outside of their object.

use super::row::{Advice, Flaw, When, rows};

#[rustfmt::skip]
pub(super) const ADVICE: &[Advice] = rows! {
    "R{reg} offset is outside of the packet", When::Compared(Flaw::Backwards) => Memory {
        problem: "packet bounds compared the wrong way round",
        reason: "On this path, the comparison has shown that R{reg} is at the packet's end or past it.",
        here: "is past the packet's end on this path",
        expected: "an access only where `pointer + size <= data_end`",
        help: "turn the comparison around: `if (pointer + sizeof(*pointer) > data_end) return …;`, then the access",
    }
    "R{reg} offset is outside of the packet", When::Compared(Flaw::StartOnly) => Memory {
        problem: "packet bounds compared without the size of the access",
        reason: "R{reg} itself is compared with data_end, not the end of what is accessed. The verifier takes no length from `pointer < data_end`, not even one byte.",
        here: "may be past the packet's end",
        expected: "a comparison of the end of the access with data_end",
        help: "compare the end of the access: `pointer + 1 <= data_end` for one byte, `pointer + sizeof(*pointer) <= data_end` for others",
    }
    "R{reg} offset is outside of the packet", When::Compared(Flaw::TooFar) => Memory {
        problem: "packet offset that may be too large",
        reason: "The verifier ignores the comparison with data_end, since R{reg} may be more than 65535 bytes into the packet.",
        here: "may be past the packet's end",
        expected: "a pointer that can't be more than 65535 bytes into the packet when it is compared with data_end",
        help: "bound the offset before it is added to the pointer: `if (offset > 0x7fff) return …;`; if an offset grows in a loop, bound it in each round",
    }
    "R{reg} offset is outside of the packet", When::Compared(Flaw::Short) => Memory {
        problem: "packet bounds compared for too few bytes",
        reason: "The comparison with data_end covers {covered} bytes from R{reg} on.",
        here: "may be past the packet's end",
        expected: "a comparison that includes the last byte of the access",
        help: "add the size of what is accessed: `if (pointer + sizeof(*pointer) > data_end) return …;`",
    }
    "R{reg} offset is outside of the packet" => Memory {
        problem: "packet access without a bounds check",
        reason: "R{reg} points into the packet, and on this path no comparison has shown that the packet is long enough.",
        here: "may be past the packet's end",
        expected: "a comparison with data_end before the access, on every path to it, which includes all bytes that are read",
        help: "compare first: `if (data + sizeof(struct header) > data_end) return …;` (metadata before the packet: with `data`), with the same pointer that is then used",
    }
    "R{reg} min value is outside of the allowed memory range", When::MadeBy("bpf_ringbuf_reserve") => Memory {
        problem: "record that is too small",
        reason: "The access leads out of the reserved record: {sum}.",
        here: "is outside of the record",
        expected: "offset + size within the bytes that bpf_ringbuf_reserve() was asked for",
        help: "reserve as many bytes as the record's type has: `sizeof(*record)`, not the size of the pointer",
    }
    "R{reg} min value is outside of the allowed memory range" => Memory {
        problem: "access outside of its object",
        reason: "The smallest offset that R{reg} can have here already leads out of the object: {sum}.",
        here: "is outside of the object",
        expected: "offset + size within the object, for all values that the offset can have",
        help: "correct the offset or the type that is read, or make the object larger (a map's value: in the map's definition)",
    }
    "R{reg} max value is outside of the allowed memory range" => Memory {
        problem: "index without a sufficient bound",
        reason: "The largest offset that R{reg} can have here leads out of the object: {sum}.",
        here: "may be outside of the object",
        expected: "a bound on the index such that index * element size + access size is within the object",
        help: "bound it before the access: `if (index >= ARRAY_SIZE(slots)) return 0;` for one element (or `index &= ARRAY_SIZE(slots) - 1;` for a power of two), `if (offset > sizeof(buffer) - size) return 0;` for `size` bytes",
    }
    "R{reg} unbounded memory access, make sure to bounds check any such access" => Memory {
        problem: "index without a bound",
        reason: "R{reg} holds an offset that can be any number.",
        here: "may reach anywhere",
        expected: "a bound on the index before it is used, in the register that is used",
        help: "bound it: `if (index >= ARRAY_SIZE(value->slots)) return 0;`. If it is bounded in the source, the compiler may have tested a copy: mask it (`index &= 63`), or keep it in one variable",
    }
    "R{reg} min value is negative, either use unsigned index or do a if (index >=0) check." => Memory {
        problem: "index that may be negative",
        reason: "R{reg} holds a signed offset without a check of its lower bound.",
        here: "may be before the object",
        expected: "an index that is 0 or more",
        help: "make the index unsigned, or test `if (index < 0) return 0;` as well",
    }
    "math between ctx pointer and register with unbounded min value is not allowed" => Memory {
        problem: "context access with a variable index",
        reason: "A number that is not constant is added to the program's context, whose fields can only be read at constant offsets.",
        here: "the offset into the context is not constant",
        expected: "a constant offset from the context as the program was given it",
        help: "read every field that may be needed into an array on the stack and index that, or choose with a switch; unroll loops (`#pragma unroll`)",
    }
    "math between {type} pointer and register with unbounded min value is not allowed" => Memory {
        problem: "offset without a bound added to a pointer",
        reason: "A number without bounds is added to {kind}; the sum could point anywhere.",
        here: "the offset that is added has no bound",
        expected: "an offset with a bound on both sides before it is added to a pointer",
        help: "bound the index first: `if (index >= ARRAY_SIZE(slots)) return 0;`, or mask it: `index &= 63`; with an unsigned type, no test against 0 is needed",
    }
    "math between {type} pointer and {offset} is not allowed" => Memory {
        problem: "offset too large to be added to a pointer",
        reason: "{offset} is added to {kind}, which is more than a pointer may move.",
        here: "the offset is too large",
        expected: "an offset below 2^29",
        help: "bound the index to the size of the object before it is used",
    }
    "invalid unbounded variable-offset {access} stack R{reg}" => Memory {
        problem: "index into the stack without a bound",
        reason: "R{reg} points to the stack with an offset that can be any number.",
        here: "may reach anywhere on the stack",
        expected: "a bound on the index before it is used",
        help: "bound it: `if (index >= sizeof(buffer)) return 0;`, or mask it: `index &= sizeof(buffer) - 1;`",
    }
    "invalid variable-offset {access} stack R{reg} var_off={var} off={off} size={size}" => Memory {
        problem: "index into the stack without a sufficient bound",
        reason: "R{reg} points to the stack, and not all offsets that it can have are within the frame.",
        here: "may leave the frame",
        expected: "an index such that all {size} bytes are within the frame's 512 bytes, below the frame pointer",
        help: "bound the index to the buffer: `if (index >= sizeof(buffer)) return 0;`",
    }
    "invalid {access} stack R{reg} off={off} size={size}", When::AtCall => Memory {
        problem: "variable that is too small for a call",
        reason: "{helper}() accesses {size} bytes at {off} of the stack. They don't lie within the frame, which ends at 0.",
        here: "accesses {size} bytes",
        expected: "a pointer to a variable of at least {size} bytes",
        help: "pass a variable of {size} bytes: a key or value has the size that the map's definition says, other buffers that of the size argument (`sizeof(buffer)`)",
    }
    "invalid {access} stack R{reg} off={off} size={size}" => Memory {
        problem: "access outside of the stack",
        reason: "R{reg} points to the stack at {off}, and {size} bytes from there don't lie within the frame, which ends at 0.",
        here: "is outside of the frame",
        expected: "at most as many bytes as the buffer has, within the frame's 512 bytes",
        help: "access or pass no more than the buffer has, `sizeof(buffer)`; what doesn't fit on the stack belongs into a per-CPU array map",
    }
    "invalid {access} stack off {off}+{from} size {size}" => Memory {
        problem: "read of uninitialised stack",
        reason: "Of {size} bytes of stack at {off}, byte {from} was never written on this path.",
        here: "reads uninitialised bytes",
        expected: "stack that was written on every path before it is read",
        help: "initialise all of the variable where it is declared; padding counts: clear a struct with __builtin_memset",
    }
    "misaligned {what} access off {off} size {size}" => Memory {
        problem: "misaligned access",
        reason: "{size} bytes are accessed at an address that is not a multiple of {size}: {what} access needs alignment here.",
        here: "is not aligned to {size} bytes",
        expected: "an offset that is a multiple of the access's size",
        help: "align the field (no `packed`, members by decreasing size), pass a variable of the type that is accessed, or read it in smaller pieces: __builtin_memcpy",
    }
    "R{reg} min value is negative, either use unsigned or 'var &= const'" => Memory {
        problem: "size that may be negative",
        reason: "R{reg} is the size for {helper}(), and on this path it can be negative.",
        here: "the size may be negative",
        expected: "a size of 0 or more, with an upper bound that fits the buffer",
        help: "make the size unsigned and bound it: `if (size > sizeof(buffer)) size = sizeof(buffer);`, or mask it: `size &= sizeof(buffer) - 1;`",
    }
    "R{reg} unbounded memory access, use 'var &= const' or 'if (var < const)'" => Memory {
        problem: "size without a bound",
        reason: "R{reg} is the size for {helper}(), and nothing limits it.",
        here: "the size has no upper bound",
        expected: "a size with an upper bound that fits the buffer",
        help: "bound it: `if (size > sizeof(buffer)) size = sizeof(buffer);`, or mask it: `size &= sizeof(buffer) - 1;`",
    }
    "R{reg} invalid zero-sized read: {range}" => Memory {
        problem: "size that may be 0",
        reason: "R{reg} is the size for {helper}(), which doesn't take 0, and it can be 0 here.",
        here: "the size may be 0",
        expected: "a size of 1 or more",
        help: "test it: `if (!size) return 0;`",
    }
    "write into map forbidden, value_size={value} off={off} size={size}" => Memory {
        problem: "write to a map that programs may only read",
        reason: "The map was made read-only for programs: it holds constants (.rodata), or has BPF_F_RDONLY_PROG.",
        here: "writes to read-only memory",
        expected: "no write from a program; user space sets such values before it loads the program",
        help: "drop `const` if the program is to change the variable (it then lies in .data or .bss); for a declared map, drop BPF_F_RDONLY_PROG from its flags",
    }
    "read from map forbidden, value_size={value} off={off} size={size}" => Memory {
        problem: "read from a map that programs may only write",
        reason: "The map has BPF_F_WRONLY_PROG.",
        here: "reads from write-only memory",
        expected: "no read from a program",
        help: "drop the flag from the map's definition",
    }
    "R{reg} cannot write into {what}" => Memory {
        problem: "write to read-only memory",
        reason: "R{reg} points to {what}, which programs may only read.",
        here: "writes to read-only memory",
        expected: "a pointer to memory that may be written",
        help: "copy what is to be changed to the stack or into a map's value",
    }
    "invalid bpf_context access off={off} size={size}" => Memory {
        problem: "context field that cannot be accessed like this",
        reason: "In {prog_type} programs, {size} bytes at offset {off} of the context may not be accessed in this way.",
        here: "no such field for this program type",
        expected: "a field that this program type has, read in its own size and written only where that is allowed",
        help: "look up the context's fields for the type: `bpflab inspect` shows a program's type, and the section name decides it",
    }
    "variable {what} access var_off={var} disallowed" => Memory {
        problem: "access at an offset that is not constant",
        reason: "The offset from {what} is known at run time only.",
        here: "the offset is not constant",
        expected: "a constant offset",
        help: "unroll the loop or use a switch, so that each access has an offset of its own; or copy the fields to an array on the stack first",
    }
};
