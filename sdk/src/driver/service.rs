//! The thread that turns the crank while no caller does.

use super::Shared;
use crate::{Error, Result};
use gradwire_transport::Activity;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long it stays out of the way of callers before it looks whether they are gone.
const ASIDE: Duration = Duration::from_millis(20);

pub(super) fn spawn(shared: &Arc<Shared>) -> Result<JoinHandle<()>> {
    let shared = shared.clone();
    std::thread::Builder::new()
        .name("gradwire".to_owned())
        .spawn(move || serve(&shared))
        .map_err(|error| Error::System(format!("no thread could be started: {error}").into()))
}

fn serve(shared: &Shared) {
    let mut core = shared.lock();
    while !shared.stop.load(Ordering::SeqCst) {
        let busy_callers = shared.callers.load(Ordering::Relaxed) > 0;
        if busy_callers || !shared.sleeper.claim_for_service() {
            core = core.wait(&shared.handed, ASIDE);
            continue;
        }
        if core.turn(Instant::now()) == Activity::Idle
            && !shared.stop.load(Ordering::SeqCst)
            && core.prepare_sleep()
        {
            let deadline = core.deadline();
            core.sleeps_until = deadline;
            drop(core);
            shared.sleeper.sleep(deadline);
            shared.sleeper.leave();
            core = shared.lock();
        } else {
            // Callers come first: the lock is not fair by itself.
            drop(core);
            shared.sleeper.leave();
            std::thread::yield_now();
            core = shared.lock();
        }
        if shared.waiting.load(Ordering::Relaxed) > 0 {
            shared.handed.notify_all();
        }
    }
}
