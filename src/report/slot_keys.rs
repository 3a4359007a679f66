//! Maps whose keys have a slot: each entry counts one bucket of a histogram.
//!
//! Programs with several histograms in one map put the slot into the key, with other members that
//! identify the histogram (BCC's `BPF_HISTOGRAM(dist, struct disk_key)`). Such
//! a map is a hash map, per CPU or not, whose values are integers and whose keys are
//! structs with an integer called `slot`. Where the one other member is a time by its
//! name (`second`, `ts`, `start_ms`), the histograms follow one another: a heatmap.

use std::collections::BTreeMap;

use super::datum::{Datum, number};
use super::heatmap::Heatmap;
use super::histogram::Buckets;
use super::histogram_rule::{HistogramRule, MAX_SLOTS, integer_size};
use crate::btf::{Btf, Kind, Member};
use crate::program::MapDef;
use crate::spec::MapType;
use crate::util::TypeId;

/// Words in names of times.
const TIMES: &[&str] = &[
    "time",
    "times",
    "timestamp",
    "ts",
    "ns",
    "us",
    "ms",
    "sec",
    "secs",
    "second",
    "seconds",
    "minute",
    "minutes",
    "hour",
    "hours",
];

/// The most slots if the user chooses linear buckets.
const MAX_LINEAR: u64 = 4096;

/// The parts of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SlotKeys {
    pub buckets: Buckets,
    slot: Part,
    /// The members that identify the histogram.
    others: Vec<Part>,
    /// One more than the highest valid slot.
    limit: u64,
}

/// A member of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Part {
    name: String,
    ty: TypeId,
    offset: usize,
    size: usize,
}

/// The counts of one histogram, by slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Counts {
    /// The other members of its keys: `dev = 8388608, op = 1`.
    pub of: String,
    /// The counts by slot, with a zero after the last.
    pub counts: Vec<u64>,
}

impl Part {
    fn of(btf: &Btf, member: &Member<'_>) -> Option<Self> {
        let whole = member.bitfield.is_none() && !member.name.is_empty();
        whole.then_some(Self {
            name: member.name.to_owned(),
            ty: member.ty,
            offset: member.bit_offset as usize / 8,
            size: btf.size_of(member.ty).ok()? as usize,
        })
    }

    fn of_key<'a>(&self, key: &'a [u8]) -> &'a [u8] {
        let from_here = key.get(self.offset..).unwrap_or_default();
        from_here.get(..self.size).unwrap_or_default()
    }

    fn is_integer(&self, btf: &Btf) -> bool {
        integer_size(btf, self.ty).is_some()
    }
}

impl HistogramRule {
    /// The parts of a map's keys, if they have a slot.
    pub(super) fn of_keys(self, def: &MapDef, btf: Option<&Btf>) -> Option<SlotKeys> {
        let (buckets, limit) = match self {
            Self::Guess => (Buckets::Log2, MAX_SLOTS.into()),
            Self::Always(buckets @ Buckets::Linear { .. }) => (buckets, MAX_LINEAR),
            Self::Always(buckets) => (buckets, u64::from(MAX_SLOTS) + 1),
            Self::Never => return None,
        };
        let btf = btf?;
        let is_hash = matches!(
            def.map_type,
            MapType::Hash | MapType::PercpuHash | MapType::LruHash | MapType::LruPercpuHash
        );
        let key = btf.resolve(def.key_type?).ok()?;
        if !is_hash || key.kind() != Kind::Struct || integer_size(btf, def.value_type?).is_none() {
            return None;
        }
        let parts: Option<Vec<_>> = key.members().map(|member| Part::of(btf, &member)).collect();
        let (slots, others): (Vec<_>, Vec<_>) =
            parts?.into_iter().partition(|part| part.name == "slot");
        let [slot] = <[Part; 1]>::try_from(slots).ok()?;
        (slot.is_integer(btf) && !others.is_empty()).then_some(SlotKeys {
            buckets,
            slot,
            others,
            limit,
        })
    }
}

impl SlotKeys {
    /// The member that is a time, if it is the only one besides the slot.
    fn time(&self, btf: &Btf) -> Option<&Part> {
        let [part] = &self.others[..] else {
            return None;
        };
        let mut words = part.name.split(|c: char| !c.is_ascii_alphanumeric());
        let is_time = words.any(|word| TIMES.contains(&word.to_ascii_lowercase().as_str()));
        (is_time && part.is_integer(btf)).then_some(part)
    }

    /// The entries as a heatmap; `None` if the keys have no time, or a slot is invalid.
    pub fn heatmap(&self, btf: &Btf, entries: &[(Vec<u8>, u64)]) -> Option<Heatmap> {
        let time = self.time(btf)?;
        let cells = entries.iter().map(|(key, count)| {
            let at = number(time.of_key(key))?;
            Some((at, self.slot_of(key)?, *count))
        });
        let cells: Option<Vec<_>> = cells.collect();
        Some(Heatmap::new(self.buckets, &time.name, cells?))
    }

    /// The entries as histograms, ordered by the other members; `None` if a slot is invalid.
    pub fn histograms(&self, btf: &Btf, entries: &[(Vec<u8>, u64)]) -> Option<Vec<Counts>> {
        let mut all: BTreeMap<Vec<(u64, &[u8])>, Counts> = BTreeMap::new();
        for (key, count) in entries {
            let slot = self.slot_of(key)?;
            let others = self.others.iter().map(|part| part.of_key(key));
            // Numbers sort by value, other members by their bytes.
            let order = others
                .map(|bytes| (number(bytes).unwrap_or(0), bytes))
                .collect();
            let histogram = all.entry(order).or_insert_with(|| Counts {
                of: self.others_of(btf, key),
                counts: Vec::new(),
            });
            let counts = &mut histogram.counts;
            counts.resize(counts.len().max(slot + 2), 0);
            if let Some(sum) = counts.get_mut(slot) {
                *sum = sum.wrapping_add(*count);
            }
        }
        Some(all.into_values().collect())
    }

