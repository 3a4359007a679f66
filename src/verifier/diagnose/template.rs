//! Message templates: `R{reg} invalid mem access '{type}'` matches the kernel's line and
//! captures the parts in braces.

/// The parts of a line that a template captured.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Captures(Vec<(&'static str, String)>);

impl Captures {
    /// The text of a capture.
    pub fn get(&self, name: &str) -> Option<&str> {
        let mut captures = self.0.iter();
        let (_, text) = captures.find(|(known, _)| *known == name)?;
        Some(text)
    }

    /// Adds a value from elsewhere, unless the line has it.
    pub fn add(&mut self, name: &'static str, text: impl Into<String>) {
        if self.get(name).is_none() {
            self.0.push((name, text.into()));
        }
    }

    /// Replaces the captures in a text.
    pub fn fill(&self, text: &str) -> String {
        let mut filled = String::new();
        let mut rest = text;
        while let Some((before, name, after)) = split_capture(rest) {
            filled.push_str(before);
            filled.push_str(self.get(name).unwrap_or("?"));
            rest = after;
        }
        filled + rest
    }
}

/// Splits a text at its first capture: the text before it, its name, the text after it.
fn split_capture(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once('{')?;
    let (name, after) = rest.split_once('}')?;
    Some((before, name, after))
}

/// Matches a line against a template and returns the captures. A capture is as short as
/// possible, except at the end of the line; `{reg}` matches digits only.
pub(crate) fn fit(template: &'static str, line: &str) -> Option<Captures> {
    let mut captures = Captures::default();
    let mut rest = line;
    let mut pattern = template;
    while let Some((before, name, after)) = split_capture(pattern) {
        rest = rest.strip_prefix(before)?;
        let next = split_capture(after).map_or(after, |(until, ..)| until);
        let end = if name == "reg" {
            let digits = rest.find(|c: char| !c.is_ascii_digit());
            digits.unwrap_or(rest.len())
        } else if next.is_empty() {
            rest.len()
        } else {
            rest.find(next)?
        };
        let (held, behind) = rest.split_at_checked(end)?;
        if name == "reg" && held.is_empty() {
            return None;
        }
        captures.add(name, held);
        rest = behind;
        pattern = after;
    }
    (rest == pattern).then_some(captures)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_hold_what_the_line_says() {
        let line = "invalid access to packet, off=12 size=1, R1(id=0,off=12,r=0)";
        let template = "invalid access to packet, off={off} size={size}, R{reg}({state})";
        let captures = fit(template, line).unwrap();
        assert_eq!(captures.get("size"), Some("1"));
        assert_eq!(captures.get("reg"), Some("1"));
        assert_eq!(captures.get("state"), Some("id=0,off=12,r=0"));
        assert_eq!(captures.fill("r{reg}: {size} at {off}{x}"), "r1: 1 at 12?");
    }

    #[test]
    fn a_line_fits_as_a_whole() {
        assert!(fit("div by zero", "div by zero").is_some());
        assert!(fit("div by zero", "div by zero!").is_none());
        assert!(fit("R{reg} !read_ok", "Rx !read_ok").is_none());
        let rest = fit("unknown {what}", "unknown func a b").unwrap();
        assert_eq!(rest.get("what"), Some("func a b"));
    }
}
