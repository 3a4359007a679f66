//! Bodies of helpers, by topic. The helper table of [`spec`](crate::spec) names the body of
//! each helper; this module expands that column.
//!
//! For a program that the verifier accepted, a body does what the kernel's helper does,
//! including the errno. Where the verifier would have rejected the program, a body ends it
//! with a [`HelperProblem`].

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

use super::inject;
use crate::spec::helpers::{self as spec, for_each_helper};
use crate::util::HelperId;
use crate::vm::machine::HelperProblem;

pub use crate::vm::machine::{Bytes, Call, Callbacks, Mock};
pub(in crate::vm::calls) use print::printed;

/// A helper's body: returns r0, or why the program can't go on. Errors for the program are
/// negated errnos in r0 ([`Errno::to_ret`](crate::util::Errno::to_ret)).
pub type Body = fn(&mut Call<'_>) -> Result<u64, HelperProblem>;

/// The body at a path of the table.
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
        $returns:literal $parameters:literal [$($effect:ident)*] $(as $replay:ident)?
        { $($prototypes:tt)* }
    )*) => {
        /// Bodies by helper number, starting at 1.
        static BODIES: [Option<Body>; spec::COUNT as usize] = [$(body!($($body)::+)),*];
    };
}

for_each_helper!(bodies);

/// The body of a helper, if implemented.
#[must_use]
pub fn body(helper: HelperId) -> Option<Body> {
    *BODIES.get(helper.index().checked_sub(1)?)?
}

/// Executes `call helper`: an error that a test [injects](crate::vm::inject), else the test's
/// mock, else the body.
///
/// # Errors
/// [`HelperProblem`] if there is no body or an argument is invalid.
pub fn call(helper: HelperId, call: &mut Call<'_>) -> Result<u64, HelperProblem> {
    if !call.machine.injections.is_empty()
        && let Some(r0) = inject::fail_helper(helper, call)?
    {
        return Ok(r0);
    }
    // The mock is taken out of the table while it runs, and injections are off: it may use
    // the whole machine and call the helper that it replaces.
    if !call.machine.shared.mocks.helpers.is_empty()
        && let Some(mock) = call.machine.shared.mocks.helpers.remove(&helper)
    {
        let injections = std::mem::take(&mut call.machine.injections);
        let result = mock.lock().unwrap_or_else(PoisonError::into_inner)(call);
        call.machine.injections = injections;
        call.machine
            .shared
            .mocks
            .helpers
            .entry(helper)
            .or_insert(mock);
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
