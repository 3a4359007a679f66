//! A thread that reads and unpacks blocks while another looks at those before.

use std::io::Read;
use std::mem;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{self, JoinHandle};

use super::blocks::{Blocks, Found};
use super::error::Result;

/// So many blocks lie ready at most: enough that nobody waits when one takes longer than
/// the others, and so few that they stay in a processor's cache.
const READY: usize = 2;

/// Blocks from another thread. It ends when this value does, or behind the last block.
pub(super) struct Ahead {
    blocks: Receiver<(Result<Found>, Vec<u8>)>,
    /// Memory that goes back to be filled again.
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

    /// The next block; its contents take the place of those of `plain`. Not to be asked
    /// again once it was not a block.
    pub fn next(&mut self, plain: &mut Vec<u8>) -> Result<Found> {
        match self.blocks.recv() {
            Ok((found, filled)) => {
                // Where nobody reads any more, nobody takes it.
                let _ = self.used.send(mem::replace(plain, filled));
                found
            }
            Err(_) => match self.thread.take().map(JoinHandle::join) {
                Some(Err(panic)) => std::panic::resume_unwind(panic),
                _ => unreachable!("whoever reads says why there are no more blocks"),
            },
        }
    }
}

/// Reads until there is nothing more, or nobody who would have it.
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
