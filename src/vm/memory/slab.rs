//! The elements of a map: values of one size at addresses that never change.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::shared::SharedBytes;
use super::zeroed::zeroed;

/// Storage for `count` values, and for their keys if the map has keys.
///
/// The slab never moves or frees a value, so programs can keep the address of one. The map
/// decides which elements are in use; the slab records it, to detect accesses to deleted ones.
#[derive(Debug)]
pub struct Slab {
    values: SharedBytes,
    value_size: usize,
    /// Bytes from one value to the next. Equal to the address distance, so that one addition
    /// converts an address. If that would take too much memory, the value size rounded up to
    /// 8, as in the kernel's arrays.
    stride: usize,
    count: usize,
    /// Elements per CPU, for per-CPU maps.
    per_cpu: Option<usize>,
    keys: Option<Keys>,
}

/// Keys and liveness of the elements of a keyed map.
#[derive(Debug)]
struct Keys {
    /// The [words](key_words) of each key.
    words: Box<[AtomicU64]>,
    /// Bytes of a key.
    size: usize,
    /// Whether each element is live. Used for messages only; the map decides under its own
    /// lock.
    live: Box<[AtomicBool]>,
}

impl Keys {
    /// The words of the key of `index`; `None` past the end.
    #[inline]
    fn of(&self, index: usize) -> Option<&[AtomicU64]> {
        let len = self.size.div_ceil(8);
        let first = index.checked_mul(len)?;
        self.words.get(first..first.checked_add(len)?)
    }
}

/// A key as little-endian words, the last one padded with zeros: the form in which the slab
/// stores it.
pub(in crate::vm) fn key_words(key: &[u8]) -> impl Iterator<Item = u64> {
    let (words, rest) = key.as_chunks::<8>();
    let last = (!rest.is_empty()).then(|| {
        let mut word = [0; 8];
        for (to, from) in word.iter_mut().zip(rest) {
            *to = *from;
        }
        u64::from_le_bytes(word)
    });
    words
        .iter()
        .map(|word| u64::from_le_bytes(*word))
        .chain(last)
}

/// The most bytes for values with gaps between them.
const MAX_SPREAD: usize = 4 << 30;

impl Slab {
    /// Address distance between values: a power of two that leaves at least 16 bytes of guard
    /// after each value.
    #[must_use]
    pub const fn span(value_size: usize) -> u64 {
        (value_size as u64 + 16).next_power_of_two()
    }

    /// Storage of an array: `count` values, always live, identified by index.
    #[must_use]
    pub fn array(value_size: usize, count: usize) -> Self {
        let packed = value_size.next_multiple_of(8);
        let span = usize::try_from(Self::span(value_size)).unwrap_or(usize::MAX);
        // The last value needs no gap after it.
        let spread = |stride: usize| Some(stride.checked_mul(count.saturating_sub(1))? + packed);
        let (stride, len) = match spread(span).filter(|len| *len <= MAX_SPREAD) {
            Some(len) => (span, len),
            None => (packed, packed * count),
        };
        Self {
            values: SharedBytes::zeroed(if count == 0 { 0 } else { len }),
            value_size,
            stride,
            count,
            per_cpu: None,
            keys: None,
        }
    }

    /// Storage of a per-CPU array: a value per CPU and index, at element
    /// `cpu * count + index`.
    #[must_use]
    pub fn per_cpu_array(value_size: usize, count: usize, cpus: usize) -> Self {
        Self {
            per_cpu: Some(count),
            ..Self::array(value_size, count * cpus)
        }
    }

    /// Storage of a keyed map; no element is live at first.
    #[must_use]
    pub fn keyed(key_size: usize, value_size: usize, count: usize) -> Self {
        Self {
            keys: Some(Keys {
                words: zeroed(key_size.div_ceil(8) * count),
                size: key_size,
                live: zeroed(count),
            }),
            ..Self::array(value_size, count)
        }
    }

    /// Storage of a keyed per-CPU map: a value per CPU and key, at element
    /// `cpu * count + index`. Key and liveness belong to `index`.
    #[must_use]
    pub fn per_cpu_keyed(key_size: usize, value_size: usize, count: usize, cpus: usize) -> Self {
        Self {
            keys: Self::keyed(key_size, 0, count).keys,
            ..Self::per_cpu_array(value_size, count, cpus)
        }
    }

