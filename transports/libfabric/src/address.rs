//! What `address()` hands out: the provider, and where the connections that watch over peers are made. Where the endpoint
//! itself is found is told over such a connection, once both sides have proven who they are.

use gradwire_transport::Address;

const MAGIC: &[u8; 8] = b"gw-fab\x01\0";

/// `None` when it is longer than an address may be.
pub(crate) fn encode(provider: &str, control: &Address) -> Option<Address> {
    let len = u8::try_from(provider.len()).ok()?;
    let bytes = [MAGIC.as_slice(), &[len], provider.as_bytes(), control.as_bytes()].concat();
    Address::from_bytes(&bytes)
}

/// The control address of a peer that uses the same provider.
pub(crate) fn decode(provider: &str, address: &Address) -> Result<Address, &'static str> {
    let rest = address.as_bytes().strip_prefix(MAGIC).ok_or("it belongs to another transport or version")?;
    let (len, rest) = rest.split_first().ok_or("it is too short")?;
    let (theirs, control) = rest.split_at_checked(usize::from(*len)).ok_or("it is too short")?;
    if theirs != provider.as_bytes() {
        return Err("its endpoint uses another provider: set GRADWIRE_FABRIC_PROVIDER alike everywhere");
    }
    Address::from_bytes(control).ok_or("it is too long")
}

/// The file in the system's shared memory that an endpoint of the `shm` provider is, by the name that the provider gave it.
pub(crate) fn file_of(name: &[u8]) -> Option<&str> {
    let end = name.iter().position(|byte| *byte == 0)?;
    let file = std::str::from_utf8(&name[..end]).ok()?.strip_prefix("fi_shm://")?;
    let is_ours = file.split(':').next() == Some(std::process::id().to_string().as_str());
    (is_ours && !file.contains('/')).then_some(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_survives_the_journey_to_the_same_provider_only() {
        let control = Address::from_bytes(b"somewhere").expect("short");
        let address = encode("tcp;ofi_rxm", &control).expect("short");
        assert_eq!(decode("tcp;ofi_rxm", &address), Ok(control));
        assert!(decode("tcp", &address).is_err_and(|reason| reason.contains("another provider")));
        for len in 0..20 {
            let short = Address::from_bytes(&address.as_bytes()[..len]).expect("short");
            assert!(decode("tcp;ofi_rxm", &short).is_err(), "{len}");
        }
    }

    #[test]
    fn only_files_of_this_process_are_its_own() {
        let own = format!("{}:0:3", std::process::id());
        assert_eq!(file_of(format!("fi_shm://{own}\0").as_bytes()), Some(own.as_str()));
        for other in ["fi_shm://1:0:3\0", "fi_shm://\0", "fi_sockaddr://\0", "", "fi_shm://1"] {
            assert_eq!(file_of(other.as_bytes()), None, "{other}");
        }
        assert_eq!(file_of(format!("fi_shm://{}/../x\0", std::process::id()).as_bytes()), None);
        assert_eq!(file_of(format!("fi_shm://{own}/../x\0").as_bytes()), None);
    }
}
