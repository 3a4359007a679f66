//! Stand-ins until the maps are there.

use crate::vm::machine::{Call, Returned};

pub(super) fn delete_elem(call: &mut Call<'_>) -> Returned {
    Err(call.wrong(1, "a map"))
}

pub(super) fn for_each_elem(call: &mut Call<'_>) -> Returned {
    Err(call.wrong(1, "a map"))
}

pub(super) fn lookup_elem(call: &mut Call<'_>) -> Returned {
    Err(call.wrong(1, "a map"))
}

pub(super) fn lookup_percpu_elem(call: &mut Call<'_>) -> Returned {
    Err(call.wrong(1, "a map"))
}

pub(super) fn peek_elem(call: &mut Call<'_>) -> Returned {
    Err(call.wrong(1, "a map"))
}

pub(super) fn pop_elem(call: &mut Call<'_>) -> Returned {
    Err(call.wrong(1, "a map"))
}

pub(super) fn push_elem(call: &mut Call<'_>) -> Returned {
    Err(call.wrong(1, "a map"))
}

pub(super) fn update_elem(call: &mut Call<'_>) -> Returned {
    Err(call.wrong(1, "a map"))
}
