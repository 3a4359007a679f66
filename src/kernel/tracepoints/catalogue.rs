//! All tracepoints of a kernel, from BTF and tracefs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::{fmt, fs, io};

use thiserror::Error;

use super::pattern::Pattern;
use super::tracepoint::{Argument, DescriptionSource, Group, Record, RecordField, Tracepoint};
use super::{from_btf, syscalls};
use crate::btf::{Btf, BtfError};
use crate::kernel::btf_folder::{FOLDER, KERNEL, modules};
use crate::kernel::tracefs::{Tracefs, TracefsError};
use crate::util::nearest_first;

/// Why there is no catalogue.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CatalogueError {
    /// Neither BTF nor tracefs can be read.
    #[error("cannot list tracepoints: no BTF ({btf}), and {tracefs}")]
    NoSource {
        /// Why BTF can't be read.
        btf: BtfUnreadable,
        /// Why tracefs can't be read.
        tracefs: Box<TracefsError>,
    },
}

/// Why BTF can't be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BtfUnreadable {
    /// Its file can't be read.
    #[error("{FOLDER}/{KERNEL}: {0}")]
    File(#[from] io::Error),
    /// Its contents are invalid.
    #[error("{FOLDER}/{KERNEL}: {0}")]
    Content(#[from] BtfError),
}

/// A suggestion for a pattern that matches nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Hint {
    /// The pattern is a group's name, which lists nothing.
    Group(String),
    /// The pattern is the event of a system call, to which other program types attach.
    SystemCall,
    /// Similar names, the nearest first.
    Similar(Vec<String>),
}

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Group(group) => write!(f, "it is a group: '{group}:*' lists it"),
            Self::SystemCall => f.write_str(
                "it is an event only (section tp): programs of raw_tp and tp_btf attach to \
                 sys_enter and sys_exit, which all system calls hit",
            ),
            Self::Similar(names) => write!(f, "similar are {}", names.join(", ")),
        }
    }
}

/// The tracepoints of a kernel.
#[derive(Debug)]
pub struct Catalogue {
    tables: Vec<Btf>,
    tracefs: Result<Tracefs, Option<TracefsError>>,
    tracepoints: Vec<Tracepoint>,
}

