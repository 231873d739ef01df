//! From text to settings. An error says what is allowed.

use super::{Interface, MAX_RANKS, MeetingAddress, TransportChoice};
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::time::Duration;
use tracing::level_filters::LevelFilter;

pub(super) const SIZE: &str = "a whole number from 1 to 65536";
pub(super) const DURATION: &str =
    "a duration such as 500ms, 30s, 5m or 1h, more than zero and at most a year";
pub(super) const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

const RANK: &str = "a whole number from 0 to 65535";
const PORT_RANGE: &str = "a port or a range within 0..65535 such as 29500-29540, lowest first; 0 means any";
const ADDRESS: &str = "host:port with a port from 1 to 65535, [IPv6 address]:port, or unix:NAME with a name of at most 100 bytes";
const INTERFACES: &str = "interface names or networks, separated by commas, such as eth0,10.0.0.0/8";

pub(super) fn log(text: &str) -> Result<LevelFilter, String> {
    Ok(match text {
        "off" => LevelFilter::OFF,
        "error" => LevelFilter::ERROR,
        "warn" => LevelFilter::WARN,
        "info" => LevelFilter::INFO,
        "debug" => LevelFilter::DEBUG,
        "trace" => LevelFilter::TRACE,
        _ => return Err("off, error, warn, info, debug or trace".into()),
    })
}

/// A whole number and a unit: `500ms`, `30s`, `5m`, `1h`. An error says what is allowed.
pub fn duration(text: &str) -> Result<Duration, String> {
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let milliseconds = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60 * 1000,
        "h" => 3600 * 1000,
        _ => return Err(DURATION.into()),
    };
    let duration = number.parse::<u64>().ok().and_then(|number| number.checked_mul(milliseconds));
    match duration.map(Duration::from_millis) {
        Some(duration) if !duration.is_zero() && duration <= LONGEST => Ok(duration),
        _ => Err(DURATION.into()),
    }
}

pub(super) fn transport(text: &str) -> Result<TransportChoice, String> {
    Ok(match text {
        "auto" => TransportChoice::Auto,
        "shm" => TransportChoice::Shm,
        "libfabric" => TransportChoice::Libfabric,
        "tcp" => TransportChoice::Tcp,
        _ => return Err("auto, shm, libfabric or tcp".into()),
    })
}

pub(super) fn provider(text: &str) -> Result<String, String> {
    let is_name = !text.is_empty() && text.len() < 256 && !text.contains('\0');
    if is_name { Ok(text.to_owned()) } else { Err("a provider's name, as fi_info lists it".into()) }
}

pub(super) fn interfaces(text: &str) -> Result<Vec<Interface>, String> {
    text.split(',').map(|item| interface(item.trim()).ok_or_else(|| INTERFACES.to_owned())).collect()
}

fn interface(item: &str) -> Option<Interface> {
    let Some((address, prefix)) = item.split_once('/') else {
        return (!item.is_empty()).then(|| Interface::Name(item.to_owned()));
    };
    let address: IpAddr = address.parse().ok()?;
    let prefix: u8 = prefix.parse().ok()?;
    let widest = if address.is_ipv4() { 32 } else { 128 };
    (prefix <= widest).then_some(Interface::Network { address, prefix })
}

/// `None` is any port.
pub(super) fn port_range(text: &str) -> Result<Option<RangeInclusive<u16>>, String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    match (port(first), port(last)) {
        (Some(0), Some(0)) => Ok(None),
        (Some(first), Some(last)) if 0 < first && first <= last => Ok(Some(first..=last)),
        _ => Err(PORT_RANGE.into()),
    }
}

/// Digits only: `+1` is no port.
fn port(text: &str) -> Option<u16> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

pub(super) fn text(text: &str) -> Result<String, String> {
    Ok(text.to_owned())
}

pub(super) fn rank(text: &str) -> Result<usize, String> {
    number(text).filter(|&rank| rank < MAX_RANKS).ok_or_else(|| RANK.into())
}

pub(super) fn size(text: &str) -> Result<usize, String> {
    number(text).filter(|size| (1..=MAX_RANKS).contains(size)).ok_or_else(|| SIZE.into())
}

/// Digits only.
pub(crate) fn number(text: &str) -> Option<usize> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

pub(crate) fn address(text: &str) -> Result<MeetingAddress, String> {
    meeting_address(text).ok_or_else(|| ADDRESS.into())
}

fn meeting_address(text: &str) -> Option<MeetingAddress> {
    if let Some(name) = text.strip_prefix("unix:") {
        return (1..=100).contains(&name.len()).then(|| MeetingAddress::Unix(name.to_owned()));
    }
    let (host, port_text) = text.rsplit_once(':')?;
    let bracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let host = match bracketed {
        Some(host) if host.contains(':') => host,
        None if !host.contains([':', '[', ']', '/', ' ']) => host,
        _ => return None,
    };
    let port = port(port_text).filter(|&port| port > 0)?;
    (!host.is_empty()).then(|| MeetingAddress::Tcp { host: host.to_owned(), port })
}
