//! The contents of a map after programs have run: entries decoded with BTF, global variables by
//! name, histograms and heatmaps as charts.
//!
//! [`HistogramRule`] decides which maps are histograms.

use std::fmt;

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use super::datum::{Datum, number};
use super::heatmap::Heatmap;
use super::histogram::{Buckets, Histogram, Row};
use super::histogram_rule::{HistogramRule, Slots};
use crate::btf::Btf;
use crate::harness::{Error, MapView, Result};
use crate::program::{MapDef, MapOrigin};
use crate::spec::{MapFlags, MapType};

/// The contents of a map. Its fields are keys of `bpflab run --json`.
#[derive(Debug, Clone, Serialize)]
pub struct MapContents {
    /// `map`.
    kind: &'static str,
    /// The map's name.
    pub map: String,
    /// Map type.
    #[serde(rename = "type")]
    pub map_type: &'static str,
    /// Bytes of a key.
    pub key_size: u32,
    /// Bytes of a value, of one CPU's for per-CPU types.
    pub value_size: u32,
    /// The most entries.
    pub max_entries: u32,
    /// The section whose global data it holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub section: Option<String>,
    /// Its entries, in the map's order. Entries of arrays that are all zero are left out; a map of
    /// global data has variables instead.
    pub entries: Vec<MapEntry>,
    /// How many entries of an array were left out, as they are zero.
    pub zeros: usize,
    /// The global variables of a section, by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variables: Option<Variables>,
    /// The whole map as a histogram.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub histogram: Option<Chart>,
    /// The whole map as a heatmap.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heatmap: Option<Heatmap>,
    /// The entries as histograms, if the keys have slots.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub histograms: Vec<NamedChart>,
}

/// One of a map's histograms.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct NamedChart {
    /// The other members of its keys: `dev = 8388608`.
    pub of: String,
    /// The counts.
    pub histogram: Chart,
}

/// An entry of a map.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct MapEntry {
    /// The key.
    pub key: Datum,
    /// The value; in per-CPU maps a list of the CPUs' values, CPU 0 first.
    pub value: Datum,
    /// The counts in the value as a histogram.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub histogram: Option<Chart>,
}

/// Variables by name, in the order of their offsets.
#[derive(Debug, Clone)]
pub struct Variables(pub Vec<(String, Datum)>);

/// A histogram: its rows as JSON, bars as text.
#[derive(Debug, Clone)]
pub struct Chart {
    buckets: Buckets,
    counts: Vec<u64>,
}

