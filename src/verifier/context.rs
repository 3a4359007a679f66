//! STUB
use super::env::Verifier;
use super::memory::MemoryAccess;
use super::reg::RegState;
use super::reject::Checked;
impl Verifier<'_> {
    pub(crate) fn check_context(&mut self, _a: &MemoryAccess) -> Checked<Option<RegState>> {
        Ok(Some(RegState::UNKNOWN))
    }
    pub(crate) fn check_socket(&mut self, _a: &MemoryAccess) -> Checked {
        Ok(())
    }
    pub(crate) fn check_flow_keys(&mut self, _a: &MemoryAccess) -> Checked {
        Ok(())
    }
    pub(crate) fn check_tp_buffer(&mut self, _a: &MemoryAccess) -> Checked {
        Ok(())
    }
    pub(crate) fn check_buf(&mut self, _a: &MemoryAccess) -> Checked {
        Ok(())
    }
}
