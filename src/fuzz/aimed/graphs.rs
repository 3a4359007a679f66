//! Linked lists, red-black trees, their locks, and objects with references: who owns an object, how
//! long a pointer to one that a list or tree owns is valid, what may be called under a lock.

use super::super::random::Random;
use super::functions::add_function;
use super::graph_types::{self, Layout, elem, value};
use super::jumps::land;
use crate::r#gen::KernelTypes;
use crate::isa::RawInsn;
use crate::program::Program;
use crate::spec::ProgType;
use crate::spec::helpers::id;
use crate::util::Pc;

/// The map value with the lock, the list, the tree and a pointer.
const VALUE: u8 = 6;
/// The two registers for objects of one's own.
const OBJECTS: [u8; 2] = [7, 8];
/// A node of the tree.
const NODE: u8 = 9;
const FP: u8 = 10;

/// What an object register holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holds {
    Nothing,
    /// An object with a reference.
    Owned,
    /// One that a list or tree owns, until the lock is released.
    Shared,
}

/// What holds at a point of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct State {
    locked: bool,
    objects: [Holds; 2],
    node: bool,
}

struct Maker<'r> {
    random: &'r mut Random,
    kernel: &'r KernelTypes,
    layout: &'static Layout,
    insns: Vec<RawInsn>,
    state: State,
    /// Loads of the address of the function that compares.
    compares: Vec<usize>,
}

type Step<'r> = fn(&mut Maker<'r>) -> Option<()>;

/// The steps with their weights. A step that does not fit the state does nothing.
const fn steps<'r>() -> [(u64, Step<'r>); 14] {
    [
        (20, Maker::make),
        (14, Maker::access),
        (20, Maker::lock),
        (6, Maker::unlock),
        (16, Maker::push),
        (12, Maker::pop),
        (16, Maker::add),
        (12, Maker::first),
        (12, Maker::remove),
        (10, Maker::acquire),
        (8, Maker::stash),
        (5, Maker::drop_one),
        (8, Maker::guarded),
        (4, Maker::look_up),
    ]
}

/// A program on objects, for a kernel that has the kfuncs.
pub(in crate::fuzz) fn program(random: &mut Random, kernel: &KernelTypes) -> Program {
    let layout = graph_types::layout(random.chance(60));
    let mut maker = Maker {
        random,
        kernel,
        layout,
        insns: Vec::with_capacity(120),
        state: State {
            locked: false,
            objects: [Holds::Nothing; 2],
            node: false,
        },
        compares: Vec::new(),
    };
    maker.begin();
    for _ in 0..4 + maker.random.below(14) {
        let steps = steps();
        let found = maker.random.weighted(&steps, |(weight, _)| *weight);
        // A kfunc that the kernel lacks ends the step.
        found.map(|(_, step)| step(&mut maker));
    }
    maker.clean_up();
    let less = maker.less();
    let mut program = Program::new("graph", ProgType::SchedCls, maker.insns);
    program.license = "GPL".to_owned();
    program.maps = layout.maps.clone();
    program.btf.clone_from(&layout.btf);
    program.kernel_btf = Some(kernel.btf().clone());
    let functions = [
        ("graph", 0, layout.main, true),
        ("less", less, layout.less, false),
    ];
    let functions = functions.iter().take(if less == 0 { 1 } else { 2 });
    program.subprograms.clear();
    for (name, start, ty, global) in functions.copied() {
        add_function(&mut program, name, Pc(start), ty, global);
    }
    program
}

