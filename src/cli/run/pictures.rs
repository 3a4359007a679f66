//! `--svg`: histograms and heatmaps as files.

use std::path::Path;

use crate::cli::exit::Failure;
use crate::cli::files::write_text;
use crate::report::{MapContents, Picture, pictures};

/// The most files that are written into a folder.
const MOST: usize = 1000;

/// The pictures of a run, and where they are written.
pub(super) struct Pictures<'a> {
    to: &'a Path,
    found: Vec<Picture>,
}

impl<'a> Pictures<'a> {
    /// No pictures yet.
    pub(super) const fn new(to: &'a Path) -> Self {
        Self {
            to,
            found: Vec::new(),
        }
    }

    /// Adds those of a map.
    pub(super) fn add(&mut self, contents: &MapContents) {
        self.found.extend(pictures(contents));
    }

    /// Writes the only one to the file, or all into the folder.
    pub(super) fn write(self) -> Result<(), Failure> {
        let to = self.to.display();
        let bad = |why: String| Err(Failure::bad(format!("--svg {to}: {why}")));
        if self.found.is_empty() {
            return bad(
                "no map has counts that are a histogram or a heatmap; --hist MAP makes \
                 one of a map"
                    .to_owned(),
            );
        }
        if self.to.is_dir() {
            if self.found.len() > MOST {
                return bad(format!(
                    "{} pictures are more than {MOST}; select maps by --map NAME",
                    self.found.len()
                ));
            }
            let mut names = Vec::new();
            for picture in &self.found {
                let name = file_name(&picture.name, &names);
                write_text(&self.to.join(format!("{name}.svg")), &picture.svg)?;
                names.push(name);
            }
            return Ok(());
        }
        match self.found.as_slice() {
            [picture] => write_text(self.to, &picture.svg),
            all => bad(format!(
                "{} pictures don't fit into one file; name a folder that exists, or select a map \
                 by --map NAME",
                all.len()
            )),
        }
    }
}

/// A file's name without its end: that of the picture with `_` for other characters than letters,
/// digits, `_` and `-`; with a number if it is taken.
fn file_name(name: &str, taken: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let mut base: String = name
        .chars()
        .map(|c| if plain(c) { c } else { '_' })
        .collect();
    base.truncate(100);
    let mut file = base.clone();
    let mut number = 1;
    while taken.contains(&file) {
        number += 1;
        file = format!("{base}-{number}");
    }
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_are_plain_and_differ() {
        assert_eq!(file_name("../a: {b}", &[]), "___a___b_");
        assert_eq!(file_name("a", &["a".to_owned(), "a-2".to_owned()]), "a-3");
    }
}
