//! Loads and attaches the programs of an object: in their recorded form if they have one,
//! otherwise unchanged, and restricted to the recorded processes.

use std::path::Path;

use super::context::context_len;
use super::error::LiveError;
use super::filter;
use super::forms::{self, Form, Loader, Placed, is_anywhere};
use super::options::LiveOptions;
use crate::compare::recording::{How, RecordedProgram};
use crate::instrument::{Plan, RecordMaps};
use crate::kernel::attach::{AttachPoint, AttachTarget, Attachment, attach};
use crate::kernel::{LoadedMaps, LoadedProgram, NoVerdictKind};
use crate::object::Object;
use crate::program::{Initial, MapDef, Program};

/// A program in the kernel.
#[derive(Debug)]
pub(super) struct Watched {
    /// Its number in firings.
    pub number: u32,
    /// The object's program.
    pub program: Program,
    /// Bytes of its context that are recorded.
    pub context_len: u32,
    /// How it is recorded.
    pub how: How,
    /// Where to attach it; none if only tail calls lead to it.
    point: Option<AttachPoint>,
    /// Where it was attached the last time.
    attached_at: Option<String>,
    /// Its attachment, while it is attached.
    attached: Option<Attachment>,
    /// How often the kernel skipped it, known after detaching.
    pub missed: u64,
    /// The program to attach.
    loaded: Option<LoadedProgram>,
    /// The form that recorded callers jump to.
    following: Option<LoadedProgram>,
}

/// A program that is not recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeftOut {
    /// Its name.
    pub program: String,
    /// Why: it has no attach point, or this kernel lacks it.
    pub why: String,
    /// Whether it could be recorded with other rights or on another machine.
    pub unavailable: bool,
}

/// All programs of a session.
#[derive(Debug, Default)]
pub(super) struct Programs {
    /// The loaded programs.
    watched: Vec<Watched>,
    /// The programs that are not loaded.
    not_loaded: Vec<LeftOut>,
    /// The loaded programs that were not attached the last time.
    not_attached: Vec<LeftOut>,
}

/// The programs of an object to record.
#[derive(Debug)]
pub(super) struct Chosen {
    pub programs: Vec<Program>,
    /// Programs without a type, which can't be loaded.
    pub untyped: Vec<LeftOut>,
}

impl Chosen {
    pub fn of(object: &Object, options: &LiveOptions) -> Result<Self, LiveError> {
        let mut untyped = Vec::new();
        let programs = if options.programs.is_empty() {
            let mut typed = object.clone();
            for entry in object.untyped() {
                typed.entry_mut(entry.name())?.set_autoload(false);
                untyped.push(LeftOut {
                    program: entry.name().to_owned(),
                    why: format!("section '{}' names no program type", entry.section()),
                    unavailable: false,
                });
            }
            typed.programs().collect::<Result<Vec<_>, _>>()?
        } else {
            let named = options.programs.iter().map(|name| object.program(name));
            named.collect::<Result<Vec<_>, _>>()?
        };
        if programs.is_empty() {
            let file = object.file();
            return Err(LiveError::Nothing(match untyped.as_slice() {
                [] => format!("{file} has no program that is loaded"),
                [first, ..] => format!("{file}: {first}"),
            }));
        }
        Ok(Self { programs, untyped })
    }
}

impl Programs {
    /// Loads programs with these maps. A program of a type that this kernel lacks is left out,
    /// unless it was named in the options.
    pub fn load(
        chosen: Chosen,
        maps: &LoadedMaps,
        record: &RecordMaps,
        options: &LiveOptions,
    ) -> Result<Self, LiveError> {
        let loader = Loader {
            maps,
            record,
            options,
        };
        let mut loaded = Self {
            not_loaded: chosen.untyped,
            ..Self::default()
        };
        let mut placed = Vec::new();
        for program in chosen.programs {
            let name = program.name.clone();
            match loader.place(program) {
                Ok(one) => placed.push(one),
                Err(error) => {
                    let left = LeftOut::new(name, error, options)?;
                    loaded.not_loaded.push(left);
                }
            }
        }
        let numbered: Vec<_> = (0..).zip(placed).collect();
        let recorded = forms::load_all(&numbered, &loader);
        for ((number, placed), form) in numbered.into_iter().zip(recorded.forms) {
            let name = placed.program.name.clone();
            match loader.load(number, placed, form) {
                Ok(watched) => loaded.watched.push(watched),
                Err(error) => {
                    let left = LeftOut::new(name, error, options)?;
                    loaded.not_loaded.push(left);
                }
            }
        }
        // Prog arrays that recorded forms don't follow hold the forms to attach.
        let followed = recorded.relays.filled(&record.maps, true);
        let others = recorded.relays.filled(&record.maps, false);
        for watched in &loaded.watched {
            if let Some(following) = &watched.following {
                maps.set_program(&followed, following)?;
            }
            if let Some(alone) = &watched.loaded {
                maps.set_program(&others, alone)?;
            }
        }
        loaded.or_nothing(|watched| watched.point.is_some())?;
        Ok(loaded)
    }

