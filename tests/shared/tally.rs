//! Counts of what a test has generated and run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bpflab::compare::{Answer, Engine, Ours, Subject, difference};
use bpflab::harness::{EngineKind, Fallback};
use bpflab::program::Program;
use bpflab::util::TypeId;
use bpflab::verifier::{Decision, Options, verify};

/// What a test has generated and run.
#[derive(Debug, Default)]
#[allow(dead_code, reason = "not every test counts everything")]
pub struct Tally {
    what: &'static str,
    /// Whether each engine is named before it runs.
    pub tells: bool,
    /// Programs generated.
    pub made: u64,
    /// Why the verifier rejected some of them.
    pub refused: BTreeMap<String, u64>,
    /// Results that were dropped because they depend on the machine.
    pub masked: usize,
    /// Runs by the chosen engine, on which they ran.
    pub runs: BTreeMap<String, u64>,
    /// Runs on another engine than the chosen one, by that engine and the reason.
    pub elsewhere: BTreeMap<(String, Fallback), u64>,
    /// The allowed reasons for another engine: set by tests that run programs that the
    /// verifier does not accept.
    pub allowed: BTreeSet<Fallback>,
    /// Runs of the checked engine that faulted.
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

    /// The share of the programs that the verifier accepts.
    #[allow(clippy::cast_precision_loss, reason = "a share of thousands")]
    pub fn accepted(&self) -> f64 {
        let refused: u64 = self.refused.values().sum();
        1.0 - refused as f64 / self.made as f64
    }

    /// Allows only the fallbacks that follow from the verdicts on a program and on the
    /// targets of its tail calls.
    pub fn allow_unverified(&mut self, program: &Arc<Program>, others: &[Arc<Program>]) {
        self.allowed = unverified(program).into_iter().collect();
        let is_checked = |it: &Arc<Program>| throws(it) || unverified(it).is_some();
        if others.iter().any(is_checked) {
            self.allowed.insert(Fallback::TailCall);
        }
    }

    /// Runs a subject on these engines: all results have to equal the checked engine's.
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
            let ran_on = answer.details.ok_or("no engine of ours")?.ran_on;
            match ran_on.fallback {
                None if ran_on.engine == engine.kind => *self.runs.entry(name).or_default() += 1,
                None => return Err(format!("on {} without a reason, not {name}", ran_on.engine)),
                Some(why) => {
                    let has_code = EngineKind::default() == EngineKind::Jit;
                    if !self.allowed.contains(&why) && (has_code || why != Fallback::NoCode) {
                        return Err(format!("on {name}: it ran on {ran_on}"));
                    }
                    *self.elsewhere.entry((name, why)).or_default() += 1;
                }
            }
        }
        Ok(checked)
    }

    /// Prints the counts.
    pub fn tell(&self) {
        eprintln!("{}: {self:#?}", self.what);
    }
}

/// Why a program runs on the checked engine only, if it does.
fn unverified(program: &Arc<Program>) -> Option<Fallback> {
    match verify(program, &Options::default()).verdict.decision {
        Decision::Accept => None,
        Decision::Reject => Some(Fallback::Rejected),
        Decision::Unjudged => Some(Fallback::Unjudged),
    }
}

/// Whether a program calls `bpf_throw`: if a tail call leads there, the checked engine runs it.
fn throws(program: &Program) -> bool {
    let btf = program.kernel_btf.as_ref();
    program.insns.iter().any(|insn| {
        let is_call = insn.opcode == 0x85 && insn.src() == 2;
        let callee = || btf?.get(TypeId(insn.imm.cast_unsigned()));
        is_call && callee().is_some_and(|callee| callee.name() == "bpf_throw")
    })
}
