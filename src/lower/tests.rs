//! Lowering of instructions, with each pass and without it.

use std::sync::Arc;

use super::effect::effect;
use super::{
    Bindings, EscapingFrames, LowerError, Lowered, MemRef, Notes, Op, Order, Passes, lower,
};
use crate::btf::{Builder, Encoding, Member};
use crate::isa::{AluOp, Operand, Reg, Size, assemble_with};
use crate::program::{MapDef, Program};
use crate::spec::{MapType, ProgFlags, ProgType};
use crate::util::Pc;
use crate::verifier::{Options, verify};
use crate::vm::memory::Region;
use crate::vm::{Machine, World, maps};

/// Lowers a program of this text that has these maps.
pub(super) fn lowered(text: &str, defs: &[MapDef], passes: Passes) -> Result<Lowered, LowerError> {
    let mut program = Program::new("p", ProgType::Xdp, Vec::new());
    program.maps = defs.into();
    program.insns = assemble_with(text, &program).unwrap().slots;
    bound(program, defs, passes)
}

/// Lowers a program for a machine whose maps have these definitions instead of the
/// program's.
fn bound(program: Program, defs: &[MapDef], passes: Passes) -> Result<Lowered, LowerError> {
    let verified = verify(&Arc::new(program), &Options::default())
        .outcome
        .unwrap();
    let mut machine = Machine::new(World::default());
    let maps: Vec<_> = defs
        .iter()
        .map(|def| machine.add_map(maps::create(def, 1).unwrap()).unwrap())
        .collect();
    let functions = machine.space.insert(Region::opaque("functions")).unwrap();
    let bindings = Bindings {
        machine: &machine,
        maps: &maps,
        functions,
        escaping: &EscapingFrames::of(verified.code()),
    };
    lower(&verified, bindings, passes)
}

fn ops(text: &str, passes: Passes) -> Vec<Op> {
    let counts = MapDef::new("counts", MapType::Array, 4, 8, 4);
    let lowered = lowered(text, &[counts], passes).unwrap();
    assert_eq!(lowered.ops().len(), lowered.pcs.len());
    let effects: Vec<_> = lowered.ops().iter().map(effect).collect();
    assert_eq!(lowered.effects, effects);
    lowered.ops().to_vec()
}

/// `Lowered::with_attached` makes one of the other.
#[test]
fn calls_of_functions_and_helpers_have_one_effect() {
    let (function, helper) = (
        Op::CallFunction { function: 1 },
        Op::CallHelper { helper: 2 },
    );
    assert_eq!(effect(&function), effect(&helper));
}

/// The memory references of a program's loads.
fn mem_refs(text: &str, passes: Passes) -> Vec<MemRef> {
    loads(&ops(text, passes))
}

fn loads(ops: &[Op]) -> Vec<MemRef> {
    let mem_refs = ops.iter().filter_map(|op| match op {
        Op::Load { mem, .. } | Op::LoadSx { mem, .. } => Some(*mem),
        _ => None,
    });
    mem_refs.collect()
}

const fn checked(base: Reg, off: i16) -> MemRef {
    MemRef::Checked { base, off }
}

#[test]
fn dead_code_goes_and_decided_branches_are_jumps() {
    let text = "r1 = 1
        if r1 == 1 goto there
        r0 = 5
        exit
        there: r0 = 1
        if r1 == 2 goto never
        exit
        never: r0 = 2
        exit";
    let kept = ops(text, Passes::DEAD_CODE);
    assert_eq!(kept.len(), 5);
    assert_eq!(kept[1], Op::Jump { target: 2 });
    assert_eq!(kept[3], Op::Jump { target: 4 });
    assert_eq!(kept[4], Op::Exit);
    let whole = ops(text, Passes::empty());
    assert_eq!(whole.len(), 9);
    assert!(matches!(whole[1], Op::JumpIf { target: 4, .. }));
}