impl MapContents {
    /// The contents of a map; none for map types without readable entries, such as ring buffers.
    ///
    /// # Errors
    /// [`Error`] if a value can't be read.
    pub fn new(map: &MapView<'_>, rule: HistogramRule) -> Result<Option<Self>> {
        let (def, btf) = (map.def(), map.btf());
        // A chart has a bar for each entry, and a section's variables may be zero.
        let needs_all = rule.of_map(def, btf).is_some()
            || rule.of_keys(def, btf).is_some()
            || matches!(def.origin, MapOrigin::Section(_) | MapOrigin::Kconfig);
        let entries = match needs_all {
            true => map.entries_bytes().map(|entries| (entries, 0)),
            false => map.nonzero_entries_bytes(),
        };
        let (entries, zeros) = match entries {
            Ok(entries) => entries,
            // The kernel can't iterate over this map type either.
            Err(Error::MapOperation { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut contents = Self::empty(def);
        contents.zeros = zeros;
        if let (MapOrigin::Section(_) | MapOrigin::Kconfig, [(_, value)]) =
            (&def.origin, &entries[..])
        {
            contents.variables = variables(def, btf, value);
            if contents.variables.is_some() {
                return Ok(Some(contents));
            }
        }
        if let Some(buckets) = rule.of_map(def, btf) {
            let counts = entries
                .iter()
                .map(|(_, value)| sum_of_cpus(def, value))
                .collect();
            contents.histogram = Some(Chart { buckets, counts });
        }
        contents.add_charts_by_key(def, btf, rule, &entries);
        let slots = rule.of_value(def, btf);
        let is_array = matches!(def.map_type, MapType::Array | MapType::PercpuArray);
        for (key, value) in entries {
            if is_array && value.iter().all(|byte| *byte == 0) {
                contents.zeros += 1;
                continue;
            }
            let inner = match def.map_type.holds_maps() {
                true => map.inner(key.as_slice())?,
                false => None,
            };
            contents.entries.push(MapEntry {
                key: Datum::new(btf, def.key_type, &key),
                value: match inner {
                    Some(inner) => Datum::name(&inner.def().name),
                    None => map_value(def, btf, &value),
                },
                histogram: slots
                    .as_ref()
                    .and_then(|slots| Chart::of_slots(slots, &value)),
            });
        }
        Ok(Some(contents))
    }

    fn empty(def: &MapDef) -> Self {
        Self {
            kind: "map",
            map: def.name.clone(),
            map_type: def.map_type.name(),
            key_size: def.key_size,
            value_size: def.value_size,
            max_entries: def.max_entries,
            section: match &def.origin {
                MapOrigin::Section(section) => Some(section.clone()),
                _ => None,
            },
            entries: Vec::new(),
            zeros: 0,
            variables: None,
            histogram: None,
            heatmap: None,
            histograms: Vec::new(),
        }
    }

    /// Adds the entries as a heatmap or as histograms, if their keys have slots.
    fn add_charts_by_key(
        &mut self,
        def: &MapDef,
        btf: Option<&Btf>,
        rule: HistogramRule,
        entries: &[(Vec<u8>, Vec<u8>)],
    ) {
        let Some((keys, btf)) = rule.of_keys(def, btf).zip(btf) else {
            return;
        };
        let counts = entries.iter();
        let counts = counts.map(|(key, value)| (key.clone(), sum_of_cpus(def, value)));
        let counts: Vec<_> = counts.collect();
        self.heatmap = keys.heatmap(btf, &counts);
        if self.heatmap.is_none() {
            let histograms = keys.histograms(btf, &counts).unwrap_or_default();
            let named = histograms.into_iter().map(|found| NamedChart {
                of: found.of,
                histogram: Chart {
                    buckets: keys.buckets,
                    counts: found.counts,
                },
            });
            self.histograms = named.collect();
        }
    }
}

/// The bytes of each CPU's value, CPU 0 first; other maps have one value.
fn each_cpu<'a>(def: &MapDef, value: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    let size = def.value_size as usize;
    let stride = if def.map_type.info().per_cpu {
        size.next_multiple_of(8)
    } else {
        value.len()
    };
    let values = value.chunks_exact(stride.max(1));
    values.map(move |chunk| chunk.get(..size).unwrap_or(chunk))
}

/// The value of an entry; a list of the CPUs' values where each CPU has one.
pub(crate) fn map_value(def: &MapDef, btf: Option<&Btf>, value: &[u8]) -> Datum {
    let is_stack = def.map_type == MapType::StackTrace;
    if is_stack && !def.flags.contains(MapFlags::STACK_BUILD_ID) {
        return Datum::addresses(value);
    }
    let mut values = each_cpu(def, value).map(|value| Datum::new(btf, def.value_type, value));
    if def.map_type.info().per_cpu {
        return Datum::per_cpu(&values.collect::<Vec<_>>());
    }
    values.next().unwrap_or_else(|| Datum::plain(value))
}

fn sum_of_cpus(def: &MapDef, value: &[u8]) -> u64 {
    let counts = each_cpu(def, value).map(|count| number(count).unwrap_or(0));
    counts.fold(0, u64::wrapping_add)
}

/// The variables of a section, if BTF has them.
fn variables(def: &MapDef, btf: Option<&Btf>, value: &[u8]) -> Option<Variables> {
    let btf = btf?;
    let section = btf.get(def.value_type?)?;
    let variables = section.variables().map(|place| {
        let bytes = value.get(place.offset as usize..).unwrap_or_default();
        let bytes = bytes.get(..place.size as usize).unwrap_or(bytes);
        let name = btf.ty(place.ty).name().to_owned();
        (name, Datum::new(Some(btf), Some(place.ty), bytes))
    });
    Some(Variables(variables.collect()))
}

impl Chart {
    /// The buckets from the first to the last non-empty one.
    pub(super) fn rows(&self) -> Vec<Row> {
        Histogram::new(self.buckets, &self.counts).rows().collect()
    }

    /// The histogram of the counts in a value.
    fn of_slots(slots: &Slots, value: &[u8]) -> Option<Self> {
        let start = slots.offset as usize;
        let bytes = value
            .get(start..)?
            .get(..(slots.size * slots.count) as usize)?;
        let counts = bytes.chunks_exact(slots.size as usize);
        Some(Self {
            buckets: slots.buckets,
            counts: counts.map(|count| number(count).unwrap_or(0)).collect(),
        })
    }
}

impl Serialize for Chart {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        self.rows().serialize(serializer)
    }
}

impl fmt::Display for Chart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Histogram::new(self.buckets, &self.counts).fmt(f)
    }
}

impl Serialize for Variables {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl fmt::Display for MapContents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "map {} ({}", self.map, self.map_type)?;
        match (&self.variables, self.zeros) {
            _ if self.histogram.is_some() => write!(f, ", histogram")?,
            _ if self.heatmap.is_some() => write!(f, ", heatmap")?,
            _ if !self.histograms.is_empty() => write!(f, ", histograms")?,
            (Some(_), _) => {}
            (None, 0) => write!(
                f,
                ", {} of {} entries",
                self.entries.len(),
                self.max_entries
            )?,
            (None, _) if self.entries.is_empty() => f.write_str(", all zero")?,
            (None, zeros) => write!(f, ", {zeros} of {} entries zero", self.max_entries)?,
        }
        writeln!(f, ")")?;
        if let Some(chart) = &self.histogram {
            return chart.fmt(f);
        }
        if let Some(heatmap) = &self.heatmap {
            return heatmap.fmt(f);
        }
        for NamedChart { of, histogram } in &self.histograms {
            write!(f, "  {of}\n{histogram}")?;
        }
        if !self.histograms.is_empty() {
            return Ok(());
        }
        for (name, value) in self.variables.iter().flat_map(|variables| &variables.0) {
            writeln!(f, "  {name} = {value}")?;
        }
        for entry in &self.entries {
            writeln!(f, "  {} = {}", entry.key, entry.value)?;
            if let Some(chart) = &entry.histogram {
                chart.fmt(f)?;
            }
        }
        Ok(())
    }
}
