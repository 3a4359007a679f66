//! A tracepoint's record on its way to the perf buffer.

use std::sync::Arc;

use super::event::{Body, Event, EventKind};
use super::layout::Layout;
use super::record::Values;

/// What the readers of a perf event get of a tracepoint that passed. Few ask for it, so
/// that it becomes bytes only when one does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sample {
    layout: Arc<Layout>,
    values: Values,
    /// The id of the thread that the event happened in.
    pid: i32,
}

impl Event {
    /// The sample of an event that happens in a thread; none of what is no tracepoint.
    pub(crate) fn into_sample(self, pid: i32) -> Option<Sample> {
        match self.body {
            Body::Fields { layout, values, .. } if self.kind == EventKind::Tracepoint => {
                Some(Sample {
                    layout,
                    values,
                    pid,
                })
            }
            _ => None,
        }
    }
}

impl Sample {
    /// The raw data (`PERF_SAMPLE_RAW`): the record, which names the thread that it
    /// happened in unless a test set one.
    pub(crate) fn raw(&self) -> Vec<u8> {
        let mut record = self.values.record(&self.layout);
        let at = self.layout.offset("common_pid");
        let place = at.and_then(|at| record.get_mut(at as usize..at as usize + 4));
        if let Some(place) = place.filter(|place| **place == [0; 4]) {
            place.copy_from_slice(&self.pid.to_le_bytes());
        }
        record
    }
}
