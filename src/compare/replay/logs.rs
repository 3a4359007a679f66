//! Compares two logs of one firing: the recorded log of the kernel's run, and the replay's.

use crate::instrument::{Entries, Entry, Flow, Plan, Site, What};
use crate::util::Pc;

/// What differs between the logs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Findings {
    /// Inputs that the replay read with another value than the kernel's run: the replay
    /// continued with the recorded value.
    pub found: Vec<Finding>,
    /// The first output or path of the replay that differs.
    pub did: Option<Did>,
}

/// A field with two values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Finding {
    /// The number of the site.
    pub site: u16,
    /// How many entries of that site come before it in the firing.
    pub nth: usize,
    /// Which part.
    pub what: What,
    /// The kernel's.
    pub expected: Vec<u8>,
    /// The replay's.
    pub got: Vec<u8>,
    /// Whether the replay could not continue with the recorded value: its map has no element
    /// to point to. The rest of the firing is not compared then.
    pub lost: bool,
}

/// What a replay did differently.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Did {
    /// It passed out another value.
    Gave(Finding),
    /// It came to another site, or to its end.
    Went {
        /// The instruction of the kernel's run.
        expected: Option<Pc>,
        /// The site of the replay, its instruction, and how many entries of that site come
        /// before.
        got: Option<(u16, Pc, usize)>,
    },
    /// The recorded log can't be read with the program.
    Damaged(String),
}

impl Findings {
    /// The differences between the recorded log and the replay's.
    pub fn between(plan: &Plan, recorded: &[u8], replayed: &[u8]) -> Self {
        let mut findings = Self::default();
        let mut seen = vec![0; plan.sites().len()];
        let (mut theirs, mut ours) = (plan.entries(recorded), plan.entries(replayed));
        while findings.did.is_none() && !findings.is_lost() {
            let (their, our) = (next(&mut theirs), next(&mut ours));
            let (their, our) = match (their, our) {
                (Err(problem), _) => {
                    findings.did = Some(Did::Damaged(problem));
                    break;
                }
                // The last entry was overwritten or cut off: not a site to compare.
                (Ok(their), Err(_)) => (their, None),
                (Ok(their), Ok(our)) => (their, our),
            };
            match (their, our) {
                (None, None) => break,
                (Some(their), Some(our)) if their.site.number == our.site.number => {
                    let nth = count(&mut seen, our.site);
                    findings.compare(their, our, nth);
                }
                (their, our) => {
                    let got = our.map(|our| {
                        let nth = count(&mut seen, our.site);
                        (our.site.number, our.site.pc, nth)
                    });
                    let expected = their.map(|their| their.site.pc);
                    findings.did = Some(Did::Went { expected, got });
                }
            }
        }
        findings
    }

    /// Whether the replay could not continue with a recorded value.
    pub fn is_lost(&self) -> bool {
        self.found.last().is_some_and(|last| last.lost)
    }

    /// Compares two entries of one site.
    fn compare(&mut self, their: Entry<'_>, our: Entry<'_>, nth: usize) {
        for ((field, expected), (_, got)) in their.fields().zip(our.fields()) {
            if expected == got {
                continue;
            }
            let finding = Finding {
                site: their.site.number,
                nth,
                what: field.what,
                expected: expected.to_vec(),
                got: got.to_vec(),
                lost: field.what == What::Found && got == [0],
            };
            match field.flow {
                Flow::Input => self.found.push(finding),
                Flow::Output => {
                    self.did = Some(Did::Gave(finding));
                    return;
                }
            }
        }
    }
}

fn next<'a>(entries: &mut Entries<'a>) -> Result<Option<Entry<'a>>, String> {
    entries
        .next()
        .transpose()
        .map_err(|error| error.to_string())
}

/// Counts an entry of a site; returns how many came before.
fn count(seen: &mut [usize], site: &Site) -> usize {
    match seen.get_mut(usize::from(site.number)) {
        Some(count) => {
            *count += 1;
            *count - 1
        }
        None => 0,
    }
}
