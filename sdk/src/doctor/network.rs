//! What leads to other hosts.

use super::Finding;
use super::system::System;

const INTERFACES: &str = "sys/class/net";
const RDMA: &str = "sys/class/infiniband";

pub(super) fn interfaces(system: &System) -> Finding {
    const TOPIC: &str = "interfaces";
    let names = system.names(INTERFACES);
    let of_host = |name: &&String| name.as_str() != "lo";
    let described: Vec<String> =
        names.iter().filter(of_host).filter_map(|name| interface(system, name)).collect();
    if described.is_empty() {
        return Finding::new(TOPIC, "none but loopback")
            .advised("no other host can be reached", "fine for a job on this host alone");
    }
    Finding::new(TOPIC, described.join("; "))
}

/// `eth0 at 10000 Mbit/s, MTU 9000, memory node 0`; nothing of an interface that is down.
fn interface(system: &System, name: &str) -> Option<String> {
    let of = |file: &str| system.text(format!("{INTERFACES}/{name}/{file}"));
    if of("operstate").is_some_and(|state| state == "down") {
        return None;
    }
    let mut description = name.to_owned();
    // Virtual interfaces know no speed: an error, or a number below 0.
    if let Some(speed) = of("speed").and_then(|speed| speed.parse::<u64>().ok()) {
        description += &format!(" at {speed} Mbit/s");
    }
    if let Some(mtu) = of("mtu") {
        description += &format!(", MTU {mtu}");
    }
    Some(description + &node(system, &format!("{INTERFACES}/{name}")))
}

pub(super) fn rdma_devices(system: &System) -> Finding {
    let devices = system.names(RDMA).into_iter().map(|name| {
        let rate = system.text(format!("{RDMA}/{name}/ports/1/rate"));
        let rate = rate.map_or_else(String::new, |rate| format!(" at {rate}"));
        format!("{name}{rate}{}", node(system, &format!("{RDMA}/{name}")))
    });
    let devices: Vec<String> = devices.collect();
    Finding::new("RDMA devices", if devices.is_empty() { "none".to_owned() } else { devices.join("; ") })
}

/// The memory that a card is near to, where the machine has several.
fn node(system: &System, device: &str) -> String {
    let node = system.number::<u32>(format!("{device}/device/numa_node"));
    node.map_or_else(String::new, |node| format!(", memory node {node}"))
}

pub(super) fn congestion_control(system: &System) -> Finding {
    let name = system.text("proc/sys/net/ipv4/tcp_congestion_control");
    Finding::new("congestion control", name.as_deref().unwrap_or("unknown"))
}
