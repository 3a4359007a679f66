//! Red-black trees in the machine's memory, with the kernel's layout and balancing
//! (`lib/rbtree.c`): programs can see the shape.
//!
//! ```text
//! struct rb_root_cached { rb_node, rb_leftmost }
//! struct rb_node { parent | colour, right, left }     colour: bit 0, set for black
//! ```

use super::super::fault::HelperProblem;
use super::super::state::Machine;
use super::words::{broken, load, store};

type Word = Result<u64, HelperProblem>;
type Done = Result<(), HelperProblem>;

/// Left or right.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::vm) enum Side {
    Left,
    Right,
}

impl Side {
    const fn other(self) -> Self {
        match self {
            Self::Left => Self::Right,
            Self::Right => Self::Left,
        }
    }

    /// Offset of the child on this side in a node.
    const fn offset(self) -> u64 {
        match self {
            Self::Right => 8,
            Self::Left => 16,
        }
    }
}

const BLACK: u64 = 1;
const LEFTMOST: u64 = 8;
/// An upper bound for the depth of a tree.
const MAX_DEPTH: usize = 64;

/// A tree, given by its root. Null is a black node without children.
#[derive(Clone, Copy)]
pub(in crate::vm) struct Tree<'m> {
    pub machine: &'m Machine,
    pub root: u64,
}

