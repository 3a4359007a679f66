//! Firings with tail calls: each program's segment of the recorded log is compared with the
//! segment that the replay of that program wrote.

use super::comparison::{Compared, Piece};
use super::difference::Instruction;
use super::pass::Pass;
use super::replay_vm::FiringResult;
use super::sent::sent;
use super::writers::Strayed;
use crate::instrument::{Begins, Firing, Segment};

impl Pass<'_> {
    /// Compares a replayed firing of a program that makes tail calls. Returns which of its
    /// outputs the kernel's run sent, too, as [`sent`] does.
    pub(super) fn relayed(
        &mut self,
        firing: &Firing<'_>,
        ended: u64,
        number: u64,
        result: &FiringResult<'_>,
    ) -> Vec<bool> {
        let theirs = self.segments(firing, firing.log);
        let (ours, compared) = match result {
            FiringResult::Same => (Vec::new(), Vec::new()),
            FiringResult::Differs { log, returned } => {
                let ours = self.segments(firing, log);
                let compared = self.compare(firing, number, &theirs, &ours, *returned);
                (ours, compared)
            }
            FiringResult::Faulted(fault) => {
                self.fault(firing, number, fault);
                (Vec::new(), Vec::new())
            }
        };
        let mut all_sent = Vec::new();
        if self.puts_out {
            let pairs = theirs.iter().zip(&ours).take(compared.len());
            all_sent = pairs
                .flat_map(|(their, our)| self.sent(their, our))
                .collect();
        }
        for segment in &theirs {
            let is_led_to = segment.begins == Begins::TookOver;
            let found = self.programs.find(segment.program);
            if let Some((place, _)) = found.filter(|_| is_led_to)
                && let Some(comparison) = self.comparisons.get_mut(place)
            {
                comparison.led_to += 1;
            }
        }
        self.note(firing, ended, &theirs, &ours, compared);
        all_sent
    }

    /// Notes the writes to maps: those of the kernel's run, and those of the replay after the
    /// two diverged.
    fn note(
        &mut self,
        firing: &Firing<'_>,
        ended: u64,
        theirs: &[Segment<'_>],
        ours: &[Segment<'_>],
        compared: Vec<Compared>,
    ) {
        let has_diverged = compared.iter().any(|compared| compared.diverged);
        let diverged_at = has_diverged.then_some(compared.len());
        let mut compared = compared.into_iter();
        self.writers.begin(firing, ended);
        for (nth, segment) in theirs.iter().enumerate() {
            if diverged_at == Some(nth) {
                self.writers.stray();
            }
            let strayed = compared.next().and_then(|compared| compared.strayed);
            let our = ours.get(nth).map_or(&[][..], |our| our.log);
            self.note_one(segment, &strayed.unwrap_or_default(), our);
        }
        if let Some(diverged_at) = diverged_at {
            self.writers.stray();
            for segment in ours.iter().skip(diverged_at) {
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
        if let (Ok(form), Some(comparison)) = (&part.form, self.comparisons.get(place)) {
            let what = (&form.plan, &comparison.touches);
            self.writers
                .note(place, what, segment.log, Some((strayed, our)));
        }
    }

    fn segments<'a>(&self, firing: &Firing<'_>, log: &'a [u8]) -> Vec<Segment<'a>> {
        self.programs.segments(firing.program, log).collect()
    }

    /// Compares the segments of two logs pair by pair, up to the pair in which they diverge.
    fn compare(
        &mut self,
        firing: &Firing<'_>,
        number: u64,
        theirs: &[Segment<'_>],
        ours: &[Segment<'_>],
        returned: u64,
    ) -> Vec<Compared> {
        let programs = self.programs;
        let mut all = Vec::new();
        // The first segment of both is that of the program that fired.
        for (nth, (their, our)) in theirs.iter().zip(ours).enumerate() {
            let next = (theirs.get(nth + 1), ours.get(nth + 1));
            let found = programs.find(their.program);
            let part = found.and_then(|(place, _)| programs.parts.get(place));
            let (Some((place, _)), Some(part)) = (found, part) else {
                break;
            };
            let (Some(comparison), Ok(form)) = (self.comparisons.get_mut(place), &part.form) else {
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
            let program = (&part.original, form);
            let mut compared = comparison.differ(program, number, &firing, &piece);
            let goes_on = match next {
                (Some(their), Some(our)) => {
                    their.program == our.program && their.begins == our.begins
                }
                (their, our) => their == our,
            };
            if !compared.diverged && !goes_on {
                comparison.diverge(number, &firing, &piece);
                compared.diverged = true;
            }
            let is_over = compared.diverged;
            all.push(compared);
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
