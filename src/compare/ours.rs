//! bpflab's own engines.

use super::answer::{Answer, Details, MapContents, is_ring};
use super::subject::{Engine, Subject, Unable};
use crate::btf::Btf;
use crate::harness::{EngineKind, Judged, Vm};
use crate::lower::Passes;
use crate::vm::World;
use crate::vm::events::Event;

/// One of bpflab's own engines, with its settings.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Ours {
    /// Which engine.
    pub kind: EngineKind,
    /// The passes of lowering.
    #[doc(hidden)]
    pub passes: Passes,
    /// Whether the fast interpreter may be threaded ([`Vm::set_threaded`]).
    pub threaded: bool,
    /// Whether machine code counts instructions ([`Vm::set_counting`]). It does if the subject
    /// has a budget.
    pub counts: bool,
}

impl Ours {
    /// An engine with all optimizations.
    #[must_use]
    pub fn new(kind: EngineKind) -> Self {
        Self {
            kind,
            passes: Passes::all(),
            threaded: true,
            counts: true,
        }
    }

    /// The same without a pass of lowering.
    #[doc(hidden)]
    #[must_use]
    pub fn without(self, pass: Passes) -> Self {
        let passes = self.passes - pass;
        Self { passes, ..self }
    }

    /// The same without threading: the interpreter runs its loop.
    #[must_use]
    pub fn with_loop(self) -> Self {
        Self {
            threaded: false,
            ..self
        }
    }

    /// The same without counting instructions in machine code.
    #[must_use]
    pub fn without_counts(self) -> Self {
        Self {
            counts: false,
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
        if !self.counts {
            name += " without counts";
        }
        for (pass, _) in (Passes::all() - self.passes).iter_names() {
            name += &format!(" without {pass}");
        }
        name
    }

    fn run(&mut self, subject: &Subject) -> Result<Answer, Unable> {
        self.run_on(subject, subject.judged(), |_| subject.event.clone())
    }
}

impl Ours {
    /// Runs a subject whose verdicts are known on another event than its own, made in the machine
    /// that it runs on: one whose arguments are objects there. `judged` are its programs.
    pub(crate) fn run_on(
        &self,
        subject: &Subject,
        judged: Vec<Judged>,
        event: impl FnOnce(&mut Vm) -> Event,
    ) -> Result<Answer, Unable> {
        let mut vm = Vm::with_world(World::default());
        vm.set_engine(self.kind)
            .set_passes(self.passes)
            .set_threaded(self.threaded)
            .set_counting(self.counts || subject.budget.is_some());
        if let Some(budget) = subject.budget {
            vm.set_budget(budget);
        }
        let handles = vm.load_judged(&subject.program.maps, judged)?;
        let Some(&handle) = handles.first() else {
            return Err(Unable::Unavailable("no program to run".to_owned()));
        };
        for extension in handles.iter().skip(1 + subject.others.len()) {
            vm.attach_loaded(*extension)?;
        }
        let event = event(&mut vm);
        let repeated = vm.runner(handle, &event)?.repeat(1)?;
        let maps = maps(&vm, subject.program.btf.as_ref())?;
        let rings = vm.maps().filter(|map| is_ring(map.def()));
        let records = rings.map(|ring| Ok(ring.take_records()?));
        let records = records.collect::<Result<_, Unable>>()?;
        let ran_on = repeated.ran_on;
        let (outcome, fault) = (repeated.outcome, repeated.fault);
        Ok(Answer {
            retval: outcome.runs.last().map(crate::vm::Run::returned),
            packet: outcome.packet.clone(),
            context: outcome.packet.is_none().then(|| outcome.context.clone()),
            maps,
            records,
            details: Some(Details {
                ran_on,
                outcome,
                fault,
            }),
        })
    }
}

/// The contents of the maps that can be read by key.
fn maps(vm: &Vm, btf: Option<&Btf>) -> Result<Vec<MapContents>, Unable> {
    let readable = vm.maps().filter(|map| MapContents::are_kept_by(map.def()));
    let contents = readable.map(|map| Ok(MapContents::new(map.def(), btf, map.entries_bytes()?)));
    contents.collect()
}
