//! The map of a call (`record_func_map`, `record_func_key`,
//! `check_map_func_compatibility`).

use super::call_state::{Call, Named};
use crate::isa::Reg;
use crate::spec::helpers::id;
use crate::spec::{MapMismatch, MapType};
use crate::util::{Errno, HelperId};
use crate::verifier::env::Verifier;
use crate::verifier::reject::{Reject, VerifyResult, reject};

/// Helpers that write to their map.
const WRITERS: [HelperId; 4] = [
    id::map_delete_elem,
    id::map_update_elem,
    id::map_push_elem,
    id::map_pop_elem,
];

impl Verifier<'_> {
    /// Rejects a write to a map that is read-only for programs.
    pub(super) fn check_map_write(&self, call: &Call) -> VerifyResult {
        if WRITERS.contains(&call.id) && !self.call_map(call)?.1.flags_made().programs_write() {
            reject!(EACCES, "write into map forbidden");
        }
        Ok(())
    }

    /// Records a tail call with a constant index, and makes the index precise.
    pub(super) fn check_tail_call_key(&mut self, call: &Call) -> VerifyResult {
        if call.id != id::tail_call {
            return Ok(());
        }
        let (_, def) = self.call_map(call)?;
        if def.map_type != MapType::ProgArray {
            reject!(EINVAL, "expected prog array map for tail call");
        }
        let places = def.max_entries;
        let key = self.reg(Reg::R3).value();
        let key = key.and_then(|key| u32::try_from(key).ok());
        let key = key.filter(|key| *key < places);
        self.facts.see_tail_call(self.pc(), key);
        match key {
            Some(_) => self.mark_precise(Reg::R3),
            None => Ok(()),
        }
    }

    /// Checks that the helper and the program may use maps of this type.
    pub(super) fn check_map_fits(&self, call: &Call) -> VerifyResult {
        if call.map.is_none() {
            return Ok(());
        }
        let kind = self.call_map(call)?.1.map_type;
        let Err(mismatch) = kind.passes_to(call.id, self.caller) else {
            return Ok(());
        };
        let lines = match mismatch {
            MapMismatch::Kind => "",
            MapMismatch::SockmapUpdate => "cannot update sockmap in this context",
        };
        Err(Reject::new(Errno::EINVAL, lines).and(format_args!(
            "cannot pass map_type {} into func {}",
            kind.number(),
            Named(call.id)
        )))
    }
}
