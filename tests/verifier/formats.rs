//! Formats of `bpf_snprintf`: compares which ones we and the running kernel accept.

#![cfg(all(feature = "kernel", target_os = "linux"))]

use crate::shared::here;

use std::sync::Arc;

use bpflab::isa::{RawInsn, assemble};
use bpflab::kernel::{LoadOptions, LoadedMaps, load};
use bpflab::program::{Initial, MapDef, Program};
use bpflab::spec::{MapFlags, MapType, ProgType};
use bpflab::verifier::{Options, Verdict, verify};

/// The pieces that formats are made of.
const PIECES: &[&str] = &[
    "%", "%%", "d", "i", "u", "x", "X", "s", "c", "p", "l", "ll", "k", "B", "S", "K", "I", "4",
    "6", "0", "+", "-", " ", "12", "#", ".", "*", "h", "z", "n", "f", "\n", "\t", "\x01", "\u{e9}",
    "\u{5d0}", "text", "%d", "%s", "%llu", "%pks", "%pi6", "%pI4", "%08lx", "%px",
];
/// The size of the map's value.
const SIZE: u32 = 64;

/// A program that prints with the format at `off` in the first map's value, with `size`
/// bytes of arguments.
fn program(maps: &Arc<[MapDef]>, off: i32, size: i32) -> Program {
    let mut insns = assemble(
        "*(u64 *)(r10 -8) = 0\n*(u64 *)(r10 -16) = 0\n*(u64 *)(r10 -24) = 0\n\
         *(u64 *)(r10 -32) = 0\nr1 = 0\nr2 = 0",
    )
    .unwrap();
    insns.push(RawInsn::new(0x18, 3, 6, 0, 0));
    insns.push(RawInsn::new(0, 0, 0, 0, off));
    let rest = format!("r4 = r10\nr4 += -32\nr5 = {size}\ncall 165\nr0 = 0\nexit");
    insns.extend(assemble(&rest).unwrap());
    let mut program = Program::new("format", ProgType::SchedCls, insns);
    program.license = "GPL".to_owned();
    program.maps = Arc::clone(maps);
    program
}

fn words(verdict: &Verdict) -> String {
    match verdict.errno {
        Some(errno) => format!("{errno} {}", verdict.message),
        None => format!("accepted {}", verdict.processed()),
    }
}

#[test]
fn formats_are_judged_as_the_kernel_does() {
    if here::judge().is_none() {
        return;
    }
    let mut seed = 88_172_645_463_325_252_u64;
    let mut any = |below: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        usize::try_from(seed >> 33).unwrap_or(0) % below
    };
    let (mut asked, mut accepted, mut different) = (0, 0, Vec::new());
    for _ in 0..600 {
        let pieces = 1 + any(5);
        let text: String = (0..pieces).map(|_| PIECES[any(PIECES.len())]).collect();
        let mut value = text.clone().into_bytes();
        // Sometimes no zero byte terminates it.
        let fill = if any(16) == 0 { b'.' } else { 0 };
        value.resize(SIZE as usize, fill);
        let map = MapDef::new("format", MapType::Array, 4, SIZE, 1)
            .with_flags(MapFlags::RDONLY_PROG)
            .with_frozen(true)
            .with_initial([Initial::Bytes {
                key: vec![0; 4],
                value: value.into(),
            }]);
        let maps: Arc<[MapDef]> = Arc::new([map]);
        let Ok(loaded) = LoadedMaps::create(&maps, None) else {
            continue;
        };
        for (off, size) in [(0, 0), (0, 8), (0, 32), (1, 16), (0, 12), (64, 8)] {
            let program = Arc::new(program(&maps, off, size));
            let Ok(judged) = load(&program, &loaded, &LoadOptions::default()) else {
                continue;
            };
            let ours = verify(&program, &Options::default()).verdict;
            asked += 1;
            accepted += usize::from(judged.verdict.is_accepted());
            let (kernel, ours) = (words(&judged.verdict), words(&ours));
            if kernel != ours {
                different.push(format!(
                    "{text:?} at {off} with {size} bytes: kernel {kernel}, ours {ours}"
                ));
            }
        }
    }
    eprintln!(
        "{asked} formats, {accepted} accepted, {} differ",
        different.len()
    );
    assert!(asked > 3000 && accepted > 100);
    assert_eq!(different, Vec::<String>::new());
}
