//! Neither side keeps the file in memory.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{Read, Write};
use std::rc::Rc;

use super::*;

/// A pipe within the thread.
#[derive(Clone, Default)]
struct Pipe(Rc<RefCell<VecDeque<u8>>>);

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A recording that is generated while it is read.
struct Making {
    writer: Option<Writer<Pipe>>,
    pipe: Pipe,
    firings: u64,
    made: Rc<RefCell<u64>>,
}

/// A unique firing that does not compress.
fn firing(number: u64) -> [u8; 64] {
    let mut bytes = [0; 64];
    let mut word = number;
    for piece in bytes.as_chunks_mut::<8>().0 {
        word = word.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23) ^ number;
        *piece = word.to_le_bytes();
    }
    bytes
}

impl Read for Making {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        while self.pipe.0.borrow().is_empty() {
            let Some(writer) = &mut self.writer else {
                return Ok(0);
            };
            let mut made = self.made.borrow_mut();
            if *made < self.firings {
                writer
                    .firing(&firing(*made))
                    .map_err(std::io::Error::other)?;
                *made += 1;
            } else if let Some(writer) = self.writer.take() {
                writer
                    .finish(Summary::default())
                    .map_err(std::io::Error::other)?;
            }
        }
        self.pipe.0.borrow_mut().read(to)
    }
}

#[test]
fn reading_keeps_up_with_writing_and_holds_a_block() {
    const FIRINGS: u64 = 100_000;
    let pipe = Pipe::default();
    let made = Rc::new(RefCell::new(0));
    let making = Making {
        writer: Some(Writer::new(pipe.clone(), &Header::default()).unwrap()),
        pipe,
        firings: FIRINGS,
        made: made.clone(),
    };
    let mut recording = Recording::new(making).unwrap();
    let mut next = 0;
    loop {
        match recording.next_part().unwrap() {
            Some(Part::Firings(items)) => {
                let count = items.len() as u64;
                for record in items {
                    assert_eq!(record, firing(next), "firing {next}");
                    next += 1;
                }
                // Only this block was read.
                assert_eq!(*made.borrow(), next);
                assert!(count * 68 <= 300_000, "{count} in a block");
            }
            Some(Part::End(end)) => break assert_eq!(end.totals.firings, FIRINGS),
            other => panic!("{other:?}"),
        }
        assert!(recording.held() < 2 << 20, "{} bytes", recording.held());
    }
    assert_eq!(next, FIRINGS);
    assert_eq!(recording.totals().firing_bytes, FIRINGS * 64);
}

#[test]
fn a_reader_that_gives_little_at_a_time_is_enough() {
    struct Drops<'a>(&'a [u8]);
    impl Read for Drops<'_> {
        fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
            let len = to.len().min(3);
            self.0.read(&mut to[..len])
        }
    }
    let file = sample_file();
    let mut recording = Recording::new(Drops(&file)).unwrap();
    let mut parts = 0;
    while recording.next_part().unwrap().is_some() {
        parts += 1;
    }
    assert_eq!(
        parts,
        block_starts(&file).len() - 2,
        "all blocks but the header"
    );
}
