//! The first block of a recording: kernel, machine, command, and the programs, maps and events
//! that numbers in items refer to.
//!
//! It is JSON in the file: later versions may add keys, and a missing key has its default.

use serde::{Deserialize, Serialize};

use super::checksum::{checksum, initial_checksum, program_checksum, sites_checksum};
use crate::instrument::{Plan, SchemaSite};
use crate::program::{MapDef, Program};

/// The first block of a recording.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Header {
    /// Version of the bpflab that wrote it: `0.1.0`.
    pub bpflab: String,
    /// The kernel.
    pub kernel: KernelInfo,
    /// Number of possible CPUs (`/sys/devices/system/cpu/possible`), and of values in an entry
    /// of a per-CPU map.
    pub possible_cpus: u32,
    /// When recording began.
    pub start: Start,
    /// The command and its arguments; empty if there was none.
    pub command: Vec<String>,
    /// Whose firings were recorded.
    pub filter: Filter,
    /// The object that was loaded; none for bare events.
    pub object: Option<ObjectInfo>,
    /// Its programs, by their numbers.
    pub programs: Vec<RecordedProgram>,
    /// Programs that were to be recorded and were not; none in files of versions that did not
    /// write them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out: Option<Vec<LeftOut>>,
    /// Its maps, by their numbers in instructions.
    pub maps: Vec<RecordedMap>,
    /// The bare events, by their numbers.
    pub events: Vec<RecordedEvent>,
}

/// The kernel that a recording was made in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct KernelInfo {
    /// As `uname -r` prints it.
    pub release: String,
    /// As `uname -v` prints it.
    pub version: String,
    /// As `uname -m` prints it: `x86_64`, `aarch64`.
    pub machine: String,
}

/// When recording began, on three of the kernel's clocks at the same moment, in nanoseconds:
/// a firing's time plus the difference of two clocks is its time on another clock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Start {
    /// Since 1970 (`CLOCK_REALTIME`).
    pub realtime: u64,
    /// `CLOCK_MONOTONIC`, which `bpf_ktime_get_ns` reads.
    pub monotonic: u64,
    /// `CLOCK_BOOTTIME`.
    pub boottime: u64,
}

/// Whose firings were recorded. For other processes, programs did nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Filter {
    /// All processes.
    All,
    /// The command and all processes that it started.
    PidTree {
        /// Process id of the command, as the recorder saw it.
        root: u32,
    },
    /// A filter that this version does not know, or none was given.
    #[default]
    #[serde(other)]
    Other,
}

/// The object that was loaded.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ObjectInfo {
    /// Path or name, as given.
    pub name: String,
    /// Bytes of the file.
    pub bytes: u64,
    /// CRC-32 of the file.
    pub checksum: u32,
}

impl ObjectInfo {
    /// The entry of an object file with these bytes.
    #[must_use]
    pub fn new(name: impl Into<String>, bytes: &[u8]) -> Self {
        Self {
            name: name.into(),
            bytes: bytes.len() as u64,
            checksum: checksum(bytes),
        }
    }
}

/// A program that was to be recorded and was not.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct LeftOut {
    /// Its name.
    pub program: String,
    /// Why.
    pub why: String,
}

impl LeftOut {
    /// The entry of a program.
    #[must_use]
    pub fn new(program: impl Into<String>, why: impl Into<String>) -> Self {
        Self {
            program: program.into(),
            why: why.into(),
        }
    }
}

/// A program of the object.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct RecordedProgram {
    /// Its number in firings.
    pub number: u32,
    /// Name of the C function.
    pub name: String,
    /// Its ELF section.
    pub section: String,
    /// Program type, by libbpf's name: `tracepoint`.
    pub prog_type: String,
    /// Its license; none in files of versions that did not write it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub license: Option<String>,
    /// Its attach target, in words.
    pub attach: String,
    /// Number of instruction slots.
    pub instructions: u32,
    /// CRC-32 of the original's instructions ([`program_checksum`]).
    pub checksum: u32,
    /// CRC-32 of its sites ([`sites_checksum`]); 0 if it has no logs.
    pub sites: u32,
    /// The sites of its logs, by number: the meaning of each entry. None if it has no logs, and
    /// in files of versions that did not write it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<Vec<SchemaSite>>,
    /// Bytes of context in each firing.
    pub context_len: u32,
    /// How it was recorded.
    pub how: How,
}

impl RecordedProgram {
    /// The entry of a program.
    #[must_use]
    pub fn new(
        number: u32,
        program: &Program,
        attach: impl Into<String>,
        context_len: u32,
        how: How,
    ) -> Self {
        let plan = match how {
            How::Instrumented => Plan::new(program).ok(),
            _ => None,
        };
        Self {
            number,
            name: program.name.clone(),
            section: program.section.clone(),
            prog_type: program.prog_type.name().to_owned(),
            license: Some(program.license.clone()),
            attach: attach.into(),
            instructions: u32::try_from(program.insns.len()).unwrap_or(u32::MAX),
            checksum: program_checksum(program),
            sites: plan.as_ref().map_or(0, sites_checksum),
            schema: plan.as_ref().map(Plan::schema),
            context_len,
            how,
        }
    }

