//! The result of a run, as far as an engine shows it.

use std::borrow::Cow;
use std::fmt;

use crate::btf::Btf;
use crate::program::MapDef;
use crate::spec::MapType;
use crate::vm::memory::Pointer;
use crate::vm::{Fault, Outcome, RanOn};

/// The result of a run; by default that of one that stopped early.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Answer {
    /// The low half of r0; `None` if the run stopped before.
    pub retval: Option<u32>,
    /// The packet afterwards.
    pub packet: Option<Vec<u8>>,
    /// The context afterwards, if the engine shows it.
    pub context: Option<Vec<u8>>,
    /// The maps whose elements can be read.
    pub maps: Vec<MapContents>,
    /// The records of each ring buffer, oldest first, in the order of the maps.
    pub records: Vec<Vec<Vec<u8>>>,
    /// Results that only bpflab's own engines have.
    pub details: Option<Details>,
}

/// The contents of a map.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MapContents {
    /// Its name.
    pub name: String,
    /// The distance between the values of two CPUs in bytes, in per-CPU maps.
    pub per_cpu: Option<usize>,
    /// Keys and values, sorted by key.
    pub entries: Vec<(Vec<u8>, Vec<u8>)>,
}

/// Results that only bpflab's own engines have.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Details {
    /// The engine of the run, and why it is not the one that was asked for.
    pub ran_on: RanOn,
    /// All outputs, r0 and the count of instructions.
    pub outcome: Outcome,
    /// Why the run stopped.
    pub fault: Option<Box<Fault>>,
}

/// The first difference between two answers.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Difference {
    /// What differs.
    pub what: String,
    /// The first answer's value.
    pub one: String,
    /// The second answer's value.
    pub other: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, one, other } = self;
        write!(f, "{what}: {one}, {other}")
    }
}

impl Answer {
    /// What [`difference`] compares, each with its name, as text: for the comparison of two runs of
    /// the same engine in different processes.
    pub(crate) fn texts(&self) -> Vec<(String, String)> {
        fn text(what: impl Into<String>, value: &dyn fmt::Debug) -> (String, String) {
            (what.into(), format!("{value:?}"))
        }
        let Self {
            retval,
            packet,
            context,
            maps,
            records,
            details,
        } = self;
        let details = details.iter().flat_map(|details| {
            let Details { outcome, fault, .. } = details;
            [
                text("fault", fault),
                text("runs", &outcome.runs),
                text("outputs", &outcome.outputs),
                text("outcome", outcome),
            ]
        });
        let results = [
            text("return value", retval),
            text("packet", packet),
            text("context", context),
        ];
        let maps = maps
            .iter()
            .map(|map| text(format!("map {}", map.name), &map.entries));
        let rings = [text("ring buffers", records)];
        details.chain(results).chain(maps).chain(rings).collect()
    }
}

fn differ<T: fmt::Debug + PartialEq>(what: &str, one: &T, other: &T) -> Result<(), Difference> {
    if one == other {
        return Ok(());
    }
    Err(Difference {
        what: what.to_owned(),
        one: format!("{one:?}"),
        other: format!("{other:?}"),
    })
}

/// The first difference between two answers, in what both have. Two of bpflab's own engines
/// must agree in every bit; a kernel may have run on another CPU.
#[must_use]
pub fn difference(one: &Answer, other: &Answer) -> Option<Difference> {
    compare(one, other).err()
}

fn compare(one: &Answer, other: &Answer) -> Result<(), Difference> {
    if let (Some(one), Some(other)) = (&one.details, &other.details) {
        differ("fault", &one.fault, &other.fault)?;
        let (first, second) = told_alike(&one.outcome, &other.outcome);
        differ("runs", &first.runs, &second.runs)?;
        differ("outputs", &first.outputs, &second.outputs)?;
        differ("outcome", &first, &second)?;
    }
    differ("return value", &one.retval, &other.retval)?;
    if one.packet.is_some() && other.packet.is_some() {
        differ("packet", &one.packet, &other.packet)?;
    }
    if one.context.is_some() && other.context.is_some() {
        differ("context", &one.context, &other.context)?;
    }
    let same_machine = one.details.is_some() == other.details.is_some();
    for (one, other) in one.maps.iter().zip(&other.maps) {
        let what = format!("map {}", one.name);
        match one.per_cpu {
            Some(len) if !same_machine => {
                differ(&what, &of_cpus(one, len), &of_cpus(other, len))?;
            }
            _ => differ(&what, &one.entries, &other.entries)?,
        }
    }
    differ("maps", &one.maps.len(), &other.maps.len())?;
    differ("ring buffers", &one.records, &other.records)
}

