//! Recursion guards: which programs are active on a CPU, and so which ones must be skipped.

use smallvec::SmallVec;

use super::hook::Guard;
use crate::vm::maps::ProgramHandle;

/// Why an attached program was skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MissedWhy {
    /// A program of a guarded hook was active on the CPU (`bpf_prog_active`).
    CpuActive,
    /// Like `CpuActive`, at a perf event: the kernel does not count the miss.
    CpuActiveUncounted,
    /// The program itself was active on the CPU.
    ProgramActive,
    /// The event happened while its context's perf buffer was in use, and was dropped. The
    /// kernel does not count the miss.
    Recursion,
}

impl MissedWhy {
    /// Whether the kernel's program statistics count it (`recursion_misses`).
    #[must_use]
    pub const fn is_counted(self) -> bool {
        matches!(self, Self::CpuActive | Self::ProgramActive)
    }
}

/// The context of a CPU when an event happens. Higher levels interrupt lower ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Level {
    /// In a task.
    #[default]
    Task,
    /// In a soft interrupt.
    SoftIrq,
    /// In an interrupt.
    HardIrq,
    /// In a non-maskable interrupt.
    Nmi,
}

/// The active programs of a CPU.
#[derive(Debug, Default)]
pub struct Guards {
    /// `bpf_prog_active`: how many program lists of guarded hooks are running.
    lists: u32,
    /// Running programs with a per-program guard.
    programs: SmallVec<[ProgramHandle; 4]>,
    /// For each level, whether its perf buffer is in use.
    buffers: [bool; 4],
    /// The CPU's context.
    level: Level,
}

impl Guards {
    /// The CPU's context.
    #[must_use]
    pub const fn level(&self) -> Level {
        self.level
    }

    /// Sets the CPU's context and returns the previous one.
    pub const fn set_level(&mut self, level: Level) -> Level {
        std::mem::replace(&mut self.level, level)
    }

    const fn buffer(&mut self) -> &mut bool {
        let [task, soft, hard, nmi] = &mut self.buffers;
        match self.level {
            Level::Task => task,
            Level::SoftIrq => soft,
            Level::HardIrq => hard,
            Level::Nmi => nmi,
        }
    }

    /// Enters a list of programs.
    ///
    /// # Errors
    /// The reason to skip the list. Then [`leave_list`](Self::leave_list) must not be called.
    pub const fn enter_list(&mut self, guard: Guard) -> Result<(), MissedWhy> {
        match guard {
            Guard::None | Guard::Program => return Ok(()),
            Guard::Record if *self.buffer() => return Err(MissedWhy::Recursion),
            Guard::Record | Guard::Cpu if self.lists > 0 => return Err(MissedWhy::CpuActive),
            Guard::CpuUncounted if self.lists > 0 => return Err(MissedWhy::CpuActiveUncounted),
            Guard::Record => *self.buffer() = true,
            Guard::Cpu | Guard::CpuUncounted => {}
        }
        self.lists += 1;
        Ok(())
    }

    /// Leaves a list of programs.
    pub const fn leave_list(&mut self, guard: Guard) {
        match guard {
            Guard::None | Guard::Program => return,
            Guard::Record => *self.buffer() = false,
            Guard::Cpu | Guard::CpuUncounted => {}
        }
        self.lists = self.lists.saturating_sub(1);
    }

    /// Enters a program.
    ///
    /// # Errors
    /// The reason to skip it.
    pub fn enter_program(&mut self, guard: Guard, program: ProgramHandle) -> Result<(), MissedWhy> {
        if guard == Guard::Program {
            if self.programs.contains(&program) {
                return Err(MissedWhy::ProgramActive);
            }
            self.programs.push(program);
        }
        Ok(())
    }

    /// Leaves a program.
    pub fn leave_program(&mut self, guard: Guard, program: ProgramHandle) {
        if guard == Guard::Program {
            self.programs.retain(|active| *active != program);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_skipped_while_another_runs() {
        let mut guards = Guards::default();
        assert_eq!(guards.enter_list(Guard::Record), Ok(()));
        assert_eq!(guards.enter_list(Guard::Record), Err(MissedWhy::Recursion));
        assert_eq!(guards.enter_list(Guard::Cpu), Err(MissedWhy::CpuActive));
        let perf = guards.enter_list(Guard::CpuUncounted);
        assert_eq!(perf, Err(MissedWhy::CpuActiveUncounted));
        assert_eq!(guards.enter_list(Guard::None), Ok(()));
        guards.leave_list(Guard::None);
        // An interrupt has its own buffer, but finds the program active.
        let before = guards.set_level(Level::HardIrq);
        assert_eq!(guards.enter_list(Guard::Record), Err(MissedWhy::CpuActive));
        guards.set_level(before);
        guards.leave_list(Guard::Record);
        assert_eq!(guards.enter_list(Guard::Cpu), Ok(()));
    }

    #[test]
    fn a_program_does_not_run_inside_itself() {
        let mut guards = Guards::default();
        let (one, two) = (ProgramHandle(1), ProgramHandle(2));
        assert_eq!(guards.enter_program(Guard::Program, one), Ok(()));
        let again = guards.enter_program(Guard::Program, one);
        assert_eq!(again, Err(MissedWhy::ProgramActive));
        assert_eq!(guards.enter_program(Guard::Program, two), Ok(()));
        assert_eq!(guards.enter_program(Guard::None, one), Ok(()));
        guards.leave_program(Guard::Program, one);
        assert_eq!(guards.enter_program(Guard::Program, one), Ok(()));
    }
}
