//! Helpers of networking programs: packet size and headers, kernel data of packets, routes,
//! sockets, cgroup hooks.

pub(super) mod cast;
pub(super) mod cgroup;
pub(super) mod fib;
pub(super) mod forward;
pub(super) mod lwt;
pub(super) mod seg6;
pub(super) mod shape;
pub(super) mod sk_msg;
mod skb;
pub(super) mod sock_ops;
pub(super) mod socket;
pub(super) mod sockopt;
pub(super) mod state;
pub(super) mod syncookie;
pub(super) mod tunnel;
pub(super) mod vlan;

#[cfg(test)]
mod tests;
