//! Tests of sites: which instructions have one, and what their entries hold.

use super::*;
use crate::isa::{Insn, Pseudo, Reg, assemble};
use crate::program::{MapDef, Program, Subprogram};
use crate::spec::{MapFlags, MapType, ProgType};
use crate::util::Pc;

/// The maps of the test programs: `map[0]` and so on in the text.
fn maps() -> [MapDef; 4] {
    let mut constant = MapDef::new(".rodata", MapType::Array, 4, 16, 1);
    constant.frozen = true;
    constant.flags = MapFlags::RDONLY_PROG;
    [
        MapDef::new("hash", MapType::Hash, 8, 24, 16),
        MapDef::new(".bss", MapType::Array, 4, 16, 1),
        constant,
        MapDef::new("ring", MapType::Ringbuf, 0, 0, 4096),
    ]
}

/// A program in which `r1 = 0xM0 ll` is the map number M, `r1 = 0xM1 ll` its value.
fn program(prog_type: ProgType, text: &str) -> Program {
    let mut insns = assemble(text).unwrap();
    let code = crate::isa::Code::new(&insns);
    for (pc, insn) in code.iter() {
        let Ok(Insn::LoadImm64 { dst, value }) = insn else {
            continue;
        };
        let index = u32::try_from(value >> 4).unwrap();
        let source = match value & 15 {
            0 => Pseudo::MapIdx { index },
            1 => Pseudo::MapIdxValue { index, off: 0 },
            _ => continue,
        };
        let slots = Insn::LoadPseudo { dst, source }.encode();
        insns[pc.index()..pc.index() + 2].copy_from_slice(&slots);
    }
    let mut program = Program::new("test", prog_type, insns);
    program.license = "GPL".to_owned();
    program.maps = maps().into();
    program
}

fn plan(text: &str) -> Plan {
    Plan::new(&program(ProgType::Tracepoint, text)).unwrap()
}

/// A site as a line: `5 After Own: Found 1`.
fn lines(plan: &Plan) -> Vec<String> {
    let line = |site: &Site| {
        let fields = site.fields.iter().map(|field| match field.length {
            Length::Fixed(bytes) => format!(" {:?} {bytes}", field.what),
            Length::Counted { most, .. } => format!(" {:?} ≤{most}", field.what),
        });
        let fields: String = fields.collect();
        let (moment, accesses) = (site.moment, site.accesses);
        format!("{} {moment:?} {accesses:?}:{fields}", site.pc)
    };
    plan.sites().iter().map(line).collect()
}

#[test]
fn a_look_up_and_what_is_done_with_the_value() {
    let plan = plan(
        "*(u64 *)(r10 - 8) = 1\n r2 = r10\n r2 += -8\n r1 = 0x00 ll\n call 1\n \
         if r0 == 0 goto out\n r1 = *(u32 *)(r0 + 4)\n *(u64 *)(r0 + 8) = r1\n \
         lock *(u64 *)(r0 + 16) += r1\n out: r0 = 0\n exit",
    );
    let expected = [
        "5 Before Own: Given(2) 8",
        "5 After Own: Found 1",
        "7 After Own: Loaded 4",
        "8 Before Own: Stored 8",
        "9 Before Own: Operand 8",
    ];
    assert_eq!(lines(&plan), expected);
}

#[test]
fn what_is_the_runs_own_is_no_site() {
    let plan = plan(
        "r2 = *(u64 *)(r1 + 8)\n *(u64 *)(r10 - 8) = r2\n r3 = *(u64 *)(r10 - 8)\n \
         r1 = 0x21 ll\n r4 = *(u32 *)(r1 + 0)\n r0 = 0\n exit",
    );
    assert_eq!(lines(&plan), [""; 0]);
}

#[test]
fn globals_are_everybodys() {
    let plan = plan("r1 = 0x11 ll\n r0 = *(u64 *)(r1 + 0)\n r0 += 1\n *(u64 *)(r1 + 8) = 7\n exit");
    assert_eq!(
        lines(&plan),
        ["2 After Own: Loaded 8", "4 Before Own: Stored 8"]
    );
}

#[test]
fn the_world_is_taken_from_the_tape() {
    let plan = plan(
        "call 5\n r6 = r0\n r1 = r10\n r1 += -16\n r2 = 16\n r3 = r6\n call 113\n \
         call 35\n r0 = 0\n exit",
    );
    let expected = [
        "0 After World: Result 8",
        "6 After World: Result 8 Filled(1) 16",
        "7 After World: Result 8",
    ];
    assert_eq!(lines(&plan), expected);
}