    /// Bytes of a value.
    #[must_use]
    pub const fn value_size(&self) -> usize {
        self.value_size
    }

    /// Whether elements have keys and can be added and deleted.
    #[must_use]
    pub const fn is_keyed(&self) -> bool {
        self.keys.is_some()
    }

    /// Number of elements, over all CPUs.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.count
    }

    /// All values, `stride` bytes apart.
    #[must_use]
    pub const fn values(&self) -> &SharedBytes {
        &self.values
    }

    /// Whether values are as far apart in memory as in the address space.
    #[must_use]
    pub const fn is_spread(&self) -> bool {
        self.stride as u64 == Self::span(self.value_size)
    }

    /// Offset of `element` in [`values`](Self::values).
    #[must_use]
    pub const fn offset(&self, element: usize) -> usize {
        element.saturating_mul(self.stride)
    }

    /// Copies out a value; `None` if there is no such element.
    #[must_use]
    pub fn value(&self, element: usize) -> Option<Vec<u8>> {
        self.values.copy(self.offset(element), self.value_size)
    }

    /// Sets the first bytes of a value; `None` if they don't fit.
    pub fn set_value(&self, element: usize, value: &[u8]) -> Option<()> {
        if value.len() > self.value_size {
            return None;
        }
        self.values.write(self.offset(element), value)
    }

    /// The elements whose values are not all zero, in order.
    #[must_use]
    pub fn nonzero(&self) -> Vec<usize> {
        let mut found = Vec::new();
        let (mut next, mut value) = (0, vec![0; self.value_size]);
        for used in self.values.used() {
            let first = next.max(used.start / self.stride.max(1));
            for element in first..self.count {
                let at = self.offset(element);
                if at >= used.end {
                    break;
                }
                next = element + 1;
                let read = self.values.read(at, &mut value);
                if read.is_some() && value.iter().any(|byte| *byte != 0) {
                    found.push(element);
                }
            }
        }
        found
    }

    /// Copies out a key; `None` for arrays and past the end.
    #[must_use]
    pub fn key(&self, element: usize) -> Option<Vec<u8>> {
        let keys = self.keys.as_ref()?;
        let words = keys.of(self.index(element))?;
        let bytes = words
            .iter()
            .flat_map(|word| word.load(Ordering::Relaxed).to_le_bytes());
        Some(bytes.take(keys.size).collect())
    }

    /// The key of `index` as a number, if keys have at most 8 bytes; `None` for arrays and past
    /// the end.
    #[inline(always)]
    pub(in crate::vm) fn key_number(&self, index: usize) -> Option<u64> {
        let word = self.keys.as_ref()?.words.get(index)?;
        Some(word.load(Ordering::Relaxed))
    }

    /// Whether element `index` (without the CPU) has this key. `key` must have the map's key
    /// size. False for arrays.
    pub(in crate::vm) fn key_is(&self, index: usize, key: &[u8]) -> bool {
        let words = self.keys.as_ref().and_then(|keys| keys.of(index));
        words.is_some_and(|words| {
            words
                .iter()
                .zip(key_words(key))
                .all(|(there, word)| there.load(Ordering::Relaxed) == word)
        })
    }

    /// Makes an element live with this key; `None` for arrays or if the key has the wrong
    /// size.
    pub fn revive(&self, element: usize, key: &[u8]) -> Option<()> {
        let keys = self.keys.as_ref()?;
        if key.len() != keys.size {
            return None;
        }
        let index = self.index(element);
        for (there, word) in keys.of(index)?.iter().zip(key_words(key)) {
            there.store(word, Ordering::Relaxed);
        }
        keys.live.get(index)?.store(true, Ordering::Relaxed);
        Some(())
    }

    /// Marks an element as deleted; its value stays readable, as in the kernel.
    pub fn kill(&self, element: usize) {
        if let Some(live) = self.live(element) {
            live.store(false, Ordering::Relaxed);
        }
    }

    /// Whether the element is in the map.
    #[must_use]
    pub fn is_live(&self, element: usize) -> bool {
        match self.is_keyed() {
            true => self
                .live(element)
                .is_some_and(|live| live.load(Ordering::Relaxed)),
            false => element < self.count,
        }
    }

    /// Whether an element of a keyed map is live.
    fn live(&self, element: usize) -> Option<&AtomicBool> {
        self.keys.as_ref()?.live.get(self.index(element))
    }

    /// The element's index without its CPU.
    fn index(&self, element: usize) -> usize {
        self.per_cpu.map_or(element, |count| element % count.max(1))
    }

    /// The element as C would index it: `[12]`, `[12] of cpu 1`.
    #[must_use]
    pub fn label(&self, element: usize) -> impl fmt::Display + use<> {
        let key = match self.key(element) {
            None => format!("[{}]", self.index(element)),
            Some(key) => match number(&key) {
                Some(number) => format!("[{number}]"),
                None => {
                    let hex: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
                    format!("[0x{hex}]")
                }
            },
        };
        match self.per_cpu {
            Some(count) => format!("{key} of cpu {}", element / count.max(1)),
            None => key,
        }
    }
}

