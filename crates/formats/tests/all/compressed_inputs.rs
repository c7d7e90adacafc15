//! Compressed inputs: read transparently, and refused if they are damaged.

use std::io::{Read, Write};

use anden_formats::{InputPath, Source, SourceOptions};
use anden_testkit::skipped;

use crate::reading;
use crate::reading::{Folder, read, read_files, read_strings};

fn compressed(kind: &str, text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    match kind {
        "gz" => flate2::read::GzEncoder::new(text, flate2::Compression::fast()).read_to_end(&mut bytes),
        "bz2" => bzip2::read::BzEncoder::new(text, bzip2::Compression::fast()).read_to_end(&mut bytes),
        "xz" => liblzma::read::XzEncoder::new(text, 1).read_to_end(&mut bytes),
        _ => zstd::stream::read::Encoder::new(text, 1).unwrap().read_to_end(&mut bytes),
    }
    .unwrap();
    bytes
}

const KINDS: [&str; 4] = ["gz", "bz2", "xz", "zst"];

fn text() -> String {
    (0..500).map(|i| format!("{i} {}\n", i * i % 71)).collect()
}

#[test]
fn members_are_read_as_one_whatever_the_name() {
    let folder = Folder::new();
    let text = text();
    let expected = read(&folder, "plain.txt", &text).unwrap();
    for kind in KINDS {
        let (first, second) = text.split_at(1001);
        let members = [compressed(kind, first.as_bytes()), compressed(kind, second.as_bytes())].concat();
        for name in [format!("graph.txt.{kind}"), "graph.txt".into(), "graph".into()] {
            let read = read(&folder, &name, &members).unwrap();
            assert_eq!(read, expected, "{name}");
        }
        let path = folder.file(&format!("counted.txt.{kind}"), &members);
        let mut source = Source::open(&[InputPath::File(path)], SourceOptions::default()).unwrap();
        assert_eq!(source.facts().input_bytes, Some(members.len() as u64));
        let pool = anden_base::parallel::Pool::new(1).unwrap();
        source.for_each_block::<u64, u32, anden_formats::Error>(&pool, |_, _| Ok(())).unwrap();
        assert_eq!(source.bytes_read().load(std::sync::atomic::Ordering::Relaxed), members.len() as u64);
        assert_eq!(read(&folder, "empty", compressed(kind, b"")).unwrap().edges, []);
    }
    let csv = compressed("gz", b"from,to\n1,2\n");
    assert_eq!(read(&folder, "some.csv.gz", &csv).unwrap().pairs(), [(1, 2)]);
    assert_eq!(read(&folder, "some", &csv).unwrap().pairs(), [(1, 2)]);
}

/// Tapes pad a file with zeros up to a whole block.
#[test]
fn zeros_behind_gzip_are_padding() {
    let folder = Folder::new();
    let (first, second) = (compressed("gz", b"1 2\n"), compressed("gz", b"3 4\n"));
    for num_zeros in [1, 511, 300 << 10] {
        let padded = [&first[..], &second, &vec![0; num_zeros]].concat();
        assert_eq!(read(&folder, "a.txt.gz", &padded).unwrap().pairs(), [(1, 2), (3, 4)]);
        let between = [&first[..], &vec![0; num_zeros], &second].concat();
        let refused = read(&folder, "b.txt.gz", &between).unwrap_err();
        assert!(refused.contains("gzip data is damaged") && refused.contains("zeros are followed by"), "{refused}");
    }
    let refused = read(&folder, "c.txt.gz", [&first[..], b"x"].concat()).unwrap_err();
    assert!(refused.contains("cut short") && refused.contains("followed by what is none"), "{refused}");
}

#[test]
fn every_cut_is_noticed() {
    let folder = Folder::new();
    let text = text();
    for kind in KINDS {
        let whole = compressed(kind, text.as_bytes());
        let path = folder.path(&format!("cut.txt.{kind}"));
        for len in (0..whole.len()).step_by(7).chain([whole.len() - 1]) {
            std::fs::write(&path, &whole[..len]).unwrap();
            let result = reading::read_once::<u64, u32>(&[&path], &SourceOptions::default(), 2);
            let error = result.expect_err(&format!("{kind} cut to {len} of {} bytes", whole.len())).to_string();
            assert!(error.contains(&format!("cut.txt.{kind}: ")), "{error}");
        }
    }
}

#[test]
fn no_changed_byte_is_taken_for_the_graph() {
    let folder = Folder::new();
    let text = text();
    let expected = read(&folder, "plain.txt", &text).unwrap();
    // zstd frames have a checksum only if their writer chose one.
    for kind in ["gz", "bz2", "xz"] {
        let whole = compressed(kind, text.as_bytes());
        let path = folder.path(&format!("flipped.txt.{kind}"));
        for place in (0..whole.len()).step_by(3) {
            let mut bytes = whole.clone();
            bytes[place] ^= 1 << (place % 8);
            std::fs::write(&path, &bytes).unwrap();
            if let Ok(read) = reading::read_once::<u64, u32>(&[&path], &SourceOptions::default(), 1) {
                assert_eq!(read, expected, "{kind}, byte {place}");
            }
        }
    }
}