/// A size that is only known at run time.
#[test]
fn sizes_that_vary_end_an_entry() {
    let plan = plan(
        "r2 = *(u64 *)(r1 + 8)\n r2 &= 15\n r1 = r10\n r1 += -16\n r3 = 0\n call 113\n \
         r0 = 0\n exit",
    );
    assert_eq!(lines(&plan), ["5 After World: Result 8 Filled(1) ≤4096"]);
}

#[test]
fn a_record_is_private_until_it_is_submitted() {
    let plan = plan(
        "r1 = 0x30 ll\n r2 = 24\n r3 = 0\n call 131\n if r0 == 0 goto out\n \
         *(u64 *)(r0 + 0) = 5\n r2 = *(u64 *)(r0 + 8)\n r1 = r0\n r2 = 0\n call 132\n \
         out: r0 = 0\n exit",
    );
    let expected = [
        "4 Before Own: Argument(3) 8",
        "4 After Own: Found 1",
        "10 Before Own: Given(1) 24",
    ];
    assert_eq!(lines(&plan), expected);
    assert_eq!(plan.clears.len(), 1);
}

/// Kinds are tracked through spilled registers, functions and their callers' stacks.
#[test]
fn pointers_are_known_wherever_they_go() {
    let text = "r6 = 0x11 ll\n *(u64 *)(r10 - 8) = r6\n r1 = r10\n call f\n \
                r1 = *(u64 *)(r10 - 16)\n r0 = *(u64 *)(r1 + 0)\n exit\n \
                f: r2 = *(u64 *)(r1 - 8)\n r3 = *(u64 *)(r2 + 8)\n *(u64 *)(r1 - 16) = r2\n \
                r0 = 0\n exit";
    let mut program = program(ProgType::Kprobe, text);
    program.subprograms.push(Subprogram {
        name: "f".to_owned(),
        start: Pc(8),
        type_id: None,
        global: false,
    });
    let plan = Plan::new(&program).unwrap();
    assert_eq!(
        lines(&plan),
        ["6 After Own: Loaded 8", "9 After Own: Loaded 8"]
    );
    assert_eq!(plan.functions[1].called, plan::Called::Directly);
    assert_eq!(
        plan.functions[1].reads.iter().collect::<Vec<_>>(),
        [Reg::R1]
    );
    assert_eq!(plan.functions[0].stack, 16);
}

#[test]
fn callbacks_get_what_the_helper_hands_them() {
    let text = "r6 = 0x11 ll\n *(u64 *)(r10 - 8) = r6\n r1 = 4\n r2 = f ll\n r3 = r10\n r4 = 0\n \
                call 181\n r0 = 0\n exit\n \
                f: r3 = *(u64 *)(r2 - 8)\n *(u64 *)(r3 + 0) = r1\n r0 = 0\n exit";
    let plan = Plan::new(&program(ProgType::Kprobe, text)).unwrap();
    assert_eq!(lines(&plan), ["12 Before Own: Stored 8"]);
    assert_eq!(plan.functions[1].called, plan::Called::OnItsOwn);
}

#[test]
fn what_cannot_be_recorded_says_where_and_why() {
    let error = |prog_type, text: &str| {
        let error = Plan::new(&program(prog_type, text)).unwrap_err();
        error.to_string()
    };
    let iterates = "r1 = 0x00 ll\n r2 = f ll\n r3 = 0\n r4 = 0\n call 164\n r0 = 0\n exit\n \
                f: r0 = 0\n exit";
    assert!(error(ProgType::Kprobe, iterates).contains("the order of a hash table's entries"));
    assert!(error(ProgType::SkSkb, "r0 = 0\n exit").contains("programs of type sk_skb"));
    assert!(error(ProgType::Kprobe, "goto +5\n exit").contains("instruction 0"));
}

const JUMP: &str = "r2 = 0x00 ll\n r3 = 5\n call 12\n";

/// The output of a tail call is its index; on its own it can't be recorded.
#[test]
fn a_tail_call_is_a_site_and_leads_away() {
    let plan = plan(&format!("{JUMP} r0 = 0\n exit"));
    assert_eq!(lines(&plan), ["3 Before Own: Argument(3) 8"]);
    assert_eq!(plan.jumps().len(), 1);
    assert_eq!((plan.jumps()[0].pc, plan.jumps()[0].map.0), (Pc(3), 0));
    let added = RecordMaps::add(&plan.program().maps, 4096);
    let options = RecordOptions {
        number: 0,
        context_len: 0,
        all: true,
    };
    let error = plan.record(&added, &options).unwrap_err();
    assert_eq!(
        error.to_string(),
        "test: instruction 3: a tail call doesn't come back: the firing would end in another program"
    );
    let relay = Relay::default();
    assert!(plan.record_opening(&added, &options, &relay).is_ok());
    assert!(plan.record_following(&added, &options, &relay).is_ok());
}

