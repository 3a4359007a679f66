//! STUB
use crate::verifier::reg::RegState;
pub(crate) fn type_name(_reg: &RegState) -> String {
    String::new()
}