/// Two outcomes without what only one engine tells: instruction counts, and the functions that the
/// places of references on the stack belong to.
fn told_alike<'a>(one: &'a Outcome, other: &'a Outcome) -> (Cow<'a, Outcome>, Cow<'a, Outcome>) {
    let (mut one, mut other) = (Cow::Borrowed(one), Cow::Borrowed(other));
    for at in 0..one.runs.len().min(other.runs.len()) {
        let count = |outcome: &Outcome| outcome.runs.get(at).is_some_and(|run| run.insns.is_some());
        if count(&one) != count(&other) {
            for outcome in [&mut one, &mut other] {
                if let Some(run) = outcome.to_mut().runs.get_mut(at) {
                    run.insns = None;
                }
            }
        }
    }
    if one.unreleased != other.unreleased {
        for outcome in [&mut one, &mut other] {
            for held in &mut outcome.to_mut().unreleased {
                if let Pointer::Region { place, .. } = held
                    && let Some((what, _)) = place.split_once(" at stack")
                {
                    *place = what.to_owned();
                }
            }
        }
    }
    (one, other)
}

impl MapContents {
    /// The contents of a map with this definition and types. Special fields count as zeros: they
    /// have addresses of the kernel's, or state of its own.
    pub(crate) fn new(
        def: &MapDef,
        btf: Option<&Btf>,
        mut entries: Vec<(Vec<u8>, Vec<u8>)>,
    ) -> Self {
        let per_cpu = def.map_type.info().per_cpu;
        let len = def.value_size.next_multiple_of(8) as usize;
        let fields = btf.and_then(|btf| def.special_fields(btf));
        for field in fields.iter().flat_map(|fields| fields.iter()) {
            let bytes = field.off as usize..(field.off + field.size) as usize;
            let values = entries.iter_mut();
            let values = values.flat_map(|(_, value)| value.chunks_mut(len.max(8)));
            values
                .filter_map(|value| value.get_mut(bytes.clone()))
                .for_each(|bytes| bytes.fill(0));
        }
        entries.sort();
        Self {
            name: def.name.clone(),
            per_cpu: per_cpu.then_some(len.max(8)),
            entries,
        }
    }

    /// Whether maps with this definition have elements that can be read by key.
    pub(crate) fn are_kept_by(def: &MapDef) -> bool {
        let holds_others = def.map_type.holds_maps()
            || matches!(
                def.map_type,
                MapType::ProgArray
                    | MapType::PerfEventArray
                    | MapType::CgroupArray
                    | MapType::Xskmap
                    | MapType::Sockmap
                    | MapType::Sockhash
                    | MapType::SkStorage
                    | MapType::InodeStorage
                    | MapType::TaskStorage
                    | MapType::CgrpStorage
            );
        def.key_size > 0 && !holds_others
    }
}

/// Whether a map is a ring buffer that programs write to.
pub(super) fn is_ring(def: &MapDef) -> bool {
    def.map_type == MapType::Ringbuf
}

/// The entries of a per-CPU map without the CPUs of values: each key with its sorted non-zero
/// values.
fn of_cpus(map: &MapContents, len: usize) -> Vec<(&[u8], Vec<&[u8]>)> {
    let values = |value| {
        let cpus = <[u8]>::chunks(value, len);
        let mut set: Vec<_> = cpus.filter(|cpu| cpu.iter().any(|b| *b != 0)).collect();
        set.sort_unstable();
        set
    };
    let entries = map.entries.iter();
    entries
        .map(|(key, value)| (&**key, values(value)))
        .collect()
}
