//! Patterns of names, as shells and libbpf's `glob_match` have them.

/// Whether a text fits a pattern, in which `*` stands for anything and `?` for one
/// character. Linear: of the stars only the last one is taken back.
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
