//! The unused parts of a block of memory.

use std::iter;
use std::ops::Range;

use crate::jit::emitted::CODE_ALIGNMENT as UNIT;

/// The unused spans of a block: in order, not empty, and with used bytes in between. Spans begin
/// and end at multiples of [`UNIT`].
#[derive(Debug)]
pub(super) struct Spans {
    unused: Vec<Range<usize>>,
    len: usize,
}

impl Spans {
    /// An unused block of `len` bytes, a multiple of [`UNIT`].
    pub(super) fn new(len: usize) -> Self {
        Self {
            unused: iter::once(0..len).collect(),
            len,
        }
    }

    /// Takes the first unused span with room for `len` bytes; none if there is no such span.
    pub(super) fn take(&mut self, len: usize) -> Option<Range<usize>> {
        let len = len.max(1).checked_next_multiple_of(UNIT)?;
        let fits = |span: &Range<usize>| span.len() >= len;
        let at = self.unused.iter().position(fits)?;
        let span = self.unused.get_mut(at)?;
        let taken = span.start..span.start + len;
        span.start = taken.end;
        if span.start == span.end {
            self.unused.remove(at);
        }
        Some(taken)
    }

    /// Gives back a span that [`take`](Self::take) returned.
    pub(super) fn give(&mut self, span: Range<usize>) {
        let at = self
            .unused
            .partition_point(|unused| unused.start < span.start);
        let (before, after) = self.unused.split_at_mut(at);
        match (before.last_mut(), after.first_mut()) {
            (Some(before), Some(after)) if before.end == span.start && span.end == after.start => {
                before.end = after.end;
                self.unused.remove(at);
            }
            (Some(before), _) if before.end == span.start => before.end = span.end,
            (_, Some(after)) if span.end == after.start => after.start = span.start,
            _ => self.unused.insert(at, span),
        }
    }

    /// Whether all of the block is unused.
    pub(super) fn is_unused(&self) -> bool {
        matches!(self.unused.as_slice(), [all] if all.len() == self.len)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_span_between_unused_ones_joins_them() {
        let mut spans = Spans::new(4 * UNIT);
        let [a, b, c] = [1, UNIT, UNIT + 1].map(|len| spans.take(len).unwrap());
        assert_eq!((&a, &b), (&(0..UNIT), &(UNIT..2 * UNIT)));
        assert_eq!(c, 2 * UNIT..4 * UNIT);
        assert_eq!((spans.take(0), spans.take(usize::MAX)), (None, None));
        spans.give(a);
        spans.give(c);
        assert_eq!(spans.unused, [0..UNIT, 2 * UNIT..4 * UNIT]);
        spans.give(b);
        assert!(spans.is_unused());
    }

    /// A step of a test: takes so many bytes, or gives back one of the spans taken.
    #[derive(Debug, Clone)]
    enum Step {
        Take(usize),
        Give(prop::sample::Index),
    }

    fn step() -> impl Strategy<Value = Step> {
        let take = (0..3000usize).prop_map(Step::Take);
        prop_oneof![take, any::<prop::sample::Index>().prop_map(Step::Give)]
    }

    proptest! {
        /// Spans in use never overlap, what is given back is used again, and the unused spans
        /// are exactly the rest.
        #[test]
        fn spans_in_use_never_overlap(steps in prop::collection::vec(step(), 0..200)) {
            const LEN: usize = 16 << 10;
            let mut spans = Spans::new(LEN);
            let mut used: Vec<Range<usize>> = Vec::new();
            for step in steps {
                match step {
                    Step::Take(len) => match spans.take(len) {
                        Some(span) => {
                            prop_assert!(span.len() >= len && span.end <= LEN);
                            let overlaps = |it: &Range<usize>| span.start < it.end && it.start < span.end;
                            prop_assert!(!used.iter().any(overlaps));
                            used.push(span);
                        }
                        None => prop_assert!(!spans.unused.iter().any(|it| it.len() >= len.max(1))),
                    },
                    Step::Give(_) if used.is_empty() => {}
                    Step::Give(which) => spans.give(used.swap_remove(which.index(used.len()))),
                }
                let mut all: Vec<_> = used.iter().chain(&spans.unused).cloned().collect();
                all.sort_by_key(|span| span.start);
                let ends = iter::once(0).chain(all.iter().map(|span| span.end));
                prop_assert!(ends.eq(all.iter().map(|span| span.start).chain([LEN])));
                prop_assert_eq!(spans.is_unused(), used.is_empty());
                prop_assert!(spans.unused.windows(2).all(|two| two[0].end < two[1].start));
            }
            for span in used {
                spans.give(span);
            }
            prop_assert_eq!(spans.take(LEN), Some(0..LEN));
        }
    }
}
