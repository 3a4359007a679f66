//! The oracle must find violations: each run here has one value that is wrong.

use std::sync::Arc;

use super::{Agreement, Held, HeldDynptr, HeldIterator, ObjectPlace, PacketEnds, Run, ValuePlace};
use crate::isa::{Reg, assemble_with};
use crate::program::{MapDef, Program};
use crate::spec::{MapType, ProgType};
use crate::util::{MapId, Pc};
use crate::verifier::oracle::Trace;
use crate::verifier::{Options, trace};

const CONTEXT: u64 = 0x1000;
const STACK_END: u64 = 0x2200;
const PACKET: u64 = 0x3000;
const PACKET_END: u64 = 0x3020;
const MAP: u64 = 0x4000;
const VALUES: u64 = 0x5000;
/// The distance between values.
const SPAN: u64 = 64;

/// A run with one frame.
#[derive(Clone)]
struct Made {
    pc: u32,
    regs: [u64; Reg::COUNT],
    stack: [u64; 4],
    /// The dynptr at the end of the stack.
    dynptr: Option<HeldDynptr>,
    held: Held,
}

/// A run before the instruction at `pc`, with these registers besides the frame pointer.
fn made(pc: u32, regs: &[(Reg, u64)]) -> Made {
    let mut run = Made {
        pc,
        regs: [0; Reg::COUNT],
        stack: [0; 4],
        dynptr: None,
        held: Held::default(),
    };
    run.regs[Reg::FP.index()] = STACK_END;
    for (reg, value) in regs {
        run.regs[reg.index()] = *value;
    }
    run
}

impl Run for Made {
    fn pc(&self) -> Pc {
        Pc(self.pc)
    }

    fn depth(&self) -> usize {
        1
    }

    fn start(&self, _frame: usize) -> Pc {
        Pc(0)
    }

    fn callsite(&self, _frame: usize) -> Option<Pc> {
        None
    }

    fn is_callback(&self, _frame: usize) -> bool {
        false
    }

    fn reg(&self, _frame: usize, reg: Reg) -> u64 {
        self.regs[reg.index()]
    }

    fn slot(&self, _frame: usize, slot: usize) -> Option<u64> {
        self.stack.get(slot).copied()
    }

    fn context(&self) -> u64 {
        CONTEXT
    }

    fn packet(&self) -> Option<PacketEnds> {
        Some(PacketEnds {
            meta: PACKET,
            data: PACKET,
            end: PACKET_END,
        })
    }

    fn map(&self, map: MapId) -> Option<u64> {
        (map == MapId(0)).then_some(MAP)
    }

    fn value(&self, _map: Option<MapId>, address: u64) -> Option<ValuePlace> {
        let offset = address.checked_sub(VALUES)?;
        (offset < 8 * SPAN).then_some(ValuePlace {
            offset: offset.cast_signed(),
            span: SPAN,
        })
    }

    fn function(&self, start: Pc) -> u64 {
        u64::from(start.0)
    }

    fn is_readable(&self, _address: u64, _len: u64) -> bool {
        true
    }

    fn is_freed(&self, _address: u64) -> bool {
        false
    }

    fn object(&self, _address: u64) -> Option<ObjectPlace> {
        None
    }

    fn dynptr(&self, address: u64) -> Option<HeldDynptr> {
        self.dynptr.filter(|_| address == STACK_END - 16)
    }

    fn iterator(&self, _address: u64) -> Option<HeldIterator> {
        None
    }

    fn held(&self) -> Held {
        self.held.clone()
    }
}

fn traced(text: &str) -> Trace {
    let mut program = Program::new("test", ProgType::Xdp, Vec::new());
    program.license = "GPL".into();
    program.maps = [
        MapDef::new("values", MapType::Array, 4, 40, 8),
        MapDef::new("records", MapType::Ringbuf, 0, 0, 4096),
    ]
    .into();
    program.insns = assemble_with(text, &program).unwrap().slots;
    trace(&Arc::new(program), &Options::default(), 1000).unwrap()
}

/// The violation of a run; `None` if there is none.
fn wrong(trace: &Trace, run: &Made) -> Option<String> {
    match trace.check(run) {
        Agreement::Holds => None,
        Agreement::Unknown => Some("unknown".into()),
        Agreement::Violated(violation) => Some(violation.what),
    }
}

#[test]
fn numbers_and_the_context() {
    let trace = traced("r2 = r1\nr2 += 4\nr0 = 5\nexit\n");
    let right = [(Reg::R1, CONTEXT), (Reg::R2, CONTEXT + 4), (Reg::R0, 5)];
    assert_eq!(wrong(&trace, &made(3, &right)), None);
    let mut run = made(3, &right);
    run.regs[0] = 6;
    assert_eq!(wrong(&trace, &run).unwrap(), "R0 of frame 0 is 0x6");
    let mut run = made(3, &right);
    run.regs[2] = CONTEXT + 5;
    assert_eq!(wrong(&trace, &run).unwrap(), "R2 of frame 0 is 0x1005");
    let never = trace.check(&made(9, &right));
    let Agreement::Violated(violation) = never else {
        panic!("{never:?}");
    };
    assert_eq!(violation.states, 0);
    assert!(
        violation
            .to_string()
            .contains("no explored path reaches it")
    );
}

