//! Reed-Solomon codes: `reed-solomon-erasure` over GF(2^8), and `reed-solomon-simd`, Leopard over GF(2^16).

use super::Contestant;
use crate::case::{Case, SYMBOL};
use reed_solomon_erasure::galois_8::ReedSolomon;
use reed_solomon_simd::{ReedSolomonDecoder, ReedSolomonEncoder};

/// The maximum number of shards of a code over GF(2^8).
const SHARDS_MAX: usize = 256;

/// `reed-solomon-erasure` with its C kernels. It caches the inverse matrices of earlier losses, so a run contains no
/// inversion.
pub struct Erasure {
    code: ReedSolomon,
    shards: Vec<Option<Vec<u8>>>,
    armed: Vec<Vec<Option<Vec<u8>>>>,
    decoded: Vec<Option<Vec<u8>>>,
}

impl Erasure {
    /// Returns `None` if the code would be too long for the field.
    pub fn new(case: &Case) -> Option<Self> {
        let parity = case.lost.len();
        if case.n + parity > SHARDS_MAX {
            return None;
        }
        let code = ReedSolomon::new(case.n, parity).expect("short enough");
        let mut shards: Vec<Vec<u8>> = (0..case.n).map(|index| case.symbols.packet(index).to_vec()).collect();
        shards.extend(vec![vec![0; SYMBOL]; parity]);
        code.encode(&mut shards).expect("equal lengths");
        let mut shards: Vec<Option<Vec<u8>>> = shards.into_iter().map(Some).collect();
        case.lost.iter().for_each(|&index| shards[index] = None);
        Some(Self { code, shards, armed: Vec::new(), decoded: Vec::new() })
    }
}

impl Contestant for Erasure {
    fn library(&self) -> String {
        "reed-solomon-erasure".into()
    }

    fn arm(&mut self, runs: usize) {
        self.armed = vec![self.shards.clone(); runs];
    }

    fn run(&mut self) {
        let mut shards = self.armed.pop().expect("armed");
        self.code.reconstruct_data(&mut shards).expect("enough shards");
        self.decoded = shards;
    }

    fn check(&self, case: &Case) {
        for &index in &case.lost {
            case.check("reed-solomon-erasure", index, self.decoded[index].as_deref().unwrap_or(&[]));
        }
    }
}

/// `reed-solomon-simd`.
pub struct Leopard<'c> {
    case: &'c Case,
    parity: Vec<Vec<u8>>,
    decoder: ReedSolomonDecoder,
    restored: Vec<Vec<u8>>,
}

impl<'c> Leopard<'c> {
    pub fn new(case: &'c Case) -> Self {
        let (n, e) = (case.n, case.lost.len());
        let mut encoder = ReedSolomonEncoder::new(n, e, SYMBOL).expect("supported");
        for index in 0..n {
            encoder.add_original_shard(case.symbols.packet(index)).expect("fits");
        }
        let parity = encoder.encode().expect("complete").recovery_iter().map(<[u8]>::to_vec).collect();
        let decoder = ReedSolomonDecoder::new(n, e, SYMBOL).expect("supported");
        Self { case, parity, decoder, restored: vec![vec![0; SYMBOL]; e] }
    }
}

impl Contestant for Leopard<'_> {
    fn library(&self) -> String {
        "reed-solomon-simd".into()
    }

    fn run(&mut self) {
        for index in self.case.arrived() {
            self.decoder.add_original_shard(index, self.case.symbols.packet(index)).expect("fits");
        }
        for (index, shard) in self.parity.iter().enumerate() {
            self.decoder.add_recovery_shard(index, shard).expect("fits");
        }
        let result = self.decoder.decode().expect("enough shards");
        for (slot, &index) in self.restored.iter_mut().zip(&self.case.lost) {
            slot.copy_from_slice(result.restored_original(index).expect("it was lost"));
        }
    }

    fn check(&self, case: &Case) {
        for (slot, &index) in self.restored.iter().zip(&case.lost) {
            case.check("reed-solomon-simd", index, slot);
        }
    }
}
