//! Decides whether the numbers in a map are a histogram.
//!
//! BPF programs usually count in powers of two, but an object does not say so. A map is taken for
//! a histogram
//!
//! - as a whole: an array, per CPU or not, of integers of 4 or 8 bytes, of 2 to 65
//!   entries, with `hist`, `histogram` or `dist` among the words of its name
//!   (`write_hist`, `dist`; not `history`);
//! - entry by entry: where the value is a struct in which an array of integers is
//!   called `slots`, as in libbpf-tools;
//! - by a part of the key: see [`slot_keys`](super::slot_keys).
//!
//! Slot n counts the values from 2^n to 2^(n+1)-1. The user can choose other buckets, or none,
//! for each map.

use crate::btf::{Btf, Kind};
use crate::program::MapDef;
use crate::spec::MapType;
use crate::util::TypeId;

use super::histogram::Buckets;

/// How to tell whether a map is a histogram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HistogramRule {
    /// By its name and its types, as above.
    #[default]
    Guess,
    /// It is one, with these buckets.
    Always(Buckets),
    /// It is not one.
    Never,
}

/// An array of counts within a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slots {
    pub buckets: Buckets,
    /// The first byte of the first count.
    pub offset: u32,
    /// Bytes of a count.
    pub size: u32,
    /// How many counts.
    pub count: u32,
}

/// The most slots of a histogram: one for each bit, and one for larger values.
pub(super) const MAX_SLOTS: u32 = 65;

impl HistogramRule {
    /// The buckets of a map that is a histogram as a whole.
    pub(super) fn of_map(self, def: &MapDef, btf: Option<&Btf>) -> Option<Buckets> {
        let is_array = matches!(def.map_type, MapType::Array | MapType::PercpuArray);
        let counts = def.value_type.zip(btf);
        let counts = counts.is_none_or(|(ty, btf)| integer_size(btf, ty).is_some());
        let fits = is_array && counts && matches!(def.value_size, 4 | 8);
        match self {
            Self::Always(buckets) => fits.then_some(buckets),
            Self::Guess if fits && (2..=MAX_SLOTS).contains(&def.max_entries) => {
                let mut words = def.name.split(|c: char| !c.is_ascii_alphanumeric());
                let named = words.any(|word| matches!(word, "hist" | "histogram" | "dist"));
                named.then_some(Buckets::Log2)
            }
            Self::Guess | Self::Never => None,
        }
    }

    /// The counts within each value of a map.
    pub(super) fn of_value(self, def: &MapDef, btf: Option<&Btf>) -> Option<Slots> {
        let buckets = match self {
            Self::Guess => Buckets::Log2,
            Self::Always(buckets) => buckets,
            Self::Never => return None,
        };
        let btf = btf?;
        let value = btf.resolve(def.value_type?).ok()?;
        if value.kind() != Kind::Struct || def.map_type.info().per_cpu {
            return None;
        }
        let member = value.members().find(|member| member.name == "slots")?;
        let array = btf.resolve(member.ty).ok()?.array()?;
        let size = integer_size(btf, array.element)?;
        (2..=MAX_SLOTS).contains(&array.len).then_some(Slots {
            buckets,
            offset: member.bit_offset / 8,
            size,
            count: array.len,
        })
    }
}

/// The size of an integer type of 4 or 8 bytes.
pub(super) fn integer_size(btf: &Btf, ty: TypeId) -> Option<u32> {
    let ty = btf.resolve(ty).ok().filter(|ty| ty.kind() == Kind::Int)?;
    ty.size().filter(|size| matches!(size, 4 | 8))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::btf::{Array, Builder, Encoding, Member};

    fn array(name: &str, value_size: u32, max_entries: u32) -> MapDef {
        MapDef::new(name, MapType::Array, 4, value_size, max_entries)
    }

    #[test]
    fn a_name_and_a_shape_make_a_histogram() {
        let guess = |def: &MapDef| HistogramRule::Guess.of_map(def, None);
        for name in ["hist", "write_hist", "dist", "latency_histogram"] {
            assert_eq!(guess(&array(name, 8, 64)), Some(Buckets::Log2), "{name}");
        }
        for def in [
            array("history", 8, 64),
            array("counts", 8, 64),
            array("hist", 16, 64),
            array("hist", 8, 1),
            array("hist", 8, 1000),
            MapDef::new("hist", MapType::Hash, 4, 8, 64),
        ] {
            assert_eq!(guess(&def), None, "{def:?}");
        }
    }

    #[test]
    fn whoever_looks_knows_better() {
        let linear = Buckets::Linear { min: 0, step: 10 };
        let counts = array("counts", 4, 1000);
        assert_eq!(
            HistogramRule::Always(linear).of_map(&counts, None),
            Some(linear)
        );
        assert_eq!(
            HistogramRule::Never.of_map(&array("hist", 8, 64), None),
            None
        );
        // Values of other sizes are never counts.
        let hash = MapDef::new("counts", MapType::Hash, 4, 16, 64);
        assert_eq!(HistogramRule::Always(linear).of_map(&hash, None), None);
    }

    #[test]
    fn slots_within_a_value_are_found() {
        let mut builder = Builder::new();
        let u32_type = builder.int("unsigned int", 4, Encoding::Unsigned);
        let slots = builder.array(Array {
            element: u32_type,
            index: u32_type,
            len: 27,
        });
        let member = |name, ty, bit_offset| Member {
            name,
            ty,
            bit_offset,
            bitfield: None,
        };
        let members = [member("missed", u32_type, 0), member("slots", slots, 32)];
        let hist = builder.structure("hist", 112, &members);
        let btf = builder.build().unwrap();
        let mut def = MapDef::new("hists", MapType::Hash, 4, 112, 1024);
        def.value_type = Some(hist);
        let found = HistogramRule::Guess.of_value(&def, Some(&btf)).unwrap();
        assert_eq!((found.offset, found.size, found.count), (4, 4, 27));
        assert_eq!(HistogramRule::Never.of_value(&def, Some(&btf)), None);
    }
}
