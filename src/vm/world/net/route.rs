//! Routes, for `bpf_fib_lookup`.

use std::net::IpAddr;

use super::address::{self, Prefix};
use super::error::NetError;

/// The main table (`RT_TABLE_MAIN`).
pub const MAIN_TABLE: u32 = 254;

/// The type of a route: what happens to its packets (`RTN_*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RouteKind {
    /// They are forwarded.
    Unicast,
    /// They are delivered locally.
    Local,
    /// They are dropped silently.
    Blackhole,
    /// They are rejected as unreachable.
    Unreachable,
    /// They are rejected as prohibited.
    Prohibit,
}

/// A route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    pub(super) prefix: Prefix,
    pub(super) table: u32,
    pub(super) kind: RouteKind,
    pub(super) device: Option<u32>,
    pub(super) via: Option<IpAddr>,
    pub(super) source: Option<IpAddr>,
    pub(super) metric: u32,
    pub(super) mtu: Option<u32>,
    pub(super) is_encapsulated: bool,
    pub(super) mark: Option<u32>,
}

impl Route {
    pub(super) const fn new(prefix: Prefix) -> Self {
        Self {
            prefix,
            table: MAIN_TABLE,
            kind: RouteKind::Unicast,
            device: None,
            via: None,
            source: None,
            metric: 0,
            mtu: None,
            is_encapsulated: false,
            mark: None,
        }
    }

    /// Sets the gateway, which may be of the other family. Without one, packets go directly to
    /// their destination.
    ///
    /// # Errors
    /// [`NetError::Address`].
    pub fn via(&mut self, gateway: &str) -> Result<&mut Self, NetError> {
        self.via = Some(address::address(gateway)?);
        Ok(self)
    }

    /// Sets the device. The default is the first device that the test added, or the loopback
    /// device.
    pub fn dev(&mut self, index: u32) -> &mut Self {
        self.device = Some(index);
        self
    }

    /// Sets the preferred source address (`BPF_FIB_LOOKUP_SRC`).
    ///
    /// # Errors
    /// [`NetError::Address`].
    pub fn src(&mut self, source: &str) -> Result<&mut Self, NetError> {
        self.source = Some(address::address(source)?);
        Ok(self)
    }

    /// Sets the metric: of routes with the same prefix length, the lowest metric is used.
    pub fn metric(&mut self, metric: u32) -> &mut Self {
        self.metric = metric;
        self
    }

    /// Sets the MTU of the path, if it differs from the device's.
    pub fn mtu(&mut self, mtu: u32) -> &mut Self {
        self.mtu = Some(mtu);
        self
    }

    /// Sets the table; the default is the main one. Only `BPF_FIB_LOOKUP_TBID` finds routes in
    /// other tables, or a rule with a [mark](Self::mark).
    pub fn table(&mut self, table: u32) -> &mut Self {
        self.table = table;
        self
    }

    /// Uses the route only for packets with this mark, as a rule with `fwmark` does
    /// (`BPF_FIB_LOOKUP_MARK`), whatever its table.
    pub fn mark(&mut self, mark: u32) -> &mut Self {
        self.mark = Some(mark);
        self
    }

    /// Sets the type of the route.
    pub fn kind(&mut self, kind: RouteKind) -> &mut Self {
        self.kind = kind;
        self
    }

    /// Marks the route as encapsulating packets (`lwtunnel`). `bpf_fib_lookup` does not
    /// encapsulate.
    pub fn encapsulated(&mut self) -> &mut Self {
        self.is_encapsulated = true;
        self
    }

    /// The type of the route.
    #[must_use]
    pub const fn route_kind(&self) -> RouteKind {
        self.kind
    }

    /// The gateway.
    #[must_use]
    pub const fn gateway(&self) -> Option<IpAddr> {
        self.via
    }

    /// The preferred source address.
    #[must_use]
    pub const fn preferred_source(&self) -> Option<IpAddr> {
        self.source
    }

    /// The metric.
    #[must_use]
    pub const fn priority(&self) -> u32 {
        self.metric
    }

    /// The MTU of the path, if it differs from the device's.
    #[must_use]
    pub const fn path_mtu(&self) -> Option<u32> {
        self.mtu
    }

    /// Whether the route encapsulates packets.
    #[must_use]
    pub const fn is_encapsulated(&self) -> bool {
        self.is_encapsulated
    }
}

/// The parameters of a route look-up.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    /// The destination.
    pub to: IpAddr,
    /// Search only this table, without rules.
    pub table: Option<u32>,
    /// The packet's mark.
    pub mark: u32,
    /// Find only routes out of this device.
    pub device: Option<u32>,
}

impl Wanted {
    /// Whether a route takes part in the look-up.
    fn allows(&self, route: &Route, device: u32) -> bool {
        let by_rule = match route.mark {
            Some(mark) => mark == self.mark,
            None => route.table == MAIN_TABLE,
        };
        let in_table = match self.table {
            Some(table) => route.table == table,
            None => by_rule,
        };
        in_table
            && self.device.is_none_or(|wanted| wanted == device)
            && route.prefix.contains(self.to)
    }
}

/// The best route: rules by mark first, then the longest prefix, then the lowest metric, then
/// the route that was added first.
pub(super) fn best<'r>(
    routes: &'r [Route],
    wanted: &Wanted,
    default_device: u32,
) -> Option<&'r Route> {
    let device = |route: &Route| route.device.unwrap_or(default_device);
    let rank = |route: &Route| {
        let by_rule = wanted.table.is_none() && route.mark.is_some();
        (by_rule, route.prefix.len, u32::MAX - route.metric)
    };
    let allowed = routes
        .iter()
        .filter(|route| wanted.allows(route, device(route)));
    // `max_by_key` returns the last of equals; reversed, that is the first route.
    allowed.rev().max_by_key(|route| rank(route))
}
