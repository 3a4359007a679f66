//! Programs of arithmetic and branches made up at random, walked while they are made:
//! the states in which the verifier should see their registers.
//!
//! One path goes down the program; each branch off it ends at once. So no two paths
//! meet, nothing is pruned, and a place has one state.

use std::collections::BTreeMap;

use bpflab::isa::{
    AluOp, CallTarget, EndianOp, EndianSize, Insn, JumpOp, Operand, Reg, SignedSize, Size, Width,
};
use bpflab::util::HelperId;
use bpflab::verifier::scalar::Scalar;

use super::log::Place;
use bpflab::fuzz::Random;

/// The registers that are made up; the others are scratch.
pub const FIRST: usize = 6;
const REGISTERS: [Reg; 4] = [Reg::R6, Reg::R7, Reg::R8, Reg::R9];

/// The state of the four.
pub type Numbers = [Scalar; 4];

/// A program and what the verifier should say of it.
pub struct Made {
    pub insns: Vec<Insn>,
    pub expected: BTreeMap<Place, Vec<Numbers>>,
    /// The instructions that are walked, in order of their slots.
    pub walked: Vec<usize>,
    /// The lines about numbers that contradict themselves, sorted.
    pub violations: Vec<String>,
}

struct Maker<'a> {
    random: &'a mut Random,
    insns: Vec<Insn>,
    slot: usize,
    numbers: Numbers,
    expected: BTreeMap<Place, Vec<Numbers>>,
    walked: Vec<usize>,
    violations: Vec<String>,
    /// Jumps whose other edge is put off to the end: index, slot and state.
    put_off: Vec<(usize, usize, Numbers)>,
    /// Where the walk took both of two numbers.
    forked: Option<usize>,
}

/// A register that another and a constant were added up to.
#[derive(Clone, Copy)]
struct Link {
    register: usize,
    width: Width,
    delta: i64,
}

impl Link {
    /// What is known of it once more is known of the other.
    fn follow(&self, other: &Scalar) -> Scalar {
        match (self.delta, self.width) {
            (0, _) => *other,
            (_, Width::W64) => other.add_const(self.delta),
            (_, Width::W32) => {
                let delta = Scalar::constant(self.delta.cast_unsigned());
                Scalar::alu(AluOp::Add, Width::W32, other, &delta)
            }
        }
    }
}

/// Makes a program of `length` steps up.
pub fn make(random: &mut Random, length: usize) -> Made {
    let mut maker = Maker {
        random,
        insns: Vec::new(),
        slot: 0,
        numbers: [Scalar::UNKNOWN; 4],
        expected: BTreeMap::new(),
        walked: Vec::new(),
        violations: Vec::new(),
        put_off: Vec::new(),
        forked: None,
    };
    for which in 0..4 {
        maker.fresh(which);
    }
    for _ in 0..length {
        if maker.forked.is_none() {
            maker.step();
        }
    }
    maker.finish()
}

