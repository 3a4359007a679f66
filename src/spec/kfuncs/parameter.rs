//! Parameters of a kfunc, determined from types and name suffixes as in the kernel
//! (`get_kfunc_ptr_arg_type` and related functions, `kernel/bpf/verifier.c`;
//! `Documentation/bpf/kfuncs.rst`).

/// A parameter, parsed from its declaration in C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Parameter {
    /// The type without `const`, stars and name: `struct task_struct`, `u32`; for a
    /// function pointer, the function's type.
    pub base: &'static str,
    /// Number of stars.
    pub stars: usize,
    /// The name: `meta__ign`.
    pub name: &'static str,
    /// The required kind of argument.
    pub kind: ParameterKind,
    /// Whether null may be passed: `__nullable` and `__opt`.
    pub nullable: bool,
    /// Whether the function initialises the memory: `__uninit`.
    pub uninit: bool,
}

/// The required kind of argument for a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ParameterKind {
    /// A number.
    Scalar,
    /// A known constant: `__k`.
    Constant,
    /// The size of the memory in the previous parameter: `__sz`.
    Size,
    /// The same, a known constant: `__szk`.
    ConstantSize,
    /// The size of the returned memory: `rdonly_buf_size`, `rdwr_buf_size`.
    BufferSize,
    /// Anything: `__ign`.
    Ignored,
    /// Nothing: the verifier passes the program itself (`__prog`).
    Program,
    /// The program's context.
    Context,
    /// A dynptr.
    Dynptr,
    /// An iterator on the stack (by the function's flags, `__iter`).
    Iterator,
    /// The head of a list.
    ListHead,
    /// A node of a list, in an object.
    ListNode,
    /// The root of a tree.
    RbRoot,
    /// A node of a tree, in an object.
    RbNode,
    /// A function of the program.
    Callback,
    /// A string in a read-only map: `__str`.
    ConstString,
    /// A map: `__map` and `p__map`.
    Map,
    /// A stack slot for the interrupt state: `__irq_flag`.
    IrqFlag,
    /// A `struct bpf_wq` in a map's value.
    Workqueue,
    /// A `struct bpf_task_work` in a map's value.
    TaskWork,
    /// A `struct bpf_res_spin_lock`.
    ResSpinLock,
    /// An object that the program allocated: `__alloc`.
    Allocated,
    /// An allocated object with a reference count: `__refcounted_kptr`.
    Refcounted,
    /// Memory: with the size in the next parameter, or of a type without pointers.
    Memory,
    /// A kernel object.
    Object,
}

/// The result of a kfunc.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KfuncResult {
    /// No result.
    Void,
    /// A number that may be a negative errno.
    Signed,
    /// Any other number, or a structure in `r0`.
    Unsigned,
    /// A pointer to this type, without `const`: `struct task_struct`.
    Pointer(&'static str),
}

impl KfuncResult {
    /// C types that can hold a negative errno.
    const SIGNED: [&'static str; 6] = ["int", "long", "s32", "s64", "__s64", "ssize_t"];

    /// Parses the C type of a result.
    pub(super) fn parse(text: &'static str) -> Self {
        let text = text.trim_end();
        let text = text.strip_prefix("const ").unwrap_or(text);
        match text.strip_suffix('*') {
            Some(base) => Self::Pointer(base.trim_end()),
            None if text == "void" => Self::Void,
            None if Self::SIGNED.contains(&text) => Self::Signed,
            None => Self::Unsigned,
        }
    }

    /// Whether the result is a pointer.
    #[must_use]
    pub const fn is_pointer(self) -> bool {
        matches!(self, Self::Pointer(_))
    }
}

impl Parameter {
    /// The parts of a C type: without `const` and stars, and the number of stars.
    #[must_use]
    pub fn split(text: &'static str) -> (&'static str, usize) {
        let base = text.trim_end_matches(['*', ' ']);
        let base = base.strip_prefix("const ").unwrap_or(base);
        (base, text.matches('*').count())
    }

