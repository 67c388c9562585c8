//! How the bytes of a file rest: sealed in chunks, so that a part of it can be read alone.
//!
//! Every blob has a key of its own, which seals nothing else. A chunk's nonce is its number and
//! whether it is the last: chunks that were moved, left out or cut off do not open. What is left of
//! an upload that was broken off is thrown away with its key, so no nonce is used twice.

use super::FileId;
use crate::error::{Error, Result};
use crate::secret::{Secret, hex, random_bytes};
use chacha20poly1305::aead::{AeadInOut, KeyInit};
use chacha20poly1305::{ChaCha20Poly1305, Key, Nonce};
use zeroize::Zeroizing;

const KEY_BYTES: usize = 32;
const TAG_BYTES: usize = 16;
const NONCE_BYTES: usize = 12;

/// Bytes of a file that are sealed together: what a transfer holds in memory at a time.
pub const CHUNK_BYTES: usize = 64 * 1024;
/// The same, sealed.
pub const SEALED_CHUNK_BYTES: usize = CHUNK_BYTES + TAG_BYTES;

/// The key of one blob.
pub struct BlobKey {
    bytes: Zeroizing<[u8; KEY_BYTES]>,
    blob: FileId,
}

impl BlobKey {
    /// A new one for a new blob.
    pub fn mint(blob: FileId) -> Self {
        Self { bytes: Zeroizing::new(random_bytes()), blob }
    }

    /// As text, to be sealed with the master key.
    pub fn to_secret(&self) -> Secret {
        Secret::new(hex(&*self.bytes))
    }

    /// The key of a blob, from what [`BlobKey::to_secret`] gave.
    pub fn from_secret(blob: FileId, secret: &Secret) -> Result<Self> {
        let damaged = || Error::internal("the key of a file is damaged");
        let text = secret.expose().as_bytes();
        if text.len() != KEY_BYTES * 2 {
            return Err(damaged());
        }
        let mut bytes = Zeroizing::new([0; KEY_BYTES]);
        for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
            let pair = std::str::from_utf8(pair).map_err(|_| damaged())?;
            *byte = u8::from_str_radix(pair, 16).map_err(|_| damaged())?;
        }
        Ok(Self { bytes, blob })
    }

    fn cipher(&self) -> ChaCha20Poly1305 {
        ChaCha20Poly1305::new(&Key::from(*self.bytes))
    }

    /// Seals a chunk in its place.
    pub fn seal(&self, number: u64, is_last: bool, chunk: &mut Vec<u8>) -> Result<()> {
        let sealed = self.cipher().encrypt_in_place(&nonce(number, is_last), self.bound_to(), chunk);
        sealed.map_err(|_| Error::internal("a file could not be sealed"))
    }

    /// Opens a chunk in its place.
    pub fn open(&self, number: u64, is_last: bool, chunk: &mut Vec<u8>) -> Result<()> {
        let opened = self.cipher().decrypt_in_place(&nonce(number, is_last), self.bound_to(), chunk);
        opened.map_err(|_| Error::internal("a stored file could not be opened: it was damaged or moved"))
    }

    fn bound_to(&self) -> &[u8] {
        self.blob.as_str().as_bytes()
    }
}

fn nonce(number: u64, is_last: bool) -> Nonce {
    let mut bytes = [0; NONCE_BYTES];
    bytes[0] = u8::from(is_last);
    bytes[NONCE_BYTES - 8..].copy_from_slice(&number.to_be_bytes());
    Nonce::from(bytes)
}

/// Chunks of a file of so many bytes. An empty one has an empty chunk.
fn chunks(size: u64) -> u64 {
    size.div_ceil(CHUNK_BYTES as u64).max(1)
}

/// How many bytes a file of `size` takes, sealed.
pub fn sealed_bytes(size: u64) -> u64 {
    size + chunks(size) * TAG_BYTES as u64
}

/// Where a part of a file is among the sealed bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Its first chunk.
    pub first_chunk: u64,
    /// The last chunk of the whole file.
    pub last_chunk: u64,
    /// Where its first chunk begins, sealed.
    pub from: u64,
    /// Where its last chunk ends, sealed.
    pub to: u64,
    /// Bytes of its first chunk that were not asked for.
    pub skip: usize,
    /// Bytes that were asked for.
    pub length: u64,
}

