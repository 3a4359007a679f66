//! Live stack slots: an analysis that is extended during exploration
//! (`kernel/bpf/liveness.c`).
//!
//! The unit is an [`Instance`]: a function with the chain of calls that reaches it. For
//! each instruction and each frame it has the slots that may be read (the union over all
//! paths) and the slots that are always written (the intersection). From these, the
//! following equations are solved to a fixed point over the function's graph:
//!
//! ```text
//! after(i)     = ∪ before(s)       for s that follow i
//! before(i)    = after(i) \ must_write(i) ∪ may_read(i)
//! written(i)   = ∩ written(s) ∪ must_write(i)
//! ```
//!
//! The effects of a function on outer frames then become effects of the call instruction in
//! its caller.
//!
//! Exploration marks reads and writes instruction by instruction
//! ([`begin`](StackLiveness::begin) … [`commit`](StackLiveness::commit)), propagates them
//! when a path ends ([`update`](StackLiveness::update)), and queries them when it compares
//! states ([`query`](StackLiveness::query)): dead slots are ignored.

use std::ops::Range;

use rustc_hash::FxHashMap;

use super::chain::CallChain;
use super::instance::{Instance, Masks};
use super::order::{Order, Positions};
use crate::spec::limits::MAX_CALL_FRAMES;
use crate::util::Pc;
use crate::verifier::log::Log;
use crate::verifier::structure::{Structure, SubprogramInfo};

/// The stack accesses of the program found so far.
#[derive(Debug, Default)]
pub(crate) struct StackLiveness {
    instances: Vec<Instance>,
    by_chain: FxHashMap<CallChain, usize>,
    /// The number of slots of each function, by its first instruction.
    lengths: Vec<(Pc, usize)>,
    /// The calls of helpers that call a callback.
    callbacks: Vec<Pc>,
    /// The order in which the equations are solved, and which depend on which.
    order: Order,
    /// By frame, the positions of the equations to solve; empty between propagations.
    unsolved: [Positions; MAX_CALL_FRAMES],
    /// The instance of the current frame, if known.
    current: Option<usize>,
    /// The current instruction, and the slots of each frame that it has written so far.
    writing: Pc,
    written: [u64; MAX_CALL_FRAMES],
    queried: QueriedState,
}

/// The state that is queried.
#[derive(Debug, Default)]
struct QueriedState {
    instances: [usize; MAX_CALL_FRAMES],
    frame: usize,
    pc: Pc,
    /// The resume point of each outer frame: where its slots have to be live.
    resumes: [Pc; MAX_CALL_FRAMES],
}

impl StackLiveness {
    /// For a program that is not yet explored.
    pub(crate) fn new(structure: &Structure) -> Self {
        let length = |sub: &SubprogramInfo| (sub.start, sub.end.index() - sub.start.index());
        let insns = (0..).map(Pc).zip(&structure.insns);
        let callbacks = insns.filter(|(_, info)| info.calls_callback);
        Self {
            lengths: structure.subprograms.iter().map(length).collect(),
            callbacks: callbacks.map(|(pc, _)| pc).collect(),
            order: Order::new(structure),
            ..Self::default()
        }
    }

    /// Forgets the current instance: another frame or state follows. The current
    /// instruction, a call or an exit, is not [committed](Self::commit) any more.
    pub(crate) fn reset_current(&mut self) {
        self.current = None;
    }

    /// Begins the instruction at `pc`. `chain` returns the chain of the current frame; it
    /// is called only after [`reset_current`](Self::reset_current).
    pub(crate) fn begin(&mut self, chain: impl FnOnce() -> CallChain, pc: Pc) {
        self.ensure_current(chain);
        self.writing = pc;
        self.written = [0; MAX_CALL_FRAMES];
    }

    /// Marks these slots of `frame` as possibly read by the instruction at `pc`.
    pub(crate) fn read(
        &mut self,
        chain: impl FnOnce() -> CallChain,
        frame: usize,
        pc: Pc,
        slots: u64,
    ) {
        let current = self.ensure_current(chain);
        if let Some(instance) = self.instances.get_mut(current) {
            instance.read(frame, pc, slots);
        }
    }

