//! Random programs with loops: `may_goto`, counted loops, nested loops, callbacks of
//! `bpf_loop`, and functions called inside. Registers and slots are written on some paths
//! only, so that states with uninitialised registers are compared, and are read where they
//! are likely, but not certain, to be initialised.

use bpflab::btf::{Btf, Builder, Encoding, FuncInfo, Linkage, Param};
use bpflab::isa::RawInsn;
use bpflab::program::{Program, Subprogram};
use bpflab::spec::ProgType;
use bpflab::util::{Pc, TypeId};

use bpflab::fuzz::Random;

const LOOP: i32 = 181;
const PRANDOM: i32 = 7;
/// The maximum nesting of loops and branches.
const DEEPEST: u32 = 2;
/// The maximum number of functions besides the main one.
const FUNCTIONS: u64 = 2;
const JUMPS: [u8; 9] = [0x10, 0x20, 0x30, 0x50, 0x60, 0x70, 0xa0, 0xb0, 0xc0];

/// A jump, call or address whose function has no position yet.
#[derive(Clone, Copy)]
struct Reference {
    at: usize,
    function: usize,
}

struct Maker {
    random: Random,
    insns: Vec<RawInsn>,
    references: Vec<Reference>,
    /// Whether each function is a callback.
    callbacks: Vec<bool>,
    /// The registers that hold a number on every path, as a bit mask.
    numbers: u16,
    depth: u32,
    /// The counters of the enclosing loops.
    counters: Vec<u8>,
    /// Whether r6 holds the context.
    has_context: bool,
    in_function: bool,
}

type Step = fn(&mut Maker);

const STEPS: &[(u64, Step)] = &[
    (14, Maker::constant),
    (8, Maker::copy),
    (14, Maker::arithmetic),
    (10, Maker::store),
    (10, Maker::load),
    (12, Maker::branch),
    (10, Maker::may_goto),
    (5, Maker::counted),
    (4, Maker::call),
    (4, Maker::bpf_loop),
    (4, Maker::packet_load),
    (4, Maker::prandom),
    (3, Maker::sometimes),
];

/// A random program.
pub fn program(random: &mut Random) -> Program {
    let callbacks: Vec<bool> = (0..random.below(FUNCTIONS + 1))
        .map(|_| random.chance(60))
        .collect();
    let mut starts = vec![0];
    let mut maker = Maker {
        random: Random(random.wide()),
        insns: Vec::new(),
        references: Vec::new(),
        callbacks: callbacks.clone(),
        numbers: 0,
        depth: 0,
        counters: Vec::new(),
        has_context: true,
        in_function: false,
    };
    maker.emit(0xbf, 6, 1, 0, 0);
    let size = 2 + maker.random.below(7);
    maker.steps(size);
    for function in 0..callbacks.len() {
        maker.refer(function);
    }
    maker.end();
    for _ in &callbacks {
        starts.push(maker.insns.len());
        maker.numbers = 0b0000_0110;
        maker.has_context = false;
        maker.in_function = true;
        let size = 1 + maker.random.below(6);
        maker.steps(size);
        maker.end();
    }
    for Reference { at, function } in &maker.references {
        let distance = starts[function + 1] - at - 1;
        maker.insns[*at].imm = i32::try_from(distance).unwrap();
    }
    let mut program = Program::new("loops", ProgType::SchedCls, maker.insns);
    program.license = "GPL".into();
    let (btf, functions) = types(&callbacks);
    program.btf = Some(btf);
    let starts = starts.into_iter().map(Pc::from_index);
    program.func_info = starts
        .zip(&functions)
        .map(|(start, ty)| FuncInfo {
            insn_off: start.0,
            ty: *ty,
        })
        .collect();
    program.subprograms = program
        .func_info
        .iter()
        .enumerate()
        .map(|(number, info)| {
            Subprogram::new(format!("f{number}"), Pc(info.insn_off))
                .with_type_id(info.ty)
                .with_global(number == 0)
        })
        .collect();
    program
}

/// The program's BTF: its functions, static except for the main one.
fn types(callbacks: &[bool]) -> (Btf, Vec<TypeId>) {
    let mut builder = Builder::new();
    let int = builder.int("int", 4, Encoding::Signed);
    let context = builder.structure("__sk_buff", 0, &[]);
    let context = builder.ptr(context);
    let param = |name, ty| Param { name, ty };
    let main = builder.prototype(int, &[param("ctx", context)]);
    let other = builder.prototype(int, &[param("a", int), param("b", int)]);
    let mut functions = vec![builder.function("f0", main, Linkage::Global)];
    for number in 1..=callbacks.len() {
        let name = format!("f{number}");
        functions.push(builder.function(&name, other, Linkage::Static));
    }
    (builder.build().expect("types"), functions)
}

