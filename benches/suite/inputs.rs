//! The programs' inputs: the same bytes in each run.

/// Pseudo-random bytes (xorshift64*, Vigna 2016).
fn bytes(len: usize) -> Vec<u8> {
    let mut state: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut next = || {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        state.wrapping_mul(0x2545_f491_4f6c_dd1d)
    };
    let mut bytes: Vec<u8> = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        bytes.extend(next().to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

/// Sizes of all magnitudes, like those of writes.
pub fn sizes(count: usize) -> Vec<u64> {
    let random = bytes(count * 8);
    let words = random.chunks_exact(8).map(super::expected::word);
    words.map(|word| (word >> 16) >> (word % 48)).collect()
}

/// A text repeated up to this length.
fn text(text: &str, len: usize) -> Vec<u8> {
    text.bytes().cycle().take(len).collect()
}

pub fn lcg() -> Vec<u8> {
    bytes(64)
}

pub fn primes() -> Vec<u8> {
    bytes(64)
}

pub fn checksum() -> Vec<u8> {
    bytes(1400)
}

pub fn copy() -> Vec<u8> {
    bytes(8192)
}

pub fn sum() -> Vec<u8> {
    bytes(65536)
}

pub fn fnv() -> Vec<u8> {
    bytes(1400)
}

pub fn siphash() -> Vec<u8> {
    bytes(1400)
}

pub fn jenkins() -> Vec<u8> {
    bytes(1404)
}

pub fn histogram() -> Vec<u8> {
    let mut memory = vec![0; 520];
    memory.extend(sizes(128).into_iter().flat_map(u64::to_le_bytes));
    memory
}

/// A frame of 64 bytes; the protocols take turns.
fn frame(number: u8) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, number];
    if number % 4 == 1 {
        frame.extend([0x81, 0, 0, number]);
    }
    let protocol = [6, 17, 6, 1][usize::from(number / 4 % 4)];
    if number % 8 == 6 {
        frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 20, protocol, 64]);
        frame.extend((0..32).map(|at| at ^ number));
    } else if number % 16 == 7 {
        frame.extend([0x08, 0x06, 0, 1]);
    } else {
        let words = 5 + number / 16 % 2;
        frame.extend([
            0x08,
            0,
            0x40 | words,
            0,
            0,
            40,
            0,
            0,
            0x40,
            0,
            64,
            protocol,
            0,
            0,
        ]);
        frame.extend([10, 0, 0, number, 10, 0, 1, number / 2]);
        frame.extend((5..words).flat_map(|_| [1; 4]));
    }
    frame.extend([0x30, number, 0, 80]);
    frame.resize(64, 0);
    frame
}

pub fn parse_one() -> Vec<u8> {
    frame(4)
}

pub fn parse_64() -> Vec<u8> {
    let mut frames: Vec<u8> = (0..64).flat_map(frame).collect();
    frames.resize(65 * 64, 0);
    frames
}

pub fn states() -> Vec<u8> {
    let mut memory = vec![0; 8];
    memory.extend(text(
        "let x1 = 42 + y / 7; // the answer\nprint(\"a \\\"b\\\" c\", x1, 99)\n\tif done { _go(0) }\n",
        256,
    ));
    memory
}

pub fn search() -> Vec<u8> {
    let mut memory = b"abcabcab".to_vec();
    memory.extend(text("abcabcabd abcabcabcab aabbabcab zzz abcabc ", 1016));
    memory
}

pub fn helpers() -> Vec<u8> {
    bytes(64)
}

pub fn calls() -> Vec<u8> {
    bytes(64)
}

pub fn map_array() -> Vec<u8> {
    sizes(64).into_iter().flat_map(u64::to_le_bytes).collect()
}

pub fn map_hash() -> Vec<u8> {
    map_array()
}

pub fn empty() -> Vec<u8> {
    bytes(64)
}
