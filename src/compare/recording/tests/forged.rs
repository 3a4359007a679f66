//! Files with correct checksums that no writer made: later versions, and malicious files.

use proptest::prelude::*;

use super::block::{BLOCK_HEAD, BlockHead, Kind, PACKED, SKIPPABLE, file_head};
use super::*;

/// A block of a forged file.
struct Block {
    kind: u16,
    flags: u16,
    items: u32,
    plain: u32,
    stored: Vec<u8>,
}

impl Block {
    fn new(kind: u16, items: u32, plain: &[u8]) -> Self {
        Self {
            kind,
            flags: 0,
            items,
            plain: u32::try_from(plain.len()).unwrap(),
            stored: plain.to_vec(),
        }
    }

    fn of(kind: Kind, items: u32, plain: &[u8]) -> Self {
        Self::new(kind.number(), items, plain)
    }

    fn with_flags(self, flags: u16) -> Self {
        Self { flags, ..self }
    }
}

const HEADER: &[u8] = b"{}";

fn header() -> Block {
    Block::of(Kind::Header, 1, HEADER)
}

fn file(version: Version, blocks: &[Block]) -> Vec<u8> {
    let mut file = file_head(version).to_vec();
    for (number, block) in (0..).zip(blocks) {
        let head = BlockHead {
            kind: block.kind,
            flags: block.flags,
            number,
            stored: u32::try_from(block.stored.len()).unwrap(),
            plain: block.plain,
            items: block.items,
            sum: checksum(&block.stored),
        };
        file.extend_from_slice(&head.to_bytes());
        file.extend_from_slice(&block.stored);
    }
    file
}

