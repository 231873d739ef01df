//! Machines that are a few files each.

use super::system::System;
use super::{Finding, machine, network};
use std::fs;
use std::path::PathBuf;

/// A machine of these files, removed at the end.
struct Machine(System);

impl Machine {
    fn new(name: &str, files: &[(&str, &str)]) -> Self {
        let root: PathBuf =
            std::env::temp_dir().join(format!("gradwire-doctor-{}-{name}", std::process::id()));
        fs::create_dir_all(&root).unwrap();
        for (path, content) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("{content}\n")).unwrap();
        }
        let (locked_memory, open_files) = (Some(8 << 20), Some(256));
        Self(System { root, allowed_processors: 4, locked_memory, open_files, is_root: false })
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0.root);
    }
}

fn problem(finding: &Finding) -> &str {
    finding.advice.as_ref().map_or("", |advice| &advice.problem)
}

#[test]
fn the_narrowest_quota_counts() {
    let files = [
        ("sys/devices/system/cpu/online", "0-3,6,8-10"),
        ("proc/self/cgroup", "1:name=systemd:/x\n0::/pod/job"),
        ("sys/fs/cgroup/cpu.max", "max 100000"),
        ("sys/fs/cgroup/pod/cpu.max", "150000 100000"),
        ("sys/fs/cgroup/pod/job/cpu.max", "300000 100000"),
    ];
    let narrow = machine::processors(&Machine::new("narrow", &files).0);
    assert_eq!(narrow.found, "4 of 8, for 1.50 of them the time is granted");
    assert!(narrow.advice.unwrap().remedy.starts_with("start at most 1 ranks"));

    let wide = machine::processors(&Machine::new("wide", &files[..3]).0);
    assert_eq!((wide.found.as_str(), wide.advice), ("4 of 8", None));
    let bare = machine::processors(&Machine::new("bare", &[]).0);
    assert_eq!((bare.found.as_str(), bare.advice), ("4 of 4", None));
}

#[test]
fn little_locked_memory_matters_where_there_is_rdma() {
    let without = machine::locked_memory(&Machine::new("ethernet", &[]).0);
    assert_eq!((without.found.as_str(), problem(&without)), ("at most 8 MiB", ""));

    let files = [
        ("sys/class/infiniband/mlx5_0/ports/1/rate", "100 Gb/sec (4X EDR)"),
        ("sys/class/infiniband/mlx5_0/device/numa_node", "1"),
    ];
    let mut machine = Machine::new("infiniband", &files);
    assert!(problem(&machine::locked_memory(&machine.0)).contains("may not be registered"));
    assert_eq!(network::rdma_devices(&machine.0).found, "mlx5_0 at 100 Gb/sec (4X EDR), memory node 1");
    machine.0.locked_memory = None;
    assert_eq!(problem(&machine::locked_memory(&machine.0)), "");
}

#[test]
fn few_descriptors_are_warned_of() {
    let mut machine = Machine::new("descriptors", &[]);
    assert!(problem(&machine::open_files(&machine.0)).contains("descriptors"));
    machine.0.open_files = Some(1024);
    assert_eq!(machine::open_files(&machine.0), Finding::new("open files", "at most 1024"));
}

#[test]
fn huge_pages_and_memory_nodes_are_counted() {
    let files = [
        ("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "64"),
        ("sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "60"),
        ("sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages", "0"),
        ("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never"),
        ("sys/devices/system/node/node0/cpulist", "0-3"),
        ("sys/devices/system/node/node1/cpulist", "4-7"),
        ("sys/devices/system/node/online", "0-1"),
    ];
    let machine = Machine::new("pages", &files);
    let expected = "60 of 64 of 2 MiB free; by themselves: private memory madvise, shared memory unknown";
    assert_eq!(machine::huge_pages(&machine.0).found, expected);
    assert_eq!(machine::memory_nodes(&machine.0).found, "2");
}

#[test]
fn reading_the_memory_of_others_may_be_forbidden() {
    let mut machine = Machine::new("yama", &[("proc/sys/kernel/yama/ptrace_scope", "1")]);
    assert!(machine::cross_memory_attach(&machine.0).found.starts_with("not allowed"));
    machine.0.is_root = true;
    assert_eq!(machine::cross_memory_attach(&machine.0).found, "allowed to root");
}

#[test]
fn interfaces_that_are_down_are_left_out() {
    let files = [
        ("sys/class/net/lo/mtu", "65536"),
        ("sys/class/net/eth0/mtu", "9000"),
        ("sys/class/net/eth0/speed", "10000"),
        ("sys/class/net/eth0/device/numa_node", "0"),
        ("sys/class/net/eth1/operstate", "down"),
        ("sys/class/net/veth/speed", "-1"),
    ];
    let found = network::interfaces(&Machine::new("interfaces", &files).0);
    assert_eq!(found.found, "eth0 at 10000 Mbit/s, MTU 9000, memory node 0; veth");
    let alone = network::interfaces(&Machine::new("loopback", &files[..1]).0);
    assert_eq!(problem(&alone), "no other host can be reached");
}

#[test]
fn advice_stands_under_the_finding() {
    let finding = Finding::new("open files", "at most 8").advised("few", "raise it");
    assert_eq!(finding.to_string(), "open files: at most 8\n  warning: few\n  remedy: raise it");
}
