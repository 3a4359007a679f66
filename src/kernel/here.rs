//! The running kernel for tests: whether it is usable, and what programs do in it.

use std::sync::OnceLock;

use thiserror::Error;

use super::attach::{AttachError, AttachPoint, Attachment, attach};
use super::availability::Availability;
use super::error::{Command, KernelError, NoVerdict};
use super::kernel_map::KernelMap;
use super::load::{LoadOptions, load};
use super::loaded_program::LoadedProgram;
use super::maps::LoadedMaps;
use crate::program::Program;
use crate::util::{Errno, MapId};
use crate::verifier::Verdict;

/// The running kernel, known to load programs for this process.
///
/// ```no_run
/// use bpflab::Object;
/// use bpflab::kernel::Kernel;
///
/// fn sees_exits() -> Result<(), Box<dyn std::error::Error>> {
///     let kernel = match Kernel::available() {
///         Ok(kernel) => kernel,
///         Err(missing) => {
///             eprintln!("skipped: {missing}");
///             return Ok(());
///         }
///     };
///     let object = Object::open("examples/bpf/exits.bpf.o")?;
///     let programs: Vec<_> = object.programs().collect::<Result<_, _>>()?;
///     let running = kernel.attach(&programs)?;
///     let events = running.map("events").ok_or("no map")?.ring()?;
///     std::process::Command::new("true").status()?;
///     assert!(events.drain(|record| assert!(!record.is_empty())) > 0);
///     Ok(())
/// }
/// # sees_exits().unwrap();
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Kernel {
    availability: &'static Availability,
}

/// Why the running kernel can't be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{}", .0.join("; "))]
pub struct Missing(Vec<String>);

/// Attached programs, their maps and their outputs. Dropping it detaches the programs.
#[derive(Debug)]
pub struct Running {
    // Dropped in this order: attachments first.
    attachments: Vec<Attachment>,
    programs: Vec<LoadedProgram>,
    maps: LoadedMaps,
    names: Vec<String>,
}

/// Why programs could not be loaded or attached.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RunError {
    /// The kernel gave no verdict on a program, or a map could not be created.
    #[error(transparent)]
    NoVerdict(#[from] NoVerdict),
    /// The kernel rejected a program.
    #[error("program {program} is rejected: {}", .verdict.message)]
    Rejected {
        /// The program.
        program: String,
        /// The verifier's verdict.
        verdict: Box<Verdict>,
    },
    /// A program could not be attached.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// Another command that the kernel refused.
    #[error(transparent)]
    Kernel(#[from] KernelError),
}

impl RunError {
    /// Whether the machine or permissions are at fault: the exit code is 3 then.
    #[must_use]
    pub const fn is_unavailable(&self) -> bool {
        match self {
            Self::NoVerdict(none) => none.is_unavailable(),
            Self::Attach(error) => error.is_unavailable(),
            Self::Kernel(error) => error.is_unavailable(),
            Self::Rejected { .. } => false,
        }
    }
}

impl Kernel {
    /// The running kernel; probed once per process.
    ///
    /// # Errors
    /// What is missing and what to do about it, for a test to print before it is skipped.
    pub fn available() -> Result<Self, Missing> {
        static AVAILABILITY: OnceLock<Availability> = OnceLock::new();
        let availability = AVAILABILITY.get_or_init(Availability::probe);
        match availability.usable() {
            true => Ok(Self { availability }),
            false => Err(Missing(availability.missing())),
        }
    }

    /// What the kernel supports.
    #[must_use]
    pub const fn offers(&self) -> &'static Availability {
        self.availability
    }

    /// Loads the programs of an object and attaches each where its section says.
    ///
    /// The first program that is rejected or can't be attached; programs attached before it are
    /// detached.
    pub fn attach(&self, programs: &[Program]) -> Result<Running, RunError> {
        let points: Result<Vec<_>, _> = programs.iter().map(AttachPoint::of).collect();
        self.attach_at(programs, &points?)
    }

    /// Loads the programs and attaches each to the point of the same index; programs without
    /// one are only loaded (those that others call through a prog array).
    ///
    /// # Errors
    /// As [`attach`](Self::attach).
    pub fn attach_at(
        &self,
        programs: &[Program],
        points: &[AttachPoint],
    ) -> Result<Running, RunError> {
        // A missing feature gives a better reason here than at load time.
        points.iter().try_for_each(AttachPoint::available)?;
        let (maps, btf) = programs.first().map_or((&[][..], None), |first| {
            (&first.maps[..], first.btf.as_ref())
        });
        let mut running = Running {
            attachments: Vec::new(),
            programs: Vec::new(),
            maps: LoadedMaps::create(maps, btf)?,
            names: maps.iter().map(|def| def.name.clone()).collect(),
        };
        let options = LoadOptions::default().with_single_probes(true);
        for program in programs {
            let loaded = load(program, &running.maps, &options)?;
            let accepted = loaded.program.ok_or_else(|| RunError::Rejected {
                program: program.name.clone(),
                verdict: Box::new(loaded.verdict),
            })?;
            running.maps.set_program(maps, &accepted)?;
            running.programs.push(accepted);
        }
        for (program, point) in running.programs.iter().zip(points) {
            running.attachments.push(attach(program, point)?);
        }
        Ok(running)
    }
}

impl Running {
    /// A map by its name; none if the object has no such map.
    #[must_use]
    pub fn map(&self, name: &str) -> Option<KernelMap<'_>> {
        let index = self.names.iter().position(|known| known == name)?;
        self.maps.map(MapId::from_index(index))
    }

    /// All maps.
    #[must_use]
    pub const fn maps(&self) -> &LoadedMaps {
        &self.maps
    }

    /// The programs, in the order in which they were given.
    #[must_use]
    pub fn programs(&self) -> &[LoadedProgram] {
        &self.programs
    }

    /// The attachments, in that order.
    #[must_use]
    pub fn attachments(&self) -> &[Attachment] {
        &self.attachments
    }

    /// How often any of the programs was skipped, because it or another of its hook was running
    /// on that CPU.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn missed(&self) -> Result<u64, KernelError> {
        self.attachments.iter().map(Attachment::missed).sum()
    }

    /// The value for a key of a map; none if there is no such element.
    ///
    /// # Errors
    /// `ENOENT` for an unknown map, and the kernel's error.
    pub fn lookup(&self, map: &str, key: &[u8]) -> Result<Option<Vec<u8>>, KernelError> {
        let index = self.names.iter().position(|known| known == map);
        match index {
            Some(index) => self.maps.lookup(MapId::from_index(index), key),
            None => {
                let object = format!("map {map}");
                Err(KernelError::new(
                    Command::MapLookupElem,
                    object,
                    Errno::ENOENT,
                ))
            }
        }
    }

    /// Detaches the programs; their maps can still be read.
    pub fn detach(&mut self) {
        self.attachments.clear();
    }
}