impl Maker {
    fn emit(&mut self, opcode: u8, dst: u8, src: u8, off: i16, imm: i32) -> usize {
        self.insns.push(RawInsn::new(opcode, dst, src, off, imm));
        self.insns.len() - 1
    }

    fn steps(&mut self, count: u64) {
        let total: u64 = STEPS.iter().map(|(weight, _)| weight).sum();
        for _ in 0..count {
            let mut at = self.random.below(total);
            for (weight, step) in STEPS {
                if at < *weight {
                    step(self);
                    break;
                }
                at -= weight;
            }
        }
    }

    fn end(&mut self) {
        let imm = self.random.pick(&[0, 0, 0, 1]);
        self.emit(0xb7, 0, 0, 0, imm);
        self.emit(0x95, 0, 0, 0, 0);
    }

    /// A register that may be written: not a loop counter.
    fn free(&mut self) -> u8 {
        loop {
            let reg = u8::try_from(self.random.below(10)).unwrap();
            let context = self.has_context && reg == 6;
            if !self.counters.contains(&reg) && (!context || self.random.chance(2)) {
                self.has_context &= !context;
                return reg;
            }
        }
    }

    /// A register that mostly holds a number.
    fn number(&mut self) -> u8 {
        let known: Vec<u8> = (0..10).filter(|reg| self.numbers >> reg & 1 == 1).collect();
        if known.is_empty() {
            self.constant();
            return self.number();
        }
        if self.random.chance(3) {
            return self.free();
        }
        self.random.pick(&known)
    }

    /// A register that holds a number and may be changed.
    fn own(&mut self) -> u8 {
        let reg = self.number();
        if self.counters.contains(&reg) {
            return self.free();
        }
        reg
    }

    fn set(&mut self, reg: u8) {
        self.numbers |= 1 << reg;
    }

    fn constant(&mut self) {
        let (reg, opcode) = (self.free(), self.random.pick(&[0xb7, 0xb7, 0xb4]));
        let imm = self.random.pick(&[0, 0, 1, 1, 2, 3, -1, 8, 64]);
        self.emit(opcode, reg, 0, 0, imm);
        self.set(reg);
    }

    fn copy(&mut self) {
        let (dst, src) = (self.free(), self.number());
        let opcode = self.random.pick(&[0xbf, 0xbf, 0xbc]);
        self.emit(opcode, dst, src, 0, 0);
        self.set(dst);
    }

    fn arithmetic(&mut self) {
        let dst = self.own();
        let opcode = self
            .random
            .pick(&[0x00, 0x00, 0x10, 0x40, 0x50, 0xa0, 0x60])
            | self.random.pick(&[4, 7, 7]);
        if self.random.chance(25) && opcode & 0xf0 != 0x60 {
            let src = self.number();
            self.emit(opcode | 8, dst, src, 0, 0);
        } else {
            let imm = self.random.pick(&[1, 1, 1, 2, 3, 7]);
            self.emit(opcode, dst, 0, 0, imm);
        }
        self.set(dst);
    }

    fn slot(&mut self) -> i16 {
        -8 * i16::try_from(1 + self.random.below(4)).unwrap()
    }

    fn store(&mut self) {
        let size = self.random.pick(&[0x18, 0x18, 0x18, 0, 8, 0x10]);
        let slot = self.slot();
        match self.random.below(6) {
            0 => {
                let imm = self.random.pick(&[0, 0, 1, 7]);
                self.emit(0x62 | size, 10, 0, slot, imm);
            }
            1 if self.has_context => {
                self.emit(0x7b, 10, 6, slot, 0);
            }
            2 => {
                self.emit(0x7b, 10, 10, slot, 0);
            }
            _ => {
                let src = self.number();
                self.emit(0x63 | size, 10, src, slot, 0);
            }
        }
    }

    fn load(&mut self) {
        let (dst, slot) = (self.free(), self.slot());
        if self.has_context && self.random.chance(30) {
            let off = self.random.pick(&[0, 8, 16, 48]);
            self.emit(0x61, dst, 6, off, 0);
        } else {
            let size = self.random.pick(&[0x18, 0x18, 0, 8, 0x10]);
            self.emit(0x61 | size, dst, 10, slot, 0);
        }
        self.set(dst);
    }

    /// A conditional part: registers that it sets are not initialised for certain after it.
    fn aside(&mut self, body: impl FnOnce(&mut Self)) {
        let before = self.numbers;
        self.depth += 1;
        body(self);
        self.depth -= 1;
        self.numbers &= before;
    }

    fn condition(&mut self) -> usize {
        let dst = self.number();
        let opcode = self.random.pick(&JUMPS) | self.random.pick(&[5, 5, 6]);
        if self.random.chance(20) {
            let src = self.number();
            return self.emit(opcode | 8, dst, src, 0, 0);
        }
        let imm = self.random.pick(&[0, 0, 1, 2, 5, 10, 100, -1]);
        self.emit(opcode, dst, 0, 0, imm)
    }

