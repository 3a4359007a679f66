//! Our own engines.

use super::answer::{Answer, Details, MapContents};
use super::subject::{Engine, Subject, Unable};
use crate::harness::{EngineKind, Vm};
use crate::lower::Passes;
use crate::vm::World;

/// One of our own engines, and how it is set.
#[derive(Debug, Clone)]
pub struct Ours {
    /// Which.
    pub kind: EngineKind,
    /// What lowering does.
    pub passes: Passes,
    /// Whether the fast interpreter may be threaded ([`Vm::set_threaded`]).
    pub threaded: bool,
}

impl Ours {
    /// An engine with everything that makes it fast.
    #[must_use]
    pub fn new(kind: EngineKind) -> Self {
        Self {
            kind,
            passes: Passes::all(),
            threaded: true,
        }
    }

    /// The same that leaves a pass out.
    #[must_use]
    pub fn without(self, pass: Passes) -> Self {
        let passes = self.passes - pass;
        Self { passes, ..self }
    }

    /// The same with the interpreter's loop only.
    #[must_use]
    pub fn with_loop(self) -> Self {
        Self {
            threaded: false,
            ..self
        }
    }
}

impl Engine for Ours {
    fn name(&self) -> String {
        let mut name = self.kind.name().to_owned();
        if !self.threaded {
            name += " (loop)";
        }
        for (pass, _) in (Passes::all() - self.passes).iter_names() {
            name += &format!(" without {pass}");
        }
        name
    }

    fn run(&mut self, subject: &Subject) -> Result<Answer, Unable> {
        let mut vm = Vm::with_world(World::default());
        vm.set_engine(self.kind)
            .set_passes(self.passes)
            .set_threaded(self.threaded);
        if let Some(budget) = subject.budget {
            vm.set_budget(budget);
        }
        let programs = subject.programs().cloned().collect();
        let handles = vm.load_unverified_programs(&subject.program.maps, programs)?;
        let Some(&handle) = handles.first() else {
            return Err(Unable::Unavailable("no program to run".to_owned()));
        };
        let event = &subject.event;
        let repeated = vm.run_repeatedly(handle, event, 1)?;
        let maps = maps(&vm)?;
        let ran_on = repeated.ran_on;
        let (outcome, fault) = (repeated.outcome, repeated.fault);
        Ok(Answer {
            retval: outcome.runs.last().map(crate::vm::Run::returned),
            packet: outcome.packet.clone(),
            context: outcome.packet.is_none().then(|| outcome.context.clone()),
            maps,
            details: Some(Details {
                ran_on,
                outcome,
                fault,
            }),
        })
    }
}

/// What the maps hold that can be read by key.
fn maps(vm: &Vm) -> Result<Vec<MapContents>, Unable> {
    let readable = vm.maps().filter(|map| MapContents::are_kept_by(map.def()));
    let contents = readable.map(|map| Ok(MapContents::new(map.def(), map.entries_bytes()?)));
    contents.collect()
}
