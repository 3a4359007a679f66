//! Damage is always detected and located, and everything before it can be read.

use proptest::prelude::*;

use super::*;

/// How many steps of the sample come before each block, and before the file's end.
fn steps_before(file: &[u8], starts: &[usize]) -> Vec<usize> {
    starts.iter().map(|at| read(&file[..*at]).0.len()).collect()
}

/// The number of the block that a byte of the file is in; 0 for the file's head.
fn block_of(starts: &[usize], at: usize) -> usize {
    starts.iter().rposition(|start| *start <= at).unwrap_or(0)
}

#[test]
fn any_flipped_bit_is_found_in_its_block() {
    let file = sample_file();
    let (whole, _) = read(&file);
    let starts = block_starts(&file);
    let before = steps_before(&file, &starts);
    for at in (0..file.len()).step_by(crate::sample::step()) {
        for bit in 0..8 {
            let mut damaged = file.clone();
            damaged[at] ^= 1 << bit;
            let (found, ending) = read(&damaged);
            let Ending::Failed(error) = ending else {
                panic!("byte {at}, bit {bit}: {ending:?}");
            };
            let block = block_of(&starts, at);
            assert_eq!(found, whole[..before[block]], "byte {at}, bit {bit}");
            match error {
                RecordingError::NotARecording => assert!(at < MAGIC.len()),
                RecordingError::Damaged { position, .. } if at < block::FILE_HEAD => {
                    assert_eq!(
                        position,
                        BlockPosition {
                            block: 0,
                            offset: 0
                        }
                    );
                }
                RecordingError::Damaged { position, .. } => {
                    assert_eq!(position.block, block as u64, "byte {at}");
                    assert_eq!(position.offset, starts[block] as u64, "byte {at}");
                }
                other => panic!("byte {at}, bit {bit}: {other}"),
            }
        }
    }
}

#[test]
fn a_file_may_end_anywhere() {
    let file = sample_file();
    let (whole, _) = read(&file);
    let starts = block_starts(&file);
    let before = steps_before(&file, &starts);
    for len in 0..file.len() {
        let (found, ending) = read(&file[..len]);
        let block = block_of(&starts, len);
        assert_eq!(found, whole[..before[block]], "{len} bytes");
        match ending {
            Ending::CutOff(CutOff { position, left }) => {
                assert_eq!(position.block, block as u64, "{len} bytes");
                assert_eq!(position.offset, starts[block] as u64, "{len} bytes");
                assert_eq!(left, (len - starts[block]) as u64, "{len} bytes");
            }
            Ending::Failed(RecordingError::NotARecording) => assert_eq!(len, 0),
            Ending::Failed(RecordingError::NoHeader(at)) => {
                assert!(len < starts[1], "{len} bytes");
                assert_eq!(at.position.offset + at.left, len as u64);
            }
            other => panic!("{len} bytes: {other:?}"),
        }
    }
}

#[test]
fn a_block_that_is_gone_or_not_in_its_place_is_missed() {
    let file = sample_file();
    let starts = block_starts(&file);
    let block = |n: usize| &file[starts[n]..starts[n + 1]];
    let of = |order: &[usize]| {
        let mut file = file[..block::FILE_HEAD].to_vec();
        for n in order {
            file.extend_from_slice(block(*n));
        }
        file
    };
    let all: Vec<_> = (0..starts.len() - 1).collect();
    assert_eq!(of(&all), file);
    for at in 1..all.len() {
        let mut gone = all.clone();
        gone.remove(at);
        let mut twice = all.clone();
        twice.insert(at, at - 1);
        let mut swapped = all.clone();
        swapped.swap(at, at - 1);
        for order in [gone, twice, swapped] {
            let last_is_gone = order.len() < all.len() && at == all.len() - 1;
            match read(&of(&order)).1 {
                Ending::Failed(RecordingError::Damaged { problem, .. }) => {
                    assert!(
                        problem.contains("the block has the number"),
                        "{order:?}: {problem}"
                    );
                }
                Ending::CutOff(_) => assert!(last_is_gone, "{order:?}"),
                other => panic!("{order:?}: {other:?}"),
            }
        }
    }
}

#[test]
fn bytes_behind_the_end_are_no_recording() {
    for more in [&b"\0"[..], &sample_file()] {
        let (_, ending) = read(&[&sample_file(), more].concat());
        let Ending::Failed(error) = ending else {
            panic!("{ending:?}");
        };
        assert!(
            error.to_string().ends_with("bytes follow the end"),
            "{error}"
        );
    }
}

#[test]
fn an_error_says_what_and_where() {
    let mut file = sample_file();
    let starts = block_starts(&file);
    file[starts[5] + block::BLOCK_HEAD] ^= 0xff;
    let Ending::Failed(error) = read(&file).1 else {
        panic!("damage is not seen");
    };
    let text = error.to_string();
    let wanted = format!(
        "damaged: block 5 at byte {}: the block has checksum 0x",
        starts[5]
    );
    assert!(text.starts_with(&wanted), "{text}");

    let cut = read(&file[..starts[2] + 7]).1;
    let Ending::CutOff(cut) = cut else {
        panic!("{cut:?}");
    };
    let wanted = format!(
        "cut off in block 2 at byte {}, 7 bytes into the block",
        starts[2]
    );
    assert_eq!(cut.to_string(), wanted);

    let Ending::Failed(other) = read(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0").1 else {
        panic!("an object is no recording");
    };
    assert!(
        other.to_string().starts_with("not a bpflab recording"),
        "{other}"
    );
}

#[test]
fn a_file_that_can_not_be_read_is_said() {
    struct Broken<'a>(&'a [u8]);
    impl std::io::Read for Broken<'_> {
        fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
            match self.0.read(to) {
                Ok(0) => Err(std::io::Error::other("the disk is broken")),
                done => done,
            }
        }
    }
    let file = sample_file();
    let at = block_starts(&file)[3];
    let mut recording = Recording::new(Broken(&file[..at + 40])).unwrap();
    let error = loop {
        match recording.next_part() {
            Ok(part) => assert!(part.is_some()),
            Err(error) => break error,
        }
    };
    let wanted = format!("block 3 at byte {at}: can't be read: the disk is broken");
    assert_eq!(error.to_string(), wanted);
    let missing = Recording::open("no/such/file").unwrap_err();
    assert!(matches!(missing, RecordingError::Io { .. }));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(crate::sample::cases(300)))]

    /// Whatever is inserted, removed or changed: the parts read are a prefix of those written,
    /// and only the unchanged file is whole.
    #[test]
    fn no_damage_changes_what_is_read(
        at in any::<prop::sample::Index>(),
        gone in 0..200usize,
        put in vec(any::<u8>(), 0..200),
    ) {
        let file = sample_file();
        let (whole, _) = read(&file);
        let at = at.index(file.len() + 1);
        let end = (at + gone).min(file.len());
        let damaged = [&file[..at], &put, &file[end..]].concat();
        let (found, ending) = read(&damaged);
        prop_assert!(whole.starts_with(&found));
        prop_assert_eq!(matches!(ending, Ending::Whole(_)), damaged == file);
    }
}
