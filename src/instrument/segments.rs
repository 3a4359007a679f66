//! Splits a firing's log where a tail call continues in another program.

use super::handover::{TailCallEntry, Way};
use super::plan::Plan;

/// A part of a log that one program wrote, read by its plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment<'a> {
    /// The program's number.
    pub program: u32,
    /// How the program came to write it.
    pub begins: Begins,
    /// Offset of the segment in the whole log, in bytes.
    pub offset: usize,
    /// Its entries: [`Plan::entries`](super::Plan::entries). If the log is damaged, the rest of
    /// it.
    pub log: &'a [u8],
}

/// How a program comes to write to a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begins {
    /// Its event fired.
    Fired,
    /// A tail call led to it.
    TookOver,
    /// The target of its subprogram's tail call has ended.
    WentOn,
}

/// The segments of a log, in order.
#[derive(Debug, Clone)]
pub struct Segments<'a, F> {
    plans: F,
    /// The rest of the log, and the length of the whole.
    log: &'a [u8],
    len: usize,
    /// The next segment's program; none at the end.
    next: Option<(u32, Begins)>,
    /// Programs that continue later, the last one first.
    waiting: Vec<u32>,
}

impl<'a, 'p, F: Fn(u32) -> Option<&'p Plan>> Segments<'a, F> {
    /// The segments of a firing of this program; `plans` maps numbers to plans.
    pub fn new(program: u32, log: &'a [u8], plans: F) -> Self {
        Self {
            plans,
            log,
            len: log.len(),
            next: Some((program, Begins::Fired)),
            waiting: Vec::new(),
        }
    }

    /// The program that continues after an entry, if the entry is valid.
    fn turn(&mut self, entry: TailCallEntry, from: u32) -> Option<(u32, Begins)> {
        match entry {
            TailCallEntry::TakenOver { way, program } => {
                (self.plans)(program)?;
                if way == Way::Within {
                    self.waiting.push(from);
                }
                Some((program, Begins::TookOver))
            }
            TailCallEntry::GoneBack => Some((self.waiting.pop()?, Begins::WentOn)),
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
                if let Some((entry, bytes)) = TailCallEntry::parse(rest)
                    && let Some(next) = self.turn(entry, program)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::assemble;
    use crate::program::Program;
    use crate::spec::ProgType;

    /// A program with one site of eight bytes.
    fn plan() -> Plan {
        let insns = assemble("call 5\n r0 = 0\n exit").unwrap();
        Plan::new(&Program::new("test", ProgType::Kprobe, insns)).unwrap()
    }

    const ENTRY: [u8; 10] = [0, 0, 1, 2, 3, 4, 5, 6, 7, 8];
    const BACK: [u8; 2] = [0xfd, 0xff];

    fn over(way: u8, program: u8) -> [u8; 8] {
        [0xfe, 0xff, way, 0, program, 0, 0, 0]
    }

    fn cut(log: &[u8]) -> Vec<(u32, Begins, usize, usize)> {
        let plan = plan();
        let segments = Segments::new(0, log, |number| (number < 3).then_some(&plan));
        let pieces = segments.map(|it| (it.program, it.begins, it.offset, it.log.len()));
        pieces.collect()
    }

    #[test]
    fn pieces_are_those_of_one_program_after_the_other() {
        use Begins::{Fired, TookOver, WentOn};
        assert_eq!(cut(&[]), [(0, Fired, 0, 0)]);
        assert_eq!(cut(&ENTRY), [(0, Fired, 0, 10)]);
        let log = [&ENTRY[..], &over(1, 1), &over(0, 2), &ENTRY, &BACK, &ENTRY].concat();
        assert_eq!(
            cut(&log),
            [
                (0, Fired, 0, 10),
                (1, TookOver, 18, 0),
                // It was entered in place of 1, so it returns to 0, as 1 would.
                (2, TookOver, 26, 10),
                (0, WentOn, 38, 10),
            ]
        );
    }

    #[test]
    fn what_makes_no_sense_is_left_in_one_piece() {
        use Begins::{Fired, TookOver};
        let back_to_nobody = [&ENTRY[..], &BACK].concat();
        assert_eq!(cut(&back_to_nobody), [(0, Fired, 0, 12)]);
        let nobody = [&ENTRY[..], &over(0, 3), &ENTRY].concat();
        assert_eq!(cut(&nobody), [(0, Fired, 0, 28)]);
        let short = [&over(0, 1)[..], &ENTRY[..9]].concat();
        assert_eq!(cut(&short), [(0, Fired, 0, 0), (1, TookOver, 8, 9)]);
        let plan = plan();
        let damaged = |log: &[u8]| plan.entries(log).find_map(Result::err);
        assert!(damaged(&back_to_nobody).is_some() && damaged(&nobody).is_some());
    }
}
