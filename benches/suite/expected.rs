//! The expected results of the programs, computed in plain Rust by other algorithms than
//! their C.

use std::hash::Hasher;

/// Reads a little-endian number of eight bytes.
pub fn word(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().expect("eight bytes"))
}

fn half(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(bytes.try_into().expect("four bytes"))
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.chunks_exact(8).map(word)
}

/// Folds 64 bits into 32, as `FOLD` in `bench.h`.
#[expect(clippy::cast_possible_truncation, reason = "this is what folding is")]
fn fold(x: u64) -> u32 {
    (x ^ x >> 32) as u32
}

pub fn lcg(data: &[u8]) -> u32 {
    let step = |x: u64, _| {
        let x = x
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        x ^ x >> 29
    };
    fold((0..1000).fold(word(&data[..8]), step))
}

pub fn primes(_: &[u8]) -> u32 {
    let mut composite = [false; 500];
    let mut count = 0;
    for number in 2..500 {
        if !composite[number] {
            count += 1;
            composite
                .iter_mut()
                .skip(number)
                .step_by(number)
                .for_each(|it| *it = true);
        }
    }
    count
}

pub fn checksum(data: &[u8]) -> u32 {
    let sum: u64 = data.iter().map(|byte| u64::from(*byte)).sum();
    let weighted = data
        .iter()
        .rev()
        .zip(1..)
        .map(|(byte, weight)| u64::from(*byte) * weight);
    fold(weighted.sum::<u64>() << 32 | sum)
}

pub fn copy(data: &[u8]) -> u32 {
    let source = &data[..data.len() / 2];
    fold(word(&source[..8]) ^ word(&source[source.len() - 8..]))
}

pub fn sum(data: &[u8]) -> u32 {
    fold(words(data).fold(0, u64::wrapping_add))
}

pub fn fnv(data: &[u8]) -> u32 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    fold(data.iter().fold(0xcbf2_9ce4_8422_2325, step))
}

/// SipHash-2-4 of the standard library, which is deprecated there but available.
#[expect(deprecated, reason = "the only one there is")]
pub fn siphash(data: &[u8]) -> u32 {
    let (low, high) = (0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908);
    let mut hasher = std::hash::SipHasher::new_with_keys(low, high);
    hasher.write(data);
    fold(hasher.finish())
}

pub fn jenkins(data: &[u8]) -> u32 {
    let words: Vec<u32> = data.chunks_exact(4).map(half).collect();
    let length = u32::try_from(data.len()).expect("little");
    let mut state = [0xdead_beef_u32.wrapping_add(length); 3];
    let (last, rest) = words
        .split_last_chunk::<3>()
        .map(|(rest, last)| (last, rest))
        .expect("three");
    let add = |state: &mut [u32; 3], words: &[u32]| {
        for (own, word) in state.iter_mut().zip(words) {
            *own = own.wrapping_add(*word);
        }
    };
    for group in rest.chunks_exact(3) {
        add(&mut state, group);
        // Each line takes the word behind from one, and adds the word before to that.
        for (at, rotation) in [4, 6, 8, 16, 19, 4].into_iter().enumerate() {
            let (x, y, z) = (at % 3, (at + 2) % 3, (at + 1) % 3);
            state[x] = state[x].wrapping_sub(state[y]) ^ state[y].rotate_left(rotation);
            state[y] = state[y].wrapping_add(state[z]);
        }
    }
    add(&mut state, last);
    for (at, rotation) in [14, 11, 25, 16, 4, 14, 24].into_iter().enumerate() {
        let (x, y) = ((at + 2) % 3, (at + 1) % 3);
        state[x] = (state[x] ^ state[y]).wrapping_sub(state[y].rotate_left(rotation));
    }
    state[1] ^ state[2]
}

/// The number of sizes for each power of two.
pub fn slots(data: &[u8]) -> [u64; 64] {
    let mut slots = [0; 64];
    for size in words(data) {
        slots[size.max(1).ilog2() as usize] += 1;
    }
    slots
}

pub fn histogram(data: &[u8]) -> u32 {
    let slots = slots(&data[520..]);
    fold(
        slots
            .iter()
            .fold(0, |sum: u64, slot| sum.wrapping_mul(31).wrapping_add(*slot)),
    )
}