#[test]
fn the_stack_by_byte_and_by_slot() {
    let text = "r2 = *(u32 *)(r1 +8)\n*(u64 *)(r10 -8) = r10\n*(u32 *)(r10 -16) = 7\n\
                *(u8 *)(r10 -17) = 0\nr0 = 0\nexit\n";
    let trace = traced(text);
    let right = Made {
        stack: [STACK_END, 0xdead_0000_0007, 0x00ff_ffff_ffff_ffff, 0],
        ..made(5, &[(Reg::R1, CONTEXT), (Reg::R2, PACKET)])
    };
    assert_eq!(wrong(&trace, &right), None);
    for (slot, value) in [
        (0, STACK_END - 8),
        (1, 0xdead_0000_0008),
        (2, 0x01ff_ffff_ffff_ffff),
    ] {
        let mut run = right.clone();
        run.stack[slot] = value;
        let told = format!("fp-{} of frame 0 is {value:#x}", 8 * (slot + 1));
        assert_eq!(wrong(&trace, &run), Some(told));
    }
}

#[test]
fn the_packet_and_how_far_it_was_checked() {
    let text = "r2 = *(u32 *)(r1 +0)\nr3 = *(u32 *)(r1 +4)\nr4 = r2\nr4 += 20\n\
                if r4 > r3 goto +1\nr0 = *(u8 *)(r2 +19)\nr0 = 1\nexit\n";
    let trace = traced(text);
    let at = |data: u64, end: u64| {
        let checked = [(Reg::R2, data), (Reg::R3, end), (Reg::R4, data + 20)];
        let mut run = made(5, &checked);
        run.regs[1] = CONTEXT;
        wrong(&trace, &run)
    };
    assert_eq!(at(PACKET, PACKET_END), None);
    assert_eq!(
        at(PACKET + 1, PACKET_END).unwrap(),
        "R2 of frame 0 is 0x3001"
    );
    assert_eq!(
        at(PACKET, PACKET_END - 1).unwrap(),
        "R3 of frame 0 is 0x301f"
    );
}

#[test]
fn maps_and_their_values() {
    let text = "*(u32 *)(r10 -4) = 1\nr2 = r10\nr2 += -4\nr1 = map[idx:0]\n\
                call bpf_map_lookup_elem\nif r0 == 0 goto +2\nr0 += 8\nr6 = r0\nr0 = 1\nexit\n";
    let trace = traced(text);
    let before = |map: u64| {
        let regs = [(Reg::R1, map), (Reg::R2, STACK_END - 4)];
        let mut run = made(5, &regs);
        run.stack[0] = 1 << 32;
        wrong(&trace, &run)
    };
    assert_eq!(before(MAP), None);
    assert_eq!(before(VALUES).unwrap(), "R1 of frame 0 is 0x5000");
    let found = |pc: u32, value: u64| {
        let mut run = made(pc, &[(Reg::R0, value)]);
        run.stack[0] = 1 << 32;
        wrong(&trace, &run)
    };
    assert_eq!(found(6, 0), None, "it may be null");
    assert_eq!(found(6, VALUES + SPAN), None);
    assert!(found(6, VALUES + SPAN + 1).is_some(), "not a value's start");
    assert_eq!(found(8, VALUES + 2 * SPAN + 8), None);
    assert!(found(8, VALUES + 2 * SPAN).is_some(), "not 8 bytes into it");
    assert!(found(7, 0).is_some(), "it can't be null");
}

#[test]
fn what_is_linked_stays_linked() {
    let text = "r6 = *(u32 *)(r1 +12)\nr7 = r6\nr7 += 4\nr0 = 1\nexit\n";
    let trace = traced(text);
    let run = |r6: u64, r7: u64| {
        let regs = [
            (Reg::R1, CONTEXT),
            (Reg::R6, r6),
            (Reg::R7, r7),
            (Reg::R0, 1),
        ];
        wrong(&trace, &made(4, &regs))
    };
    assert_eq!(run(10, 14), None);
    assert!(run(10, 15).unwrap().contains("the scalar linked as id"));
}

#[test]
fn a_dynptr_is_of_its_kind_and_held() {
    let text = "r1 = map[idx:1]\nr2 = 8\nr3 = 0\nr4 = r10\nr4 += -16\n\
                call bpf_ringbuf_reserve_dynptr\nr1 = r10\nr1 += -16\nr2 = 0\n\
                call bpf_ringbuf_submit_dynptr\nr0 = 0\nexit\n";
    let trace = traced(text);
    // After the first call.
    let run = |pc, kind: Option<Option<&'static str>>, count| {
        let mut run = made(pc, &[]);
        run.dynptr = kind.map(|kind| HeldDynptr { kind });
        run.held.count = count;
        wrong(&trace, &run)
    };
    assert_eq!(run(7, Some(Some("ringbuf")), 1), None);
    assert_eq!(run(7, Some(None), 0), None, "there was no room");
    for (kind, count) in [
        (Some(Some("skb")), 1),
        (None, 1),
        (Some(Some("ringbuf")), 2),
    ] {
        assert!(run(7, kind, count).is_some(), "{kind:?} {count}");
    }
    // After its release.
    assert_eq!(run(11, None, 0), None);
    assert!(run(11, None, 1).unwrap().contains("holds 1 references"));
}
