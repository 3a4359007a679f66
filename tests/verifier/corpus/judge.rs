//! Runs our verifier on all cases, in parallel, and catches panics.

use std::any::Any;
use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use bpflab::verifier::{Decision, Options, verify};

use super::corpus::Judged;
use super::score::Ours;

/// Cases that take longer are printed while they run.
const SLOW: Duration = Duration::from_secs(5);

thread_local! {
    /// The position of the thread's panic.
    static PANICKED_AT: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Our verdicts, in the order of the cases.
pub fn all(cases: &[Judged]) -> Vec<Ours> {
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|info| {
        let place = info.location().map(ToString::to_string);
        PANICKED_AT.set(place.unwrap_or_default());
    }));
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicUsize::new(0);
    let running: Vec<_> = (0..workers).map(|_| Mutex::new(None)).collect();
    let done = AtomicBool::new(false);
    let mut verdicts = thread::scope(|scope| {
        let handles: Vec<_> = running
            .iter()
            .map(|running| {
                scope.spawn(|| {
                    let mut verdicts = Vec::new();
                    loop {
                        let at = next.fetch_add(1, Ordering::Relaxed);
                        let Some(case) = cases.get(at) else {
                            return verdicts;
                        };
                        *running.lock().unwrap_or_else(PoisonError::into_inner) =
                            Some((Instant::now(), at));
                        verdicts.push((at, one(case)));
                        *running.lock().unwrap_or_else(PoisonError::into_inner) = None;
                    }
                })
            })
            .collect();
        scope.spawn(|| name_the_slow(cases, &running, &done));
        let verdicts: Vec<_> = handles
            .into_iter()
            .flat_map(|handle| handle.join().expect("panics are caught"))
            .collect();
        done.store(true, Ordering::Relaxed);
        verdicts
    });
    panic::set_hook(hook);
    verdicts.sort_by_key(|(at, _)| *at);
    verdicts.into_iter().map(|(_, ours)| ours).collect()
}

/// Prints each case that runs for long, to identify one that never ends.
fn name_the_slow(cases: &[Judged], running: &[Mutex<Option<(Instant, usize)>>], done: &AtomicBool) {
    let mut named = Vec::new();
    while !done.load(Ordering::Relaxed) {
        thread::sleep(Duration::from_millis(20));
        for slot in running {
            let slot = *slot.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((since, at)) = slot
                && since.elapsed() > SLOW
                && !named.contains(&at)
            {
                eprintln!("slow: {} runs for {SLOW:?} already", cases[at].id);
                named.push(at);
            }
        }
    }
}

fn one(case: &Judged) -> Ours {
    let judged = panic::catch_unwind(AssertUnwindSafe(|| {
        verify(&case.program, &Options::default())
    }));
    match judged {
        Ok(verification) => {
            let verdict = verification.verdict;
            assert_eq!(verdict.is_accepted(), verification.outcome.is_ok());
            Ours {
                decision: verdict.decision,
                errno: verdict.errno.map_or(0, |errno| i32::from(errno.0)),
                processed: verdict.processed(),
                line: verdict.message,
                panic: None,
            }
        }
        Err(payload) => Ours {
            decision: Decision::Reject,
            errno: 0,
            line: String::new(),
            processed: 0,
            panic: Some(format!("{}: {}", PANICKED_AT.take(), said(&*payload))),
        },
    }
}

/// The text of a panic.
fn said(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_default()
}
