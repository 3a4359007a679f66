//! Machine code, operation by operation: its results are those of the tables of the
//! instruction set, in every register, and nothing else changes. (Whole programs are
//! compared in `engines`.) In a build without machine code for the host, the fast
//! interpreter is tested.

use std::sync::Arc;

use bpflab::Vm;
use bpflab::harness::{EngineKind, RanOn};
use bpflab::isa::{
    AluOp, AtomicOp, EndianOp, EndianSize, Insn, JumpOp, Operand, Reg, SignedSize, Size, Width,
    encode,
};
use bpflab::program::Program;
use bpflab::spec::ProgType;
use bpflab::vm::World;
use bpflab::vm::events::Event;
use proptest::prelude::*;

/// The registers that programs may change.
const REGS: [Reg; 10] = [
    Reg::R0,
    Reg::R1,
    Reg::R2,
    Reg::R3,
    Reg::R4,
    Reg::R5,
    Reg::R6,
    Reg::R7,
    Reg::R8,
    Reg::R9,
];

/// Boundary values.
const EDGES: [u64; 14] = [
    0,
    1,
    u64::MAX,
    0x7fff_ffff_ffff_ffff,
    0x8000_0000_0000_0000,
    0x8000_0000,
    0x7fff_ffff,
    0xffff_ffff,
    0xffff_ffff_8000_0000,
    0x1_0000_0000,
    33,
    65,
    0x1122_3344_5566_7788,
    0xfedc_ba98_7654_3210,
];

/// The return value of a program of these instructions on a packet.
fn run(insns: &[Insn], packet: &[u8], engine: EngineKind) -> u64 {
    let mut vm = Vm::with_world(World::default());
    vm.set_engine(engine);
    let program = Program::new("p", ProgType::Xdp, encode(insns));
    let handle = vm
        .load_unverified_programs(&[], vec![Arc::new(program)])
        .unwrap()[0];
    let verdict = &vm.verification("p").unwrap().verdict;
    assert!(verdict.is_accepted(), "{}: {insns:#?}", verdict.message);
    assert_eq!(vm.engine_of(handle).unwrap(), RanOn::chosen(engine));
    let outcome = vm.run(handle, &Event::packet(packet.to_vec()));
    outcome.unwrap().runs[0].r0
}

/// The stack offset of a register's sum.
fn slot(reg: Reg) -> i16 {
    -8 - 8 * i16::from(reg.number())
}

/// Stores to the frame.
fn put(off: i16, src: Operand) -> Insn {
    Insn::Store {
        size: Size::Dw,
        base: Reg::FP,
        off,
        src,
    }
}

fn load(dst: Reg, off: i16) -> Insn {
    Insn::Load {
        size: Size::Dw,
        dst,
        base: Reg::FP,
        off,
    }
}

const fn add(dst: Reg, src: Reg) -> Insn {
    Insn::Alu {
        op: AluOp::Add,
        width: Width::W64,
        dst,
        src: Operand::Reg(src),
    }
}

/// The register that an instruction on registers and constants changes.
fn changed(insn: &Insn) -> Reg {
    match insn {
        Insn::Alu { dst, .. }
        | Insn::MovSx { dst, .. }
        | Insn::Neg { dst, .. }
        | Insn::Endian { dst, .. } => *dst,
        other => panic!("{other:?}"),
    }
}

/// Runs each instruction on registers full of numbers, and sums all registers after it;
/// returns the sum of the code and the sum by the tables.
fn sums(insns: &[Insn]) -> (u64, u64) {
    let mut code: Vec<Insn> = REGS.map(|reg| put(slot(reg), Operand::Imm(0))).to_vec();
    let mut expected = 0u64;
    for (number, insn) in insns.iter().enumerate() {
        let mut values = [0; 10];
        for (at, value) in values.iter_mut().enumerate() {
            *value = EDGES[(number * 3 + at * 5 + number / 14) % EDGES.len()];
        }
        for (dst, value) in REGS.into_iter().zip(values) {
            code.push(Insn::LoadImm64 { dst, value });
        }
        code.push(*insn);
        let result = insn.fold(|reg| values[usize::from(reg.number())]);
        values[usize::from(changed(insn).number())] = result.unwrap();
        for (src, value) in REGS.into_iter().zip(values) {
            let factor = u64::from(src.number()) + 1;
            expected = expected.wrapping_add(value.wrapping_mul(factor));
            code.push(Insn::Atomic {
                op: AtomicOp::Add,
                width: Width::W64,
                base: Reg::FP,
                off: slot(src),
                src,
            });
        }
    }
    code.push(Insn::LoadImm64 {
        dst: Reg::R0,
        value: 0,
    });
    for reg in REGS {
        code.push(load(Reg::R1, slot(reg)));
        code.push(Insn::Alu {
            op: AluOp::Mul,
            width: Width::W64,
            dst: Reg::R1,
            src: Operand::Imm(i32::from(reg.number()) + 1),
        });
        code.push(add(Reg::R0, Reg::R1));
    }
    code.push(Insn::Exit);
    (run(&code, &[0; 64], EngineKind::default()), expected)
}

