//! The lists of a view as NumPy arrays, without a copy where the database stores them in one piece.

use anden::graph::{CsrArrays, Direction, Weights};
use numpy::ndarray::ArrayView1;
use numpy::{Element, IntoPyArray, PyArray1};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::Result;
use crate::options::word;
use crate::view::View;

/// Keeps the arrays of a CSR alive, as the base object of NumPy arrays.
#[pyclass(frozen, module = "anden")]
struct CsrOwner(CsrArrays);

/// A read-only NumPy array over values that `owner` keeps alive.
#[allow(unsafe_code, reason = "NumPy takes memory that another object owns")]
fn borrowed<'py, T: Element>(owner: &Bound<'py, CsrOwner>, values: &[T]) -> PyResult<Bound<'py, PyArray1<T>>> {
    let container = owner.clone().into_any();
    // SAFETY: callers pass values of `owner`, which is frozen and becomes the base object of the array. Its arrays lie
    // in mapped files or in memory behind an `Arc`, so they do not move, and live as long as the owner.
    let array = unsafe { PyArray1::borrow_from_array(&ArrayView1::from(values), container) };
    let flags = PyDict::new(owner.py());
    // The memory belongs to the database, so no caller may write it.
    flags.set_item("write", false)?;
    array.call_method("setflags", (), Some(&flags))?;
    Ok(array)
}

#[pymethods]
impl View {
    /// The out-lists as a CSR of NumPy arrays: ``(offsets, targets)``, or ``(offsets, targets, weights)``.
    ///
    /// The neighbors of the vertex with id ``v`` are ``targets[offsets[v]:offsets[v + 1]]``, by id. The arrays of
    /// targets and weights are read-only. They show the bytes that the database stores, without a copy, if the view is
    /// one base: after `load`, a function ``from_…`` or `merge`, without later changes. Otherwise all cores copy the
    /// lists. Either way the arrays stay valid when the view and the database are gone.
    ///
    /// Parameters
    /// ----------
    /// direction : {"out", "in"}
    ///     Which lists.
    ///
    /// Examples
    /// --------
    /// >>> import anden
    /// >>> g = anden.from_edges([(0, 1), (0, 2), (2, 1)], ids="dense").view()
    /// >>> offsets, targets = g.csr()
    /// >>> offsets.tolist(), targets.tolist(), targets.flags.writeable
    /// ([0, 2, 2, 3], [1, 2, 1], False)
    #[pyo3(signature = (direction=None))]
    fn csr<'py>(&self, py: Python<'py>, direction: Option<&Bound<'py, PyAny>>) -> Result<Bound<'py, PyAny>> {
        const WORDS: [(Direction, &str); 2] = [(Direction::Out, "out"), (Direction::In, "in")];
        let direction = direction.map_or(Ok(Direction::Out), |value| word(value, &WORDS))?;
        let mut csr = self.run(py, move |view| view.csr(direction))?;
        let offsets = std::mem::take(&mut csr.offsets).into_pyarray(py);
        let owner = Bound::new(py, CsrOwner(csr))?;
        let csr = &owner.get().0;
        let targets = borrowed(&owner, &csr.targets)?;
        let weights = match &csr.weights {
            None => return Ok((offsets, targets).into_pyobject(py)?.into_any()),
            Some(Weights::U32(weights)) => borrowed(&owner, weights)?.into_any(),
            Some(Weights::I64(weights)) => borrowed(&owner, weights)?.into_any(),
            Some(Weights::F32(weights)) => borrowed(&owner, weights)?.into_any(),
            Some(Weights::F64(weights)) => borrowed(&owner, weights)?.into_any(),
        };
        Ok((offsets, targets, weights).into_pyobject(py)?.into_any())
    }
}
