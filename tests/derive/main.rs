//! The derives as users see them. No code here may be unsafe, so neither is what the derives write.

#![forbid(unsafe_code)]

mod enums;
mod equivalence;
mod hygiene;
mod layout;
mod models;
mod moved;
mod schema_text;
mod ui;
mod wire;