#[track_caller]
fn check(insns: &[Insn]) {
    for chunk in insns.chunks(90) {
        let (found, expected) = sums(chunk);
        if found == expected {
            continue;
        }
        for insn in chunk {
            for _ in 0..EDGES.len() {
                let (found, expected) = sums(std::slice::from_ref(insn));
                assert_eq!(found, expected, "{insn:?}");
            }
        }
        panic!("one of these, with other numbers: {chunk:#?}");
    }
}

/// Whether the verifier accepts the operation.
fn is_allowed(op: AluOp, width: Width, src: Operand) -> bool {
    match (op, src) {
        (AluOp::Div | AluOp::Mod | AluOp::Sdiv | AluOp::Smod, Operand::Imm(imm)) => imm != 0,
        (AluOp::Lsh | AluOp::Rsh | AluOp::Arsh, Operand::Imm(imm)) => {
            (0..i32::from(width.bits())).contains(&imm)
        }
        _ => true,
    }
}

#[test]
fn arithmetic_in_every_pair_of_registers() {
    for &op in AluOp::ALL {
        for &width in Width::ALL {
            let pairs = REGS.iter().flat_map(|dst| REGS.map(|src| (*dst, src)));
            let insns: Vec<_> = pairs
                .map(|(dst, src)| Insn::Alu {
                    op,
                    width,
                    dst,
                    src: Operand::Reg(src),
                })
                .collect();
            check(&insns);
        }
    }
}

#[test]
fn arithmetic_with_constants() {
    let constants = [
        0,
        1,
        -1,
        2,
        7,
        8,
        31,
        32,
        63,
        127,
        128,
        -128,
        -129,
        i32::MIN,
        i32::MAX,
        1 << 30,
    ];
    let mut insns = Vec::new();
    for &op in AluOp::ALL {
        for &width in Width::ALL {
            for imm in constants {
                let src = Operand::Imm(imm);
                if is_allowed(op, width, src) {
                    insns.extend(REGS.map(|dst| Insn::Alu {
                        op,
                        width,
                        dst,
                        src,
                    }));
                }
            }
        }
    }
    assert!(insns.len() > 3000, "{}", insns.len());
    check(&insns);
}

#[test]
fn the_operations_of_one_register() {
    let mut insns = Vec::new();
    for dst in REGS {
        insns.extend(Width::ALL.iter().map(|&width| Insn::Neg { width, dst }));
        for &op in EndianOp::ALL {
            let sizes = EndianSize::ALL.iter();
            insns.extend(sizes.map(|&size| Insn::Endian { op, size, dst }));
        }
        for src in REGS {
            for &from in SignedSize::ALL {
                for &width in Width::ALL {
                    // There is no such instruction.
                    if (width, from) != (Width::W32, SignedSize::S32) {
                        insns.push(Insn::MovSx {
                            width,
                            from,
                            dst,
                            src,
                        });
                    }
                }
            }
        }
    }
    check(&insns);
}

/// Loads two numbers of the packet, unknown to the verifier, into the registers.
fn operands(at: i16, dst: Reg, src: Reg) -> [Insn; 2] {
    [(dst, at), (src, at + 8)].map(|(dst, off)| Insn::Load {
        size: Size::Dw,
        dst,
        base: Reg::R9,
        off,
    })
}

