//! Instruction encodings as in the architecture manual, on any host. (What they do is
//! tested by execution: `tests/library/jit.rs`, `tests/library/engines.rs`.)

use dynasmrt::DynasmLabelApi;
use proptest::prelude::*;

use super::emitter::{Emitter, asm};
use super::features::Features;
use super::regs::host;
use crate::engine::Counting;
use crate::isa::{AluOp, AtomicOp, JumpOp, Operand, Reg, SignedSize, Size, Width};
use crate::jit::count::Counts;
use crate::jit::emit_for;
use crate::jit::testing::lowered;
use crate::lower::{Fused, MemRef, Order};
use crate::spec::context::Arch;

/// The instructions that `emit` writes for the first operation of a program, without stubs.
fn words_with(features: Features, emit: impl FnOnce(&mut Emitter<'_>)) -> Vec<u32> {
    let lowered = lowered("r0 = 0\nexit");
    let counts = Counts::of(&lowered, Counting::Exact);
    let mut emitter = Emitter::new(&lowered, &counts, features);
    emit(&mut emitter);
    let end = emitter.offset();
    // All labels must be placed.
    let [first, second] = [0, 1].map(|op| emitter.labels.op(op));
    asm!(emitter ; =>first ; =>second);
    emitter.finish();
    emitter.shared_step();
    let main = lowered.functions().first().unwrap();
    emitter.emit_entry_points(main);
    let in_place = emitter.in_place;
    asm!(emitter ; =>in_place);
    let bytes = emitter.code.finalize().unwrap();
    let (words, _) = bytes[..end].as_chunks::<4>();
    words.iter().map(|word| u32::from_le_bytes(*word)).collect()
}

fn words(emit: impl FnOnce(&mut Emitter<'_>)) -> Vec<u32> {
    words_with(Features::default(), emit)
}

/// The bits of a logical immediate: a run of ones in an element, rotated, repeated.
fn logical_immediate(word: u32) -> u64 {
    let (n, immr, imms) = (word >> 22 & 1, word >> 16 & 63, word >> 10 & 63);
    let len = 31 - (n << 6 | (!imms & 63)).leading_zeros();
    let size = 1u32 << len;
    let (ones, turn) = ((imms & (size - 1)) + 1, immr & (size - 1));
    let element = |bit: u32| (bit + turn) % size < ones;
    (0..64).fold(0, |sum, bit| sum | u64::from(element(bit % size)) << bit)
}

/// The value of `result` after straight-line code of moves and additions, with `start` in
/// x1.
fn evaluate(words: &[u32], start: u64, result: u8) -> u64 {
    let mut regs = [0u64; 32];
    regs[1] = start;
    for &word in words {
        let (d, n, m) = (word & 31, word >> 5 & 31, word >> 16 & 31);
        let (d, n, m) = (d as usize, n as usize, m as usize);
        let (wide, shift) = (u64::from(word >> 5 & 0xffff), word >> 17 & 0x30);
        let arith = u64::from(word >> 10 & 0xfff) << (if word >> 22 & 1 == 1 { 12 } else { 0 });
        let is_long = word >> 31 == 1;
        let value = match word >> 23 & 0xff {
            // movn, movz, movk
            0b0010_0101 => !(wide << shift),
            0b1010_0101 => wide << shift,
            0b1110_0101 => regs[d] & !(0xffff << shift) | wide << shift,
            // orr with a zero source
            0b0110_0100 if n == 31 => logical_immediate(word),
            // add, sub with a constant
            0b0010_0010 => regs[n].wrapping_add(arith),
            0b1010_0010 => regs[n].wrapping_sub(arith),
            // add, orr of registers
            0b0001_0110 => regs[n].wrapping_add(regs[m]),
            0b0101_0100 if n == 31 => regs[m],
            other => panic!("{word:08x} {other:08b}"),
        };
        regs[d] = if is_long { value } else { value & 0xffff_ffff };
        regs[31] = 0;
    }
    regs[usize::from(result)]
}

fn numbers() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        (any::<u16>(), 0..64u32).prop_map(|(n, turn)| u64::from(n).rotate_left(turn)),
        (any::<u16>(), 0..64u32).prop_map(|(n, turn)| !u64::from(n).rotate_left(turn)),
        any::<u32>().prop_map(u64::from),
        any::<i32>().prop_map(|n| i64::from(n).cast_unsigned()),
        (1..64u32, 0..64u32).prop_map(|(ones, turn)| ((1u64 << ones) - 1).rotate_left(turn)),
        any::<u8>().prop_map(|n| u64::from_le_bytes([n; 8])),
    ]
}

