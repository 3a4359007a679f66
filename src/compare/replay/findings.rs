//! Differences of maps and outputs in words: which fields differ, decoded with BTF.

use std::ops::Range;

use super::finding::{FieldDifference, Finding};
use super::programs::Programs;
use super::verdict::{MapReport, MapVerdict, OutputReport, OutputVerdict, Report};
use crate::btf::{Btf, Leaf};
use crate::program::{MapDef, RecordTypes};
use crate::spec::MapType;
use crate::util::TypeId;

/// The most fields that a finding lists.
const LISTED: usize = 8;

/// The findings of a report.
pub(super) fn findings(programs: &Programs, report: &Report) -> Vec<Finding> {
    let btf = programs
        .parts
        .iter()
        .find_map(|part| part.original.btf.as_ref());
    let maps = programs.maps.maps.get(..programs.own).unwrap_or_default();
    let words = Words { btf, maps };
    let of_maps = report.maps.iter().filter_map(|map| words.of_map(map));
    let outputs = report.outputs.iter();
    let of_outputs = outputs.filter_map(|output| words.of_output(output));
    of_maps.chain(of_outputs).collect()
}

struct Words<'a> {
    btf: Option<&'a Btf>,
    /// The maps of the object.
    maps: &'a [MapDef],
}

impl Words<'_> {
    fn of_map(&self, map: &MapReport) -> Option<Finding> {
        let MapVerdict::Different {
            key,
            expected: Some(expected),
            got: Some(got),
            ..
        } = &map.verdict
        else {
            return None;
        };
        let def = self.maps.iter().find(|def| def.name == map.name)?;
        let key = match self.btf.zip(def.key_type) {
            Some((btf, ty)) => btf
                .decode(ty, key)
                .map_or_else(|_| String::new(), |value| format!(", key {value}")),
            None => String::new(),
        };
        let part = format!("map {}{key}", map.name);
        if !def.map_type.info().per_cpu {
            return self.finding(part, def.value_type, expected, got);
        }
        // One value for each CPU.
        let stride = (def.value_size as usize).next_multiple_of(8).max(8);
        let mut cpus = expected.chunks(stride).zip(got.chunks(stride)).zip(0..);
        let ((expected, got), cpu) = cpus.find(|((expected, got), _)| expected != got)?;
        let size = def.value_size as usize;
        let cut = |bytes: &[u8]| bytes.get(..size).unwrap_or(bytes).to_vec();
        let (expected, got) = (cut(expected), cut(got));
        self.finding(
            format!("{part}, CPU {cpu}"),
            def.value_type,
            &expected,
            &got,
        )
    }

    fn of_output(&self, output: &OutputReport) -> Option<Finding> {
        let OutputVerdict::Different {
            at,
            expected: Some(expected),
            got: Some(got),
            ..
        } = &output.verdict
        else {
            return None;
        };
        let def = self.maps.iter().find(|def| def.name == output.name)?;
        // The kernel pads the records of perf buffers.
        let expected: &[u8] = match def.map_type {
            MapType::Ringbuf => expected,
            _ => expected.get(..got.len()).unwrap_or(expected),
        };
        let ty = RecordTypes::new(self.btf, self.maps).type_of(&def.name, got.len());
        self.finding(
            format!("output {}, record {at}", output.name),
            ty,
            expected,
            got,
        )
    }

    /// The finding about two values; none if there is nothing to say beyond the bytes.
    fn finding(
        &self,
        part: String,
        ty: Option<TypeId>,
        expected: &[u8],
        got: &[u8],
    ) -> Option<Finding> {
        let (btf, ty) = self.btf.zip(ty).filter(|_| expected.len() == got.len())?;
        let fields = fields(btf, ty, expected, got);
        (!fields.is_empty()).then_some(Finding { part, fields })
    }
}

/// The fields in which two values of a type differ.
fn fields(btf: &Btf, ty: TypeId, expected: &[u8], got: &[u8]) -> Vec<FieldDifference> {
    let whole = btf.type_name(ty);
    let leaves = btf.leaves(ty);
    let mut found = Vec::new();
    let (mut end, mut before) = (0, None::<&Leaf>);
    for leaf in &leaves {
        found.extend(hole(expected, got, end..leaf.bit, before, &whole));
        found.extend(field(btf, leaf, expected, got, &whole));
        end = end.max(leaf.bit + leaf.bits);
        before = Some(leaf);
    }
    if !leaves.is_empty() {
        let last = end..expected.len() as u64 * 8;
        found.extend(hole(expected, got, last, before, &whole));
    }
    found.truncate(LISTED);
    found
}