    /// Whether a program has the instructions that were recorded.
    #[must_use]
    pub fn is(&self, program: &Program) -> bool {
        self.checksum == program_checksum(program)
            && self.instructions as usize == program.insns.len()
    }

    /// The first property of a program that differs from the recording: its name, the recorded
    /// value, the program's. None if all that the recording has are equal.
    #[must_use]
    pub fn differs(&self, program: &Program) -> Option<(&'static str, String, String)> {
        let own = program.prog_type.name();
        if !self.prog_type.is_empty() && self.prog_type != own {
            return Some(("type", self.prog_type.clone(), own.to_owned()));
        }
        let license = self.license.as_ref()?;
        (*license != program.license).then(|| ("license", license.clone(), program.license.clone()))
    }

    /// Whether this bpflab logs the same fields of the program as the version that wrote the
    /// recording.
    #[must_use]
    pub fn logs_as(&self, program: &Program) -> bool {
        let own = || Plan::new(program).map_or(0, |plan| sites_checksum(&plan));
        self.sites == 0 || self.sites == own()
    }
}

/// How a program was recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum How {
    /// Every firing, with all its inputs and outputs.
    Instrumented,
    /// Only the events that it would have run on: contexts are made from them later.
    Bare {
        /// Why it did not run.
        why: String,
    },
    /// It ran unchanged; only its outputs and maps were recorded.
    OutputsOnly {
        /// Why it could not be rewritten: the instruction and the reason.
        why: String,
    },
    /// A way that this version does not know, or none was given.
    #[default]
    #[serde(other)]
    Other,
}

/// A map of the object.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct RecordedMap {
    /// Its number in instructions of the object's programs.
    pub number: u32,
    /// Full name.
    pub name: String,
    /// Map type, by libbpf's name: `percpu_hash`.
    pub map_type: String,
    /// Bytes of a key.
    pub key_size: u32,
    /// Bytes of a value, of one CPU's for per-CPU types.
    pub value_size: u32,
    /// The most entries; bytes of data for ring buffers.
    pub max_entries: u32,
    /// `map_flags`.
    pub flags: u32,
    /// `map_extra`.
    pub extra: u64,
    /// CRC-32 of its initial contents ([`initial_checksum`]); none in files of versions that did
    /// not write it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial: Option<u32>,
    /// The inner map's definition, for maps of maps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inner: Option<Box<RecordedMap>>,
}

impl RecordedMap {
    /// The entry of a map.
    #[must_use]
    pub fn new(number: u32, map: &MapDef) -> Self {
        Self {
            number,
            name: map.name.clone(),
            map_type: map.map_type.name().to_owned(),
            key_size: map.key_size,
            value_size: map.value_size,
            max_entries: map.max_entries,
            flags: map.flags.bits(),
            extra: map.extra,
            initial: Some(initial_checksum(map)),
            inner: map
                .inner
                .as_ref()
                .map(|inner| Box::new(Self::new(0, inner))),
        }
    }

    /// The first property of a map definition that differs from the recording: its name, the
    /// recorded value, the map's. None if all that the recording has are equal.
    #[must_use]
    pub fn differs(&self, map: &MapDef) -> Option<(&'static str, String, String)> {
        let own = Self::new(self.number, map);
        let numbers = [
            ("size of keys", self.key_size, own.key_size),
            ("size of values", self.value_size, own.value_size),
            ("max_entries", self.max_entries, own.max_entries),
            ("flags", self.flags, own.flags),
        ];
        let numbers = numbers.map(|(what, was, is)| (what, was.to_string(), is.to_string()));
        let differs = [
            ("name", self.name.clone(), own.name),
            ("type", self.map_type.clone(), own.map_type),
            ("map_extra", self.extra.to_string(), own.extra.to_string()),
        ];
        let mut differs = differs.into_iter().chain(numbers);
        if let Some(found) = differs.find(|(_, was, is)| was != is) {
            return Some(found);
        }
        let initial = self.initial?;
        match (&self.inner, &map.inner) {
            (Some(inner), Some(own)) => {
                if let Some(found) = inner.differs(own).filter(|(what, ..)| *what != "name") {
                    return Some(found);
                }
            }
            (None, None) => {}
            (was, is) => {
                let text = |is_there| if is_there { "declared" } else { "not declared" };
                let (was, is) = (text(was.is_some()), text(is.is_some()));
                return Some(("inner map", was.to_owned(), is.to_owned()));
            }
        }
        let text = |sum: u32| format!("checksum {sum:08x}");
        own.initial
            .filter(|own| *own != initial)
            .map(|own| ("data at the start", text(initial), text(own)))
    }
}

/// A bare event: a tracepoint whose raw records were sampled.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct RecordedEvent {
    /// Its number in samples.
    pub number: u32,
    /// Its group: `syscalls`.
    pub group: String,
    /// Its name: `sys_enter_write`.
    pub name: String,
    /// Its id in that kernel.
    pub id: u32,
    /// Its format file, with the layout of the samples.
    pub format: String,
}
