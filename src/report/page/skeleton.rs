//! The frame of all pages: style, keys, heading.

use std::fmt::Display;

use super::markup::escaped;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// A page with this title and content. `keys` says what its marks are, if it has any: `n` and `p`
/// move between the elements of the class `mark`.
///
/// The page is also well-formed XML, so that tests can parse it strictly.
pub(in crate::report) fn document(title: &str, keys: Option<&str>, content: &str) -> String {
    let title = escaped(title);
    let opens = if content.contains("<details") {
        ", <kbd>o</kbd> open or close everything. A print shows what is open"
    } else {
        ""
    };
    let keys = keys.map_or_else(String::new, |marks| {
        format!(
            "<p class=\"keys\">Keys: <kbd>n</kbd> next {}, <kbd>p</kbd> the one before{opens}.</p>\n",
            escaped(marks)
        )
    });
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width\"/>\n<title>{title}</title>\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n{keys}{content}\
         <p class=\"made\">Made by bpflab {}.</p>\n\
         <script>//<![CDATA[\n{SCRIPT}//]]></script>\n</body>\n</html>\n",
        env!("CARGO_PKG_VERSION")
    )
}

/// The note that not all is shown; empty if all is.
pub(in crate::report) fn capped(shown: usize, all: usize, what: impl Display) -> String {
    if shown >= all {
        return String::new();
    }
    let what = escaped(&what.to_string());
    format!("<p class=\"note\">The first {shown} of {all} {what}.</p>\n")
}
