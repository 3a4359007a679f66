//! Describes a register's state in words, as readers may not know the log's notation.

/// Types in the log's notation (`reg_type_str`, `kernel/bpf/log.c`) and their descriptions.
const TYPES: &[(&str, &str)] = &[
    ("scalar", "a number"),
    ("ctx", "the program's context"),
    ("map_ptr", "a map"),
    ("map_value", "a pointer to a map's value"),
    ("map_key", "a pointer to a map's key"),
    ("fp", "a pointer to the stack"),
    ("pkt", "a pointer into the packet"),
    ("pkt_meta", "a pointer to the packet's metadata"),
    ("pkt_end", "the packet's end"),
    ("flow_keys", "a pointer to flow keys"),
    ("sock", "a socket"),
    ("sock_common", "a socket"),
    ("tcp_sock", "a TCP socket"),
    ("xdp_sock", "an XDP socket"),
    ("mem", "a pointer to memory"),
    ("ringbuf_mem", "a pointer to a ring-buffer record"),
    ("buf", "a pointer to a buffer"),
    ("func", "the address of a function"),
    ("ptr_", "a pointer to a kernel object"),
];

/// Describes the log's notation of a register: `map_value_or_null(id=1,map=hist,…)` is `a
/// pointer to a map's value, or NULL`.
pub(super) fn describe(state: &str) -> String {
    let state = state.strip_prefix('P').unwrap_or(state);
    if let Some(older) = state.strip_prefix("inv") {
        return describe(&modern(older));
    }
    let name = state.split('(').next().unwrap_or(state);
    if let Some(bounds) = state.strip_prefix("scalar(") {
        return scalar(bounds.trim_end_matches(')'));
    }
    if state.starts_with(|c: char| c.is_ascii_digit() || c == '-') {
        return format!("the number {state}");
    }
    // Modifiers of kernel pointers precede the type.
    let name = ["rdonly_", "trusted_", "untrusted_", "rcu_", "percpu_"]
        .iter()
        .fold(name, |name, prefix| {
            name.strip_prefix(prefix).unwrap_or(name)
        });
    let (name, or_null) = match name.strip_suffix("_or_null") {
        Some(name) => (name, ", or NULL"),
        None => (name, ""),
    };
    let known = TYPES.iter().find(|(ty, _)| {
        *ty == name
            || (*ty == "fp" && name.starts_with("fp"))
            || (*ty == "ptr_" && name.starts_with("ptr_"))
    });
    match known {
        Some((_, words)) => {
            let map = state.split_once("map=").map(|(_, rest)| rest);
            let map = map.and_then(|rest| rest.split([',', ')']).next());
            let map = map.map_or_else(String::new, |map| format!(" of '{map}'"));
            format!("{words}{map}{or_null}")
        }
        None => format!("{name}{or_null}"),
    }
}

/// The notation of numbers until Linux 5.17, behind `inv`: `12`, `P0`, `(id=0,umax_value=255)`.
fn modern(older: &str) -> String {
    let older = older.strip_prefix('P').unwrap_or(older);
    if older.starts_with('(') {
        return format!("scalar{}", older.replace("_value=", "="));
    }
    older.to_owned()
}

/// Describes the bounds of a scalar. The log omits unlimited bounds.
fn scalar(bounds: &str) -> String {
    let limit = |name: &str| {
        let parts: Vec<&str> = bounds.split(',').collect();
        parts.iter().find_map(|part| {
            // `smin=smin32=0` gives both.
            let (names, value) = part.rsplit_once('=')?;
            names
                .split('=')
                .any(|known| known == name)
                .then_some(value.to_owned())
        })
    };
    match (limit("smin"), limit("umin"), limit("umax"), limit("smax")) {
        (_, Some(low), Some(high), _) => format!("a number from {low} to {high}"),
        (_, None, Some(high), _) => format!("a number from 0 to {high}"),
        (_, Some(low), None, _) => format!("a number of at least {low}"),
        (Some(low), None, None, Some(high)) => format!("a number from {low} to {high}"),
        (Some(low), None, None, None) => format!("a number of at least {low}"),
        (None, None, None, Some(high)) => {
            format!("a number that may be negative, at most {high}")
        }
        (None, None, None, None) => "any number".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notations_become_words() {
        for (state, words) in [
            ("scalar()", "any number"),
            (
                "scalar(id=3,smin=0,smax=umax=0xffff)",
                "a number from 0 to 0xffff",
            ),
            (
                "scalar(smin=smin32=-4,smax=smax32=7)",
                "a number from -4 to 7",
            ),
            (
                "scalar(smax=256)",
                "a number that may be negative, at most 256",
            ),
            ("-12", "the number -12"),
            ("inv12", "the number 12"),
            ("inv(id=0,umax_value=255)", "a number from 0 to 255"),
            ("fp-16", "a pointer to the stack"),
            ("ctx()", "the program's context"),
            (
                "map_value_or_null(id=1,map=hist,ks=4,vs=8)",
                "a pointer to a map's value of 'hist', or NULL",
            ),
            ("trusted_ptr_task_struct()", "a pointer to a kernel object"),
            ("novel_type(a=1)", "novel_type"),
        ] {
            assert_eq!(describe(state), words, "{state}");
        }
    }
}