/// `r9` = the packet with at least `len` bytes; otherwise exits.
fn packet(len: i32) -> Vec<Insn> {
    let field = |dst, off| Insn::Load {
        size: Size::W,
        dst,
        base: Reg::R1,
        off,
    };
    vec![
        field(Reg::R9, 0),
        field(Reg::R2, 4),
        Insn::Alu {
            op: AluOp::Mov,
            width: Width::W64,
            dst: Reg::R3,
            src: Operand::Reg(Reg::R9),
        },
        Insn::Alu {
            op: AluOp::Add,
            width: Width::W64,
            dst: Reg::R3,
            src: Operand::Imm(len),
        },
        Insn::LoadImm64 {
            dst: Reg::R0,
            value: 0,
        },
        Insn::JumpIf {
            op: JumpOp::Le,
            width: Width::W64,
            dst: Reg::R3,
            src: Operand::Reg(Reg::R2),
            off: 1,
        },
        Insn::Exit,
    ]
}

#[test]
fn conditional_jumps() {
    let pairs: Vec<(u64, u64)> = EDGES
        .iter()
        .flat_map(|a| [(*a, *a), (*a, a.wrapping_add(1)), (*a, !*a), (*a, 1 << 31)])
        .collect();
    for &op in JumpOp::ALL {
        for &width in Width::ALL {
            for constant in [None, Some(0), Some(-1), Some(1), Some(i32::MIN), Some(300)] {
                let mut code = packet(16 * i32::try_from(pairs.len()).unwrap());
                let (mut bytes, mut expected) = (Vec::new(), 0u64);
                for (number, (a, b)) in pairs.iter().enumerate() {
                    let at = i16::try_from(16 * number).unwrap();
                    bytes.extend(a.to_le_bytes().iter().chain(&b.to_le_bytes()));
                    code.extend(operands(at, Reg::R6, Reg::R2));
                    let src = constant.map_or(Operand::Reg(Reg::R2), Operand::Imm);
                    let right = constant.map_or(*b, |imm| i64::from(imm).cast_unsigned());
                    code.push(Insn::JumpIf {
                        op,
                        width,
                        dst: Reg::R6,
                        src,
                        off: 1,
                    });
                    // Not a constant for the verifier, which would explore all paths.
                    code.push(add(Reg::R0, Reg::R6));
                    if !op.eval(width, *a, right) {
                        expected = expected.wrapping_add(*a);
                    }
                    code.push(Insn::Alu {
                        op: AluOp::Mul,
                        width: Width::W64,
                        dst: Reg::R0,
                        src: Operand::Imm(31),
                    });
                    expected = expected.wrapping_mul(31);
                }
                code.push(Insn::Exit);
                let found = run(&code, &bytes, EngineKind::default());
                assert_eq!(found, expected, "{op:?} {width:?} {constant:?}");
            }
        }
    }
}

#[test]
fn atomics() {
    for &op in AtomicOp::ALL {
        for &width in Width::ALL {
            for src in [Reg::R0, Reg::R1, Reg::R4, Reg::R7] {
                for is_equal in [false, true] {
                    let (memory, number) = (0x1122_3344_aabb_ccddu64, 0xff00_ff00_0ff0_1234u64);
                    let mut bytes = number.to_le_bytes().to_vec();
                    let expected = if is_equal { memory } else { number };
                    bytes.extend(expected.to_le_bytes());
                    bytes.extend(memory.to_le_bytes());
                    let mut code = packet(24);
                    code.push(Insn::Load {
                        size: Size::Dw,
                        dst: Reg::R2,
                        base: Reg::R9,
                        off: 16,
                    });
                    code.push(put(-8, Operand::Reg(Reg::R2)));
                    code.extend(operands(0, src, Reg::R0));
                    code.push(Insn::Atomic {
                        op,
                        width,
                        base: Reg::FP,
                        off: -8,
                        src,
                    });
                    code.push(load(Reg::R2, -8));
                    for reg in [Reg::R2, src] {
                        code.push(Insn::Alu {
                            op: AluOp::Mul,
                            width: Width::W64,
                            dst: Reg::R0,
                            src: Operand::Imm(31),
                        });
                        code.push(add(Reg::R0, reg));
                    }
                    code.push(Insn::Exit);
                    let [found, expected] = [EngineKind::default(), EngineKind::Checked]
                        .map(|engine| run(&code, &bytes, engine));
                    assert_eq!(found, expected, "{op:?} {width:?} {src:?} {is_equal}");
                }
            }
        }
    }
}

fn reg() -> impl Strategy<Value = Reg> {
    (0..REGS.len()).prop_map(|at| REGS[at])
}

fn of<T: Copy + std::fmt::Debug + 'static>(all: &'static [T]) -> impl Strategy<Value = T> {
    (0..all.len()).prop_map(|at| all[at])
}

