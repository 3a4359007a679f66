//! Writes a file in another thread.
//!
//! A write to a busy disk sometimes takes longer than the kernel's ring has room for. So the
//! consumer of the ring hands its blocks over and continues.

use std::io::{self, Write};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Scope, ScopedJoinHandle};

/// Bytes of a piece that is handed over.
const PIECE: usize = 1 << 20;
/// How many pieces may wait; with more, the consumer waits.
const PIECES: usize = 256;

/// The writer's side. It must be [finished](Self::finish).
#[derive(Debug)]
pub(super) struct Background<'s, W> {
    bytes: u64,
    piece: Vec<u8>,
    pieces: SyncSender<Piece>,
    /// Buffers of written pieces, for reuse.
    empty: Receiver<Vec<u8>>,
    thread: ScopedJoinHandle<'s, Option<W>>,
    /// The error that ended the thread.
    failure: Arc<Mutex<Option<io::Error>>>,
}

#[derive(Debug)]
enum Piece {
    Bytes(Vec<u8>),
    Flush,
}

impl<'s, W: Write + Send + 's> Background<'s, W> {
    /// Writes to `to` in a new thread.
    pub fn new<'e>(scope: &'s Scope<'s, 'e>, mut to: W) -> Self {
        let (pieces, filled) = sync_channel(PIECES);
        let (back, empty) = sync_channel(PIECES);
        let failure = Arc::new(Mutex::new(None));
        let reported = failure.clone();
        let thread = scope.spawn(move || {
            let written = write_all(&mut to, &filled, &back);
            match written {
                Ok(()) => Some(to),
                Err(error) => {
                    *reported.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                    None
                }
            }
        });
        Self {
            bytes: 0,
            piece: Vec::with_capacity(PIECE),
            pieces,
            empty,
            thread,
            failure,
        }
    }

    /// Bytes written to this value so far.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Waits until everything is written; returns the file.
    ///
    /// # Errors
    /// The error of writing the file.
    pub fn finish(mut self) -> io::Result<W> {
        self.hand_over()?;
        drop(self.pieces);
        match self.thread.join() {
            Ok(Some(written)) => Ok(written),
            Ok(None) => Err(failure(&self.failure)),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }

    fn hand_over(&mut self) -> io::Result<()> {
        if self.piece.is_empty() {
            return Ok(());
        }
        let next = self.empty.try_recv();
        let next = next.unwrap_or_else(|_| Vec::with_capacity(PIECE));
        let full = std::mem::replace(&mut self.piece, next);
        self.send(Piece::Bytes(full))
    }

    fn send(&self, piece: Piece) -> io::Result<()> {
        let sent = self.pieces.send(piece);
        sent.map_err(|_| failure(&self.failure))
    }
}

/// Writes all pieces, and sends their buffers back.
fn write_all<W: Write>(
    to: &mut W,
    filled: &Receiver<Piece>,
    back: &SyncSender<Vec<u8>>,
) -> io::Result<()> {
    for piece in filled {
        match piece {
            Piece::Bytes(mut bytes) => {
                to.write_all(&bytes)?;
                bytes.clear();
                // Fails if the other side is gone: the buffer is not needed then.
                let _ = back.try_send(bytes);
            }
            Piece::Flush => to.flush()?,
        }
    }
    to.flush()
}

/// The file's error at the first call, a general one later.
fn failure(reported: &Mutex<Option<io::Error>>) -> io::Error {
    let mut reported = reported.lock().unwrap_or_else(PoisonError::into_inner);
    let general = || io::Error::new(io::ErrorKind::BrokenPipe, "the file can't be written to");
    reported.take().unwrap_or_else(general)
}

impl<'s, W: Write + Send + 's> Write for Background<'s, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.piece.extend_from_slice(bytes);
        self.bytes += bytes.len() as u64;
        if self.piece.len() >= PIECE {
            self.hand_over()?;
        }
        Ok(bytes.len())
    }

    /// Hands over buffered bytes; does not wait until they are in the file.
    fn flush(&mut self) -> io::Result<()> {
        self.hand_over()?;
        self.send(Piece::Flush)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::scope;

    #[test]
    fn all_arrives_in_order() {
        let bytes: Vec<u8> = (0..5 * PIECE / 2).map(|n| n.to_le_bytes()[1]).collect();
        let written = scope(|scope| {
            let mut file = Background::new(scope, Vec::new());
            for chunk in bytes.chunks(100_003) {
                file.write_all(chunk).unwrap();
            }
            file.flush().unwrap();
            assert_eq!(file.bytes(), bytes.len() as u64);
            file.finish().unwrap()
        });
        assert!(written == bytes);
    }

    /// A file on a full disk.
    struct Full;

    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::Error::from_raw_os_error(28))
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_full_disk_is_told_of() {
        let error = scope(|scope| {
            let mut file = Background::new(scope, Full);
            let piece = vec![0; PIECE];
            // The first piece that is refused ends the thread, and then the writing.
            loop {
                if let Err(error) = file.write_all(&piece) {
                    assert!(file.finish().is_err());
                    break error;
                }
            }
        });
        assert_eq!(error.raw_os_error(), Some(28));
        let error = scope(|scope| {
            let mut file = Background::new(scope, Full);
            file.write_all(&[0]).unwrap();
            file.finish().err()
        });
        assert_eq!(error.and_then(|error| error.raw_os_error()), Some(28));
    }
}
