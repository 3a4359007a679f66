//! Which tracepoints are asked for.

use super::tracepoint::{Group, Tracepoint};
use crate::util::glob;

/// What may stand before a name: sections of programs, and bpftrace's probe types.
const PREFIXES: [&str; 14] = [
    "tp/",
    "tracepoint/",
    "raw_tp/",
    "raw_tp.w/",
    "raw_tracepoint/",
    "raw_tracepoint.w/",
    "tp_btf/",
    "tracepoint:",
    "t:",
    "rawtracepoint:",
    "rt:",
    "tp:",
    "raw_tp:",
    "tp_btf:",
];

/// A pattern of names, in which `*` stands for anything and `?` for one character:
/// `softirq*` for names, `irq:softirq*` or `irq/softirq*` for groups and names. A
/// program's section (`tp/irq/softirq_entry`) and bpftrace's `tracepoint:irq:…` work, too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    group: Option<String>,
    name: String,
}

impl Pattern {
    /// Every text is a pattern.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut prefixes = PREFIXES.iter();
        let rest = prefixes.find_map(|prefix| text.strip_prefix(prefix));
        let rest = rest.unwrap_or(text);
        match rest.split_once([':', '/']) {
            Some((group, name)) => Self {
                group: Some(group.to_owned()),
                name: name.to_owned(),
            },
            None => Self {
                group: None,
                name: rest.to_owned(),
            },
        }
    }

    /// Whether a tracepoint fits. Of one whose group is not known only the name must.
    #[must_use]
    pub fn matches(&self, tracepoint: &Tracepoint) -> bool {
        let in_group = match (&self.group, &tracepoint.group) {
            (None, _) | (Some(_), Group::Unknown) => true,
            (Some(pattern), Group::Named(group)) => glob(pattern, group),
            (Some(_), Group::NoEvent) => false,
        };
        in_group && glob(&self.name, &tracepoint.name)
    }

    /// Whether it asks for a group.
    #[must_use]
    pub const fn has_group(&self) -> bool {
        self.group.is_some()
    }

    /// The name that it is like, for a search of similar ones.
    pub(super) fn without_stars(&self) -> String {
        let text = match &self.group {
            Some(group) => format!("{group}:{}", self.name),
            None => self.name.clone(),
        };
        text.replace(['*', '?'], "")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, group: Group) -> bool {
        Pattern::parse(pattern).matches(&Tracepoint {
            group,
            name: "softirq_entry".to_owned(),
            table: Some(0),
        })
    }

    #[test]
    fn names_and_groups_are_matched() {
        for (pattern, fits) in [
            ("softirq_entry", true),
            ("softirq*", true),
            ("*", true),
            ("irq*", false),
            ("irq:*", true),
            ("irq/softirq_entr?", true),
            ("i*:*entry", true),
            ("sched:softirq_entry", false),
            ("tp/irq/softirq_entry", true),
            ("tp/softirq_entry", true),
            ("tp_btf/softirq_entry", true),
            ("raw_tp/softirq_exit", false),
            ("tracepoint:irq:softirq_entry", true),
            ("t:irq:*", true),
            ("", false),
        ] {
            let irq = Group::Named("irq".to_owned());
            assert_eq!(matches(pattern, irq), fits, "{pattern}");
        }
    }

    #[test]
    fn of_an_unknown_group_only_the_name_counts() {
        assert!(matches("sched:softirq*", Group::Unknown) && !matches("irq:hard*", Group::Unknown));
        assert!(matches("soft*", Group::NoEvent) && !matches("*:soft*", Group::NoEvent));
    }
}
