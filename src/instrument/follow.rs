//! The recorded form's code for tail calls: before a tail call, and in the program that a tail
//! call leads to.

use super::context;
use super::emit::Slots;
use super::handover::{Way, WaySource};
use super::patch::Block;
use super::plan::{Called, Function};
use super::record::{FIRST, Form, WAY};
use crate::isa::{Insn, JumpOp, Reg, Size};
use crate::util::Pc;

impl Form<'_> {
    /// Inserts the code before a tail call.
    pub(super) fn hand_over(&mut self, pc: Pc) {
        let Some(number) = self.plan.function_at(pc) else {
            return;
        };
        let is_main = self.plan.functions.get(number).map(|it| it.called) == Some(Called::Main);
        let follows = self.follows;
        let log = self.log;
        let frame = self.frame(number);
        let way = match (is_main, follows) {
            (false, _) => WaySource::Always(Way::Within),
            (true, false) => WaySource::Always(Way::Instead),
            (true, true) => WaySource::Slot(frame.slot(WAY)),
        };
        let mut block = Block::default();
        log.hand_over(&mut block, &mut Slots::from(frame, FIRST), way);
        self.patch.last_before(pc, block);
    }

    /// Inserts the entry and the exits of a program that tail calls lead to.
    pub(super) fn follow(&mut self, number: usize, function: &Function) {
        let (epilogue, send) = (self.patch.label(), self.patch.label());
        let log = self.log;
        let frame = self.frame(number);
        let (slot, way) = (frame.slot(0), frame.slot(WAY));
        let task = Slots::from(frame, WAY + 1).take();
        let given = Reg::R6;
        let mut entry = Block::default();
        entry.mov(given, Reg::R1);
        let lost = self.find_buffer(&mut entry, slot, task);
        entry.store(Size::Dw, Reg::FP, slot, Reg::R0);
        log.take_over(&mut entry, self.options.number, way);
        entry.mov(Reg::R1, given);
        self.patch.entry(function.start, entry);
        self.exits_to(function, epilogue);
        let mut end = Block::default();
        end.bind(lost);
        end.mov(Reg::R0, context::outside(self.plan.program.prog_type));
        end.push(Insn::Exit);
        end.bind(epilogue);
        end.load(Size::Dw, Reg::R1, Reg::FP, way);
        end.jump_if(JumpOp::Eq, Reg::R1, 0, send);
        log.go_back(&mut end, &mut Slots::from(self.frame(number), WAY + 1));
        end.push(Insn::Exit);
        end.bind(send);
        self.epilogue(&mut end, slot);
        self.patch.end(function.start, end);
    }
}