    /// Attaches all programs with an attach point. A program whose attach point this kernel
    /// lacks is left out, unless it was named in the options. Probes in files that don't exist
    /// go to `binary`.
    pub fn attach(
        &mut self,
        options: &LiveOptions,
        binary: Option<&Path>,
    ) -> Result<(), LiveError> {
        self.not_attached.clear();
        for watched in &mut self.watched {
            if let Err(error) = watched.attach(binary) {
                let left = LeftOut::new(watched.program.name.clone(), error, options)?;
                self.not_attached.push(left);
            }
        }
        self.or_nothing(|watched| watched.attached.is_some())
    }

    /// The loaded programs, with their numbers.
    pub fn all(&self) -> impl Iterator<Item = (u32, &Program)> {
        let watched = self.watched.iter();
        watched.map(|watched| (watched.number, &watched.program))
    }

    /// The programs that run, or ran the last time: attached, or led to by tail calls.
    pub fn running(&self) -> impl Iterator<Item = &Watched> {
        self.watched.iter().filter(|watched| watched.runs())
    }

    /// The programs that don't run.
    pub fn left_out(&self) -> impl Iterator<Item = &LeftOut> {
        self.not_loaded.iter().chain(&self.not_attached)
    }

    /// Runs each iterator once, detaches all programs, and reads how often the kernel skipped
    /// each.
    pub fn detach(&mut self) -> Result<(), LiveError> {
        let mut result = Ok(());
        for attached in self.watched.iter().filter_map(|one| one.attached.as_ref()) {
            if let Err(error) = attached.iterate() {
                result = Err(error.into());
            }
        }
        for watched in &mut self.watched {
            if let Some(attached) = watched.attached.take() {
                match attached.missed() {
                    Ok(missed) => watched.missed = missed,
                    Err(error) => result = Err(error.into()),
                }
            }
        }
        result
    }

    /// An error with the reasons of all programs left out, unless a program is `wanted`.
    fn or_nothing(&self, wanted: impl Fn(&Watched) -> bool) -> Result<(), LiveError> {
        if self.watched.iter().any(wanted) {
            return Ok(());
        }
        let why: Vec<_> = self.left_out().map(LeftOut::to_string).collect();
        let why = why.join("; ");
        Err(match self.left_out().any(|left| left.unavailable) {
            true => LiveError::Unavailable(why),
            false => LiveError::Nothing(why),
        })
    }
}

impl LeftOut {
    /// A program left out because of `error`. Returns the error if the program was named in the
    /// options, or the error is neither a missing feature nor a missing attach point.
    fn new(program: String, error: LiveError, options: &LiveOptions) -> Result<Self, LiveError> {
        let unavailable = match &error {
            // Missing rights are an error for all programs.
            LiveError::NoVerdict(none) => none.kind == NoVerdictKind::Feature,
            LiveError::Attach { error, .. } => error.is_unavailable(),
            _ => false,
        };
        let nowhere = matches!(error, LiveError::Program { .. });
        if !options.programs.is_empty() || !(unavailable || nowhere) {
            return Err(error);
        }
        Ok(Self {
            why: match error {
                LiveError::Attach { error, .. } => error.to_string(),
                LiveError::Program { why, .. } => why,
                error => error.to_string(),
            },
            program,
            unavailable,
        })
    }
}

impl std::fmt::Display for LeftOut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.program, self.why)
    }
}

impl Watched {
    /// Attaches it. A probe in a file that does not exist goes to `binary`.
    fn attach(&mut self, binary: Option<&Path>) -> Result<(), LiveError> {
        self.attached_at = None;
        self.missed = 0;
        let (Some(point), Some(loaded)) = (&self.point, &self.loaded) else {
            return Ok(());
        };
        let mut point = point.clone();
        let mut absent = None;
        if let (
            Some(binary),
            AttachTarget::User { path, .. }
            | AttachTarget::UserMulti { path, .. }
            | AttachTarget::Usdt { path, .. },
        ) = (binary, point.place())
            && !path.exists()
        {
            absent = Some(path.clone());
            point = point.with_path(binary);
        }
        let attached = attach(loaded, &point).map_err(|error| LiveError::Attach {
            program: self.program.name.clone(),
            error,
            absent,
        })?;
        self.attached_at = Some(attached.place());
        self.attached = Some(attached);
        Ok(())
    }

