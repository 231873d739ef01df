//! What the processes of a job know and nobody else does.
#![forbid(unsafe_code)]

use crate::{Error, Result};
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use zeroize::Zeroizing;

/// The key with which the processes of a job prove to each other that they belong to it.
///
/// It is overwritten when dropped and never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct JobSecret(Zeroizing<[u8; 32]>);

impl JobSecret {
    /// A secret of these bytes.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// A fresh one from the operating system.
    pub fn random() -> Result<Self> {
        random().map(Self::from_bytes)
    }

    /// Reads the secret of a job from a file that only its owner may read.
    ///
    /// Any content of 16 to 4096 bytes will do; white space at the end does not count.
    pub fn from_file(path: &Path) -> Result<Self> {
        let refuse = |reason: String| {
            Error::Bootstrap(Arc::from(format!("the secret file {} {reason}", path.display())))
        };
        let file = File::open(path).map_err(|error| refuse(format!("cannot be opened: {error}")))?;
        let metadata = file.metadata().map_err(|error| refuse(format!("cannot be examined: {error}")))?;
        if !metadata.is_file() {
            return Err(refuse("is not a regular file".into()));
        }
        let mode = metadata.mode() & 0o777;
        if mode & 0o077 != 0 {
            let remedy = format!("chmod 600 {}", path.display());
            return Err(refuse(format!("may be used by others than its owner (mode {mode:o}): {remedy}")));
        }
        let mut content = Zeroizing::new(Vec::with_capacity(LONGEST + 1));
        file.take(LONGEST as u64 + 1)
            .read_to_end(&mut content)
            .map_err(|error| refuse(format!("cannot be read: {error}")))?;
        let content = content.trim_ascii_end();
        if !(SHORTEST..=LONGEST).contains(&content.len()) {
            let len = content.len();
            return Err(refuse(format!(
                "has {len} bytes, but needs {SHORTEST} to {LONGEST} hard to guess ones"
            )));
        }
        let digest = Sha256::new().chain_update(b"gradwire secret file\0").chain_update(content).finalize();
        Ok(Self::from_bytes(digest.into()))
    }

    /// The bytes, for a key.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Another secret that follows from this one, the purpose and the context, and does not reveal it.
    pub fn derive(&self, purpose: &str, context: &[u8]) -> Self {
        Self::from_bytes(self.proof(purpose, &[context]))
    }

    /// What only a holder of this secret can compute from these parts.
    ///
    /// The parts are joined: all but one must have a fixed length for the purpose.
    pub(crate) fn proof(&self, purpose: &str, parts: &[&[u8]]) -> [u8; 32] {
        self.authenticator(purpose, parts).finalize().into_bytes().into()
    }

    /// Whether `proof` is that of these parts, in a time that does not depend on where it differs.
    pub(crate) fn proves(&self, proof: &[u8; 32], purpose: &str, parts: &[&[u8]]) -> bool {
        self.authenticator(purpose, parts).verify_slice(proof).is_ok()
    }

    fn authenticator(&self, purpose: &str, parts: &[&[u8]]) -> Hmac<Sha256> {
        let mut mac = authenticator(&self.0);
        mac.update(purpose.as_bytes());
        mac.update(&[0]);
        parts.iter().for_each(|part| mac.update(part));
        mac
    }
}

impl fmt::Debug for JobSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JobSecret(..)")
    }
}

const SHORTEST: usize = 16;
const LONGEST: usize = 4096;

/// Random bytes from the operating system.
pub(crate) fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)
        .map_err(|error| Error::System(Arc::from(format!("no random bytes from the system: {error}"))))?;
    Ok(bytes)
}

/// HMAC-SHA-256 (RFC 2104) under a key of 32 bytes, which the definition pads with zeros to a block of 64.
fn authenticator(key: &[u8; 32]) -> Hmac<Sha256> {
    let mut block = Zeroizing::new([0; 64]);
    block[..32].copy_from_slice(key);
    Hmac::new((&*block).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    fn file(name: &str, content: &[u8], mode: u32) -> std::path::PathBuf {
        let path = std::env::temp_dir().join(format!("gradwire-secret-{}-{name}", std::process::id()));
        std::fs::write(&path, content).unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        path
    }

    fn read(name: &str, content: &[u8], mode: u32) -> Result<JobSecret> {
        let path = file(name, content, mode);
        let secret = JobSecret::from_file(&path);
        std::fs::remove_file(&path).unwrap();
        secret
    }

    #[test]
    fn a_file_gives_the_same_secret_with_and_without_a_final_newline() {
        let secret = read("a", b"correct horse battery", 0o600).unwrap();
        assert_eq!(secret, read("b", b"correct horse battery\n", 0o400).unwrap());
        assert_ne!(secret, read("c", b"correct horse batterz", 0o600).unwrap());
    }

    #[test]
    fn a_file_that_others_may_read_is_refused_with_the_remedy() {
        for mode in [0o644, 0o640, 0o604, 0o620] {
            let error = read("open", b"correct horse battery", mode).unwrap_err().to_string();
            assert!(error.contains("chmod 600") && error.contains(&format!("{mode:o}")), "{error}");
        }
    }

    #[test]
    fn files_that_are_no_secret_are_refused() {
        assert!(read("short", b"fifteen bytes!!\n\n", 0o600).unwrap_err().to_string().contains("15 bytes"));
        assert!(read("long", &[b'x'; 4097], 0o600).is_err());
        assert!(JobSecret::from_file(Path::new("/nonexistent/secret")).is_err());
        assert!(JobSecret::from_file(Path::new("/dev/zero")).unwrap_err().to_string().contains("regular"));
        assert!(JobSecret::from_file(Path::new("/proc")).is_err());
    }

    #[test]
    fn a_proof_depends_on_the_secret_the_purpose_and_every_part() {
        let secret = JobSecret::from_bytes([7; 32]);
        let proof = secret.proof("join", &[b"ab", b"c"]);
        assert!(secret.proves(&proof, "join", &[b"ab", b"c"]));
        assert!(!secret.proves(&proof, "jo", &[b"ab", b"c"]));
        assert!(!secret.proves(&proof, "join", &[b"ab", b"d"]));
        assert!(!JobSecret::from_bytes([8; 32]).proves(&proof, "join", &[b"ab", b"c"]));
        let mut wrong = proof;
        wrong[31] ^= 1;
        assert!(!secret.proves(&wrong, "join", &[b"ab", b"c"]));
    }

    #[test]
    fn a_proof_is_hmac_sha_256() {
        // The key "Jefe", padded by the definition, and the message of RFC 4231, test case 2.
        let mut key = [0; 32];
        key[..4].copy_from_slice(b"Jefe");
        let tag: [u8; 32] =
            authenticator(&key).chain_update(b"what do ya want for nothing?").finalize().into_bytes().into();
        assert_eq!(tag[..8], [0x5b, 0xdc, 0xc1, 0x46, 0xbf, 0x60, 0x75, 0x4e]);
    }

    #[test]
    fn it_is_not_printed() {
        assert_eq!(format!("{:?}", JobSecret::from_bytes([65; 32])), "JobSecret(..)");
    }
}
