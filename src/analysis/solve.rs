//! The solver: propagates states along the edges of a graph to the fixed point.

use super::graph::{Graph, NOWHERE};

/// A dataflow analysis.
pub(crate) trait Problem {
    /// An element of the semilattice: the facts between two nodes. "Unreachable" is not an
    /// element: no state arrives at an unreachable block.
    type State: Clone;
    /// The error if there is no solution; [`Infallible`](std::convert::Infallible) if there
    /// always is one.
    type Stop;

    /// `known ⊔= other`, for states that meet at a block; returns whether `known` changed.
    /// It must change finitely often at each loop head: if the lattice has infinite
    /// ascending chains, `join` widens, based on `meeting`.
    fn join(&self, known: &mut Self::State, other: &Self::State, meeting: Meeting) -> bool;

    /// The transfer function: turns the state before a node into the state after it
    /// (backwards: the other way round). Returns whether the new state propagates along the
    /// node's edges. `solver` takes states for other blocks. The last call for a node is
    /// with its final state.
    ///
    /// # Errors
    /// [`Stop`](Self::Stop): the solver stops.
    fn step(
        &mut self,
        solver: &mut Solver<'_, Self::State>,
        state: &mut Self::State,
        node: u32,
    ) -> Result<bool, Self::Stop>;
}

/// A join of states at a block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Meeting {
    /// The block is the target of an edge from itself or a later block.
    pub is_loop_head: bool,
    /// How many states have arrived after the first.
    pub times: u32,
}

/// The states at the blocks of a graph.
#[derive(Debug)]
pub(crate) struct Solver<'g, S> {
    graph: &'g Graph,
    direction: Direction,
    blocks: Vec<Arrived<S>>,
    /// How many blocks are open.
    open: usize,
}

/// The direction of propagation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Forwards,
    Backwards,
}

/// The joined state at a block.
#[derive(Debug, Clone)]
struct Arrived<S> {
    state: Option<S>,
    /// How often it was joined.
    times: u32,
    /// The block must be processed (again).
    is_open: bool,
}

impl<'g, S: Clone> Solver<'g, S> {
    /// States flow from entries to exits; those of blocks are at their starts.
    pub(crate) fn forwards(graph: &'g Graph) -> Self {
        Self::new(graph, Direction::Forwards)
    }

    /// States flow from exits to entries; those of blocks are at their ends.
    pub(crate) fn backwards(graph: &'g Graph) -> Self {
        Self::new(graph, Direction::Backwards)
    }

    fn new(graph: &'g Graph, direction: Direction) -> Self {
        let nothing = Arrived {
            state: None,
            times: 0,
            is_open: false,
        };
        Self {
            graph,
            direction,
            blocks: vec![nothing; graph.blocks().len()],
            open: 0,
        }
    }

    /// A state arrives at the block of a node: at its start (backwards: its end).
    pub(crate) fn arrive<P>(&mut self, problem: &P, node: u32, state: &S)
    where
        P: Problem<State = S>,
    {
        self.arrive_at(problem, self.graph.block_of(node), state);
    }

    /// The same state arrives at each block.
    pub(crate) fn arrive_everywhere<P>(&mut self, problem: &P, state: &S)
    where
        P: Problem<State = S>,
    {
        for (block, _) in (0..).zip(self.graph.blocks()) {
            self.arrive_at(problem, block, state);
        }
    }

    fn arrive_at<P>(&mut self, problem: &P, block: u32, state: &S)
    where
        P: Problem<State = S>,
    {
        let at = block as usize;
        let (Some(arrived), Some(block)) = (self.blocks.get_mut(at), self.graph.blocks().get(at))
        else {
            return;
        };
        let is_new = match &mut arrived.state {
            Some(known) => {
                arrived.times += 1;
                let meeting = Meeting {
                    is_loop_head: block.is_loop_head,
                    times: arrived.times,
                };
                problem.join(known, state, meeting)
            }
            none => {
                *none = Some(state.clone());
                true
            }
        };
        if is_new {
            self.open += usize::from(!arrived.is_open);
            arrived.is_open = true;
        }
    }

