//! Bodies of helpers, by topic. Which helper has which body stands in the helper
//! table of [`spec`](crate::spec); this module expands that column.
//!
//! A body does what the kernel's does for a program that the verifier accepted,
//! down to the errno, and ends the program with a [`HelperProblem`] where the
//! verifier would have rejected it.

pub(super) mod call;
mod cgroup;
mod checksum;
mod control;
mod dynptr;
mod environment;
mod format;
pub(super) mod kernel;
mod kptr;
mod maps;
mod net;
mod output;
pub(super) mod packet;
mod per_cpu;
mod perf;
mod print;
pub(super) mod probe;
mod redirect;
mod sequence;
mod show;
pub(super) mod skb;
mod sockmap;
mod stack;
mod storage;
mod string;
mod task;
#[cfg(test)]
pub(super) mod testing;
pub(super) mod timer;
mod tracing;
mod user_ringbuf;
mod xdp;

use std::sync::PoisonError;

use super::fault::HelperProblem;
use super::inject;
use crate::spec::helpers::{self as spec, for_each_helper};
use crate::util::HelperId;

pub use call::{Bytes, Call, Callbacks};

/// A helper's body: r0, or why the program can't go on. An error that the program
/// is told of is a result, negated ([`Errno::to_ret`](crate::util::Errno::to_ret)).
pub type Body = fn(&mut Call<'_>) -> Result<u64, HelperProblem>;

/// A helper as a test supplies it.
pub type Mock = Box<dyn FnMut(&mut Call<'_>) -> Result<u64, HelperProblem> + Send>;

/// The body that a path of the table names.
macro_rules! body {
    (none) => {
        None
    };
    ($($part:ident)::+) => {
        Some($($part)::+ as Body)
    };
}

/// Expands the table's `body` column.
macro_rules! bodies {
    ($(
        $number:literal $name:ident = $($body:ident)::+,
        $returns:literal $parameters:literal [$($effect:ident)*] { $($prototypes:tt)* }
    )*) => {
        /// Bodies by number, 1 first.
        static BODIES: [Option<Body>; spec::COUNT as usize] = [$(body!($($body)::+)),*];
    };
}

for_each_helper!(bodies);

/// The implementation of a helper, if there is one.
#[must_use]
pub fn body(helper: HelperId) -> Option<Body> {
    *BODIES.get(helper.index().checked_sub(1)?)?
}

/// Does what `call helper` does: fails where a test [injects](super::inject) that, or
/// runs the test's own body if there is one, or ours.
///
/// # Errors
/// [`HelperProblem`] when there is no body or an argument is not what it should be.
pub fn call(helper: HelperId, call: &mut Call<'_>) -> Result<u64, HelperProblem> {
    if !call.machine.injections.is_empty()
        && let Some(r0) = inject::fail_helper(helper, call)?
    {
        return Ok(r0);
    }
    // Out of the table while it runs: a mock has the whole machine at hand, and may
    // call what it stands for, which then does not fail once more.
    if !call.machine.mocks.is_empty()
        && let Some(mock) = call.machine.mocks.remove(&helper)
    {
        let injections = std::mem::take(&mut call.machine.injections);
        let result = mock.lock().unwrap_or_else(PoisonError::into_inner)(call);
        call.machine.injections = injections;
        call.machine.mocks.entry(helper).or_insert(mock);
        return result;
    }
    match body(helper) {
        Some(body) => body(call),
        None => Err(missing(helper)),
    }
}

#[cold]
fn missing(helper: HelperId) -> HelperProblem {
    let known = spec::helper(helper);
    known.map_or(HelperProblem::Unknown, |helper| {
        HelperProblem::Missing(helper.name)
    })
}

#[cfg(test)]
mod tests {
    use super::testing::Bench;
    use super::*;
    use crate::spec::helpers::id;

    #[test]
    fn a_helper_without_a_body_says_so_by_name() {
        let mut bench = Bench::new();
        let problem = bench.call(id::rc_repeat, []).unwrap_err();
        assert_eq!(problem, HelperProblem::Missing("rc_repeat"));
        assert!(problem.to_string().contains("mock_helper(\"rc_repeat\""));
        assert_eq!(bench.call(HelperId(212), []), Err(HelperProblem::Unknown));
        assert_eq!(bench.call(HelperId(0), []), Err(HelperProblem::Unknown));
        assert_eq!(
            bench.call(HelperId(u32::MAX), []),
            Err(HelperProblem::Unknown)
        );
    }

    #[test]
    fn a_mock_goes_first_and_reaches_memory_through_the_call() {
        let mut bench = Bench::new();
        let (mut calls, at) = (0, bench.memory(&[7, 0, 0, 0]));
        let mock = Box::new(move |call: &mut Call<'_>| {
            calls += 1;
            let byte = call.read(1, 4)?[0];
            call.write(1, &[byte + 1])?;
            call.read(1, 5).map(|_| calls).or(Ok(calls))
        });
        bench.machine.mock_helper(id::get_stackid, mock);
        assert_eq!(bench.call(id::get_stackid, [at]), Ok(1));
        assert_eq!(bench.call(id::get_stackid, [at]), Ok(2));
        assert_eq!(bench.bytes(at, 1), [9]);
    }

    #[test]
    fn a_mock_may_call_the_helper_that_it_replaces() {
        let mut bench = Bench::new();
        let mock = Box::new(|call: &mut Call<'_>| Ok(super::call(id::ktime_get_ns, call)? + 1));
        let real = bench.call(id::ktime_get_ns, []).unwrap();
        bench.machine.mock_helper(id::ktime_get_ns, mock);
        assert_eq!(bench.call(id::ktime_get_ns, []), Ok(real + 1));
    }
}
