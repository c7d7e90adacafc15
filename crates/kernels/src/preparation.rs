//! Forms of a graph that kernels prepare, kept between runs.
//!
//! PageRank arranges the edges in bins, triangles in an oriented copy, k-core and label propagation in in-lists. Such a
//! form depends on the graph alone, so a later run on the same graph can use it again. A kernel *takes* a form out of
//! the [cache](PreparationCache), and the form goes back when the kernel ends. So a form belongs either to the cache
//! or to one run, never to both: its bytes are counted once, and a run may write to it. Two runs at a time prepare a
//! form each.
//!
//! A database may also [store](crate::stored) forms. A run reads such a form where it would build one.
//!
//! Results are never kept.

use std::any::{Any, TypeId};
use std::ops::{Deref, DerefMut};

use anden_base::parallel::Pool;
use anden_graph::{Graph, StoredFormKey, StoredFormReader};

/// The name of a form: its type, and the parameter that it was prepared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PreparationKey {
    form: TypeId,
    parameter: u64,
}

impl PreparationKey {
    /// The key of a form of type `T`.
    pub fn of<T: Any>(parameter: u64) -> Self {
        Self { form: TypeId::of::<T>(), parameter }
    }
}

/// Keeps the forms of one graph.
pub trait PreparationCache: Sync {
    /// Takes a form out of the cache.
    fn take(&self, key: PreparationKey) -> Option<Box<dyn Any + Send>>;

    /// Puts a form of `num_bytes` heap bytes into the cache, which may drop it or others.
    fn keep(&self, key: PreparationKey, form: Box<dyn Any + Send>, num_bytes: u64);

    /// Reads a form that the database stores, if it does: verifies it, and passes its arrays to `take` once. An error of
    /// `take` says what is wrong with them. By default, nothing is stored.
    fn read_stored(&self, _key: StoredFormKey, _pool: &Pool, _take: &mut StoredFormReader<'_>) {}

    /// Drops forms until the cache holds at most `num_bytes`, those of other graphs included.
    fn shrink(&self, num_bytes: u64);
}

/// The cache of one graph, as part of a [`Context`](crate::Context).
#[derive(Clone, Copy)]
pub struct Preparations<'a> {
    cache: &'a dyn PreparationCache,
    /// The address of the graph. A context may serve other graphs too, and their forms must not be mixed up.
    graph: usize,
}

impl<'a> Preparations<'a> {
    /// The forms of `graph` in `cache`. Runs on any other graph, also on a clone of this one, keep nothing.
    pub fn new<G: Graph>(graph: &'a G, cache: &'a dyn PreparationCache) -> Self {
        Self { cache, graph: address(graph) }
    }

    /// No forms: kernels only make room in the cache.
    pub fn without_graph(cache: &'a dyn PreparationCache) -> Self {
        // No graph has this address.
        Self { cache, graph: 0 }
    }

    pub(crate) fn shrink(&self, num_bytes: u64) {
        self.cache.shrink(num_bytes);
    }

    fn origin<T: Any + Send>(self, graph: &impl Graph, parameter: u64) -> Option<FormOrigin<'a>> {
        (self.graph == address(graph)).then(|| (self.cache, PreparationKey::of::<T>(parameter)))
    }
}

fn address<G>(graph: &G) -> usize {
    std::ptr::from_ref(graph).addr()
}

/// Where a form is kept.
type FormOrigin<'a> = (&'a dyn PreparationCache, PreparationKey);

/// A form in use by one run. Dropping it gives it back to the cache.
pub(crate) struct PreparedForm<'a, T: Any + Send + Default> {
    form: T,
    num_bytes: u64,
    origin: Option<FormOrigin<'a>>,
    was_kept: bool,
}

impl<'a, T: Any + Send + Default> PreparedForm<'a, T> {
    /// Takes the form of `graph` that an earlier run prepared with `parameter`. `num_bytes` gives its size.
    pub(crate) fn take(
        from: Option<Preparations<'a>>,
        graph: &impl Graph,
        parameter: u64,
        num_bytes: impl FnOnce(&T) -> u64,
    ) -> Option<Self> {
        let origin = from?.origin::<T>(graph, parameter)?;
        let form = *origin.0.take(origin.1)?.downcast::<T>().ok()?;
        let num_bytes = num_bytes(&form);
        Some(Self { form, num_bytes, origin: Some(origin), was_kept: true })
    }

    /// Reads the form that the database stores for `graph`, if it does. `decode` returns no form if the budget has no
    /// room for it.
    pub(crate) fn read(
        from: Option<Preparations<'a>>,
        pool: &Pool,
        graph: &impl Graph,
        key: StoredFormKey,
        decode: impl Fn(&[&[u8]]) -> Result<Option<T>, String>,
        num_bytes: impl FnOnce(&T) -> u64,
    ) -> Option<Self> {
        let origin = from?.origin::<T>(graph, key.parameter)?;
        let mut form = None;
        origin.0.read_stored(key, pool, &mut |arrays| {
            form = decode(arrays)?;
            Ok(())
        });
        let form = form?;
        let num_bytes = num_bytes(&form);
        Some(Self { form, num_bytes, origin: Some(origin), was_kept: true })
    }

    /// A new form of `graph`, complete and made without damage. It is kept when its run ends.
    pub(crate) fn new(
        to: Option<Preparations<'a>>,
        graph: &impl Graph,
        parameter: u64,
        form: T,
        num_bytes: u64,
    ) -> Self {
        let origin = to.and_then(|to| to.origin::<T>(graph, parameter));
        Self { form, num_bytes, origin, was_kept: false }
    }

    /// Whether an earlier run prepared the form, or the database stores it.
    pub(crate) fn was_kept(&self) -> bool {
        self.was_kept
    }
}

impl<T: Any + Send + Default> Deref for PreparedForm<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.form
    }
}

impl<T: Any + Send + Default> DerefMut for PreparedForm<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.form
    }
}

impl<T: Any + Send + Default> Drop for PreparedForm<'_, T> {
    fn drop(&mut self) {
        // After a panic, the form may be half written.
        if let (Some((cache, key)), false) = (self.origin, std::thread::panicking()) {
            cache.keep(key, Box::new(std::mem::take(&mut self.form)), self.num_bytes);
        }
    }
}
