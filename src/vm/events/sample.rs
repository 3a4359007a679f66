//! A tracepoint's record for the perf buffer.

use std::sync::Arc;

use super::event::{Body, Event, EventKind};
use super::layout::Layout;
use super::record::Values;

/// A perf sample of a tracepoint. It is converted to bytes only on demand, since few events
/// have a reader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sample {
    layout: Arc<Layout>,
    values: Values,
    /// The thread ID of the event.
    pid: i32,
}

impl Event {
    /// The sample of an event in thread `pid`; `None` if the event is not a tracepoint.
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
    /// The raw data (`PERF_SAMPLE_RAW`): the record, with the thread ID in `common_pid`
    /// unless a test set that field.
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
