//! The first Linux release that has a program type, attach type, map type, flag, helper, kfunc or
//! kind of instruction.
//!
//! The table is a text file, one feature per line: its kind, its name and the release. The
//! releases are those of the commits that added the features to Linus Torvalds' tree;
//! a distribution's kernel may have one earlier. Enumerations of `include/uapi/linux/bpf.h` and
//! functions are held against the BTF of kernels from 6.1 to 7.3 (`tests/library/since.rs`).

use std::fmt;

use serde::{Serialize, Serializer};

const TABLE: &str = include_str!("since.tsv");

/// A Linux release, such as 5.8.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Release {
    /// The number before the point.
    pub major: u16,
    /// The number after it.
    pub minor: u16,
}

impl Release {
    /// Reads `5.8`; `None` for anything else.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (major, minor) = text.split_once('.')?;
        Some(Self {
            major: major.parse().ok()?,
            minor: minor.parse().ok()?,
        })
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}.{}", self.major, self.minor))
    }
}

impl Serialize for Release {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A kind of feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FeatureKind {
    /// A program type, as in libbpf: `tracepoint`.
    ProgramType,
    /// An attach type, as in libbpf: `trace_fentry`.
    AttachType,
    /// A map type, as in libbpf: `ringbuf`.
    MapType,
    /// A flag of `BPF_PROG_LOAD`: `BPF_F_SLEEPABLE`.
    ProgramFlag,
    /// A flag of `BPF_MAP_CREATE`: `BPF_F_MMAPABLE`.
    MapFlag,
    /// A helper: `bpf_ringbuf_reserve`.
    Helper,
    /// A kfunc: `bpf_task_from_pid`.
    Kfunc,
    /// What instructions do: `loop`.
    Code,
}

impl FeatureKind {
    /// All kinds.
    pub const ALL: &'static [Self] = &[
        Self::ProgramType,
        Self::AttachType,
        Self::MapType,
        Self::ProgramFlag,
        Self::MapFlag,
        Self::Helper,
        Self::Kfunc,
        Self::Code,
    ];

    /// The name in the table.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ProgramType => "program_type",
            Self::AttachType => "attach_type",
            Self::MapType => "map_type",
            Self::ProgramFlag => "program_flag",
            Self::MapFlag => "map_flag",
            Self::Helper => "helper",
            Self::Kfunc => "kfunc",
            Self::Code => "code",
        }
    }
}

/// The first release with a feature; `None` if it is not known.
///
/// ```
/// use bpflab::spec::since::{FeatureKind, since};
///
/// let release = since(FeatureKind::MapType, "ringbuf").expect("a map type");
/// assert_eq!(release.to_string(), "5.8");
/// assert_eq!(since(FeatureKind::Helper, "bpf_ringbuf_preserve"), None);
/// ```
#[must_use]
pub fn since(kind: FeatureKind, name: &str) -> Option<Release> {
    features().find_map(|(kind_of, name_of, release)| {
        (kind_of == kind.name() && name_of == name).then(|| Release::parse(release))?
    })
}

/// All features of a kind, with the releases.
pub fn of_kind(kind: FeatureKind) -> impl Iterator<Item = (&'static str, Release)> {
    features().filter_map(move |(kind_of, name, release)| {
        (kind_of == kind.name()).then_some((name, Release::parse(release)?))
    })
}

/// The lines of the table: kind, name, release.
fn features() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    let lines = TABLE.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| {
        let (kind, rest) = line.split_once('\t')?;
        let (name, release) = rest.split_once('\t')?;
        Some((kind, name, release))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{AttachType, MapFlags, MapType, ProgType, helpers, kfuncs};

    #[test]
    fn each_line_is_read() {
        let lines = TABLE.lines().filter(|line| !line.starts_with('#')).count();
        let read: usize = FeatureKind::ALL
            .iter()
            .map(|kind| of_kind(*kind).count())
            .sum();
        assert_eq!(lines, read);
        let mut names: Vec<_> = features().map(|(kind, name, _)| (kind, name)).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), lines, "a feature is there twice");
    }

    #[test]
    fn every_type_flag_and_helper_has_a_release() {
        let program_types = ProgType::ALL.iter().map(|it| it.name());
        let attach_types = AttachType::ALL.iter().map(|it| it.name());
        let map_types = MapType::ALL.iter().map(|it| it.name());
        let helpers = helpers::helpers().iter().map(|it| it.kernel_name);
        let all = program_types
            .map(|name| (FeatureKind::ProgramType, name))
            .chain(attach_types.map(|name| (FeatureKind::AttachType, name)))
            .chain(map_types.map(|name| (FeatureKind::MapType, name)))
            .chain(helpers.map(|name| (FeatureKind::Helper, name)));
        let missing: Vec<_> = all
            .filter(|(kind, name)| *name != "unspec" && since(*kind, name).is_none())
            .collect();
        assert!(missing.is_empty(), "{missing:?}");
        for (name, _) in MapFlags::all().iter_names() {
            let name = format!("BPF_F_{name}");
            assert!(since(FeatureKind::MapFlag, &name).is_some(), "{name}");
        }
    }

    /// All kfuncs have one, except those that only the kernel's own tests call.
    #[test]
    fn every_kfunc_has_a_release() {
        let unknown = kfuncs::kfuncs()
            .iter()
            .filter(|it| since(FeatureKind::Kfunc, it.name).is_none());
        let unknown: Vec<_> = unknown.map(|it| it.name).collect();
        let is_test = |name: &&str| name.contains("_test") || name.starts_with("bpf_kfunc_call_");
        assert!(unknown.iter().all(is_test), "{unknown:?}");
    }
}
