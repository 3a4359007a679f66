//! Name patterns, as in shells and libbpf's `glob_match`.

/// Whether a text matches a pattern, in which `*` stands for any text and `?` for one
/// character. No exponential backtracking: only the last star is retried.
#[must_use]
pub fn glob(pattern: &str, text: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let text: Vec<char> = text.chars().collect();
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while let Some(&c) = text.get(t) {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(&wanted) if wanted == '?' || wanted == c => {
                p += 1;
                t += 1;
            }
            _ => {
                let Some((at, from)) = star else {
                    return false;
                };
                star = Some((at, from + 1));
                p = at + 1;
                t = from + 1;
            }
        }
    }
    pattern.iter().skip(p).all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_and_question_marks() {
        for (pattern, text, fits) in [
            ("a*b*c", "axxbyybc", true),
            ("a*b*c", "axxbyyb", false),
            ("", "", true),
            ("**", "", true),
            ("?", "", false),
            ("vfs_*", "xvfs_read", false),
            ("*_re*d", "vfs_re_read", true),
            ("vfs_rea?", "vfs_read", true),
            ("vfs_read", "vfs_readv", false),
        ] {
            assert_eq!(glob(pattern, text), fits, "{pattern} {text}");
        }
    }
}
