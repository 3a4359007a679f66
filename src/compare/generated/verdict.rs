//! The part of a batch's replay report about one program, its maps and its outputs.

use super::batch::{Recipe, belongs_to};
use crate::compare::replay::{
    MapReport, MapVerdict, OutputReport, OutputVerdict, ProgramReport, Report, Word,
};

/// The report on one program.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Replayed {
    /// The program.
    pub program: ProgramReport,
    /// Its maps that are not equal.
    pub maps: Vec<MapReport>,
    /// Its outputs that are not equal.
    pub outputs: Vec<OutputReport>,
}

impl Replayed {
    /// The part of a report about a program with this recipe.
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

    /// The reason for each map and output that was not compared.
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

    /// The verdict on program, maps and outputs together.
    #[must_use]
    pub fn word(&self) -> Word {
        let maps = self.maps.iter().map(|map| map.verdict.word());
        let outputs = self.outputs.iter().map(|output| output.verdict.word());
        Word::whole([self.program.verdict.word()], maps.chain(outputs))
    }
}
