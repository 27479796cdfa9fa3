//! Intel's ISA-L, loaded at run time, used in its fastest way.
//!
//! Only the e x e system of the missing symbols is inverted, and one call computes all missing symbols from all arrived
//! packets:
//!
//! ```text
//! rows restricted to the missing symbols: A (e x e);  to the arrived ones: B (e x (n - e))
//! missing = A^-1 * (payloads + B * arrived) = [A^-1 * B | A^-1] * [arrived, payloads]
//! ```
//!
//! The product of A^-1 and B is a call of its vector kernels too.

#![allow(unsafe_code, reason = "ISA-L is a library of another language")]

use super::Contestant;
use crate::case::{Case, Packets, SYMBOL};
use crate::matrix::Matrix;
use libloading::Library;
use std::ffi::c_int;
use std::rc::Rc;

type InitTables = unsafe extern "C" fn(c_int, c_int, *const u8, *mut u8);
type EncodeData = unsafe extern "C" fn(c_int, c_int, c_int, *const u8, *const *const u8, *const *mut u8);
type InvertMatrix = unsafe extern "C" fn(*mut u8, *mut u8, c_int) -> c_int;

/// Bytes of tables that the library needs per coefficient.
const TABLE: usize = 32;

/// The functions of one version of the library.
pub struct Isal {
    label: String,
    init_tables: InitTables,
    encode_data: EncodeData,
    invert_matrix: InvertMatrix,
    /// Keeps the library loaded.
    _library: Library,
}

impl Isal {
    /// Loads the library from a path, or from the system's search path for a bare name.
    pub fn load(label: &str, path: &str) -> Result<Self, libloading::Error> {
        // SAFETY: the only code that ISA-L runs on loading chooses its kernels, and these are the types of its headers.
        unsafe {
            let library = Library::new(path)?;
            Ok(Self {
                label: label.into(),
                init_tables: *library.get::<InitTables>(b"ec_init_tables\0")?,
                encode_data: *library.get::<EncodeData>(b"ec_encode_data\0")?,
                invert_matrix: *library.get::<InvertMatrix>(b"gf_invert_matrix\0")?,
                _library: library,
            })
        }
    }
}

/// How the library is used.
#[derive(Clone, Copy, PartialEq)]
pub enum Usage {
    /// Only its own functions, on packets in place.
    Plain,
    /// Packets that arrived are first copied into one block, as by a transport with its own window.
    Copied,
    /// With this project's matrix inversion, because ISA-L's works byte by byte.
    FastInverse,
}

pub struct Reconstruction<'c> {
    isal: Rc<Isal>,
    case: &'c Case,
    usage: Usage,
    arrived: Vec<usize>,
    block: Packets,
    system: Vec<u8>,
    inverse: Vec<u8>,
    matrix: Packets,
    tables: Vec<u8>,
    fast: Matrix,
}

impl<'c> Reconstruction<'c> {
    pub fn new(isal: &Rc<Isal>, case: &'c Case, usage: Usage) -> Self {
        let (n, e) = (case.n, case.lost.len());
        Self {
            isal: Rc::clone(isal),
            case,
            usage,
            arrived: case.arrived().collect(),
            block: Packets::zeroed(n, SYMBOL),
            system: vec![0; e * e],
            inverse: vec![0; e * e],
            matrix: Packets::zeroed(2 * e, n.next_multiple_of(64)),
            tables: vec![0; TABLE * n * e],
            fast: Matrix::default(),
        }
    }

    /// Computes `outs = matrix * sources`; `matrix` has one row of coefficients per output.
    fn multiply(&mut self, matrix: &[u8], length: usize, sources: &[*const u8], outs: &[*mut u8]) {
        let (k, e) = (sources.len() as c_int, outs.len() as c_int);
        // SAFETY: the tables have room for k * e coefficients, the matrix has as many, and the callers' sources and
        // outputs are `length` bytes each and belong to other fields.
        unsafe {
            (self.isal.init_tables)(k, e, matrix.as_ptr(), self.tables.as_mut_ptr());
            let tables = self.tables.as_ptr();
            (self.isal.encode_data)(length as c_int, k, e, tables, sources.as_ptr(), outs.as_ptr());
        }
    }

    fn invert(&mut self, e: usize) {
        if self.usage == Usage::FastInverse {
            self.fast.reshape(e, e);
            self.fast
                .rows_mut()
                .zip(self.system.chunks_exact(e))
                .for_each(|(row, from)| row.copy_from_slice(from));
            self.fast.invert().expect("the rows are independent");
            let to = self.inverse.chunks_exact_mut(e).enumerate();
            to.for_each(|(r, row)| row.copy_from_slice(self.fast.row(r)));
            return;
        }
        // SAFETY: both are e x e.
        let status = unsafe {
            (self.isal.invert_matrix)(self.system.as_mut_ptr(), self.inverse.as_mut_ptr(), e as c_int)
        };
        assert_eq!(status, 0, "the rows are independent");
    }

    /// The e x n matrix that computes the missing symbols from those that arrived and the payloads.
    fn solve(&mut self) -> Vec<u8> {
        let (n, e) = (self.case.n, self.case.lost.len());
        let width = n.next_multiple_of(64);
        for (r, row) in self.case.rows.iter().enumerate() {
            for (c, &index) in self.case.lost.iter().enumerate() {
                self.system[r * e + c] = row[index];
            }
            for (c, &index) in self.arrived.iter().enumerate() {
                self.matrix.packet_mut(r)[c] = row[index];
            }
        }
        self.invert(e);
        if n > e {
            let sources: Vec<*const u8> = (0..e).map(|r| self.matrix.packet(r).as_ptr()).collect();
            let outs: Vec<*mut u8> = (e..2 * e).map(|r| self.matrix.packet_mut(r).as_mut_ptr()).collect();
            let inverse = std::mem::take(&mut self.inverse);
            self.multiply(&inverse, width, &sources, &outs);
            self.inverse = inverse;
        }
        let mut matrix = vec![0; e * n];
        for (r, row) in matrix.chunks_exact_mut(n).enumerate() {
            row[..n - e].copy_from_slice(&self.matrix.packet(e + r)[..n - e]);
            row[n - e..].copy_from_slice(&self.inverse[r * e..][..e]);
        }
        matrix
    }
}

impl Contestant for Reconstruction<'_> {
    fn library(&self) -> String {
        match self.usage {
            Usage::Plain => self.isal.label.clone(),
            Usage::Copied => format!("{} + copy", self.isal.label),
            Usage::FastInverse => format!("{} + our inverse", self.isal.label),
        }
    }

    fn run(&mut self) {
        let case = self.case;
        if self.usage == Usage::Copied {
            for &index in &self.arrived {
                self.block.packet_mut(index).copy_from_slice(case.symbols.packet(index));
            }
        }
        let matrix = self.solve();
        let known = |index: usize| match self.usage {
            Usage::Copied => self.block.packet(index).as_ptr(),
            Usage::Plain | Usage::FastInverse => case.symbols.packet(index).as_ptr(),
        };
        let mut sources: Vec<*const u8> = self.arrived.iter().map(|&index| known(index)).collect();
        sources.extend((0..case.rows.len()).map(|r| case.payloads.packet(r).as_ptr()));
        let outs: Vec<*mut u8> =
            case.lost.iter().map(|&index| self.block.packet_mut(index).as_mut_ptr()).collect();
        self.multiply(&matrix, SYMBOL, &sources, &outs);
    }

    fn check(&self, case: &Case) {
        for &index in &case.lost {
            case.check(&self.library(), index, self.block.packet(index));
        }
    }
}
