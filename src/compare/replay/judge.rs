//! What is said when a recording was replayed to its end.

use super::contents::is_output;
use super::outputs::Stream;
use super::pass::Pass;
use super::player::Deck;
use super::programs::{Part, Silent};
use super::sent::prints;
use super::stories::{Found, Story};
use super::touch::{maps_named, maps_used};
use super::verdict::{MapReport, MapVerdict, NotCompared, ProgramReport, Report, Verdict};
use crate::compare::recording::LeftOut;
use crate::harness::{EngineKind, RanOn};
use crate::spec::MapType;
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
    pub fn report(&self, deck: &mut Deck, engine: EngineKind, engines: &[Option<RanOn>]) -> Report {
        let missing = self.missing.lines(self.header);
        let lacks = self.missing.lacks_firings();
        let maps = self.maps(deck.vm.machine());
        let outputs = self.outputs.judge(
            |stream| match stream {
                Stream::Ring(map) | Stream::Perf(map) => self.map_name(map),
                Stream::Printk => "printk".to_owned(),
            },
            |stream| self.unsaid_output(stream),
            self.silent_streams(),
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
            programs: programs.chain(left_out(&self.left_out)).collect(),
            maps,
            outputs,
            missing,
        }
    }

    /// What is said of the maps.
    fn maps(&self, machine: &Machine) -> Vec<MapReport> {
        let own = self.programs.maps.maps.iter().take(self.programs.own);
        let read = own.enumerate().filter(|(_, def)| {
            // Records are compared as outputs; data that is read only was held against the
            // recording's when the maps were made.
            !is_output(def) && !def.frozen
        });
        let reports = read.filter_map(|(number, def)| {
            let map = MapId::from_index(number);
            let verdict = self.map(machine, map);
            // Where others of its programs were not asked for, what they alone use is no part
            // of the comparison.
            let is_asked_for = self.users(map).next().is_some() || !self.left_out.is_empty();
            let is_compared = !matches!(verdict, MapVerdict::NotCompared(_));
            (is_asked_for || is_compared).then(|| MapReport {
                name: def.name.clone(),
                verdict,
            })
        });
        reports.collect()
    }

    /// The programs that may use a map, with their stories.
    fn users(&self, map: MapId) -> impl Iterator<Item = (&Part, &Story)> {
        let parts = self.programs.parts.iter().zip(&self.stories);
        parts.filter(move |(part, _)| maps_used(&part.original).contains(&map))
    }

    fn map(&self, machine: &Machine, map: MapId) -> MapVerdict {
        let silent = self.users(map).find_map(|(part, _)| {
            let silent = part.form.as_ref().err()?;
            Some((silent, &part.recorded.name))
        });
        if let Some((silent, name)) = silent {
            return MapVerdict::NotCompared(match silent {
                Silent::Bare => silent.why().to_string(),
                Silent::OutputsOnly(_) => {
                    format!("'{name}' uses it, of which there are no firings")
                }
            });
        }
        let doubt = |key: &[u8]| self.writers.is_doubtful(map, key);
        let (mut verdict, differing) = self.contents.compare(machine, map, doubt);
        let is_equal = match &mut verdict {
            MapVerdict::Equal(_) => true,
            MapVerdict::Different { is_outside, .. } => {
                *is_outside = self.users(map).all(|(_, story)| story.did_the_same());
                false
            }
            _ => return verdict,
        };
        if self.missing.lacks_firings() && (!is_equal || differing > 0) {
            return MapVerdict::NotCompared("firings are missing".to_owned());
        }
        if is_equal && self.is_idle(map) {
            return MapVerdict::NotCompared("no program that uses it ran".to_owned());
        }
        match self.writers.unknown(map) {
            Some(why) if is_equal => MapVerdict::OrderUnknown { why, differing },
            _ => verdict,
        }
    }

    /// Whether no program ran that may use a map. One that no program of the object uses holds
    /// what it should whoever runs.
    fn is_idle(&self, map: MapId) -> bool {
        let ran = |story: &Story| story.runs().is_some();
        let mut users = self.users(map).peekable();
        match users.peek() {
            Some(_) => !users.any(|(_, story)| ran(story)),
            None => !self.left_out.is_empty() || !self.stories.iter().any(ran),
        }
    }

    /// The streams of programs of which there are no firings: nobody knows what a replay of
    /// them would put out.
    fn silent_streams(&self) -> Vec<Stream> {
        let silent = self.programs.parts.iter().filter(|part| part.form.is_err());
        let streams = silent.flat_map(|part| {
            let maps = maps_used(&part.original).into_iter();
            let maps = maps.filter_map(|map| {
                let def = part.original.map(map)?;
                match def.map_type {
                    MapType::Ringbuf => Some(Stream::Ring(map)),
                    MapType::PerfEventArray => Some(Stream::Perf(map)),
                    _ => None,
                }
            });
            maps.chain(prints(&part.original).then_some(Stream::Printk))
        });
        streams.collect()
    }

    fn unsaid_output(&self, stream: Stream) -> Option<String> {
        let map = match stream {
            Stream::Ring(map) | Stream::Perf(map) => Some(map),
            Stream::Printk => None,
        };
        let silent = self.programs.parts.iter().find(|part| {
            let uses = || match map {
                Some(map) => maps_used(&part.original).contains(&map),
                None => prints(&part.original),
            };
            part.form.is_err() && uses()
        });
        if let Some(part) = silent {
            return Some(format!("there are no firings of '{}'", part.recorded.name));
        }
        let lacks =
            self.missing.lacks_firings() || self.missing.lacks_outputs(map.map(|map| map.0));
        lacks.then(|| "something is missing".to_owned())
    }
}

/// What is said of programs that were not recorded.
fn left_out(programs: &[LeftOut]) -> impl Iterator<Item = ProgramReport> {
    programs.iter().map(|left| ProgramReport {
        name: left.program.clone(),
        engine: None,
        fallback: None,
        engine_why: None,
        firings: 0,
        led_to: 0,
        raced: 0,
        missed: 0,
        verdict: Verdict::NotCompared(NotCompared::LeftOut(left.why.clone())),
    })
}