impl Catalogue {
    /// The tracepoints of the running kernel and its modules.
    ///
    /// # Errors
    /// [`CatalogueError::NoSource`] if neither BTF nor tracefs can be read.
    pub fn of_this_kernel() -> Result<Self, CatalogueError> {
        let tracefs = Tracefs::open().and_then(|tracefs| {
            let events = tracefs.events()?;
            Ok((tracefs, events))
        });
        match (tables(Path::new(FOLDER)), tracefs) {
            (Err(btf), Err(tracefs)) => {
                let tracefs = Box::new(tracefs);
                Err(CatalogueError::NoSource { btf, tracefs })
            }
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

    /// The tracepoints of any kernel, from its BTF alone.
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

    /// All tracepoints, sorted by group and name.
    #[must_use]
    pub fn tracepoints(&self) -> &[Tracepoint] {
        &self.tracepoints
    }

    /// Whether the groups of all events are known.
    #[must_use]
    pub const fn has_groups(&self) -> bool {
        self.tracefs.is_ok()
    }

    /// Why tracefs could not be read, if that was tried.
    #[must_use]
    pub fn without_tracefs(&self) -> Option<&TracefsError> {
        self.tracefs.as_ref().err()?.as_ref()
    }

    /// The tracepoints that match any of the patterns; all without patterns.
    #[must_use]
    pub fn matching(&self, patterns: &[Pattern]) -> Vec<&Tracepoint> {
        let wanted = |tracepoint: &&Tracepoint| {
            patterns.is_empty() || patterns.iter().any(|pattern| pattern.matches(tracepoint))
        };
        self.tracepoints.iter().filter(wanted).collect()
    }

    /// A suggestion for a pattern that matches nothing.
    #[must_use]
    pub fn hint(&self, pattern: &Pattern) -> Option<Hint> {
        /// How many similar names are suggested.
        const SIMILAR: usize = 3;
        let events = pattern.with_events();
        let all = &self.tracepoints;
        if all.iter().any(|tracepoint| events.matches(tracepoint)) {
            return Some(Hint::SystemCall);
        }
        let mut groups = all.iter().filter_map(|tracepoint| tracepoint.group.name());
        if let Some(group) = groups.find(|group| pattern.names_group(group)) {
            return Some(Hint::Group(group.to_owned()));
        }
        let similar = self.similar(pattern, SIMILAR);
        (!similar.is_empty()).then_some(Hint::Similar(similar))
    }

    /// At most `count` names similar to a pattern, the nearest first; none for a pattern that
    /// consists of wildcards.
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
        let asked = pattern.without_stars();
        if asked.is_empty() {
            return Vec::new();
        }
        let mut names = nearest_first(&asked, names.into_iter().collect());
        names.truncate(count);
        names
    }

    /// The arguments that a tracepoint passes to programs, and their source. Events of system
    /// calls have the call's arguments, or its result. None if no source has them.
    #[must_use]
    pub fn arguments(&self, tracepoint: &Tracepoint) -> Option<(Vec<Argument>, DescriptionSource)> {
        if tracepoint.group.name() == Some(syscalls::GROUP) {
            let record = self.record(tracepoint)?;
            return Some((syscalls::arguments(&record), record.source));
        }
        let btf = self.btf_of(tracepoint)?;
        let arguments = from_btf::arguments(btf, &tracepoint.name)?;
        Some((arguments, DescriptionSource::Btf))
    }

    /// The fields of its records; none if no source has them, or it has no records.
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

/// The BTF of the kernel and of all modules that have BTF.
fn tables(folder: &Path) -> Result<Vec<Btf>, BtfUnreadable> {
    let kernel = Btf::parse(&fs::read(folder.join(KERNEL))?)?;
    let modules = modules(folder, &kernel).map(|(_, btf)| btf);
    Ok([kernel.clone()].into_iter().chain(modules).collect())
}

/// The tracepoints in BTF, with the index of their table.
fn in_btf(tables: &[Btf]) -> BTreeMap<&str, usize> {
    let all = tables
        .iter()
        .enumerate()
        .flat_map(|(table, btf)| from_btf::names(btf).map(move |name| (name, table)));
    all.collect()
}

/// The tracepoints of both sources. A tracepoint in BTF that is not an event has no group.
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

/// The tracepoints known without tracefs.
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
        source: DescriptionSource::Format,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::btf::{Builder, Encoding, Linkage, Member, Param};
    use crate::util::TypeId;

    /// A kernel with the tracepoints `alpha` (an event) and `beta`, and a system call.
    fn kernel() -> Btf {
        let mut b = Builder::new();
        let int = b.int("int", 4, Encoding::Signed);
        let task = b.structure("task_struct", 4, &[]);
        let task = b.ptr(task);
        let void = b.ptr(TypeId(0));
        let param = |name, ty| Param { name, ty };
        let proto = b.prototype(
            TypeId(0),
            &[param("__data", void), param("p", task), param("", int)],
        );
        b.function("__probestub_alpha", proto, Linkage::Static);
        let pointer = b.ptr(proto);
        for name in ["btf_trace_beta", "btf_trace_alpha", "other"] {
            b.typedef(name, pointer);
        }
        let member = |name, ty, bit_offset| Member {
            name,
            ty,
            bit_offset,
            bitfield: None,
        };
        let entry = b.structure("trace_entry", 8, &[]);
        let fields = [
            member("ent", entry, 0),
            member("pid", int, 64),
            member("__data", int, 96),
        ];
        b.structure("trace_event_raw_alpha", 12, &fields);
        b.structure("syscall_trace_enter", 8, &[]);
        let call = b.prototype(int, &[]);
        b.function("__x64_sys_write", call, Linkage::Static);
        b.function("__x64_sys_of_no_table", call, Linkage::Static);
        b.build().unwrap()
    }

    fn names(tracepoints: &[&Tracepoint]) -> Vec<String> {
        tracepoints.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn btf_alone_knows_names_arguments_and_records() {
        let catalogue = Catalogue::of_btf(kernel());
        let all = catalogue.matching(&[]);
        let calls = ["syscalls:sys_enter_write", "syscalls:sys_exit_write"];
        assert_eq!(names(&all), [calls[0], calls[1], "alpha", "beta"]);
        assert!(!catalogue.has_groups() && catalogue.without_tracefs().is_none());

        let (arguments, source) = catalogue.arguments(all[2]).unwrap();
        let shown: Vec<_> = arguments
            .iter()
            .map(|argument| (&*argument.name, &*argument.c_type))
            .collect();
        assert_eq!(shown, [("p", "struct task_struct *"), ("arg1", "int")]);
        assert_eq!(source, DescriptionSource::Btf);
        let record = catalogue.record(all[2]).unwrap();
        let [pid] = record.fields.as_slice() else {
            panic!("{record:?}");
        };
        assert_eq!((&*pid.declaration, pid.offset, pid.size), ("int pid", 8, 4));
        assert_eq!(pid.signed, Some(true));

        // Without a struct, the typedef still has the types of the arguments.
        assert_eq!(catalogue.record(all[3]), None);
        let (arguments, _) = catalogue.arguments(all[3]).unwrap();
        assert_eq!(arguments.len(), 2);
        let (arguments, source) = catalogue.arguments(all[1]).unwrap();
        assert_eq!(
            (&*arguments[0].name, source),
            ("ret", DescriptionSource::Syscalls)
        );
    }

    #[test]
    fn groups_come_from_tracefs_and_the_rest_are_no_events() {
        let tables = [kernel()];
        let event = |group: &str, name: &str| (group.to_owned(), name.to_owned());
        let events = vec![event("letters", "alpha"), event("uprobes", "p_main")];
        let joined = joined(&tables, events);
        assert_eq!(
            names(&joined.iter().collect::<Vec<_>>()),
            ["letters:alpha", "uprobes:p_main", "beta"]
        );
        assert_eq!(joined[2].group, Group::NoEvent);
        let in_btf: Vec<_> = joined.iter().map(Tracepoint::in_btf).collect();
        assert_eq!(in_btf, [true, false, true]);
    }

    #[test]
    fn modules_have_tables_of_their_own() {
        let folder = std::env::temp_dir().join(format!("bpflab-btf-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let kernel = kernel();
        let mut module = Builder::split(&kernel);
        let void = module.ptr(TypeId(0));
        let proto = module.prototype(
            TypeId(0),
            &[Param {
                name: "__data",
                ty: void,
            }],
        );
        let pointer = module.ptr(proto);
        module.typedef("btf_trace_gamma", pointer);
        let files = [
            ("module", module.build().unwrap().to_bytes()),
            ("broken", b"no BTF".to_vec()),
        ];
        for (name, bytes) in files {
            fs::write(folder.join(name), bytes).unwrap();
        }
        assert!(matches!(tables(&folder), Err(BtfUnreadable::File(_))));
        fs::write(folder.join(KERNEL), kernel.to_bytes()).unwrap();
        let found = tables(&folder);
        fs::remove_dir_all(&folder).unwrap();

        let catalogue = Catalogue::of_tables(found.unwrap(), None);
        let gamma = catalogue.matching(&[Pattern::parse("gamma")])[0];
        let (arguments, _) = catalogue.arguments(gamma).unwrap();
        assert!(arguments.is_empty());
        assert_eq!(catalogue.matching(&[Pattern::parse("alpha")]).len(), 1);
    }

    #[test]
    fn similar_names_are_offered_as_they_were_asked_for() {
        let catalogue = Catalogue::of_btf(kernel());
        let similar = |text| catalogue.similar(&Pattern::parse(text), 1);
        assert_eq!(similar("alhpa*"), ["alpha"]);
        assert_eq!(
            similar("syscals:sys_enter_wr*"),
            ["syscalls:sys_enter_write"]
        );
    }

    #[test]
    fn what_was_meant_is_said() {
        let catalogue = Catalogue::of_btf(kernel());
        let hint = |text| {
            let pattern = Pattern::parse(text);
            assert!(
                catalogue
                    .matching(std::slice::from_ref(&pattern))
                    .is_empty()
            );
            catalogue.hint(&pattern)
        };
        assert_eq!(hint("syscalls"), Some(Hint::Group("syscalls".to_owned())));
        assert_eq!(hint("raw_tp/sys_enter_write"), Some(Hint::SystemCall));
        let Some(Hint::Similar(names)) = hint("alhpa") else {
            panic!("no names");
        };
        assert_eq!((names.len(), &*names[0]), (3, "alpha"));
        assert_eq!(hint(""), None);
    }

    #[test]
    fn this_kernels_tracepoints_have_arguments() {
        let catalogue = match Catalogue::of_this_kernel() {
            Ok(catalogue) => catalogue,
            Err(error) => return crate::shared::skip(crate::shared::Need::Kernel, error),
        };
        let [switch] = catalogue.matching(&[Pattern::parse("sched:sched_switch")])[..] else {
            panic!("no sched_switch");
        };
        if switch.in_btf() {
            let (arguments, _) = catalogue.arguments(switch).unwrap();
            assert_eq!(arguments[1].name, "prev");
            assert_eq!(arguments[1].c_type, "struct task_struct *");
        }
        let record = catalogue.record(switch).unwrap();
        let pid = record.fields.iter().find(|field| field.name == "prev_pid");
        assert_eq!(pid.map(|field| (field.offset, field.size)), Some((24, 4)));
        assert_eq!(record.id.is_some(), catalogue.has_groups());
    }
}
