//! Properties that hold for any input.

use proptest::prelude::*;

use super::declare::Scalar;
use super::event::Event;
use super::layout::Layout;
use crate::spec::ProgType;
use crate::vm::fields::{FieldValue, Shape, parse_assignment, parse_hex};
use crate::vm::memory::Space;

fn layout() -> Layout {
    Layout::declare("app/x")
        .field("n", Scalar::S32)
        .array("comm", Scalar::Char, 8)
        .string("a")
        .rel_dynamic_array("b", Scalar::U16)
        .build()
        .unwrap()
}

proptest! {
    #[test]
    fn any_text_is_a_value_or_an_error_within_it(text in "\\PC{0,40}|[a-z]=[\"'\\[{0-9x,hex: ]{0,20}") {
        if let Err(error) = parse_assignment(&text) {
            prop_assert!(error.at <= text.len(), "{error}");
        }
        if let Ok(bytes) = parse_hex(&text) {
            prop_assert!(bytes.len() * 2 <= text.len());
        }
    }

    #[test]
    fn numbers_print_and_come_back(number in any::<i64>(), hex in any::<u64>()) {
        prop_assert_eq!(FieldValue::parse(&number.to_string()), Ok(FieldValue::from(number)));
        prop_assert_eq!(FieldValue::parse(&format!("{hex:#x}")), Ok(FieldValue::from(hex)));
    }

    #[test]
    fn any_text_is_a_format_file_or_an_error_in_one_of_its_lines(
        lines in prop::collection::vec(
            "name: [a-z]{0,3}|format:|\tfield:(__data_loc |__rel_loc )?(struct )?[a-z*\\[\\] ]{0,9};\
             \toffset:[0-9]{1,6};\tsize:[0-9]{1,6};(\tsigned:[01];)?|\\PC{0,30}", 0..8)
    ) {
        let text = lines.join("\n");
        match Layout::from_format("g", &text) {
            Ok(layout) => {
                let placed = Event::tracepoint(layout).place(ProgType::Tracepoint, &mut Space::new());
                prop_assert!(placed.is_ok());
            }
            Err(error) => prop_assert!(error.to_string().contains(", line "), "{error}"),
        }
    }

    #[test]
    fn a_number_is_stored_whole_or_not_at_all(number in any::<i64>(), size in prop::sample::select(vec![1u32, 2, 4, 8])) {
        let mut out = vec![0; size as usize];
        let stored = Shape::number(size, true).encode(&number.into(), &mut out).is_ok();
        let mut wide = [0; 8];
        wide[..out.len()].copy_from_slice(&out);
        let low = u64::from_le_bytes(wide);
        let bits = 8 * size;
        let signed = (low << (64 - bits)).cast_signed() >> (64 - bits);
        let comes_back = signed == number || (number >= 0 && low == number.cast_unsigned());
        prop_assert_eq!(stored && comes_back, stored);
        let fits = i128::from(number) >= -(1i128 << (bits - 1)) && i128::from(number) < 1i128 << bits;
        prop_assert_eq!(stored, fits);
    }

    #[test]
    fn what_lies_behind_the_record_is_found_by_its_location(
        a in "[a-z]{0,60}", b in prop::collection::vec(any::<u16>(), 0..40)
    ) {
        let event = Event::tracepoint(layout()).set("b", b.clone()).unwrap().set("a", &a).unwrap();
        let record = event.record();
        prop_assert_eq!(record.len() % 8, 4);
        let word = |at: usize| u32::from_le_bytes(record[at..at + 4].try_into().unwrap());
        let (at_a, at_b) = (20, 24);
        let (from, len) = ((word(at_a) & 0xffff) as usize, (word(at_a) >> 16) as usize);
        prop_assert_eq!(&record[from..from + len - 1], a.as_bytes());
        let (from, len) = ((word(at_b) & 0xffff) as usize + at_b + 4, (word(at_b) >> 16) as usize);
        let bytes: Vec<u8> = b.iter().flat_map(|n| n.to_le_bytes()).collect();
        prop_assert_eq!(&record[from..from + len], &bytes[..]);
    }

    #[test]
    fn fields_are_read_as_they_were_set(
        n in any::<i32>(), comm in "[a-z]{0,7}", a in "[ -~]{0,20}", b in prop::collection::vec(any::<u16>(), 0..9)
    ) {
        let values = [
            ("n".to_owned(), FieldValue::from(n)),
            ("comm".to_owned(), FieldValue::from(comm)),
            ("a".to_owned(), FieldValue::from(a)),
            ("b".to_owned(), FieldValue::from(b)),
        ];
        let mut event = Event::tracepoint(layout());
        for (field, value) in &values {
            event.change(field, value).unwrap();
        }
        prop_assert_eq!(layout().values(&event.record()), values);
    }

    #[test]
    fn any_packet_comes_back_or_is_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        for prog_type in ProgType::ALL.iter().copied() {
            let mut space = Space::new();
            let event = Event::packet(bytes.clone());
            let Ok(placed) = event.place(prog_type, &mut space) else {
                continue;
            };
            let back = placed.packet_bytes(&space).unwrap();
            prop_assert!(bytes.ends_with(&back), "{}", prog_type.name());
            prop_assert!(bytes.len() - back.len() <= 14);
            placed.remove(&mut space);
        }
    }
}