#[test]
fn positions_and_counts_survive_what_is_gone() {
    let text = "r1 = 1 ll
        if r1 == 1 goto there
        r0 = 5
        there: r0 = 1
        exit";
    let lowered = lowered(text, &[], Passes::all()).unwrap();
    let at: Vec<_> = (0..4)
        .map(|op| (lowered.pc(op), lowered.ordinal(op)))
        .collect();
    assert_eq!(at, [(Pc(0), 0), (Pc(2), 1), (Pc(4), 3), (Pc(5), 4)]);
    assert_eq!(lowered.op_at(Pc(4)), Some(2));
    assert_eq!(lowered.op_at(Pc(3)), None);
}

#[test]
fn the_functions_own_stack_is_the_frame() {
    let text = "r1 = 7
        r2 = r10
        r2 += -16
        *(u64 *)(r2 + 8) = r1
        r0 = *(u64 *)(r10 - 8)
        exit";
    assert_eq!(mem_refs(text, Passes::STACK), [MemRef::Stack { off: -8 }]);
    assert_eq!(mem_refs(text, !Passes::STACK), [checked(Reg::R10, -8)]);
    assert_eq!(
        ops(text, Passes::STACK)[3],
        Op::Store {
            size: Size::Dw,
            mem: MemRef::Stack { off: -8 },
            src: Operand::Reg(Reg::R1),
            order: Order::Relaxed,
        }
    );
    let lowered = lowered(text, &[], Passes::all()).unwrap();
    assert_eq!(lowered.functions()[0].stack, 8);
}

#[test]
fn a_callers_stack_is_found_in_the_table() {
    let text = "*(u64 *)(r10 - 8) = 5
        r1 = r10
        r1 += -8
        call read
        exit
        read: r0 = *(u64 *)(r1 + 0)
        exit";
    let table = MemRef::Table {
        base: Reg::R1,
        off: 0,
    };
    assert_eq!(mem_refs(text, Passes::all()), [table]);
    assert_eq!(mem_refs(text, !Passes::TABLE), [checked(Reg::R1, 0)]);
    let lowered = lowered(text, &[], Passes::all()).unwrap();
    let starts: Vec<_> = lowered
        .functions()
        .iter()
        .map(|f| (f.start, f.entry))
        .collect();
    assert_eq!(starts, [(Pc(0), 0), (Pc(5), 5)]);
    assert_eq!(lowered.ops()[3], Op::CallFunction { function: 1 });
    assert_eq!(lowered.function_at(Pc(5)), Some(1));
}

const PACKET: &str = "r2 = *(u32 *)(r1 + 0)
    r3 = *(u32 *)(r1 + 4)
    r4 = *(u32 *)(r1 + 12)
    r0 = r2
    r0 += 1
    if r0 > r3 goto out
    r0 = *(u8 *)(r2 + 0)
    exit
    out: r0 = 0
    exit";

#[test]
fn the_context_is_its_bytes_and_its_pointers_are_looked_up() {
    let packet = MemRef::Packet {
        base: Reg::R2,
        off: 0,
    };
    let loads = mem_refs(PACKET, Passes::all());
    assert_eq!(loads, [MemRef::Context { off: 12 }, packet]);
    assert_eq!(
        ops(PACKET, Passes::CONTEXT)[..2],
        [(Reg::R2, 0), (Reg::R3, 4)].map(|(dst, off)| Op::LoadPointer {
            size: Size::W,
            dst,
            off
        })
    );
    let without: Vec<_> = [0, 4, 12].map(|off| checked(Reg::R1, off)).into();
    assert_eq!(mem_refs(PACKET, !Passes::CONTEXT)[..3], without);
}

/// The engines check the context against this, whichever passes are used.
#[test]
fn what_a_program_asks_of_its_context_is_known() {
    for passes in [Passes::all(), Passes::empty()] {
        let lowered = lowered(PACKET, &[], passes).unwrap();
        assert_eq!(lowered.context().len, 16);
        assert_eq!(lowered.context().pointers, [(0, 4, false), (4, 4, false)]);
    }
}

