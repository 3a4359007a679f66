//! Firings that tail calls take from program to program: each program's piece of the log is
//! held against what the replay of that program did.

use super::difference::Instruction;
use super::pass::Pass;
use super::player::Played;
use super::sent::sent;
use super::stories::{self, Told};
use super::writers::Strayed;
use crate::instrument::{Begins, Firing, Segment};

impl Pass<'_> {
    /// A firing of a program that makes tail calls was played. What it put out that the
    /// kernel's run could not send comes back, as of [`sent`].
    pub(super) fn relayed(
        &mut self,
        firing: &Firing<'_>,
        ended: u64,
        number: u64,
        played: &Played<'_>,
    ) -> Vec<bool> {
        let theirs = self.segments(firing, firing.log);
        let (ours, told) = match played {
            Played::Same => (Vec::new(), Vec::new()),
            Played::Other { log, returned } => {
                let ours = self.segments(firing, log);
                let told = self.compare(firing, number, &theirs, &ours, *returned);
                (ours, told)
            }
            Played::Stopped(fault) => {
                self.stop(firing, number, fault);
                (Vec::new(), Vec::new())
            }
        };
        let mut all_sent = Vec::new();
        if self.puts_out {
            let pairs = theirs.iter().zip(&ours).take(told.len());
            all_sent = pairs
                .flat_map(|(their, our)| self.sent(their, our))
                .collect();
        }
        for segment in &theirs {
            let is_led_to = segment.begins == Begins::TookOver;
            let found = self.programs.find(segment.program);
            if let Some((place, _)) = found.filter(|_| is_led_to)
                && let Some(story) = self.stories.get_mut(place)
            {
                story.led_to += 1;
            }
        }
        self.note(firing, ended, &theirs, &ours, told);
        all_sent
    }

    /// Notes what the programs wrote to maps: all that the kernel's run did, and what the
    /// replay did once it had lost its way.
    fn note(
        &mut self,
        firing: &Firing<'_>,
        ended: u64,
        theirs: &[Segment<'_>],
        ours: &[Segment<'_>],
        told: Vec<Told>,
    ) {
        let parted = told.iter().any(|told| told.parts).then_some(told.len());
        let mut told = told.into_iter();
        self.writers.begin(firing, ended);
        for (nth, segment) in theirs.iter().enumerate() {
            if parted == Some(nth) {
                self.writers.stray();
            }
            let strayed = told.next().and_then(|told| told.strayed);
            let our = ours.get(nth).map_or(&[][..], |our| our.log);
            self.note_one(segment, &strayed.unwrap_or_default(), our);
        }
        if let Some(parted) = parted {
            self.writers.stray();
            for segment in ours.iter().skip(parted) {
                self.note_one(segment, &Strayed::default(), &[]);
            }
        }
    }

    fn note_one(&mut self, segment: &Segment<'_>, strayed: &Strayed, our: &[u8]) {
        let found = self.programs.find(segment.program);
        let part = found.and_then(|(place, _)| Some((place, self.programs.parts.get(place)?)));
        let Some((place, part)) = part else {
            return;
        };
        if let (Ok(form), Some(story)) = (&part.form, self.stories.get(place)) {
            let what = (&form.plan, &story.touches);
            self.writers
                .note(place, what, segment.log, Some((strayed, our)));
        }
    }

    fn segments<'a>(&self, firing: &Firing<'_>, log: &'a [u8]) -> Vec<Segment<'a>> {
        self.programs.segments(firing.program, log).collect()
    }

    /// Holds the pieces of two logs side by side, as far as both go the same way: what was told
    /// of each pair.
    fn compare(
        &mut self,
        firing: &Firing<'_>,
        number: u64,
        theirs: &[Segment<'_>],
        ours: &[Segment<'_>],
        returned: u64,
    ) -> Vec<Told> {
        let programs = self.programs;
        let mut all = Vec::new();
        // The first piece of both is the program's whose event fired.
        for (nth, (their, our)) in theirs.iter().zip(ours).enumerate() {
            let next = (theirs.get(nth + 1), ours.get(nth + 1));
            let found = programs.find(their.program);
            let part = found.and_then(|(place, _)| programs.parts.get(place));
            let (Some((place, _)), Some(part)) = (found, part) else {
                break;
            };
            let (Some(story), Ok(form)) = (self.stories.get_mut(place), &part.form) else {
                break;
            };
            let earlier = ours.iter().take(nth);
            let earlier: Vec<&[u8]> = earlier
                .filter(|segment| segment.program == our.program)
                .map(|segment| segment.log)
                .collect();
            let first = |segment: Option<&Segment<'_>>| {
                let (part, pc) = programs.first_of(segment?)?;
                Some(Instruction::of(&part.original, pc))
            };
            let piece = stories::Piece {
                log: our.log,
                earlier: &earlier,
                returned: (next == (None, None)).then_some(returned),
                then: (first(next.0), first(next.1)),
            };
            let firing = Firing {
                log: their.log,
                ..*firing
            };
            let mut told = story.differ((&part.original, form), number, &firing, &piece);
            let goes_on = match next {
                (Some(their), Some(our)) => {
                    their.program == our.program && their.begins == our.begins
                }
                (their, our) => their == our,
            };
            if !told.parts && !goes_on {
                story.part(number, &firing, &piece);
                told.parts = true;
            }
            let is_over = told.parts;
            all.push(told);
            if is_over {
                break;
            }
        }
        all
    }

    fn sent(&self, their: &Segment<'_>, our: &Segment<'_>) -> Vec<bool> {
        let found = self.programs.find(their.program);
        let part = found.and_then(|(place, _)| self.programs.parts.get(place));
        let form = part.and_then(|part| Some((part, part.form.as_ref().ok()?)));
        let sent = form.map(|(part, form)| sent(&part.original, &form.plan, their.log, our.log));
        sent.unwrap_or_default()
    }
}
