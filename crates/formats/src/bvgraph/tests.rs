//! What the encoder writes, the decoder reads, in every code.

use std::io::Cursor;

use proptest::prelude::*;

use super::{BitCode, BitSink, BitSource, BvLayout, ListDecoder, ListEncoder};

fn code() -> impl Strategy<Value = BitCode> {
    prop_oneof![Just(BitCode::Unary), Just(BitCode::Gamma), Just(BitCode::Delta), (1_u32..=7).prop_map(BitCode::Zeta),]
}

fn layout() -> impl Strategy<Value = BvLayout> {
    ([code(), code(), code(), code(), code()], 0_usize..5, 0_u64..5).prop_map(|(codes, window, min_interval)| {
        let [outdegrees, references, blocks, intervals, residuals] = codes;
        BvLayout { outdegrees, references, blocks, intervals, residuals, window, min_interval }
    })
}

fn encoded(lists: &[Vec<u32>], layout: BvLayout) -> Vec<u8> {
    let (mut encoder, mut sink) = (ListEncoder::new(layout), BitSink::default());
    lists.iter().for_each(|list| encoder.push(list, &mut sink));
    sink.finish();
    sink.bytes
}

fn decoded(bytes: Vec<u8>, num_vertices: u64, layout: BvLayout) -> Result<Vec<Vec<u32>>, String> {
    let mut decoder = ListDecoder::new(BitSource::new(Box::new(Cursor::new(bytes))), num_vertices, layout);
    let mut lists = Vec::new();
    while let Some((vertex, list)) = decoder.next()? {
        assert_eq!(vertex as usize, lists.len());
        lists.push(list.to_vec());
    }
    Ok(lists)
}

proptest! {
    #[test]
    fn lists_come_back(
        sets in prop::collection::vec(prop::collection::btree_set(0_u32..40, 0..30), 40),
        layout in layout(),
    ) {
        let lists: Vec<Vec<u32>> = sets.into_iter().map(|set| set.into_iter().collect()).collect();
        prop_assert_eq!(decoded(encoded(&lists, layout), 40, layout), Ok(lists));
    }

    #[test]
    fn numbers_come_back(values in prop::collection::vec(0_u64..1 << 39, 1..50), code in code()) {
        let mut sink = BitSink::default();
        // Unary numbers take as many bits as they count.
        let values: Vec<u64> = values.into_iter().map(|v| if code == BitCode::Unary { v % 500 } else { v }).collect();
        values.iter().for_each(|&value| sink.push(code, value));
        sink.finish();
        let mut source = BitSource::new(Box::new(Cursor::new(sink.bytes)));
        for value in values {
            prop_assert_eq!(source.read(code), Ok(value));
        }
    }

    #[test]
    fn random_bits_are_lists_or_faults(bytes in prop::collection::vec(any::<u8>(), 0..200), layout in layout()) {
        if let Ok(lists) = decoded(bytes, 64, layout) {
            prop_assert!(lists.iter().all(|list| list.is_sorted_by(|a, b| a < b) && list.iter().all(|&v| v < 64)));
        }
    }
}

/// The fault of lists whose numbers are given.
fn fault(numbers: &[(BitCode, u64)], num_vertices: u64) -> String {
    let mut sink = BitSink::default();
    numbers.iter().for_each(|&(code, value)| sink.push(code, value));
    sink.finish();
    decoded(sink.bytes, num_vertices, BvLayout::default()).unwrap_err()
}

#[test]
fn damaged_lists_name_their_vertex() {
    use BitCode::{Gamma, Unary, Zeta};
    let at = |what: &str| format!("cannot read the list of vertex 0: {what}");
    assert_eq!(fault(&[(Gamma, 9)], 3), at("found 9 successors among 3 vertices"));
    let distance = "it copies from 1 lists before, expected at most 7";
    assert_eq!(fault(&[(Gamma, 1), (Unary, 1), (Gamma, 0)], 3), at(distance));
    let residual = |coded| fault(&[(Gamma, 1), (Unary, 0), (Gamma, 0), (Zeta(3), coded)], 3);
    assert_eq!(residual(6), at("the successor 3 is beyond the 3 vertices"));
    assert_eq!(residual(1), at("found a successor below 0, 1 before 0"));
    let interval = [(Gamma, 5), (Unary, 0), (Gamma, 1), (Gamma, 0), (Gamma, 2)];
    assert_eq!(fault(&interval, 9), at("expected 5 successors, found 6"));
    assert_eq!(fault(&[], 3), at("the file ends within the list"));
    // A few bits promise the list of a whole window.
    let many = [(Gamma, 1 << 30), (Unary, 0), (Gamma, 1), (Gamma, 0), (Gamma, (1 << 30) - 4)];
    assert_eq!(fault(&many, 1 << 31), at("the last 8 lists have more than 67108864 arcs"));
}