const LOOKUP: &str = "*(u32 *)(r10 - 4) = 1
    r1 = map[idx:0]
    r2 = r10
    r2 += -4
    call bpf_map_lookup_elem
    if r0 == 0 goto out
    r0 = *(u64 *)(r0 + 0)
    out: exit";

#[test]
fn values_of_a_map_are_where_the_map_has_them() {
    let value = MemRef::MapValue {
        base: Reg::R0,
        off: 0,
        map: 0,
    };
    assert_eq!(mem_refs(LOOKUP, Passes::all()), [value]);
    assert_eq!(mem_refs(LOOKUP, !Passes::MAP_VALUE), [checked(Reg::R0, 0)]);
    let array = MapDef::new("counts", MapType::Array, 4, 8, 4);
    let lowered = lowered(LOOKUP, &[array], Passes::all()).unwrap();
    let map = &lowered.maps()[0];
    let slab = map.map.slab().unwrap();
    let address = slab.values().host_address().wrapping_sub(map.delta);
    assert_eq!(address >> 63, 1, "an address of the machine");
    assert_eq!(lowered.helpers().len(), 1);
}

/// The elements may have been removed when they are accessed, which the checked access
/// reports. Accesses that no deletion can precede are unchanged.
#[test]
fn what_a_program_deletes_is_accessed_checked_afterwards() {
    let delete = "r7 = r0
        r6 = *(u64 *)(r0 + 0)
        r1 = map[idx:0]
        r2 = r10
        r2 += -4
        call bpf_map_delete_elem
        r0 = *(u64 *)(r7 + 0)
        out: exit";
    let text = LOOKUP.replace("r0 = *(u64 *)(r0 + 0)\n    out: exit", delete);
    let hash = MapDef::new("counts", MapType::Hash, 4, 8, 4);
    let mem_refs = |text: &str, passes| {
        let lowered = lowered(text, std::slice::from_ref(&hash), passes).unwrap();
        loads(lowered.ops())
    };
    let there = MemRef::MapValue {
        base: Reg::R0,
        off: 0,
        map: 0,
    };
    assert_eq!(mem_refs(&text, Passes::all()), [there, checked(Reg::R7, 0)]);
    let all_checked = [checked(Reg::R0, 0), checked(Reg::R7, 0)];
    assert_eq!(mem_refs(&text, !Passes::FRESH), all_checked);
    assert_eq!(mem_refs(&text, !Passes::LOOKUP), all_checked);
    assert_eq!(mem_refs(LOOKUP, !Passes::FRESH), [there]);
}

#[test]
fn a_task_is_read_from_the_table_of_recent_objects() {
    let mut btf = Builder::new();
    let int = btf.int("int", 4, Encoding::Signed);
    let pid = Member {
        name: "pid",
        ty: int,
        bit_offset: 64,
        bitfield: None,
    };
    btf.structure("task_struct", 16, &[pid]);
    let text = "call bpf_get_current_task_btf
        r1 = *(u32 *)(r0 + 8)
        r2 = *(s32 *)(r0 + 8)
        r0 = 0
        exit";
    let mut program = Program::new("p", ProgType::Xdp, Vec::new());
    program.insns = assemble_with(text, &program).unwrap().slots;
    program.license = "GPL".into();
    program.kernel_btf = Some(btf.build().unwrap());
    let (base, off, size) = (Reg::R0, 8, Size::W);
    for (passes, expected) in [
        (Passes::KERNEL, MemRef::Kernel { base, off, size }),
        (!Passes::KERNEL, checked(base, off)),
    ] {
        let lowered = bound(program.clone(), &[], passes).unwrap();
        assert_eq!(loads(lowered.ops()), [expected; 2], "{passes:?}");
    }
}

