//! Makes the report after a recording was replayed to its end.

use super::comparison::{Found, ProgramComparison};
use super::contents::is_output;
use super::outputs::Stream;
use super::pass::Pass;
use super::programs::{Part, Silent};
use super::replay_vm::ReplayVm;
use super::sent::prints;
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
        let firsts = self.comparisons.iter().enumerate();
        let firsts =
            firsts.filter_map(|(program, own)| Some((program, own.first(&self.writers, lacks)?)));
        firsts.min_by_key(|(_, found)| found.difference.firing)
    }

    /// The report.
    pub fn report(
        &self,
        replay_vm: &mut ReplayVm,
        engine: EngineKind,
        engines: &[Option<RanOn>],
    ) -> Report {
        let missing = self.missing.lines(self.header);
        let lacks = self.missing.lacks_firings();
        let maps = self.maps(replay_vm.vm.machine());
        let outputs = self.outputs.judge(
            |stream| match stream {
                Stream::Ring(map) | Stream::Perf(map) => self.map_name(map),
                Stream::Printk => "printk".to_owned(),
            },
            |stream| self.why_not_compared(stream),
            self.silent_streams(),
        );
        let programs = self
            .comparisons
            .iter()
            .zip(&self.programs.parts)
            .zip(engines);
        let programs = programs.map(|((comparison, part), engine)| {
            let first = comparison.first(&self.writers, lacks);
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
            comparison.report(part, *engine, first, order, missing)
        });
        Report {
            engine,
            programs: programs.chain(left_out(&self.left_out)).collect(),
            maps,
            outputs,
            findings: Vec::new(),
            missing,
        }
    }

    /// The reports on maps.
    fn maps(&self, machine: &Machine) -> Vec<MapReport> {
        let own = self.programs.maps.maps.iter().take(self.programs.own);
        let read = own.enumerate().filter(|(_, def)| {
            // Records are compared as outputs. Read-only data was compared with the header
            // when the object was opened.
            !is_output(def) && !def.frozen
        });
        let reports = read.filter_map(|(number, def)| {
            let map = MapId::from_index(number);
            let verdict = self.map(machine, map);
            // A map that only programs use which were not asked for is no part of the
            // comparison.
            let is_asked_for = self.users(map).next().is_some() || !self.left_out.is_empty();
            let is_compared = !matches!(verdict, MapVerdict::NotCompared(_));
            (is_asked_for || is_compared).then(|| MapReport {
                name: def.name.clone(),
                verdict,
            })
        });
        reports.collect()
    }

    /// The programs that may use a map.
    fn users(&self, map: MapId) -> impl Iterator<Item = (&Part, &ProgramComparison)> {
        let parts = self.programs.parts.iter().zip(&self.comparisons);
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
                _ => format!("program '{name}' uses it and {}", silent.lack()),
            });
        }
        let doubt = |key: &[u8]| self.writers.is_doubtful(map, key);
        let (mut verdict, differing) = self.contents.compare(machine, map, doubt);
        let is_equal = match &mut verdict {
            MapVerdict::Equal(_) => true,
            MapVerdict::Different { is_outside, .. } => {
                *is_outside = self
                    .users(map)
                    .all(|(_, comparison)| comparison.did_the_same());
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

    /// Whether no program that may use a map ran. For a map that none uses: whether programs
    /// were left out, or none ran at all.
    fn is_idle(&self, map: MapId) -> bool {
        let ran = |comparison: &ProgramComparison| comparison.runs().is_some();
        let mut users = self.users(map).peekable();
        match users.peek() {
            Some(_) => !users.any(|(_, comparison)| ran(comparison)),
            None => !self.left_out.is_empty() || !self.comparisons.iter().any(ran),
        }
    }

    /// The streams of programs without recorded firings: their outputs can't be compared.
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

    /// Why a stream can't be compared.
    fn why_not_compared(&self, stream: Stream) -> Option<String> {
        let map = match stream {
            Stream::Ring(map) | Stream::Perf(map) => Some(map),
            Stream::Printk => None,
        };
        let silent = self.programs.parts.iter().find_map(|part| {
            let silent = part.form.as_ref().err()?;
            let uses = match map {
                Some(map) => maps_used(&part.original).contains(&map),
                None => prints(&part.original),
            };
            uses.then_some((silent, &part.recorded.name))
        });
        if let Some((silent, name)) = silent {
            return Some(format!("program '{name}' {}", silent.lack()));
        }
        let lacks =
            self.missing.lacks_firings() || self.missing.lacks_outputs(map.map(|map| map.0));
        lacks.then(|| "part of the recording is missing".to_owned())
    }
}

/// Reports on programs that were not recorded.
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
