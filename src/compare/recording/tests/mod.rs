//! The laws of the file: what is written comes back, damage never goes unseen, reading
//! streams.
