//! All tracepoints of a kernel, from what can be read of it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::{fs, io};

use thiserror::Error;

use super::pattern::Pattern;
use super::tracepoint::{Argument, Group, Record, RecordField, Source, Tracepoint};
use super::{from_btf, syscalls};
use crate::btf::{Btf, BtfError};
use crate::kernel::tracefs::{Tracefs, TracefsError};
use crate::util::nearest_first;

/// Where the kernel shows its types and those of its modules.
const BTF: &str = "/sys/kernel/btf";
/// The kernel's own.
const KERNEL: &str = "vmlinux";

/// Why there is no catalogue.
#[derive(Debug, Error)]
pub enum CatalogueError {
    /// Neither of the sources can be read.
    #[error("tracepoints are not known here: no BTF ({btf}), and {tracefs}")]
    NoSource {
        /// Why BTF can't be.
        btf: BtfUnreadable,
        /// Why tracefs can't be.
        tracefs: TracefsError,
    },
}

/// Why a BTF can't be read.
#[derive(Debug, Error)]
pub enum BtfUnreadable {
    /// Its file.
    #[error("{BTF}/{KERNEL}: {0}")]
    File(#[from] io::Error),
    /// Its content.
    #[error("{BTF}/{KERNEL}: {0}")]
    Content(#[from] BtfError),
}

/// The tracepoints of a kernel.
#[derive(Debug)]
pub struct Catalogue {
    tables: Vec<Btf>,
    tracefs: Result<Tracefs, Option<TracefsError>>,
    tracepoints: Vec<Tracepoint>,
}

impl Catalogue {
    /// Those of the running kernel and its modules.
    ///
    /// # Errors
    /// [`CatalogueError::NoSource`] where neither BTF nor tracefs can be read.
    pub fn of_this_kernel() -> Result<Self, CatalogueError> {
        let tracefs = Tracefs::open().and_then(|tracefs| {
            let events = tracefs.events()?;
            Ok((tracefs, events))
        });
        match (tables(Path::new(BTF)), tracefs) {
            (Err(btf), Err(tracefs)) => Err(CatalogueError::NoSource { btf, tracefs }),
            (tables, Ok((tracefs, events))) => {
                let tables = tables.unwrap_or_default();
                Ok(Self {
                    tracepoints: joined(&tables, events),
                    tables,
                    tracefs: Ok(tracefs),
                })
            }
            (Ok(tables), Err(error)) => Ok(Self::of_tables(tables, Some(error))),
        }
    }

    /// Those of any kernel, from its BTF alone.
    #[must_use]
    pub fn of_btf(btf: Btf) -> Self {
        Self::of_tables(vec![btf], None)
    }

    fn of_tables(tables: Vec<Btf>, error: Option<TracefsError>) -> Self {
        Self {
            tracepoints: of_btf_alone(&tables),
            tables,
            tracefs: Err(error),
        }
    }

    /// All of them, in order of groups and names.
    #[must_use]
    pub fn tracepoints(&self) -> &[Tracepoint] {
        &self.tracepoints
    }

    /// Whether it knows the groups of all events.
    #[must_use]
    pub const fn has_groups(&self) -> bool {
        self.tracefs.is_ok()
    }

    /// Why tracefs was not read, if it was tried.
    #[must_use]
    pub fn without_tracefs(&self) -> Option<&TracefsError> {
        self.tracefs.as_ref().err()?.as_ref()
    }

    /// Those that fit any of the patterns; all without one.
    #[must_use]
    pub fn matching(&self, patterns: &[Pattern]) -> Vec<&Tracepoint> {
        let wanted = |tracepoint: &&Tracepoint| {
            patterns.is_empty() || patterns.iter().any(|pattern| pattern.matches(tracepoint))
        };
        self.tracepoints.iter().filter(wanted).collect()
    }

    /// The names most like that of a pattern, the nearest first, at most `count`.
    #[must_use]
    pub fn similar(&self, pattern: &Pattern, count: usize) -> Vec<String> {
        let names: BTreeSet<_> = self
            .tracepoints
            .iter()
            .map(|tracepoint| match pattern.has_group() {
                true => tracepoint.to_string(),
                false => tracepoint.name.clone(),
            })
            .collect();
        let mut names = nearest_first(&pattern.without_stars(), names.into_iter().collect());
        names.truncate(count);
        names
    }

    /// What a tracepoint hands to programs that attach to it, and who knows; for events
    /// of system calls the call's arguments, or its result. None where nobody does.
    #[must_use]
    pub fn arguments(&self, tracepoint: &Tracepoint) -> Option<(Vec<Argument>, Source)> {
        if tracepoint.group.name() == Some(syscalls::GROUP) {
            let record = self.record(tracepoint)?;
            return Some((syscalls::arguments(&record), record.source));
        }
        let btf = self.btf_of(tracepoint)?;
        let arguments = from_btf::arguments(btf, &tracepoint.name)?;
        Some((arguments, Source::Btf))
    }

    /// What its records hold; none where nobody knows, and where it has none.
    #[must_use]
    pub fn record(&self, tracepoint: &Tracepoint) -> Option<Record> {
        let name = &tracepoint.name;
        let group = match &tracepoint.group {
            Group::Named(group) => group.as_str(),
            Group::Unknown => "",
            Group::NoEvent => return None,
        };
        if let Ok(tracefs) = &self.tracefs
            && let Some(record) = of_format(tracefs, group, name)
        {
            return Some(record);
        }
        if group == syscalls::GROUP {
            return syscalls::record(name);
        }
        from_btf::record(self.btf_of(tracepoint)?, group, name)
    }

    fn btf_of(&self, tracepoint: &Tracepoint) -> Option<&Btf> {
        self.tables.get(tracepoint.table?)
    }
}

/// The BTF of the kernel and of those modules that show theirs.
fn tables(folder: &Path) -> Result<Vec<Btf>, BtfUnreadable> {
    let kernel = Btf::parse(&fs::read(folder.join(KERNEL))?)?;
    let modules = fs::read_dir(folder)?
        .flatten()
        .filter(|entry| entry.file_name() != KERNEL);
    let mut tables = vec![kernel.clone()];
    // A module may be gone by now, or be built against another kernel.
    let read = |path| Btf::parse_split(&fs::read(path).ok()?, &kernel).ok();
    tables.extend(modules.filter_map(|entry| read(entry.path())));
    Ok(tables)
}

/// The tracepoints in BTF, and which table has them.
fn in_btf(tables: &[Btf]) -> BTreeMap<&str, usize> {
    let all = tables
        .iter()
        .enumerate()
        .flat_map(|(table, btf)| from_btf::names(btf).map(move |name| (name, table)));
    all.collect()
}

/// What both sources know. A tracepoint in BTF that is no event has no group.
fn joined(tables: &[Btf], events: Vec<(String, String)>) -> Vec<Tracepoint> {
    let in_btf = in_btf(tables);
    let mut bare = in_btf.clone();
    let mut tracepoints: Vec<_> = events
        .into_iter()
        .map(|(group, name)| {
            bare.remove(&*name);
            Tracepoint {
                table: in_btf.get(&*name).copied(),
                group: Group::Named(group),
                name,
            }
        })
        .collect();
    tracepoints.extend(bare.into_iter().map(|(name, table)| Tracepoint {
        group: Group::NoEvent,
        name: name.to_owned(),
        table: Some(table),
    }));
    tracepoints.sort();
    tracepoints
}

/// What is known without tracefs.
fn of_btf_alone(tables: &[Btf]) -> Vec<Tracepoint> {
    let traced = in_btf(tables).into_iter().map(|(name, table)| Tracepoint {
        group: Group::Unknown,
        name: name.to_owned(),
        table: Some(table),
    });
    let calls: BTreeSet<_> = tables.iter().flat_map(from_btf::syscalls).collect();
    let calls = calls
        .into_iter()
        .filter_map(syscalls::events_of)
        .flatten()
        .map(|name| Tracepoint {
            group: Group::Named(syscalls::GROUP.to_owned()),
            name,
            table: None,
        });
    let mut tracepoints: Vec<_> = traced.chain(calls).collect();
    tracepoints.sort();
    tracepoints
}

fn of_format(tracefs: &Tracefs, group: &str, name: &str) -> Option<Record> {
    let format = tracefs.format_file(group, name).ok()?;
    let own = format.fields.iter().filter(|field| !field.is_common());
    let fields = own.map(|field| RecordField {
        name: field.name.clone(),
        c_type: field.c_type(),
        declaration: field.declaration.clone(),
        offset: field.offset,
        size: field.size,
        signed: Some(field.signed),
    });
    Some(Record {
        id: format.id,
        fields: fields.collect(),
        source: Source::Format,
    })
}
