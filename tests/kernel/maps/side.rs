//! The program side of a map in the kernel: a small raw tracepoint program per helper, run on a
//! chosen CPU with its arguments in the context.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use bpflab::btf::Btf;
use bpflab::isa::assemble_with;
use bpflab::kernel::{LoadOptions, LoadedMaps, LoadedProgram, TestRun, load};
use bpflab::program::{MapDef, Program};
use bpflab::spec::{MapType, ProgType, TestRunFlags};
use bpflab::util::{Errno, MapId};

/// The largest size in bytes of a key, and of a value, that programs handle.
pub const MOST: usize = 16;

/// Offsets of the arguments in the context: flags, key, value.
const KEY: usize = 8;
const VALUE: usize = KEY + MOST;
const CONTEXT: usize = VALUE + MOST;

/// Programs by the helper that they call.
pub struct Side {
    defs: Arc<[MapDef]>,
    types: Option<Btf>,
    programs: RefCell<BTreeMap<&'static str, LoadedProgram>>,
}

impl Side {
    /// The map for programs' results: r0, and a value.
    pub fn results() -> MapDef {
        MapDef::new("results", MapType::Array, 4, 8 + 16, 1)
    }

    pub fn new(defs: &[MapDef], types: Option<&Btf>) -> Self {
        Self {
            defs: defs.into(),
            types: types.cloned(),
            programs: RefCell::default(),
        }
    }

    /// Calls a helper on the map on this CPU; returns r0, and the value it pointed to or wrote.
    pub fn call(
        &self,
        maps: &LoadedMaps,
        helper: &'static str,
        cpu: u32,
        flags: u64,
        key: &[u8],
        value: &[u8],
    ) -> (u64, Vec<u8>) {
        let mut programs = self.programs.borrow_mut();
        let program = programs
            .entry(helper)
            .or_insert_with(|| self.load(maps, helper));
        let mut context = vec![0; CONTEXT];
        context[..8].copy_from_slice(&flags.to_le_bytes());
        context[KEY..KEY + key.len()].copy_from_slice(key);
        context[VALUE..VALUE + value.len()].copy_from_slice(value);
        let mut run = TestRun::context(&context);
        run.flags = TestRunFlags::ON_CPU;
        run.cpu = cpu;
        program.test_run(&run).unwrap();
        let result = maps.lookup(MapId(1), &[0; 4]).unwrap().unwrap();
        let (r0, rest) = result.split_at(8);
        let size = self.defs[0].value_size as usize;
        (
            u64::from_le_bytes(r0.try_into().unwrap()),
            rest[..size.min(MOST)].to_vec(),
        )
    }

    /// The result of a helper that returns an errno.
    pub fn errno(r0: u64) -> Result<(), Errno> {
        match r0.cast_signed() {
            0 => Ok(()),
            errno => Err(Errno(u16::try_from(-errno).unwrap())),
        }
    }

    fn load(&self, maps: &LoadedMaps, helper: &'static str) -> LoadedProgram {
        let mut program = Program::new("side", ProgType::RawTracepoint, Vec::new());
        program.license = "GPL".into();
        program.maps = self.defs.clone();
        program.btf = self.types.clone();
        let text = text(helper, self.defs[0].value_size.div_ceil(8).min(2));
        program.insns = assemble_with(&text, &program).unwrap().slots;
        let loaded = load(&program, maps, &LoadOptions::default()).unwrap();
        let refused = || panic!("{helper}: {}", loaded.verdict.message);
        match loaded.program {
            Some(program) => program,
            None => refused(),
        }
    }
}

/// The program: key at r10-16, value at r10-32, results at r10-56.
fn text(helper: &str, words: u32) -> String {
    let mut text = String::from("r6 = r1\n*(u64 *)(r10 - 48) = 0\n*(u64 *)(r10 - 40) = 0\n");
    for (from, to) in [(8, -16), (16, -8), (24, -32), (32, -24)] {
        text += &format!("r2 = *(u64 *)(r6 + {from})\n*(u64 *)(r10 {to}) = r2\n");
    }
    let (key, value) = ("r2 = r10\nr2 += -16\n", "r2 = r10\nr2 += -32\n");
    let arguments = match helper {
        "map_lookup_elem" | "map_delete_elem" => key.to_owned(),
        "map_update_elem" => {
            format!("{key}r3 = r10\nr3 += -32\nr4 = *(u64 *)(r6 + 0)\n")
        }
        "map_push_elem" => format!("{value}r3 = *(u64 *)(r6 + 0)\n"),
        _ => value.to_owned(),
    };
    text += &format!("r1 = map[idx:0]\n{arguments}call bpf_{helper}\n");
    text += "*(u64 *)(r10 - 56) = r0\n";
    if helper == "map_lookup_elem" {
        text += &format!("if r0 == 0 goto +{}\n", words * 2);
        for word in 0..words {
            let to = -48 + i64::from(word) * 8;
            text += &format!(
                "r1 = *(u64 *)(r0 + {})\n*(u64 *)(r10 {to}) = r1\n",
                word * 8
            );
        }
    }
    if matches!(helper, "map_pop_elem" | "map_peek_elem") {
        text += "r1 = *(u64 *)(r10 - 32)\n*(u64 *)(r10 - 48) = r1\n";
        text += "r1 = *(u64 *)(r10 - 24)\n*(u64 *)(r10 - 40) = r1\n";
    }
    text += "*(u32 *)(r10 - 16) = 0\n";
    text += "r2 = r10\nr2 += -16\nr3 = r10\nr3 += -56\nr4 = 0\nr1 = map[idx:1]\n";
    text + "call bpf_map_update_elem\nr0 = 0\nexit"
}
