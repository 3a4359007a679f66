//! The errors of this module become a [`bpflab::Error`](crate::Error).

use crate::harness::converts;

converts! {
    super::Unable;
    super::recording::RecordingError;
    super::recording::WriteError;
    super::replay::ReplayError;
}

#[cfg(all(feature = "kernel", target_os = "linux"))]
converts! {
    super::generated::GeneratedError;
    super::live::LiveError;
}
