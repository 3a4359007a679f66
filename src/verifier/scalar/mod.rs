//! STUB until the room is merged.
#![allow(clippy::all, missing_docs, unused)]
use super::tnum::Tnum;
use crate::isa::{AluOp, EndianOp, EndianSize, JumpOp, SignedSize, Width};
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scalar {
    pub bits: Tnum,
    pub umin: u64,
    pub umax: u64,
    pub smin: i64,
    pub smax: i64,
    pub umin32: u32,
    pub umax32: u32,
    pub smin32: i32,
    pub smax32: i32,
}
impl Scalar {
    pub const UNKNOWN: Self = Self {
        bits: Tnum::UNKNOWN,
        umin: 0,
        umax: u64::MAX,
        smin: i64::MIN,
        smax: i64::MAX,
        umin32: 0,
        umax32: u32::MAX,
        smin32: i32::MIN,
        smax32: i32::MAX,
    };
    pub const ZERO: Self = Self::constant(0);
    pub const fn constant(v: u64) -> Self {
        Self {
            bits: Tnum::constant(v),
            umin: v,
            umax: v,
            smin: v as i64,
            smax: v as i64,
            umin32: v as u32,
            umax32: v as u32,
            smin32: v as i32,
            smax32: v as i32,
        }
    }
    pub const fn is_const(&self) -> bool {
        self.bits.is_const()
    }
    pub const fn value(&self) -> Option<u64> {
        if self.is_const() {
            Some(self.bits.min())
        } else {
            None
        }
    }
    pub const fn is_unknown(&self) -> bool {
        false
    }
    pub fn range(umin: u64, umax: u64) -> Self {
        todo!()
    }
    pub fn contains(&self, v: u64) -> bool {
        todo!()
    }
    pub fn is_subset_of(&self, other: &Self) -> bool {
        todo!()
    }
    pub fn synced(self) -> Self {
        todo!()
    }
    pub fn is_consistent(&self) -> bool {
        todo!()
    }
    pub fn alu(op: AluOp, width: Width, dst: &Self, src: &Self) -> Self {
        todo!()
    }
    pub fn neg(&self, width: Width) -> Self {
        todo!()
    }
    pub fn movsx(&self, width: Width, from: SignedSize) -> Self {
        todo!()
    }
    pub fn endian(op: EndianOp, size: EndianSize, dst: &Self) -> Self {
        todo!()
    }
    pub fn zext32(&self) -> Self {
        todo!()
    }
    pub fn to_size(&self, bytes: u32) -> Self {
        todo!()
    }
    pub fn to_size_signed(&self, bytes: u32) -> Self {
        todo!()
    }
    pub fn is_taken(op: JumpOp, width: Width, dst: &Self, src: &Self) -> Option<bool> {
        todo!()
    }
    pub fn refine(op: JumpOp, width: Width, dst: &Self, src: &Self, taken: bool) -> (Self, Self) {
        todo!()
    }
    pub fn add_const(&self, delta: i64) -> Self {
        todo!()
    }
}
