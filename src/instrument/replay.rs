//! The replay form of a program.

use super::error::{Reason, Unrecordable};
use super::plan::Plan;
use super::replay_maps::ReplayMaps;
use crate::program::Program;
use crate::util::Pc;

/// A program's replay form, and where its instructions came to stand.
#[derive(Debug, Clone)]
pub struct ReplayForm {
    /// What runs.
    pub program: Program,
    /// By original instruction, where it is now, or what stands for it.
    places: Vec<Option<Pc>>,
}

impl ReplayForm {
    /// Where an instruction of the original program is now, or what stands for it.
    #[must_use]
    pub fn place(&self, pc: Pc) -> Option<Pc> {
        *self.places.get(pc.index())?
    }

    /// The last instruction of the original program that stands here or before.
    #[must_use]
    pub fn original(&self, pc: Pc) -> Option<Pc> {
        let numbered = self.places.iter().enumerate();
        let before = numbered.filter(|(_, place)| place.is_some_and(|place| place <= pc));
        before.last().map(|(original, _)| Pc::from_index(original))
    }
}

impl Plan {
    /// The replay form.
    ///
    /// # Errors
    /// [`Unrecordable`] when there is no room for what has to be added.
    pub fn replay(&self, added: &ReplayMaps) -> Result<Program, Unrecordable> {
        self.replay_form(added).map(|form| form.program)
    }

    /// The same, with the places of its instructions.
    ///
    /// # Errors
    /// As of [`replay`](Self::replay).
    pub fn replay_form(&self, added: &ReplayMaps) -> Result<ReplayForm, Unrecordable> {
        let _ = added;
        Err(Unrecordable {
            program: String::new(),
            pc: None,
            reason: Reason::Instruction("no replay form yet"),
        })
    }
}
