//! What both sides compute: hashes of logins, the proofs of the two handshakes, and the cipher of a session. Without I/O.

use aes::Aes128;
use aes::cipher::block_padding::Pkcs7;
use aes::cipher::{BlockModeDecrypt, BlockModeEncrypt, KeyIvInit};
use md5::{Digest, Md5};
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, SHA256, digest};

/// Random bytes that each side contributes to a session.
pub(super) type Seed = [u8; 16];

/// What a side shows to prove that it knows the login.
pub(super) type Proof = [u8; 32];

/// Bytes of the signature before each message.
const SIGNATURE: usize = 32;

/// How plugs hash: the newer generation binds both seeds into each proof.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Generation {
    First,
    Second,
}

/// A login as plugs keep it: never the password itself.
#[derive(Clone)]
pub(super) struct Login {
    pub(super) generation: Generation,
    hash: Vec<u8>,
}

impl Login {
    pub(super) fn new(generation: Generation, user: &str, password: &str) -> Self {
        let hash = match generation {
            Generation::First => md5(&[md5(user.as_bytes()), md5(password.as_bytes())].concat()).to_vec(),
            Generation::Second => sha256(&[&sha1(user.as_bytes()), &sha1(password.as_bytes())]).to_vec(),
        };
        Self { generation, hash }
    }

    /// What the plug answers to our seed.
    pub(super) fn proof_of_plug(&self, local: &Seed, remote: &Seed) -> Proof {
        match self.generation {
            Generation::First => sha256(&[local, &self.hash]),
            Generation::Second => sha256(&[local, remote, &self.hash]),
        }
    }

    /// What we answer to the seed of the plug.
    pub(super) fn proof_of_client(&self, local: &Seed, remote: &Seed) -> Proof {
        match self.generation {
            Generation::First => sha256(&[remote, &self.hash]),
            Generation::Second => sha256(&[remote, local, &self.hash]),
        }
    }
}

/// The keys of a session, and how many messages were sent with them.
pub(super) struct Cipher {
    key: [u8; 16],
    /// Begin of each initialisation vector; the number of the message is its end.
    vector: [u8; 12],
    signature: [u8; 28],
    number: i32,
}

impl Cipher {
    pub(super) fn new(login: &Login, local: &Seed, remote: &Seed) -> Self {
        let derived = |purpose: &[u8]| sha256(&[purpose, local, remote, &login.hash]);
        let [key, vector, signature] = [&b"lsk"[..], b"iv", b"ldk"].map(derived);
        Self { key: start(&key), vector: start(&vector), signature: start(&signature), number: i32::from_be_bytes(end(&vector)) }
    }

    /// The next message, with its number.
    pub(super) fn seal(&mut self, plain: &[u8]) -> (i32, Vec<u8>) {
        self.number = self.number.wrapping_add(1);
        let sealed = cbc::Encryptor::<Aes128>::new(&self.key.into(), &self.initial().into()).encrypt_padded_vec::<Pkcs7>(plain);
        let signature = sha256(&[&self.signature, &self.number.to_be_bytes(), &sealed]);
        (self.number, [&signature[..], &sealed].concat())
    }

    /// The answer to the last message; none when it cannot be one. What stands in its signature is not laid down anywhere, so nobody looks at it.
    pub(super) fn open(&self, message: &[u8]) -> Option<Vec<u8>> {
        let sealed = message.get(SIGNATURE..)?;
        cbc::Decryptor::<Aes128>::new(&self.key.into(), &self.initial().into()).decrypt_padded_vec::<Pkcs7>(sealed).ok()
    }

    fn initial(&self) -> [u8; 16] {
        let mut vector = [0; 16];
        vector[..12].copy_from_slice(&self.vector);
        vector[12..].copy_from_slice(&self.number.to_be_bytes());
        vector
    }
}

fn start<const N: usize>(hash: &Proof) -> [u8; N] {
    std::array::from_fn(|index| hash[index])
}

