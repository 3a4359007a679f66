//! Iterators that a program advances itself (open-coded iterators).

/// Declares [`IteratorKind`].
macro_rules! kinds {
    ($($variant:ident $name:literal $doc:literal,)+) => {
        /// The kind of an iterator that a program creates, advances and destroys by kfuncs.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum IteratorKind {
            $(#[doc = $doc] $variant,)+
        }

        impl IteratorKind {
            /// Every kind.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// Its structure, which is the common part of its kfuncs' names, too:
            /// `bpf_iter_num`.
            #[must_use]
            pub const fn structure(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }
        }
    };
}

kinds! {
    Bits "bpf_iter_bits" "The set bits of memory.",
    Css "bpf_iter_css" "Control groups.",
    CssTask "bpf_iter_css_task" "The tasks of a control group.",
    Dmabuf "bpf_iter_dmabuf" "Shared buffers.",
    KmemCache "bpf_iter_kmem_cache" "Caches of kernel objects.",
    Num "bpf_iter_num" "Numbers.",
    ScxDsq "bpf_iter_scx_dsq" "The tasks in a dispatch queue of sched_ext.",
    Task "bpf_iter_task" "Tasks.",
    TaskVma "bpf_iter_task_vma" "The memory areas of a task.",
}

impl IteratorKind {
    /// The kind with this structure: `bpf_iter_num`.
    #[must_use]
    pub fn of_structure(name: &str) -> Option<Self> {
        let mut all = Self::ALL.iter().copied();
        all.find(|kind| kind.structure() == name)
    }
}

/// What a kfunc does to an iterator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IteratorStep {
    /// It creates the iterator.
    New,
    /// It advances the iterator.
    Next,
    /// It destroys the iterator.
    Destroy,
}
