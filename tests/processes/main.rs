//! Jobs of real processes: ranks that are killed, stopped, leave, panic, wait or are rationed, ranks on two hosts, and MPI's launchers.

mod fabric;
mod hosts;
mod job;
mod killing;
mod launchers;
mod leaving;
mod ration;
mod remote;
mod stopping;
mod waiting;
