//! What a program asks of its surroundings, found by the walk.

/// What a program asks of the one who attaches or runs it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Requirements {
    /// Bytes of context that it touches (`max_ctx_offset`).
    pub context: u32,
    /// Bytes of a writable raw tracepoint's buffer (`max_tp_access`).
    pub tracepoint_buffer: u32,
    /// Bytes of a read-only buffer (`max_rdonly_access`).
    pub read_only_buffer: u32,
    /// Bytes of a writable buffer (`max_rdwr_access`).
    pub writable_buffer: u32,
    /// Whether it may be attached only where it said when it was loaded
    /// (`enforce_expected_attach_type`).
    pub attach_type: bool,
}
