//! Events as JSON objects, `{"args[2]":4096,"@comm":"dd"}`, and files of them, one a line.
//!
//! A key is a field of the event; a key that begins with `@` names the event or changes the
//! world from then on.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::time::Duration;

use serde_json::Value as Json;

use super::exit::Failure;
use super::user_memory::put_user;
use crate::vm::World;
use crate::vm::events::FieldValue;

/// An event to fire, and changes of the world before it.
#[derive(Debug, Default)]
pub(super) struct EventLine {
    /// The event; none for that of the command line.
    pub event: Option<String>,
    /// Fields, in order.
    pub fields: Vec<(String, FieldValue)>,
    world: Vec<(&'static str, Change, Json)>,
}

/// The change that a key makes to the world.
type Change = fn(&mut World, &Json) -> Result<(), String>;

/// The keys that change the world.
const WORLD: &[(&str, Change)] = &[
    ("@pid", |world, value| {
        world.task().set_pid(word(value)?);
        Ok(())
    }),
    ("@tid", |world, value| {
        world.task().set_tid(word(value)?);
        Ok(())
    }),
    ("@uid", |world, value| {
        world.task().set_uid(word(value)?);
        Ok(())
    }),
    ("@gid", |world, value| {
        world.task().set_gid(word(value)?);
        Ok(())
    }),
    ("@cgroup", |world, value| {
        let id = value.as_u64().ok_or("expected the id of a cgroup")?;
        world.task().set_cgroup_id(id);
        Ok(())
    }),
    ("@comm", |world, value| {
        let comm = value.as_str().ok_or("expected a text")?;
        world.task().set_comm(comm);
        Ok(())
    }),
    ("@cpu", |world, value| {
        let (cpu, cpus) = (word(value)?, world.cpus());
        if cpu >= cpus {
            return Err(format!("{cpu}: there are {cpus} CPUs; see --cpus"));
        }
        world.set_cpu(cpu);
        Ok(())
    }),
    ("@ns", |world, value| {
        let ns = value.as_u64().ok_or("expected a number of nanoseconds")?;
        world.clock().set_ns(ns);
        Ok(())
    }),
    ("@after", |world, value| {
        let ns = value.as_u64().ok_or("expected a number of nanoseconds")?;
        world.clock().advance(Duration::from_nanos(ns));
        Ok(())
    }),
    ("@user", |world, value| {
        let pieces = value.as_object();
        let pieces = pieces.ok_or("expected {\"ADDRESS\": \"text or hex:BYTES\"}")?;
        pieces.iter().try_for_each(|(at, value)| {
            let value = value.as_str().ok_or("expected text or hex:BYTES")?;
            put_user(world, at, value)
        })
    }),
];

/// Parses a 32-bit number.
fn word(value: &Json) -> Result<u32, String> {
    let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
    number.ok_or_else(|| format!("expected a number below 4294967296, not {value}"))
}

impl EventLine {
    fn parse(text: &str) -> Result<Self, String> {
        let json = serde_json::from_str(text).map_err(|error| format!("invalid JSON: {error}"))?;
        Self::from_json(json)
    }

    /// The event that a JSON object describes, with its keys in their order.
    ///
    /// # Errors
    /// An unknown key that begins with `@`, or a value that no field takes.
    pub fn from_json(json: Json) -> Result<Self, String> {
        let Json::Object(keys) = json else {
            return Err("expected a JSON object of fields, such as {\"args[2]\":4096}".to_owned());
        };
        let mut line = Self::default();
        for (key, value) in keys {
            if key == "@event" {
                let name = value.as_str().ok_or("@event must be a text")?;
                line.event = Some(name.to_owned());
            } else if let Some((name, change)) = WORLD.iter().find(|known| known.0 == key) {
                line.world.push((name, *change, value));
            } else if key.starts_with('@') {
                let known: Vec<_> = WORLD.iter().map(|(name, _)| *name).collect();
                return Err(format!(
                    "unknown key {key}; known are @event, {}",
                    known.join(", ")
                ));
            } else {
                let value = field_value(&value).map_err(|error| format!("field {key}: {error}"))?;
                line.fields.push((key, value));
            }
        }
        Ok(line)
    }

