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

/// The requirements found so far. They only grow.
#[derive(Debug, Default)]
pub(crate) struct Required {
    found: Requirements,
}

impl Required {
    /// The requirements.
    pub(crate) const fn get(&self) -> Requirements {
        self.found
    }

    /// Requires this many bytes of context.
    pub(crate) fn context(&mut self, bytes: u32) {
        self.found.context = self.found.context.max(bytes);
    }

    /// Requires this many bytes of a writable raw tracepoint's buffer.
    pub(crate) fn tracepoint_buffer(&mut self, bytes: u32) {
        self.found.tracepoint_buffer = self.found.tracepoint_buffer.max(bytes);
    }

    /// Requires this many bytes of a read-only or writable buffer.
    pub(crate) fn buffer(&mut self, read_only: bool, bytes: u32) {
        let known = if read_only {
            &mut self.found.read_only_buffer
        } else {
            &mut self.found.writable_buffer
        };
        *known = bytes.max(*known);
    }

    /// Requires the attach type given at load time.
    pub(crate) fn attach_type(&mut self) {
        self.found.attach_type = true;
    }
}