/// As tracing programs do: look up, or update and look up again.
#[test]
fn a_value_is_fresh_after_the_last_look_up() {
    let text = "*(u32 *)(r10 - 4) = 1
        *(u64 *)(r10 - 16) = 0
        r1 = map[idx:0]
        r2 = r10
        r2 += -4
        call bpf_map_lookup_elem
        if r0 != 0 goto found
        r1 = map[idx:0]
        r2 = r10
        r2 += -4
        r3 = r10
        r3 += -16
        r4 = 1
        call bpf_map_update_elem
        r1 = map[idx:0]
        r2 = r10
        r2 += -4
        call bpf_map_lookup_elem
        if r0 == 0 goto out
        found: r1 = 1
        lock *(u64 *)(r0 + 0) += r1
        out: r0 = 0
        exit";
    let hash = MapDef::new("counts", MapType::Hash, 4, 8, 4);
    let lowered = lowered(text, &[hash], Passes::all()).unwrap();
    let mem = lowered.ops().iter().find_map(|op| match op {
        Op::Atomic { mem, .. } => Some(*mem),
        _ => None,
    });
    assert!(matches!(mem, Some(MemRef::MapValue { .. })), "{mem:?}");
}

#[test]
fn an_index_is_below_only_if_it_is_so_on_all_paths() {
    let text = "r6 = r1
        call bpf_ktime_get_ns
        r7 = 1
        if r0 > 9 goto there
        r7 = 100
        there: *(u32 *)(r10 - 4) = r7
        r1 = map[idx:0]
        r2 = r10
        r2 += -4
        call bpf_map_lookup_elem
        if r0 == 0 goto out
        r0 = *(u64 *)(r0 + 0)
        out: exit";
    let array = MapDef::new("counts", MapType::Array, 4, 8, 4);
    let found = |text: &str| {
        let lowered = lowered(text, std::slice::from_ref(&array), Passes::all()).unwrap();
        let found = lowered.ops().iter().find_map(|op| match op {
            Op::Lookup { is_there, .. } => Some(*is_there),
            _ => None,
        });
        (
            found,
            lowered.ops().contains(&Op::Exit),
            lowered.ops().len(),
        )
    };
    assert_eq!(found(text), (Some(false), true, 13));
    // Below the limit on both paths: no test, and the branch is a jump to the next
    // operation.
    assert_eq!(found(&text.replace("100", "3")), (Some(true), true, 13));
    // The same on both paths: the address is known.
    assert_eq!(found(&text.replace("100", "1")), (None, true, 13));
}

/// The verifier explores the division once, with 3, and prunes the path with 0, since the
/// scalar is imprecise: the range that it saw is no fact.
#[test]
fn what_a_path_brings_that_was_cut_off_counts() {
    let text = "call bpf_ktime_get_ns
        r6 = r0
        r7 = 0
        if r0 > 9 goto there
        r7 = 3
        there: r6 /= r7
        r0 = 0
        exit";
    let mut program = Program::new("p", ProgType::Xdp, Vec::new());
    program.insns = assemble_with(text, &program).unwrap().slots;
    program.flags = ProgFlags::TEST_STATE_FREQ;
    let verdict = verify(&Arc::new(program.clone()), &Options::default()).verdict;
    assert_eq!(
        verdict.statistics.unwrap().processed,
        9,
        "8, and a look at one again"
    );
    let divides = |program: Program| {
        let lowered = bound(program, &[], Passes::all()).unwrap();
        lowered.note(5)
    };
    assert!(!divides(program.clone()).contains(Notes::DIVISOR_NOT_ZERO));
    let text = text.replace("r7 = 0", "r7 = 5");
    program.insns = assemble_with(&text, &program).unwrap().slots;
    assert!(divides(program).contains(Notes::DIVISOR_NOT_ZERO));
}

#[test]
fn divisors_and_widths_are_noted() {
    let text = "r2 = *(u32 *)(r1 + 12)
        r2 &= 63
        r2 += 1
        r3 = *(u32 *)(r1 + 16)
        r0 = r3
        r0 /= r2
        w0 = w0
        r4 = *(u64 *)(r10 - 8)
        r0 %= r4
        exit";
    let lowered = lowered(text, &[], Passes::all()).unwrap();
    let nonzero = Notes::DIVISOR_NOT_ZERO | Notes::NO_OVERFLOW | Notes::NARROW;
    assert_eq!(lowered.note(5), nonzero);
    assert_eq!(lowered.note(6), Notes::NO_EFFECT);
    assert!(!lowered.note(8).contains(Notes::DIVISOR_NOT_ZERO));
    assert!(!lowered.note(8).contains(Notes::NARROW));
}

