//! Finds the programs of a recording in the object, by name and instructions.

use std::sync::Arc;

use super::error::ReplayError;
use super::verdict::NotCompared;
use crate::compare::recording::{Header, How, RecordedProgram};
use crate::instrument::{
    Begins, Candidate, Plan, Relays, ReplayForm, ReplayMaps, SchemaError, Segment, Segments,
    Unrecordable,
};
use crate::object::Object;
use crate::program::{MapDef, Program};
use crate::util::Pc;

/// A program of a recording.
#[derive(Debug)]
pub(super) struct Part {
    /// Its entry in the header.
    pub recorded: RecordedProgram,
    /// The original program.
    pub original: Arc<Program>,
    /// Its replay forms, or why it has none.
    pub form: Result<Form, Silent>,
}

/// How a program is replayed.
#[derive(Debug)]
pub(super) struct Form {
    /// The layout of its logs.
    pub plan: Plan,
    /// The form that runs when its event fires.
    pub opening: Running,
    /// The form that runs when a tail call leads to it.
    pub following: Option<Running>,
}

/// A replay form.
#[derive(Debug)]
pub(super) struct Running {
    /// The program.
    pub program: Arc<Program>,
    /// Maps its instructions to those of the original.
    form: ReplayForm,
}

/// Why the firings of a program are not replayed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Silent {
    /// It could not be rewritten: only its outputs were recorded.
    OutputsOnly(String),
    /// It was recorded, but this version can't make its replay form.
    Unreplayable(String),
    /// It did not run.
    Bare,
}

impl Silent {
    /// The reason, for a report.
    pub fn why(&self) -> NotCompared {
        match self {
            Self::OutputsOnly(why) => NotCompared::Unrecorded(why.clone()),
            Self::Unreplayable(why) => NotCompared::Unreplayable(why.clone()),
            Self::Bare => NotCompared::Events,
        }
    }

    /// What it lacks, to follow the program's name.
    pub const fn lack(&self) -> &'static str {
        match self {
            Self::OutputsOnly(_) | Self::Bare => "has no recorded firings",
            Self::Unreplayable(_) => "can't be replayed by this version of bpflab",
        }
    }
}

/// Limit of program numbers. Some may be unused: a recorder numbers all programs of an object,
/// and leaves out those that it can't attach.
const NUMBERS: usize = 1 << 16;

/// The programs of a recording and their maps.
#[derive(Debug)]
pub(super) struct Programs {
    /// In the order of the recording's list.
    pub parts: Vec<Part>,
    /// The maps of the replay forms: the object's, and two for the logs.
    pub maps: ReplayMaps,
    /// How many of them are the object's.
    pub own: usize,
    /// By number in firings: the index in `parts`, and among the programs that run.
    by_number: Vec<Option<(usize, usize)>>,
}

impl Programs {
    /// Finds the programs of a recording in an object, autoloaded or not.
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

    /// Finds the programs of a recording among programs that share `maps`.
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
        let found = header.programs.iter();
        let found: Vec<Found> = found
            .map(|recorded| Found::among(own, recorded))
            .collect::<Result<_, _>>()?;
        let candidates: Vec<_> = found.iter().map(Found::candidate).collect();
        let relays = Relays::new(&candidates);
        let maps = ReplayMaps::add_leading(&shared, |map, name| {
            let mut places = found.iter().map(|one| one.original.name == name);
            relays.is_followed(map) && places.any(|is_named| is_named)
        });
        let parts: Vec<Part> = (0..)
            .zip(found)
            .map(|(place, found)| found.part(&relays, place, &maps))
            .collect();
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

    /// The index in [`parts`](Self::parts) of the program with this number, and its index
    /// among the programs that run.
    #[inline]
    pub fn find(&self, number: u32) -> Option<(usize, usize)> {
        *self.by_number.get(number as usize)?
    }

    /// Whether the recording has a program with this number that is not replayed.
    pub fn is_silent(&self, number: u32) -> bool {
        let mut silent = self.parts.iter().filter(|part| part.form.is_err());
        silent.any(|part| part.recorded.number == number)
    }

    /// The forms that run when a tail call leads to them.
    pub fn following(&self) -> impl Iterator<Item = (&Part, &Running)> {
        self.parts.iter().filter_map(|part| {
            let form = part.form.as_ref().ok()?;
            Some((part, form.following.as_ref()?))
        })
    }

    /// The plan of the program with this number.
    fn plan(&self, number: u32) -> Option<&Plan> {
        let (place, _) = self.find(number)?;
        let form = self.parts.get(place)?.form.as_ref().ok()?;
        Some(&form.plan)
    }

