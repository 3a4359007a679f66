//! Helpers of networking programs: packets that change their shape, what the kernel
//! knows of them, routes, sockets, and the hooks of cgroups.

pub(super) mod shape;
pub(super) mod skb;
pub(super) mod state;
pub(super) mod vlan;
