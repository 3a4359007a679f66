//! STUB until the room is merged.
#![allow(clippy::all, missing_docs, unused)]
use super::structure::Structure;
use crate::util::Pc;
pub(crate) struct StackLiveness;
pub(crate) struct CallChain;
impl CallChain {
    pub fn new(frames: impl Iterator<Item = (Pc, Option<Pc>)>) -> Self {
        Self
    }
}
impl StackLiveness {
    pub fn new(structure: &Structure) -> Self {
        Self
    }
    pub fn reset_current(&mut self) {}
    pub fn begin(&mut self, chain: impl FnOnce() -> CallChain, pc: Pc) {}
    pub fn read(&mut self, chain: impl FnOnce() -> CallChain, frame: usize, pc: Pc, slots: u64) {}
    pub fn write(&mut self, frame: usize, slots: u64) {}
    pub fn commit(&mut self) {}
    pub fn update(
        &mut self,
        structure: &Structure,
        chain: impl Fn(usize) -> CallChain,
        current_frame: usize,
    ) {
    }
    pub fn query(&mut self, chains: impl Fn(usize) -> CallChain, current_frame: usize, pc: Pc) {}
    pub fn is_alive(&self, frame: usize, slot: usize) -> bool {
        true
    }
}
