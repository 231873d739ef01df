//! The address: the name of the listening socket in the kernel's abstract namespace. No file stands for it.

use gradwire_transport::Address;
use rustix::io::Errno;
use rustix::net::SocketAddrUnix;

/// Changes with every incompatible change of the handshake, the ring or the control frames.
pub(crate) const VERSION: u8 = 1;

/// A random name: two jobs, two users or two incarnations of a rank never share one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Name(pub(crate) [u8; Self::LEN]);

impl Name {
    pub(crate) const LEN: usize = 16;

    pub(crate) fn random() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; Self::LEN];
        getrandom::fill(&mut bytes)?;
        Ok(Self(bytes))
    }

    pub(crate) fn from_address(address: &Address) -> Result<Self, &'static str> {
        let [version, name @ ..] = address.as_bytes() else { return Err("it is empty") };
        if *version != VERSION {
            return Err("it is of another version");
        }
        name.try_into().map(Self).map_err(|_| "it has another length")
    }

    pub(crate) fn to_address(self) -> Address {
        let mut bytes = [VERSION; 1 + Self::LEN];
        bytes[1..].copy_from_slice(&self.0);
        Address::from_bytes(&bytes).unwrap_or_else(|| unreachable!("17 bytes are a short address"))
    }

    pub(crate) fn to_socket_address(self) -> Result<SocketAddrUnix, Errno> {
        let mut text = *b"gradwire-shm-00000000000000000000000000000000";
        let digits = &mut text[b"gradwire-shm-".len()..];
        for (pair, byte) in digits.chunks_exact_mut(2).zip(self.0) {
            pair[0] = b"0123456789abcdef"[usize::from(byte >> 4)];
            pair[1] = b"0123456789abcdef"[usize::from(byte & 15)];
        }
        SocketAddrUnix::new_abstract_name(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::{Name, VERSION};
    use gradwire_transport::Address;

    #[test]
    fn addresses_survive_the_way_through_bytes_and_bad_ones_are_refused() {
        let name = Name([7; Name::LEN]);
        assert_eq!(Name::from_address(&name.to_address()), Ok(name));
        for bad in [&[][..], &[VERSION], &[VERSION; 16], &[VERSION; 18], &[VERSION + 1; 17]] {
            let address = Address::from_bytes(bad).expect("short");
            assert!(Name::from_address(&address).is_err(), "{bad:?}");
        }
    }
}
