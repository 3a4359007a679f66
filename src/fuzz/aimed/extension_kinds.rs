//! The program types whose functions extensions replace.

use super::super::random::Random;
use crate::spec::helpers::id;
use crate::spec::{AttachType, ProgType};
use crate::util::HelperId;

/// A program type whose functions are replaced.
pub(super) struct Target {
    pub prog_type: ProgType,
    pub attach_type: Option<AttachType>,
    /// The structure of its context.
    pub context: &'static str,
    /// Fields of four bytes that are numbers.
    pub fields: &'static [i16],
    /// The fields with the packet's start and end.
    pub packet: Option<(i16, i16)>,
    /// The bits of its result.
    pub mask: i32,
    /// Helpers that change the packet, with the least and the most of their number.
    pub changes: &'static [(HelperId, i32, i32)],
}

const SKB: &[i16] = &[0, 8, 16, 32, 48, 52, 56];

static ALL: [(u64, Target); 4] = [
    (
        4,
        Target {
            prog_type: ProgType::SchedCls,
            attach_type: None,
            context: "__sk_buff",
            fields: SKB,
            packet: Some((76, 80)),
            mask: -1,
            changes: &[
                (id::skb_pull_data, 0, 64),
                (id::skb_change_tail, 20, 200),
                (id::skb_change_head, 0, 32),
            ],
        },
    ),
    (
        4,
        Target {
            prog_type: ProgType::Xdp,
            attach_type: None,
            context: "xdp_md",
            fields: &[16],
            packet: Some((0, 4)),
            mask: 3,
            changes: &[
                (id::xdp_adjust_head, -16, 32),
                (id::xdp_adjust_tail, -16, 32),
            ],
        },
    ),
    (
        2,
        Target {
            prog_type: ProgType::SocketFilter,
            attach_type: None,
            context: "__sk_buff",
            fields: SKB,
            packet: None,
            mask: -1,
            changes: &[],
        },
    ),
    (
        1,
        Target {
            prog_type: ProgType::CgroupSkb,
            attach_type: Some(AttachType::CgroupInetIngress),
            context: "__sk_buff",
            fields: SKB,
            packet: None,
            mask: 1,
            changes: &[],
        },
    ),
];

impl Target {
    /// A random one.
    pub fn random(random: &mut Random) -> &'static Self {
        let found = random.weighted(&ALL, |(weight, _)| *weight);
        &found.unwrap_or(&ALL[0]).1
    }
}
