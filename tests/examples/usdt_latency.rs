//! `usdt_latency`: requests of a server by its own markers.

use std::time::Duration;

use bpflab::{Result, Vm};
use zerocopy::FromBytes;

use crate::engines::on_every_engine;

/// `struct event` of the C.
#[derive(Debug, Clone, Copy, PartialEq, FromBytes)]
#[repr(C)]
struct Failure {
    id: u64,
    us: u64,
    status: i32,
    path: [u8; 64],
    unused: [u8; 4],
}

impl Failure {
    fn path(&self) -> &str {
        let end = self.path.iter().position(|byte| *byte == 0).expect("a NUL");
        std::str::from_utf8(&self.path[..end]).expect("text")
    }
}

fn start(vm: &mut Vm, id: u64, path: u64) -> Result<()> {
    vm.fire(vm.usdt("server:request__start")?.args([id, path])?)?;
    Ok(())
}

/// A request is done, after some time; the failure that this gave.
fn done(vm: &mut Vm, after: u64, id: u64, status: u64) -> Result<Option<Failure>> {
    vm.world().clock().advance(Duration::from_micros(after));
    let outcome = vm.fire(vm.usdt("server:request__done")?.args([id, status])?)?;
    assert_eq!(outcome.runs.len(), 1);
    let failure = outcome.records("failures").next();
    Ok(failure.map(|bytes| Failure::read_from_bytes(bytes).expect("a record's size")))
}

/// The slots that counted something.
fn hist(vm: &Vm) -> Result<Vec<(u32, u64)>> {
    let slots = vm.map("hist")?.entries::<u32, u64>()?.into_iter();
    Ok(slots.filter(|(_, count)| *count > 0).collect())
}

#[test]
fn a_request_takes_from_start_to_done() {
    on_every_engine("usdt_latency", |vm| {
        vm.attach_all()?;
        let path = vm.world().user_cstr("/index.html");
        start(vm, 1, path)?;
        assert_eq!(done(vm, 900, 1, 200)?, None);
        assert_eq!(hist(vm)?, [(9, 1)]);
        assert!(vm.map("requests")?.entries_bytes()?.is_empty());
        Ok(())
    });
}

/// The path is read when the request starts: the server's memory may be gone when it
/// fails.
#[test]
fn a_failure_says_which_request_it_was() {
    on_every_engine("usdt_latency", |vm| {
        vm.attach_all()?;
        let path = vm.world().user_cstr("/no/such/page");
        start(vm, 7, path)?;
        let moved = vm.world().user().map(path, b"another one\0");
        assert!(moved);
        let failure = done(vm, 1500, 7, 404)?.expect("a failure");
        assert_eq!((failure.id, failure.us, failure.status), (7, 1500, 404));
        assert_eq!(failure.path(), "/no/such/page");
        assert_eq!(hist(vm)?, [(10, 1)]);
        Ok(())
    });
}

/// Another thread, on another CPU, finishes what the first one began, and in another
/// order.
#[test]
fn requests_are_known_by_their_id() {
    on_every_engine("usdt_latency", |vm| {
        vm.attach_all()?;
        let path = vm.world().user_cstr("/");
        vm.world().task().set_pid(100).set_tid(101);
        start(vm, 1, path)?;
        start(vm, 2, path)?;
        vm.world().set_cpu(2).task().set_tid(102);
        done(vm, 4, 2, 200)?;
        done(vm, 4, 1, 200)?;
        done(vm, 4, 3, 200)?; // nobody saw it start
        assert_eq!(hist(vm)?, [(2, 1), (3, 1)]);
        Ok(())
    });
}

/// A path that can't be read, or is too long.
#[test]
fn a_path_need_not_be_there() {
    on_every_engine("usdt_latency", |vm| {
        vm.attach_all()?;
        for (path, kept) in [(0, 0), (0xdead_0000, 0)] {
            start(vm, 1, path)?;
            let failure = done(vm, 1, 1, 500)?.expect("a failure");
            assert_eq!(failure.path().len(), kept);
        }
        let long = vm.world().user_cstr(&"x".repeat(200));
        start(vm, 1, long)?;
        assert_eq!(done(vm, 1, 1, 500)?.expect("a failure").path().len(), 63);
        Ok(())
    });
}

/// `status` is an int: what stands above its 32 bits is not part of it.
#[test]
fn a_status_is_an_int() {
    on_every_engine("usdt_latency", |vm| {
        vm.attach_all()?;
        for (status, fails) in [(399, false), (400, true), (1 << 32 | 200, false)] {
            start(vm, 1, 0)?;
            assert_eq!(done(vm, 1, 1, status)?.is_some(), fails, "{status}");
        }
        Ok(())
    });
}
