//! Each run of a kernel is in a span. The test has a process of its own: `tracing` decides once for each place in the
//! code whether a subscriber wants its spans.

use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use anden::{Database, Job, Options, Parameters, Update};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Collects the fields of spans and of events.
#[derive(Clone, Default)]
struct Collector(Arc<Mutex<Vec<String>>>);

struct Fields<'a>(&'a mut String);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        *self.0 += &match field.name() {
            "seconds" => " seconds".to_owned(),
            name => format!(" {name}={value:?}"),
        };
    }
}

impl Subscriber for Collector {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("anden::")
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut text = span.metadata().name().to_owned();
        span.record(&mut Fields(&mut text));
        self.0.lock().unwrap().push(text);
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut text = String::new();
        event.record(&mut Fields(&mut text));
        self.0.lock().unwrap().push(text);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[test]
fn kernels_run_in_spans() {
    let db = Database::in_memory(Options::default()).unwrap();
    db.apply(&[Update::add_edge(1, 2), Update::add_edge(2, 3)]).unwrap();
    let view = db.view().unwrap();
    let collected = |run: &dyn Fn()| {
        let collector = Collector::default();
        tracing::subscriber::with_default(collector.clone(), run);
        collector.0.lock().unwrap().clone()
    };
    let expected = |kernel: &str| {
        let name = view.name();
        let span = format!("kernel kernel={kernel:?} view={name:?} vertices=3 edges=2");
        [span, " message=kernel ended seconds succeeded=true".to_owned()]
    };
    let pagerank = || drop(view.pagerank(&Default::default()).unwrap());
    assert_eq!(collected(&pagerank), expected("pagerank"));
    let closeness = || drop(view.closeness(&[]).unwrap());
    assert_eq!(collected(&closeness), expected("closeness"));
    for kernel in ["wcc", "scc", "kcore", "triangles", "lcc"] {
        let run = || drop(view.run(&Job::new(kernel, Parameters::default()).unwrap()).unwrap());
        assert_eq!(collected(&run), expected(kernel));
    }
}
