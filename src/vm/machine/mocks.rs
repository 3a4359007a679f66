//! Mocking helpers and kfuncs.

use std::sync::{Arc, Mutex};

use super::Mock;
use super::state::Machine;
use crate::util::HelperId;

impl Machine {
    /// Mocks a helper on this CPU and on CPUs that are [forked](Self::fork) later.
    pub fn mock_helper(&mut self, helper: HelperId, body: Mock) {
        self.shared
            .mocks
            .helpers
            .insert(helper, Arc::new(Mutex::new(body)));
    }

    /// Mocks a kfunc, like [`mock_helper`](Self::mock_helper).
    pub fn mock_kfunc(&mut self, name: &str, body: Mock) {
        let body = Arc::new(Mutex::new(body));
        self.shared.mocks.kfuncs.insert(name.into(), body);
    }

    /// Whether any helper or kfunc is mocked.
    #[must_use]
    pub fn has_mocks(&self) -> bool {
        let mocks = &self.shared.mocks;
        !mocks.helpers.is_empty() || !mocks.kfuncs.is_empty()
    }

    /// Whether this helper is mocked.
    #[must_use]
    pub fn is_mocked(&self, helper: HelperId) -> bool {
        self.shared.mocks.helpers.contains_key(&helper)
    }

    /// Whether this kfunc is mocked.
    #[must_use]
    pub fn is_mocked_kfunc(&self, name: &str) -> bool {
        self.shared.mocks.kfuncs.contains_key(name)
    }
}
