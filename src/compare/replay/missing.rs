//! What is missing from a recording, as text.

use std::collections::BTreeMap;

use crate::compare::recording::{Cause, CutOff, Header, Loss};

/// What is missing from a recording: with any of it, a verdict is incomplete.
#[derive(Debug, Default)]
pub(super) struct Missing {
    losses: BTreeMap<(Cause, Option<u32>), u64>,
    others: Vec<String>,
}

impl Missing {
    /// Adds a recorded loss. A run that the kernel skipped is none.
    pub fn loss(&mut self, loss: &Loss) {
        if loss.cause != Cause::Missed {
            *self.losses.entry((loss.cause, loss.of)).or_default() += loss.count;
        }
    }

    /// Adds that the file ends too early.
    pub fn cut_off(&mut self, at: &CutOff) {
        self.add(format!("the recording is {at}"));
    }

    /// Adds something else, in words.
    pub fn add(&mut self, what: String) {
        if !self.others.contains(&what) {
            self.others.push(what);
        }
    }

    /// Whether outputs of a map were lost, or printed lines if `map` is none.
    pub fn lacks_outputs(&self, map: Option<u32>) -> bool {
        self.losses.keys().any(|(cause, of)| match cause {
            Cause::PerfFull | Cause::TooLong => of.is_none() || *of == map,
            Cause::PrintkFull => map.is_none(),
            Cause::Damaged => true,
            _ => false,
        })
    }

    /// Whether firings are missing, so that the replay's maps may differ.
    pub fn lacks_firings(&self) -> bool {
        let of_firings = |cause: &Cause| {
            let others = [Cause::PerfFull, Cause::PrintkFull, Cause::SampleFull];
            !others.contains(cause)
        };
        !self.others.is_empty() || self.losses.keys().any(|(cause, _)| of_firings(cause))
    }

    /// Everything that is missing, a line each.
    pub fn lines(&self, header: &Header) -> Vec<String> {
        let losses = self.losses.iter().map(|((cause, of), count)| {
            let name = of.and_then(|of| name(header, *cause, of));
            match name {
                Some(name) => format!("{count} lost of {name}: {cause}"),
                None => format!("{count} lost: {cause}"),
            }
        });
        losses.chain(self.others.iter().cloned()).collect()
    }
}

/// The name of the program or map that a loss is of.
fn name(header: &Header, cause: Cause, of: u32) -> Option<String> {
    let program = || {
        let mut programs = header.programs.iter();
        programs
            .find(|program| program.number == of)
            .map(|program| program.name.clone())
    };
    let map = || {
        let mut maps = header.maps.iter();
        maps.find(|map| map.number == of)
            .map(|map| map.name.clone())
    };
    match cause {
        Cause::LogFull | Cause::TooDeep | Cause::RingFull | Cause::Missed => program(),
        Cause::PerfFull | Cause::TooLong => map(),
        _ => None,
    }
}
