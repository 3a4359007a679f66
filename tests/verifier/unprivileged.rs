//! Verdicts for loaders without all capabilities.
//!
//! The authors of the shared corpus's programs wrote down what happens if an ordinary user loads
//! them. They did so for Linux 6.12, which rejects a program for an error on a speculative path.
//! Since 6.17 the kernel puts a barrier there instead: such a program counts as `barrier`, if our
//! log has the error that the author expects. Two programs are accepted since 6.17 for another
//! reason (`false_accepts`): the verifier computes the range of a negation. `cargo test --test verifier unprivileged --
//! --nocapture` prints the figures and what differs; `BPFLAB_CASE=TEXT` picks cases by id.

use std::env;
use std::sync::Arc;

use bpflab::program::Program;
use bpflab::spec::Capabilities;
use bpflab::verifier::{Decision, LogLevel, Options, Verdict, verify};

use crate::shared;
use crate::shared::corpus::{self, Judged};

/// The figures of the corpus.
#[derive(Debug, Default, PartialEq, Eq)]
struct Figures {
    /// Annotated programs.
    cases: usize,
    /// Programs with the annotated verdict.
    verdict: usize,
    /// Programs that 6.12 rejects for an error that is a barrier here.
    barrier: usize,
    /// Of all these, programs with a log that has the annotated messages.
    messages: usize,
    /// Programs that only we accept.
    false_accepts: usize,
}

/// What was reached.
const REACHED: Figures = Figures {
    cases: 447,
    verdict: 433,
    barrier: 12,
    messages: 441,
    false_accepts: 2,
};

fn verdict(program: &Arc<Program>, capabilities: Capabilities) -> Verdict {
    let options = Options::default()
        .with_log(LogLevel::ALL)
        .with_capabilities(capabilities);
    verify(program, &options).verdict
}

/// Whether the log has these texts, in this order. The words for unwritten stack have changed
/// since.
fn has_in_order(log: &str, texts: &[String]) -> bool {
    let mut rest = log;
    texts.iter().all(|text| {
        let text = text.replace("invalid indirect read", "invalid read");
        match rest.split_once(&text) {
            Some((_, after)) => {
                rest = after;
                true
            }
            None => false,
        }
    })
}

impl Figures {
    /// Adds a case; returns what differs.
    fn add(&mut self, case: &Judged) -> Option<String> {
        let expected = case.unprivileged.as_ref()?;
        let verdict = verdict(&case.program, Capabilities::empty());
        let accepted = verdict.decision == Decision::Accept;
        let has_messages = has_in_order(&verdict.log, &expected.messages);
        let equal = accepted == expected.accepted && verdict.decision != Decision::Unjudged;
        let barrier = accepted && !expected.accepted && has_messages;
        self.cases += 1;
        self.verdict += usize::from(equal);
        self.barrier += usize::from(barrier);
        self.messages += usize::from((equal || barrier) && has_messages);
        self.false_accepts += usize::from(accepted && !expected.accepted && !barrier);
        let differs = !equal && !barrier || !has_messages;
        differs.then(|| {
            format!(
                "{}: expected {} {:?}, is {:?} {}",
                case.id,
                if expected.accepted {
                    "accept"
                } else {
                    "reject"
                },
                expected.messages,
                verdict.decision,
                verdict.message
            )
        })
    }
}

#[test]
fn annotated_programs_of_the_corpus() {
    let Some(path) = shared::corpus() else { return };
    let picked = env::var("BPFLAB_CASE").unwrap_or_default();
    let cases = corpus::read(&path, |id, _| id.contains(&picked));
    let mut figures = Figures::default();
    for case in &cases {
        if let Some(difference) = figures.add(case) {
            eprintln!("{difference}");
        }
    }
    eprintln!("{figures:?}");
    if picked.is_empty() {
        assert_eq!(figures, REACHED);
    }
}

