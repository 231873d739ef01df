//! Ranks in a control group that grants them a part of the machine's time. Skipped where this process may make none.

use crate::job::Job;
use gradwire::launch::Ending;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The period in which a group gets its time, in microseconds.
const PERIOD: u64 = 100_000;

/// A control group for processor time. Gone when this is dropped; by then its processes must have ended.
struct Group(PathBuf);

impl Group {
    /// With so many hundredths of one processor. `None`, and a line that says so, where that is not possible.
    fn new(test: &str, hundredths: u64) -> Option<Self> {
        let name = format!("gradwire-{}-{test}", std::process::id());
        let quota = PERIOD * hundredths / 100;
        // Version 2 has one file in one hierarchy, version 1 one of each.
        for (hierarchy, file, text) in [
            ("/sys/fs/cgroup", "cpu.max", format!("{quota} {PERIOD}")),
            ("/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", quota.to_string()),
        ] {
            let folder = Path::new(hierarchy).join(&name);
            if std::fs::create_dir(&folder).is_ok() {
                let group = Self(folder);
                // In a folder that is no control group there is no such file, and none can be made.
                let has_file = std::fs::exists(group.0.join(file)).is_ok_and(|has| has);
                if has_file && std::fs::write(group.0.join(file), &text).is_ok() {
                    return Some(group);
                }
            }
        }
        let why = "needs a control group for processor time, and the right to make one";
        let _ = writeln!(std::io::stderr(), "skipped ration::{test}: {why}");
        None
    }

    /// In how many periods its processes were stopped because their time had been used up.
    fn stopped(&self) -> u64 {
        let text = std::fs::read_to_string(self.0.join("cpu.stat")).unwrap();
        let count = text.lines().find_map(|line| line.strip_prefix("nr_throttled "));
        count.and_then(|count| count.parse().ok()).unwrap()
    }

    /// A job whose ranks are in the group from their first instruction on.
    fn job(&self, ranks: usize, part: &[&str], transport: &str) -> Job {
        let members = self.0.join("cgroup.procs").to_string_lossy().into_owned();
        let joins = r#"echo $$ > "$1" && shift && exec "$@""#;
        let arguments = [&["-c", joins, "sh", &members, crate::job::RANK], part].concat();
        Job::start_program("sh", ranks, &arguments, &[("GRADWIRE_TRANSPORT", transport)])
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// Case 88: four ranks with a fifth of a processor. Who waits leaves the time to the others: if one spun, the group would be
/// stopped in nearly each of the 30 periods that the others wait for rank 0.
#[test]
fn ranks_that_wait_do_not_use_up_the_time_of_their_group() {
    for transport in ["shm", "tcp"] {
        let Some(group) = Group::new("waiting", 20) else { return };
        let mut job = group.job(4, &["idle"], transport);
        job.set_off(4);
        let before = group.stopped();
        for event in job.await_all("took", 4) {
            let (took, threads) = event.text.split_once(' ').unwrap();
            let took: u64 = took.parse().unwrap();
            assert!(took < 30_000_000, "rank {} over {transport}: {took} ns in three seconds", event.rank);
            assert_eq!(threads, "2", "rank {} over {transport}", event.rank);
        }
        let stopped = group.stopped() - before;
        assert!(stopped < 10, "stopped in {stopped} periods over {transport}");
        assert_eq!(job.end().endings, [Ending::Code(0); 4]);
    }
}

/// Case 88: ranks that are stopped again and again, all at once or one in the middle of a call, come to right results; nobody
/// takes them for dead.
#[test]
fn ranks_that_are_stopped_again_and_again_are_not_lost() {
    for transport in ["shm", "tcp"] {
        let Some(group) = Group::new("stopped", 20) else { return };
        let mut job = group.job(4, &["crowd"], transport);
        job.set_off(4);
        job.await_all("took", 4);
        assert!(group.stopped() > 0, "the group was never stopped over {transport}");
        assert_eq!(job.end().endings, [Ending::Code(0); 4]);
    }
}
