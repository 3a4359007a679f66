//! What a Rust source file imports, read from its text: enough of a lexer to skip
//! comments, strings and test code, and every path that names something elsewhere.
//! No expansion of macros: a path inside a macro's body counts where it is written.

use std::collections::BTreeSet;

/// A path as the file has it, its use tree flattened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path {
    /// `crate`, `self`, `super`, a child module or a crate; then the names, the last
    /// of which may be `*`.
    pub segments: Vec<String>,
    /// The name behind `as`, or the last segment.
    pub name: String,
    /// Whether it stands in a `pub use`: a signpost, which needs nothing itself.
    pub reexport: bool,
    /// The inline modules (`mod a { … }`) around it, outermost first.
    pub scope: Vec<String>,
    /// Counted from 1.
    pub line: usize,
}

/// A file's text, as far as imports go.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Source {
    pub paths: Vec<Path>,
    /// `mod name;` and `mod name { … }` at the file's top level.
    pub children: BTreeSet<String>,
    /// `#[cfg(test)] mod name;`: files that only tests have.
    pub test_children: BTreeSet<String>,
    /// Names that the file itself defines at any depth.
    pub defined: BTreeSet<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Word(String),
    /// `::`
    Colons,
    Mark(char),
}

type Tokens = Vec<(Token, usize)>;

/// Splits text into words and marks; comments, strings, characters and numbers vanish.
fn lex(text: &str) -> Tokens {
    let chars: Vec<char> = text.chars().collect();
    let mut tokens = Tokens::new();
    let (mut at, mut line) = (0, 1);
    let peek = |at: usize| chars.get(at).copied().unwrap_or('\0');
    while at < chars.len() {
        let begin = at;
        let c = chars[at];
        if c == '/' && peek(at + 1) == '/' {
            while at < chars.len() && chars[at] != '\n' {
                at += 1;
            }
        } else if c == '/' && peek(at + 1) == '*' {
            let mut depth = 0;
            while at < chars.len() {
                match (chars[at], peek(at + 1)) {
                    ('/', '*') => (depth, at) = (depth + 1, at + 2),
                    ('*', '/') => (depth, at) = (depth - 1, at + 2),
                    _ => at += 1,
                }
                if depth == 0 {
                    break;
                }
            }
        } else if let Some(end) = string_end(&chars, at) {
            at = end;
        } else if c == 'r' && peek(at + 1) == '#' {
            // A raw identifier: its name follows.
            at += 2;
        } else if c.is_alphabetic() || c == '_' {
            while peek(at).is_alphanumeric() || peek(at) == '_' {
                at += 1;
            }
            tokens.push((Token::Word(chars[begin..at].iter().collect()), line));
        } else if c.is_ascii_digit() {
            while peek(at).is_alphanumeric() || peek(at) == '_' {
                at += 1;
            }
        } else if c == ':' && peek(at + 1) == ':' {
            tokens.push((Token::Colons, line));
            at += 2;
        } else {
            if !c.is_whitespace() {
                tokens.push((Token::Mark(c), line));
            }
            at += 1;
        }
        line += chars[begin..at].iter().filter(|&&c| c == '\n').count();
    }
    tokens
}

/// Where the string or character that begins at `at` ends; `None` when none does.
fn string_end(chars: &[char], at: usize) -> Option<usize> {
    let peek = |at: usize| chars.get(at).copied().unwrap_or('\0');
    let mut open = at;
    let mut raw = false;
    while matches!(peek(open), 'b' | 'c' | 'r') && open < at + 2 {
        raw |= peek(open) == 'r';
        open += 1;
    }
    let mut hashes = 0;
    while raw && peek(open + hashes) == '#' {
        hashes += 1;
    }
    let mut end = open + hashes;
    match peek(end) {
        '"' => loop {
            end += 1;
            match peek(end) {
                '\\' if !raw => end += 1,
                '"' if (1..=hashes).all(|n| peek(end + n) == '#') => return Some(end + hashes + 1),
                _ if end >= chars.len() => return Some(end),
                _ => {}
            }
        },
        // 'a' is a character, 'a a lifetime.
        '\'' if !raw && peek(end + 1) == '\\' => {
            end += 3;
            while end < chars.len() && peek(end) != '\'' {
                end += 1;
            }
            Some(end + 1)
        }
        '\'' if !raw && peek(end + 2) == '\'' => Some(end + 3),
        _ => None,
    }
}

