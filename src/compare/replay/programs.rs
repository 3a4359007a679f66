//! The programs of a recording, found in the object by their instructions.

use std::sync::Arc;

use super::error::ReplayError;
use crate::compare::recording::{Header, How, RecordedProgram};
use crate::instrument::{Plan, ReplayForm, ReplayMaps};
use crate::object::Object;
use crate::program::{MapDef, Program};
use crate::util::Pc;

/// A program of a recording.
#[derive(Debug)]
pub(super) struct Part {
    /// What the recording says of it.
    pub recorded: RecordedProgram,
    /// As it was compiled.
    pub original: Arc<Program>,
    /// How its firings are replayed; or why they are not.
    pub form: Result<Form, Silent>,
}

/// How a program is replayed.
#[derive(Debug)]
pub(super) struct Form {
    /// What its logs mean.
    pub plan: Plan,
    /// What runs.
    pub program: Arc<Program>,
    /// Where its instructions came to stand.
    replayed: ReplayForm,
}

/// Why there are no firings of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Silent {
    /// It could not be rewritten: only its outputs were recorded.
    OutputsOnly(String),
    /// It did not run.
    Bare,
}

/// Numbers of programs are below this. Some may be missing: a recorder numbers all of an
/// object's, and leaves out those that the kernel has no place for.
const NUMBERS: usize = 1 << 16;

/// The programs of a recording and their maps.
#[derive(Debug)]
pub(super) struct Programs {
    /// In the order of the recording's list.
    pub parts: Vec<Part>,
    /// The maps that the replay forms use: those of the object, tape and log.
    pub maps: ReplayMaps,
    /// How many of them are the object's.
    pub own: usize,
    /// By number in firings: the place in `parts` and among those that run.
    by_number: Vec<Option<(usize, usize)>>,
}

impl Programs {
    /// Finds the programs of a recording in an object, those among them, too, that are only
    /// loaded if they are asked for.
    pub fn of(object: &Object, header: &Header) -> Result<Self, ReplayError> {
        let names = || header.programs.iter().map(|program| program.name.as_str());
        let mut object = object.clone();
        if let Some(name) = names().find(|name| object.entry(name).is_err()) {
            let problem = format!("there is no program '{name}'");
            return Err(ReplayError::WrongObject(problem));
        }
        object.load_only(names())?;
        let own: Vec<_> = object.programs().collect::<Result<_, _>>()?;
        let own: Vec<_> = own.into_iter().map(Arc::new).collect();
        Self::among(&own, object.maps(), header)
    }

    /// Finds them among programs that share these maps.
    pub fn among(
        own: &[Arc<Program>],
        maps: &[MapDef],
        header: &Header,
    ) -> Result<Self, ReplayError> {
        check_maps(maps, header)?;
        let shared: Arc<[MapDef]> = match own.first() {
            Some(program) => program.maps.clone(),
            None => maps.into(),
        };
        let maps = ReplayMaps::add(&shared);
        let parts = header
            .programs
            .iter()
            .map(|recorded| Part::of(recorded, own, &maps))
            .collect::<Result<Vec<_>, _>>()?;
        let mut by_number = Vec::new();
        let mut running = 0;
        for (place, part) in parts.iter().enumerate() {
            let number = part.recorded.number as usize;
            if number >= NUMBERS || part.form.is_err() {
                continue;
            }
            by_number.resize(by_number.len().max(number + 1), None);
            if let Some(slot) = by_number.get_mut(number) {
                *slot = Some((place, running));
            }
            running += 1;
        }
        Ok(Self {
            own: shared.len(),
            parts,
            maps,
            by_number,
        })
    }

    /// The place in the list of the program with this number, and its place among those
    /// that run.
    #[inline]
    pub fn find(&self, number: u32) -> Option<(usize, usize)> {
        *self.by_number.get(number as usize)?
    }

    /// Those that run, in their order.
    pub fn running(&self) -> impl Iterator<Item = (&Part, &Form)> {
        let numbered = self.by_number.iter().flatten();
        let mut places: Vec<_> = numbered.copied().collect();
        places.sort_unstable_by_key(|(_, running)| *running);
        places.into_iter().filter_map(|(place, _)| {
            let part = self.parts.get(place)?;
            Some((part, part.form.as_ref().ok()?))
        })
    }
}

impl Part {
    fn of(
        recorded: &RecordedProgram,
        own: &[Arc<Program>],
        maps: &ReplayMaps,
    ) -> Result<Self, ReplayError> {
        let mut named = own.iter().filter(|program| program.name == recorded.name);
        let Some(original) = named.clone().find(|program| recorded.is(program)) else {
            let name = &recorded.name;
            return Err(ReplayError::WrongObject(match named.next() {
                Some(program) => format!(
                    "its program '{name}' has {} instructions with the checksum {:08x}, the \
                     object's has {} with {:08x}",
                    recorded.instructions,
                    recorded.checksum,
                    program.insns.len(),
                    crate::compare::recording::program_checksum(program),
                ),
                None => format!("there is no program '{name}'"),
            }));
        };
        if !recorded.logs_as(original) {
            return Err(ReplayError::WrongVersion(recorded.name.clone()));
        }
        let form = match &recorded.how {
            How::Bare { .. } => Err(Silent::Bare),
            How::OutputsOnly { why } => Err(Silent::OutputsOnly(why.clone())),
            How::Instrumented => Form::of(original, maps).map_err(Silent::OutputsOnly),
            How::Other => Err(Silent::OutputsOnly(
                "it was recorded in a way that this bpflab does not know".to_owned(),
            )),
        };
        Ok(Self {
            recorded: recorded.clone(),
            original: original.clone(),
            form,
        })
    }
}

impl Form {
    fn of(original: &Program, maps: &ReplayMaps) -> Result<Self, String> {
        let plan = Plan::new(original).map_err(|error| error.to_string())?;
        let replayed = plan.replay_form(maps).map_err(|error| error.to_string())?;
        Ok(Self {
            plan,
            program: Arc::new(replayed.program.clone()),
            replayed,
        })
    }

    /// The instruction of the original program that one of what runs stands for.
    pub fn original(&self, pc: Pc) -> Option<Pc> {
        self.replayed.original(pc)
    }

    /// Where an instruction of the original program is in what runs.
    pub fn place(&self, pc: Pc) -> Option<Pc> {
        self.replayed.place(pc)
    }
}

/// Whether the object has the maps of the recording.
fn check_maps(maps: &[MapDef], header: &Header) -> Result<(), ReplayError> {
    for recorded in &header.maps {
        let name = &recorded.name;
        let problem = match maps.get(recorded.number as usize) {
            Some(map) if recorded.is(map) => continue,
            Some(map) if map.name == *name => format!("its map '{name}' has another shape"),
            _ => format!("there is no map '{name}'"),
        };
        return Err(ReplayError::WrongObject(problem));
    }
    Ok(())
}
