//! Proofs of knowing the job's secret.

use crate::address::{Name, VERSION};
use crate::frame::Proof;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Who proves: part of what is authenticated, so that no proof can be sent back to its maker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    Dialler = 1,
    Listener = 2,
}

/// One handshake as both sides see it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transcript {
    pub(crate) dialler: Name,
    pub(crate) listener: Name,
    pub(crate) dialler_challenge: Proof,
    pub(crate) listener_challenge: Proof,
}

impl Transcript {
    /// The proof of `role`. Without a secret everyone can make it: then only the user's identity protects.
    pub(crate) fn prove(&self, secret: Option<&[u8; 32]>, role: Role) -> Proof {
        self.authenticate(secret, role).finalize().into_bytes().into()
    }

    /// Whether `proof` is that of `role`, compared in constant time.
    pub(crate) fn verify(&self, secret: Option<&[u8; 32]>, role: Role, proof: &Proof) -> bool {
        self.authenticate(secret, role).verify_slice(proof).is_ok()
    }

    fn authenticate(&self, secret: Option<&[u8; 32]>, role: Role) -> Hmac<Sha256> {
        let key = secret.map_or(&b""[..], |secret| secret);
        let mac = <Hmac<Sha256> as KeyInit>::new_from_slice(key);
        let mut mac = mac.unwrap_or_else(|_| unreachable!("HMAC takes keys of any length"));
        mac.update(b"gradwire shm handshake");
        mac.update(&[VERSION, u8::from(secret.is_some()), role as u8]);
        mac.update(&self.dialler.0);
        mac.update(&self.listener.0);
        mac.update(&self.dialler_challenge);
        mac.update(&self.listener_challenge);
        mac
    }
}

#[cfg(test)]
mod tests {
    use super::{Role, Transcript};
    use crate::address::Name;

    #[test]
    fn a_proof_holds_for_one_secret_role_and_transcript_only() {
        let transcript = Transcript {
            dialler: Name([1; 16]),
            listener: Name([2; 16]),
            dialler_challenge: [3; 32],
            listener_challenge: [4; 32],
        };
        let proof = transcript.prove(Some(&[9; 32]), Role::Dialler);
        assert!(transcript.verify(Some(&[9; 32]), Role::Dialler, &proof));
        assert!(!transcript.verify(Some(&[8; 32]), Role::Dialler, &proof));
        assert!(!transcript.verify(None, Role::Dialler, &proof));
        assert!(!transcript.verify(Some(&[9; 32]), Role::Listener, &proof));
        let replayed = Transcript { listener_challenge: [5; 32], ..transcript };
        assert!(!replayed.verify(Some(&[9; 32]), Role::Dialler, &proof));
    }
}
