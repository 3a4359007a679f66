//! Calls inside a section: a lock, RCU's read section, disabled preemption or interrupts.

use std::sync::Arc;

use bpflab::btf::{Btf, Builder, Encoding, Kind, Linkage, Member};
use bpflab::program::MapDef;
use bpflab::spec::{MapType, ProgFlags, ProgType};
use bpflab::util::TypeId;

use super::Case;
use super::text::{Types, kfunc_call, map_address};

/// The offsets of the lock and the timer in a value.
const LOCK: u32 = 8;
const TIMER: u32 = 16;

fn types() -> (Types, TypeId, TypeId) {
    let mut builder = Builder::new();
    let number = builder.int("unsigned int", 4, Encoding::Unsigned);
    let long = builder.int("unsigned long", 8, Encoding::Unsigned);
    let member = |name, ty, bytes: u32| Member {
        name,
        ty,
        bit_offset: bytes * 8,
        bitfield: None,
    };
    let lock = builder.structure("bpf_spin_lock", 4, &[member("val", number, 0)]);
    let words = [member("one", long, 0), member("two", long, 8)];
    let timer = builder.structure("bpf_timer", 16, &words);
    let members = [
        member("number", long, 0),
        member("lock", lock, LOCK),
        member("timer", timer, TIMER),
    ];
    let value = builder.structure("value", 32, &members);
    let pair = builder.structure("word", 8, &[member("n", long, 0)]);
    let pointer = builder.ptr(pair);
    let functions: [(_, _, &[TypeId]); 6] = [
        ("callback", Linkage::Static, &[]),
        ("plain", Linkage::Static, &[number]),
        ("inner", Linkage::Static, &[]),
        ("global", Linkage::Global, &[number]),
        ("sleeping", Linkage::Global, &[number]),
        ("taking", Linkage::Global, &[pointer]),
    ];
    (Types::new(builder, &functions), number, value)
}

fn maps(number: TypeId, value: TypeId) -> Arc<[MapDef]> {
    let typed = MapDef::new("first", MapType::Array, 4, 32, 4)
        .with_key_type(number)
        .with_value_type(value);
    let plain = MapDef::new("plain", MapType::Hash, 4, 8, 4);
    let ring = MapDef::new("ring", MapType::Ringbuf, 0, 0, 4096);
    let programs = MapDef::new("programs", MapType::ProgArray, 4, 4, 4);
    Arc::new([typed, plain, ring, programs])
}

/// The begin and end of a section.
struct Section {
    name: &'static str,
    begin: String,
    end: String,
}

fn sections(kernel: Option<&Btf>) -> Vec<Section> {
    let argument = format!("r1 = r6\nr1 += {LOCK}\n");
    let mut sections = vec![
        Section {
            name: "nothing",
            begin: String::new(),
            end: String::new(),
        },
        Section {
            name: "lock",
            begin: format!("{argument}call 93\n"),
            end: format!("{argument}call 94\n"),
        },
    ];
    let flags = "r1 = r10\nr1 += -24\n";
    for (name, begin, end, argument) in [
        ("rcu", "bpf_rcu_read_lock", "bpf_rcu_read_unlock", ""),
        ("preempt", "bpf_preempt_disable", "bpf_preempt_enable", ""),
        ("irq", "bpf_local_irq_save", "bpf_local_irq_restore", flags),
    ] {
        let call = |name| {
            let id = kernel?.find(name, Kind::Func)?.id();
            Some(format!("{argument}{}", kfunc_call(id)))
        };
        if let (Some(begin), Some(end)) = (call(begin), call(end)) {
            sections.push(Section { name, begin, end });
        }
    }
    sections
}

