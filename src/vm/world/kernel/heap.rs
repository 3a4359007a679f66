//! Creating objects in kernel memory.

use super::error::KernelError;
use super::types::{Types, name_and_size};
use crate::vm::memory::{Area, Block, BlockType, KernelBlocks, NewBlock};
use std::sync::Arc;

/// Kernel memory and its types. Clones share both.
#[derive(Debug, Clone, Default)]
pub(super) struct Heap {
    pub blocks: KernelBlocks,
    pub types: Types,
}

impl Heap {
    /// Creates a zeroed object of a type, followed by `room` extra bytes.
    pub fn make(&self, area: Area, ty: BlockType, room: usize) -> Result<Arc<Block>, KernelError> {
        let (name, size) = name_and_size(&ty)?;
        let new = NewBlock::bytes(name, size.saturating_add(room), Some(ty));
        Ok(self.blocks.insert(area, new)?)
    }

    /// Creates an object with these bytes and without a type.
    pub fn make_bytes(&self, name: &str, bytes: &[u8]) -> Result<Arc<Block>, KernelError> {
        let new = NewBlock::bytes(name, bytes.len(), None);
        let block = self.blocks.insert(Area::Heap, new)?;
        block.bytes().write(0, bytes);
        Ok(block)
    }

    /// Creates a string with its NUL.
    pub fn make_text(&self, text: &str) -> Result<Arc<Block>, KernelError> {
        let mut bytes = text.as_bytes().to_vec();
        bytes.push(0);
        self.make_bytes(&format!("string {text:?}"), &bytes)
    }
}