    /// Marks these slots of `frame` as fully written by the current instruction.
    pub(crate) fn write(&mut self, frame: usize, slots: u64) {
        if let Some(written) = self.written.get_mut(frame) {
            *written |= slots;
        }
    }

    /// Ends the current instruction: its writes take effect.
    pub(crate) fn commit(&mut self) {
        let current = self.current.and_then(|at| self.instances.get_mut(at));
        if let Some(instance) = current {
            instance.commit(self.writing, &self.written);
        }
    }

    /// Propagates the marks at the end of a path or function, for the frames from
    /// `current_frame` outwards; `chain` returns their chains.
    pub(crate) fn update(
        &mut self,
        structure: &Structure,
        chain: impl Fn(usize) -> CallChain,
        current_frame: usize,
        log: &mut Log,
    ) {
        self.reset_current();
        for frame in (0..=current_frame).rev() {
            let at = self.lookup(&chain(frame));
            self.update_instance(structure, at, log);
        }
    }

    /// Selects the state to query: the chains of its frames, the number of the innermost
    /// frame, and the next instruction there.
    pub(crate) fn query(
        &mut self,
        chain: impl Fn(usize) -> CallChain,
        current_frame: usize,
        pc: Pc,
    ) {
        let innermost = chain(current_frame);
        let mut queried = QueriedState {
            frame: current_frame,
            pc,
            ..QueriedState::default()
        };
        let outer = queried.instances.iter_mut().zip(&mut queried.resumes);
        for (frame, (instance, resume)) in outer.enumerate().take(current_frame + 1) {
            *instance = self.lookup(&chain(frame));
            // A callback returns to its call instruction, a function to the next one.
            let call = innermost.callsite(frame);
            let again = self.callbacks.binary_search(&call).is_ok();
            *resume = Pc(call.0.wrapping_add(u32::from(!again)));
        }
        self.queried = queried;
    }

    /// Whether a slot of a frame of that state may be read before it is written.
    pub(crate) fn is_alive(&self, frame: usize, slot: usize) -> bool {
        let QueriedState {
            instances,
            frame: innermost,
            pc,
            resumes,
        } = &self.queried;
        let alive = |at: usize, pc: Pc| {
            let instance = instances.get(at).and_then(|at| self.instances.get(*at));
            instance.is_some_and(|instance| {
                instance.masks(frame, pc).live_before >> (slot & 63) & 1 != 0
            })
        };
        alive(*innermost, *pc)
            || (frame..*innermost).any(|outer| {
                resumes
                    .get(outer)
                    .is_some_and(|resume| alive(outer, *resume))
            })
    }

    fn ensure_current(&mut self, chain: impl FnOnce() -> CallChain) -> usize {
        match self.current {
            Some(at) => at,
            None => {
                let at = self.lookup(&chain());
                self.current = Some(at);
                at
            }
        }
    }

    /// The index of this chain's instance.
    fn lookup(&mut self, chain: &CallChain) -> usize {
        if let Some(at) = self.by_chain.get(chain) {
            return *at;
        }
        let at = self.instances.len();
        let function = self
            .lengths
            .iter()
            .find(|(start, _)| *start == chain.start());
        let len = function.map_or(0, |(_, len)| *len);
        self.instances.push(Instance::new(*chain, len));
        self.by_chain.insert(*chain, at);
        at
    }