fn error_of(version: Version, blocks: &[Block]) -> String {
    match read(&file(version, blocks)).1 {
        Ending::Failed(error) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

const NOW: Version = Version::CURRENT;

#[test]
fn a_later_minor_version_is_read() {
    let version = Version {
        minor: NOW.minor + 7,
        ..NOW
    };
    let more = br#"{"bpflab":"9.0","colour":"blue","filter":{"kind":"moon","phase":1},
        "programs":[{"name":"p","how":{"kind":"by_ear"}}]}"#;
    let end = br#"{"totals":{"firings":1,"firing_bytes":2,"hats":3},"summary":{"ended":{"kind":"bored"}}}"#;
    let blocks = [
        Block::of(Kind::Header, 1, more),
        Block::new(700, 5, b"from the future").with_flags(SKIPPABLE),
        Block::of(Kind::Firings, 1, &[2, 0, 0, 0, 8, 9]),
        // Not even packed in a way that is known.
        Block::new(701, 5, &[0; 300]).with_flags(SKIPPABLE),
        Block::of(Kind::End, 1, end),
    ];
    let file = file(version, &blocks);
    let mut recording = Recording::new(&file[..]).unwrap();
    assert_eq!(recording.version(), version);
    assert_eq!(recording.header().filter, Filter::Other);
    assert_eq!(recording.header().programs[0].how, How::Other);
    assert!(matches!(recording.next_part(), Ok(Some(Part::Firings(items))) if items.len() == 1));
    let Ok(Some(Part::End(end))) = recording.next_part() else {
        panic!("no end");
    };
    assert_eq!(end.summary.ended, Ended::Other);
    assert_eq!(recording.skipped(), 2);
}

#[test]
fn a_later_major_version_is_refused() {
    let version = Version { major: 2, minor: 5 };
    assert_eq!(
        error_of(version, &[]),
        "recording format 2.5 is newer than this bpflab reads (up to 1.1): use a newer bpflab"
    );
    let none = Version { major: 0, minor: 1 };
    assert!(error_of(none, &[header()]).ends_with("format version 0"));
}

#[test]
fn what_may_not_be_skipped_is_not() {
    let blocks = [header(), Block::new(700, 1, b"x")];
    assert_eq!(
        error_of(NOW, &blocks),
        "block 1 at byte 54: unknown kind 700: use a newer bpflab"
    );
    let blocks = [header(), Block::of(Kind::Firings, 0, b"").with_flags(4)];
    assert!(error_of(NOW, &blocks).contains("unknown flags 0x4: use a newer bpflab"));
}

#[test]
fn a_bomb_is_refused() {
    // The head claims a gigabyte, the block has 60 bytes.
    let bomb = Block {
        plain: 1 << 30,
        flags: PACKED,
        ..Block::of(Kind::Firings, 1, &[0; 60])
    };
    assert!(error_of(NOW, &[header(), bomb]).contains("is too long: at most 67108864"));
    let bomb = Block {
        plain: 60 << 20,
        flags: PACKED,
        ..Block::of(Kind::Firings, 1, &[0; 60])
    };
    assert!(error_of(NOW, &[header(), bomb]).contains("60 bytes can't be 62914560"));
    // The head claims 64 MB, nothing follows.
    let mut file = file(NOW, &[header()]);
    let head = BlockHead {
        kind: 2,
        flags: 0,
        number: 1,
        stored: 64 << 20,
        plain: 64 << 20,
        items: 1,
        sum: 0,
    };
    file.extend_from_slice(&head.to_bytes());
    let mut recording = Recording::new(&file[..]).unwrap();
    let part = recording.next_part();
    let left = BLOCK_HEAD as u64;
    assert!(matches!(part, Ok(Some(Part::CutOff(at))) if at.left == left));
    assert!(recording.held() < 1 << 16, "{}", recording.held());
}

#[test]
fn what_unpacks_to_something_else_is_damaged() {
    let plain = [7; 1000];
    let packed = lz4(&plain);
    let block = |stored: &[u8], plain| Block {
        plain,
        ..Block::of(Kind::Firings, 1, stored).with_flags(PACKED)
    };
    let error = error_of(NOW, &[header(), block(&packed, 999)]);
    assert!(error.contains("can't be unpacked"), "{error}");
    let error = error_of(NOW, &[header(), block(&packed, 1001)]);
    assert!(
        error.contains("expected 1001 bytes when unpacked, found 1000"),
        "{error}"
    );
    let error = error_of(NOW, &[header(), block(&[0xff; 40], 1000)]);
    assert!(error.contains("can't be unpacked"), "{error}");
}

fn lz4(plain: &[u8]) -> Vec<u8> {
    packed::Packer::new().pack(plain).unwrap().to_vec()
}

#[test]
fn items_that_are_none_are_named() {
    let firings =
        |count, plain: &[u8]| error_of(NOW, &[header(), Block::of(Kind::Firings, count, plain)]);
    assert_eq!(
        firings(2, &[1, 0, 0, 0, 9, 5, 0, 0, 0, 1]),
        "damaged: block 1 at byte 54: item 1 (a record) at byte 5 of the block's contents: \
         5 bytes wanted, 1 left"
    );
    assert!(firings(u32::MAX, &[]).contains("item 0 (a record) at byte 0"));
    assert!(firings(0, &[1]).ends_with("1 bytes follow the last of 0 items"));
    let entry = error_of(NOW, &[header(), Block::of(Kind::Entries, 1, &[9; 30])]);
    assert!(entry.ends_with("unknown time of reading: 9"), "{entry}");
    let loss = error_of(NOW, &[header(), Block::of(Kind::Losses, 1, &[77; 17])]);
    assert!(loss.ends_with("unknown cause of loss: 77"), "{loss}");
}

#[test]
fn the_frame_is_held_to() {
    let firings = || Block::of(Kind::Firings, 0, b"");
    assert!(error_of(NOW, &[firings()]).contains("expected the header, found a block of kind 2"));
    assert!(error_of(NOW, &[header(), header()]).ends_with("a second header"));
    let nonsense = Block::of(Kind::Header, 1, b"{\"programs\": 7}");
    assert!(error_of(NOW, &[nonsense]).contains("invalid JSON"));
    let end = Block::of(Kind::End, 1, br#"{"totals":{"firings":1}}"#);
    let error = error_of(NOW, &[header(), end]);
    assert!(
        error.contains("the end counts") && error.contains("firings: 1"),
        "{error}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(crate::sample::cases(2000)))]

    /// Any contents are items or an error, never a panic, and never take much more memory than
    /// the file has bytes.
    #[test]
    fn any_contents_are_items_or_an_error(
        kind in 0..12u16,
        flags in 0..4u16,
        items in prop_oneof![0..5u32, any::<u32>()],
        plain in prop_oneof![0..100u32, any::<u32>()],
        stored in vec(prop_oneof![0..4u8, any::<u8>()], 0..120),
    ) {
        let plain = if flags & PACKED == 0 { u32::try_from(stored.len()).unwrap() } else { plain };
        let block = Block { kind, flags, items, plain, stored };
        let file = file(NOW, &[header(), block]);
        let mut recording = Recording::new(&file[..]).unwrap();
        let mut parts = 0;
        while let Ok(Some(part)) = recording.next_part() {
            let _ = steps_of(&part);
            parts += 1;
        }
        prop_assert!(parts <= 2);
        prop_assert!(recording.held() < 1 << 18, "{}", recording.held());
    }
}
