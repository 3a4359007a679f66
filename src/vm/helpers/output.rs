//! Stand-ins until the maps are there.

use crate::vm::machine::{Call, Returned};

pub(super) fn perf_event_output(call: &mut Call<'_>) -> Returned {
    Err(call.wrong(1, "a map"))
}

pub(super) fn ringbuf_discard(call: &mut Call<'_>) -> Returned {
    Err(call.wrong(1, "a map"))
}

pub(super) fn ringbuf_output(call: &mut Call<'_>) -> Returned {
    Err(call.wrong(1, "a map"))
}

pub(super) fn ringbuf_query(call: &mut Call<'_>) -> Returned {
    Err(call.wrong(1, "a map"))
}

pub(super) fn ringbuf_reserve(call: &mut Call<'_>) -> Returned {
    Err(call.wrong(1, "a map"))
}

pub(super) fn ringbuf_submit(call: &mut Call<'_>) -> Returned {
    Err(call.wrong(1, "a map"))
}