    /// Whether it was attached the last time, or tail calls lead to it.
    const fn runs(&self) -> bool {
        self.attached_at.is_some() || self.following.is_some() || self.point.is_none()
    }

    /// Its attach point, now or the last time, in words.
    pub fn place(&self) -> String {
        self.attached_at.clone().unwrap_or_default()
    }

    /// Its entry in a recording's header.
    pub fn described(&self) -> RecordedProgram {
        let how = self.how.clone();
        RecordedProgram::new(
            self.number,
            &self.program,
            self.place(),
            self.context_len,
            how,
        )
    }
}

impl Loader<'_> {
    /// Finds the attach point of a program, and makes its plan.
    fn place(&self, program: Program) -> Result<Placed, LiveError> {
        let point = AttachPoint::of(&program);
        if let Ok(point) = &point
            && let Err(error) = point.has_target(&program)
        {
            return Err(LiveError::Attach {
                program: program.name,
                error,
                absent: None,
            });
        }
        let is_jumped_to = is_jumped_to(&self.record.maps, &program.name);
        let point = match point {
            Ok(point) => Some(self.with_options(point)),
            Err(_) if is_jumped_to => None,
            Err(error) if error.is_unavailable() => {
                let program = program.name;
                let absent = None;
                return Err(LiveError::Attach {
                    program,
                    error,
                    absent,
                });
            }
            Err(error) => {
                return Err(LiveError::Program {
                    program: program.name,
                    why: error.to_string(),
                });
            }
        };
        Ok(Placed {
            context_len: context_len(&program),
            plan: Plan::new(&program).map_err(|error| error.to_string()),
            point,
            program,
        })
    }

    fn load(&self, number: u32, placed: Placed, form: Form) -> Result<Watched, LiveError> {
        let Placed {
            program,
            point,
            context_len,
            ..
        } = placed;
        let mut watched = Watched {
            number,
            context_len,
            how: How::Instrumented,
            point,
            attached_at: None,
            attached: None,
            missed: 0,
            loaded: None,
            following: None,
            program,
        };
        match form {
            Ok(forms) if watched.point.is_some() || forms.following.is_some() => {
                watched.loaded = forms.opening;
                watched.following = forms.following;
                watched.context_len = watched.context_len.max(forms.context_len);
            }
            _ if watched.point.is_none() => {
                // Its callers are restricted to the targets already.
                let why = "only tail calls of programs that are not recorded lead to it";
                let why = why.to_owned();
                watched.how = How::OutputsOnly { why };
                watched.loaded = Some(self.accepted(&watched.program)?);
            }
            Ok(_) => {}
            Err(why) => {
                watched.loaded = Some(self.as_it_is(&watched.program)?);
                watched.how = How::OutputsOnly { why };
            }
        }
        Ok(watched)
    }

    /// Loads the unchanged program, restricted to the targets.
    fn as_it_is(&self, program: &Program) -> Result<LoadedProgram, LiveError> {
        let mut whole = program.clone();
        whole.maps = self.record.maps.clone();
        if self.options.all || is_anywhere(&whole) {
            return self.accepted(&whole);
        }
        let filtered = filter::only_for(whole, self.record.targets)?;
        self.judged(&filtered)?.or_else(|message| {
            // Is the program itself rejected, or only with the test in front?
            self.accepted(program)?;
            Err(LiveError::Program {
                program: program.name.clone(),
                why: format!(
                    "it can't be restricted to the command's processes ({message}); --all runs it \
                     for all processes"
                ),
            })
        })
    }

    fn accepted(&self, program: &Program) -> Result<LoadedProgram, LiveError> {
        self.judged(program)?.map_err(|message| LiveError::Refused {
            program: program.name.clone(),
            message,
        })
    }

    fn with_options(&self, point: AttachPoint) -> AttachPoint {
        match self.options.frequency {
            Some(frequency) => point.with_frequency(frequency),
            None => point,
        }
    }
}

/// Whether a program is an initial entry of a prog array.
fn is_jumped_to(maps: &[MapDef], program: &str) -> bool {
    let mut entries = maps.iter().flat_map(|def| &def.initial);
    entries.any(|entry| matches!(entry, Initial::Program { name, .. } if name == program))
}
