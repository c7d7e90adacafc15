//! Trends of a stream, against the window loaded anew after each batch.

use anden::{Changes, Database, Error, Key, KeyScheme, Options, PageRankParams};
use anden_examples::sliding_window::trends;

const BATCH: usize = 50;
const WINDOW: u32 = 3;

/// A stream that names `early` often at first, and then `late`.
fn stream() -> Vec<String> {
    let mut state = 1_u64;
    let mut next = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let line = |number: u64| {
        // Sources are new, so no edge appears twice.
        let target = match next(3) {
            0 => format!("page{}", next(40)),
            _ if number < 500 => "early".to_owned(),
            _ => "late".to_owned(),
        };
        format!("user{number} {target}")
    };
    (0..1000).map(line).collect()
}

#[test]
fn the_window_is_what_counts() {
    let options = Options { keys: KeyScheme::String, ..Options::default() };
    let (db, lines) = (Database::in_memory(options).unwrap(), stream());
    let mut num_batches = 0;
    trends(&db, lines.iter().cloned(), BATCH, WINDOW, |view, top| {
        num_batches += 1;
        let shown = &lines[(num_batches * BATCH).saturating_sub(WINDOW as usize * BATCH)..num_batches * BATCH];
        assert_eq!(view.num_edges(), shown.len() as u64);
        let anew = Database::in_memory(options)?;
        let edges = shown.iter().map(|line| line.split_once(' ').unwrap());
        anew.append(&edges.fold(Changes::default(), |changes, (source, target)| changes.add_edge(source, target)))?;
        let anew = anew.view()?;
        assert_eq!(view.num_vertices(), anew.num_vertices(), "batch {num_batches}");
        let expected = anew.pagerank(&PageRankParams::default())?;
        for (key, rank) in top {
            let expected = expected[anew.vertex(key.clone())? as usize];
            assert!((rank - expected).abs() < 1e-12, "{key}: {rank} and {expected}");
        }
        let best = if num_batches <= 11 { "early" } else { "late" };
        assert_eq!(top[0].0, Key::from(best), "batch {num_batches}");
        Ok(())
    })
    .unwrap();
    assert_eq!((num_batches, db.snapshots().len()), (20, 4));
    assert_eq!(db.view().unwrap().num_edges(), 1000);
}

#[test]
fn lines_that_are_none_are_refused() {
    let db = Database::in_memory(Options { keys: KeyScheme::String, ..Options::default() }).unwrap();
    let lines = ["a b", "c"].map(String::from).into_iter();
    let error = trends(&db, lines, 1, 2, |_, _| Ok(())).unwrap_err();
    assert!(matches!(&error, Error::InvalidInput(text) if text.as_str().contains("\"c\"")), "{error}");
}