/// A call: its text, and the functions that it needs.
fn calls(kernel: Option<&Btf>) -> Vec<(&'static str, String, &'static str)> {
    let first = map_address(1, 0);
    let plain = map_address(1, 1);
    let ring = map_address(1, 2);
    let argument = |off: u32| format!("r1 = r6\nr1 += {off}\n");
    let other = format!("r1 = r7\nr1 += {LOCK}\n");
    let key = "r2 = r10\nr2 += -8\n";
    let function = "plain:\nr0 = 0\nexit\n";
    let mut calls = vec![
        ("nothing", String::new(), ""),
        ("ktime_get_ns", "call 5\n".into(), ""),
        ("get_prandom_u32", "call 7\n".into(), ""),
        ("map_lookup_elem", format!("{plain}{key}call 1\n"), ""),
        (
            "map_update_elem",
            format!("{plain}{key}r3 = r10\nr3 += -16\nr4 = 0\ncall 2\n"),
            "",
        ),
        ("map_delete_elem", format!("{plain}{key}call 3\n"), ""),
        (
            "trace_printk",
            "r1 = r10\nr1 += -16\nr2 = 8\ncall 6\n".into(),
            "",
        ),
        (
            "spin_lock again",
            format!("{}call 93\n", argument(LOCK)),
            "",
        ),
        ("spin_lock of another", format!("{other}call 93\n"), ""),
        ("spin_unlock of another", format!("{other}call 94\n"), ""),
        (
            "spin_unlock early",
            format!("{}call 94\n", argument(LOCK)),
            "",
        ),
        (
            "ringbuf_reserve",
            format!(
                "{ring}r2 = 8\nr3 = 0\ncall 131\nif r0 == 0 goto +3\nr1 = r0\nr2 = 0\ncall 132\n"
            ),
            "",
        ),
        (
            "ringbuf_output",
            format!("{ring}r2 = r10\nr2 += -16\nr3 = 8\nr4 = 0\ncall 130\n"),
            "",
        ),
        (
            "timer_init",
            format!("{}{}r3 = 0\ncall 169\n", argument(TIMER), map_address(2, 0)),
            "",
        ),
        (
            "timer_start",
            format!("{}r2 = 0\nr3 = 0\ncall 171\n", argument(TIMER)),
            "",
        ),
        ("timer_cancel", format!("{}call 172\n", argument(TIMER)), ""),
        (
            "timer_set_callback",
            format!("{}r2 = callback ll\ncall 170\n", argument(TIMER)),
            "callback:\nr0 = 0\nexit\n",
        ),
        (
            "loop",
            "r1 = 2\nr2 = callback ll\nr3 = 0\nr4 = 0\ncall 181\n".into(),
            "callback:\nr0 = 0\nexit\n",
        ),
        (
            "for_each_map_elem",
            format!("{first}r2 = callback ll\nr3 = 0\nr4 = 0\ncall 164\n"),
            "callback:\nr0 = 0\nexit\n",
        ),
        (
            "tail_call",
            format!("r1 = r9\n{}r3 = 0\ncall 12\n", map_address(2, 3)),
            "",
        ),
        (
            "copy_from_user",
            "r1 = r10\nr1 += -16\nr2 = 8\nr3 = 0\ncall 148\n".into(),
            "",
        ),
        (
            "dynptr_from_mem",
            format!(
                "{}r2 = 8\nr3 = 0\nr4 = r10\nr4 += -40\ncall 197\n",
                argument(0)
            ),
            "",
        ),
        (
            "kptr_xchg",
            format!("{}r2 = 0\ncall 194\n", argument(0)),
            "",
        ),
        ("unknown helper", "call 4711\n".into(), ""),
        ("helper of other types", "call 44\n".into(), ""),
        (
            "load and store",
            "r0 = *(u64 *)(r6 +0)\n*(u64 *)(r6 +0) = r0\n".into(),
            "",
        ),
        ("atomic", "r0 = 1\nlock *(u64 *)(r6 +0) += r0\n".into(), ""),
        ("exit", "r0 = 0\nexit\n".into(), ""),
        (
            "exit on one way",
            "if r8 != 0 goto +2\nr0 = 0\nexit\n".into(),
            "",
        ),
        ("packet load", "r6 = r9\nr0 = *(u8 *)skb[0]\n".into(), ""),
        (
            "loop backwards",
            "r8 = 3\nr8 += -1\nif r8 != 0 goto -2\n".into(),
            "",
        ),
        ("may_goto", "may_goto +0\n".into(), ""),
        ("static function", "r1 = 0\ncall plain\n".into(), function),
        (
            "static function that calls a helper",
            "r1 = 0\ncall plain\n".into(),
            "plain:\ncall 5\nr0 = 0\nexit\n",
        ),
        (
            "static function that unlocks",
            "r1 = r6\ncall plain\nif r8 != 0 goto +2\nr0 = 0\nexit\n".into(),
            "plain:\nr1 += 8\ncall 94\nr0 = 0\nexit\n",
        ),
        (
            "static function that locks",
            "r1 = r6\ncall plain\n".into(),
            "plain:\nr1 += 8\ncall 93\nr0 = 0\nexit\n",
        ),
        (
            "static function that calls a static one",
            "call inner\n".into(),
            "inner:\nr1 = 0\ncall plain\nexit\nplain:\nr0 = 0\nexit\n",
        ),
        (
            "static function that calls a global one",
            "call inner\n".into(),
            "inner:\nr1 = 0\ncall global\nexit\nglobal:\nr0 = 0\nexit\n",
        ),
        (
            "global function",
            "r1 = 0\ncall global\n".into(),
            "global:\nr0 = 0\nexit\n",
        ),
        (
            "global function that calls a helper",
            "r1 = 0\ncall global\n".into(),
            "global:\ncall 5\nr0 = 0\nexit\n",
        ),
        (
            "global function, wrong argument",
            "r1 = r10\ncall global\n".into(),
            "global:\nr0 = 0\nexit\n",
        ),
        (
            "global function that takes memory",
            "r1 = r10\nr1 += -16\ncall taking\n".into(),
            "taking:\nr0 = 0\nexit\n",
        ),
        (
            "global function that takes the value",
            "r1 = r6\ncall taking\n".into(),
            "taking:\nr0 = 0\nexit\n",
        ),
        (
            "global function that sleeps",
            "r1 = 0\ncall sleeping\n".into(),
            "sleeping:\n*(u64 *)(r10 -8) = 0\nr1 = r10\nr1 += -8\nr2 = 8\nr3 = 0\ncall 148\nr0 = 0\nexit\n",
        ),
        (
            "global function in dead code",
            "r1 = 0\nr0 = 0\nif r0 == 0 goto +1\ncall global\n".into(),
            "global:\nr0 = 0\nexit\n",
        ),
    ];
    for name in [
        "bpf_rcu_read_lock",
        "bpf_rcu_read_unlock",
        "bpf_preempt_disable",
        "bpf_preempt_enable",
    ] {
        if let Some(id) = kernel.and_then(|btf| Some(btf.find(name, Kind::Func)?.id())) {
            calls.push((name, kfunc_call(id), ""));
        }
    }
    calls
}

