//! The comparison of one program: its counts and differences while its firings are replayed,
//! and its report at the end.

use std::num::NonZeroU64;
use std::sync::Arc;

use super::answers::Answers;
use super::difference::{Different, FirstDifference, Instruction};
use super::logs::{Did, Finding, Findings};
use super::programs::{Form, Part};
use super::touch::Touches;
use super::verdict::{NotCompared, ProgramReport, Verdict};
use super::writers::{Strayed, Writers};
use crate::compare::recording::KernelInfo;
use crate::harness::RanOn;
use crate::instrument::{Firing, FiringFlags, Plan, What};
use crate::program::Program;
use crate::util::{MapId, Pc};
use crate::vm::Fault;

/// Counts and differences of one program.
#[derive(Debug)]
pub(super) struct ProgramComparison {
    pub firings: u64,
    /// How often a tail call led to the program.
    pub led_to: u64,
    pub raced: u64,
    pub missed: u64,
    /// Firings without a log.
    pub without_log: u64,
    /// What its sites do to maps.
    pub touches: Touches,
    /// Results that only the recorded kernel can determine.
    answers: Answers,
    /// The first output, path or return value that differs.
    did: Option<Found>,
    /// For each map, the first value read that differs from the kernel's.
    suspects: Vec<(Vec<MapId>, Found)>,
}

/// A difference, and what is needed to run its firing again.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub difference: FirstDifference,
    /// The nesting depth of its firing.
    depth: u16,
    /// The instruction of the difference, and how often the run executes it before.
    pub look: Option<(Pc, usize)>,
}

/// The replay's log of a program in a firing: all of it, or one segment between tail calls.
#[derive(Debug)]
pub(super) struct Piece<'a> {
    /// The entries.
    pub log: &'a [u8],
    /// Earlier segments of the program in the same firing.
    pub earlier: &'a [&'a [u8]],
    /// The return value, if the firing ends here.
    pub returned: Option<u64>,
    /// Where the next segment begins, in the kernel's run and in the replay.
    pub then: (Option<Instruction>, Option<Instruction>),
}

impl Piece<'_> {
    /// How many entries of a site earlier segments have.
    fn earlier(&self, plan: &Plan, site: u16) -> usize {
        let entries = self.earlier.iter().flat_map(|log| plan.entries(log));
        entries
            .map_while(Result::ok)
            .filter(|entry| entry.site.number == site)
            .count()
    }
}

/// The result of comparing two logs.
#[derive(Debug)]
pub(super) struct Compared {
    /// Where the replay could not follow the recorded log.
    pub strayed: Option<Strayed>,
    /// Whether the two runs took different paths, so that the rest can't be compared.
    pub diverged: bool,
}

impl ProgramComparison {
    /// No firings yet of a program that was recorded in this kernel.
    pub fn of(part: &Part, kernel: &KernelInfo) -> Self {
        let (touches, answers) = match &part.form {
            Ok(form) => {
                let (program, plan) = (&part.original, &form.plan);
                let touches = Touches::of(program, plan);
                let answers = Answers::of(program, plan, &touches, kernel);
                (touches, answers)
            }
            Err(_) => Default::default(),
        };
        Self {
            firings: 0,
            led_to: 0,
            raced: 0,
            missed: 0,
            without_log: 0,
            touches,
            answers,
            did: None,
            suspects: Vec::new(),
        }
    }

    /// Compares a firing, or a segment of one, whose log or return value differs.
    pub fn differ(
        &mut self,
        (program, form): (&Arc<Program>, &Form),
        number: u64,
        firing: &Firing<'_>,
        piece: &Piece<'_>,
    ) -> Compared {
        let mut findings = Findings::between(&form.plan, firing.log, piece.log);
        findings.found.retain(|found| {
            let Finding {
                site,
                what,
                expected,
                got,
                ..
            } = found;
            !self.answers.may_differ(*site, *what, expected, got)
        });
        let diverged = findings.did.is_some() || findings.is_lost();
        if let Some(returned) = piece.returned
            && !diverged
            && returned != firing.returned
        {
            let what = Different::Returned {
                expected: firing.returned,
                got: returned,
            };
            self.add_did(Found::new(number, firing, what));
        }
        self.raced += u64::from(!findings.found.is_empty());
        let is_lost = findings.is_lost();
        let mut strayed = Strayed::default();
        for finding in &findings.found {
            let place = (finding.site, finding.nth);
            if finding.lost {
                strayed.lost = Some(place);
            } else if finding.what == What::Result {
                strayed.results.push(place);
            }
        }
        for mut finding in findings.found.drain(..) {
            finding.nth += piece.earlier(&form.plan, finding.site);
            self.suspect(program, form, number, firing, finding);
        }
        if let Some(did) = findings.did.filter(|_| !is_lost)
            && self.did.is_none()
        {
            self.add_did(Found::of(program, form, (number, firing), did, piece));
        }
        Compared {
            strayed: (!strayed.is_empty()).then_some(strayed),
            diverged,
        }
    }

    /// Adds that a firing continued in another program than in the kernel, or ended.
    pub fn diverge(&mut self, number: u64, firing: &Firing<'_>, piece: &Piece<'_>) {
        let (expected, got) = piece.then.clone();
        let what = Different::Path { expected, got };
        self.add_did(Found::new(number, firing, what));
    }

    /// Adds a fault.
    pub fn fault(
        &mut self,
        number: u64,
        firing: &Firing<'_>,
        fault: &Fault,
        place: Option<Instruction>,
    ) {
        let what = Different::Fault(fault.kind.to_string());
        let mut found = Found::new(number, firing, what);
        found.difference.place = place;
        self.add_did(found);
    }