impl Maker<'_> {
    fn expect(&mut self, place: Place, numbers: Numbers) {
        self.expected.entry(place).or_default().push(numbers);
    }

    /// Appends an instruction that is walked, and notes the state behind it.
    fn emit(&mut self, insn: Insn) {
        self.walked.push(self.slot);
        self.expect(Place::After(self.slot), self.numbers);
        self.slot += insn.encode().to_vec().len();
        self.insns.push(insn);
    }

    /// Appends an instruction of which `which` gets a new value; unless the kernel
    /// finds it sane, only its bits are kept.
    fn set(&mut self, which: usize, insn: Insn, number: Scalar) {
        let context = match insn {
            Insn::Load { .. } => "ldx",
            Insn::LoadSx { .. } => "ldsx",
            _ => "alu",
        };
        self.numbers[which] = self.sane(context, &number);
        self.emit(insn);
    }

    /// What the kernel goes on with.
    fn sane(&mut self, context: &str, number: &Scalar) -> Scalar {
        self.violations.extend(number.violation(context));
        number.sanitized()
    }

    fn alu(&mut self, op: AluOp, width: Width, which: usize, src: Operand) {
        let other = match src {
            Operand::Imm(imm) => Scalar::constant(i64::from(imm).cast_unsigned()),
            Operand::Reg(reg) => self.numbers[reg.index() - FIRST],
        };
        let dst = REGISTERS[which];
        let mut number = self.numbers[which];
        if let Some((put_off, first)) = Scalar::fork(op, &number, &other) {
            // Two ways go down the program from here: it ends.
            let (slot, mut numbers) = (self.slot, self.numbers);
            numbers[which] = put_off;
            self.expect(Place::Edge(slot, slot), numbers);
            let late = Scalar::alu(op, width, &put_off, &other);
            numbers[which] = self.sane("alu", &late);
            self.expect(Place::After(slot), numbers);
            self.forked = Some(slot);
            number = first;
        }
        let number = Scalar::alu(op, width, &number, &other);
        self.set(
            which,
            Insn::Alu {
                op,
                width,
                dst,
                src,
            },
            number,
        );
    }

    /// A number of which nothing is known, and no other register is it.
    fn fresh(&mut self, which: usize) {
        self.emit(Insn::Call(CallTarget::Helper(HelperId(7))));
        let insn = Insn::Alu {
            op: AluOp::Mov,
            width: Width::W64,
            dst: REGISTERS[which],
            src: Operand::Reg(Reg::R0),
        };
        self.set(which, insn, Scalar::UNKNOWN);
    }

    /// After a copy: what is learnt of one register is learnt of the other no more.
    fn unlink(&mut self, which: usize) {
        self.alu(AluOp::Xor, Width::W64, which, Operand::Imm(0));
    }

    fn width(&mut self) -> Width {
        self.random.pick(Width::ALL)
    }

    fn step(&mut self) {
        let which = usize::try_from(self.random.below(4)).unwrap();
        if self.numbers[which].is_unknown() && self.random.chance(20)
            || self.numbers[which].is_const() && self.random.chance(50)
        {
            return self.shape(which);
        }
        match self.random.below(20) {
            0..9 => self.arithmetic(which),
            9 => self.extend(which),
            10 => self.through_memory(which),
            11 => self.shape(which),
            12 => self.linked(which),
            _ => self.branch(which),
        }
    }

    /// A number of which something is known.
    fn shape(&mut self, which: usize) {
        match self.random.below(4) {
            0 => {
                let value = self.random.wide();
                let insn = Insn::LoadImm64 {
                    dst: REGISTERS[which],
                    value,
                };
                self.set(which, insn, Scalar::constant(value));
            }
            1 => {
                self.fresh(which);
                let imm = self.random.imm();
                self.alu(AluOp::And, Width::W64, which, Operand::Imm(imm));
                let imm = self.random.imm();
                self.alu(AluOp::Or, Width::W64, which, Operand::Imm(imm));
            }
            2 => {
                self.fresh(which);
                let other = (which + 1) % 4;
                let value = self.random.wide();
                let insn = Insn::LoadImm64 {
                    dst: REGISTERS[other],
                    value,
                };
                self.set(other, insn, Scalar::constant(value));
                let src = Operand::Reg(REGISTERS[other]);
                self.alu(AluOp::And, Width::W64, which, src);
            }
            _ => {
                self.fresh(which);
                let op = self.random.pick(&[AluOp::Rsh, AluOp::Arsh]);
                let by = i32::try_from(self.random.below(64)).unwrap();
                self.alu(op, Width::W64, which, Operand::Imm(by));
                let imm = self.random.imm();
                self.alu(AluOp::Add, Width::W64, which, Operand::Imm(imm));
            }
        }
    }

    fn arithmetic(&mut self, which: usize) {
        let width = self.width();
        let op = match self.random.below(20) {
            0 => return self.negate(which, width),
            // Nothing is left of a quotient: a rare one will do.
            1 => self.random.pick(AluOp::ALL),
            _ => self.random.pick(&[
                AluOp::Add,
                AluOp::Sub,
                AluOp::Mul,
                AluOp::And,
                AluOp::Or,
                AluOp::Xor,
                AluOp::Lsh,
                AluOp::Rsh,
                AluOp::Arsh,
            ]),
        };
        let shift = matches!(op, AluOp::Lsh | AluOp::Rsh | AluOp::Arsh);
        let src = if self.random.chance(50) && !(shift && self.random.chance(80)) {
            Operand::Reg(self.random.pick(&REGISTERS))
        } else if shift {
            let by = self.random.below(u64::from(width.bits()));
            Operand::Imm(i32::try_from(by).unwrap())
        } else {
            // By an immediate of zero no program divides.
            let imm = self.random.imm();
            Operand::Imm(if imm == 0 { 1 } else { imm })
        };
        self.alu(op, width, which, src);
        if op == AluOp::Mov {
            self.unlink(which);
        }
    }

    fn negate(&mut self, which: usize, width: Width) {
        let number = self.numbers[which].neg(width);
        let dst = REGISTERS[which];
        self.set(which, Insn::Neg { width, dst }, number);
    }

    fn extend(&mut self, which: usize) {
        let dst = REGISTERS[which];
        if self.random.chance(30) {
            let (op, size) = (
                self.random.pick(EndianOp::ALL),
                self.random.pick(EndianSize::ALL),
            );
            let number = Scalar::endian(op, size, &self.numbers[which]);
            return self.set(which, Insn::Endian { op, size, dst }, number);
        }
        let src = self.random.pick(&REGISTERS);
        let from = self.random.pick(SignedSize::ALL);
        let width = match from {
            SignedSize::S32 => Width::W64,
            _ => self.width(),
        };
        let number = self.numbers[src.index() - FIRST].movsx(width, from);
        let insn = Insn::MovSx {
            width,
            from,
            dst,
            src,
        };
        self.set(which, insn, number);
        self.unlink(which);
    }

    /// Stored to the stack and loaded again, whole or in part.
    fn through_memory(&mut self, which: usize) {
        let dst = REGISTERS[which];
        let (base, off) = (Reg::R10, -8);
        self.emit(Insn::Store {
            size: Size::Dw,
            base,
            off,
            src: Operand::Reg(dst),
        });
        let number = self.numbers[which];
        if self.random.chance(50) {
            let size = self.random.pick(Size::ALL);
            let insn = Insn::Load {
                size,
                dst,
                base,
                off,
            };
            self.set(which, insn, number.to_size(u32::from(size.bytes())));
        } else {
            let from = self.random.pick(SignedSize::ALL);
            let insn = Insn::LoadSx {
                from,
                dst,
                base,
                off,
            };
            let bytes = u32::from(from.size().bytes());
            self.set(which, insn, number.to_size_signed(bytes));
        }
        self.unlink(which);
    }

    /// A register made from another by adding a constant learns what that one learns.
    fn linked(&mut self, which: usize) {
        let other = (which + 1) % 4;
        let delta = self.random.imm();
        self.set(
            other,
            Insn::Alu {
                op: AluOp::Mov,
                width: Width::W64,
                dst: REGISTERS[other],
                src: Operand::Reg(REGISTERS[which]),
            },
            self.numbers[which],
        );
        // By 32 bits it is linked where the other fits them.
        let width = match self.numbers[which].umax {
            0..=0xffff_ffff => self.width(),
            _ => Width::W64,
        };
        self.alu(AluOp::Add, width, other, Operand::Imm(delta));
        let imm = self.random.imm();
        let op = self.random.pick(JumpOp::ALL);
        let link = Link {
            register: other,
            width,
            delta: i64::from(delta),
        };
        self.jump(op, Width::W64, which, Operand::Imm(imm), Some(link));
        self.unlink(other);
        self.unlink(which);
    }

    fn branch(&mut self, which: usize) {
        let (op, width) = (self.random.pick(JumpOp::ALL), self.width());
        let src = if self.random.chance(50) {
            Operand::Reg(self.random.pick(&REGISTERS))
        } else if self.random.chance(40) {
            // An end of what is known, or beside it.
            let number = &self.numbers[which];
            let ends = [
                number.smin32,
                number.smax32,
                number.umin32.cast_signed(),
                number.umax32.cast_signed(),
            ];
            let beside = self.random.pick(&[-1, 0, 1]);
            Operand::Imm(self.random.pick(&ends).wrapping_add(beside))
        } else {
            Operand::Imm(self.random.imm())
        };
        self.jump(op, width, which, src, None);
    }

    fn jump(&mut self, op: JumpOp, width: Width, which: usize, src: Operand, link: Option<Link>) {
        let before = self.numbers;
        let a = before[which];
        let other = match src {
            Operand::Reg(reg) => Some(reg.index() - FIRST),
            Operand::Imm(_) => None,
        };
        let b = match src {
            Operand::Reg(reg) => before[reg.index() - FIRST],
            Operand::Imm(imm) => Scalar::constant(i64::from(imm).cast_unsigned()),
        };
        let edge = |maker: &mut Self, taken| {
            let mut numbers = before;
            let [first, second] = if taken {
                ["true_reg1", "true_reg2"]
            } else {
                ["false_reg1", "false_reg2"]
            };
            if other == Some(which) {
                let same = Scalar::refine_same(op, width, &a, taken);
                let once = maker.sane(first, &same);
                numbers[which] = maker.sane(second, &once);
                return numbers;
            }
            let (a, b) = Scalar::refine(op, width, &a, &b, taken);
            numbers[which] = maker.sane(first, &a);
            let b = maker.sane(second, &b);
            if let Some(other) = other {
                numbers[other] = b;
            }
            if let Some(link) = link {
                numbers[link.register] = link.follow(&numbers[which]);
            }
            numbers
        };
        let known = Scalar::is_taken(op, width, &a, &b);
        let on = known.unwrap_or_else(|| self.random.chance(50));
        let slot = self.slot;
        let insn = Insn::JumpIf {
            op,
            width,
            dst: REGISTERS[which],
            src,
            off: if on { 2 } else { 0 },
        };
        match (known, on) {
            // One edge, and nothing is learnt.
            (Some(_), _) => self.emit(insn),
            (None, true) => {
                self.numbers = edge(self, false);
                self.emit(insn);
                self.numbers = edge(self, true);
                self.expect(Place::Edge(slot, slot + 3), self.numbers);
            }
            (None, false) => {
                self.numbers = edge(self, false);
                let other = edge(self, true);
                self.put_off.push((self.insns.len(), slot, other));
                self.emit(insn);
            }
        }
        if on {
            let kept = (self.numbers, self.walked.len());
            self.leave();
            self.numbers = kept.0;
            if known == Some(true) {
                self.walked.truncate(kept.1);
            }
        } else if known == Some(false) {
            // The edge that is not taken must lead somewhere.
            self.put_off
                .push((self.insns.len() - 1, usize::MAX, before));
        }
    }

    /// `r0 = 0; exit`.
    fn leave(&mut self) {
        self.emit(Insn::Alu {
            op: AluOp::Mov,
            width: Width::W64,
            dst: Reg::R0,
            src: Operand::Imm(0),
        });
        self.emit(Insn::Exit);
    }

    fn finish(mut self) -> Made {
        self.leave();
        if let Some(slot) = self.forked {
            self.walked.extend(slot..self.slot);
        }
        for (index, slot, numbers) in std::mem::take(&mut self.put_off) {
            let (here, walked) = (self.slot, self.walked.len());
            let at = self.insns[..index]
                .iter()
                .map(|insn| insn.encode().to_vec().len())
                .sum::<usize>();
            if let Insn::JumpIf { off, .. } = &mut self.insns[index] {
                *off = i16::try_from(here - at - 1).unwrap();
            }
            self.numbers = numbers;
            self.leave();
            if slot == usize::MAX {
                self.walked.truncate(walked);
            } else {
                self.expect(Place::Edge(slot, here), numbers);
            }
        }
        self.walked.sort_unstable();
        self.violations.sort_unstable();
        Made {
            insns: self.insns,
            expected: self.expected,
            walked: self.walked,
            violations: self.violations,
        }
    }
}