fn end(hash: &Proof) -> [u8; 4] {
    std::array::from_fn(|index| hash[hash.len() - 4 + index])
}

fn sha256(parts: &[&[u8]]) -> Proof {
    let mut hash = Proof::default();
    hash.copy_from_slice(digest(&SHA256, &parts.concat()).as_ref());
    hash
}

fn sha1(bytes: &[u8]) -> Vec<u8> {
    digest(&SHA1_FOR_LEGACY_USE_ONLY, bytes).as_ref().to_vec()
}

fn md5(bytes: &[u8]) -> [u8; 16] {
    Md5::digest(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use data_encoding::HEXLOWER;
    use proptest::prelude::*;

    const LOCAL: Seed = *b"0123456789abcdef";
    const REMOTE: Seed = *b"fedcba9876543210";

    /// Hash, proof of the plug, proof of the client, first message.
    const FIGURES: [(Generation, &str, &str, &str, &str); 2] = [
        (
            Generation::First,
            "c21e4adb8f52846079b99427a5a66cf2",
            "873f6b8d5a3000cf0ea3becab1c429c2b43342e3ad0fc60ed88659adedb1fd9a",
            "77daeb6a5c5d3371a10b7b3ab56e1f9ac9f984da65f55532f33bb40193ae04b2",
            "1458338422 19d3871ad62a454c294bb66e9d7d7c557fb6901c3aeef5ea706cdbd7d51a530f25d1ed3daee34b8e3cac3735ebb732fc0accad3385e957e31b2c7e13f1b82059",
        ),
        (
            Generation::Second,
            "869a80b96215386ab12baec550b3d1e64d0dbcb8d8fdeb96813de0a3f42ca7b3",
            "796160f0262dd628d26c8c8b0dc634a2edc94e97f8921079404371c7719d352a",
            "057bc628eceb40d574779f104712d28bc331f8c477fd761fcecb01208f02c0ef",
            "715580232 4caeecb0c8f5c59248b5f6a862f770429ae12e0dcf5e1d6634650f21e937f39b48105bb2dd02447da540b6c5a33dbd1bca3b46f76115351d34c757cf8a542e33",
        ),
    ];

    /// Figures of another implementation (the client python-kasa) for the same seeds and login.
    #[test]
    fn both_generations_compute_what_others_do() {
        for (generation, hash, plug, client, sealed) in FIGURES {
            let login = Login::new(generation, "anna@example.org", "hunter2");
            let shown =
                [login.hash.clone(), login.proof_of_plug(&LOCAL, &REMOTE).to_vec(), login.proof_of_client(&LOCAL, &REMOTE).to_vec()];
            assert_eq!(shown.map(|bytes| HEXLOWER.encode(&bytes)), [hash, plug, client]);
            let (number, message) = Cipher::new(&login, &LOCAL, &REMOTE).seal(br#"{"method":"get_device_info"}"#);
            assert_eq!(format!("{number} {}", HEXLOWER.encode(&message)), sealed);
        }
    }

    fn cipher() -> Cipher {
        Cipher::new(&Login::new(Generation::Second, "", ""), &LOCAL, &REMOTE)
    }

    #[test]
    fn numbers_go_round() {
        let mut cipher = Cipher { number: i32::MAX, ..cipher() };
        assert_eq!(cipher.seal(b"x").0, i32::MIN);
    }

    proptest! {
        #[test]
        fn what_is_sealed_opens_with_the_same_number_only(plain: Vec<u8>) {
            let mut cipher = cipher();
            let (_, message) = cipher.seal(&plain);
            let opened = cipher.open(&message);
            prop_assert_eq!(opened.as_deref(), Some(&plain[..]));
            cipher.seal(b"another");
            prop_assert_ne!(cipher.open(&message), Some(plain));
        }

        #[test]
        fn no_answer_breaks_it(message in proptest::collection::vec(any::<u8>(), 0..120)) {
            let _ = cipher().open(&message);
        }
    }
}