    fn add_did(&mut self, found: Found) {
        self.did.get_or_insert(found);
    }

    fn suspect(
        &mut self,
        program: &Arc<Program>,
        form: &Form,
        number: u64,
        firing: &Firing<'_>,
        finding: Finding,
    ) {
        let touched = self.touches.get(finding.site).iter();
        let maps: Vec<_> = touched
            .flat_map(|touch| self.touches.maps(touch.map))
            .collect();
        // A value may be explained by a race on one CPU and not on another: keep one for each
        // CPU and depth.
        let is_known = |(known, found): &(Vec<MapId>, Found)| {
            *known == maps && found.difference.cpu == firing.cpu && found.depth == firing.depth
        };
        if self.suspects.iter().any(is_known) {
            return;
        }
        let site = form.plan.sites().get(usize::from(finding.site));
        let names = maps.iter().filter_map(|map| program.map(*map));
        let what = Different::Found {
            what: finding.what,
            expected: finding.expected,
            got: finding.got,
            maps: names.map(|map| map.name.clone()).collect(),
        };
        let mut found = Found::new(number, firing, what);
        if let Some(site) = site {
            found.at(program, site.pc, finding.nth);
        }
        self.suspects.push((maps, found));
    }

    /// The first difference, once all writers of the maps are known. A value read from a map
    /// is a difference only if no other recorded firing can have written it.
    pub fn first(&self, writers: &Writers, may_lack: bool) -> Option<&Found> {
        let proven = self.suspects.iter().filter(|(maps, found)| {
            let at = &found.difference;
            let raced = |map: &MapId| writers.may_race(*map, at.cpu, found.depth);
            !may_lack && !maps.is_empty() && !maps.iter().any(raced)
        });
        let proven = proven.map(|(_, found)| found);
        proven
            .chain(&self.did)
            .min_by_key(|found| found.difference.firing)
    }

    /// Whether outputs, paths and return values equal the kernel's, whatever it read from
    /// maps.
    pub const fn did_the_same(&self) -> bool {
        self.did.is_none()
    }

    /// How often it ran: firings and tail calls; none if never.
    pub fn runs(&self) -> Option<NonZeroU64> {
        NonZeroU64::new(self.firings + self.led_to)
    }

    /// The report on the program.
    pub fn report(
        &self,
        part: &Part,
        ran_on: Option<RanOn>,
        first: Option<FirstDifference>,
        order: Option<String>,
        missing: Option<String>,
    ) -> ProgramReport {
        let verdict = match (&part.form, first) {
            (_, Some(first)) => Verdict::Different(Box::new(first)),
            (Err(silent), _) => Verdict::NotCompared(silent.why()),
            (Ok(_), None) => match (missing, self.runs(), order) {
                (Some(missing), ..) => Verdict::Incomplete(missing),
                (None, None, _) => Verdict::NotCompared(NotCompared::NeverRan),
                (None, Some(_), Some(order)) => Verdict::OrderUnknown(order),
                (None, Some(runs), None) => Verdict::Equal(runs),
            },
        };
        ProgramReport {
            name: part.recorded.name.clone(),
            engine: ran_on.map(|ran_on| ran_on.engine),
            fallback: ran_on.and_then(|ran_on| ran_on.fallback),
            engine_why: None,
            firings: self.firings,
            led_to: self.led_to,
            raced: self.raced,
            missed: self.missed,
            verdict,
        }
    }
}

impl Found {
    fn new(number: u64, firing: &Firing<'_>, what: Different) -> Self {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the low half is the thread's id"
        )]
        let (tgid, pid) = ((firing.pid_tgid >> 32) as u32, firing.pid_tgid as u32);
        Self {
            difference: FirstDifference {
                firing: number,
                cpu: firing.cpu,
                sequence: firing.sequence,
                time: firing.time,
                tgid,
                pid,
                what,
                place: None,
                registers: Vec::new(),
            },
            depth: firing.depth,
            look: None,
        }
    }

    fn of(
        program: &Arc<Program>,
        form: &Form,
        (number, firing): (u64, &Firing<'_>),
        did: Did,
        piece: &Piece<'_>,
    ) -> Self {
        match did {
            Did::Gave(finding) => {
                let what = Different::Given {
                    what: finding.what,
                    expected: finding.expected,
                    got: finding.got,
                };
                let mut found = Self::new(number, firing, what);
                if let Some(site) = form.plan.sites().get(usize::from(finding.site)) {
                    let earlier = piece.earlier(&form.plan, finding.site);
                    found.at(program, site.pc, finding.nth + earlier);
                }
                found
            }
            Did::Went { expected, got } => {
                let place = |pc| Instruction::of(program, pc);
                let got = got.map(|(site, pc, nth)| (pc, nth + piece.earlier(&form.plan, site)));
                let what = Different::Path {
                    expected: expected.map(place).or_else(|| piece.then.0.clone()),
                    got: got
                        .map(|(pc, _)| place(pc))
                        .or_else(|| piece.then.1.clone()),
                };
                let mut found = Self::new(number, firing, what);
                if let Some((pc, nth)) = got {
                    found.at(program, pc, nth);
                }
                found
            }
            Did::Damaged(problem) => {
                let capped = match firing.flags.contains(FiringFlags::OVERFLOW) {
                    true => " (its log was longer than the recorder's buffer)",
                    false => "",
                };
                Self::new(number, firing, Different::Damaged(problem + capped))
            }
        }
    }

    fn at(&mut self, program: &Arc<Program>, pc: Pc, nth: usize) {
        self.difference.place = Some(Instruction::of(program, pc));
        self.look = Some((pc, nth));
    }
}
