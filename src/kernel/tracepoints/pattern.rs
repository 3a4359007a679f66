//! Patterns of tracepoint names.

use super::syscalls;
use super::tracepoint::{Group, Tracepoint};
use crate::spec::AttachName;
use crate::util::glob;

/// SystemTap's notation around a name.
const SYSTEMTAP: (&str, &str) = ("kernel.trace(\"", "\")");

/// The module that newer versions of bpftrace write before a raw tracepoint of the kernel. For
/// other modules it is the module's name, which usually is the group of its tracepoints.
const KERNEL: &str = "vmlinux";

/// A pattern of names with the wildcards `*` and `?`: `softirq*` for names, `irq:softirq*` or
/// `irq/softirq*` for groups and names, `irq:` for a whole group. A program's section
/// (`tp/irq/softirq_entry`), bpftrace's `tracepoint:irq:…` and SystemTap's `kernel.trace("…")`
/// work, too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    group: Option<String>,
    name: String,
    /// Only tracepoints that `raw_tp` and `tp_btf` programs attach to.
    raw: bool,
}

impl Pattern {
    /// Parses a pattern; any text is one.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let (before, behind) = SYSTEMTAP;
        let inner = text.strip_prefix(before);
        let text = inner
            .and_then(|inner| inner.strip_suffix(behind))
            .unwrap_or(text);
        // Other kinds of names attach to no tracepoint: they are read as GROUP:NAME.
        let name = AttachName::parse(text).and_then(|name| {
            let raw = name.prefix.starts_with("raw_tp") || name.prefix.starts_with("tp_btf");
            (raw || name.prefix.starts_with("tp")).then_some((name.target, raw))
        });
        let (rest, raw) = name.unwrap_or_else(|| (text.to_owned(), false));
        let rest = rest.as_str();
        let (group, name) = match rest.split_once([':', '/']) {
            Some((group, "")) => (Some(group), "*"),
            Some((KERNEL, name)) if raw => (None, name),
            Some((group, name)) => (Some(group), name),
            None => (None, rest),
        };
        Self {
            group: group.map(str::to_owned),
            name: name.to_owned(),
            raw,
        }
    }

    /// Whether a tracepoint matches. If its group is unknown, only the name is compared.
    #[must_use]
    pub fn matches(&self, tracepoint: &Tracepoint) -> bool {
        let in_group = match (&self.group, &tracepoint.group) {
            (None, _) | (Some(_), Group::Unknown) => true,
            (Some(pattern), Group::Named(group)) => glob(pattern, group),
            (Some(_), Group::NoEvent) => false,
        };
        // The kernel derives the events of single system calls from `sys_enter` and `sys_exit`.
        let is_made = tracepoint.group.name() == Some(syscalls::GROUP);
        in_group && glob(&self.name, &tracepoint.name) && !(self.raw && is_made)
    }

    /// The pattern, extended to events if it selects raw tracepoints only.
    pub(super) fn with_events(&self) -> Self {
        Self {
            raw: false,
            ..self.clone()
        }
    }

    /// Whether it is this group's name and nothing else.
    pub(super) fn names_group(&self, group: &str) -> bool {
        self.group.is_none() && self.name == group
    }

    /// Whether it has a group.
    #[must_use]
    pub const fn has_group(&self) -> bool {
        self.group.is_some()
    }

    /// The pattern without wildcards, for a search of similar names.
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
            ("irq:", true),
            ("irq/", true),
            ("sched/", false),
            ("rawtracepoint:vmlinux:softirq_entry", true),
            ("tracepoint:vmlinux:softirq_entry", false),
            ("kernel.trace(\"softirq_*\")", true),
            ("kernel.trace(\"irq:softirq_entry\")", true),
            ("kernel.trace(\"softirq_entry", false),
            ("", false),
        ] {
            let irq = Group::Named("irq".to_owned());
            assert_eq!(matches(pattern, irq), fits, "{pattern}");
        }
    }

    #[test]
    fn events_of_single_calls_are_no_raw_tracepoints() {
        let call = Group::Named(syscalls::GROUP.to_owned());
        assert!(matches("tp/syscalls/softirq_entry", call.clone()));
        assert!(!matches("raw_tp/softirq_entry", call.clone()));
        assert!(!matches("rt:soft*", call));
    }

    #[test]
    fn of_an_unknown_group_only_the_name_counts() {
        assert!(matches("sched:softirq*", Group::Unknown) && !matches("irq:hard*", Group::Unknown));
        assert!(matches("soft*", Group::NoEvent) && !matches("*:soft*", Group::NoEvent));
    }
}
