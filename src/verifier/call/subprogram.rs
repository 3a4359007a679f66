//! Calls of static functions, and the way back to the caller.
