//! The properties of each instruction.

use super::*;
use crate::util::Pc;

/// A line for each instruction: loop, live registers, and a letter for each property: prune
/// point (p), forced checkpoint (f), jump point (j), calls a callback (c).
fn marks(prog_type: ProgType, text: &str) -> Vec<String> {
    let structure = of(prog_type, text);
    let line = |pc: Pc| {
        let info = structure.info(pc);
        let live: String = (0..10)
            .filter(|reg| info.live >> reg & 1 != 0)
            .map(|reg| reg.to_string())
            .collect();
        let letters = [
            (info.prune_point, 'p'),
            (info.force_checkpoint, 'f'),
            (info.jmp_point, 'j'),
            (info.calls_callback, 'c'),
        ];
        let letters = letters.iter().filter(|(set, _)| *set).map(|(_, c)| *c);
        let marks: String = letters.collect();
        let parts = [info.scc.to_string(), live, marks];
        let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        parts.join(" ")
    };
    structure.code.iter().map(|(pc, _)| line(pc)).collect()
}

#[test]
fn a_branch() {
    let text = "r0 = 0\nif r1 == 0 goto +1\nr0 = r2\nexit";
    let expected = ["0 12", "0 012 p", "0 2", "0 0 pj"];
    assert_eq!(marks(ProgType::Xdp, text), expected);
}

#[test]
fn loops_have_numbers() {
    let text = "r6 = 0\n r7 = 0\n r7 += 1\n if r7 < 5 goto -2\n r6 += 1\n if r6 < 5 goto -5\n \
                r0 = 0\n goto -1\n";
    let expected = [
        "0", // r6
        "2 6 pj", "2 67 pj", "2 67 p", "2 6", "2 6 p", "0", "1 pj",
    ];
    assert_eq!(marks(ProgType::Xdp, text), expected);
}

#[test]
fn a_call_is_left_and_come_back_to() {
    let text = "r2 = 1\ncall pc+1\nexit\nr0 = r2\nexit";
    let expected = ["0 1345", "0 12345 p", "0 0 pj", "0 2 pj", "0 0"];
    assert_eq!(marks(ProgType::Xdp, text), expected);
}

#[test]
fn what_calls_back_is_a_checkpoint() {
    // The callback's address is loaded at 1; bpf_loop is 181, timer_set_callback 170.
    let text = "r1 = 4\nr2 = 0 ll\nr3 = 0\nr4 = 0\ncall 181\nr0 = 0\nexit\nr0 = 0\nexit";
    let mut program = program(ProgType::Xdp, text);
    program.insns[1] = RawInsn::new(0x18, 2, 4, 0, 6);
    let structure = structure(&program).unwrap();
    let info = structure.info(Pc(5));
    assert!(info.prune_point && info.force_checkpoint && info.jmp_point && info.calls_callback);
    assert_eq!((info.live, info.scc), (0b11110, 0));
    assert_eq!(structure.subprogram_at(Pc(8)), Some(1));
    // The callback is entered from the load of its address, as from a call.
    assert!(structure.info(Pc(1)).prune_point && structure.info(Pc(3)).jmp_point);
    assert!(structure.info(Pc(8)).prune_point);

    program.insns[5].imm = 170;
    let info = self::structure(&program).unwrap().info(Pc(5));
    assert!(info.prune_point && !info.force_checkpoint && !info.calls_callback);
}

#[test]
fn may_goto_is_a_checkpoint() {
    let expected = ["0", "1 0 pfj", "1 0", "0 0 pj"];
    let text = "r0 = 0\nmay_goto +1\ngoto -2\nexit";
    assert_eq!(marks(ProgType::Xdp, text), expected);
}

/// A packet load reads every register, a helper the arguments of its prototype, an unknown
/// helper all arguments.
#[test]
fn calls_read_their_arguments() {
    let live = |text: &str| of(ProgType::SocketFilter, text).info(Pc(0)).live;
    assert_eq!(live("call 7\nexit"), 0);
    assert_eq!(live("call 1\nexit"), 0b110);
    assert_eq!(live("call 9999\nexit"), 0b11_1110);
    assert_eq!(live("r0 = *(u8 *)skb[0]\nexit"), 0x7ff);
}

/// An invalid slot reads the same registers as a valid one.
#[test]
fn faults_do_not_hide_what_is_read() {
    let mut program = program(ProgType::Xdp, "r0 = 0\nr0 = 0\nexit");
    let mut live = |raw| {
        program.insns[1] = raw;
        structure(&program).unwrap().info(Pc(1)).live & 0x3ff
    };
    assert_eq!(live(RawInsn::new(0xbf, 0, 15, 0, 0)), 0);
    assert_eq!(live(RawInsn::new(0x0f, 3, 4, 0, 7)), 0b1_1001);
    assert_eq!(live(RawInsn::new(0x0f, 3, 4, 9, 7)), 0b1_1001);
    assert_eq!(live(RawInsn::new(0x0f, 13, 14, 0, 7)), 1);
    assert_eq!(live(RawInsn::new(0xd7, 3, 0, 0, 5)), 0b1001);
}

/// The effects of a callee apply to its caller, but not the reverse.
#[test]
fn effects_go_to_the_callers() {
    // 11 is l4_csum_replace, which moves packet bytes.
    let text = "call pc+2\ncall pc+3\nexit\ncall pc+3\nexit\nr0 = 0\nexit\ncall 11\nexit";
    let structure = of(ProgType::SchedCls, text);
    let changes: Vec<bool> = structure
        .subprograms
        .iter()
        .map(|sub| sub.changes_pkt_data)
        .collect();
    assert_eq!(changes, [true, true, false, true]);
}

/// After an instruction that may return early, writes by the next ones are not certain.
#[test]
fn early_exits_are_edges() {
    let text = "r6 = r1\nr0 = *(u8 *)skb[0]\nr0 = 0\nexit";
    let main = of(ProgType::SocketFilter, text);
    assert_eq!(main.graph.successors(1).collect::<Vec<_>>(), [2]);
    let code = Code::new(&slots(&format!("call pc+1\nexit\n{text}")));
    let mut subs = [
        SubprogramInfo::new(Pc(0), Pc(2)),
        SubprogramInfo::new(Pc(2), Pc(6)),
    ];
    subs[1].has_ld_abs = true;
    let graph = graph(&code, &subs);
    assert_eq!(graph.successors(3).collect::<Vec<_>>(), [4, 5]);
    let postorder = graph.postorder([0, 2]);
    assert_eq!(postorder.nodes(), [1, 0, 5, 4, 3, 2]);
    assert_eq!([postorder.of(0), postorder.of(1)], [0..2, 2..6]);
}
