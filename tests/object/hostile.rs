//! Mutated objects must not cause panics, hangs or excessive allocation. Each test run
//! takes one second; set `BPFLAB_FUZZ_SECONDS=600` for more, `BPFLAB_FUZZ_SEED` to repeat a
//! failing seed.

#![allow(unsafe_code, reason = "an allocator that counts what the loader takes")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Counts the allocated bytes and their maximum.
struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

fn taken(bytes: usize) {
    let now = NOW.fetch_add(bytes, Ordering::Relaxed) + bytes;
    MOST.fetch_max(now, Ordering::Relaxed);
}

// SAFETY: every request goes to the system's allocator as it is; counting touches no
// memory that is handed out.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        taken(layout.size());
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        taken(layout.size());
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allowed allocation for a file: 16 times its size and 64 MiB.
fn limit(size: usize) -> usize {
    16 * size + (64 << 20)
}

/// A portable pseudo-random number generator (splitmix64).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end.max(1) as u64).unwrap()
    }
}

/// Boundary values of sizes, counts and offsets.
const EDGES: [u64; 12] = [
    0,
    1,
    7,
    8,
    0x7f,
    0xff,
    0xffff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x7fff_ffff_ffff_ffff,
    u64::MAX,
];

fn mutate(original: &[u8], numbers: &mut Numbers) -> Vec<u8> {
    let mut bytes = original.to_vec();
    for _ in 0..=numbers.below(8) {
        if bytes.is_empty() {
            break;
        }
        // The header and the tables at the end of the file (symbols, section headers)
        // matter most, so they are mutated more often than their size suggests.
        let at = match numbers.below(4) {
            0 => numbers.below(64.min(bytes.len())),
            1 => bytes.len() - 1 - numbers.below((bytes.len() / 3).max(1)),
            _ => numbers.below(bytes.len()),
        };
        match numbers.below(10) {
            0 | 1 => bytes[at] ^= 1 << numbers.below(8),
            2 => bytes[at] = numbers.next().to_le_bytes()[0],
            3..=6 => {
                let width = 1 << numbers.below(4);
                let at = at & !(width - 1);
                let value = EDGES[numbers.below(EDGES.len())].to_le_bytes();
                for (byte, value) in bytes.iter_mut().skip(at).zip(value).take(width) {
                    *byte = value;
                }
            }
            7 => {
                let from = numbers.below(bytes.len());
                let len = numbers.below(64).min(bytes.len() - from.max(at));
                bytes.copy_within(from..from + len, at);
            }
            8 => {
                let end = (at + numbers.below(32)).min(bytes.len());
                bytes.drain(at..end);
            }
            _ => {
                if numbers.below(8) == 0 {
                    bytes.truncate(at);
                } else {
                    let len = numbers.below(32).min(bytes.len() - at);
                    let piece = bytes[at..at + len].to_vec();
                    bytes.splice(at..at, piece);
                }
            }
        }
    }
    bytes
}

fn env(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn mutated_objects_are_errors_or_objects() {
    let directories = ["tests/objects", "examples/bpf"];
    let mut originals = Vec::new();
    for directory in directories {
        let path = format!("{}/{directory}", env!("CARGO_MANIFEST_DIR"));
        for entry in std::fs::read_dir(path).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "o") {
                originals.push((path.display().to_string(), std::fs::read(&path).unwrap()));
            }
        }
    }
    originals.sort();
    assert!(originals.len() > 10);

    let time = Duration::from_secs(env("BPFLAB_FUZZ_SECONDS").unwrap_or(1));
    let mut seed = env("BPFLAB_FUZZ_SEED").unwrap_or(1);
    let (mut count, mut opened, mut most) = (0u64, 0u64, 0usize);
    let mut slowest = Duration::ZERO;
    let start = Instant::now();
    // A slow machine makes fewer mutations in the time; the least number is made all the same.
    while count < 200 || start.elapsed() < time {
        let mut numbers = Numbers(seed);
        let (file, original) = &originals[numbers.below(originals.len())];
        let bytes = mutate(original, &mut numbers);
        let before = NOW.load(Ordering::Relaxed);
        MOST.store(before, Ordering::Relaxed);
        let began = Instant::now();
        let done = catch_unwind(AssertUnwindSafe(|| {
            bpflab::object::exercise(&bytes);
            bpflab::Object::parse("x", &bytes).is_ok()
        }));
        let took = began.elapsed();
        let peak = MOST.load(Ordering::Relaxed) - before;
        let is_open = done.unwrap_or_else(|_| panic!("seed {seed}: panic on a mutation of {file}"));
        assert!(
            peak <= limit(bytes.len()),
            "seed {seed}: {peak} bytes taken for {} of {file}",
            bytes.len()
        );
        assert!(
            took < Duration::from_secs(5),
            "seed {seed}: {took:?} for {file}"
        );
        opened += u64::from(is_open);
        most = most.max(peak);
        slowest = slowest.max(took);
        count += 1;
        seed += 1;
    }
    eprintln!("{count} mutations, {opened} opened, at most {most} bytes, {slowest:?} at most");
    assert!(opened > 0);
}
