//! Probe sessions: data that a program at a function's entry keeps for the return
//! (`kernel/trace/bpf_trace.c`).

use crate::vm::events::attach::Session;
use crate::vm::machine::{Call, HelperProblem};

type Result = std::result::Result<u64, HelperProblem>;

/// The session of the running program.
fn session(call: &mut Call<'_>) -> std::result::Result<Session, HelperProblem> {
    let session = call.machine.site().and_then(|site| site.session);
    session.ok_or_else(|| {
        HelperProblem::Other(
            "the program is in no session: it has to be attached as kprobe.session or \
             uprobe.session, and fired there"
                .to_owned(),
        )
    })
}

pub(super) fn is_return(call: &mut Call<'_>) -> Result {
    Ok(session(call)?.is_return.into())
}

/// `bpf_session_cookie()`: the address of 8 bytes, zero at the entry.
pub(super) fn cookie(call: &mut Call<'_>) -> Result {
    Ok(session(call)?.cookie)
}
