//! A firing's log, cut where one program ends and another goes on.

use super::handover::{Mark, Way};
use super::plan::Plan;

/// A piece of a log that one program wrote, read by its plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment<'a> {
    /// The program's number.
    pub program: u32,
    /// How it came to run.
    pub begins: Begins,
    /// Where in the whole log the piece begins, in bytes.
    pub offset: usize,
    /// Its entries: [`Plan::entries`](super::Plan::entries). Where the log is damaged, all
    /// that is left of it.
    pub log: &'a [u8],
}

/// How a program comes to write to a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begins {
    /// Its event fired.
    Fired,
    /// A tail call led to it.
    TookOver,
    /// What a tail call of one of its functions led to is over.
    WentOn,
}

/// The pieces of a log, front to back.
#[derive(Debug, Clone)]
pub struct Segments<'a, F> {
    plans: F,
    /// What is left, and how much of it was.
    log: &'a [u8],
    len: usize,
    /// What comes next; none at the end.
    next: Option<(u32, Begins)>,
    /// Who goes on, the last one first.
    waiting: Vec<u32>,
}

impl<'a, 'p, F: Fn(u32) -> Option<&'p Plan>> Segments<'a, F> {
    /// Those of a firing of this program; `plans` has the program of each number.
    pub fn new(program: u32, log: &'a [u8], plans: F) -> Self {
        Self {
            plans,
            log,
            len: log.len(),
            next: Some((program, Begins::Fired)),
            waiting: Vec::new(),
        }
    }

    /// Who goes on behind an entry, if that can be.
    fn turn(&mut self, mark: Mark, from: u32) -> Option<(u32, Begins)> {
        match mark {
            Mark::TakenOver { way, program } => {
                (self.plans)(program)?;
                if way == Way::Within {
                    self.waiting.push(from);
                }
                Some((program, Begins::TookOver))
            }
            Mark::GoneBack => Some((self.waiting.pop()?, Begins::WentOn)),
        }
    }
}

impl<'a, 'p, F: Fn(u32) -> Option<&'p Plan>> Iterator for Segments<'a, F> {
    type Item = Segment<'a>;

    fn next(&mut self) -> Option<Segment<'a>> {
        let (program, begins) = self.next.take()?;
        let all = self.log;
        let mut log = all;
        let mut left: &[u8] = &[];
        if let Some(plan) = (self.plans)(program) {
            let mut entries = plan.entries(all);
            loop {
                let rest = entries.rest();
                if let Some((mark, bytes)) = Mark::parse(rest)
                    && let Some(next) = self.turn(mark, program)
                {
                    self.next = Some(next);
                    let at = all.len() - rest.len();
                    log = all.get(..at).unwrap_or_default();
                    left = all.get(at + bytes..).unwrap_or_default();
                    break;
                }
                if !matches!(entries.next(), Some(Ok(_))) {
                    break;
                }
            }
        }
        let offset = self.len - all.len();
        self.log = left;
        Some(Segment {
            program,
            begins,
            offset,
            log,
        })
    }
}
