//! What a replay of a batch says of one of its programs: of itself, of its maps, and of
//! what it put out.

use super::batch::{Recipe, belongs_to};
use crate::compare::replay::{
    MapReport, MapVerdict, OutputReport, OutputVerdict, ProgramReport, Report, Word,
};

/// What is said of one program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replayed {
    /// Of the program itself.
    pub program: ProgramReport,
    /// Of its maps, those that are not equal.
    pub maps: Vec<MapReport>,
    /// Of what it put out, where that is not equal.
    pub outputs: Vec<OutputReport>,
}

impl Replayed {
    /// What a report says of a program, which was made by this recipe.
    pub(super) fn of(report: &Report, program: &ProgramReport, recipe: Recipe) -> Self {
        let is_own = |name: &str, word: Word| word != Word::Equal && belongs_to(name, recipe);
        let maps = report.maps.iter();
        let outputs = report.outputs.iter();
        Self {
            program: program.clone(),
            maps: maps
                .filter(|map| is_own(&map.name, map.verdict.word()))
                .cloned()
                .collect(),
            outputs: outputs
                .filter(|output| is_own(&output.name, output.verdict.word()))
                .cloned()
                .collect(),
        }
    }

    /// Why parts of it were not compared: of each map and output that was not.
    pub fn not_compared(&self) -> impl Iterator<Item = String> {
        let maps = self.maps.iter().filter_map(|map| match &map.verdict {
            MapVerdict::NotCompared(why) => Some(format!("a map: {why}")),
            _ => None,
        });
        let outputs = self.outputs.iter();
        let outputs = outputs.filter_map(|output| match &output.verdict {
            OutputVerdict::NotCompared(why) => Some(format!("an output: {why}")),
            _ => None,
        });
        maps.chain(outputs)
    }

    /// The verdict on all of it.
    #[must_use]
    pub fn word(&self) -> Word {
        let maps = self.maps.iter().map(|map| map.verdict.word());
        let outputs = self.outputs.iter().map(|output| output.verdict.word());
        Word::whole([self.program.verdict.word()], maps.chain(outputs))
    }
}
