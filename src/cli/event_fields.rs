//! Fields of events, which take names of enumerators, too: those that the event's own rules do not
//! know are looked up in BTF.

use super::symbols;
use crate::harness::Vm;
use crate::vm::events::{Event, EventError, FieldValue, ValueProblem, parse_assignment};

/// Sets a field from `FIELD=VALUE`.
pub(super) fn assign_field(vm: &Vm, event: &mut Event, text: &str) -> Result<(), EventError> {
    let (field, value) = parse_assignment(text).map_err(|error| EventError::Text {
        text: text.to_owned(),
        error,
    })?;
    set_field(vm, event, field, &value)
}

/// Sets a field.
pub(super) fn set_field(
    vm: &Vm,
    event: &mut Event,
    field: &str,
    value: &FieldValue,
) -> Result<(), EventError> {
    let refused = match event.change(field, value) {
        Err(error) if is_unknown_name(&error) => error,
        done => return done,
    };
    let FieldValue::Text(text) = value else {
        return Err(refused);
    };
    match symbols::value(text, |name| vm.enumerator(name)) {
        Some(number) => event.change(field, &FieldValue::Int(number)),
        None => Err(refused),
    }
}

/// Whether a field that is a number was given a name that no table has.
fn is_unknown_name(error: &EventError) -> bool {
    matches!(
        error,
        EventError::Value {
            problem: ValueProblem::NoConstant(_),
            ..
        }
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::Object;

    #[test]
    fn enumerators_of_btf_are_values() {
        let object = Object::open("tests/objects/named_states.bpf.o").unwrap();
        let vm = Vm::unverified(object).unwrap();
        let mut event = vm.tracepoint("syscalls/sys_enter_write").unwrap();
        let count = |event: &Event| event.record()[32];
        assign_field(&vm, &mut event, "count=STATE_BUSY").unwrap();
        assert_eq!(count(&event), 5);
        assign_field(&vm, &mut event, "count=STATE_BUSY|O_RDWR|8").unwrap();
        assert_eq!(count(&event), 15);
        let error = assign_field(&vm, &mut event, "count=STATE_BUZY").unwrap_err();
        assert!(error.to_string().contains("`STATE_BUZY`"), "{error}");
        assert_eq!(count(&event), 15);
    }
}
