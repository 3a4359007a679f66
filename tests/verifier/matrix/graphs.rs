//! Objects that a program allocates, lists and trees of them, their locks, exceptions: what the
//! program holds, and what it does then.

use std::sync::Arc;

use bpflab::btf::{Btf, Builder, Encoding, Kind, Linkage, Member};
use bpflab::program::MapDef;
use bpflab::spec::{MapType, ProgType};
use bpflab::util::TypeId;

use super::Case;
use super::text::{Types, function_address, kfunc_call, map_address};

/// The offsets in a map's value: a lock, a list, a tree, a list of other objects.
const LIST: u32 = 8;
const TREE: u32 = 24;
const OTHER_LIST: u32 = 40;
/// The offsets of the nodes in an object with a reference count, and in others.
const LIST_NODE: u32 = 8;
const TREE_NODE: u32 = 32;
const COUNT: u32 = 64;

/// The types, and the ids of the key, the values of both maps, and both objects.
struct Graph {
    types: Types,
    key: TypeId,
    values: [TypeId; 2],
    counted: TypeId,
    other: TypeId,
    plain: TypeId,
}

fn graph() -> Graph {
    let mut builder = Builder::new();
    let number = builder.int("unsigned int", 4, Encoding::Unsigned);
    let long = builder.int("unsigned long", 8, Encoding::Unsigned);
    let member = |name, ty, bytes: u32| Member {
        name,
        ty,
        bit_offset: bytes * 8,
        bitfield: None,
    };
    let mut opaque = |name, words: u32| {
        let names = ["a", "b", "c", "d"];
        let members: Vec<_> = (0..words)
            .map(|word| member(names[word as usize], long, word * 8))
            .collect();
        builder.structure(name, words * 8, &members)
    };
    let head = opaque("bpf_list_head", 2);
    let node = opaque("bpf_list_node", 3);
    let root = opaque("bpf_rb_root", 2);
    let branch = opaque("bpf_rb_node", 4);
    let plain = opaque("plain", 2);
    let lock = builder.structure("bpf_spin_lock", 4, &[member("val", number, 0)]);
    let resilient = builder.structure("bpf_res_spin_lock", 4, &[member("val", number, 0)]);
    let count = builder.structure("bpf_refcount", 4, &[member("val", number, 0)]);
    let members = [
        member("key", long, 0),
        member("l", node, LIST_NODE),
        member("r", branch, TREE_NODE),
        member("count", count, COUNT),
    ];
    let counted = builder.structure("counted", 72, &members);
    let other = builder.structure("other", 32, &[member("key", long, 0), member("l", node, 8)]);
    let value = |builder: &mut Builder, name, lock| {
        let members = [
            member("lock", lock, 0),
            member("list", head, LIST),
            member("tree", root, TREE),
            member("others", head, OTHER_LIST),
        ];
        let value = builder.structure(name, 56, &members);
        builder.decl_tag("contains:counted:l", value, Some(1), false);
        builder.decl_tag("contains:counted:r", value, Some(2), false);
        builder.decl_tag("contains:other:l", value, Some(3), false);
        value
    };
    let values = [
        value(&mut builder, "value", lock),
        value(&mut builder, "resilient", resilient),
    ];
    let functions: [(_, _, &[TypeId]); 4] = [
        ("less", Linkage::Static, &[]),
        ("callback", Linkage::Static, &[]),
        ("plain_function", Linkage::Static, &[number]),
        ("global", Linkage::Global, &[number]),
    ];
    Graph {
        types: Types::new(builder, &functions),
        key: number,
        values,
        counted,
        other,
        plain,
    }
}

/// The text of calls of kfuncs.
struct Calls<'a>(&'a Btf);

