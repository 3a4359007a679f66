//! What the driver knows and does (`net/core/xdp.c`, `net/core/filter.c`). The mocked one
//! knows nothing of a packet but its bytes; a test that wants it to mocks these.

use super::super::fault::HelperProblem;
use super::super::helpers::{Call, packet};
use crate::util::Errno;

type Result = std::result::Result<u64, HelperProblem>;

/// As a driver answers that does not implement it.
pub(super) fn metadata(_call: &mut Call<'_>) -> Result {
    Ok(Errno::EOPNOTSUPP.to_ret())
}

/// `(context, length)`: as much of the packet shall lie one behind the other. Bytes of
/// fragments are not moved here.
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
