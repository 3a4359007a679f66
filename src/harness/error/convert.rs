//! Every error of the layers below becomes an [`Error`], so that one `?` fits them all in a
//! test.

/// Makes [`Error::Other`] of these errors.
macro_rules! converts {
    ($($(#[$meta:meta])* $error:path;)*) => {
        $(
            $(#[$meta])*
            impl From<$error> for crate::harness::Error {
                fn from(error: $error) -> Self {
                    Self::other(error)
                }
            }
        )*
    };
}
pub(crate) use converts;

converts! {
    std::io::Error;
    crate::util::Errno;
    crate::util::ReadError;
    crate::isa::AsmError;
    crate::isa::DecodeError;
    crate::btf::BtfError;
    crate::btf::DumpError;
    crate::btf::LayoutError;
    crate::btf::PathError;
    crate::btf::SetError;
    crate::btf::ValueError;
    crate::object::cases::CaseError;
    crate::object::cases::CaseProblem;
    crate::object::core::CoreError;
    crate::coverage::CoverageError;
    crate::spec::TokenError;
    crate::spec::UnknownCapability;
    crate::verifier::Reject;
    crate::verifier::Unjudged;
    crate::verifier::Unverified;
    crate::vm::HelperProblem;
    crate::vm::events::CaptureError;
    crate::vm::events::TextError;
    crate::vm::memory::AccessFault;
    crate::vm::memory::KernelMemoryFull;
    crate::instrument::Damaged;
    crate::instrument::Unrecordable;
    crate::lower::LowerError;
}

#[cfg(all(feature = "kernel", target_os = "linux"))]
converts! {
    crate::kernel::KernelError;
    crate::kernel::Missing;
    crate::kernel::NoVerdict;
    crate::kernel::RunError;
    crate::kernel::attach::AttachError;
    crate::kernel::tracefs::TracefsError;
    crate::kernel::tracepoints::BtfUnreadable;
    crate::kernel::tracepoints::CatalogueError;
}

#[cfg(all(feature = "kernel", target_os = "linux"))]
impl<E> From<crate::kernel::process::SpawnError<E>> for super::Error
where
    crate::kernel::process::SpawnError<E>: std::error::Error + Send + Sync + 'static,
{
    fn from(error: crate::kernel::process::SpawnError<E>) -> Self {
        Self::other(error)
    }
}
