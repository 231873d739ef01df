//! Processors and memory.

use super::Finding;
use super::system::{System, bytes, chosen};

/// How many processors ranks of this process's control group may use, and how much of them.
pub(super) fn processors(system: &System) -> Finding {
    let allowed = system.allowed_processors;
    let online = system.text("sys/devices/system/cpu/online").map_or(allowed, |list| members(&list));
    let finding = format!("{allowed} of {online}");
    let Some(quota) = quota(system) else { return Finding::new("processors", finding) };
    let finding =
        Finding::new("processors", format!("{finding}, for {quota:.2} of them the time is granted"));
    if quota + 0.01 >= allowed as f64 {
        return finding;
    }
    finding.advised(
        format!("{allowed} busy ranks or threads are stopped for a part of each period"),
        format!(
            "start at most {:.0} ranks with one thread each, or raise the quota of the container",
            quota.max(1.0).floor()
        ),
    )
}

/// The processor time granted for each second, by the narrowest of the control groups around this process.
fn quota(system: &System) -> Option<f64> {
    let groups = system.text("proc/self/cgroup")?;
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let folders = std::path::Path::new(own).ancestors();
    let quotas = folders.filter_map(|folder| {
        let text = system.text(std::path::Path::new("sys/fs/cgroup").join(folder).join("cpu.max"))?;
        let (quota, period) = text.split_once(' ')?;
        Some(quota.parse::<f64>().ok()? / period.parse::<f64>().ok().filter(|period| *period > 0.0)?)
    });
    quotas.min_by(f64::total_cmp)
}

/// How many numbers are in a list such as `0-3,8`.
fn members(list: &str) -> usize {
    let count = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        Some(last.saturating_sub(first).saturating_add(1))
    };
    list.split(',').filter_map(count).sum()
}

pub(super) fn memory_nodes(system: &System) -> Finding {
    let nodes = system.names("sys/devices/system/node");
    let is_node =
        |name: &&String| name.strip_prefix("node").is_some_and(|number| number.parse::<u32>().is_ok());
    Finding::new("memory nodes", nodes.iter().filter(is_node).count().max(1).to_string())
}

/// A network card reads and writes registered memory by itself: the kernel keeps it in place, up to this limit.
pub(super) fn locked_memory(system: &System) -> Finding {
    const TOPIC: &str = "locked memory";
    const ENOUGH: u64 = 1 << 30;
    let Some(limit) = system.locked_memory else { return Finding::new(TOPIC, "without limit") };
    let finding = Finding::new(TOPIC, format!("at most {}", bytes(limit)));
    if limit >= ENOUGH || system.names("sys/class/infiniband").is_empty() {
        return finding;
    }
    finding.advised(
        "buffers may not be registered with the RDMA device of this machine",
        "ulimit -l unlimited, memlock in /etc/security/limits.conf, or LimitMEMLOCK=infinity of the service",
    )
}

/// A peer takes a few descriptors: a connection, and over shared memory a segment and a bell.
pub(super) fn open_files(system: &System) -> Finding {
    const TOPIC: &str = "open files";
    const ENOUGH: u64 = 1024;
    match system.open_files {
        None => Finding::new(TOPIC, "without limit"),
        Some(limit) if limit >= ENOUGH => Finding::new(TOPIC, format!("at most {limit}")),
        Some(limit) => Finding::new(TOPIC, format!("at most {limit}")).advised(
            "a job of some hundred ranks runs out of descriptors",
            format!("ulimit -n {ENOUGH}, or nofile in /etc/security/limits.conf"),
        ),
    }
}

pub(super) fn huge_pages(system: &System) -> Finding {
    const FOLDER: &str = "sys/kernel/mm/hugepages";
    let pools = system.names(FOLDER).into_iter().filter_map(|name| {
        let size: u64 = name.strip_prefix("hugepages-")?.strip_suffix("kB")?.parse().ok()?;
        let count = |file| system.number::<u64>(format!("{FOLDER}/{name}/{file}")).unwrap_or(0);
        let (free, all) = (count("free_hugepages"), count("nr_hugepages"));
        (all > 0).then(|| format!("{free} of {all} of {} free", bytes(size << 10)))
    });
    let pools: Vec<String> = pools.collect();
    let pools = if pools.is_empty() { "none reserved".to_owned() } else { pools.join(", ") };
    let setting = |file| {
        let text = system.text(format!("sys/kernel/mm/transparent_hugepage/{file}"));
        text.as_deref().and_then(chosen).unwrap_or("unknown").to_owned()
    };
    let (private, shared) = (setting("enabled"), setting("shmem_enabled"));
    Finding::new(
        "huge pages",
        format!("{pools}; by themselves: private memory {private}, shared memory {shared}"),
    )
}

/// Whether processes of one user may read each other's memory by system call.
pub(super) fn cross_memory_attach(system: &System) -> Finding {
    const TOPIC: &str = "cross-memory attach";
    match system.number::<u8>("proc/sys/kernel/yama/ptrace_scope").unwrap_or(0) {
        0 => Finding::new(TOPIC, "allowed between processes of one user"),
        1 | 2 if system.is_root => Finding::new(TOPIC, "allowed to root"),
        scope => Finding::new(TOPIC, format!("not allowed (kernel.yama.ptrace_scope is {scope})")),
    }
}
