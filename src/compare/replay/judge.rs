//! What is said when a recording was replayed to its end.

use super::contents;
use super::outputs::Stream;
use super::pass::Pass;
use super::player::Deck;
use super::programs::Silent;
use super::stories::Found;
use super::touch::maps_named;
use super::verdict::{MapReport, MapVerdict, Report};
use crate::harness::EngineKind;
use crate::util::MapId;
use crate::vm::Machine;

impl Pass<'_> {
    /// The program that differs first, and how.
    pub fn first(&self) -> Option<(usize, &Found)> {
        let lacks = self.missing.lacks_firings();
        let firsts = self.stories.iter().enumerate();
        let firsts =
            firsts.filter_map(|(place, story)| Some((place, story.first(&self.writers, lacks)?)));
        firsts.min_by_key(|(_, found)| found.difference.firing)
    }

    /// What is said in the end.
    pub fn report(
        &self,
        deck: &mut Deck,
        engine: EngineKind,
        engines: &[Option<EngineKind>],
    ) -> Report {
        let missing = self.missing.lines(self.header);
        let lacks = self.missing.lacks_firings();
        let maps = self.maps(deck.vm.machine());
        let outputs = self.outputs.judge(
            |stream| match stream {
                Stream::Ring(map) | Stream::Perf(map) => self.map_name(map),
                Stream::Printk => "printk".to_owned(),
            },
            |stream| self.unsaid_output(stream),
        );
        let programs = self.stories.iter().zip(&self.programs.parts).zip(engines);
        let programs = programs.map(|((story, part), engine)| {
            let first = story.first(&self.writers, lacks);
            let first = first.map(|found| found.difference.clone());
            let order = maps_named(&part.original).into_iter().find_map(|map| {
                let why = maps
                    .iter()
                    .find(|report| report.name == self.map_name(map))?;
                match &why.verdict {
                    MapVerdict::OrderUnknown { why: text, .. } => {
                        Some(format!("map {}: {text}", why.name))
                    }
                    _ => None,
                }
            });
            let missing = missing.first().filter(|_| lacks).cloned();
            story.report(part, *engine, first, order, missing)
        });
        Report {
            engine,
            programs: programs.collect(),
            maps,
            outputs,
            missing,
        }
    }

    /// What is said of the maps.
    fn maps(&self, machine: &Machine) -> Vec<MapReport> {
        let own = self.programs.maps.maps.iter().take(self.programs.own);
        let read = own.enumerate().filter(|(_, def)| {
            let is_record = contents::is_stream(def);
            !is_record && !def.frozen
        });
        let reports = read.map(|(number, def)| MapReport {
            name: def.name.clone(),
            verdict: self.map(machine, MapId::from_index(number)),
        });
        reports.collect()
    }

    fn map(&self, machine: &Machine, map: MapId) -> MapVerdict {
        let unseen = self
            .programs
            .parts
            .iter()
            .find(|part| part.form.is_err() && maps_named(&part.original).contains(&map));
        if let Some(part) = unseen {
            let name = &part.recorded.name;
            let why = match part.form {
                Err(Silent::Bare) => "no program ran when it was recorded".to_owned(),
                _ => format!("'{name}' uses it, of which there are no firings"),
            };
            return MapVerdict::NotCompared(why);
        }
        let doubt = |key: &[u8]| self.writers.is_doubtful(map, key);
        let (verdict, differing) = self.after.compare(machine, map, doubt);
        let is_equal = match &verdict {
            MapVerdict::Equal(_) => true,
            MapVerdict::Different { .. } => false,
            _ => return verdict,
        };
        if self.missing.lacks_firings() && (!is_equal || differing > 0) {
            return MapVerdict::NotCompared("firings are missing".to_owned());
        }
        match self.writers.unknown(map) {
            Some(why) if is_equal => MapVerdict::OrderUnknown { why, differing },
            _ => verdict,
        }
    }

    fn unsaid_output(&self, stream: Stream) -> Option<String> {
        let map = match stream {
            Stream::Ring(map) | Stream::Perf(map) => Some(map.0),
            Stream::Printk => None,
        };
        let silent = self.programs.parts.iter().find(|part| {
            let uses = || match map {
                Some(map) => maps_named(&part.original).contains(&MapId(map)),
                None => true,
            };
            part.form.is_err() && uses()
        });
        if let Some(part) = silent {
            return Some(format!("there are no firings of '{}'", part.recorded.name));
        }
        let lacks = self.missing.lacks_firings() || self.missing.lacks_outputs(map);
        lacks.then(|| "something is missing".to_owned())
    }
}
