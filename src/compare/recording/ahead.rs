//! A thread that reads and unpacks blocks ahead of the one that uses them.

use std::io::Read;
use std::mem;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{self, JoinHandle};

use super::blocks::{Blocks, Found};
use super::error::Result;

/// How many blocks are ready at most: enough to even out blocks that take longer, and few
/// enough to stay in the processor's cache.
const READY: usize = 2;

/// Blocks from another thread, which ends after the last block or when this is dropped.
pub(super) struct Ahead {
    blocks: Receiver<(Result<Found>, Vec<u8>)>,
    /// Sends buffers back for reuse.
    used: Sender<Vec<u8>>,
    thread: Option<JoinHandle<()>>,
}

impl Ahead {
    /// Starts to read.
    pub fn new<R: Read + Send + 'static>(from: Blocks<R>) -> Self {
        let (ready, blocks) = sync_channel(READY);
        let (used, empty) = channel();
        let thread = thread::spawn(move || read(from, &ready, &empty));
        Self {
            blocks,
            used,
            thread: Some(thread),
        }
    }

    /// The next block; its contents replace those of `plain`. Not to be called again after a
    /// result that is not a block.
    pub fn next(&mut self, plain: &mut Vec<u8>) -> Result<Found> {
        match self.blocks.recv() {
            Ok((found, filled)) => {
                // Fails if the thread has ended: the buffer is not needed then.
                let _ = self.used.send(mem::replace(plain, filled));
                found
            }
            Err(_) => match self.thread.take().map(JoinHandle::join) {
                Some(Err(panic)) => std::panic::resume_unwind(panic),
                _ => unreachable!("the thread ends after a result that is not a block"),
            },
        }
    }
}

/// Reads until there are no more blocks, or the receiver is gone.
fn read<R: Read>(
    mut from: Blocks<R>,
    ready: &SyncSender<(Result<Found>, Vec<u8>)>,
    empty: &Receiver<Vec<u8>>,
) {
    loop {
        let mut plain = empty.try_recv().unwrap_or_default();
        let found = from.next(&mut plain);
        let is_last = !matches!(found, Ok(Found::Block(_)));
        if ready.send((found, plain)).is_err() || is_last {
            return;
        }
    }
}