pub fn cases() -> Vec<Case> {
    let (types, number, value) = types();
    let maps = maps(number, value);
    let kernel = std::fs::read("/sys/kernel/btf/vmlinux").ok();
    let kernel = kernel.and_then(|bytes| Btf::parse(&bytes).ok());
    let lookup = |index: u32, to: &str| {
        format!(
            "*(u64 *)(r10 -8) = {index}\n{}r2 = r10\nr2 += -8\ncall 1\nif r0 != 0 goto +2\n\
             r0 = 0\nexit\n{to} = r0\n",
            map_address(1, 0)
        )
    };
    let prologue = format!(
        "r9 = r1\n*(u64 *)(r10 -16) = 0\ncall 7\nr8 = r0\n{}{}",
        lookup(0, "r6"),
        lookup(1, "r7")
    );
    let mut cases = Vec::new();
    for prog_type in [ProgType::SchedCls, ProgType::Syscall] {
        for section in sections(kernel.as_ref()) {
            for (call, text, functions) in calls(kernel.as_ref()) {
                let Section { name, begin, end } = &section;
                let name = format!("{call} under {name} by {prog_type}");
                // Packet loads need the context in r6.
                let end = if call == "packet load" { "" } else { end };
                let text = format!("{prologue}{begin}{text}{end}r0 = 0\nexit\n{functions}");
                let mut program = types.program(&name, &text, &maps);
                program.prog_type = prog_type;
                if prog_type == ProgType::Syscall {
                    program.flags = ProgFlags::SLEEPABLE;
                }
                program.kernel_btf.clone_from(&kernel);
                cases.push(Case { name, program });
            }
        }
    }
    cases
}