proptest! {
    #[test]
    fn constants_are_what_they_should_be(number in numbers()) {
        let code = words(|e| e.constant(3, number));
        prop_assert_eq!(evaluate(&code, 0, 3), number, "{:08x?}", code);
        prop_assert!(code.len() <= 4);
        if number <= 0xffff || !number <= 0xffff {
            prop_assert_eq!(code.len(), 1);
        }
    }

    #[test]
    fn additions_add(start in any::<u64>(), number in numbers(), dst in 1..4u8) {
        let number = number.cast_signed();
        for number in [number, number % 0x1000, number % 0x100_0000] {
            let code = words(|e| e.add(dst, 1, number));
            let sum = start.wrapping_add_signed(number);
            prop_assert_eq!(evaluate(&code, start, dst), sum, "{:08x?}", code);
        }
    }
}

/// `r6 op= right`, which is in x19.
fn alu(op: AluOp, width: Width, right: Operand) -> Vec<u32> {
    let r6 = host(Reg::R6);
    words(|e| e.alu(op, width, r6, r6, right))
}

#[test]
fn arithmetic() {
    use {AluOp::*, Width::*};
    let r7 = Operand::Reg(Reg::R7);
    let imm = Operand::Imm;
    for (found, expected) in [
        (alu(Add, W64, r7), &[0x8b14_0273][..]), // add x19, x19, x20
        (alu(Sub, W32, r7), &[0x4b14_0273]),     // sub w19, w19, w20
        (alu(Mul, W64, r7), &[0x9b14_7e73]),     // mul x19, x19, x20
        (alu(Or, W64, imm(0xff)), &[0xb240_1e73]), // orr x19, x19, #0xff
        (alu(And, W32, imm(-2)), &[0x121f_7a73]), // and w19, w19, #0xfffffffe
        // mov w13, #5 ; eor x19, x19, x13
        (alu(Xor, W64, imm(5)), &[0x5280_00ad, 0xca0d_0273]),
        (alu(Add, W64, imm(-1)), &[0xd100_0673]), // sub x19, x19, #1
        // add x19, x19, #1, lsl 12 ; add x19, x19, #1
        (alu(Add, W64, imm(0x1001)), &[0x9140_0673, 0x9100_0673]),
        (alu(Lsh, W64, imm(3)), &[0xd37d_f273]), // lsl x19, x19, #3
        (alu(Arsh, W32, imm(31)), &[0x131f_7e73]), // asr w19, w19, #31
        (alu(Rsh, W64, r7), &[0x9ad4_2673]),     // lsr x19, x19, x20
        (alu(Lsh, W32, imm(0)), &[0x2a13_03f3]), // mov w19, w19
        (alu(Lsh, W64, imm(0)), &[]),
        (alu(Div, W64, r7), &[0x9ad4_0a73]), // udiv x19, x19, x20
        // sdiv w14, w19, w20 ; msub w19, w14, w20, w19
        (alu(Smod, W32, r7), &[0x1ad4_0e6e, 0x1b14_cdd3]),
        (alu(Div, W64, imm(16)), &[0xd344_fe73]), // lsr x19, x19, #4
        (alu(Mod, W32, imm(16)), &[0x1200_0e73]), // and w19, w19, #15
        (alu(Mov, W64, imm(-1)), &[0x9280_0013]), // mov x19, #-1
        (alu(Mov, W32, imm(-1)), &[0x1280_0013]), // mov w19, #-1
    ] {
        assert_eq!(found, expected, "{found:08x?}");
    }
    let extended = words(|e| e.movsx(W64, SignedSize::S8, Reg::R6, Reg::R7));
    assert_eq!(extended, [0x9340_1e93]); // sxtb x19, w20
}

