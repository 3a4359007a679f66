//! A state of the verifier, value by value.

use std::fmt::{self, Write};

use super::markup::escaped;
use crate::explain::words;
use crate::isa::{Reg, RegSet};

/// Writes a state in the log's notation: `R1=ctx() fp-8=mmmmmmmm refs=2`. A value that `origin`
/// has a link for links there.
pub(super) fn state(
    text: &mut String,
    values: &str,
    mut origin: impl FnMut(&str) -> Option<(String, String)>,
) -> fmt::Result {
    text.push_str("<span class=\"state\">");
    for word in words(values) {
        let Some((name, value)) = word.split_once('=') else {
            write!(text, "<span>{}</span> ", escaped(word))?;
            continue;
        };
        write!(text, "<span><b>{}</b>=", escaped(name))?;
        match origin(name) {
            Some((link, title)) => write!(
                text,
                "<a href=\"#{}\" title=\"{}\">{}</a></span> ",
                escaped(&link),
                escaped(&title),
                escaped(value)
            )?,
            None => write!(text, "{}</span> ", escaped(value))?,
        }
    }
    text.push_str("</span>");
    Ok(())
}

/// The values of these registers in a state.
pub(super) fn of_registers(values: &str, regs: RegSet) -> String {
    let is_one = |word: &&str| {
        let number = word.strip_prefix('R').and_then(|rest| rest.split_once('='));
        let reg = number.and_then(|(number, _)| Reg::from_number(number.parse().ok()?));
        reg.is_some_and(|reg| regs.contains(reg))
    };
    words(values).filter(is_one).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_split_at_blanks_outside_of_parentheses() {
        let mut text = String::new();
        let values = "frame1: R1=scalar(var_off=(0x0; 0xff)) fp-8=<m&> refs=2";
        state(&mut text, values, |name| {
            (name == "R1").then(|| ("i-3".to_owned(), "made by 3".to_owned()))
        })
        .unwrap();
        assert_eq!(
            text,
            "<span class=\"state\"><span>frame1:</span> <span><b>R1</b>=<a href=\"#i-3\" \
             title=\"made by 3\">scalar(var_off=(0x0; 0xff))</a></span> \
             <span><b>fp-8</b>=&lt;m&amp;&gt;</span> <span><b>refs</b>=2</span> </span>"
        );
        let regs = [Reg::R1].into_iter().collect();
        assert_eq!(of_registers(values, regs), "R1=scalar(var_off=(0x0; 0xff))");
    }
}