impl Calls<'_> {
    /// A call with arguments: registers, or registers plus an offset.
    fn call(&self, name: &str, arguments: &[(&str, u32)]) -> String {
        let id = self.0.find(name, Kind::Func).expect(name).id();
        let mut text = String::new();
        for (number, (reg, off)) in (1..).zip(arguments) {
            text += &format!("r{number} = {reg}\n");
            if *off != 0 {
                text += &format!("r{number} += {off}\n");
            }
        }
        text + &kfunc_call(id)
    }

    fn allocate(&self, id: TypeId) -> String {
        let id = id.0.to_string();
        self.call("bpf_obj_new_impl", &[(id.as_str(), 0), ("0", 0)])
    }

    fn push(&self, list: (&str, u32), node: (&str, u32)) -> String {
        self.call(
            "bpf_list_push_front_impl",
            &[list, node, ("0", 0), ("0", 0)],
        )
    }

    fn add(&self, tree: (&str, u32), node: (&str, u32)) -> String {
        let address = function_address(3, "less");
        let set = |text: String| text.replace("r3 = 0\n", &address);
        set(self.call(
            "bpf_rbtree_add_impl",
            &[tree, node, ("0", 0), ("0", 0), ("0", 0)],
        ))
    }
}

/// The name of a part of a program, and its text.
type Part = (&'static str, String);

/// What the program does first. `r6` and `r7` are values of the first map, `r8` is a new object
/// with a reference count, `r9` is any number.
fn held(calls: &Calls<'_>, graph: &Graph) -> Vec<Part> {
    let lock = "r1 = r6\ncall 93\n".to_owned();
    let look = |name, arguments: &[(&str, u32)]| {
        format!(
            "{}if r0 == 0 goto end\nr8 = r0\n",
            calls.call(name, arguments)
        )
    };
    let drop = calls.call("bpf_obj_drop_impl", &[("r8", 0), ("0", 0)]);
    let push = calls.push(("r6", LIST), ("r8", LIST_NODE));
    let add = calls.add(("r6", TREE), ("r8", TREE_NODE));
    let with = |text: &str| format!("{lock}{text}");
    let plain = graph.plain.0.to_string();
    let percpu = calls.call("bpf_percpu_obj_new_impl", &[(plain.as_str(), 0), ("0", 0)]);
    vec![
        ("an object", String::new()),
        ("an object and a lock", lock.clone()),
        ("an object and another lock", "r1 = r7\ncall 93\n".into()),
        ("a lock", format!("{drop}{lock}")),
        ("a borrowed object of a list", with(&push)),
        ("a borrowed object of a tree", with(&add)),
        (
            "a borrowed object after unlocking",
            format!("{}r1 = r6\ncall 94\n", with(&add)),
        ),
        (
            "the first of a tree",
            format!("{drop}{lock}{}", look("bpf_rbtree_first", &[("r6", TREE)])),
        ),
        (
            "the first of a list",
            format!("{drop}{lock}{}", look("bpf_list_front", &[("r6", LIST)])),
        ),
        (
            "a removed object",
            format!(
                "{drop}{lock}{}",
                look("bpf_list_pop_front", &[("r6", LIST)])
            ),
        ),
        (
            "two references",
            format!(
                "{}r7 = r0\n{lock}",
                calls.call("bpf_refcount_acquire_impl", &[("r8", 0), ("0", 0)])
            ),
        ),
        (
            "an object of another type",
            format!(
                "{drop}{}if r0 == 0 goto out\nr8 = r0\n{lock}",
                calls.allocate(graph.other)
            ),
        ),
        (
            "a per-CPU object",
            format!("{drop}{percpu}if r0 == 0 goto out\nr8 = r0\n"),
        ),
    ]
}

/// What the program does then.
fn done(calls: &Calls<'_>) -> Vec<Part> {
    let one = |name| calls.call(name, &[("r8", 0), ("0", 0)]);
    let tree = |name, node| calls.call(name, &[("r6", TREE), ("r8", node)]);
    let root = |name, off| calls.call(name, &[("r6", off)]);
    vec![
        ("nothing", String::new()),
        ("drop", one("bpf_obj_drop_impl")),
        ("drop twice", one("bpf_obj_drop_impl").repeat(2)),
        ("drop as per-CPU object", one("bpf_percpu_obj_drop_impl")),
        ("another reference", one("bpf_refcount_acquire_impl")),
        ("load", "r0 = *(u64 *)(r8 +0)\n".into()),
        ("store", "*(u64 *)(r8 +0) = 7\n".into()),
        ("load of a node", "r0 = *(u64 *)(r8 +8)\n".into()),
        ("load past the end", "r0 = *(u64 *)(r8 +72)\n".into()),
        ("load before it", "r0 = *(u64 *)(r8 -8)\n".into()),
        ("push", calls.push(("r6", LIST), ("r8", LIST_NODE))),
        ("push the result", calls.push(("r6", LIST), ("r8", 0))),
        (
            "push at a wrong offset",
            calls.push(("r6", LIST), ("r8", TREE_NODE)),
        ),
        (
            "push to a tree",
            calls.push(("r6", TREE), ("r8", LIST_NODE)),
        ),
        (
            "push to others",
            calls.push(("r6", OTHER_LIST), ("r8", LIST_NODE)),
        ),
        (
            "push to another value",
            calls.push(("r7", LIST), ("r8", LIST_NODE)),
        ),
        ("push nothing", calls.push(("r6", LIST), ("0", 0))),
        ("add", calls.add(("r6", TREE), ("r8", TREE_NODE))),
        (
            "add at a wrong offset",
            calls.add(("r6", TREE), ("r8", LIST_NODE)),
        ),
        (
            "add and load",
            calls.add(("r6", TREE), ("r8", TREE_NODE)) + "r0 = *(u64 *)(r8 +0)\n",
        ),
        (
            "add twice",
            calls.add(("r6", TREE), ("r8", TREE_NODE)).repeat(2),
        ),
        ("remove", tree("bpf_rbtree_remove", TREE_NODE)),
        ("remove the result", tree("bpf_rbtree_remove", 0)),
        ("left", tree("bpf_rbtree_left", TREE_NODE)),
        ("right of the result", tree("bpf_rbtree_right", 0)),
        ("first", root("bpf_rbtree_first", TREE)),
        ("root", root("bpf_rbtree_root", TREE)),
        ("first of a list", root("bpf_rbtree_first", LIST)),
        ("front", root("bpf_list_front", LIST)),
        (
            "back and load",
            root("bpf_list_back", LIST) + "r0 = *(u64 *)(r0 +0)\n",
        ),
        ("pop", root("bpf_list_pop_back", LIST)),
        (
            "pop and drop",
            root("bpf_list_pop_back", LIST)
                + "if r0 == 0 goto +7\nr1 = r0\nr1 += -8\nr2 = 0\nr8 = r1\n"
                + &one("bpf_obj_drop_impl"),
        ),
        (
            "a list of the object",
            calls.call("bpf_list_front", &[("r8", LIST)]),
        ),
        (
            "a list of a number",
            calls.call("bpf_list_front", &[("r9", 0)]),
        ),
        ("lock", "r1 = r6\ncall 93\n".into()),
        ("lock the object", "r1 = r8\ncall 93\n".into()),
        ("unlock", "r1 = r6\ncall 94\n".into()),
        (
            "unlock and load",
            "r1 = r6\ncall 94\nr0 = *(u64 *)(r8 +0)\n".into(),
        ),
        ("unlock another", "r1 = r7\ncall 94\n".into()),
        (
            "spill and fill",
            "*(u64 *)(r10 -16) = r8\nr8 = *(u64 *)(r10 -16)\n".into(),
        ),
        ("move", "r8 += 8\nr8 += -8\n".into()),
        (
            "move by any number",
            "r9 &= 7\nr8 += r9\nr0 = *(u64 *)(r8 +0)\n".into(),
        ),
        ("compare with null", "if r8 == 0 goto +0\n".into()),
        ("helper", "call 5\n".into()),
        ("helper with the object", "r1 = r8\nr2 = 8\ncall 6\n".into()),
        (
            "throw",
            "r1 = 0\n".to_owned() + &calls.call("bpf_throw", &[("0", 0)]),
        ),
        ("throw a number", calls.call("bpf_throw", &[("r9", 0)])),
        (
            "throw in a function",
            "r1 = 0\ncall plain_function\n".into(),
        ),
        ("throw in a global function", "r1 = 0\ncall global\n".into()),
        (
            "throw in a callback",
            format!(
                "r1 = 2\n{}r3 = 0\nr4 = 0\ncall 181\n",
                function_address(2, "callback")
            ),
        ),
        ("exit", "r0 = 0\nexit\n".into()),
        (
            "this CPU's copy",
            "r1 = r8\ncall 154\nr0 = *(u64 *)(r0 +0)\n".into(),
        ),
    ]
}

/// The functions that a text needs.
fn functions(text: &str, calls: &Calls<'_>) -> String {
    let throw = calls.call("bpf_throw", &[("0", 0)]);
    let mut all = String::new();
    for (name, body) in [
        (
            "less",
            "r0 = *(u64 *)(r1 -32)\nr2 = *(u64 *)(r2 -32)\nif r0 < r2 goto +2\nr0 = 0\nexit\nr0 = 1\nexit\n"
                .to_owned(),
        ),
        ("callback", format!("{throw}r0 = 0\nexit\n")),
        ("plain_function", format!("{throw}r0 = 0\nexit\n")),
        ("global", format!("{throw}r0 = 0\nexit\n")),
    ] {
        let loaded = format!("= {name} ll");
        let called = format!("call {name}\n");
        if text.contains(&loaded) || text.contains(&called) {
            all += &format!("{name}:\n{body}");
        }
    }
    all
}

/// Locks that may fail: what is held, and what is done.
fn resilient(calls: &Calls<'_>) -> (Vec<Part>, Vec<Part>) {
    let flags = |off: u32| format!("r2 = r10\nr2 += -{off}\n");
    let plain = |name, reg: &str| calls.call(name, &[(reg, 0)]);
    let saving = |name, reg: &str, off| flags(off) + &calls.call(name, &[(reg, 0)]);
    let lock = |reg| plain("bpf_res_spin_lock", reg) + "if r0 != 0 goto out\n";
    let save = |reg| saving("bpf_res_spin_lock_irqsave", reg, 24) + "if r0 != 0 goto out\n";
    let held = vec![
        ("nothing", String::new()),
        ("a lock", lock("r6")),
        ("a lock and interrupts", save("r6")),
        (
            "two locks",
            lock("r6") + &plain("bpf_res_spin_lock", "r7") + "if r0 != 0 goto one\n",
        ),
        (
            "interrupts",
            "r1 = r10\nr1 += -24\n".to_owned() + &calls.call("bpf_local_irq_save", &[]),
        ),
    ];
    let done = vec![
        ("nothing", String::new()),
        ("lock", plain("bpf_res_spin_lock", "r6")),
        ("lock another", plain("bpf_res_spin_lock", "r7")),
        (
            "lock elsewhere",
            "r6 += 8\n".to_owned() + &plain("bpf_res_spin_lock", "r6"),
        ),
        ("lock a number", plain("bpf_res_spin_lock", "r9")),
        (
            "lock without a test",
            plain("bpf_res_spin_lock", "r6") + &plain("bpf_res_spin_unlock", "r6"),
        ),
        ("unlock", plain("bpf_res_spin_unlock", "r6")),
        ("unlock another", plain("bpf_res_spin_unlock", "r7")),
        ("unlock twice", plain("bpf_res_spin_unlock", "r6").repeat(2)),
        (
            "unlock both",
            plain("bpf_res_spin_unlock", "r7") + &plain("bpf_res_spin_unlock", "r6"),
        ),
        (
            "unlock and restore",
            saving("bpf_res_spin_unlock_irqrestore", "r6", 24),
        ),
        (
            "unlock and restore nothing",
            saving("bpf_res_spin_unlock_irqrestore", "r6", 32),
        ),
        (
            "restore",
            "r1 = r10\nr1 += -24\n".to_owned() + &calls.call("bpf_local_irq_restore", &[]),
        ),
        (
            "lock and save",
            saving("bpf_res_spin_lock_irqsave", "r7", 32),
        ),
        ("spin lock", "r1 = r6\ncall 93\n".into()),
        ("front", calls.call("bpf_list_front", &[("r6", LIST)])),
        (
            "front of another",
            calls.call("bpf_list_front", &[("r7", LIST)]),
        ),
        ("helper", "call 5\n".into()),
        ("exit", "r0 = 0\nexit\n".into()),
        ("throw", calls.call("bpf_throw", &[("0", 0)])),
    ];
    (held, done)
}

pub fn cases() -> Vec<Case> {
    let kernel = std::fs::read("/sys/kernel/btf/vmlinux").ok();
    let Some(kernel) = kernel.and_then(|bytes| Btf::parse(&bytes).ok()) else {
        return Vec::new();
    };
    let graph = graph();
    let calls = Calls(&kernel);
    let map = |name, value| {
        MapDef::new(name, MapType::Hash, 4, 56, 4)
            .with_key_type(graph.key)
            .with_value_type(value)
    };
    let maps: Arc<[MapDef]> = graph.values.map(|value| map("values", value)).into();
    let lookup = |map: u32, to: &str| {
        format!(
            "*(u64 *)(r10 -8) = 1\n{}r2 = r10\nr2 += -8\ncall 1\nif r0 == 0 goto out\n{to} = r0\n",
            map_address(1, map)
        )
    };
    let begin = |map| {
        format!(
            "*(u64 *)(r10 -16) = 0\ncall 7\nr9 = r0\n{}{}",
            lookup(map, "r6"),
            lookup(map, "r7")
        )
    };
    let mut cases = Vec::new();
    let mut add = |name: String, text: String| {
        let text = format!("{text}{}", functions(&text, &calls));
        let mut program = graph.types.program(&name, &text, &maps);
        program.prog_type = ProgType::SchedCls;
        if program.func_info.is_empty() {
            program.func_info = vec![graph.types.main()];
        }
        program.kernel_btf = Some(kernel.clone());
        cases.push(Case { name, program });
    };
    let unlock = "r1 = r6\ncall 94\n";
    for (held, first) in held(&calls, &graph) {
        for (done, then) in done(&calls) {
            let new = calls.allocate(graph.counted);
            let new = format!("{new}if r0 == 0 goto out\nr8 = r0\n");
            for (end, last) in [("", ""), (", then unlock", unlock)] {
                let text = format!(
                    "{}{new}{first}{then}{last}out:\nr0 = 0\nexit\nend:\n{unlock}goto out\n",
                    begin(0)
                );
                // A label that nothing jumps to begins dead code, which is refused.
                let text = if first.contains("goto end") {
                    text
                } else {
                    text.replace("end:\nr1 = r6\ncall 94\ngoto out\n", "")
                };
                add(format!("{done} with {held}{end}"), text);
            }
        }
    }
    let (held, done) = resilient(&calls);
    let unlock = calls.call("bpf_res_spin_unlock", &[("r6", 0)]);
    for (held, first) in &held {
        for (done, then) in &done {
            let one = if first.contains("goto one") {
                format!("one:\n{unlock}goto out\n")
            } else {
                String::new()
            };
            let text = format!("{}{first}{then}out:\nr0 = 0\nexit\n{one}", begin(1));
            add(format!("{done} with {held} (resilient)"), text);
        }
    }
    cases
}
