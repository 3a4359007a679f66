//! What the command is doing, shown on a terminal when it takes longer than a second.

use std::io::{IsTerminal, stderr};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// Work that ends earlier is not worth a line.
const DELAY: Duration = Duration::from_secs(1);

/// A line on the terminal: what is being done, and for how long. Without a terminal nothing is
/// ever shown.
#[derive(Default)]
pub(super) struct Progress {
    shown: Option<Shown>,
}

struct Shown {
    messages: Sender<String>,
    thread: JoinHandle<()>,
}

impl Progress {
    /// Says what is being done from now on. The time counts from the first message since
    /// [`clear`](Self::clear).
    pub fn set(&mut self, message: String) {
        if let Some(shown) = &self.shown {
            // The thread ends only when the channel does.
            let _ = shown.messages.send(message);
        } else if stderr().is_terminal() {
            let (messages, received) = channel();
            self.shown = std::thread::Builder::new()
                .name("progress".to_owned())
                .spawn(move || show(message, &received))
                .ok()
                .map(|thread| Shown { messages, thread });
        }
    }

    /// Takes the line off the terminal, so that other output can be printed.
    pub fn clear(&mut self) {
        if let Some(Shown { messages, thread }) = self.shown.take() {
            drop(messages);
            let _ = thread.join();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Shows the newest message, from a second after the first one to the end of the channel.
fn show(mut message: String, messages: &Receiver<String>) {
    let bar = ProgressBar::new_spinner();
    loop {
        match messages.recv_timeout(DELAY.saturating_sub(bar.elapsed())) {
            Ok(newer) => message = newer,
            Err(RecvTimeoutError::Timeout) => break,
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
    if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg} {elapsed}") {
        bar.set_style(style);
    }
    bar.set_message(message);
    bar.enable_steady_tick(Duration::from_millis(100));
    for newer in messages {
        bar.set_message(newer);
    }
    bar.finish_and_clear();
}
