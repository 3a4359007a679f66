//! Drains rings and buffers into the recording while a session runs.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::error::LiveError;
use crate::compare::recording::{WriteError, Writer};

/// Rings and buffers that the kernel fills, to be drained into a recording.
pub(in crate::compare) trait Drain: Send {
    /// Writes all records that are available; returns how many.
    fn drain<W: Write>(&mut self, writer: &mut Writer<W>) -> Result<usize, WriteError>;

    /// Stops the kernel from adding records, if detaching programs does not.
    fn switch_off(&mut self) -> Result<(), LiveError> {
        Ok(())
    }
}

/// How long the consumer sleeps after it drained something, and at most when idle. Waking up for
/// each record would slow the recorded programs down more than recording does; little
/// accumulates within a millisecond.
const NAP: Duration = Duration::from_millis(1);
const SLEEP: Duration = Duration::from_millis(16);

/// How often buffered items are flushed: at most this much is lost if the recorder is killed.
const FLUSH: Duration = Duration::from_secs(1);

/// Drains until `ended` is set and nothing is left.
pub(super) fn consume<W: Write>(
    drain: &mut impl Drain,
    writer: &mut Writer<W>,
    ended: &AtomicBool,
) -> Result<(), LiveError> {
    let mut pause = NAP;
    let mut flushed = Instant::now();
    loop {
        if ended.load(Ordering::Acquire) {
            drain.switch_off()?;
            drain.drain(writer)?;
            return Ok(());
        }
        let taken = drain.drain(writer)?;
        if flushed.elapsed() >= FLUSH {
            writer.flush()?;
            flushed = Instant::now();
        }
        pause = match taken {
            0 => (pause * 2).min(SLEEP),
            _ => NAP,
        };
        sleep(pause);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::recording::{Header, Part, Recording, Summary};
    use std::sync::atomic::AtomicU32;

    /// Returns a record at each call, and ends the session with the fourth.
    struct TestDrain<'a> {
        ended: &'a AtomicBool,
        given: &'a AtomicU32,
    }

    impl Drain for TestDrain<'_> {
        fn drain<W: Write>(&mut self, writer: &mut Writer<W>) -> Result<usize, WriteError> {
            let count = self.given.fetch_add(1, Ordering::Relaxed);
            if count == 3 {
                // A record that arrives just as the session ends must not be lost.
                self.ended.store(true, Ordering::Release);
            }
            writer.firing(&count.to_le_bytes())?;
            Ok(1)
        }
    }

    #[test]
    fn what_comes_last_is_taken() {
        let (ended, given) = (AtomicBool::new(false), AtomicU32::new(0));
        let mut source = TestDrain {
            ended: &ended,
            given: &given,
        };
        let mut writer = Writer::new(Vec::new(), &Header::default()).unwrap();
        consume(&mut source, &mut writer, &ended).unwrap();
        let file = writer.finish(Summary::default()).unwrap();
        let mut recording = Recording::new(&file[..]).unwrap();
        let Some(Part::Firings(firings)) = recording.next_part().unwrap() else {
            panic!("firings first");
        };
        assert_eq!(firings.count(), 5);
    }
}