    fn update_instance(&mut self, structure: &Structure, at: usize, log: &mut Log) {
        let Some(instance) = self.instances.get_mut(at).filter(|it| it.updated) else {
            return;
        };
        instance.updated = false;
        let part = structure
            .subprogram_at(instance.chain.start())
            .map(|sub| structure.postorder.of(sub))
            .unwrap_or_default();
        for (frame, pc) in instance.changed.drain(..) {
            self.unsolved[frame].insert(self.order.position(pc));
        }
        if std::mem::take(&mut instance.must_write_dropped) {
            instance.forget_accumulated();
            for (frame, unsolved) in self.unsolved.iter_mut().enumerate() {
                if instance.touches(frame) {
                    part.clone().for_each(|at| unsolved.insert(at));
                }
            }
        }
        let mut rounds = 1;
        while self.sweep(structure, at, part.clone(), log) {
            rounds += 1;
        }
        let Some(instance) = self.instances.get(at) else {
            return;
        };
        let chain = instance.chain;
        if log.is_full() {
            log.write(format_args!(
                "{chain} live stack update done in {rounds} iterations\n"
            ));
        }
        if let Some((outer, call)) = chain.outer() {
            self.update_caller(at, &outer, call);
        }
    }

    /// Solves the equations of an instance in postorder once; returns whether anything
    /// changed. `part` are the positions of its function.
    fn sweep(
        &mut self,
        structure: &Structure,
        at: usize,
        part: Range<usize>,
        log: &mut Log,
    ) -> bool {
        let Some(instance) = self.instances.get_mut(at) else {
            return false;
        };
        let mut changed = false;
        for (frame, unsolved) in self.unsolved.iter_mut().enumerate() {
            let mut rest = part.clone();
            while let Some(at) = unsolved.take_first(rest.clone()) {
                rest.start = at + 1;
                let pc = Pc(structure.postorder.nodes()[at]);
                if solve(structure, instance, frame, pc, log) {
                    changed = true;
                    let before = self.order.predecessors(pc);
                    before.for_each(|at| unsolved.insert(at));
                }
            }
        }
        changed
    }

    /// Adds the effects of a function on outer frames to the call in its caller.
    fn update_caller(&mut self, at: usize, outer: &CallChain, call: Pc) {
        let outer = self.lookup(outer);
        let Some(inner) = self.instances.get(at) else {
            return;
        };
        let chain = inner.chain;
        let effects: [Option<Masks>; MAX_CALL_FRAMES] = std::array::from_fn(|frame| {
            let outer = frame < chain.frame() && inner.touches(frame);
            outer.then(|| inner.masks(frame, chain.start()))
        });
        let Some(outer) = self.instances.get_mut(outer) else {
            return;
        };
        for (frame, masks) in effects.iter().enumerate() {
            if let Some(masks) = masks {
                outer.read(frame, call, masks.live_before);
            }
        }
        let written = effects.map(|masks| masks.map_or(0, |masks| masks.must_write_acc));
        outer.commit(call, &written);
    }
}

/// Solves the equations for one instruction; returns whether anything changed.
fn solve(
    structure: &Structure,
    instance: &mut Instance,
    frame: usize,
    pc: Pc,
    log: &mut Log,
) -> bool {
    let (mut after, mut written, mut ends) = (0, u64::MAX, true);
    for next in structure.graph.successors(pc.0) {
        let masks = instance.masks(frame, Pc(next));
        after |= masks.live_before;
        written &= masks.must_write_acc;
        ends = false;
    }
    if ends {
        return false;
    }
    let old = instance.masks(frame, pc);
    let live_before = after & !old.must_write | old.may_read;
    let must_write_acc = written | old.must_write;
    let changed = (live_before, must_write_acc) != (old.live_before, old.must_write_acc);
    if !changed {
        return false;
    }
    if log.is_full()
        && (old.may_read != 0
            || old.must_write != 0
            || pc == instance.chain.start()
            || structure.info(pc).prune_point)
    {
        let mut line = Line {
            log,
            chain: &instance.chain,
            frame,
            pc,
        };
        line.write("live", old.live_before, live_before);
        line.write("written", old.must_write_acc, must_write_acc);
    }
    if let Some(masks) = instance.masks_mut(frame, pc) {
        masks.live_before = live_before;
        masks.must_write_acc = must_write_acc;
    }
    true
}

/// A line of the log about an instruction.
struct Line<'a> {
    log: &'a mut Log,
    chain: &'a CallChain,
    frame: usize,
    pc: Pc,
}

