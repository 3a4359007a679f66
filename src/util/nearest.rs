//! Suggestions for a name that does not exist.

/// Sorts names by edit distance from the requested one.
#[must_use]
pub fn nearest_first(asked: &str, mut names: Vec<String>) -> Vec<String> {
    // Equal distances keep their order.
    names.sort_by_cached_key(|name| distance(asked, name));
    names
}

/// Levenshtein distance in bytes, but 1 if one of the names contains the other.
fn distance(a: &str, b: &str) -> usize {
    if !a.is_empty() && !b.is_empty() && (a.contains(b) || b.contains(a)) {
        return 1;
    }
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (y, cell) in b.bytes().zip(row.iter_mut().skip(1)) {
            let best = (diagonal + usize::from(x != y))
                .min(left + 1)
                .min(*cell + 1);
            diagonal = std::mem::replace(cell, best);
            left = best;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_levenshteins() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("same", "same"), 1);
        assert_eq!(distance("flaw", "lawn"), 2);
    }

    #[test]
    fn the_nearest_name_comes_first() {
        let names = ["fd", "buf", "count"].map(String::from).to_vec();
        assert_eq!(nearest_first("cuont", names)[0], "count");
    }
}