    fn slot_of(&self, key: &[u8]) -> Option<usize> {
        let slot = number(self.slot.of_key(key)).filter(|slot| *slot < self.limit)?;
        usize::try_from(slot).ok()
    }

    fn others_of(&self, btf: &Btf, key: &[u8]) -> String {
        let others = self.others.iter().map(|part| {
            let value = Datum::new(Some(btf), Some(part.ty), part.of_key(key));
            format!("{} = {value}", part.name)
        });
        others.collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::btf::{Array, Builder, Encoding};

    /// A hash map whose keys have these members, integers of 4 bytes unless they are
    /// called `name`.
    fn map(members: &[&'static str]) -> (MapDef, Btf) {
        let mut builder = Builder::new();
        let int = builder.int("unsigned int", 4, Encoding::Unsigned);
        let char_ = builder.int("char", 1, Encoding::Char);
        let text = builder.array(Array {
            element: char_,
            index: int,
            len: 4,
        });
        let fields: Vec<_> = (0..)
            .step_by(32)
            .zip(members)
            .map(|(bit_offset, &name)| Member {
                name,
                ty: if name == "name" { text } else { int },
                bit_offset,
                bitfield: None,
            })
            .collect();
        let size = 4 * u32::try_from(members.len()).unwrap();
        let key = builder.structure("key", size, &fields);
        let mut def = MapDef::new("dist", MapType::Hash, size, 4, 1024);
        (def.key_type, def.value_type) = (Some(key), Some(int));
        (def, builder.build().unwrap())
    }

    fn entry(key: &[u32], count: u64) -> (Vec<u8>, u64) {
        (
            key.iter().flat_map(|part| part.to_le_bytes()).collect(),
            count,
        )
    }

    #[test]
    fn a_slot_beside_others_makes_histograms() {
        let (def, btf) = map(&["dev", "slot", "name"]);
        let keys = HistogramRule::Guess.of_keys(&def, Some(&btf)).unwrap();
        let ab = u32::from_le_bytes(*b"ab\0\0");
        let entries = [
            entry(&[256, 3, ab], 7),
            entry(&[2, 1, ab], 5),
            entry(&[256, 0, ab], 1),
        ];
        assert_eq!(keys.heatmap(&btf, &entries), None);
        let histograms = keys.histograms(&btf, &entries).unwrap();
        let shown: Vec<_> = histograms
            .iter()
            .map(|h| (h.of.as_str(), &h.counts[..]))
            .collect();
        assert_eq!(
            shown,
            [
                ("dev = 2, name = \"ab\"", &[0, 5, 0][..]),
                ("dev = 256, name = \"ab\"", &[1, 0, 0, 7, 0]),
            ]
        );
        // An invalid slot: no histograms.
        assert_eq!(keys.histograms(&btf, &[entry(&[1, 65, ab], 1)]), None);
    }

    #[test]
    fn a_slot_beside_a_time_makes_a_heatmap() {
        for name in ["second", "ts", "start_ms", "Time"] {
            let (def, btf) = map(&[name, "slot"]);
            let keys = HistogramRule::Guess.of_keys(&def, Some(&btf)).unwrap();
            assert!(keys.heatmap(&btf, &[entry(&[7, 3], 1)]).is_some(), "{name}");
            assert_eq!(keys.heatmap(&btf, &[entry(&[7, 65], 1)]), None);
        }
        for members in [
            &["dev", "slot"][..],
            &["ts", "dev", "slot"],
            &["kitsch", "slot"],
        ] {
            let (def, btf) = map(members);
            let keys = HistogramRule::Guess.of_keys(&def, Some(&btf)).unwrap();
            assert_eq!(keys.time(&btf), None, "{members:?}");
        }
    }

    #[test]
    fn other_maps_have_none() {
        let (def, btf) = map(&["second", "slot"]);
        let guess = |def: &MapDef| HistogramRule::Guess.of_keys(def, Some(&btf));
        assert!(guess(&def).is_some());
        assert_eq!(HistogramRule::Never.of_keys(&def, Some(&btf)), None);
        assert_eq!(HistogramRule::Guess.of_keys(&def, None), None);
        let mut array = def.clone();
        array.map_type = MapType::Array;
        let mut no_count = def.clone();
        no_count.value_type = def.key_type;
        for other in [array, no_count] {
            assert_eq!(guess(&other), None);
        }
        for members in [
            &["second", "dev"][..],
            &["slot"],
            &["second", "slot", "slot"],
        ] {
            let (def, btf) = map(members);
            assert_eq!(HistogramRule::Guess.of_keys(&def, Some(&btf)), None);
        }
    }

    /// With linear buckets, slots may be higher.
    #[test]
    fn linear_slots_go_further() {
        let (def, btf) = map(&["dev", "slot"]);
        let rule = HistogramRule::Always(Buckets::Linear { min: 0, step: 10 });
        let keys = rule.of_keys(&def, Some(&btf)).unwrap();
        assert!(keys.histograms(&btf, &[entry(&[1, 4095], 1)]).is_some());
        assert_eq!(keys.histograms(&btf, &[entry(&[1, 4096], 1)]), None);
    }
}
