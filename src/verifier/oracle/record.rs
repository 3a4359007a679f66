//! Recording of explored states.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::spec::limits::MAX_CALL_FRAMES;
use crate::util::Pc;
use crate::verifier::history::History;
use crate::verifier::state::State;

/// A program point: an instruction, with the chain of calls that led there.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct ProgramPoint {
    /// The first instruction of the function that exploration started with.
    pub root: Pc,
    pub calls: SmallVec<[Pc; MAX_CALL_FRAMES]>,
    pub pc: Pc,
}

/// A function of the program.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Function {
    pub start: Pc,
    /// Whether it is explored on its own.
    pub global: bool,
}

/// The recorded states.
#[derive(Debug, Default)]
pub(crate) struct Recording {
    pub(super) functions: Vec<Function>,
    pub(super) states: FxHashMap<ProgramPoint, Vec<State>>,
    /// Whether exploration was complete.
    pub(super) complete: bool,
}

/// Records explored states, up to a limit.
#[derive(Debug)]
pub(crate) struct Recorder {
    recording: Recording,
    left: u64,
}

impl Recorder {
    pub(crate) fn new(functions: Vec<Function>, limit: u64) -> Self {
        Self {
            recording: Recording {
                functions,
                states: FxHashMap::default(),
                complete: false,
            },
            left: limit,
        }
    }

    /// Records the state before its current instruction; returns whether there was room.
    pub(crate) fn record(&mut self, state: &State) -> bool {
        let Some(left) = self.left.checked_sub(1) else {
            return false;
        };
        self.left = left;
        let root = state.frames.first().map_or(0, |frame| frame.subprogram);
        let root = self.recording.functions.get(root as usize);
        let point = ProgramPoint {
            root: root.map_or(Pc(0), |function| function.start),
            calls: state
                .frames
                .iter()
                .filter_map(|frame| frame.callsite)
                .collect(),
            pc: state.pc,
        };
        let kept = State {
            frames: state.frames.clone(),
            refs: state.refs.clone(),
            history: History::default(),
            ..*state
        };
        self.recording.states.entry(point).or_default().push(kept);
        true
    }

    /// The recorded states; `complete` if exploration was complete.
    pub(crate) fn finish(self, complete: bool) -> Recording {
        Recording {
            complete,
            ..self.recording
        }
    }
}
