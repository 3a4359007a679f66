//! Model tests follow.