impl Tree<'_> {
    /// The root node.
    pub fn top(self) -> Word {
        load(self.machine, self.root)
    }

    /// The leftmost node.
    pub fn first(self) -> Word {
        load(self.machine, self.root.wrapping_add(LEFTMOST))
    }

    /// A node's child.
    pub fn child(self, node: u64, side: Side) -> Word {
        load(self.machine, node.wrapping_add(side.offset()))
    }

    fn set_child(self, node: u64, side: Side, child: u64) -> Done {
        store(self.machine, node.wrapping_add(side.offset()), child)
    }

    fn parent(self, node: u64) -> Word {
        Ok(load(self.machine, node)? & !3)
    }

    fn is_black(self, node: u64) -> Result<bool, HelperProblem> {
        Ok(node == 0 || load(self.machine, node)? & BLACK == BLACK)
    }

    fn set(self, node: u64, parent: u64, black: bool) -> Done {
        store(self.machine, node, parent | if black { BLACK } else { 0 })
    }

    fn set_parent(self, node: u64, parent: u64) -> Done {
        if node == 0 {
            return Ok(());
        }
        let black = self.is_black(node)?;
        self.set(node, parent, black)
    }

    fn paint(self, node: u64, black: bool) -> Done {
        if node == 0 {
            return Ok(());
        }
        let parent = self.parent(node)?;
        self.set(node, parent, black)
    }

    fn side_of(self, parent: u64, node: u64) -> Result<Side, HelperProblem> {
        Ok(if self.child(parent, Side::Left)? == node {
            Side::Left
        } else {
            Side::Right
        })
    }

    /// Replaces child `old` of `parent` by `new`, which may be null.
    fn replace(self, parent: u64, old: u64, new: u64) -> Done {
        if parent == 0 {
            store(self.machine, self.root, new)?;
        } else {
            let side = self.side_of(parent, old)?;
            self.set_child(parent, side, new)?;
        }
        self.set_parent(new, parent)
    }

    /// Rotates a node to a side; its child on the other side moves up.
    fn rotate(self, node: u64, side: Side) -> Done {
        let up = self.child(node, side.other())?;
        if up == 0 {
            return Err(broken("a node has no child where it must have one"));
        }
        let inner = self.child(up, side)?;
        let parent = self.parent(node)?;
        self.replace(parent, node, up)?;
        self.set_child(up, side, node)?;
        self.set_parent(node, up)?;
        self.set_child(node, side.other(), inner)?;
        self.set_parent(inner, node)
    }

    /// Inserts a node as the child of `parent` on a side, and rebalances. `leftmost` says
    /// whether it is the first node.
    pub fn link(self, node: u64, parent: u64, side: Side, leftmost: bool) -> Done {
        self.set(node, parent, false)?;
        self.set_child(node, Side::Left, 0)?;
        self.set_child(node, Side::Right, 0)?;
        if parent == 0 {
            store(self.machine, self.root, node)?;
        } else {
            self.set_child(parent, side, node)?;
        }
        if leftmost {
            store(self.machine, self.root.wrapping_add(LEFTMOST), node)?;
        }
        self.balance_inserted(node)
    }

    fn balance_inserted(self, node: u64) -> Done {
        let mut node = node;
        for _ in 0..MAX_DEPTH {
            let parent = self.parent(node)?;
            if parent == 0 {
                return self.paint(node, true);
            }
            if self.is_black(parent)? {
                return Ok(());
            }
            let grandparent = self.parent(parent)?;
            let side = self.side_of(grandparent, parent)?;
            let uncle = self.child(grandparent, side.other())?;
            if !self.is_black(uncle)? {
                self.paint(uncle, true)?;
                self.paint(parent, true)?;
                self.paint(grandparent, false)?;
                node = grandparent;
                continue;
            }
            let mut upper = parent;
            if self.child(parent, side.other())? == node {
                self.rotate(parent, side)?;
                upper = node;
            }
            self.paint(upper, true)?;
            self.paint(grandparent, false)?;
            return self.rotate(grandparent, side.other());
        }
        Err(broken("it is too deep"))
    }

    /// Removes a node.
    pub fn erase(self, node: u64) -> Done {
        if self.first()? == node {
            let next = self.successor(node)?;
            store(self.machine, self.root.wrapping_add(LEFTMOST), next)?;
        }
        let (left, right) = (
            self.child(node, Side::Left)?,
            self.child(node, Side::Right)?,
        );
        let parent = self.parent(node)?;
        let black = self.is_black(node)?;
        if left == 0 || right == 0 {
            let child = left | right;
            let side = self.side_below(parent, node)?;
            self.replace(parent, node, child)?;
            return self.balance_erased(black, child, parent, side);
        }
        // The successor has no left child and replaces this node.
        let next = self.leftmost(right)?;
        let was_black = self.is_black(next)?;
        let child = self.child(next, Side::Right)?;
        let (hole, side) = if next == right {
            (next, Side::Right)
        } else {
            let above = self.parent(next)?;
            self.replace(above, next, child)?;
            self.set_child(next, Side::Right, right)?;
            self.set_parent(right, next)?;
            (above, Side::Left)
        };
        self.replace(parent, node, next)?;
        self.set_child(next, Side::Left, left)?;
        self.set_parent(left, next)?;
        self.paint(next, black)?;
        self.balance_erased(was_black, child, hole, side)
    }

    fn side_below(self, parent: u64, node: u64) -> Result<Side, HelperProblem> {
        if parent == 0 {
            return Ok(Side::Left);
        }
        self.side_of(parent, node)
    }

    /// Rebalances after a node was removed below `parent`; `child` is in its position,
    /// `black` was its colour.
    fn balance_erased(self, black: bool, child: u64, parent: u64, side: Side) -> Done {
        if !black {
            return Ok(());
        }
        let (mut node, mut parent, mut side) = (child, parent, side);
        for _ in 0..MAX_DEPTH {
            if !self.is_black(node)? {
                return self.paint(node, true);
            }
            if parent == 0 {
                return Ok(());
            }
            let mut sibling = self.child(parent, side.other())?;
            if !self.is_black(sibling)? {
                self.paint(sibling, true)?;
                self.paint(parent, false)?;
                self.rotate(parent, side)?;
                sibling = self.child(parent, side.other())?;
            }
            if sibling == 0 {
                return Err(broken("its sides are not equally deep"));
            }
            let mut outer = self.child(sibling, side.other())?;
            let inner = self.child(sibling, side)?;
            if self.is_black(outer)? && self.is_black(inner)? {
                self.paint(sibling, false)?;
                node = parent;
                parent = self.parent(node)?;
                side = self.side_below(parent, node)?;
                continue;
            }
            if self.is_black(outer)? {
                self.paint(inner, true)?;
                self.paint(sibling, false)?;
                self.rotate(sibling, side.other())?;
                outer = sibling;
                sibling = inner;
            }
            let parent_black = self.is_black(parent)?;
            self.paint(sibling, parent_black)?;
            self.paint(parent, true)?;
            self.paint(outer, true)?;
            return self.rotate(parent, side);
        }
        Err(broken("it is too deep"))
    }

    /// The first node of a subtree.
    fn leftmost(self, node: u64) -> Word {
        let mut node = node;
        for _ in 0..MAX_DEPTH {
            match self.child(node, Side::Left)? {
                0 => return Ok(node),
                left => node = left,
            }
        }
        Err(broken("it is too deep"))
    }

    /// The next node in order.
    fn successor(self, node: u64) -> Word {
        let right = self.child(node, Side::Right)?;
        if right != 0 {
            return self.leftmost(right);
        }
        let mut node = node;
        for _ in 0..MAX_DEPTH {
            let parent = self.parent(node)?;
            if parent == 0 || self.side_of(parent, node)? == Side::Left {
                return Ok(parent);
            }
            node = parent;
        }
        Err(broken("it is too deep"))
    }

    /// All nodes in order; the tree is unchanged.
    pub fn nodes(self, most: usize) -> Result<Vec<u64>, HelperProblem> {
        let mut found = Vec::new();
        let mut node = self.top()?;
        if node != 0 {
            node = self.leftmost(node)?;
        }
        while node != 0 {
            if found.len() >= most {
                return Err(broken("it does not end"));
            }
            found.push(node);
            node = self.successor(node)?;
        }
        Ok(found)
    }

    /// Whether a depth exceeds that of any valid tree.
    pub const fn is_too_deep(depth: usize) -> bool {
        depth >= MAX_DEPTH
    }
}
