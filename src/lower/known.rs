//! Helpers whose result is constant during a run: the clock stands still, and neither the
//! CPU nor the task changes.

use super::lowered::Lowered;
use crate::spec::helpers::id;
use crate::util::HelperId;
use crate::vm::World;

/// The number of such helpers.
pub const KNOWN: usize = HELPERS.len();

/// The results of these helpers in a run, by [`Op::Known`](super::Op::Known)'s `which`.
pub type KnownValues = [u64; KNOWN];

/// `which` of `bpf_get_smp_processor_id`, which look-ups in per-CPU maps need, too.
pub const CPU: u8 = 0;

/// A helper and the function that computes its result.
type Known = (HelperId, fn(&mut World) -> u64);

/// The helpers, by `which`.
const HELPERS: [Known; 9] = [
    (id::get_smp_processor_id, |world| world.cpu().into()),
    (id::get_numa_node_id, |world| world.numa_node().into()),
    (id::ktime_get_ns, |world| world.clock().monotonic_ns()),
    (id::ktime_get_boot_ns, |world| world.clock().boot_ns()),
    (id::ktime_get_coarse_ns, |world| world.clock().coarse_ns()),
    (id::ktime_get_tai_ns, |world| world.clock().tai_ns()),
    (id::jiffies64, |world| world.clock().jiffies()),
    (id::get_current_pid_tgid, |world| world.task().pid_tgid()),
    (id::get_current_uid_gid, |world| world.task().uid_gid()),
];

/// `which` of a helper with a constant result; none for others.
pub(super) fn which(helper: HelperId) -> Option<u8> {
    let at = HELPERS.iter().position(|(known, _)| *known == helper)?;
    u8::try_from(at).ok()
}

impl Lowered {
    /// Which of [`KnownValues`] the program uses.
    #[must_use]
    pub fn known(&self) -> &[u8] {
        &self.known
    }

    /// Reads the values that the program uses from the world; the others stay. To be done
    /// before a run starts, and when a tail call enters the program.
    pub fn read_known(&self, world: &mut World, values: &mut KnownValues) {
        for &which in &self.known {
            let at = usize::from(which);
            if let (Some((_, read)), Some(value)) = (HELPERS.get(at), values.get_mut(at)) {
                *value = read(world);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vm::helpers::{Call, Callbacks, body};
    use crate::vm::{Fault, Machine};

    struct NoCallbacks;

    impl Callbacks for NoCallbacks {
        fn call_back(&mut self, _: &mut Machine, _: u64, _: [u64; 5]) -> Result<u64, Box<Fault>> {
            panic!("none of them calls back");
        }
    }

    /// The values must equal what the helpers return.
    #[test]
    fn they_are_what_the_helpers_return() {
        let mut machine = Machine::new(World::default());
        machine.world.set_cpu(2);
        machine.world.set_numa_node(1);
        for (helper, read) in HELPERS {
            let expected = read(&mut machine.world);
            let mut call = Call {
                machine: &mut machine,
                args: [0; 5],
                engine: &mut NoCallbacks,
            };
            let body = body(helper).unwrap();
            assert_eq!(body(&mut call), Ok(expected), "{helper:?}");
        }
        assert_eq!(which(id::get_smp_processor_id), Some(CPU));
        assert_eq!(which(id::get_prandom_u32), None);
    }
}