    /// Applies the line's changes to the world.
    pub fn change(&self, world: &mut World) -> Result<(), String> {
        let mut changes = self.world.iter();
        changes.try_for_each(|(name, change, value)| {
            change(world, value).map_err(|error| format!("{name}: {error}"))
        })
    }
}

fn field_value(value: &Json) -> Result<FieldValue, String> {
    let number = |value: &Json| {
        let signed = value.as_i64().map(i128::from);
        signed.or_else(|| value.as_u64().map(i128::from))
    };
    match value {
        Json::Bool(value) => Ok(FieldValue::from(*value)),
        // As on the command line: in an events file a text has its quotes already.
        Json::String(text) if text.starts_with("hex:") => {
            FieldValue::parse(text).map_err(|error| error.to_string())
        }
        Json::String(text) => Ok(FieldValue::from(text)),
        Json::Array(values) => {
            let numbers = values.iter().map(number).collect::<Option<Vec<_>>>();
            numbers
                .map(FieldValue::Ints)
                .ok_or("expected a list of whole numbers".to_owned())
        }
        other => match number(other) {
            Some(number) => Ok(FieldValue::Int(number)),
            None => Err(format!(
                "expected a whole number, a text or a list of numbers, not {other}"
            )),
        },
    }
}

/// The lines of a file.
pub(super) struct EventLines {
    file: String,
    number: usize,
    input: Box<dyn BufRead>,
}

impl EventLines {
    /// Opens a file, or standard input for `-`.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        let (file, input): (_, Box<dyn BufRead>) = if path.as_os_str() == "-" {
            (
                "standard input".to_owned(),
                Box::new(BufReader::new(io::stdin())),
            )
        } else {
            let file = path.display().to_string();
            let opened = File::open(path)
                .map_err(|error| Failure::bad(format!("{file}: can't be read: {error}")))?;
            (file, Box::new(BufReader::new(opened)))
        };
        Ok(Self {
            file,
            number: 0,
            input,
        })
    }

    /// Adds the file and the number of the last line read to a failure.
    pub fn at(&self, failure: Failure) -> Failure {
        match failure {
            Failure::Error { exit, text } => {
                Failure::with(exit, format!("{}:{}: {text}", self.file, self.number))
            }
            output @ Failure::Output(_) => output,
        }
    }

    /// An error in the last line read.
    pub fn error(&self, text: impl std::fmt::Display) -> Failure {
        Failure::bad(format!("{}:{}: {text}", self.file, self.number))
    }
}

impl Iterator for EventLines {
    type Item = Result<EventLine, Failure>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut text = String::new();
        loop {
            text.clear();
            self.number += 1;
            match self.input.read_line(&mut text) {
                Ok(0) => return None,
                Ok(_) if text.trim().is_empty() => {}
                Ok(_) => return Some(EventLine::parse(&text).map_err(|error| self.error(error))),
                Err(error) => return Some(Err(self.error(format!("can't be read: {error}")))),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_fields_and_the_world() {
        let text = r#"{"args[2]":4096,"filename":"/bin/ls","@pid":7,"@event":"a/b","l":[1,-2]}"#;
        let line = EventLine::parse(text).unwrap();
        assert_eq!(line.event.as_deref(), Some("a/b"));
        assert_eq!(line.fields.len(), 3);
        assert_eq!(
            line.fields[0],
            ("args[2]".to_owned(), FieldValue::Int(4096))
        );
        assert_eq!(line.fields[2].1, FieldValue::Ints(vec![1, -2]));
        let mut world = World::default();
        line.change(&mut world).unwrap();
        assert_eq!(world.task().pid(), 7);
    }

    #[test]
    fn what_is_wrong_with_a_line_is_said() {
        let error = |text| EventLine::parse(text).unwrap_err();
        assert!(error("[1]").starts_with("expected a JSON object of fields"));
        assert!(error("{").starts_with("invalid JSON: "));
        assert!(error(r#"{"@cmm":"x"}"#).contains("known are @event, @pid"));
        assert!(error(r#"{"a":1.5}"#).starts_with("field a: expected a whole number"));
        let line = EventLine::parse(r#"{"@cpu":4}"#).unwrap();
        let error = line.change(&mut World::default()).unwrap_err();
        assert_eq!(error, "@cpu: 4: there are 4 CPUs; see --cpus");
    }
}