impl Line<'_> {
    /// Logs the slots that a mask gained and lost, if any.
    fn write(&mut self, name: &str, old: u64, new: u64) {
        if old == new {
            return;
        }
        let Self {
            log,
            chain,
            frame,
            pc,
        } = self;
        log.write(format_args!("{chain} frame {frame} insn {pc} "));
        if new & !old != 0 {
            log.write(format_args!("+{name} {} ", offsets(new & !old)));
        }
        if old & !new != 0 {
            log.write(format_args!("-{name} {}", offsets(old & !new)));
        }
        log.write(format_args!("\n"));
    }
}

/// The offsets of these slots from the frame pointer: `-8,-24`.
fn offsets(slots: u64) -> String {
    let offsets = (0..64).filter(|slot| slots >> slot & 1 != 0);
    let texts: Vec<String> = offsets.map(|slot| (-8 * (slot + 1)).to_string()).collect();
    texts.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::assemble;
    use crate::program::Program;
    use crate::spec::ProgType;
    use crate::spec::helpers::Caller;
    use crate::verifier::structure::check;
    use crate::verifier::verdict::LogLevel;

    /// The frames of a state: the start of each function and its call of the next frame.
    type Frames = &'static [(u32, Option<u32>)];

    const MAIN: Frames = &[(0, None)];

    /// An exploration by hand.
    struct Exploration {
        structure: Structure,
        liveness: StackLiveness,
        log: Log,
    }

    fn chain(frames: Frames) -> impl Fn(usize) -> CallChain {
        move |last| {
            let outer = frames.iter().take(last + 1);
            CallChain::new(outer.map(|&(start, call)| (Pc(start), call.map(Pc))))
        }
    }

    impl Exploration {
        fn of(text: &str) -> Self {
            let program = Program::new("test", ProgType::Xdp, assemble(text).unwrap());
            let caller = Caller::of(program.prog_type);
            let mut log = Log::new(LogLevel::empty());
            let (structure, ()) = check(
                &program,
                &caller,
                &crate::verifier::Options::default(),
                |_| Ok(()),
                &mut log,
            )
            .unwrap();
            Self {
                liveness: StackLiveness::new(&structure),
                structure,
                log: Log::new(LogLevel::ALL),
            }
        }

        /// Executes one instruction, which reads and writes these slots of each frame.
        fn step(
            &mut self,
            frames: Frames,
            pc: u32,
            reads: &[(usize, u64)],
            writes: &[(usize, u64)],
        ) {
            let (live, last) = (&mut self.liveness, frames.len() - 1);
            live.begin(|| chain(frames)(last), Pc(pc));
            for &(frame, slots) in reads {
                live.read(|| unreachable!(), frame, Pc(pc), slots);
            }
            for &(frame, slots) in writes {
                live.write(frame, slots);
            }
            live.commit();
        }

        fn end(&mut self, frames: Frames) {
            let last = frames.len() - 1;
            self.liveness
                .update(&self.structure, chain(frames), last, &mut self.log);
        }

        fn enter(&mut self) {
            self.liveness.reset_current();
        }

        /// The live slots of a frame at `pc`.
        fn alive(&mut self, frames: Frames, pc: u32, frame: usize) -> Vec<usize> {
            self.liveness.query(chain(frames), frames.len() - 1, Pc(pc));
            (0..64)
                .filter(|slot| self.liveness.is_alive(frame, *slot))
                .collect()
        }
    }

    const BRANCHES: &str = "*(u64 *)(r10 - 8) = r1\n if r1 == 0 goto +1\n r2 = *(u64 *)(r10 - 8)\n \
                            *(u64 *)(r10 - 8) = r1\n r0 = *(u64 *)(r10 - 16)\n exit";

    #[test]
    fn a_slot_lives_from_its_writing_to_its_last_reading() {
        let mut exploration = Exploration::of(BRANCHES);
        exploration.step(MAIN, 0, &[], &[(0, 1)]);
        exploration.step(MAIN, 2, &[(0, 1)], &[]);
        exploration.step(MAIN, 3, &[], &[(0, 1)]);
        exploration.step(MAIN, 4, &[(0, 2)], &[]);
        exploration.end(MAIN);
        let mut alive = |pc| exploration.alive(MAIN, pc, 0);
        assert_eq!(alive(0), [1]);
        assert_eq!(alive(1), [0, 1]);
        assert_eq!(alive(3), [1]);
        assert_eq!(alive(5), [0; 0]);
    }

    /// A slot that one path writes and another doesn't is not always written.
    #[test]
    fn writing_is_what_every_walk_does() {
        let mut exploration =
            Exploration::of("r0 = 0\n *(u64 *)(r1 + 0) = r0\n r0 = *(u64 *)(r10 - 8)\n exit");
        exploration.step(MAIN, 1, &[], &[(0, 1)]);
        exploration.step(MAIN, 2, &[(0, 1)], &[]);
        exploration.end(MAIN);
        assert_eq!(exploration.alive(MAIN, 0, 0), [0; 0]);
        exploration.step(MAIN, 1, &[], &[]);
        exploration.end(MAIN);
        assert_eq!(exploration.alive(MAIN, 0, 0), [0]);
        exploration.step(MAIN, 1, &[], &[(0, 1)]);
        exploration.end(MAIN);
        assert_eq!(exploration.alive(MAIN, 0, 0), [0]);
    }

    const CALLEE: &str = "call pc+2\n r0 = *(u64 *)(r10 - 8)\n exit\n \
                          *(u64 *)(r1 + 0) = r2\n r0 = *(u64 *)(r1 - 8)\n exit";
    const IN_CALLEE: Frames = &[(0, Some(0)), (3, None)];

    /// The effects of a function on its caller's slots are effects of the call. The lines
    /// are those of the kernel's log.
    #[test]
    fn a_call_does_what_the_function_does() {
        let mut exploration = Exploration::of(CALLEE);
        // The call itself: nothing is committed once the callee is entered.
        exploration.liveness.begin(|| chain(MAIN)(0), Pc(0));
        exploration.enter();
        exploration.liveness.commit();
        exploration.step(IN_CALLEE, 3, &[], &[(0, 1)]);
        exploration.step(IN_CALLEE, 4, &[(0, 2)], &[]);
        exploration.end(IN_CALLEE);
        exploration.step(MAIN, 1, &[(0, 1)], &[]);
        exploration.end(MAIN);
        assert_eq!(exploration.alive(MAIN, 0, 0), [1]);
        assert_eq!(exploration.alive(MAIN, 1, 0), [0]);
        // In the callee: its own reads, and reads after the call.
        assert_eq!(exploration.alive(IN_CALLEE, 3, 0), [0, 1]);
        assert_eq!(exploration.alive(IN_CALLEE, 5, 0), [0]);
        let log = exploration.log.into_text();
        let lines = [
            "(0,3) frame 0 insn 4 +live -16 ",
            "(0,3) frame 0 insn 3 +live -16 ",
            "(0,3) frame 0 insn 3 +written -8 ",
            "(0,3) live stack update done in 2 iterations",
        ];
        assert!(log.starts_with(&lines.join("\n")), "{log}");
    }

    /// The function's own stack is separate in each call.
    #[test]
    fn chains_are_kept_apart() {
        let mut exploration =
            Exploration::of("call pc+2\n call pc+1\n exit\n r0 = *(u64 *)(r1 + 0)\n exit");
        let (first, second): (Frames, Frames) =
            (&[(0, Some(0)), (3, None)], &[(0, Some(1)), (3, None)]);
        for (frames, slots) in [(first, 1), (second, 4)] {
            exploration.enter();
            exploration.step(frames, 3, &[(0, slots)], &[]);
            exploration.end(frames);
        }
        assert_eq!(exploration.alive(MAIN, 0, 0), [0, 2]);
        assert_eq!(exploration.alive(MAIN, 1, 0), [2]);
        assert_eq!(exploration.alive(first, 3, 0), [0, 2]);
        assert_eq!(exploration.alive(second, 3, 0), [2]);
    }
}
