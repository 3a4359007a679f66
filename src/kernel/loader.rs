//! Loading as a user with fewer capabilities, or with a BPF token.

use std::ffi::CString;
use std::sync::Arc;

use super::availability::Capability;
use super::error::{Command, KernelError, NoVerdict, NoVerdictKind};
use super::log::verdict;
use super::machine::Uname;
use super::sys::{DroppedCapabilities, TokenFd};
use crate::spec::{Capabilities, Token};
use crate::util::Errno;
use crate::verifier::Verdict;

/// The user who loads maps and programs into the running kernel. The default has all
/// capabilities.
#[derive(Debug, Clone)]
pub struct Loader {
    capabilities: Capabilities,
    token: Option<(Token, Arc<TokenFd>)>,
}

impl Loader {
    /// A loader with these capabilities.
    #[must_use]
    pub const fn with_capabilities(capabilities: Capabilities) -> Self {
        Self {
            capabilities,
            token: None,
        }
    }

    /// A loader without capabilities of its own, but with all in a user namespace, and with a BPF
    /// token of that namespace, which is made with these options. Closing the token's last copy
    /// frees it and the namespace.
    ///
    /// # Errors
    /// The kernel has no tokens (before Linux 6.9), this process may not make one (it takes
    /// `CAP_SYS_ADMIN`, `CAP_SETUID` and `CAP_SETGID`), or the token permits nothing.
    pub fn with_token(token: &Token) -> Result<Self, KernelError> {
        let failed = |errno| KernelError {
            log: match errno {
                _ if Uname::here().is_before((6, 9)) => "Linux 6.9 is the first with BPF tokens",
                Errno::ENOENT => "the token permits nothing",
                _ => "",
            }
            .to_owned(),
            ..KernelError::new(Command::TokenCreate, format!("token {token}"), errno)
        };
        let options: Vec<(CString, CString)> = token
            .options()
            .map(|(option, mask)| Ok((CString::new(option)?, CString::new(mask)?)))
            .collect::<Result<_, std::ffi::NulError>>()
            .map_err(|_| failed(Errno::EINVAL))?;
        let options = options.iter().map(|(key, value)| (&**key, &**value));
        let made = TokenFd::create(options).map_err(failed)?;
        Ok(Self {
            capabilities: Capabilities::empty(),
            token: Some((*token, Arc::new(made))),
        })
    }

    /// Whether the loader has all capabilities.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.capabilities == Capabilities::all()
    }

    pub(super) fn token(&self) -> Option<&TokenFd> {
        self.token.as_ref().map(|(_, token)| &**token)
    }

    /// Whether the kernel takes BTF of this loader; libbpf goes on without.
    #[cfg(feature = "cli")]
    pub(crate) fn may_load_btf(&self) -> bool {
        match &self.token {
            Some((token, _)) => token.permits_btf(),
            None => self.capabilities.allow(Capabilities::BPF),
        }
    }

    /// Calls `load` as this loader: the calling thread has no other capabilities of the four
    /// meanwhile.
    pub(super) fn call<T>(
        &self,
        command: Command,
        load: impl FnOnce() -> T,
    ) -> Result<T, NoVerdict> {
        let loader = self.capabilities;
        if self.is_complete() {
            return Ok(load());
        }
        let lacking = Capability::ALL
            .into_iter()
            .filter(|capability| !loader.contains(capability.bit()));
        let numbers = lacking.map(|capability| capability as u32);
        let _dropped = DroppedCapabilities::new(numbers).map_err(|errno| NoVerdict {
            // Not the kernel's refusal of the loader.
            kind: NoVerdictKind::Feature,
            error: KernelError {
                log: "the capabilities of the thread can't be changed".to_owned(),
                ..KernelError::new(command, format!("a loader with {loader}"), errno)
            },
        })?;
        Ok(load())
    }
}

impl Default for Loader {
    fn default() -> Self {
        Self::with_capabilities(Capabilities::all())
    }
}

impl From<Capabilities> for Loader {
    fn from(capabilities: Capabilities) -> Self {
        Self::with_capabilities(capabilities)
    }
}

/// The sysctl that decides whether a loader without `CAP_BPF` is refused everything.
#[cfg(feature = "cli")]
pub(crate) const UNPRIVILEGED: &str = "/proc/sys/kernel/unprivileged_bpf_disabled";

/// Why the running kernel gives no verdicts for this loader: it refuses every program and map of a
/// loader without `CAP_BPF`, and what a token does not permit, unless the sysctl
/// `kernel.unprivileged_bpf_disabled` is 0.
#[cfg(feature = "cli")]
pub(crate) fn why_refused(loader: &Loader) -> Option<String> {
    if loader.capabilities.allow(Capabilities::BPF) {
        return None;
    }
    let value = std::fs::read_to_string(UNPRIVILEGED).unwrap_or_default();
    (value.trim() != "0").then(|| {
        format!(
            "the sysctl kernel.unprivileged_bpf_disabled is {}: this kernel refuses every program \
             of a loader without CAP_BPF; it is 0 in virtual machines (--vm)",
            value.trim()
        )
    })
}

impl NoVerdict {
    /// The refusal as the verdict for this loader, if it is one: the loader lacks a capability for
    /// the program's maps, which exist when a program is loaded.
    #[must_use]
    pub fn as_verdict(&self, loader: &Loader) -> Option<Verdict> {
        let lacks = !loader.is_complete() && self.kind == NoVerdictKind::Permission;
        lacks.then(|| verdict(Some(self.error.errno), String::new()))
    }
}
