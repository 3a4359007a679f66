//! Mutants: the small changes that cargo-mutants lists, all of them in one build.
//!
//! cargo-mutants builds the crate once for each mutant, which takes minutes. Here each one is
//! an expression behind a test of its number, next to the original: `a + b` becomes
//! `(if active(7) { a - b } else { a + b })`. The operands stay what they were: where
//! cargo-mutants changes a token, and with it which operator binds first, only the operator
//! changes here.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::ops::Range;
use std::path::Path;

use proc_macro2::{LineColumn, Span};
use serde::Deserialize;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use crate::fault::{Applied, Fault, Seeds, at};

/// What kind of change a mutant is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
enum Genre {
    /// A function returns a constant.
    FnValue,
    BinaryOperator,
    /// An operator is left out.
    UnaryOperator,
    MatchArmGuard,
    /// An arm is left out; there is one for everything else.
    MatchArm,
    /// A field is left out; there is a base that has it.
    StructField,
}

/// A place: line and column, both from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
struct Place {
    line: usize,
    column: usize,
}

impl From<LineColumn> for Place {
    fn from(place: LineColumn) -> Self {
        Self {
            line: place.line,
            column: place.column + 1,
        }
    }
}

#[derive(Debug, Clone, Deserialize)]
struct Extent {
    start: Place,
}

/// A mutant, as `cargo mutants --list --json` prints it.
#[derive(Debug, Clone, Deserialize)]
struct Mutant {
    name: String,
    file: String,
    genre: Genre,
    replacement: String,
    span: Extent,
}

/// The mutants of a list.
#[derive(Debug)]
pub struct Mutants {
    all: Vec<Fault>,
    listed: Vec<Mutant>,
    left_out: BTreeSet<u32>,
}

impl Mutants {
    /// Reads the list that `cargo mutants --list --json` printed.
    pub fn read(path: &Path) -> Result<Self, Box<dyn Error>> {
        let text = std::fs::read_to_string(path).map_err(|why| at(path, &why))?;
        let listed = serde_json::from_str(&text).map_err(|why| at(path, &why))?;
        Ok(Self::new(listed))
    }

    fn new(listed: Vec<Mutant>) -> Self {
        let all = listed.iter().map(|mutant| Fault {
            id: mutant.name.clone(),
            file: mutant.file.clone(),
            // The name begins with the place.
            what: mutant.name.split_once(": ").map_or("", |it| it.1).into(),
            cite: None,
        });
        Self {
            all: all.collect(),
            listed,
            left_out: BTreeSet::new(),
        }
    }
}

impl Seeds for Mutants {
    fn all(&self) -> &[Fault] {
        &self.all
    }

    fn left_out(&self) -> &BTreeSet<u32> {
        &self.left_out
    }

    fn leave_out(&mut self, number: u32) -> Result<(), String> {
        self.left_out.insert(number);
        Ok(())
    }

    fn applied(&mut self, file: &str, text: &str) -> Result<Applied, String> {
        let parsed = syn::parse_file(text).map_err(|why| format!("{file}: {why}"))?;
        let mut edits = Edits::new(text);
        for (number, mutant) in (1..).zip(&self.listed) {
            if mutant.file == file && !self.left_out.contains(&number) {
                let there = edits.left.entry(mutant.span.start).or_default();
                there.push((number, mutant));
            }
        }
        edits.visit_file(&parsed);
        if let Some((_, mutant)) = edits.left.values().flatten().next() {
            return Err(format!(
                "{}: its place was not found: is the list older than {file}?",
                mutant.name
            ));
        }
        let refused = std::mem::take(&mut edits.refused);
        let applied = edits.applied();
        self.left_out.extend(refused);
        Ok(applied)
    }
}

/// Whether an expression is `let … = … && …`, which `||` can't be in.
fn is_let_chain(node: &syn::Expr) -> bool {
    match node {
        syn::Expr::Let(_) => true,
        syn::Expr::Binary(node) => is_let_chain(&node.left) || is_let_chain(&node.right),
        _ => false,
    }
}

/// What is put in.
#[derive(Debug)]
enum Insertion {
    Text(&'static str),
    /// A fault's form of the expression that follows.
    Choice(u32, String),
    /// A test that a fault is there, or is not, as part of something else.
    Test(u32, String),
}

/// The changes of one file.
struct Edits<'a> {
    text: &'a str,
    /// The mutants that are not placed yet, by where they begin.
    left: BTreeMap<Place, Vec<(u32, &'a Mutant)>>,
    /// In the order in which they are met: an outer expression opens before an inner one.
    insertions: Vec<(usize, Insertion)>,
    /// Those that can't be written as a choice at run time.
    refused: Vec<u32>,
    /// Whether what is visited is computed at compile time.
    in_constant: bool,
}

impl<'a> Edits<'a> {
    const fn new(text: &'a str) -> Self {
        Self {
            text,
            left: BTreeMap::new(),
            insertions: Vec::new(),
            refused: Vec::new(),
            in_constant: false,
        }
    }

