//! Calls of static functions, and the way back to the caller.
impl crate::verifier::env::Verifier<'_> {
    pub(crate) fn check_return(&mut self) -> crate::verifier::reject::Checked<crate::util::Pc> { Ok(self.pc) }
}
