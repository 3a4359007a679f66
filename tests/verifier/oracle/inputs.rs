//! Random inputs: events for programs, and map contents.

use bpflab::Vm;
use bpflab::program::Program;
use bpflab::spec::{MapType, UpdateFlags};
use bpflab::vm::events::Event;

/// The size of a context without layout: larger than any program of the corpus reads.
const CONTEXT: usize = 8192;

/// A source of inputs, reproducible by seed.
pub struct Inputs {
    state: u64,
}

impl Inputs {
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// With the seed of the environment variable.
    pub fn seeded() -> Self {
        let seed = std::env::var("BPFLAB_SEED").ok();
        Self::new(seed.map_or(1, |seed| seed.parse().expect("BPFLAB_SEED is a number")))
    }

    /// `SplitMix64`.
    pub const fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: u64) -> usize {
        usize::try_from(self.next() % end).unwrap()
    }

    /// Bytes of which all, few or none are zero, so that length limits are reached and
    /// exceeded.
    fn bytes(&mut self, len: usize) -> Vec<u8> {
        let style = self.below(4);
        (0..len)
            .map(|_| {
                let byte = self.next().to_le_bytes()[0];
                match style {
                    0 => 0,
                    1 => byte & 3,
                    2 if byte < 200 => 0,
                    _ => byte,
                }
            })
            .collect()
    }

    /// A random event for the program.
    pub fn event(&mut self, vm: &Vm, program: &Program) -> Event {
        let len = [14, 64, 200, 1500][self.below(4)];
        let len = len + self.below(40);
        let bytes = self.bytes(len);
        if Event::packet(bytes.clone()).accepts(program.prog_type) {
            return Event::packet(bytes);
        }
        match vm.event_for(program, None) {
            Ok(event) if event.accepts(program.prog_type) => event,
            _ => Event::bytes(self.bytes(CONTEXT)),
        }
    }

    /// Writes random contents to the maps that user space fills.
    pub fn fill_maps(&mut self, vm: &mut Vm) {
        let maps: Vec<_> = vm.machine().maps().map(|(_, map)| map.clone()).collect();
        for map in maps {
            let def = map.def();
            let filled = matches!(
                def.map_type,
                MapType::Array | MapType::Hash | MapType::LruHash | MapType::PercpuArray
            );
            // The verifier relies on the contents of frozen maps.
            if !filled || def.frozen || def.value_size > 4096 {
                continue;
            }
            for key in 0..def.max_entries.min(8) {
                let mut bytes = key.to_le_bytes().to_vec();
                bytes.resize(def.key_size as usize, 0);
                let value = self.bytes(map.user_value_size());
                // A map may reject the value and stays unchanged then.
                let _ = map.write(&bytes, &value, UpdateFlags::empty());
            }
        }
    }
}