    /// Marks the block of a node to be processed again, if it was before: something other
    /// than its state has changed.
    pub(crate) fn step_again(&mut self, node: u32) {
        let block = self.graph.block_of(node) as usize;
        if let Some(arrived) = self.blocks.get_mut(block)
            && arrived.state.is_some()
        {
            self.open += usize::from(!arrived.is_open);
            arrived.is_open = true;
        }
    }

    /// Processes open blocks until there are none, in rounds in the order of the graph
    /// (backwards: in reverse), which most edges follow.
    ///
    /// # Errors
    /// The problem's.
    pub(crate) fn run<P>(&mut self, problem: &mut P) -> Result<(), P::Stop>
    where
        P: Problem<State = S>,
    {
        let predecessors = match self.direction {
            Direction::Forwards => None,
            Direction::Backwards => Some(Predecessors::of(self.graph)),
        };
        let count = self.blocks.len();
        while self.open > 0 {
            for turn in 0..count {
                let at = match self.direction {
                    Direction::Forwards => turn,
                    Direction::Backwards => count - 1 - turn,
                };
                if std::mem::take(&mut self.blocks[at].is_open) {
                    self.open -= 1;
                    self.block(problem, at, predecessors.as_ref())?;
                }
            }
        }
        Ok(())
    }

    /// Processes a block; `predecessors` are given if states flow backwards.
    fn block<P>(
        &mut self,
        problem: &mut P,
        at: usize,
        predecessors: Option<&Predecessors>,
    ) -> Result<(), P::Stop>
    where
        P: Problem<State = S>,
    {
        let block = &self.graph.blocks()[at];
        let Some(mut state) = self.blocks[at].state.clone() else {
            return Ok(());
        };
        match predecessors {
            None => {
                for node in block.nodes() {
                    if !problem.step(self, &mut state, node)? {
                        return Ok(());
                    }
                }
                for to in block.successors() {
                    self.arrive_at(problem, to, &state);
                }
            }
            Some(predecessors) => {
                for node in block.nodes().rev() {
                    if !problem.step(self, &mut state, node)? {
                        return Ok(());
                    }
                }
                for from in predecessors.of_block(at) {
                    self.arrive_at(problem, *from, &state);
                }
            }
        }
        Ok(())
    }

    /// The states of the blocks, by number; `None` for unreachable blocks.
    pub(crate) fn into_states(self) -> Vec<Option<S>> {
        let states = self.blocks.into_iter().map(|arrived| arrived.state);
        states.collect()
    }
}

/// The predecessors of all blocks, block by block.
#[derive(Debug)]
struct Predecessors {
    from: Vec<u32>,
    /// The end of each block's predecessors in `from`.
    ends: Vec<usize>,
}

impl Predecessors {
    fn of(graph: &Graph) -> Self {
        // First the counts, then the begins; each insertion advances a begin, which ends up
        // as the end.
        let mut ends = vec![0; graph.blocks().len()];
        for to in graph.blocks().iter().flat_map(|block| block.successors()) {
            ends[to as usize] += 1;
        }
        let mut begin = 0;
        for end in &mut ends {
            begin += std::mem::replace(end, begin);
        }
        let mut from = vec![NOWHERE; begin];
        for (number, block) in (0u32..).zip(graph.blocks()) {
            for to in block.successors() {
                let end = &mut ends[to as usize];
                from[*end] = number;
                *end += 1;
            }
        }
        Self { from, ends }
    }