#[test]
fn names_that_lie_are_refused() {
    let folder = Folder::new();
    let message = |name: &str, bytes: &[u8]| read(&folder, name, bytes).unwrap_err();
    let error = message("a.txt.gz", b"1 2\n");
    assert!(error.ends_with("a.txt.gz: expected gzip data, as the name says, found other content"), "{error}");
    assert!(message("a.txt.xz", b"").ends_with("a.txt.xz: expected xz data, as the name says, found an empty file"));
    assert!(message("a.txt.zst", &compressed("gz", b"1 2\n")).contains("expected zstd data"));
    let trailing = [compressed("gz", b"1 2\n"), b"3 4\n".repeat(20)].concat();
    assert!(message("a.txt.gz", &trailing).contains("a.txt.gz: cannot read: the gzip data is damaged"));
    let error = message("a.sg.gz", &compressed("gz", &[0; 40]));
    assert!(error.contains("a.sg.gz: the content is longer than the 25 bytes that its header promises"), "{error}");
}

/// A frame of `1 2` and `2 3` whose header asks for a window of 2 GB, as `zstd --ultra --long=31` writes it.
#[test]
fn large_zstd_windows_are_read_where_memory_allows() {
    const FRAME: &[u8] = b"\x28\xb5\x2f\xfd\x04\xa8\x41\x00\x00\x31\x20\x32\x0a\x32\x20\x33\x0a\x8e\x3f\xc2\xf6";
    let found = read(&Folder::new(), "a.txt.zst", FRAME);
    // The free memory may change between the two looks, so that amounts near the bound of 8 GB tell nothing.
    match anden_base::memory::available() >> 30 {
        16.. => assert_eq!(found.unwrap().pairs(), [(1, 2), (2, 3)]),
        0..4 => assert!(found.unwrap_err().contains("needs a window of more than"), "the window does not fit"),
        _ => println!("skipped: whether the window fits depends on the moment"),
    }
}

#[test]
fn serialized_graphs_and_parquet_are_read_through_a_copy() {
    let folder = Folder::new();
    // A triangle and an isolated vertex.
    let mut graph = vec![0];
    [6_i64, 4].iter().for_each(|count| graph.extend(count.to_le_bytes()));
    [0_i64, 2, 4, 6, 6].iter().for_each(|offset| graph.extend(offset.to_le_bytes()));
    [1_i32, 2, 0, 2, 0, 1].iter().for_each(|target| graph.extend(target.to_le_bytes()));
    for name in ["a.sg.gz", "a.sg.zst", "b.sg", "c"] {
        let packing = name.rsplit_once('.').map_or("", |(_, suffix)| suffix);
        let bytes = if packing.len() > 2 || packing == "gz" { compressed(packing, &graph) } else { graph.clone() };
        assert_eq!(read(&folder, name, bytes).unwrap().pairs(), [(0, 1), (0, 2), (1, 2)], "{name}");
    }
    let parquet = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/parquet/zstd.parquet")).unwrap();
    let plain = read_strings(&folder, "a.parquet", &parquet).unwrap();
    assert_eq!(read_strings(&folder, "a.parquet.gz", compressed("gz", &parquet)).unwrap().edges, plain.edges);
}

#[test]
fn a_pipe_is_read_once() {
    let folder = Folder::new();
    let path = folder.path("pipe");
    if !std::process::Command::new("mkfifo").arg(&path).status().is_ok_and(|status| status.success()) {
        return skipped("there is no mkfifo");
    }
    let bytes = compressed("zst", b"# one\n1 2\n3 4\n");
    let writer = std::thread::spawn({
        let path = path.clone();
        move || std::fs::File::create(path).unwrap().write_all(&bytes).unwrap()
    });
    let read = reading::read_once::<u64, u32>(&[&path], &SourceOptions::default(), 2).unwrap();
    writer.join().unwrap();
    assert_eq!(read.pairs(), [(1, 2), (3, 4)]);
}

#[test]
fn inputs_that_cannot_be_read_are_named() {
    let folder = Folder::new();
    let result = read_files::<u64, u32>(&[&folder.path("missing.txt")], &SourceOptions::default());
    assert!(result.unwrap_err().contains("missing.txt: cannot open: No such file"));
    let result = read_files::<u64, u32>(&[&folder.path("")], &SourceOptions::default());
    assert!(result.unwrap_err().ends_with("expected a file, found a directory"));
}