impl Maker<'_> {
    fn emit(&mut self, opcode: u8, dst: u8, src: u8, off: i16, imm: i32) {
        self.insns.push(RawInsn::new(opcode, dst, src, off, imm));
    }

    /// Whether to make a mistake here.
    fn slips(&mut self) -> bool {
        self.random.chance(2)
    }

    fn mov(&mut self, dst: u8, src: u8, by: i16) {
        self.emit(0xbf, dst, src, 0, 0);
        if by != 0 {
            self.emit(0x07, dst, 0, 0, by.into());
        }
    }

    fn constant(&mut self, dst: u8, imm: i32) {
        self.emit(0xb7, dst, 0, 0, imm);
    }

    fn kfunc(&mut self, name: &str) -> Option<()> {
        let id = self.kernel.kfunc(name)?;
        self.emit(0x85, 0, 2, 0, id.0.cast_signed());
        Some(())
    }

    fn helper(&mut self, helper: crate::util::HelperId) {
        self.emit(0x85, 0, 0, 0, helper.0.cast_signed());
    }

    /// Two unknown numbers on the stack, and the map value.
    fn begin(&mut self) {
        // `len` and `mark` of `struct __sk_buff`.
        for (slot, field) in [(-8, 0), (-16, 8)] {
            self.emit(0x61, 2, 1, field, 0);
            self.emit(0x7b, FP, 2, slot, 0);
        }
        self.emit(0x18, VALUE, 6, 0, 0);
        self.emit(0, 0, 0, 0, 0);
    }

    /// A jump whose target is set later.
    fn jump(&mut self, opcode: u8, dst: u8, imm: i32) -> usize {
        self.emit(opcode, dst, 0, 0, imm);
        self.insns.len() - 1
    }

    /// Sets the target of a jump to the next instruction.
    fn land(&mut self, jump: usize) {
        land(&mut self.insns, jump);
    }

    /// Goes on where r0 is not null; elsewhere the program ends.
    fn not_null(&mut self) {
        if self.slips() {
            return;
        }
        let jump = self.jump(0x55, 0, 0);
        self.clean_up();
        self.land(jump);
    }

    /// Gives back what is held, and exits.
    fn clean_up(&mut self) {
        if self.state.locked && !self.slips() {
            self.mov(1, VALUE, value::LOCK);
            self.helper(id::spin_unlock);
        }
        for (at, reg) in OBJECTS.into_iter().enumerate() {
            if self.state.objects[at] == Holds::Owned && !self.slips() {
                self.drop_object(reg);
            }
        }
        self.constant(0, 0);
        self.emit(0x95, 0, 0, 0, 0);
    }

    fn drop_object(&mut self, reg: u8) {
        self.mov(1, reg, 0);
        self.constant(2, 0);
        // Without it there is nothing to drop.
        let _ = self.kfunc("bpf_obj_drop_impl");
    }

    /// The first object register that holds this.
    fn that_holds(&self, wanted: Holds) -> Option<usize> {
        self.state.objects.iter().position(|held| *held == wanted)
    }

    /// Whether the step needs the lock that is not held, or the other way round.
    fn unless_locked(&mut self, locked: bool) -> Option<()> {
        (self.state.locked == locked || self.slips()).then_some(())
    }

    fn make(&mut self) -> Option<()> {
        self.unless_locked(false)?;
        let at = self.that_holds(Holds::Nothing)?;
        self.constant(1, self.layout.elem.0.cast_signed());
        self.constant(2, 0);
        self.kfunc("bpf_obj_new_impl")?;
        self.own(at, 0);
        Some(())
    }

    /// r0, which may be null, becomes an object of one's own.
    fn own(&mut self, at: usize, node: i16) {
        self.not_null();
        self.mov(OBJECTS[at], 0, -node);
        self.state.objects[at] = Holds::Owned;
    }

    /// Writes or reads a number of an object.
    fn access(&mut self) -> Option<()> {
        let [first, second] = self.state.objects.map(|held| held != Holds::Nothing);
        let all = [
            (first, OBJECTS[0]),
            (second, OBJECTS[1]),
            (self.state.node, NODE),
        ];
        let live: Vec<u8> = all.iter().filter(|it| it.0).map(|it| it.1).collect();
        if live.is_empty() {
            return None;
        }
        let reg = self.random.pick(&live);
        let off = match self.slips() {
            true => self
                .random
                .pick(&[elem::LIST, elem::TREE, self.layout.size]),
            false => self.random.pick(&[elem::KEY, elem::DATA]),
        };
        match self.random.below(3) {
            0 => {
                let slot = self.random.pick(&[-8, -16]);
                self.emit(0x79, 1, FP, slot, 0);
                self.emit(0x7b, reg, 1, off, 0);
            }
            1 => {
                let imm = self.random.imm();
                self.emit(0x7a, reg, 0, off, imm);
            }
            _ => {
                let slot = self.random.pick(&[-8, -16]);
                self.emit(0x79, 1, reg, off, 0);
                self.emit(0x7b, FP, 1, slot, 0);
            }
        }
        Some(())
    }

    fn lock(&mut self) -> Option<()> {
        self.unless_locked(false)?;
        self.mov(1, VALUE, value::LOCK);
        self.helper(id::spin_lock);
        self.state.locked = true;
        Some(())
    }

    fn unlock(&mut self) -> Option<()> {
        self.unless_locked(true)?;
        self.mov(1, VALUE, value::LOCK);
        self.helper(id::spin_unlock);
        self.state.locked = false;
        self.forget_shared();
        Some(())
    }

    /// Pointers to what a list or tree owns are no longer valid.
    fn forget_shared(&mut self) {
        if self.slips() {
            return;
        }
        for held in &mut self.state.objects {
            if *held == Holds::Shared {
                *held = Holds::Nothing;
            }
        }
        self.state.node = false;
    }

    fn push(&mut self) -> Option<()> {
        self.unless_locked(true)?;
        let at = self.that_holds(Holds::Owned)?;
        self.mov(1, VALUE, value::LIST);
        self.mov(2, OBJECTS[at], elem::LIST);
        self.constant(3, 0);
        self.constant(4, 0);
        let name = ["bpf_list_push_front_impl", "bpf_list_push_back_impl"];
        let name = self.random.pick(&name);
        self.kfunc(name)?;
        self.state.objects[at] = Holds::Shared;
        Some(())
    }

    fn pop(&mut self) -> Option<()> {
        self.unless_locked(true)?;
        let at = self.that_holds(Holds::Nothing)?;
        self.mov(1, VALUE, value::LIST);
        let name = self
            .random
            .pick(&["bpf_list_pop_front", "bpf_list_pop_back"]);
        self.kfunc(name)?;
        self.forget_shared();
        self.own(at, elem::LIST);
        Some(())
    }

    fn add(&mut self) -> Option<()> {
        self.unless_locked(true)?;
        let at = self
            .that_holds(Holds::Owned)
            .filter(|_| self.layout.has_tree)?;
        self.mov(1, VALUE, value::TREE);
        self.mov(2, OBJECTS[at], elem::TREE);
        self.compares.push(self.insns.len());
        self.emit(0x18, 3, 4, 0, 0);
        self.emit(0, 0, 0, 0, 0);
        self.constant(4, 0);
        self.constant(5, 0);
        self.kfunc("bpf_rbtree_add_impl")?;
        self.state.objects[at] = Holds::Shared;
        Some(())
    }

    /// The first node of the tree, or what is below it.
    fn first(&mut self) -> Option<()> {
        self.unless_locked(true)?;
        if !self.layout.has_tree {
            return None;
        }
        if self.state.node && self.random.chance(40) {
            self.mov(1, VALUE, value::TREE);
            self.mov(2, NODE, elem::TREE);
            let name = self.random.pick(&["bpf_rbtree_left", "bpf_rbtree_right"]);
            self.kfunc(name)?;
        } else {
            self.mov(1, VALUE, value::TREE);
            let name = self.random.pick(&["bpf_rbtree_first", "bpf_rbtree_root"]);
            self.kfunc(name)?;
        }
        self.not_null();
        self.mov(NODE, 0, -elem::TREE);
        self.state.node = true;
        Some(())
    }

    fn remove(&mut self) -> Option<()> {
        self.unless_locked(true)?;
        let at = self
            .that_holds(Holds::Nothing)
            .filter(|_| self.state.node)?;
        self.mov(1, VALUE, value::TREE);
        self.mov(2, NODE, elem::TREE);
        self.kfunc("bpf_rbtree_remove")?;
        self.forget_shared();
        self.own(at, elem::TREE);
        Some(())
    }

    /// A second reference to an object.
    fn acquire(&mut self) -> Option<()> {
        let to = self
            .that_holds(Holds::Nothing)
            .filter(|_| self.layout.has_tree)?;
        let from = OBJECTS[1 - to];
        let from = match self.state.objects[1 - to] {
            Holds::Nothing if self.state.node => NODE,
            Holds::Nothing => return None,
            _ => from,
        };
        self.mov(1, from, 0);
        self.constant(2, 0);
        self.kfunc("bpf_refcount_acquire_impl")?;
        self.own(to, 0);
        Some(())
    }

    /// Exchanges the pointer in the value for an object, or for null.
    fn stash(&mut self) -> Option<()> {
        self.unless_locked(false)?;
        self.mov(1, VALUE, value::STASH);
        let at = match self.that_holds(Holds::Owned) {
            Some(at) => {
                self.mov(2, OBJECTS[at], 0);
                at
            }
            None => {
                self.constant(2, 0);
                self.that_holds(Holds::Nothing)?
            }
        };
        self.helper(id::kptr_xchg);
        self.state.objects[at] = Holds::Nothing;
        self.own(at, 0);
        Some(())
    }

    fn drop_one(&mut self) -> Option<()> {
        self.unless_locked(false)?;
        let at = self.that_holds(Holds::Owned)?;
        self.drop_object(OBJECTS[at]);
        self.state.objects[at] = Holds::Nothing;
        Some(())
    }

    /// Counts under a resilient lock, which may not be got.
    fn guarded(&mut self) -> Option<()> {
        self.unless_locked(false)?;
        let saves = self.random.chance(40);
        let suffix = if saves { "_irqsave" } else { "" };
        self.guard_arguments(saves);
        self.kfunc(&format!("bpf_res_spin_lock{suffix}"))?;
        let failed = self.jump(0x55, 0, 0);
        self.guarded_value(1);
        self.emit(0x79, 2, 1, 8, 0);
        self.emit(0x07, 2, 0, 0, 1);
        self.emit(0x7b, 1, 2, 8, 0);
        if !self.slips() {
            let suffix = if saves { "_irqrestore" } else { "" };
            self.guard_arguments(saves);
            self.kfunc(&format!("bpf_res_spin_unlock{suffix}"))?;
        }
        self.land(failed);
        Some(())
    }

    /// Loads from the value with the resilient lock, which a look-up finds. Two paths lead to the
    /// load; both ask whether the address is null, but for a mistake. An address keeps its id then,
    /// because the value has a lock.
    fn look_up(&mut self) -> Option<()> {
        self.unless_locked(false)?;
        // The element of a constant key would never be null.
        self.emit(0x79, 1, FP, -16, 0);
        self.emit(0x63, FP, 1, -32, 0);
        self.emit(0x18, 1, 5, 0, 1);
        self.emit(0, 0, 0, 0, 0);
        self.mov(2, FP, -32);
        self.helper(id::map_lookup_elem);
        self.emit(0x79, 1, FP, -8, 0);
        let imm = self.random.int(64);
        let other = self.jump(0x25, 1, imm);
        let mut null = vec![self.jump(0x15, 0, 0)];
        let met = self.jump(0x05, 0, 0);
        self.land(other);
        if !self.random.chance(10) {
            null.push(self.jump(0x15, 0, 0));
        }
        self.land(met);
        self.emit(0x79, 1, 0, 8, 0);
        for jump in null {
            self.land(jump);
        }
        Some(())
    }

    fn guarded_value(&mut self, dst: u8) {
        self.emit(0x18, dst, 6, 0, 1);
        self.emit(0, 0, 0, 0, 0);
    }

    fn guard_arguments(&mut self, saves: bool) {
        self.guarded_value(1);
        if saves {
            self.mov(2, FP, -24);
        }
    }

    /// The function that compares nodes, if it is needed: where it starts.
    fn less(&mut self) -> u32 {
        if self.compares.is_empty() {
            return 0;
        }
        let start = self.insns.len();
        for at in std::mem::take(&mut self.compares) {
            if let Some(insn) = self.insns.get_mut(at) {
                insn.imm = i32::try_from(start - at - 1).unwrap_or_default();
            }
        }
        self.emit(0x79, 1, 1, elem::KEY - elem::TREE, 0);
        self.emit(0x79, 2, 2, elem::KEY - elem::TREE, 0);
        self.constant(0, 0);
        self.emit(0x3d, 1, 2, 1, 0);
        self.constant(0, 1);
        self.emit(0x95, 0, 0, 0, 0);
        u32::try_from(start).unwrap_or_default()
    }
}