/// The position behind the bracket that closes the one at `at`, or the end.
fn behind_group(tokens: &[(Token, usize)], mut at: usize) -> usize {
    let mut depth = 0usize;
    while let Some((token, _)) = tokens.get(at) {
        match token {
            Token::Mark('(' | '[' | '{') => depth += 1,
            Token::Mark(')' | ']' | '}') => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
        if depth == 0 {
            break;
        }
    }
    at
}

/// The position behind the item at `at`: behind its `;` or its braces.
fn behind_item(tokens: &[(Token, usize)], mut at: usize) -> usize {
    while let Some((token, _)) = tokens.get(at) {
        match token {
            Token::Mark(';') => return at + 1,
            Token::Mark('{') => return behind_group(tokens, at),
            Token::Mark('(' | '[') => at = behind_group(tokens, at),
            _ => at += 1,
        }
    }
    at
}

fn is(tokens: &[(Token, usize)], at: usize, mark: char) -> bool {
    matches!(tokens.get(at), Some((Token::Mark(c), _)) if *c == mark)
}

fn word(tokens: &[(Token, usize)], at: usize) -> Option<&str> {
    match tokens.get(at) {
        Some((Token::Word(word), _)) => Some(word),
        _ => None,
    }
}

/// Whether the attribute between `at` (its `#`) and `end` is a `cfg` that only tests
/// meet: `test` is named, and not under a `not`.
fn is_test_only(attribute: &[(Token, usize)]) -> bool {
    let has = |name: &str| (0..attribute.len()).any(|at| word(attribute, at) == Some(name));
    word(attribute, 2) == Some("cfg") && has("test") && !has("not") && !has("any")
}

/// Takes the items under `#[cfg(test)]` out, and notes the test modules' names.
fn without_tests(tokens: Tokens, test_children: &mut BTreeSet<String>) -> Tokens {
    let mut kept = Tokens::new();
    let mut at = 0;
    while at < tokens.len() {
        if is(&tokens, at, '#') && is(&tokens, at + 1, '[') {
            let end = behind_group(&tokens, at + 1);
            if is_test_only(&tokens[at..end]) {
                let mut item = end;
                while is(&tokens, item, '#') {
                    item = behind_group(&tokens, item + 1);
                }
                let behind = behind_item(&tokens, item);
                if let Some(name) = (item..behind)
                    .find(|&at| word(&tokens, at) == Some("mod"))
                    .and_then(|at| word(&tokens, at + 1))
                {
                    test_children.insert(name.to_owned());
                }
                at = behind;
                continue;
            }
            // Other attributes hold no imports (`#[doc(inline)]`, `#[derive(…)]`).
            at = end;
            continue;
        }
        kept.push(tokens[at].clone());
        at += 1;
    }
    kept
}

/// Reads one use tree or path from `at`; appends what it names; returns the position
/// behind it.
fn tree(
    tokens: &[(Token, usize)],
    mut at: usize,
    prefix: &[String],
    found: &mut Vec<(Vec<String>, String, usize)>,
) -> usize {
    let mut segments = prefix.to_vec();
    let line = tokens.get(at).map_or(0, |t| t.1);
    loop {
        if let Some(name) = word(tokens, at) {
            segments.push(name.to_owned());
            at += 1;
        } else if is(tokens, at, '*') {
            segments.push("*".to_owned());
            at += 1;
            break;
        } else if is(tokens, at, '{') {
            let end = behind_group(tokens, at);
            at += 1;
            while at + 1 < end {
                let next = tree(tokens, at, &segments, found);
                // A comma, or whatever was not understood.
                at = next.max(at + 1);
                if is(tokens, next, ',') {
                    at = next + 1;
                }
            }
            return end;
        } else {
            break;
        }
        if tokens.get(at).map(|t| &t.0) != Some(&Token::Colons) {
            break;
        }
        at += 1;
    }
    let mut name = segments.last().cloned().unwrap_or_default();
    // `use a::b as c`; in an expression `a::b as u32` names no module either.
    if word(tokens, at) == Some("as")
        && let Some(alias) = word(tokens, at + 1)
    {
        name = alias.to_owned();
        at += 2;
    }
    // `{self}` names the module itself.
    if segments.len() > 1 && segments.last().is_some_and(|s| s == "self") {
        segments.pop();
        if name == "self" {
            name = segments.last().cloned().unwrap_or_default();
        }
    }
    found.push((segments, name, line));
    at
}

/// Reads a file's text.
pub fn parse(text: &str) -> Source {
    let mut source = Source::default();
    let tokens = without_tests(lex(text), &mut source.test_children);
    let mut scopes: Vec<(String, usize)> = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        while scopes.last().is_some_and(|scope| at >= scope.1) {
            scopes.pop();
        }
        let Some(name) = word(&tokens, at) else {
            at += 1;
            continue;
        };
        match name {
            "mod" => {
                if let Some(child) = word(&tokens, at + 1) {
                    if scopes.is_empty() {
                        source.children.insert(child.to_owned());
                    }
                    if is(&tokens, at + 2, '{') {
                        scopes.push((child.to_owned(), behind_group(&tokens, at + 2)));
                    }
                }
                at += 2;
                continue;
            }
            "struct" | "enum" | "union" | "trait" | "type" | "fn" | "const" | "static"
            | "macro_rules" => {
                let named = at + 1 + usize::from(is(&tokens, at + 1, '!'));
                if let Some(defined) = word(&tokens, named) {
                    source.defined.insert(defined.to_owned());
                }
            }
            _ => {}
        }
        let is_use = name == "use";
        let continues = at > 0 && tokens[at - 1].0 == Token::Colons;
        // `x.f::<T>()` is no path either.
        let method = at > 0 && is(&tokens, at - 1, '.');
        let begins =
            tokens.get(at + 1).map(|t| &t.0) == Some(&Token::Colons) && !continues && !method;
        // `pub(in crate::x)` says who may see, not what is needed.
        let restricts =
            at > 0 && word(&tokens, at - 1) == Some("in") && at > 1 && is(&tokens, at - 2, '(');
        if (is_use || begins) && !restricts {
            let mut found = Vec::new();
            let reexport = is_use && is_public(&tokens, at);
            at = tree(&tokens, at + usize::from(is_use), &[], &mut found);
            let scope: Vec<String> = scopes.iter().map(|s| s.0.clone()).collect();
            source
                .paths
                .extend(found.into_iter().map(|(segments, name, line)| Path {
                    segments,
                    name,
                    reexport,
                    scope: scope.clone(),
                    line,
                }));
        } else {
            at += 1;
        }
    }
    source
}

