//! Source files beside objects: whether a file has the text that was compiled.

/// Whether a source file has the lines that the compiler read: their numbers, and their texts as
/// far as they are known. Without any to compare it may be another file.
pub(in crate::report) fn is_compiled_text<'l>(
    known: impl Iterator<Item = (u32, &'l str)>,
    whole: &str,
) -> bool {
    let lines: Vec<_> = whole.lines().collect();
    let mut known = known.filter(|(_, text)| !text.is_empty()).peekable();
    known.peek().is_some()
        && known.all(|(number, text)| {
            let there = lines.get((number as usize).wrapping_sub(1));
            there.is_some_and(|line| line.trim() == text.trim())
        })
}
