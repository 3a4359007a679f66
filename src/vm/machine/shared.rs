//! What the CPUs of a machine share.

use std::sync::{Arc, Mutex};

use rustc_hash::FxHashMap;

use super::Mock;
use super::deferred::Deferred;
use super::loaded::LoadedMap;
use super::names::Names;
use super::objects::Objects;
use super::sockets::SocketViews;
use crate::util::HelperId;
use crate::vm::maps::{Map, MapHandle};

/// What the CPUs of a machine share. Each has its own copy, so that no access needs a lock or
/// a pointer: while several CPUs are in use, nothing can be added to it but mocks.
#[derive(Clone, Default)]
pub(in crate::vm) struct Shared {
    pub(super) maps: Vec<LoadedMap>,
    /// For each region of the address space, the map whose own address it is.
    pub(super) by_region: Vec<Option<MapHandle>>,
    pub(in crate::vm) mocks: Mocks,
    /// Deferred callbacks (timers, work queues).
    pub(in crate::vm) deferred: Arc<Deferred>,
    /// Objects that programs allocated.
    pub(in crate::vm) objects: Objects,
    /// The structures of sockets.
    pub(super) sockets: SocketViews,
    /// The names that outcomes accept.
    pub(super) names: Arc<Names>,
}

impl Shared {
    /// A map by its handle.
    pub(in crate::vm) fn map(&self, map: MapHandle) -> Option<&Arc<dyn Map>> {
        self.maps.get(map.index()).map(|loaded| &loaded.map)
    }
}

/// Helpers and kfuncs that a test mocked. A lock allows one call of a mock at a time.
#[derive(Clone, Default)]
pub(in crate::vm) struct Mocks {
    pub(in crate::vm) helpers: FxHashMap<HelperId, Arc<Mutex<Mock>>>,
    /// By name.
    pub(in crate::vm) kfuncs: FxHashMap<Arc<str>, Arc<Mutex<Mock>>>,
}