    /// Parses one declaration: `const struct cpumask *src1`.
    fn parse(text: &'static str) -> Self {
        let text = text.trim();
        if let Some((base, rest)) = text.split_once("(*") {
            let name = rest.split(')').next().unwrap_or_default();
            return Self {
                base: base.trim_end(),
                stars: 1,
                name,
                kind: ParameterKind::Callback,
                nullable: false,
                uninit: false,
            };
        }
        let named = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let start = text.rfind(|c| !named(c)).map_or(0, |at| at + 1);
        let (before, name) = text.split_at(start);
        let (base, stars) = Self::split(before);
        Self {
            base,
            stars,
            name,
            kind: kind(base, stars, name),
            nullable: name.ends_with("__nullable") || name.ends_with("__opt"),
            uninit: name.ends_with("__uninit"),
        }
    }
}

/// The parameters of a declaration, without its parentheses.
pub(super) fn parse(list: &'static str) -> Vec<Parameter> {
    if list == "void" {
        return Vec::new();
    }
    let mut found = Vec::new();
    let (mut depth, mut start) = (0u32, 0);
    for (at, byte) in list.bytes().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                found.extend(list.get(start..at).map(Parameter::parse));
                start = at + 1;
            }
            _ => {}
        }
    }
    found.extend(list.get(start..).map(Parameter::parse));
    found
}

/// Name suffixes that determine a parameter's kind for any type.
const BY_SUFFIX: &[(&str, ParameterKind)] = &[
    ("__ign", ParameterKind::Ignored),
    ("__prog", ParameterKind::Program),
    ("__szk", ParameterKind::ConstantSize),
    ("__sz", ParameterKind::Size),
    ("__str", ParameterKind::ConstString),
    ("__map", ParameterKind::Map),
    ("__irq_flag", ParameterKind::IrqFlag),
    ("__alloc", ParameterKind::Allocated),
    ("__refcounted_kptr", ParameterKind::Refcounted),
    ("__iter", ParameterKind::Iterator),
    ("__k", ParameterKind::Constant),
    ("rdonly_buf_size", ParameterKind::BufferSize),
    ("rdwr_buf_size", ParameterKind::BufferSize),
];

/// Types that determine a pointer's kind.
const BY_TYPE: &[(&str, ParameterKind)] = &[
    ("struct bpf_dynptr", ParameterKind::Dynptr),
    ("struct bpf_list_head", ParameterKind::ListHead),
    ("struct bpf_list_node", ParameterKind::ListNode),
    ("struct bpf_rb_root", ParameterKind::RbRoot),
    ("struct bpf_rb_node", ParameterKind::RbNode),
    ("struct bpf_wq", ParameterKind::Workqueue),
    ("struct bpf_task_work", ParameterKind::TaskWork),
    ("struct bpf_res_spin_lock", ParameterKind::ResSpinLock),
    // Contexts: under the programs' name and under the kernel's.
    ("struct __sk_buff", ParameterKind::Context),
    ("struct xdp_md", ParameterKind::Context),
    ("struct bpf_sock_addr_kern", ParameterKind::Context),
    ("struct bpf_sock_ops_kern", ParameterKind::Context),
];

fn kind(base: &str, stars: usize, name: &str) -> ParameterKind {
    let find = |list: &[(&str, ParameterKind)], fits: &dyn Fn(&str) -> bool| {
        list.iter()
            .find(|(key, _)| fits(key))
            .map(|(_, kind)| *kind)
    };
    if let Some(kind) = find(BY_SUFFIX, &|suffix| name.ends_with(suffix)) {
        return kind;
    }
    if base.ends_with("_callback_t") {
        return ParameterKind::Callback;
    }
    if stars == 0 {
        return ParameterKind::Scalar;
    }
    if let Some(kind) = find(BY_TYPE, &|ty| ty == base) {
        return kind;
    }
    let is_iterator = base.starts_with("struct bpf_iter_") && name == "it";
    match base.strip_prefix("struct ") {
        _ if is_iterator => ParameterKind::Iterator,
        // UAPI types, which contain no pointers.
        Some(
            "bpf_sock_tuple"
            | "bpf_ct_opts"
            | "bpf_tcp_req_attrs"
            | "bpf_crypto_params"
            | "bpf_xfrm_state_opts"
            | "bpf_fou_encap"
            | "bpf_xfrm_info"
            | "bpf_fib_lookup"
            | "bpf_flowtable_opts"
            | "scx_event_stats",
        ) => ParameterKind::Memory,
        Some(_) => ParameterKind::Object,
        None => ParameterKind::Memory,
    }
}