    /// The segments of a log of a program, one for each program between tail calls.
    pub fn segments<'a>(&self, program: u32, log: &'a [u8]) -> impl Iterator<Item = Segment<'a>> {
        Segments::new(program, log, |number| self.plan(number))
    }

    /// The first instruction of a segment, with its program.
    pub fn first_of(&self, segment: &Segment<'_>) -> Option<(&Part, Pc)> {
        let (place, _) = self.find(segment.program)?;
        let part = self.parts.get(place)?;
        let plan = &part.form.as_ref().ok()?.plan;
        let first = || Some(plan.entries(segment.log).next()?.ok()?.site.pc);
        match segment.begins {
            Begins::Fired | Begins::TookOver => Some((part, Pc(0))),
            Begins::WentOn => Some((part, first()?)),
        }
    }

    /// The index of the program whose replay form has this name, and the original of its
    /// instruction.
    pub fn original_of(&self, name: &str, pc: Pc) -> Option<(usize, Pc)> {
        let mut places = self.parts.iter().enumerate();
        places.find_map(|(place, part)| {
            let form = part.form.as_ref().ok()?;
            let mut forms = [Some(&form.opening), form.following.as_ref()].into_iter();
            let running = forms.find_map(|it| it.filter(|it| it.program.name == name))?;
            Some((place, running.original(pc)?))
        })
    }

    /// The programs that run, in order.
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

/// A program of a recording that was found in the object.
struct Found {
    recorded: RecordedProgram,
    original: Arc<Program>,
    plan: Result<Plan, Silent>,
}

impl Found {
    fn among(own: &[Arc<Program>], recorded: &RecordedProgram) -> Result<Self, ReplayError> {
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
        if let Some((what, was, is)) = recorded.differs(original) {
            let name = &recorded.name;
            return Err(ReplayError::WrongObject(format!(
                "its program '{name}' has the {what} '{was}', the object's has '{is}'"
            )));
        }
        if recorded.schema.is_none() && !recorded.logs_as(original) {
            return Err(ReplayError::WrongVersion(recorded.name.clone()));
        }
        let plan = match &recorded.how {
            How::Bare { .. } => Err(Silent::Bare),
            How::OutputsOnly { why } => Err(Silent::OutputsOnly(why.clone())),
            How::Instrumented => match plan(recorded, original) {
                Err(error) if error.is_misfit() => {
                    let program = recorded.name.clone();
                    return Err(ReplayError::Schema {
                        program,
                        error: Box::new(error),
                    });
                }
                plan => plan.map_err(|error| Silent::Unreplayable(error.to_string())),
            },
            How::Other => Err(Silent::OutputsOnly(
                "it was recorded in a way that this version of bpflab does not know".to_owned(),
            )),
        };
        Ok(Self {
            recorded: recorded.clone(),
            original: original.clone(),
            plan,
        })
    }

    fn candidate(&self) -> Candidate<'_> {
        let plan = self.plan.as_ref().map_err(|silent| match silent {
            Silent::OutputsOnly(why) | Silent::Unreplayable(why) => why.clone(),
            Silent::Bare => "it did not run".to_owned(),
        });
        Candidate {
            program: &self.original,
            plan,
            context_len: self.recorded.context_len,
        }
    }

    fn part(self, relays: &Relays, place: usize, maps: &ReplayMaps) -> Part {
        let number = self.recorded.number;
        let form = self.plan.and_then(|plan| {
            let relay = relays.get(place).map_err(Silent::Unreplayable)?;
            let made = |form: Result<ReplayForm, Unrecordable>| {
                let form = form.map_err(|error| Silent::Unreplayable(error.to_string()))?;
                let program = Arc::new(form.program.clone());
                Ok(Running { program, form })
            };
            let opening = made(plan.replay_form(maps))?;
            let following = relay
                .follows
                .then(|| made(plan.replay_following(maps, number)));
            let following = following.transpose()?;
            Ok(Form {
                plan,
                opening,
                following,
            })
        });
        Part {
            recorded: self.recorded,
            original: self.original,
            form,
        }
    }
}

/// The plan of the logs in a recording: that of their schema, or this version's own.
fn plan(recorded: &RecordedProgram, original: &Program) -> Result<Plan, SchemaError> {
    match &recorded.schema {
        Some(schema) => Plan::with_schema(original, schema),
        None => Ok(Plan::new(original)?),
    }
}

impl Running {
    /// The original of an instruction.
    pub fn original(&self, pc: Pc) -> Option<Pc> {
        self.form.original(pc)
    }

    /// Where the code for an instruction of the original begins.
    pub fn place(&self, pc: Pc) -> Option<Pc> {
        self.form.place(pc)
    }
}

impl Form {
    /// The forms that have an instruction of the original, and where.
    pub fn places(&self, pc: Pc) -> impl Iterator<Item = (&Running, Pc)> {
        let forms = [Some(&self.opening), self.following.as_ref()].into_iter();
        forms.filter_map(move |running| {
            let running = running?;
            Some((running, running.form.place(pc)?))
        })
    }
}

/// An error unless the object has the maps of the recording and no others.
fn check_maps(maps: &[MapDef], header: &Header) -> Result<(), ReplayError> {
    for recorded in &header.maps {
        let name = &recorded.name;
        let problem = match maps.get(recorded.number as usize) {
            Some(map) if map.name == *name => match recorded.differs(map) {
                Some((what, was, is)) => {
                    format!("its map '{name}' has the {what} {was}, the object's has {is}")
                }
                None => continue,
            },
            _ => format!("there is no map '{name}'"),
        };
        return Err(ReplayError::WrongObject(problem));
    }
    // A recording of bare events has no maps.
    match maps.get(header.maps.len()) {
        Some(map) if !header.programs.is_empty() => Err(ReplayError::WrongObject(format!(
            "the object has a map '{}' that the recording does not have",
            map.name
        ))),
        _ => Ok(()),
    }
}
