//! What the driver knows of a packet (`net/core/xdp.c`). The mocked one knows nothing; a
//! test that wants it to mocks these.

use super::super::fault::HelperProblem;
use super::super::helpers::Call;
use crate::util::Errno;

type Result = std::result::Result<u64, HelperProblem>;

/// As a driver answers that does not implement it.
pub(super) fn metadata(_call: &mut Call<'_>) -> Result {
    Ok(Errno::EOPNOTSUPP.to_ret())
}
