//! Half a million events a second are recorded without losses. Skipped, visibly, if the kernel
//! can't be used.
//!
//! `BPFLAB_LIVE_SECONDS` sets for how long (default 0.2); with `--nocapture` the test prints the
//! row of the table in `docs/live.md`:
//!
//! ```text
//! BPFLAB_LIVE_SECONDS=10 cargo test --release --test live_alone rate:: -- --nocapture
//! ```

use crate::shared;
use crate::shared::here;
use crate::work;

use std::fs::File;
use std::path::Path;

use bpflab::Object;
use bpflab::compare::live::{Live, LiveOptions};
use bpflab::kernel::tracefs::Tracefs;

use shared::{Need, skip};

/// Events per second.
const RATE: f64 = 500_000.0;

#[test]
fn none_of_half_a_million_a_second_is_lost() {
    let _alone = crate::alone();
    if here::kernel().is_none() {
        return;
    }
    if let Err(error) = Tracefs::open() {
        skip(Need::Kernel, error);
        return;
    }
    let given = std::env::var("BPFLAB_LIVE_SECONDS").ok();
    let seconds: f64 = given.map_or(0.2, |text| text.parse().expect("a number of seconds"));
    #[expect(clippy::cast_possible_truncation, reason = "there are no more events")]
    #[expect(clippy::cast_sign_loss, reason = "nor fewer than none")]
    let count = (RATE * seconds) as u64;

    let object = Object::open("examples/bpf/write_hist.bpf.o").unwrap();
    let mut live = Live::start(&object, &LiveOptions::default()).unwrap();
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("rate.rec");
    let mut command = work::command(&format!("paced {RATE}"), count);
    let summary = live.run(&mut command, File::create(&path).unwrap());
    std::fs::remove_file(&path).unwrap();
    let summary = summary.unwrap();

    let (recorded, lost) = (summary.recorded(), summary.lost());
    eprintln!(
        "{recorded} events in {:.2?}, {:.0} a second, {lost} lost, {} bytes in the file",
        summary.duration,
        summary.per_second(),
        summary.file_bytes
    );
    assert_eq!(lost, 0);
    // The test that makes the events writes a few bytes of output, too.
    assert!((count..count + 100).contains(&recorded), "{recorded}");
}
