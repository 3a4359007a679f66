//! What a program requires of its context and buffers, found during exploration.

/// What a program requires of its context and buffers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Requirements {
    /// Bytes of context that it accesses (`max_ctx_offset`).
    pub context: u32,
    /// Bytes of a writable raw tracepoint's buffer (`max_tp_access`).
    pub tracepoint_buffer: u32,
    /// Bytes of a read-only buffer (`max_rdonly_access`).
    pub read_only_buffer: u32,
    /// Bytes of a writable buffer (`max_rdwr_access`).
    pub writable_buffer: u32,
    /// Whether the attach type must be the one given at load time
    /// (`enforce_expected_attach_type`).
    pub attach_type: bool,
}
