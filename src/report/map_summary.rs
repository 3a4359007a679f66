//! A map's attributes, as an object declares them.

use serde::Serialize;

use crate::btf::Btf;
use crate::program::{MapDef, MapOrigin, Pinning};

/// The attributes of a map. Its fields are keys of `--json`.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct MapSummary {
    /// Its name.
    pub name: String,
    /// Map type.
    #[serde(rename = "type")]
    pub map_type: &'static str,
    /// Bytes of a key.
    pub key_size: u32,
    /// Bytes of a value; in per-CPU maps, of one CPU's.
    pub value_size: u32,
    /// The most entries; bytes for ring buffers.
    pub max_entries: u32,
    /// `BPF_F_*`, without the prefix.
    pub flags: Vec<String>,
    /// `map_extra`.
    pub extra: u64,
    /// NUMA node of its memory, if one is set.
    pub numa_node: Option<u32>,
    /// Type of the keys as C writes it.
    pub key_type: Option<String>,
    /// Type of the values as C writes it.
    pub value_type: Option<String>,
    /// The inner map's attributes, for maps of maps.
    pub inner: Option<Box<Self>>,
    /// Number of initial entries.
    pub initial: usize,
    /// Whether user space can't change it after loading.
    pub frozen: bool,
    /// Whether it is pinned by its name.
    pub pinned: bool,
    /// Another pinning: `by object` (iproute2's `PIN_OBJECT_NS`), or a number that its loader
    /// interprets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pinning: Option<String>,
    /// Whether it is created when the object is loaded.
    pub autocreate: bool,
    /// Its origin: `declared`, `kconfig`, or the section whose data it has.
    pub origin: String,
}

impl MapSummary {
    /// The attributes of a map, whose types are in `btf`.
    #[must_use]
    pub fn new(map: &MapDef, btf: Option<&Btf>) -> Self {
        let type_name = |id| btf.zip(id).map(|(btf, id)| btf.type_name(id));
        Self {
            name: map.name.clone(),
            map_type: map.map_type.name(),
            key_size: map.key_size,
            value_size: map.value_size,
            max_entries: map.max_entries,
            flags: map
                .flags
                .iter_names()
                .map(|(name, _)| name.to_owned())
                .collect(),
            extra: map.extra,
            numa_node: map
                .flags
                .contains(crate::spec::MapFlags::NUMA_NODE)
                .then_some(map.numa_node),
            key_type: type_name(map.key_type),
            value_type: type_name(map.value_type),
            inner: map
                .inner
                .as_ref()
                .map(|inner| Box::new(Self::new(inner, btf))),
            initial: map.initial.len(),
            frozen: map.frozen,
            pinned: map.pinning == Pinning::ByName,
            pinning: match map.pinning {
                Pinning::None | Pinning::ByName => None,
                Pinning::ByObject => Some("by object".to_owned()),
                Pinning::Other(number) => Some(number.to_string()),
            },
            autocreate: map.autocreate,
            origin: match &map.origin {
                MapOrigin::Declared => "declared".to_owned(),
                MapOrigin::Kconfig => "kconfig".to_owned(),
                MapOrigin::Section(section) | MapOrigin::StructOps(section) => section.clone(),
            },
        }
    }

    /// A row of a table: name, type, key, value, entries, the rest.
    #[must_use]
    pub(super) fn cells(&self) -> Vec<String> {
        let sized = |what: &str, size: u32, ty: &Option<String>| match (size, ty) {
            (0, _) => String::new(),
            (size, Some(ty)) => format!("{what} {size} ({ty})"),
            (size, None) => format!("{what} {size}"),
        };
        let mut rest = Vec::new();
        if !self.flags.is_empty() {
            rest.push(self.flags.join("|").to_lowercase());
        }
        if let Some(node) = self.numa_node {
            rest.push(format!("NUMA node {node}"));
        }
        if self.extra != 0 {
            rest.push(format!("extra {:#x}", self.extra));
        }
        if let Some(inner) = &self.inner {
            let cells: Vec<_> = inner.cells().into_iter().skip(1).collect();
            let cells: Vec<_> = cells.iter().filter(|cell| !cell.is_empty()).collect();
            let cells: Vec<_> = cells.iter().map(|cell| cell.as_str()).collect();
            rest.push(format!("of {}", cells.join(" ")));
        }
        // A map of global data has one entry, which is shown as variables.
        if self.initial > 0 && self.origin == "declared" {
            rest.push(format!("{} initial", self.initial));
        }
        for (is, what) in [
            (self.frozen, "frozen"),
            (self.pinned, "pinned by name"),
            (!self.autocreate, "not made"),
        ] {
            if is {
                rest.push(what.to_owned());
            }
        }
        rest.extend(self.pinning.as_ref().map(|how| format!("pinning {how}")));
        vec![
            self.name.clone(),
            self.map_type.to_owned(),
            sized("key", self.key_size, &self.key_type),
            sized("value", self.value_size, &self.value_type),
            format!("max {}", self.max_entries),
            rest.join(", "),
        ]
    }
}