/// Where the bytes from `first` to `last`, both among them, of a file of `size` are. `None` if it
/// does not have them.
pub fn span(first: u64, last: u64, size: u64) -> Option<Span> {
    if first > last || last >= size {
        return None;
    }
    let (chunk, sealed) = (CHUNK_BYTES as u64, SEALED_CHUNK_BYTES as u64);
    let (first_chunk, end_chunk) = (first / chunk, last / chunk);
    Some(Span {
        first_chunk,
        last_chunk: chunks(size) - 1,
        from: first_chunk * sealed,
        to: ((end_chunk + 1) * sealed).min(sealed_bytes(size)),
        skip: usize::try_from(first % chunk).unwrap_or_default(),
        length: last - first + 1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seal_all(key: &BlobKey, file: &[u8]) -> Vec<u8> {
        let mut sealed = Vec::new();
        let last = chunks(file.len() as u64) - 1;
        for number in 0..=last {
            let from = usize::try_from(number).unwrap() * CHUNK_BYTES;
            let mut chunk = file[from..file.len().min(from + CHUNK_BYTES)].to_vec();
            key.seal(number, number == last, &mut chunk).unwrap();
            sealed.extend(chunk);
        }
        sealed
    }

    fn read(key: &BlobKey, sealed: &[u8], span: Span) -> Result<Vec<u8>> {
        let part = &sealed[usize::try_from(span.from).unwrap()..usize::try_from(span.to).unwrap()];
        let mut opened = Vec::new();
        for (at, chunk) in part.chunks(SEALED_CHUNK_BYTES).enumerate() {
            let (number, mut chunk) = (span.first_chunk + at as u64, chunk.to_vec());
            key.open(number, number == span.last_chunk, &mut chunk)?;
            opened.extend(chunk);
        }
        Ok(opened[span.skip..span.skip + usize::try_from(span.length).unwrap()].to_vec())
    }

    #[test]
    fn every_part_of_a_file_is_found_in_its_chunks() {
        let chunk = CHUNK_BYTES;
        for size in [1, 15, chunk - 1, chunk, chunk + 1, 3 * chunk, 3 * chunk + 7] {
            let file: Vec<u8> = (0..size).map(|at| (at % 251) as u8).collect();
            let key = BlobKey::mint(FileId::mint());
            let sealed = seal_all(&key, &file);
            assert_eq!(sealed.len() as u64, sealed_bytes(size as u64));
            for (first, last) in [(0, size - 1), (0, 0), (size - 1, size - 1), (size / 2, size - 1)] {
                let span = span(first as u64, last as u64, size as u64).unwrap();
                assert_eq!(read(&key, &sealed, span).unwrap(), file[first..=last], "{size}: {first}-{last}");
            }
            assert_eq!(span(0, size as u64, size as u64), None);
        }
        assert_eq!((span(0, 0, 0), sealed_bytes(0)), (None, 16));
    }

    #[test]
    fn chunks_open_only_in_their_place_and_whole() {
        let key = BlobKey::mint(FileId::mint());
        let sealed = seal_all(&key, &[7; 2 * CHUNK_BYTES + 5]);
        let chunk = |at: usize| sealed[at * SEALED_CHUNK_BYTES..].chunks(SEALED_CHUNK_BYTES).next().unwrap();
        let opens = |number, is_last, chunk: &[u8]| key.open(number, is_last, &mut chunk.to_vec()).is_ok();
        assert!(opens(0, false, chunk(0)) && opens(1, false, chunk(1)) && opens(2, true, chunk(2)));
        assert!(!opens(1, false, chunk(0)), "moved");
        assert!(!opens(1, true, chunk(1)), "what came after was cut off");
        assert!(!opens(2, false, chunk(2)), "something was put behind it");
        let mut bent = chunk(0).to_vec();
        bent[0] ^= 1;
        assert!(!opens(0, false, &bent));
        let other = BlobKey::mint(FileId::mint());
        assert!(other.open(0, false, &mut chunk(0).to_vec()).is_err());
        let moved = BlobKey::from_secret(FileId::mint(), &key.to_secret()).unwrap();
        assert!(moved.open(0, false, &mut chunk(0).to_vec()).is_err(), "under another name");
        let same = BlobKey::from_secret(key.blob.clone(), &key.to_secret()).unwrap();
        assert!(same.open(0, false, &mut chunk(0).to_vec()).is_ok());
    }

    #[test]
    fn a_damaged_key_says_so() {
        for text in ["", "00", &"g".repeat(64), &"é".repeat(32)] {
            assert!(BlobKey::from_secret(FileId::mint(), &Secret::new(text)).is_err(), "{text}");
        }
    }
}