    fn of_block(&self, block: usize) -> &[u32] {
        let begin = block.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.from[begin..self.ends[block]]
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use proptest::prelude::*;

    use super::super::graph::tests::{edges, steps};
    use super::*;

    /// The nodes on some path from the start (backwards: to the end of some block).
    struct Passed(Vec<u64>);

    impl Problem for Passed {
        type State = u64;
        type Stop = Infallible;

        fn join(&self, known: &mut u64, other: &u64, _: Meeting) -> bool {
            let before = *known;
            *known |= other;
            *known != before
        }

        fn step(
            &mut self,
            _: &mut Solver<'_, u64>,
            state: &mut u64,
            node: u32,
        ) -> Result<bool, Infallible> {
            *state |= 1 << node;
            self.0[node as usize] = *state;
            Ok(true)
        }
    }

    /// For each node the set of nodes that reach it.
    fn reached_from(graph: &Graph, count: u32) -> Vec<u64> {
        let mut from = vec![0; count as usize];
        for start in 0..count {
            let mut open = vec![start];
            while let Some(at) = open.pop() {
                if from[at as usize] >> start & 1 == 0 {
                    from[at as usize] |= 1 << start;
                    open.extend(graph.successors(at));
                }
            }
        }
        from
    }

    proptest! {
        #[test]
        fn states_flow_along_all_edges(steps in steps()) {
            let edges = edges(&steps);
            let count = u32::try_from(edges.len()).unwrap();
            let graph = Graph::new(edges, [0]);
            let from = reached_from(&graph, count);

            let mut passed = Passed(vec![0; count as usize]);
            let mut solver = Solver::forwards(&graph);
            solver.arrive(&passed, 0, &0);
            let Ok(()) = solver.run(&mut passed);
            for node in 0..count as usize {
                // On a path from 0: reached by 0, and reaching the node.
                let on_path = (0..count).filter(|other| {
                    from[*other as usize] & 1 != 0 && from[node] >> other & 1 != 0
                });
                let expected = on_path.fold(0, |set: u64, other| set | 1 << other);
                prop_assert_eq!(passed.0[node], if from[node] & 1 == 0 { 0 } else { expected });
            }

            let mut passed = Passed(vec![0; count as usize]);
            let mut solver = Solver::backwards(&graph);
            solver.arrive_everywhere(&passed, &0);
            let Ok(()) = solver.run(&mut passed);
            for node in 0..count {
                let reached = (0..count).filter(|other| from[*other as usize] >> node & 1 != 0);
                let expected = reached.fold(0, |set: u64, other| set | 1 << other);
                prop_assert_eq!(passed.0[node as usize], expected);
            }
        }
    }

    /// An interval that grows by one each round, widened at the head of the loop.
    struct Counter(u32);

    impl Problem for Counter {
        type State = u32;
        type Stop = u32;

        fn join(&self, known: &mut u32, other: &u32, meeting: Meeting) -> bool {
            if other <= known {
                return false;
            }
            let widens = meeting.is_loop_head && meeting.times > self.0;
            *known = if widens { u32::MAX } else { *other };
            true
        }

        fn step(
            &mut self,
            _: &mut Solver<'_, u32>,
            state: &mut u32,
            node: u32,
        ) -> Result<bool, u32> {
            if *state == 1000 {
                return Err(node);
            }
            *state = state.saturating_add(1);
            Ok(true)
        }
    }

    #[test]
    fn a_loop_is_widened_or_given_up() {
        // 0 falls into 1, which loops to itself and goes on to 2.
        let graph = Graph::new(edges(&[(true, None), (true, Some(0)), (false, None)]), [0]);
        let solve = |widen_after| {
            let mut solver = Solver::forwards(&graph);
            let mut counter = Counter(widen_after);
            solver.arrive(&counter, 0, &0);
            let end = solver.run(&mut counter);
            end.map(|()| solver.into_states())
        };
        assert_eq!(solve(3), Ok(vec![Some(0), Some(u32::MAX), Some(u32::MAX)]));
        // 2 is stepped through after 1, with one more.
        assert_eq!(solve(5000), Err(2));
    }
}