/// The capabilities of a loader decide what it may load, before the program is looked at.
#[test]
fn types_and_maps_that_a_loader_may_load() {
    use bpflab::isa::assemble;
    use bpflab::program::MapDef;
    use bpflab::spec::{MapType, ProgType};

    let plain = |prog_type| Program::new("f", prog_type, assemble("r0 = 0\nexit").unwrap());
    let errno = |program: Program, capabilities| {
        let errno = verdict(&Arc::new(program), capabilities).errno;
        errno.map_or("none".to_owned(), |errno| errno.to_string())
    };
    let (none, bpf) = (Capabilities::empty(), Capabilities::BPF);
    assert_eq!(errno(plain(ProgType::SocketFilter), none), "none");
    assert_eq!(errno(plain(ProgType::CgroupSkb), none), "none");
    for (prog_type, missing, enough) in [
        (ProgType::SkReuseport, none, bpf),
        (ProgType::Xdp, bpf, bpf | Capabilities::NET_ADMIN),
        (ProgType::Tracepoint, bpf, bpf | Capabilities::PERFMON),
        (
            ProgType::Xdp,
            Capabilities::NET_ADMIN,
            Capabilities::SYS_ADMIN,
        ),
    ] {
        assert!(
            errno(plain(prog_type), missing).contains("EPERM"),
            "{prog_type}"
        );
        assert_eq!(errno(plain(prog_type), enough), "none", "{prog_type}");
    }
    let with_map = |map_type| {
        let text = "r1 = map[idx:0]\nr0 = 0\nexit";
        let mut program = Program::new("f", ProgType::SocketFilter, assemble(text).unwrap());
        program.maps = [MapDef::new("map", map_type, 4, 8, 4)].into();
        program
    };
    assert_eq!(errno(with_map(MapType::Hash), none), "none");
    assert!(errno(with_map(MapType::LruHash), none).contains("EPERM"));
    let mut unused = plain(ProgType::SocketFilter);
    unused.maps = with_map(MapType::LruHash).maps;
    assert_eq!(errno(unused, none), "none");

    let long = |count: usize| {
        let text = "r0 = 0\n".repeat(count - 1) + "exit";
        Program::new("f", ProgType::SocketFilter, assemble(&text).unwrap())
    };
    assert_eq!(errno(long(4096), none), "none");
    assert!(errno(long(4097), none).contains("E2BIG"));
    assert_eq!(errno(long(4097), bpf), "none");
}

/// A token counts for what it permits; for the rest the loader is an ordinary user.
#[test]
fn tokens_delegate_types() {
    use bpflab::isa::assemble_with;
    use bpflab::program::MapDef;
    use bpflab::spec::{MapType, ProgType, Token};

    let program = |prog_type, map_type| {
        let map = MapDef::new("m", map_type, 4, 8, 4);
        let mut program = Program::new("p", prog_type, Vec::new());
        program.maps = vec![map].into();
        program.insns = assemble_with("r1 = map[idx:0]\nr0 = 0\nexit", &program)
            .unwrap()
            .slots;
        Arc::new(program)
    };
    let accepts = |prog_type, map_type, token: &str| {
        let options = Options::default().with_token(token.parse::<Token>().unwrap());
        let verdict = verify(&program(prog_type, map_type), &options).verdict;
        assert_eq!(verdict.message, "", "{token}");
        verdict.is_accepted()
    };
    let xdp = "delegate_cmds=any,delegate_progs=xdp,delegate_attachs=0x1";
    // An array is for everyone, an LRU hash needs CAP_BPF.
    assert!(accepts(ProgType::Xdp, MapType::Array, xdp));
    assert!(!accepts(ProgType::Xdp, MapType::LruHash, xdp));
    let both = format!("{xdp},delegate_maps=lru_hash");
    assert!(accepts(ProgType::Xdp, MapType::LruHash, &both));
    assert!(!accepts(ProgType::SchedCls, MapType::Array, &both));
    let no_load = both.replace("cmds=any", "cmds=map_create");
    assert!(!accepts(ProgType::Xdp, MapType::Array, &no_load));
    let no_attach_type = both.replace("attachs=0x1", "attachs=xdp");
    assert!(!accepts(ProgType::Xdp, MapType::Array, &no_attach_type));
}
