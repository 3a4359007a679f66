//! Compares CO-RE with clang: an object relocated for other types must equal the object
//! that clang compiles for these types.

use crate::btf::BtfExt;
use crate::btf::clang::Scratch;
use crate::isa::RawInsn;
use crate::object::core::Relocator;

/// The types that the program below was compiled against.
const OLD: &str = "
struct inner { int first; char text[8]; };
struct task { int pid; struct { unsigned int flags; struct inner in[2]; };
  unsigned low : 3, mid : 7; long long : 0; struct task *parent; unsigned long count; unsigned short port; };
enum state { IDLE = 1, BUSY = 2 };
";

/// The types of the target.
const NEW: &str = "
struct inner { long grown; char text[8]; short more; int first; };
struct task { unsigned short port; struct inner in[3];
  union { struct { struct task *parent; unsigned int flags; }; long room[6]; };
  char before : 5; unsigned mid : 7; int pid; unsigned low : 3; unsigned long count; };
enum state { ZERO = 0, BUSY = 900, IDLE = -4 };
";

/// One function per relocation; `IN(type)` is replaced by the relocatable types.
const QUESTIONS: &str = r#"
#define ASK(name, value) __attribute__((section("ask"), used)) unsigned long name(struct task *t) { return (unsigned long)(value); }
ASK(q0, t->flags)
ASK(q1, t->parent->parent->count)
ASK(q2, t->in[1].first)
ASK(q3, t->in[1].text[5])
ASK(q4, t->port)
ASK(q5, t[3].pid)
ASK(q6, t->parent->parent)
__attribute__((section("ask"), used)) void q7(struct task *t) { t->count = 7; t->parent = t; }
"#;

/// Relocations that need clang's builtins, and the same values in plain C.
const BUILTINS: &[(&str, &str)] = &[
    ("__builtin_preserve_field_info(t->in, 1)", "sizeof(t->in)"),
    (
        "__builtin_preserve_field_info(t->in[1].text, 0)",
        "(char *)&t->in[1].text - (char *)t",
    ),
    ("__builtin_preserve_field_info(t->pid, 3)", "1"),
    ("__builtin_preserve_field_info(t->mid, 5)", "57"),
    ("__builtin_preserve_field_info(t->low, 2)", "1"),
    (
        "__builtin_preserve_type_info(*(struct task *)0, 1)",
        "sizeof(struct task)",
    ),
    ("__builtin_preserve_type_info(*(struct inner *)0, 0)", "1"),
    ("__builtin_preserve_type_info(*(struct inner *)0, 2)", "1"),
    ("__builtin_preserve_type_info(*(struct task *)0, 2)", "0"),
    (
        "__builtin_preserve_enum_value(*(enum state *)BUSY, 1)",
        "BUSY",
    ),
    (
        "__builtin_preserve_enum_value(*(enum state *)IDLE, 1)",
        "IDLE",
    ),
    ("__builtin_preserve_enum_value(*(enum state *)IDLE, 0)", "1"),
];

#[test]
fn a_relocated_object_is_what_clang_makes_of_the_new_types() {
    let Some(dir) = Scratch::new() else {
        return;
    };
    let used = "struct task *task_used; enum state state_used;\n";
    let relocatable = "#pragma clang attribute push (__attribute__((preserve_access_index)), apply_to = record)\n";
    let program = |types: &str, pick: fn(&(&'static str, &'static str)) -> &'static str| {
        let builtins = BUILTINS
            .iter()
            .enumerate()
            .map(|(i, pair)| format!("ASK(b{i}, {})\n", pick(pair)));
        format!("{types}{used}{QUESTIONS}{}", builtins.collect::<String>())
    };
    let old = format!("{relocatable}{OLD}\n#pragma clang attribute pop\n");
    let object = dir.compile("old", &program(&old, |pair| pair.0)).unwrap();
    let wanted = dir.compile("new", &program(NEW, |pair| pair.1)).unwrap();

    let local = dir.btf_of(&object);
    let ext = BtfExt::parse(&dir.section(&object, ".BTF.ext"), &local).unwrap();
    let (mut insns, _) = RawInsn::slots(&dir.section(&object, "ask"));
    let targets = [dir.btf_of(&wanted)];
    let mut relocator = Relocator::new(&local, &targets);
    let records = ext.relocations_of(&local, "ask").unwrap();
    assert!(records.records.len() > 20, "{}", records.records.len());
    for record in &records.records {
        let at = record.insn_off as usize / RawInsn::SIZE;
        let done = relocator.relocate(&mut insns, at, record).unwrap();
        assert!(done.value().is_some(), "{done:?}");
    }

    // Same functions; code that computes a value differently is compared by its result.
    let (wanted, _) = RawInsn::slots(&dir.section(&wanted, "ask"));
    assert_eq!(results(&insns), results(&wanted));
}

/// Each function's instructions, with an immediate load in its shortest form, so that `r0 =
/// 5 ll` equals `r0 = 5`.
fn results(insns: &[RawInsn]) -> Vec<Vec<RawInsn>> {
    let mut functions = vec![Vec::new()];
    let mut slots = insns.iter();
    while let Some(insn) = slots.next() {
        let mut insn = *insn;
        if insn.opcode == 0x18 {
            slots.next();
            insn = RawInsn::new(0xb7, insn.dst(), 0, 0, insn.imm);
        }
        // r0 = imm in 32 bits, for non-negative numbers.
        if insn.opcode == 0xb4 {
            insn.opcode = 0xb7;
        }
        functions.last_mut().unwrap().push(insn);
        if insn.opcode == 0x95 {
            functions.push(Vec::new());
        }
    }
    functions
}
