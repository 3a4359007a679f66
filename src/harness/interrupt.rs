//! Events that happen in the middle of a run.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::error::{Error, Result};
use crate::engine::{Image, Step, Watch};
use crate::isa::{CallTarget, Insn};
use crate::spec::helpers;
use crate::util::{HelperId, Pc};
use crate::vm::attach::Level;
use crate::vm::events::Event;
use crate::vm::{Fault, FaultKind, HelperProblem, Machine};

/// Where a run is interrupted: before an instruction, or before a call of a helper.
///
/// ```
/// use bpflab::harness::Interrupt;
/// use bpflab::vm::attach::Level;
///
/// // Before the second call of bpf_map_update_elem in program `p`, by an NMI.
/// let place = Interrupt::at_call("map_update_elem")?.of("p").nth(2).level(Level::Nmi);
/// # Ok::<(), bpflab::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interrupt {
    trigger: Trigger,
    program: Option<String>,
    nth: u64,
    repeats: bool,
    level: Level,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trigger {
    Insn(Pc),
    Call(HelperId),
}

impl Interrupt {
    const fn new(trigger: Trigger) -> Self {
        Self {
            trigger,
            program: None,
            nth: 1,
            repeats: false,
            level: Level::HardIrq,
        }
    }

    /// Before an instruction, by its slot.
    #[must_use]
    pub const fn at_insn(pc: u32) -> Self {
        Self::new(Trigger::Insn(Pc(pc)))
    }

    /// Before a call of a helper, by its name with or without `bpf_`.
    ///
    /// # Errors
    /// [`Error::NoHelper`] where Linux 6.18 has none of this name.
    pub fn at_call(helper: &str) -> Result<Self> {
        let found = helpers::helper_by_name(helper);
        let found = found.ok_or_else(|| Error::NoHelper(helper.to_owned()))?;
        Ok(Self::new(Trigger::Call(found.id)))
    }

    /// Only in this program, including functions that it calls and callbacks; the target of
    /// a tail call is another program.
    #[must_use]
    pub fn of(mut self, program: impl Into<String>) -> Self {
        self.program = Some(program.into());
        self
    }

    /// The `n`th time, from 1, counted over all runs from now on; the first by default.
    #[must_use]
    pub const fn nth(mut self, n: u64) -> Self {
        self.nth = n;
        self
    }

    /// Fires each [`nth`](Self::nth) time, not only once.
    #[must_use]
    pub const fn repeats(mut self) -> Self {
        self.repeats = true;
        self
    }

    /// The level of the interrupt: a hardware interrupt by default. [`Level::Task`] is no
    /// interrupt but something that the program or a helper does itself.
    #[must_use]
    pub const fn level(mut self, level: Level) -> Self {
        self.level = level;
        self
    }
}

/// An interrupt with its event and a count of the hits so far.
#[derive(Debug, Clone)]
struct Armed {
    interrupt: Interrupt,
    event: Event,
    seen: u64,
}

impl Armed {
    /// Counts a hit of the trigger; whether the interrupt fires now.
    fn happens(&mut self, image: &Image, pc: Pc) -> bool {
        let Interrupt {
            trigger,
            program,
            nth,
            repeats,
            ..
        } = &self.interrupt;
        let is_here = program
            .as_ref()
            .is_none_or(|name| *name == image.program().name)
            && match *trigger {
                Trigger::Insn(at) => at == pc,
                Trigger::Call(helper) => helper_at(image, pc) == Some(helper),
            };
        if !is_here {
            return false;
        }
        self.seen += 1;
        self.seen == *nth || *repeats && self.seen.is_multiple_of((*nth).max(1))
    }
}

/// The helper that an instruction calls.
fn helper_at(image: &Image, pc: Pc) -> Option<HelperId> {
    match image.insn_at(pc)? {
        Insn::Call(CallTarget::Helper(helper)) => Some(helper),
        _ => None,
    }
}

/// The interrupts of a test; nested runs count as well.
#[derive(Debug, Clone, Default)]
pub(super) struct Interrupts(Option<Arc<Mutex<Vec<Armed>>>>);

impl Interrupts {
    pub const fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    fn lock(&self) -> Option<MutexGuard<'_, Vec<Armed>>> {
        let armed = self.0.as_ref()?;
        Some(armed.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub fn push(&mut self, interrupt: Interrupt, event: Event) {
        let armed = Armed {
            interrupt,
            event,
            seen: 0,
        };
        self.0.get_or_insert_default();
        if let Some(mut all) = self.lock() {
            all.push(armed);
        }
    }

    /// A copy for another CPU, with separate counts.
    pub fn copied(&self) -> Self {
        let all = self.lock().map(|all| all.clone());
        Self(all.map(|all| Arc::new(Mutex::new(all))))
    }

    /// The events that fire before an instruction.
    fn at(&self, image: &Image, pc: Pc) -> Vec<(Level, Event)> {
        let Some(mut all) = self.lock() else {
            return Vec::new();
        };
        let now = all.iter_mut().filter_map(|armed| {
            let happens = armed.happens(image, pc);
            happens.then(|| (armed.interrupt.level, armed.event.clone()))
        });
        now.collect()
    }
}

/// Fires the interrupts that are due before each instruction of a run.
pub(super) struct Interrupter<'a> {
    interrupts: &'a Interrupts,
}

impl<'a> Interrupter<'a> {
    pub const fn new(interrupts: &'a Interrupts) -> Self {
        Self { interrupts }
    }
}

impl Watch for Interrupter<'_> {
    fn before(&mut self, _step: &Step<'_>) {}

    fn interrupt(
        &mut self,
        machine: &mut Machine,
        image: &Image,
        pc: Pc,
    ) -> std::result::Result<(), Box<Fault>> {
        for (level, event) in self.interrupts.at(image, pc) {
            machine
                .interrupt(level, &event)
                .map_err(|problem| match problem {
                    // The fault has its own position.
                    HelperProblem::Callback(fault) => fault,
                    problem => image.fault(pc, FaultKind::Interrupt(problem.to_string())),
                })?;
        }
        Ok(())
    }
}
