//! Loaders with a BPF token: our programs, judged by bpflab and by the running kernel. What a token
//! does not permit, kernels refuse unless a sysctl is 0, as it is in virtual machines.

use std::fs::read_to_string;

use bpflab::Object;
use bpflab::kernel::Loader;
use bpflab::spec::{Capabilities, Token};
use bpflab::verifier::verify;

use super::objects::{mistakes, objects};
use super::verdicts::{options, parts, theirs};
use crate::shared::here;
use crate::shared::{Need, skip};

const TOKENS: [&str; 5] = [
    "delegate_cmds=any,delegate_maps=any,delegate_progs=any,delegate_attachs=any",
    "delegate_cmds=map_create:prog_load,delegate_maps=any,delegate_progs=any,delegate_attachs=any",
    "delegate_cmds=prog_load:btf_load,delegate_progs=any,delegate_attachs=any",
    "delegate_cmds=any,delegate_maps=hash:array,delegate_progs=socket_filter:xdp:kprobe:tracepoint,\
     delegate_attachs=any",
    "delegate_cmds=any,delegate_maps=any,delegate_progs=any,\
     delegate_attachs=cgroup_inet_ingress:trace_raw_tp",
];

#[test]
fn the_kernel_gives_tokens_the_same_verdicts() {
    if here::judge().is_none() {
        return;
    }
    let sysctl = read_to_string("/proc/sys/kernel/unprivileged_bpf_disabled").unwrap_or_default();
    if sysctl.trim() != "0" {
        return skip(
            Need::Feature,
            "the sysctl kernel.unprivileged_bpf_disabled is not 0",
        );
    }
    let objects = objects().into_iter().chain(mistakes());
    let objects = objects.filter_map(|path| Object::open(path).ok());
    let programs = objects.flat_map(|object| {
        let programs: Vec<_> = object.programs().filter_map(Result::ok).collect();
        programs
    });
    // Kernels of one release differ a little; what they do for root is compared elsewhere.
    let full = options(Capabilities::all());
    let programs: Vec<_> = programs
        .map(std::sync::Arc::new)
        .filter(|program| {
            let theirs = theirs(program, Capabilities::all());
            theirs.is_ok_and(|theirs| parts(&theirs) == parts(&verify(program, &full).verdict))
        })
        .collect();
    assert!(programs.len() > 200, "{}", programs.len());
    for token in TOKENS {
        let token: Token = token.parse().expect("a token");
        let loader = Loader::with_token(&token).expect("a kernel with tokens");
        let options = options(Capabilities::all()).with_token(token);
        let (mut compared, mut accepted) = (0, 0);
        for program in &programs {
            let Ok(theirs) = theirs(program, loader.clone()) else {
                continue;
            };
            let ours = verify(program, &options).verdict;
            let name = &program.name;
            assert_eq!(parts(&ours), parts(&theirs), "{name} with {token}");
            compared += 1;
            accepted += usize::from(ours.is_accepted());
        }
        eprintln!("{token}: {compared} compared, {accepted} accepted");
        assert!(compared > programs.len() * 9 / 10, "{token}: {compared}");
        assert!((20..compared).contains(&accepted), "{token}: {accepted}");
    }
}

#[test]
fn a_token_that_permits_nothing_is_refused_in_words() {
    if here::judge().is_none() {
        return;
    }
    let error = Loader::with_token(&Token::default()).expect_err("no token");
    assert!(
        error.to_string().contains("the token permits nothing"),
        "{error}"
    );
}