/// A function that makes a tail call may return the target program's result instead of its own:
/// here a size.
#[test]
fn a_function_returns_what_a_tail_call_returns() {
    let text = |jump: &str| {
        format!(
            "call f\n r2 = r0\n r1 = r10\n r1 += -16\n r3 = 0\n call 113\n r0 = 0\n exit\n \
             f: {jump} r0 = 16\n exit"
        )
    };
    assert_eq!(
        lines(&plan(&text(""))),
        ["5 After World: Result 8 Filled(1) 16"]
    );
    assert_eq!(
        lines(&plan(&text(JUMP))),
        [
            "5 After World: Result 8 Filled(1) ≤4096",
            "11 Before Own: Argument(3) 8"
        ]
    );
}

/// A callback of a helper must not continue in another program.
#[test]
fn callbacks_make_no_tail_calls() {
    let text = format!(
        "r1 = 4\n r2 = f ll\n r3 = r10\n r4 = 0\n call 181\n r0 = 0\n exit\n \
         f: call g\n r0 = 0\n exit\n g: {JUMP} r0 = 0\n exit"
    );
    let error = Plan::new(&program(ProgType::Kprobe, &text)).unwrap_err();
    assert!(
        error.to_string().contains("in a callback of a helper"),
        "{error}"
    );
}

/// A call of a helper that no kernel has is unreachable.
#[test]
fn poisoned_calls_are_no_obstacle() {
    let plan = plan("r0 = 0\n if r0 == 0 goto out\n call 195896080\n out: r0 = 0\n exit");
    assert_eq!(lines(&plan), [""; 0]);
}

/// A frame that is full, and one that has just enough room for the buffer's address.
#[test]
fn a_full_stack_has_no_room() {
    let recorded = |off: i16| {
        let text = format!("*(u64 *)(r10 - {off}) = 0\n r0 = 0\n exit");
        let plan = Plan::new(&program(ProgType::Kprobe, &text)).unwrap();
        let added = RecordMaps::add(&plan.program().maps, 4096);
        let options = RecordOptions {
            number: 0,
            context_len: 0,
            all: true,
        };
        plan.record(&added, &options)
    };
    assert!(recorded(504).is_ok());
    let error = recorded(512).unwrap_err();
    assert!(error.to_string().contains("no room"), "{error}");
}

/// The plan of a program by a changed schema of its logs, as lines; or the error.
fn fitted(
    text: &str,
    change: impl FnOnce(&mut Vec<LoggedSite>),
) -> Result<Vec<String>, SchemaError> {
    let own = plan(text);
    let sites = own.schema();
    let mut sites = sites
        .iter()
        .map(|site| site.known().unwrap().clone())
        .collect();
    change(&mut sites);
    let schema: Vec<_> = sites.into_iter().map(SchemaSite::Known).collect();
    Ok(lines(&Plan::with_schema(own.program(), &schema)?))
}

/// The message of the error, and whether the schema itself is wrong.
fn refused(text: &str, change: impl FnOnce(&mut Vec<LoggedSite>)) -> (String, bool) {
    let error = fitted(text, change).unwrap_err();
    (error.to_string(), error.is_misfit())
}

/// Another version may know more or less about the size of memory.
#[test]
fn a_schema_decides_how_a_length_is_logged() {
    let text = "r1 = r10\n r1 += -16\n r2 = 16\n r3 = 0\n call 113\n r0 = 0\n exit";
    assert_eq!(
        fitted(text, |_| ()).unwrap(),
        ["4 After World: Result 8 Filled(1) 16"]
    );
    let length = |length| move |sites: &mut Vec<LoggedSite>| sites[0].fields[1].length = length;
    let counted = |count| Length::Counted { count, most: 512 };
    assert_eq!(
        fitted(text, length(counted(Reg::R2))).unwrap(),
        ["4 After World: Result 8 Filled(1) ≤512"]
    );
    let (why, is_misfit) = refused(text, length(counted(Reg::R3)));
    assert!(is_misfit && why.contains("length"), "{why}");
    let (why, is_misfit) = refused(text, length(Length::Fixed(8)));
    assert!(is_misfit && why.contains("length"), "{why}");
    let (why, is_misfit) = refused(text, |sites| {
        length(counted(Reg::R2))(sites);
        sites[0].fields.reverse();
    });
    assert!(!is_misfit && why.contains("not the last one"), "{why}");
    let unknown = format!(
        "call f\n r2 = r0\n r1 = r10\n r1 += -16\n r3 = 0\n call 113\n r0 = 0\n \
                           exit\n f: {JUMP} r0 = 16\n exit"
    );
    assert_eq!(
        fitted(&unknown, length(Length::Fixed(16))).unwrap()[0],
        "5 After World: Result 8 Filled(1) 16"
    );
}

