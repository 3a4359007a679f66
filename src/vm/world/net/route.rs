//! Routes: what `bpf_fib_lookup` finds.

use std::net::IpAddr;

use super::address::{self, Prefix};
use super::error::NetError;

/// The main table (`RT_TABLE_MAIN`).
pub const MAIN_TABLE: u32 = 254;

/// What becomes of packets that take a route (`RTN_*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RouteKind {
    /// They are sent on.
    Unicast,
    /// They are for this machine.
    Local,
    /// They vanish.
    Blackhole,
    /// Their sender is told that there is no way.
    Unreachable,
    /// Their sender is told that it is forbidden.
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

    /// Sends packets by this gateway, which may be of the other family; without one
    /// they go to their destination directly.
    ///
    /// # Errors
    /// [`NetError::Address`].
    pub fn via(&mut self, gateway: &str) -> Result<&mut Self, NetError> {
        self.via = Some(address::address(gateway)?);
        Ok(self)
    }

    /// Sends packets out of this device. Without one it is the first device that a test
    /// made, or the loopback device.
    pub fn dev(&mut self, index: u32) -> &mut Self {
        self.device = Some(index);
        self
    }

    /// Prefers this source address (`BPF_FIB_LOOKUP_SRC`).
    ///
    /// # Errors
    /// [`NetError::Address`].
    pub fn src(&mut self, source: &str) -> Result<&mut Self, NetError> {
        self.source = Some(address::address(source)?);
        Ok(self)
    }

    /// Sets its metric: of routes with prefixes of one length the lowest counts.
    pub fn metric(&mut self, metric: u32) -> &mut Self {
        self.metric = metric;
        self
    }

    /// Sets the MTU of the path, where it is not the device's.
    pub fn mtu(&mut self, mtu: u32) -> &mut Self {
        self.mtu = Some(mtu);
        self
    }

    /// Puts it into another table than the main one (`BPF_FIB_LOOKUP_TBID`; a rule
    /// without a mark never leads there).
    pub fn table(&mut self, table: u32) -> &mut Self {
        self.table = table;
        self
    }

    /// Takes it only for packets with this mark, as a rule `fwmark` does
    /// (`BPF_FIB_LOOKUP_MARK`), whatever its table.
    pub fn mark(&mut self, mark: u32) -> &mut Self {
        self.mark = Some(mark);
        self
    }

    /// Says what becomes of the packets.
    pub fn kind(&mut self, kind: RouteKind) -> &mut Self {
        self.kind = kind;
        self
    }

    /// Marks it as one that encapsulates packets (`lwtunnel`), which the helper does not
    /// do.
    pub fn encapsulated(&mut self) -> &mut Self {
        self.is_encapsulated = true;
        self
    }

    /// What becomes of the packets.
    #[must_use]
    pub const fn route_kind(&self) -> RouteKind {
        self.kind
    }

    /// The gateway.
    #[must_use]
    pub const fn gateway(&self) -> Option<IpAddr> {
        self.via
    }

    /// The source address that it prefers.
    #[must_use]
    pub const fn preferred_source(&self) -> Option<IpAddr> {
        self.source
    }

    /// The metric.
    #[must_use]
    pub const fn priority(&self) -> u32 {
        self.metric
    }

    /// The MTU of the path, where it is not the device's.
    #[must_use]
    pub const fn path_mtu(&self) -> Option<u32> {
        self.mtu
    }

    /// Whether it encapsulates packets.
    #[must_use]
    pub const fn is_encapsulated(&self) -> bool {
        self.is_encapsulated
    }
}

/// What is asked of the routes.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    /// The destination.
    pub to: IpAddr,
    /// Only this table, and no rules.
    pub table: Option<u32>,
    /// The packet's mark.
    pub mark: u32,
    /// Only routes out of this device.
    pub device: Option<u32>,
}

impl Wanted {
    /// Whether a route is one of those that are looked at.
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

/// The best of some routes: rules by mark go first, then the longest prefix counts, then
/// the lowest metric, then which was there first.
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
    // The last of equals is taken: the first one is wanted.
    allowed.rev().max_by_key(|route| rank(route))
}
