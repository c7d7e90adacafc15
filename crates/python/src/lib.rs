//! The native module of the Python package of Anden: classes and functions over the crate `anden`.
//!
//! Python code sees it as `anden._anden`; the package `anden` exports its names. Calls convert arguments, call the
//! engine without the GIL where they may be long, and convert the answer. Arrays of results are not copied.

#![deny(unsafe_code)]

mod arrow;
mod calls;
mod columns;
mod command;
mod csr;
mod database;
mod error;
mod html;
mod input;
mod kernels;
mod key;
mod loading;
mod opened;
mod options;
mod pending;
mod queries;
mod result;
mod sessions;
mod snapshot;
mod transaction;
mod update;
mod value;
mod view;

use pyo3::prelude::*;

/// The native part of the package `anden`.
#[pymodule(gil_used = false)]
mod _anden {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::arrow::{Table, TableIterator};
    #[pymodule_export]
    use crate::calls::set_progress;
    #[pymodule_export]
    use crate::command::run_command;
    #[pymodule_export]
    use crate::database::{
        ChangeFeed, ChangeSet, Database, Lease, RollingWindows, create, load, open, repair, restore,
    };
    #[pymodule_export]
    use crate::input::{table_of, table_types};
    #[pymodule_export]
    use crate::kernels::kernels;
    #[pymodule_export]
    use crate::opened::_close_all;
    #[pymodule_export]
    use crate::pending::Pending;
    #[pymodule_export]
    use crate::result::KernelResult;
    #[pymodule_export]
    use crate::snapshot::{Diff, DiffIterator, Snapshot};
    #[pymodule_export]
    use crate::transaction::{NewEdge, Transaction};
    #[pymodule_export]
    use crate::update::Update;
    #[pymodule_export]
    use crate::view::{KeyIterator, View};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        crate::error::add_classes(module)
    }
}
