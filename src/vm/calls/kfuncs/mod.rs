//! Bodies of kfuncs, by topic. The table of [`spec`](crate::spec::kfuncs) names the body of
//! each kfunc; this module expands that column.
//!
//! For a program that the verifier accepted, a body does what the kernel's kfunc does,
//! including the errno. Where the verifier would have rejected the program, a body ends it
//! with a [`HelperProblem`]. The machine tracks the program's acquired resources (references,
//! iterators, read sections, locks): for unverified programs nothing else prevents misuse.

mod arena;
mod callee;
mod cgroup;
mod context;
mod cpumask;
mod critical;
mod dynptr;
mod dynptr_probe;
mod exception;
mod file;
mod graph;
mod iterator;
mod kernel;
mod kernel_iterator;
mod list;
mod lock;
mod map;
mod object;
mod qdisc;
mod rbtree;
mod scx;
mod session;
mod string;
mod task;
mod user;
mod work;
mod xdp;

use std::sync::PoisonError;

use super::helpers::Body;
use super::inject;
use crate::btf::FieldKind;
use crate::spec::call::{ArgSpec, IteratorStep, Precondition, ResultKind};
use crate::spec::kfuncs::{self as spec, KfuncId, for_each_kfunc};
use crate::vm::machine::{Call, HelperProblem};

pub use crate::vm::machine::objects::{drop_object, free_fields};
pub use callee::Callee;
pub(crate) use context::kernel_context;
pub use object::percpu_part;
pub(crate) use scx::{dispatch_task, flush_dispatches, make_mask, may_run_on, run_queue};

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
    ($(for $set:ident {$(
        $name:ident = $($body:ident)::+, $returns:literal $parameters:literal [$($flag:ident)*]
        $(does $effect:ident)? $(as $replay:ident)?;
    )*})*) => {
        /// Bodies in the table's order.
        static BODIES: [Option<Body>; spec::COUNT] = [$($(body!($($body)::+)),*),*];
    };
}

for_each_kfunc!(bodies);

/// The body of a kfunc, if implemented.
#[must_use]
pub fn body(kfunc: KfuncId) -> Option<Body> {
    *BODIES.get(kfunc.index())?
}

/// Calls a kfunc: an error that a test [injects](crate::vm::inject), else the test's mock, else
/// the body.
///
/// # Errors
/// [`HelperProblem`] if there is no body or an argument is invalid.
pub fn call(callee: &Callee, call: &mut Call<'_>) -> Result<u64, HelperProblem> {
    if !call.machine.injections.is_empty()
        && let Some(id) = callee.id()
        && let Some(r0) = inject::fail_kfunc(id, call)?
    {
        failed(id, call)?;
        return Ok(callee.cut(r0));
    }
    // Out of the table while it runs, as for helpers.
    if let Some(mock) = call.machine.shared.mocks.kfuncs.remove(callee.name()) {
        let result = mock.lock().unwrap_or_else(PoisonError::into_inner)(call);
        let mocks = &mut call.machine.shared.mocks.kfuncs;
        mocks.entry(callee.name().clone()).or_insert(mock);
        return result.map(|result| callee.cut(result));
    }
    match callee.id().and_then(body) {
        Some(body) => body(call).map(|result| callee.cut(result)),
        None => Err(missing(callee)),
    }
}

/// The effects of kfuncs that remain on an error: an iterator that could not be created
/// exists and is empty; an object that could not be inserted into a list or tree is dropped.
#[cold]
fn failed(kfunc: KfuncId, call: &mut Call<'_>) -> Result<(), HelperProblem> {
    let spec = kfunc.row().call();
    if let Some((kind, IteratorStep::New)) = spec.iterator {
        iterator::begin_empty(call, kind)?;
    }
    let is_node = |node: &ArgSpec| {
        let mut nodes = [FieldKind::ListNode, FieldKind::RbNode].into_iter();
        nodes.any(|kind| node.demands(Precondition::Field(kind)))
    };
    let node = spec.arguments.get(1);
    if node.is_some_and(is_node) && spec.result.kind == ResultKind::Signed {
        graph::give_up(call)?;
    }
    Ok(())
}

#[cold]
fn missing(callee: &Callee) -> HelperProblem {
    HelperProblem::MissingKfunc(callee.name().to_string())
}

#[cfg(test)]
mod tests;
