//! Recording the states of a walk.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::spec::limits::MAX_CALL_FRAMES;
use crate::util::Pc;
use crate::verifier::state::State;

/// Where a walk is: at an instruction, by these calls from where it began.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Place {
    /// The first instruction of the function where the walk began.
    pub root: Pc,
    pub calls: SmallVec<[Pc; MAX_CALL_FRAMES]>,
    pub pc: Pc,
}

/// A function of the program.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Function {
    pub start: Pc,
    /// Whether it is walked on its own.
    pub global: bool,
}

/// What was recorded.
#[derive(Debug, Default)]
pub(crate) struct Recording {
    pub functions: Vec<Function>,
    pub(super) states: FxHashMap<Place, Vec<State>>,
    /// Whether the walk came to its end.
    pub complete: bool,
}

/// Records a walk, up to a number of states.
#[derive(Debug)]
pub(crate) struct Recorder {
    pub recording: Recording,
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

    /// The walk is in this state before the instruction at its place; whether there is
    /// room for it.
    pub(crate) fn record(&mut self, state: &State) -> bool {
        let Some(left) = self.left.checked_sub(1) else {
            return false;
        };
        self.left = left;
        let root = state.frames.first().map_or(0, |frame| frame.subprogram);
        let root = self.recording.functions.get(root as usize);
        let place = Place {
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
            history: Vec::new(),
            ..*state
        };
        self.recording.states.entry(place).or_default().push(kept);
        true
    }
}