/// An instruction on registers and constants.
fn insn() -> impl Strategy<Value = Insn> {
    let operand = || {
        prop_oneof![
            reg().prop_map(Operand::Reg),
            any::<i32>().prop_map(Operand::Imm),
            (-65i32..=65).prop_map(Operand::Imm),
        ]
    };
    let alu = (of(AluOp::ALL), of(Width::ALL), reg(), operand());
    prop_oneof![
        8 => alu
            .prop_filter("allowed", |(op, width, _, src)| is_allowed(*op, *width, *src))
            .prop_map(|(op, width, dst, src)| Insn::Alu { op, width, dst, src }),
        1 => (of(Width::ALL), reg()).prop_map(|(width, dst)| Insn::Neg { width, dst }),
        1 => (of(EndianOp::ALL), of(EndianSize::ALL), reg())
            .prop_map(|(op, size, dst)| Insn::Endian { op, size, dst }),
        1 => (of(SignedSize::ALL), reg(), reg()).prop_map(|(from, dst, src)| Insn::MovSx {
            width: Width::W64,
            from,
            dst,
            src,
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn straight_lines(
        mut values in proptest::array::uniform10(any::<u64>()),
        insns in prop::collection::vec(insn(), 1..120),
    ) {
        let mut code: Vec<Insn> = Vec::new();
        for (dst, value) in REGS.into_iter().zip(values) {
            code.push(Insn::LoadImm64 { dst, value });
        }
        for insn in &insns {
            code.push(*insn);
            let result = insn.fold(|reg| values[usize::from(reg.number())]).unwrap();
            values[usize::from(changed(insn).number())] = result;
        }
        code.extend(REGS[1..].iter().map(|src| add(Reg::R0, *src)));
        code.push(Insn::Exit);
        let expected = values.iter().fold(0u64, |sum, value| sum.wrapping_add(*value));
        prop_assert_eq!(run(&code, &[0; 64], EngineKind::default()), expected);
    }
}

/// `r0 = r0 * 31 + reg`: the result depends on all registers.
fn fold_in(reg: Reg) -> [Insn; 2] {
    [
        Insn::Alu {
            op: AluOp::Mul,
            width: Width::W64,
            dst: Reg::R0,
            src: Operand::Imm(31),
        },
        add(Reg::R0, reg),
    ]
}

fn alu(op: AluOp, width: Width, dst: Reg, src: Operand) -> Insn {
    Insn::Alu {
        op,
        width,
        dst,
        src,
    }
}

/// An unknown number of the packet.
fn number(dst: Reg, off: i16) -> Insn {
    Insn::Load {
        size: Size::Dw,
        dst,
        base: Reg::R9,
        off,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// The constants become factors, powers, or divisors.
    #[test]
    fn division_by_constants(
        numbers in prop::collection::vec(any::<u64>(), 1..4),
        constants in prop::collection::vec(
            prop_oneof![any::<i32>(), -20..20i32, (0..31u32).prop_map(|n| 1 << n)],
            1..20,
        ),
        dst in reg().prop_filter("free", |reg| !matches!(reg, Reg::R0 | Reg::R9)),
        width in of(Width::ALL),
    ) {
        let mut code = packet(8 * i32::try_from(numbers.len()).unwrap());
        let (mut bytes, mut expected) = (Vec::new(), 0u64);
        for (at, value) in numbers.iter().enumerate() {
            bytes.extend(value.to_le_bytes());
            for imm in constants.iter().filter(|imm| **imm != 0) {
                for op in [AluOp::Div, AluOp::Mod, AluOp::Sdiv, AluOp::Smod] {
                    code.push(number(dst, i16::try_from(8 * at).unwrap()));
                    code.push(alu(op, width, dst, Operand::Imm(*imm)));
                    code.extend(fold_in(dst));
                    let right = i64::from(*imm).cast_unsigned();
                    let result = op.eval(width, *value, right);
                    expected = expected.wrapping_mul(31).wrapping_add(result);
                }
            }
        }
        code.push(Insn::Exit);
        // No packet is shorter than its Ethernet header.
        bytes.resize(bytes.len() + 16, 0);
        prop_assert_eq!(run(&code, &bytes, EngineKind::default()), expected);
    }
}

/// Two shifts and the operation that joins them, to the register itself and to another.
#[test]
fn rotations() {
    let value = 0x8123_4567_89ab_cdef_u64;
    for &width in Width::ALL {
        let (mut code, mut expected) = (packet(8), 0u64);
        for left in 1..i32::from(width.bits()) {
            let right = i32::from(width.bits()) - left;
            for (dst, other) in [(Reg::R6, Reg::R7), (Reg::R4, Reg::R3)] {
                code.push(number(Reg::R6, 0));
                let mov = |dst| alu(AluOp::Mov, width, dst, Operand::Reg(Reg::R6));
                code.push(mov(other));
                if dst != Reg::R6 {
                    code.push(mov(dst));
                }
                code.push(alu(AluOp::Lsh, width, dst, Operand::Imm(left)));
                code.push(alu(AluOp::Rsh, width, other, Operand::Imm(right)));
                code.push(alu(AluOp::Or, width, dst, Operand::Reg(other)));
                code.extend(fold_in(dst));
                let left = u32::try_from(left).unwrap();
                let rotated = match width {
                    Width::W64 => value.rotate_left(left),
                    Width::W32 => u64::from(0x89ab_cdef_u32.rotate_left(left)),
                };
                expected = expected.wrapping_mul(31).wrapping_add(rotated);
            }
        }
        code.push(Insn::Exit);
        let bytes = [value.to_le_bytes(); 2].concat();
        let found = run(&code, &bytes, EngineKind::default());
        assert_eq!(found, expected, "{width:?}");
    }
}

/// A number in memory is loaded, changed and stored, with operations narrower than it, as wide,
/// and wider.
#[test]
fn updates_in_memory() {
    let (value, by) = (0x8123_4567_0000_0001_u64, 0xf000_0000_8000_0003_u64);
    let imm = -3;
    for &size in Size::ALL {
        let (mut code, mut expected) = (packet(16), 0u64);
        for (op, &width) in AluOp::ALL
            .iter()
            .flat_map(|op| Width::ALL.iter().map(move |w| (*op, w)))
        {
            for src in [Operand::Reg(Reg::R7), Operand::Imm(imm)] {
                if op == AluOp::Mov || !is_allowed(op, width, src) {
                    continue;
                }
                code.extend([number(Reg::R6, 0), number(Reg::R7, 8)]);
                code.push(put(-8, Operand::Reg(Reg::R6)));
                let (base, off, dst) = (Reg::FP, -8, Reg::R4);
                code.push(Insn::Load {
                    size,
                    dst,
                    base,
                    off,
                });
                code.push(alu(op, width, dst, src));
                code.push(Insn::Store {
                    size,
                    base,
                    off,
                    src: Operand::Reg(dst),
                });
                code.push(load(Reg::R4, -8));
                code.extend(fold_in(Reg::R4));
                let bits = 8 * u32::from(size.bytes());
                let mask = u64::MAX >> (64 - bits);
                let operand = match src {
                    Operand::Reg(_) => by,
                    Operand::Imm(imm) => i64::from(imm).cast_unsigned(),
                };
                let result = op.eval(width, value & mask, operand);
                let stored = value & !mask | result & mask;
                expected = expected.wrapping_mul(31).wrapping_add(stored);
            }
        }
        code.push(Insn::Exit);
        let bytes = [value.to_le_bytes(), by.to_le_bytes()].concat();
        let found = run(&code, &bytes, EngineKind::default());
        assert_eq!(found, expected, "{size:?}");
    }
}

/// Every size at near and far offsets of the packet and the frame, through every register.
#[test]
fn forms_of_addresses() {
    let bytes: Vec<u8> = (0..=255u8).cycle().skip(77).take(700).collect();
    for base in [
        Reg::R1,
        Reg::R2,
        Reg::R4,
        Reg::R5,
        Reg::R6,
        Reg::R7,
        Reg::R8,
        Reg::R9,
    ] {
        let mut code = packet(700);
        if base != Reg::R9 {
            code.push(alu(AluOp::Mov, Width::W64, base, Operand::Reg(Reg::R9)));
        }
        for off in [0, 1, 3, 127, 128, 129, 600] {
            for &size in Size::ALL {
                let dst = Reg::R3;
                code.push(Insn::Load {
                    size,
                    dst,
                    base,
                    off,
                });
                code.extend(fold_in(dst));
                let src = Operand::Reg(Reg::R0);
                code.push(Insn::Store {
                    size,
                    base,
                    off,
                    src,
                });
                let at = -8 - 8 * (off % 60);
                code.push(Insn::Store {
                    size,
                    base: Reg::FP,
                    off: at,
                    src,
                });
                let src = Operand::Imm(-77 - i32::from(off));
                code.push(Insn::Store {
                    size,
                    base,
                    off: off + 8,
                    src,
                });
                code.push(Insn::Store {
                    size,
                    base: Reg::FP,
                    off: at,
                    src,
                });
                code.push(Insn::Load {
                    size,
                    dst,
                    base: Reg::FP,
                    off: at,
                });
                code.extend(fold_in(dst));
            }
            for &from in SignedSize::ALL {
                let dst = Reg::R3;
                code.push(Insn::LoadSx {
                    from,
                    dst,
                    base,
                    off,
                });
                code.extend(fold_in(dst));
            }
        }
        code.push(Insn::Exit);
        let [found, expected] =
            [EngineKind::default(), EngineKind::Checked].map(|engine| run(&code, &bytes, engine));
        assert_eq!(found, expected, "{base:?}");
    }
}

/// The result of a loop of this many rounds with a budget: the count, or that the budget is
/// used up.
fn budgeted(body: &[Insn], rounds: i32, budget: u64, engine: EngineKind) -> Result<u64, String> {
    let mut code = packet(8);
    code.push(number(Reg::R8, 0));
    code.push(alu(AluOp::Mov, Width::W64, Reg::R7, Operand::Imm(0)));
    let head = code.len();
    code.extend(body);
    code.push(alu(AluOp::Add, Width::W64, Reg::R7, Operand::Imm(1)));
    let back = i16::try_from(code.len() + 1 - head).unwrap();
    code.push(Insn::JumpIf {
        op: JumpOp::Lt,
        width: Width::W64,
        dst: Reg::R7,
        src: Operand::Imm(rounds),
        off: -back,
    });
    code.push(Insn::Exit);
    let mut vm = Vm::with_world(World::default());
    vm.set_engine(engine);
    vm.set_budget(budget);
    let program = Program::new("p", ProgType::Xdp, encode(&code));
    let handle = vm
        .load_unverified_programs(&[], vec![Arc::new(program)])
        .unwrap()[0];
    let verdict = &vm.verification("p").unwrap().verdict;
    assert!(verdict.is_accepted(), "{}", verdict.message);
    let outcome = vm.run(handle, &Event::packet(vec![3; 64]));
    let outcome = outcome.map_err(|error| error.to_string())?;
    Ok(outcome.runs[0].r0.wrapping_mul(1 << 20) + outcome.runs[0].insns.unwrap())
}

/// Rounds of an unrolled loop are counted at once, and the counts are exact all the same:
/// with jumps out of the middle of any of them, and wherever the budget ends.
#[test]
fn rounds_are_counted_one_by_one() {
    let leave = |op, off| Insn::JumpIf {
        op,
        width: Width::W64,
        dst: Reg::R0,
        src: Operand::Imm(40),
        off,
    };
    let simple = [add(Reg::R0, Reg::R8)];
    let skips = [
        alu(AluOp::Add, Width::W64, Reg::R0, Operand::Imm(3)),
        Insn::JumpIf {
            op: JumpOp::Set,
            width: Width::W64,
            dst: Reg::R0,
            src: Operand::Imm(4),
            off: 2,
        },
        alu(AluOp::Xor, Width::W64, Reg::R0, Operand::Reg(Reg::R8)),
        alu(AluOp::And, Width::W64, Reg::R0, Operand::Imm(0xff)),
    ];
    // The jump leaves the loop, to the exit.
    let leaves = [
        alu(AluOp::Add, Width::W64, Reg::R0, Operand::Imm(7)),
        leave(JumpOp::Gt, 2),
    ];
    for (number, body) in [&simple[..], &skips, &leaves].into_iter().enumerate() {
        for rounds in 1..20 {
            let of = |budget, engine| budgeted(body, rounds, budget, engine);
            let expected = of(1 << 20, EngineKind::Checked);
            assert_eq!(
                of(1 << 20, EngineKind::default()),
                expected,
                "{number} {rounds}"
            );
        }
        for budget in (0..60).map(|n| 590 + 7 * n) {
            let [found, expected] = [EngineKind::default(), EngineKind::Checked]
                .map(|engine| budgeted(body, 400, budget, engine));
            assert_eq!(found, expected, "{number}, budget {budget}");
        }
    }
}
