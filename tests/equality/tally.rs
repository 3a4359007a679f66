//! What was counted.

use std::collections::BTreeMap;

use bpflab::compare::{Answer, Engine, Ours, Subject, difference};
use bpflab::harness::EngineKind;

/// What a test has made and run.
#[derive(Debug, Default)]
#[allow(dead_code, reason = "not every test counts everything")]
pub struct Tally {
    what: &'static str,
    /// Whether each engine is named before it runs.
    pub tells: bool,
    /// Programs made.
    pub made: u64,
    /// Why the verifier refused some of them.
    pub refused: BTreeMap<String, u64>,
    /// Results that were forgotten because they depend on the machine.
    pub masked: usize,
    /// Runs by the engine that was asked for, and of these those that began on another.
    pub runs: BTreeMap<String, (u64, u64)>,
    /// Runs of the checked engine that stopped before their end.
    pub faults: u64,
}

#[allow(dead_code, reason = "not every test counts everything")]
impl Tally {
    pub fn new(what: &'static str) -> Self {
        Self {
            what,
            ..Self::default()
        }
    }

    /// The part of the programs that the verifier accepts.
    #[allow(clippy::cast_precision_loss, reason = "a share of thousands")]
    pub fn accepted(&self) -> f64 {
        let refused: u64 = self.refused.values().sum();
        1.0 - refused as f64 / self.made as f64
    }

    /// Runs a subject on these engines: they all have to say what the checked one says.
    pub fn agree(&mut self, subject: &Subject, engines: &mut [Ours]) -> Result<Answer, String> {
        let checked = Ours::new(EngineKind::Checked).run(subject);
        let checked = checked.map_err(|error| error.to_string())?;
        self.faults += u64::from(checked.retval.is_none());
        for engine in engines {
            let name = engine.name();
            if self.tells {
                eprintln!("on {name}");
            }
            let answer = engine.run(subject).map_err(|error| error.to_string())?;
            if let Some(difference) = difference(&checked, &answer) {
                let budget = subject.budget;
                return Err(format!("on {name}, budget {budget:?}: {difference}"));
            }
            let (all, others) = self.runs.entry(name).or_default();
            *all += 1;
            let ran_on = answer.details.map(|details| details.engine);
            *others += u64::from(ran_on != Some(engine.kind));
        }
        Ok(checked)
    }

    /// Tells what was counted.
    pub fn tell(&self) {
        eprintln!("{}: {self:#?}", self.what);
    }

    /// Tells, and checks that nearly all runs began on the engine that was asked for.
    pub fn check(&self) {
        self.tell();
        for (engine, (all, others)) in &self.runs {
            let is_code = engine.contains("jit");
            if is_code && EngineKind::default() != EngineKind::Jit {
                continue;
            }
            assert!(others * 10 <= *all, "{engine}: {self:#?}");
        }
    }
}