/// The bytes that hold a range of bits.
fn bytes_of(bytes: &[u8], bits: &Range<u64>) -> Option<Vec<u8>> {
    let from = usize::try_from(bits.start / 8).ok()?;
    let to = usize::try_from(bits.end.div_ceil(8)).ok()?;
    Some(bytes.get(from..to)?.to_vec())
}

/// Bits as a number, if there are at most 64.
fn number(bytes: &[u8], bits: &Range<u64>) -> Option<u64> {
    let of = bytes_of(bytes, bits)?;
    let wide = of
        .iter()
        .rev()
        .take(9)
        .fold(0u128, |sum, byte| sum << 8 | u128::from(*byte));
    let width = bits.end - bits.start;
    let shifted = wide >> (bits.start % 8);
    let mask = u128::MAX.checked_shr(u32::try_from(128 - width.min(128)).ok()?)?;
    u64::try_from(shifted & mask).ok()
}

fn field(
    btf: &Btf,
    leaf: &Leaf,
    expected: &[u8],
    got: &[u8],
    whole: &str,
) -> Option<FieldDifference> {
    let bits = leaf.bit..leaf.bit + leaf.bits;
    let is_whole = leaf.bit.is_multiple_of(8) && leaf.bits.is_multiple_of(8);
    let shown = |bytes: &[u8]| match is_whole {
        true => {
            let of = bytes_of(bytes, &bits)?;
            Some((of.clone(), btf.decode(leaf.ty, &of).ok()?.to_string()))
        }
        false => {
            let number = number(bytes, &bits)?;
            Some((number.to_le_bytes().to_vec(), number.to_string()))
        }
    };
    let ((one, expected), (other, got)) = (shown(expected)?, shown(got)?);
    let name = match leaf.path.is_empty() {
        true => whole.to_owned(),
        false => format!("field `{}` of {whole}", leaf.path),
    };
    (one != other).then_some(FieldDifference {
        name,
        expected,
        got,
    })
}

/// Padding that differs.
fn hole(
    expected: &[u8],
    got: &[u8],
    bits: Range<u64>,
    before: Option<&Leaf>,
    whole: &str,
) -> Option<FieldDifference> {
    // Whole bytes only: bits beside a bitfield are rare.
    let bits = bits.start.next_multiple_of(8)..bits.end;
    if bits.start >= bits.end {
        return None;
    }
    let (one, other) = (bytes_of(expected, &bits)?, bytes_of(got, &bits)?);
    let hex = |bytes: &[u8]| {
        bytes
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect::<String>()
    };
    let place = match before {
        Some(leaf) => format!("after field `{}` of {whole}", leaf.path),
        None => format!("at the start of {whole}"),
    };
    (one != other).then(|| FieldDifference {
        name: format!("padding {place}"),
        expected: hex(&one),
        got: hex(&other),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::btf::{Builder, Encoding, Member};

    /// `struct event { __u8 kind; __u32 pid; }` and a ring buffer of such records.
    fn words(test: impl FnOnce(Words<'_>)) {
        let mut b = Builder::new();
        let int = b.int("unsigned int", 4, Encoding::Unsigned);
        let byte = b.int("unsigned char", 1, Encoding::Unsigned);
        let member = |name, ty, bit_offset| Member {
            name,
            ty,
            bit_offset,
            bitfield: None,
        };
        b.structure(
            "event",
            8,
            &[member("kind", byte, 0), member("pid", int, 32)],
        );
        let btf = b.build().unwrap();
        let maps = [MapDef::new("events", MapType::Ringbuf, 0, 0, 4096)];
        let words = Words {
            btf: Some(&btf),
            maps: &maps,
        };
        test(words);
    }

    fn report(expected: Vec<u8>, got: Vec<u8>) -> OutputReport {
        OutputReport {
            name: "events".to_owned(),
            recorded: 1,
            replayed: 1,
            verdict: OutputVerdict::Different {
                at: 0,
                cpu: None,
                expected: Some(expected),
                got: Some(got),
            },
        }
    }

    #[test]
    fn fields_and_padding_are_told_with_both_values() {
        words(|words| {
            let found = words.of_output(&report(
                vec![1, 9, 9, 9, 7, 0, 0, 0],
                vec![1, 0, 0, 0, 8, 0, 0, 0],
            ));
            let text = found.unwrap().to_string();
            let expected = "\
output events, record 0:
  padding after field `kind` of struct event: 090909 in the kernel, 000000 in the replay
  field `pid` of struct event: 7 in the kernel, 8 in the replay
";
            assert_eq!(text, expected);
        });
    }
}
