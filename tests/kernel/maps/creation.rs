//! Which maps can be created: every type with each flag, and with sizes around the limits.

use bpflab::kernel::LoadedMaps;
use bpflab::program::MapDef;
use bpflab::spec::{MapFlags, MapType};
use bpflab::util::Errno;
use bpflab::vm::maps;

use super::pair::cpus;

/// Types that need more than numbers: a kernel type.
const OF_TYPES: &[MapType] = &[
    MapType::StructOps,
    MapType::SkStorage,
    MapType::InodeStorage,
    MapType::TaskStorage,
    MapType::CgrpStorage,
];

/// Both results for a definition.
fn both(def: &MapDef, cpus: u32) -> [Option<Errno>; 2] {
    let ours = maps::create(def, cpus).err().map(|error| error.errno);
    let theirs = LoadedMaps::create(std::slice::from_ref(def), None);
    [ours, theirs.err().map(|none| none.error.errno)]
}

/// Creates each definition in both; returns those with different results.
fn differences(defs: impl Iterator<Item = MapDef>) -> (usize, Vec<String>) {
    let Some(cpus) = cpus() else {
        return (0, Vec::new());
    };
    let mut asked = 0;
    let mut different = Vec::new();
    for def in defs {
        asked += 1;
        let [ours, theirs] = both(&def, cpus);
        if ours != theirs {
            different.push(format!(
                "{} key {} value {} entries {} flags {:?} extra {:#x}: {ours:?} here, {theirs:?} there",
                def.map_type, def.key_size, def.value_size, def.max_entries, def.flags, def.extra
            ));
        }
    }
    (asked, different)
}

/// Both must give the same result for each.
fn hold(defs: impl Iterator<Item = MapDef>) {
    let (asked, different) = differences(defs);
    assert!(
        different.is_empty(),
        "{} of {asked}:\n{}",
        different.len(),
        different.join("\n")
    );
    eprintln!("{asked} definitions");
}

fn asked_types() -> impl Iterator<Item = MapType> {
    let types = MapType::ALL.iter().copied();
    types.filter(|map_type| !OF_TYPES.contains(map_type))
}

#[test]
fn each_flag_and_each_pair_of_flags() {
    let flags = |bits: &[u32]| {
        let bits = bits.iter().fold(0, |all, bit| all | 1 << bit);
        MapFlags::from_bits_retain(bits)
    };
    let defs = asked_types().flat_map(|map_type| {
        let pairs = (0..32).flat_map(|one| (0..=one).map(move |other| [one, other]));
        pairs
            // These name a file descriptor.
            .filter(|pair| !pair.iter().any(|bit| matches!(bit, 14..=16)))
            .map(move |pair| {
                let mut def = MapDef::small("m", map_type);
                def.flags |= flags(&pair);
                def
            })
    });
    hold(defs);
}

#[test]
fn sizes_around_their_limits() {
    const KEYS: &[u32] = &[
        0,
        1,
        3,
        4,
        5,
        8,
        12,
        16,
        17,
        64,
        260,
        261,
        512,
        513,
        1 << 22,
    ];
    const VALUES: &[u32] = &[
        0,
        1,
        3,
        4,
        5,
        8,
        12,
        16,
        1016,
        1024,
        32768,
        32769,
        65_407,
        65_408,
        4_194_024,
        4_194_025,
        4_194_247,
        4_194_248,
        4_194_304,
        4_194_305,
        1 << 31,
        u32::MAX - 7,
        u32::MAX,
    ];
    const ENTRIES: &[u32] = &[0, 1, 2, 4095, 4096, 5000, 8192];
    const EXTRA: &[u64] = &[0, 1, 15, 16, 4096, 1 << 40, u64::MAX];
    let defs = asked_types().flat_map(|map_type| {
        let with = move |change: &dyn Fn(&mut MapDef)| {
            let mut def = MapDef::small("m", map_type);
            change(&mut def);
            def
        };
        let keys = KEYS.iter().map(move |key| with(&|def| def.key_size = *key));
        let values = VALUES
            .iter()
            .map(move |value| with(&|def| def.value_size = *value));
        let entries = ENTRIES
            .iter()
            .map(move |entries| with(&|def| def.max_entries = *entries));
        let extra = EXTRA
            .iter()
            .map(move |extra| with(&|def| def.extra = *extra));
        keys.chain(values).chain(entries).chain(extra)
    });
    // The largest number of CPUs depends on the kernel's build; and creating an arena here also
    // maps it, which not every address allows.
    hold(defs.filter(|def| match def.map_type {
        MapType::Cpumap => def.max_entries <= 8,
        MapType::Arena => def.extra != 4096,
        _ => true,
    }));
}
