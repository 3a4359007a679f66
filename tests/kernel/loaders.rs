//! Loaders with fewer capabilities: the shared corpus's programs, judged by bpflab and by the
//! running kernel for the same loader. Every thirtieth program; every tenth with
//! `BPFLAB_ALL_CASES=1`, all with `BPFLAB_WHOLE_CORPUS=1`.
//!
//! The kernel refuses a loader without `CAP_BPF` unless a sysctl is 0, so ordinary users are
//! compared in virtual machines (`tests/cli/guest.rs`).

use bpflab::spec::Capabilities;
use bpflab::verifier::verify;

use super::verdicts::{options, parts, theirs};
use crate::shared::{corpus, here, sample};

#[test]
fn the_kernel_gives_loaders_the_same_verdicts() {
    if here::judge().is_none() {
        return;
    }
    let Some(path) = corpus() else { return };
    let step = match std::env::var_os("BPFLAB_WHOLE_CORPUS") {
        Some(_) => 1,
        None if sample::all() => 10,
        None => 30,
    };
    let cases = corpus::read(&path, |_, _| true);
    let [bpf, perfmon, net_admin] = [
        Capabilities::BPF,
        Capabilities::PERFMON,
        Capabilities::NET_ADMIN,
    ];
    let loaders = [
        bpf,
        bpf | net_admin,
        bpf | perfmon,
        bpf | perfmon | net_admin,
        Capabilities::SYS_ADMIN,
    ];
    for loader in loaders {
        let options = options(loader);
        let (mut compared, mut accepted) = (0, 0);
        for case in cases.iter().step_by(step) {
            let Ok(theirs) = theirs(&case.program, loader) else {
                continue;
            };
            let ours = verify(&case.program, &options).verdict;
            assert_eq!(parts(&ours), parts(&theirs), "{} as {loader}", case.id);
            compared += 1;
            accepted += usize::from(ours.is_accepted());
        }
        eprintln!("{loader}: {compared} compared, {accepted} accepted");
        let margin = sample::cases(10);
        assert!(compared > cases.len() / step - 5, "{loader}: {compared}");
        assert!(
            (margin..compared - margin).contains(&accepted),
            "{loader}: {accepted}"
        );
    }
}