/// The number in a key of 1, 2, 4 or 8 bytes (little-endian).
fn number(key: &[u8]) -> Option<u64> {
    let mut bytes = [0; 8];
    match key.len() {
        1 | 2 | 4 | 8 => {
            bytes.get_mut(..key.len())?.copy_from_slice(key);
            Some(u64::from_le_bytes(bytes))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stand_as_far_apart_as_their_addresses() {
        let slab = Slab::array(5, 3);
        assert_eq!((slab.offset(2), slab.is_spread()), (64, true));
        assert_eq!(slab.values().len(), 72);
        assert_eq!(Slab::array(8, 0).values().len(), 0);
        assert_eq!(slab.set_value(2, &[1, 2, 3, 4, 5]), Some(()));
        assert_eq!(slab.value(2), Some(vec![1, 2, 3, 4, 5]));
        assert_eq!(slab.set_value(2, &[0; 6]), None);
        assert_eq!(slab.value(3), None);
        assert!(slab.is_live(2) && !slab.is_live(3));
    }

    /// The pages are never touched, so this takes no memory.
    #[test]
    fn a_large_map_is_packed() {
        let slab = Slab::array(8, 150_000_000);
        assert_eq!((slab.offset(2), slab.is_spread()), (16, false));
    }

    #[test]
    fn elements_come_and_go() {
        let slab = Slab::keyed(4, 8, 2);
        assert!(!slab.is_live(1));
        assert_eq!(slab.revive(1, &7u32.to_le_bytes()), Some(()));
        assert!(slab.is_live(1));
        assert_eq!(slab.label(1).to_string(), "[7]");
        assert!(slab.key_is(1, &7u32.to_le_bytes()) && !slab.key_is(1, &[7; 4]));
        assert!(!slab.key_is(0, &7u32.to_le_bytes()));
        assert!(!Slab::array(8, 2).key_is(0, &[0; 4]));
        slab.kill(1);
        assert!(!slab.is_live(1));
        assert_eq!(slab.revive(1, &[0; 3]), None);
        assert_eq!(slab.revive(2, &[0; 4]), None);
    }

    #[test]
    fn keys_are_compared_whole() {
        for size in 1..20usize {
            let slab = Slab::keyed(size, 8, 3);
            let key: Vec<u8> = (1..=20).take(size).collect();
            assert_eq!(slab.revive(1, &[0xff; 20][..size]), Some(()));
            assert_eq!(slab.revive(1, &key), Some(()));
            assert!(slab.key_is(1, &key));
            assert_eq!(key_words(&key).count(), size.div_ceil(8));
            for at in 0..size {
                let mut other = key.clone();
                other[at] ^= 0x80;
                assert!(!slab.key_is(1, &other), "{other:?}");
            }
        }
    }

    #[test]
    fn labels_name_key_and_cpu() {
        assert_eq!(Slab::array(8, 4).label(3).to_string(), "[3]");
        assert_eq!(
            Slab::per_cpu_array(8, 4, 2).label(6).to_string(),
            "[2] of cpu 1"
        );
        let slab = Slab::per_cpu_keyed(3, 8, 4, 2);
        slab.revive(1, &[1, 2, 255]);
        assert_eq!(slab.label(5).to_string(), "[0x0102ff] of cpu 1");
        assert!(slab.is_live(5) && slab.is_live(1) && !slab.is_live(4));
    }
}