#[test]
fn accesses() {
    let load = |mem| words(|e| assert!(e.load(0, Size::Dw, Reg::R6, mem, Order::Relaxed)));
    let stack = |off| MemRef::Stack { off };
    assert_eq!(load(stack(-8)), [0xf940_ff33]); // ldr x19, [x25, #504]
    // add x10, x25, #505 ; ldr x19, [x10]
    assert_eq!(load(stack(-7)), [0x9107_e72a, 0xf940_0153]);
    assert_eq!(load(stack(-507)), [0xf840_5333]); // ldur x19, [x25, #5]
    assert_eq!(load(MemRef::Context { off: 16 }), [0xf940_0b13]); // ldr x19, [x24, #16]
    let (base, off) = (Reg::R7, 0);
    // ubfx x11, x20, #40, #16 ; ldr x11, [x28, x11, lsl #3] ; cbz x11, … ;
    // ldr x19, [x20, x11]
    let table = load(MemRef::Table { base, off });
    assert_eq!(table[..2], [0xd368_de8b, 0xf86b_7b8b]);
    assert_eq!(table[2] & 0xff00_001f, 0xb400_000b);
    assert_eq!(table[3..], [0xf86b_6a93]);
    let (off, size) = (8, Size::Dw);
    let kernel = load(MemRef::Kernel { base, off, size });
    assert_eq!(kernel[0], 0x9100_228a); // add x10, x20, #8
    // ldr x12, [x26, #…] ; and x11, x10, #0xfc0 ; add x11, x11, x12 ; ldr x12, [x11] ;
    // sub x10, x10, x12 ; ldr x12, [x11, #40] ; cmp x10, x12
    assert_eq!(kernel[1] & 0xffc0_03ff, 0xf940_034c);
    let found = [0x927a_154b, 0x8b0c_016b, 0xf940_016c];
    assert_eq!(kernel[2..5], found);
    assert_eq!(kernel[5..8], [0xcb0c_014a, 0xf940_156c, 0xeb0c_015f]);
    assert_eq!(kernel[8] & 0xff00_001f, 0x5400_0002); // b.hs …
    // ldr x11, [x11, #8] ; ldr x19, [x10, x11]
    assert_eq!(kernel[9..], [0xf940_056b, 0xf86b_6953]);
    let zero = words(|e| {
        e.store(0, Size::W, stack(-4), Operand::Imm(0), Order::Relaxed);
    });
    assert_eq!(zero, [0xb901_ff3f]); // str wzr, [x25, #508]
    // Ordered accesses need an aligned address.
    let acquire = words(|e| assert!(e.load(0, Size::H, Reg::R6, stack(-2), Order::Acquire)));
    assert_eq!(acquire[..2], [0x9107_fb2a, 0xf240_015f]); // add x10, … ; tst x10, #1
    assert_eq!(acquire[3..], [0x48df_fd53]); // ldarh w19, [x10]
    let release = words(|e| {
        e.store(0, Size::B, stack(-1), Operand::Reg(Reg::R6), Order::Release);
    });
    assert_eq!(release, [0x9107_ff2a, 0x089f_fd53]); // add x10, … ; stlrb w19, [x10]
}

#[test]
fn atomics_with_and_without_extensions() {
    let words = |lse, op| {
        let mem = MemRef::Stack { off: -8 };
        let all = words_with(Features { lse }, |e| {
            assert!(e.atomic(0, op, Width::W64, mem, Reg::R7));
        });
        all[3..].to_vec() // after the test of the address
    };
    assert_eq!(words(true, AtomicOp::Add), [0xf8f4_014b]); // ldaddal x20, x11, [x10]
    // mov x11, x7 ; casal x11, x20, [x10] ; mov x7, x11
    let exchange = [0xaa07_03eb, 0xc8eb_fd54, 0xaa0b_03e7];
    assert_eq!(words(true, AtomicOp::Cmpxchg), exchange);
    let fetch = [
        0xc85f_fd4b, // ldaxr x11, [x10]
        0xaa14_016c, // orr x12, x11, x20
        0xc809_fd4c, // stlxr w9, x12, [x10]
        0x35ff_ffa9, // cbnz w9, …
        0xd503_3bbf, // dmb ish
        0xaa0b_03f4, // mov x20, x11
    ];
    assert_eq!(words(false, AtomicOp::FetchOr), fetch);
}

