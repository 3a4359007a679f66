//! Instructions to be inserted, with labels in place of jump offsets.

use crate::isa::{AluOp, CallTarget, Insn, JumpOp, Operand, Pseudo, Reg, Size, Width};
use crate::util::{HelperId, MapId, Pc};

/// A jump target in inserted code: see `Patch::label`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::instrument) struct Label(pub(super) u32);

/// The target of a jump.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    /// A label.
    Label(Label),
    /// An instruction of the original program, or what was inserted before it.
    Pc(Pc),
}

/// An element of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Item {
    /// An instruction that is not adjusted.
    Insn(Insn),
    /// A jump; its own offset is ignored.
    Jump(Insn, Target),
    /// The position of a label.
    Bind(Label),
}

/// Instructions to be inserted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::instrument) struct Block {
    pub(super) items: Vec<Item>,
}

impl Block {
    /// Adds an instruction that is not a jump.
    pub(in crate::instrument) fn push(&mut self, insn: Insn) {
        self.items.push(Item::Insn(insn));
    }

    /// Adds the contents of another block.
    pub(in crate::instrument) fn append(&mut self, other: Self) {
        self.items.extend(other.items);
    }

    /// Binds the label to this position.
    pub(in crate::instrument) fn bind(&mut self, label: Label) {
        self.items.push(Item::Bind(label));
    }

    /// `goto label`.
    pub(in crate::instrument) fn jump(&mut self, to: Label) {
        self.items
            .push(Item::Jump(Insn::Jump { off: 0 }, Target::Label(to)));
    }

    /// `goto` an instruction of the original program, or what is inserted before it.
    pub(in crate::instrument) fn jump_to(&mut self, pc: Pc) {
        self.items
            .push(Item::Jump(Insn::Jump { off: 0 }, Target::Pc(pc)));
    }

    /// `if dst op src goto label`, on 64 bits.
    pub(in crate::instrument) fn jump_if(
        &mut self,
        op: JumpOp,
        dst: Reg,
        src: impl Into<Operand>,
        to: Label,
    ) {
        let insn = Insn::JumpIf {
            op,
            width: Width::W64,
            dst,
            src: src.into(),
            off: 0,
        };
        self.items.push(Item::Jump(insn, Target::Label(to)));
    }

    /// `dst op= src`, on 64 bits.
    pub(in crate::instrument) fn alu(&mut self, op: AluOp, dst: Reg, src: impl Into<Operand>) {
        self.push(Insn::Alu {
            op,
            width: Width::W64,
            dst,
            src: src.into(),
        });
    }

    /// `dst = src`.
    pub(in crate::instrument) fn mov(&mut self, dst: Reg, src: impl Into<Operand>) {
        self.alu(AluOp::Mov, dst, src);
    }

    /// `dst = *(size *)(base + off)`.
    pub(in crate::instrument) fn load(&mut self, size: Size, dst: Reg, base: Reg, off: i16) {
        self.push(Insn::Load {
            size,
            dst,
            base,
            off,
        });
    }

    /// `*(size *)(base + off) = src`.
    pub(in crate::instrument) fn store(
        &mut self,
        size: Size,
        base: Reg,
        off: i16,
        src: impl Into<Operand>,
    ) {
        self.push(Insn::Store {
            size,
            base,
            off,
            src: src.into(),
        });
    }

    /// `call helper`.
    pub(in crate::instrument) fn call(&mut self, helper: HelperId) {
        self.push(Insn::Call(CallTarget::Helper(helper)));
    }

    /// `dst` = the map.
    pub(in crate::instrument) fn map(&mut self, dst: Reg, map: MapId) {
        self.push(Insn::LoadPseudo {
            dst,
            source: Pseudo::MapIdx { index: map.0 },
        });
    }

    /// `dst` = the address `off` bytes into the one value of an array map.
    pub(in crate::instrument) fn map_value(&mut self, dst: Reg, map: MapId, off: u32) {
        self.push(Insn::LoadPseudo {
            dst,
            source: Pseudo::MapIdxValue { index: map.0, off },
        });
    }
}

impl From<Reg> for Operand {
    fn from(reg: Reg) -> Self {
        Self::Reg(reg)
    }
}

impl From<i32> for Operand {
    fn from(imm: i32) -> Self {
        Self::Imm(imm)
    }
}
