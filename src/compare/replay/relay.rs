//! Firings that tail calls take from program to program: each program's piece of the log is
//! held against what the replay of that program did.

use super::difference::Instruction;
use super::pass::Pass;
use super::player::Played;
use super::sent::sent;
use super::stories::Piece;
use crate::instrument::{Begins, Firing, Segment};

impl Pass<'_> {
    /// A firing of a program that makes tail calls was played. What it put out that the
    /// kernel's run could not send comes back, as of [`sent`].
    pub(super) fn relayed(
        &mut self,
        firing: &Firing<'_>,
        number: u64,
        played: &Played<'_>,
    ) -> Vec<bool> {
        let theirs: Vec<_> = self.segments(firing, firing.log);
        let mut all_sent = Vec::new();
        let mut same = true;
        match played {
            Played::Same => {}
            Played::Other { log, returned } => {
                let ours: Vec<_> = self.segments(firing, log);
                let compared = self.compare(firing, number, &theirs, &ours, *returned);
                same = compared.same;
                if self.puts_out {
                    let pairs = theirs.iter().zip(&ours).take(compared.pieces);
                    all_sent = pairs
                        .flat_map(|(their, our)| self.sent(their, our))
                        .collect();
                }
            }
            Played::Stopped(fault) => {
                same = false;
                self.stop(firing, number, fault);
            }
        }
        for (nth, segment) in theirs.iter().enumerate() {
            let Some((place, _)) = self.programs.find(segment.program) else {
                continue;
            };
            let form = self.programs.parts.get(place);
            let form = form.and_then(|part| part.form.as_ref().ok());
            if let (Some(form), Some(story)) = (form, self.stories.get_mut(place)) {
                story.led_to += u64::from(segment.begins == Begins::TookOver);
                let what = (&form.plan, &story.touches);
                let piece = Firing {
                    log: segment.log,
                    ..*firing
                };
                match nth {
                    0 => self.writers.note(place, what, &piece, number, same),
                    _ => self.writers.note_more(place, what, &piece, number, same),
                }
            }
        }
        all_sent
    }

    fn segments<'a>(&self, firing: &Firing<'_>, log: &'a [u8]) -> Vec<Segment<'a>> {
        self.programs.segments(firing.program, log).collect()
    }

    /// Holds the pieces of two logs side by side, as far as both go the same way.
    fn compare(
        &mut self,
        firing: &Firing<'_>,
        number: u64,
        theirs: &[Segment<'_>],
        ours: &[Segment<'_>],
        returned: u64,
    ) -> Compared {
        let programs = self.programs;
        let mut same = true;
        let mut pieces = 0;
        // The first piece of both is the program's whose event fired.
        for (their, our) in theirs.iter().zip(ours) {
            pieces += 1;
            let next = (theirs.get(pieces), ours.get(pieces));
            let found = programs.find(their.program);
            let part = found.and_then(|(place, _)| programs.parts.get(place));
            let (Some((place, _)), Some(part)) = (found, part) else {
                break;
            };
            let (Some(story), Ok(form)) = (self.stories.get_mut(place), &part.form) else {
                break;
            };
            let earlier = ours.iter().take(pieces - 1);
            let earlier: Vec<&[u8]> = earlier
                .filter(|segment| segment.program == our.program)
                .map(|segment| segment.log)
                .collect();
            let first = |segment: Option<&Segment<'_>>| {
                let (part, pc) = programs.first_of(segment?)?;
                Some(Instruction::of(&part.original, pc))
            };
            let piece = Piece {
                log: our.log,
                earlier: &earlier,
                returned: (next == (None, None)).then_some(returned),
                then: (first(next.0), first(next.1)),
            };
            let firing = Firing {
                log: their.log,
                ..*firing
            };
            let told = story.differ((&part.original, form), number, &firing, &piece);
            same &= told.same;
            let goes_on = match next {
                (Some(their), Some(our)) => {
                    their.program == our.program && their.begins == our.begins
                }
                _ => false,
            };
            if !told.parts && !goes_on && next != (None, None) {
                story.part(number, &firing, &piece);
            }
            if told.parts || !goes_on {
                break;
            }
        }
        Compared { same, pieces }
    }

    fn sent(&self, their: &Segment<'_>, our: &Segment<'_>) -> Vec<bool> {
        let found = self.programs.find(their.program);
        let part = found.and_then(|(place, _)| self.programs.parts.get(place));
        let form = part.and_then(|part| Some((part, part.form.as_ref().ok()?)));
        let sent = form.map(|(part, form)| sent(&part.original, &form.plan, their.log, our.log));
        sent.unwrap_or_default()
    }
}

/// What came of a comparison.
struct Compared {
    /// Whether everything was found as in the kernel.
    same: bool,
    /// How many pieces were looked at.
    pieces: usize,
}