    /// Takes the mutants of these kinds that begin there.
    fn take(&mut self, span: Span, genres: &[Genre]) -> Vec<(u32, &'a Mutant)> {
        let place = Place::from(span.start());
        let Some(there) = self.left.get_mut(&place) else {
            return Vec::new();
        };
        let taken: Vec<_> = there
            .extract_if(.., |(_, mutant)| genres.contains(&mutant.genre))
            .collect();
        if there.is_empty() {
            self.left.remove(&place);
        }
        taken
    }

    /// Visits what is computed at compile time.
    fn constant(&mut self, visit: impl FnOnce(&mut Self)) {
        let outer = std::mem::replace(&mut self.in_constant, true);
        visit(self);
        self.in_constant = outer;
    }

    fn insert(&mut self, at: usize, what: Insertion) {
        self.insertions.push((at, what));
    }

    /// Opens a choice between changed expressions and the one at `range`.
    fn open(&mut self, range: &Range<usize>, changed: &[(u32, String)]) {
        if changed.is_empty() {
            return;
        }
        self.insert(range.start, Insertion::Text("("));
        for (number, text) in changed {
            self.insert(range.start, Insertion::Choice(*number, text.clone()));
        }
        self.insert(range.start, Insertion::Text("{ "));
    }

    fn close(&mut self, range: &Range<usize>, changed: &[(u32, String)]) {
        if !changed.is_empty() {
            self.insert(range.end, Insertion::Text(" })"));
        }
    }

    /// The changed forms of an expression.
    fn changed(&mut self, node: &syn::Expr) -> Vec<(u32, String)> {
        let range = node.span().byte_range();
        match node {
            syn::Expr::Binary(binary) => {
                let op = binary.op.span();
                let (before, after) = (
                    range.start..op.byte_range().start,
                    op.byte_range().end..range.end,
                );
                let taken = self.take(op, &[Genre::BinaryOperator]);
                if is_let_chain(node) {
                    self.refused.extend(taken.iter().map(|(number, _)| *number));
                    return Vec::new();
                }
                let text = self.text;
                let with =
                    |new: &str| format!("{}{new}{}", &text[before.clone()], &text[after.clone()]);
                let changed = taken.into_iter();
                changed
                    .map(|(number, it)| (number, with(&it.replacement)))
                    .collect()
            }
            syn::Expr::Unary(unary) => {
                let operand = &self.text[unary.expr.span().byte_range()];
                let taken = self.take(unary.op.span(), &[Genre::UnaryOperator]);
                taken
                    .into_iter()
                    .map(|(number, _)| (number, operand.to_owned()))
                    .collect()
            }
            syn::Expr::Struct(whole) => {
                let mut changed = Vec::new();
                for pair in whole.fields.pairs() {
                    let field = pair.span().byte_range();
                    for (number, _) in self.take(pair.value().span(), &[Genre::StructField]) {
                        let (before, after) = (range.start..field.start, field.end..range.end);
                        let text = format!("{}{}", &self.text[before], &self.text[after]);
                        changed.push((number, text));
                    }
                }
                changed
            }
            _ => Vec::new(),
        }
    }

    /// The text with all changes.
    fn applied(mut self) -> Applied {
        // At one place, what is met first comes first: what an expression opens precedes what
        // its first operand opens. What they close comes in the order of the ends, inner ones
        // first, which is also the order in which it is met.
        self.insertions.sort_by_key(|(at, _)| *at);
        let mut applied = Applied::default();
        let mut from = 0;
        for (at, what) in self.insertions {
            applied.text.push_str(&self.text[from..at]);
            from = at;
            match what {
                Insertion::Text(text) => applied.text.push_str(text),
                Insertion::Choice(number, text) => applied.choice(number, &text),
                Insertion::Test(number, text) => {
                    let start = applied.text.len();
                    applied.text.push_str(&text);
                    applied.added.push((start..applied.text.len(), number));
                }
            }
        }
        applied.text.push_str(&self.text[from..]);
        applied
    }
}

impl<'ast> Visit<'ast> for Edits<'_> {
    fn visit_item_const(&mut self, node: &'ast syn::ItemConst) {
        self.constant(|edits| visit::visit_item_const(edits, node));
    }

    fn visit_impl_item_const(&mut self, node: &'ast syn::ImplItemConst) {
        self.constant(|edits| visit::visit_impl_item_const(edits, node));
    }

    fn visit_trait_item_const(&mut self, node: &'ast syn::TraitItemConst) {
        self.constant(|edits| visit::visit_trait_item_const(edits, node));
    }

    fn visit_expr(&mut self, node: &'ast syn::Expr) {
        let range = node.span().byte_range();
        let mut changed = self.changed(node);
        if self.in_constant {
            self.refused
                .extend(changed.drain(..).map(|(number, _)| number));
        }
        self.open(&range, &changed);
        visit::visit_expr(self, node);
        self.close(&range, &changed);
    }

    fn visit_block(&mut self, node: &'ast syn::Block) {
        // A function's value: the place is that of its first statement.
        if let Some(first) = node.stmts.first() {
            let start = first.span().byte_range().start;
            for (number, mutant) in self.take(first.span(), &[Genre::FnValue]) {
                let text = format!(
                    "if crate::fault::active({number}) {{ return {}; }} ",
                    mutant.replacement
                );
                self.insert(start, Insertion::Test(number, text));
            }
        }
        visit::visit_block(self, node);
    }

