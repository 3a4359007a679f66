//! Perf samples: of which tasks, which events, how many.

use std::process::Command;
use std::time::Duration;

use bpflab::kernel::perf::{EventSource, PerfSamples, SampleOptions, Sampling, Software};
use bpflab::kernel::tracefs::Tracefs;
use bpflab::util::Errno;

use super::rig::{GROUP, NAME, fire, is_there, records, tid};

fn source() -> EventSource {
    EventSource::Tracepoint(Tracefs::open().unwrap().tracepoint_id(GROUP, NAME).unwrap())
}

fn own() -> SampleOptions {
    SampleOptions::default().of_process(std::process::id())
}

/// The second argument of the call.
fn uid(record: &[u8]) -> u64 {
    u64::from_ne_bytes(record[24..32].try_into().unwrap())
}

#[test]
fn a_filter_lets_some_pass() {
    if !is_there() {
        return;
    }
    let options = own().with_filter("user >= 5000 && user < 5003");
    let mut samples = PerfSamples::open(source(), &options).unwrap();
    (4990..5010).for_each(|uid| fire(uid, 1));
    let seen: Vec<u64> = records(&mut samples).iter().map(|it| uid(it)).collect();
    assert_eq!(seen, [5000, 5001, 5002]);
    let options = own().with_filter("no_such_field == 1");
    let error = PerfSamples::open(source(), &options).unwrap_err();
    assert_eq!(error.errno, Errno::EINVAL);
    assert!(error.to_string().contains("no_such_field == 1"), "{error}");
}

#[test]
fn what_finds_no_room_is_counted() {
    if !is_there() {
        return;
    }
    let options = own().with_pages(1);
    let mut samples = PerfSamples::open(source(), &options).unwrap();
    let fired = 1000;
    (0..fired).for_each(|uid| fire(uid, 1));
    samples.disable().unwrap();
    fire(1, 1);
    let mut kept = 0u64;
    samples.drain(|sample| kept += u64::from(sample.tid == tid()));
    let lost = samples.lost();
    assert!(lost > 0 && kept > 0, "{kept} kept, {lost} lost");
    // Other threads of these tests fire it, too.
    assert!(kept + lost >= fired.into(), "{kept} kept, {lost} lost");
    assert!(samples.count() >= fired.into());
    samples.enable().unwrap();
    fire(77, 1);
    let seen = records(&mut samples);
    assert_eq!(seen.iter().map(|it| uid(it)).collect::<Vec<_>>(), [77]);
}

/// Existing threads, later ones, and the processes that they create.
#[test]
fn a_process_is_sampled_with_all_that_it_makes() {
    if !is_there() {
        return;
    }
    let (sender, receiver) = std::sync::mpsc::channel::<()>();
    let early = std::thread::spawn(move || {
        receiver.recv().unwrap();
        fire(6001, 1);
        tid()
    });
    let options = own().with_inherit(true).with_eager(true);
    let mut samples = PerfSamples::open(source(), &options).unwrap();
    sender.send(()).unwrap();
    let early = early.join().unwrap();
    let late = std::thread::spawn(|| {
        fire(6002, 1);
        tid()
    });
    let late = late.join().unwrap();
    // `chown` without a file calls nothing; with a missing file the call fails.
    let chown = Command::new("chown")
        .args(["6003", "/no/such/file"])
        .output();
    assert!(!chown.unwrap().status.success());
    assert!(samples.wait(Some(Duration::from_secs(1))).unwrap());
    let mut seen = Vec::new();
    samples.drain(|sample| seen.push((sample.tid, uid(sample.raw))));
    assert!(seen.contains(&(early, 6001)), "{seen:?}");
    assert!(seen.contains(&(late, 6002)), "{seen:?}");
}

#[test]
fn a_clock_has_samples_without_records() {
    if !is_there() {
        return;
    }
    let options = own().with_sampling(Sampling::Period(1_000_000));
    let clock = EventSource::Software(Software::TaskClock);
    let mut samples = PerfSamples::open(clock, &options).unwrap();
    let mut count = 0;
    let until = std::time::Instant::now() + Duration::from_millis(500);
    while count < 3 && std::time::Instant::now() < until {
        samples.drain(|sample| {
            assert!(sample.raw.is_empty() && sample.time > 0);
            assert_eq!(sample.pid, std::process::id());
            count += 1;
        });
    }
    assert!(count >= 3, "{count} samples");
    let gone = SampleOptions::default().of_process(u32::MAX >> 2);
    let error = PerfSamples::open(clock, &gone).unwrap_err();
    assert_eq!(error.errno, Errno::ESRCH);
    let odd = own().with_pages(3);
    assert_eq!(
        PerfSamples::open(clock, &odd).unwrap_err().errno,
        Errno::EINVAL
    );
}