/// Whether `pub` or `pub(…)` stands before the word at `at`.
fn is_public(tokens: &[(Token, usize)], at: usize) -> bool {
    let mut before = at;
    if before > 0 && is(tokens, before - 1, ')') {
        while before > 0 && !is(tokens, before, '(') {
            before -= 1;
        }
    }
    before > 0 && word(tokens, before - 1) == Some("pub")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(text: &str) -> Vec<String> {
        let joined = |path: Path| path.segments.join("::");
        parse(text).paths.into_iter().map(joined).collect()
    }

    #[test]
    fn use_trees_are_flattened() {
        assert_eq!(
            paths("use crate::a::b::{c, d::e, f::{self, g as h}, *};"),
            [
                "crate::a::b::c",
                "crate::a::b::d::e",
                "crate::a::b::f",
                "crate::a::b::f::g",
                "crate::a::b::*"
            ]
        );
        assert_eq!(
            paths("use {crate::a, super::b::c};"),
            ["crate::a", "super::b::c"]
        );
    }

    #[test]
    fn paths_in_code_and_macros_count() {
        let text = "fn f(x: crate::a::T) -> super::U { $crate::m!(x) ; y.z::<crate::q::R>() }";
        assert_eq!(
            paths(text),
            ["crate::a::T", "super::U", "crate::m", "crate::q::R"]
        );
    }

    #[test]
    fn comments_and_strings_do_not_count() {
        let text = r##"
            // crate::a
            /* crate::b /* crate::c */ crate::d */
            const S: &str = "crate::e \" crate::f"; const R: &str = r#"crate::g " "#;
            const B: &[u8] = b"crate::h"; const C: char = '"'; const D: char = '\'';
            fn life<'a>(x: &'a str) -> crate::real::T<'a> {}
        "##;
        assert_eq!(paths(text), ["crate::real::T"]);
    }

    #[test]
    fn test_code_does_not_count() {
        let text = "
            #[cfg(test)] use crate::a::B;
            #[cfg(test)] mod big;
            #[cfg(not(test))] use crate::c::D;
            #[cfg(all(test, unix))] #[allow(x)] fn f(a: [u8; 2]) { crate::e::f() }
            use crate::g::H;
            #[cfg(test)] mod tests { use super::*; use crate::i::J; }
            mod child;
        ";
        assert_eq!(paths(text), ["crate::c::D", "crate::g::H"]);
        let source = parse(text);
        assert!(source.test_children.contains("big"));
        assert_eq!(source.children, BTreeSet::from(["child".to_owned()]));
    }

    #[test]
    fn reexports_aliases_scopes_and_lines_are_kept() {
        let source = parse(
            "pub use a::B as C;\npub(crate) use d::E;\nuse f::G;\nmod m {\n  use super::H;\n}\nuse i::J;\npub(in crate::x) fn k() {}",
        );
        let seen: Vec<_> = source
            .paths
            .iter()
            .map(|p| (p.name.as_str(), p.reexport, p.scope.len(), p.line))
            .collect();
        assert_eq!(
            seen,
            [
                ("C", true, 0, 1),
                ("E", true, 0, 2),
                ("G", false, 0, 3),
                ("H", false, 1, 5),
                ("J", false, 0, 7)
            ]
        );
        assert!(source.defined.contains("k"));
    }
}