#[test]
fn branches() {
    let branch = |op, width, right| {
        let words = words(|e| e.jump_if(0, op, width, (Reg::R6, right), 1));
        // The distance is to the test's label.
        let last = words.last().unwrap() & 0xff00_001f;
        (words[..words.len() - 1].to_vec(), last)
    };
    let (w64, w32, imm) = (Width::W64, Width::W32, Operand::Imm);
    assert_eq!(branch(JumpOp::Eq, w32, imm(0)), (vec![], 0x3400_0013)); // cbz w19, …
    // cmp x19, x20 ; b.hi …
    let greater = branch(JumpOp::Gt, w64, Operand::Reg(Reg::R7));
    assert_eq!(greater, (vec![0xeb14_027f], 0x5400_0008));
    // cmn w19, #1 ; b.lt …
    assert_eq!(
        branch(JumpOp::Slt, w32, imm(-1)),
        (vec![0x3100_067f], 0x5400_000b)
    );
    // tst x19, #8 ; b.ne …
    assert_eq!(
        branch(JumpOp::Set, w64, imm(8)),
        (vec![0xf27d_027f], 0x5400_0001)
    );
}

#[test]
fn several_at_once() {
    let fused = |fused| words(|e| assert!(e.fused(0, &fused, 1)));
    let (dst, src, width) = (Reg::R6, Reg::R7, Width::W64);
    let rotated = fused(Fused::Rotate {
        width: Width::W32,
        dst,
        src,
        by: 5,
    });
    assert_eq!(rotated, [0x1394_6e93]); // ror w19, w20, #27
    let extract = |left, right, signed| {
        fused(Fused::Extract {
            width,
            dst,
            src,
            left,
            right,
            signed,
        })
    };
    assert_eq!(extract(48, 56, false), [0xd348_3e93]); // ubfx x19, x20, #8, #8
    assert_eq!(extract(32, 32, true), [0x9340_7e93]); // sxtw x19, w20
    assert_eq!(extract(32, 29, false), [0xd37d_7e93]); // ubfiz x19, x20, #3, #32
    let bits = |right, mask| {
        fused(Fused::Bits {
            width,
            dst,
            src,
            right,
            mask,
        })
    };
    assert_eq!(bits(12, 0xff), [0xd34c_4e93]); // ubfx x19, x20, #12, #8
    assert_eq!(bits(60, 0xff), [0xd37c_fe93]); // lsr x19, x20, #60
    // lsr x12, x20, #4 ; and x19, x12, #0xfffffffffffffffe
    assert_eq!(bits(4, -2), [0xd344_fe8c, 0x927f_f993]);
    let sum = fused(Fused::ShiftAdd {
        dst,
        base: Reg::R8,
        index: src,
        left: 3,
    });
    assert_eq!(sum, [0x8b14_0eb3]); // add x19, x21, x20, lsl #3
}

/// Operations with much code, repeated, and branches over them.
fn large(repeated: usize) -> String {
    let body = "r0 = *(u64 *)(r8 + 3)
        lock *(u64 *)(r10 - 8) |= r0
        r0 = cmpxchg_64(r10 - 16, r0, r7)
        r1 = r7
        call 5
        r7 ^= r0
        r1 = r7
        call small
        if r0 == 0x12345678 goto +1
        r7 += 0x12345678
        ";
    format!(
        "r8 = *(u32 *)(r1 + 0)
        r2 = *(u32 *)(r1 + 4)
        r3 = r8
        r3 += 64
        r7 = 0
        *(u64 *)(r10 - 8) = r7
        *(u64 *)(r10 - 16) = r7
        if r3 <= r2 goto start
        r0 = 0
        exit
        start: {}
        r0 = r7
        exit
        small: r0 = r1
        exit",
        body.repeat(repeated)
    )
}

/// Stubs must be in reach, however long the code.
#[test]
fn code_that_is_longer_than_branches_reach() {
    for repeated in [1, 700, 8_000] {
        let lowered = lowered(&large(repeated));
        let code = emit_for(Arch::Arm64, &lowered, Counting::Exact).unwrap();
        assert_eq!(code.ops.len(), lowered.ops().len());
        // The largest is longer than the host's short branches reach, 1 MiB.
        assert!(code.bytes.len() > 140 * repeated, "{}", code.bytes.len());
        assert!(code.ops.is_sorted());
    }
}

#[test]
fn every_machine_has_its_code_on_any_host() {
    let lowered = lowered(&large(1));
    let [x86, arm] =
        [Arch::X86_64, Arch::Arm64].map(|a| emit_for(a, &lowered, Counting::Exact).unwrap());
    assert_ne!(x86.bytes, arm.bytes);
    assert_eq!(x86.ops.len(), arm.ops.len());
    assert!(arm.ops.iter().all(|at| at.is_multiple_of(4)));
    assert!(arm.entries.iter().all(|(_, at)| at.is_multiple_of(4)));
}
