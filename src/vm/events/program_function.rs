//! The layout of a call of another program's function, for the programs that trace it.

use super::from_btf::{args_layout, of_prototype, prototype};
use super::layout::Layout;
use crate::btf::Type;
use crate::spec::limits::MAX_REG_ARGS;
use crate::vm::fields::{Field, Shape};

impl Layout {
    /// The arguments of a function of a program, by its `BTF_KIND_FUNC`, followed by its return
    /// value. Without a type that holds for every call, they are five numbers
    /// (`btf_distill_func_proto`, `kernel/bpf/btf.c`).
    pub(crate) fn of_program_function(function: Option<Type<'_>>, name: String) -> Self {
        if let Some(proto) = function.and_then(prototype) {
            return of_prototype(proto.btf(), proto, name);
        }
        let number = |name, slot| Field::inline(name, slot * 8, Shape::number(8, false));
        let args = (0..).zip(0..MAX_REG_ARGS).map(|(slot, index)| {
            number(format!("arg{index}"), slot).alias(format!("args[{index}]"))
        });
        let mut fields: Vec<_> = args.collect();
        let end = fields.last().map_or(0, Field::end);
        fields.push(number("ret".to_owned(), end / 8));
        args_layout(name.clone(), fields, name)
    }
}
