//! XDP kfuncs of drivers (`net/core/xdp.c`, `net/core/filter.c`). The mocked driver has only
//! a packet's bytes; tests that need metadata mock these kfuncs.

use super::super::helpers::packet;
use crate::util::Errno;
use crate::vm::machine::{Call, HelperProblem};

type Result = std::result::Result<u64, HelperProblem>;

/// The result of a driver that does not implement the kfunc.
pub(super) fn metadata(_call: &mut Call<'_>) -> Result {
    Ok(Errno::EOPNOTSUPP.to_ret())
}

/// `bpf_xdp_pull_data(context, length)`: makes the first bytes linear. Moving bytes out of
/// fragments is not implemented.
pub(super) fn pull_data(call: &mut Call<'_>) -> Result {
    let (len, context) = (call.size(2), call.arg(1));
    let packet = packet::at(call, 1, context)?;
    let (linear, all) = (packet.linear_len(), packet.len());
    match len {
        _ if len <= linear => Ok(0),
        _ if len > all => Ok(Errno::EINVAL.to_ret()),
        _ => Err(HelperProblem::MissingKfunc("bpf_xdp_pull_data".to_owned())),
    }
}