/// The flow of a frame, if it has one.
fn flow(frame: &[u8]) -> Option<u64> {
    let at = |at: usize, len: usize| frame.get(at..at + len);
    let pairs = |bytes: &[u8]| {
        let add = |flow: u64, word| flow.wrapping_mul(31).wrapping_add(u64::from(half(word)));
        bytes.chunks_exact(4).fold(0, add)
    };
    let mut network = 14;
    for _ in 0..2 {
        if matches!(at(network - 2, 2)?, [0x81, 0] | [0x88, 0xa8]) {
            network += 4;
        }
    }
    let (addresses, protocol, transport) = match at(network - 2, 2)? {
        [0x08, 0] => {
            let header = at(network, 20)?;
            let words = usize::from(header[0] & 15);
            let is_first = header[6] & 0x1f == 0 && header[7] == 0;
            if header[0] >> 4 != 4 || words < 5 || !is_first {
                return None;
            }
            (&header[12..20], header[9], network + 4 * words)
        }
        [0x86, 0xdd] => {
            let header = at(network, 40)?;
            (&header[8..40], header[6], network + 40)
        }
        _ => return None,
    };
    if !matches!(protocol, 6 | 17) {
        return None;
    }
    let ports = half(at(transport, 4)?);
    let flow = pairs(addresses)
        .wrapping_mul(31)
        .wrapping_add(u64::from(ports));
    Some(flow.wrapping_mul(31).wrapping_add(u64::from(protocol)))
}

pub fn parse_one(data: &[u8]) -> u32 {
    fold(flow(data).unwrap_or(0))
}

pub fn parse_64(data: &[u8]) -> u32 {
    let flows = data
        .chunks_exact(64)
        .take(64)
        .map(|frame| flow(frame).unwrap_or(0));
    fold(flows.fold(0, |sum: u64, flow| sum.wrapping_mul(31).wrapping_add(flow)))
}

/// The tokens of a source, in order.
pub fn states(data: &[u8]) -> u32 {
    let source = &data[8..];
    let (mut numbers, mut words, mut texts, mut comments) = (0_u64, 0_u64, 0_u64, 0_u64);
    let mut at = 0;
    let is_letter = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
    let length = |from: usize, within: &dyn Fn(u8) -> bool| {
        source[from..]
            .iter()
            .take_while(|byte| within(**byte))
            .count()
    };
    while let Some(byte) = source.get(at) {
        match byte {
            b'0'..=b'9' => {
                numbers += 1;
                at += length(at, &|byte| byte.is_ascii_digit());
            }
            byte if is_letter(*byte) => {
                words += 1;
                at += length(at, &|byte| is_letter(byte) || byte.is_ascii_digit());
            }
            b'"' => {
                texts += 1;
                at += 1;
                while let Some(byte) = source.get(at).filter(|byte| **byte != b'"') {
                    at += if *byte == b'\\' { 2 } else { 1 };
                }
                at += 1;
            }
            b'/' if source.get(at + 1) == Some(&b'/') => {
                comments += 1;
                at += length(at, &|byte| byte != b'\n') + 1;
            }
            _ => at += 1,
        }
    }
    fold(((numbers * 1000 + words) * 1000 + texts) * 1000 + comments)
}

pub fn search(data: &[u8]) -> u32 {
    let (wanted, text) = data.split_at(8);
    let (mut found, mut compared) = (0, 0);
    for window in text.windows(8) {
        let same = window
            .iter()
            .zip(wanted)
            .take_while(|(a, b)| a == b)
            .count() as u64;
        compared += same;
        found += u64::from(same == 8);
    }
    fold(found << 32 | compared)
}

/// Every round counts: time does not go back, and the CPU stays the same.
pub fn helpers(_: &[u8]) -> u32 {
    100
}

pub fn calls(data: &[u8]) -> u32 {
    let step = |x: u64, y: u64| {
        let (half, y1) = (x >> 1, y + 1);
        let fourth = (half.wrapping_add(y1) ^ y1).wrapping_mul(0x9e37_79b1);
        (fourth.wrapping_add(3) ^ x).wrapping_sub(y)
    };
    fold((0..100).fold(word(&data[..8]), step))
}

/// One for each count.
pub fn map_array(data: &[u8]) -> u32 {
    u32::try_from(data.len() / 8).expect("little")
}

pub fn map_hash(data: &[u8]) -> u32 {
    map_array(data)
}

/// `TC_ACT_SHOT`.
pub fn empty(_: &[u8]) -> u32 {
    2
}