/// A 32-bit field that loads as a pointer has 64 bits.
#[test]
fn a_pointer_of_the_context_is_not_narrow() {
    let text = format!("r9 = *(u32 *)(r1 + 12)\n r9 /= r9\n {PACKET}");
    for passes in [Passes::all(), !Passes::CONTEXT] {
        let lowered = lowered(&text, &[], passes).unwrap();
        let moves = lowered.ops().iter().zip(0..).filter(|(op, _)| {
            matches!(
                op,
                Op::Alu {
                    op: AluOp::Mov,
                    dst: Reg::R0,
                    ..
                }
            )
        });
        for (op, at) in moves.take(1) {
            assert!(!lowered.note(at).contains(Notes::NARROW), "{op:?}");
        }
    }
}

#[test]
fn helpers_that_say_the_same_in_a_run_are_not_called() {
    let text = "call bpf_ktime_get_ns
        call bpf_get_smp_processor_id
        exit";
    let lowered = |passes| lowered(text, &[], passes).unwrap();
    let known = lowered(Passes::all());
    let ops: Vec<_> = [2, 0].map(|which| Op::Known { which }).into();
    assert_eq!(known.ops()[..2], ops);
    assert_eq!((known.known(), known.helpers().len()), (&[2, 0][..], 2));
    let called = lowered(!Passes::KNOWN);
    assert_eq!(called.ops()[1], Op::CallHelper { helper: 1 });
    assert!(called.known().is_empty());
}

#[test]
fn only_what_may_be_read_before_it_is_written_is_zeroed() {
    let zeroed = |text: &str, passes| {
        let array = MapDef::new("counts", MapType::Array, 4, 8, 4);
        let lowered = lowered(text, &[array], passes).unwrap();
        lowered.functions()[0].zeroed.to_vec()
    };
    let far = LOOKUP.replace("r10 - 4", "r10 - 36").replace("-4", "-36");
    assert_eq!(zeroed(&far, Passes::all()), []);
    assert_eq!(zeroed(LOOKUP, Passes::all()), [(8, 0)]);
    assert_eq!(zeroed(&far, !Passes::ZEROING), [(40, 0)]);
    // Written on one path only, and only half.
    let text = "r2 = *(u32 *)(r1 + 12)
        *(u64 *)(r10 - 40) = r2
        if r2 == 0 goto skip
        *(u64 *)(r10 - 8) = r2
        skip: *(u32 *)(r10 - 24) = r2
        r0 = *(u64 *)(r10 - 8)
        r0 = *(u64 *)(r10 - 24)
        r0 = *(u64 *)(r10 - 40)
        exit";
    assert_eq!(zeroed(text, Passes::all()), [(24, 16), (8, 0)]);
    // A callee may read all of the frame.
    let text = "r1 = 1
        *(u64 *)(r10 - 48) = r1
        r1 = r10
        r1 += -48
        call read
        exit
        read: r0 = *(u64 *)(r1 + 0)
        exit";
    assert_eq!(zeroed(text, Passes::all()), [(48, 0)]);
}

#[test]
fn a_map_of_another_shape_is_refused() {
    let mut program = Program::new("p", ProgType::Xdp, Vec::new());
    let def = MapDef::new("counts", MapType::Array, 4, 8, 4);
    program.maps = [def.clone()].into();
    program.insns = assemble_with(LOOKUP, &program).unwrap().slots;
    for (value_size, entries) in [(4, 4), (8, 3)] {
        let other = MapDef {
            value_size,
            max_entries: entries,
            ..def.clone()
        };
        let result = bound(program.clone(), &[other], Passes::all());
        assert_eq!(result.err(), Some(LowerError::Map(Pc(1))));
    }
}