    fn visit_arm(&mut self, node: &'ast syn::Arm) {
        let deleted = self.take(node.span(), &[Genre::MatchArm]);
        let test = |(number, _): &(u32, _)| format!("!crate::fault::active({number})");
        if let syn::Pat::Guard(guarded) = &node.pat {
            let guard = &guarded.guard;
            let range = guard.span().byte_range();
            if let Some(mutant) = deleted.first() {
                let text = format!("{} && ", test(mutant));
                self.insert(range.start, Insertion::Test(mutant.0, text));
                self.insert(range.start, Insertion::Text("("));
            }
            let changed = self.take(guard.span(), &[Genre::MatchArmGuard]).into_iter();
            let changed: Vec<_> = changed
                .map(|(number, mutant)| (number, mutant.replacement.clone()))
                .collect();
            self.open(&range, &changed);
            self.visit_expr(guard);
            self.close(&range, &changed);
            if !deleted.is_empty() {
                self.insert(range.end, Insertion::Text(")"));
            }
        } else if let Some(mutant) = deleted.first() {
            let end = node.pat.span().byte_range().end;
            let text = format!(" if {}", test(mutant));
            self.insert(end, Insertion::Test(mutant.0, text));
        }
        self.visit_expr(&node.body);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A mutant that begins where `at` does in the text.
    fn mutant(text: &str, at: &str, genre: Genre, replacement: &str) -> Mutant {
        let before = &text[..text.find(at).unwrap()];
        let column = before.rsplit('\n').next().unwrap().chars().count() + 1;
        Mutant {
            name: format!("f:1: {at}"),
            file: "f".into(),
            genre,
            replacement: replacement.into(),
            span: Extent {
                start: Place {
                    line: before.matches('\n').count() + 1,
                    column,
                },
            },
        }
    }

    /// The text with the mutants, which are applied, and what is left out.
    fn applied(text: &str, mutants: Vec<Mutant>) -> (String, Vec<u32>) {
        let mut mutants = Mutants::new(mutants);
        let applied = mutants.applied("f", text).unwrap();
        syn::parse_file(&applied.text).unwrap();
        for (range, number) in &applied.added {
            assert!(applied.text[range.clone()].contains(&format!("active({number})")));
        }
        let left_out = mutants.left_out().iter().copied().collect();
        (applied.text.replace("crate::fault::", ""), left_out)
    }

    #[test]
    fn operators_nest() {
        let text = "fn f() -> bool { é(!a && b + c) }";
        let mutants = vec![
            mutant(text, "&&", Genre::BinaryOperator, "||"),
            mutant(text, "+", Genre::BinaryOperator, "-"),
            mutant(text, "+", Genre::BinaryOperator, "*"),
            mutant(text, "!", Genre::UnaryOperator, ""),
        ];
        let expected = "fn f() -> bool { é((if active(1) { !a || b + c } else \
            { (if active(4) { a } else { !a }) && \
            (if active(2) { b - c } else if active(3) { b * c } else { b + c }) })) }";
        assert_eq!(applied(text, mutants), (expected.into(), vec![]));
    }

    #[test]
    fn functions_arms_and_fields() {
        let text = "fn f() -> S {\n    match a {\n        1 | 2 => b,\n        x if x || y => c,\n        \
                    _ => S { d: 1, e, ..S::NONE },\n    }\n}";
        let mutants = vec![
            mutant(text, "match", Genre::FnValue, "S::new()"),
            mutant(text, "1 | 2", Genre::MatchArm, ""),
            mutant(text, "x if", Genre::MatchArm, ""),
            mutant(text, "x || y", Genre::MatchArmGuard, "true"),
            mutant(text, "d: 1", Genre::StructField, ""),
        ];
        let expected = "fn f() -> S {\n    if active(1) { return S::new(); } match a {\n        \
            1 | 2 if !active(2) => b,\n        \
            x if !active(3) && ((if active(4) { true } else { x || y })) => c,\n        \
            _ => (if active(5) { S {  e, ..S::NONE } } else { S { d: 1, e, ..S::NONE } }),\n    }\n}";
        assert_eq!(applied(text, mutants), (expected.into(), vec![]));
    }

    #[test]
    fn what_can_be_no_choice_is_left_out() {
        let text = "const A: u8 = 1 + 2; fn f() { if let Some(x) = y && x {} }";
        let mutants = vec![
            mutant(text, "+", Genre::BinaryOperator, "-"),
            mutant(text, "&&", Genre::BinaryOperator, "||"),
        ];
        assert_eq!(applied(text, mutants), (text.into(), vec![1, 2]));
    }

    #[test]
    fn a_place_that_is_gone_is_an_error() {
        let gone = mutant("fn f() { a + b }", "+", Genre::BinaryOperator, "-");
        let error = Mutants::new(vec![gone])
            .applied("f", "fn f() {}")
            .unwrap_err();
        assert!(error.contains("is the list older than f?"), "{error}");
    }
}
