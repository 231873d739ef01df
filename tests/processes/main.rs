//! Jobs of real processes: ranks that are killed, stopped, leave or panic, and MPI's launchers.

mod job;
mod killing;
mod launchers;
mod leaving;
mod stopping;
