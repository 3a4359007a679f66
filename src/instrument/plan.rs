//! The analysis of a program, from which both of its forms are made.

use super::entries::Entries;
use super::error::{Reason, Unrecordable};
use super::maps::{RecordMaps, RecordOptions};
use super::site::Site;
use crate::program::Program;

/// What is known of a program that can be recorded: its sites, and what the two forms need
/// to know to be made.
#[derive(Debug, Clone)]
pub struct Plan {
    program: Program,
    sites: Vec<Site>,
}

impl Plan {
    /// Analyses a program.
    ///
    /// # Errors
    /// [`Unrecordable`] when it does something that can't be recorded and replayed.
    pub fn new(program: &Program) -> Result<Self, Unrecordable> {
        Err(Unrecordable {
            program: program.name.clone(),
            pc: None,
            reason: Reason::Instruction("not analysed yet"),
        })
    }

    /// What the program takes and gives, by number.
    #[must_use]
    pub fn sites(&self) -> &[Site] {
        &self.sites
    }

    /// The recorded form: does the same, for those that it is to be recorded for, and
    /// leaves a [`Firing`](super::Firing) in the ring buffer.
    ///
    /// # Errors
    /// [`Unrecordable`] when there is no room for what has to be added.
    pub fn record(
        &self,
        added: &RecordMaps,
        options: &RecordOptions,
    ) -> Result<Program, Unrecordable> {
        let mut program = self.program.clone();
        program.maps = added.maps.clone();
        let _ = options;
        Ok(program)
    }

    /// The entries of a firing's log.
    #[must_use]
    pub fn entries<'a>(&'a self, log: &'a [u8]) -> Entries<'a> {
        Entries::new(&self.sites, log)
    }
}
