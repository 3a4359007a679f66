//! Two CPUs write the same elements: an order that is not known is never guessed.
//! `tests/objects/races.bpf.c` makes all kinds of writes that don't commute, to few elements.

use bpflab::Object;
use bpflab::compare::live::LiveOptions;
use bpflab::compare::replay::{MapVerdict, Word};

use crate::run::{compare, events};
use crate::work;

fn races() -> Object {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/objects/races.bpf.o");
    Object::open(path).unwrap()
}

/// A thread that moves from one CPU to the other: the order of its writes is known.
#[test]
fn one_thread_on_several_cpus_is_in_order() {
    let count = events();
    let mut command = work::command("hops", count);
    let Some(done) = compare("hops", &races(), &LiveOptions::default(), &mut command) else {
        return;
    };
    done.expect(count, &[Word::Equal]);
}

/// Threads that run at the same time: the order is not known, and no verdict claims it is.
#[test]
fn several_threads_at_one_element_are_never_different() {
    let count = events();
    let mut command = work::command("races", count);
    let Some(done) = compare("races", &races(), &LiveOptions::default(), &mut command) else {
        return;
    };
    done.expect(2 * count, &[Word::Equal, Word::OrderUnknown]);
    for map in &done.reports()[0].maps {
        eprintln!("  {}: {:?}", map.name, map.verdict);
        if let MapVerdict::OrderUnknown { why, .. } = &map.verdict {
            assert!(why.contains("firing") && why.contains("CPU"), "{why}");
        }
        // Each CPU has its own.
        let is_own = map.name == "own";
        assert!(!is_own || map.verdict.word() == Word::Equal, "{map:?}");
    }
}