    /// Lets the jump at `from` lead to the next instruction to be emitted.
    fn land(&mut self, from: usize) {
        let distance = self.insns.len() - from - 1;
        self.insns[from].off = i16::try_from(distance).unwrap();
    }

    fn back(&mut self, opcode: u8, dst: u8, to: usize, imm: i32) {
        let distance = self.insns.len() + 1 - to;
        self.emit(opcode, dst, 0, -i16::try_from(distance).unwrap(), imm);
    }

    fn inner(&mut self, most: u64) {
        let count = if self.depth > DEEPEST {
            0
        } else {
            self.random.below(most + 1)
        };
        self.steps(count);
    }

    fn branch(&mut self) {
        let from = self.condition();
        self.aside(|maker| maker.inner(2));
        self.land(from);
    }

    /// Writes a register where a branch is taken, and reads it where a later branch on the
    /// same number is.
    fn sometimes(&mut self) {
        let (asked, reg) = (self.number(), self.free());
        if asked == reg {
            return;
        }
        let first = self.emit(0x15, asked, 0, 0, 0);
        self.emit(0xb7, reg, 0, 0, 1);
        self.land(first);
        self.numbers &= !(1 << reg);
        self.inner(2);
        let second = self.emit(0x15, asked, 0, 0, 0);
        self.emit(0x07, reg, 0, 0, 1);
        self.land(second);
    }

    fn may_goto(&mut self) {
        let start = self.emit(0xe5, 0, 0, 0, 0);
        self.aside(|maker| {
            maker.inner(4);
            if maker.random.chance(20) {
                let from = maker.condition();
                maker.back(0x05, 0, start, 0);
                maker.land(from);
                maker.inner(1);
            }
            maker.back(0x05, 0, start, 0);
        });
        self.land(start);
    }

    fn counted(&mut self) {
        let counter = self.random.pick(&[7, 8, 9]);
        if self.counters.contains(&counter) || self.depth > 0 {
            return;
        }
        self.emit(0xb7, counter, 0, 0, 0);
        self.set(counter);
        self.counters.push(counter);
        let start = self.insns.len();
        self.aside(|maker| maker.inner(2));
        self.counters.pop();
        self.emit(0x07, counter, 0, 0, 1);
        let rounds = self.random.pick(&[1, 2, 3, 4]);
        let opcode = self.random.pick(&[0xa5, 0xa5, 0xc5, 0x55]);
        self.back(opcode, counter, start, rounds);
    }

    fn forget_caller_saved(&mut self) {
        self.numbers &= !0b11_1111;
    }

    /// Calls a function, or passes it to `bpf_loop`.
    fn refer(&mut self, function: usize) {
        if self.callbacks[function] {
            let rounds = self.random.pick(&[1, 2, 8, 1000]);
            self.emit(0xb7, 1, 0, 0, rounds);
            let at = self.emit(0x18, 2, 4, 0, 0);
            self.emit(0, 0, 0, 0, 0);
            self.references.push(Reference { at, function });
            if self.random.chance(50) {
                self.emit(0xbf, 3, 10, 0, 0);
                let slot = self.slot();
                self.emit(0x07, 3, 0, 0, slot.into());
            } else {
                self.emit(0xb7, 3, 0, 0, 0);
            }
            self.emit(0xb7, 4, 0, 0, 0);
            self.emit(0x85, 0, 0, 0, LOOP);
        } else {
            for reg in [1, 2] {
                if self.random.chance(90) {
                    self.emit(0xb7, reg, 0, 0, 1);
                }
            }
            let at = self.emit(0x85, 0, 1, 0, 0);
            self.references.push(Reference { at, function });
        }
        self.forget_caller_saved();
        self.set(0);
    }

    fn refer_to_one(&mut self, callback: bool) {
        let found = self.callbacks.iter().enumerate();
        let found: Vec<usize> = found
            .filter(|(_, is)| **is == callback)
            .map(|(number, _)| number)
            .collect();
        // Functions don't call others, so that there is no recursion.
        if !self.in_function && !found.is_empty() {
            let function = self.random.pick(&found);
            self.refer(function);
        }
    }

    fn call(&mut self) {
        self.refer_to_one(false);
    }

    fn bpf_loop(&mut self) {
        self.refer_to_one(true);
    }

    /// It counts as a read of every register.
    fn packet_load(&mut self) {
        if self.has_context {
            self.emit(0x30, 0, 0, 0, 14);
            self.forget_caller_saved();
            self.set(0);
        }
    }

    fn prandom(&mut self) {
        self.emit(0x85, 0, 0, 0, PRANDOM);
        self.forget_caller_saved();
        self.set(0);
    }
}
