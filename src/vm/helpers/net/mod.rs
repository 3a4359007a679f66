//! Helpers of networking programs: packets that change their shape, what the kernel
//! knows of them, routes, sockets, and the hooks of cgroups.

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