/// The address of a value is another one in a replay, so it can't be compared.
#[test]
fn pointers_are_not_logged_whatever_a_schema_says() {
    let text = "r1 = 0x11 ll\n *(u64 *)(r1 + 0) = r10\n r0 = 0\n exit";
    assert_eq!(fitted(text, |_| ()).unwrap(), ["2 Before Own:"]);
    let (why, is_misfit) = refused(text, |sites| {
        sites[0].fields.push(LoggedField {
            flow: Flow::Output,
            what: What::Stored,
            location: LoggedLocation::Register(Reg::R10),
            length: Length::Fixed(8),
        });
    });
    assert!(!is_misfit && why.contains("may hold a pointer"), "{why}");
}

#[test]
fn sites_lie_on_instructions_that_are_reached() {
    let text = "call 5\n r0 = 0\n if r0 == 0 goto out\n call 195896080\n out: r0 = 0\n exit";
    let (why, is_misfit) = refused(text, Vec::clear);
    assert!(
        !is_misfit && why.contains("instruction 0: a replay needs"),
        "{why}"
    );
    let (why, is_misfit) = refused(text, |sites| {
        let more = sites[0].clone();
        sites.push(LoggedSite { pc: 77, ..more });
    });
    assert!(is_misfit && why.contains("site 1, instruction 77"), "{why}");
    // The function never returns.
    let dead = "call 5\n call f\n call 5\n r0 = 0\n exit\n f: r1 = 0\n goto -2";
    let (why, is_misfit) = refused(dead, |sites| {
        let more = sites[0].clone();
        sites.push(LoggedSite { pc: 2, ..more });
    });
    assert!(
        !is_misfit && why.contains("instruction 2 is never reached"),
        "{why}"
    );
}

/// The recorded form, as text. The code of sites and of the program's entry and exit is in it,
/// too.
fn recorded(text: &str) -> Vec<String> {
    let plan = plan(text);
    let added = RecordMaps::add(&plan.program().maps, 4096);
    let options = RecordOptions {
        number: 0,
        context_len: 0,
        all: true,
    };
    let program = plan.record(&added, &options).unwrap();
    let code = crate::isa::Code::new(&program.insns);
    code.iter()
        .map(|(_, insn)| insn.unwrap().to_string())
        .collect()
}

/// A second null test of a ring-buffer record is not decided in Linux 6.1: its verifier follows
/// a path on which the record is null and not released.
#[test]
fn a_record_is_tested_once() {
    let reserve = "r1 = 0x30 ll\n r2 = 24\n r3 = 0\n call 131\n";
    let zeros = |reg: &str| [0, 8, 16].map(|off| format!("*(u64 *)({reg} +{off}) = 0"));
    let discard = "r2 = 0\n call 133\n out: r0 = 0\n exit";
    let equal = recorded(&format!(
        "{reserve} r6 = r0\n r7 = 1\n if r6 == 0 goto out\n r1 = r6\n {discard}"
    ));
    let tests = |lines: &[String]| {
        let of = |line: &&String| line.starts_with("if r0 ") || line.starts_with("if r6 ");
        let after = lines.iter().skip_while(|line| *line != "call unknown#131");
        let own = after.take_while(|line| *line != "call unknown#133");
        own.filter(of).count()
    };
    assert_eq!(tests(&equal), 1, "{equal:#?}");
    let at = equal
        .iter()
        .position(|line| line.starts_with("if r6 == 0x0 goto"));
    let at = at.unwrap();
    assert_eq!(equal[at + 1..at + 4], zeros("r6"), "{equal:#?}");
    let unequal = recorded(&format!(
        "{reserve} r6 = r0\n if r0 != 0 goto found\n r0 = 0\n exit\n found: r1 = r6\n {discard}"
    ));
    assert_eq!(tests(&unequal), 1, "{unequal:#?}");
    let at = unequal
        .iter()
        .position(|line| line == "if r0 == 0x0 goto pc+4");
    let at = at.unwrap();
    assert_eq!(unequal[at + 1..at + 4], zeros("r0"), "{unequal:#?}");
    assert!(unequal[at + 4].starts_with("goto pc+"), "{unequal:#?}");
    // Two paths lead to the test: the record is zeroed at once.
    let shared = recorded(&format!(
        "r6 = r1\n {reserve} test: if r0 == 0 goto out\n r1 = r0\n {discard}"
    ));
    assert_eq!(tests(&shared), 1, "{shared:#?}");
    let looped = recorded(&format!(
        "r6 = 2\n {reserve} again: r6 += -1\n if r6 != 0 goto again\n if r0 == 0 goto out\n \
         r1 = r0\n {discard}"
    ));
    assert_eq!(tests(&looped), 3, "{looped:#?}");
}
