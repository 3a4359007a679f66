//! Functions that helpers call back (`push_callback_call`, `set_…_callback_state`).
