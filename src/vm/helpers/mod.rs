//! Bodies of helpers, by topic. Which helper has which body stands in the helper
//! table of [`spec`](crate::spec); this module expands that column.

mod checksum;
mod control;
mod ctype;
mod environment;
mod format;
mod maps;
mod output;
mod packet;
mod print;
mod probe;
mod redirect;
mod render;
mod skb;
mod socket;
mod string;
mod task;
mod xdp;

use super::fault::HelperProblem;
pub use super::machine::{Body, Call, Callbacks, Mock, Returned};
use crate::spec::helpers as spec;
use crate::util::HelperId;

/// Does what `call helper` does: the test's own body if there is one, or ours.
///
/// # Errors
/// [`HelperProblem`] when there is no body or an argument is not what it should be.
pub fn call(helper: HelperId, call: &mut Call<'_>) -> Returned {
    // Out of the table while it runs: a mock has the whole machine at hand.
    if let Some(mut mock) = call.machine.mocks.remove(&helper) {
        let result = mock(call);
        call.machine.mocks.entry(helper).or_insert(mock);
        return result;
    }
    match body(helper) {
        Some(body) => body(call),
        None => Err(
            spec::helper(helper).map_or(HelperProblem::Unknown, |helper| {
                HelperProblem::Missing(helper.name)
            }),
        ),
    }
}

/// Expands the `body` column.
macro_rules! bodies {
    ($($number:literal $name:ident = $($body:ident)::+,
        $ret:literal $args:literal [$($effect:ident)*] { $($prototypes:tt)* })*) => {
        fn body(helper: HelperId) -> Option<Body> {
            match helper.0 {
                $($number => bodies!(@ $($body)::+),)*
                _ => None,
            }
        }
    };
    (@ none) => { None };
    (@ $($body:ident)::+) => { Some($($body)::+) };
}

spec::for_each_helper!(bodies);

#[cfg(test)]
mod testing;
