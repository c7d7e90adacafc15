//! Samples of every foreign format, and of texts in no such format.

use super::*;

/// The beginning of a file of each format, with the name that messages use.
fn samples() -> Vec<(&'static str, Vec<u8>)> {
    let zip = |name: &str| {
        let mut bytes = b"PK\x03\x04\x14\0\0\0\x08\0".to_vec();
        bytes.resize(26, 0);
        bytes.extend((name.len() as u16).to_le_bytes());
        bytes.extend([0; 2]);
        bytes.extend(name.as_bytes());
        bytes
    };
    let mut tar = b"edges.txt".to_vec();
    tar.resize(257, 0);
    tar.extend(b"ustar\x0000");
    let text = |text: &str| text.as_bytes().to_vec();
    vec![
        ("an Excel workbook", zip("[Content_Types].xml")),
        ("an Excel workbook", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0\0".to_vec()),
        ("a NumPy archive", zip("edges.npy")),
        ("a zip archive", zip("edges.txt")),
        ("a tar archive", tar),
        ("a 7z archive", b"7z\xbc\xaf\x27\x1c\0\x04".to_vec()),
        ("a RAR archive", b"Rar!\x1a\x07\x01\0".to_vec()),
        ("a file compressed with lz4", b"\x04\x22\x4d\x18\x64\x40".to_vec()),
        ("a file compressed with snappy", b"\xff\x06\0\0sNaPpY".to_vec()),
        ("a file compressed with compress", b"\x1f\x9d\x90\x31".to_vec()),
        ("a file compressed with lzma", b"\x5d\0\0\x80\0".to_vec()),
        ("a Feather file of version 1", b"FEA1\0\0\0\0".to_vec()),
        ("an ORC file", b"ORC\x11\0\0\x0a\x06".to_vec()),
        ("an Avro file", b"Obj\x01\x04\x16avro.schema".to_vec()),
        ("an HDF5 file", b"\x89HDF\r\n\x1a\n\0\0".to_vec()),
        ("a NumPy array", b"\x93NUMPY\x01\0v\0{'descr'".to_vec()),
        ("a MATLAB file", text("MATLAB 5.0 MAT-file, Platform: GLNXA64")),
        ("an SQLite database", b"SQLite format 3\0\x10\0".to_vec()),
        ("a DuckDB database", b"\x51\x38\x08\x4b\x41\0\0\0DUCK\x40\0".to_vec()),
        ("a Python pickle", b"\x80\x04\x95\x13\0\0\0\0\0\0\0}".to_vec()),
        ("an R data file", b"RDX3\nX\n\0\0\0\x03".to_vec()),
        ("an R data file", b"X\n\0\0\0\x03\0".to_vec()),
        ("a PDF document", text("%PDF-1.7\n%\u{e2}\n")),
        ("a picture", b"\x89PNG\r\n\x1a\n\0\0".to_vec()),
        ("a picture", text("<?xml version='1.0'?>\n<svg width='1'></svg>")),
        ("a web page", text("<!DOCTYPE html>\n<html><head>")),
        ("a web page", text("\n<html lang=\"en\">")),
        ("an XGMML file", text("<?xml version='1.0'?><!DOCTYPE g [<!ENTITY a 'b'>]><graph label='x'>")),
        ("a DOT file", text("digraph G {\n  a -> b;\n}\n")),
        ("a DOT file", text("/* by hand */\nstrict graph\n{ a -- b }\n")),
        ("a GDF file", text("nodedef>name VARCHAR\na\n")),
        ("a UCINET file", text("DL n = 4 format = edgelist1\n")),
        ("a Tulip file", text("(tlp \"2.3\"\n")),
        ("a graph6 file", text(">>graph6<<D?{\n")),
        ("a DIMACS file of a problem that is not read", text("c FILE: a.cnf\nc\np cnf 3 2\n1 2 0\n")),
        ("a DIMACS file of a problem that is not read", text("p max 4 5\nn 1 s\n")),
        ("a JSON file of another form", text("{\n  \"type\": \"FeatureCollection\"\n}")),
        ("a JSON file of another form", text("[[1, 2], [2, 3]]")),
        ("an RDF file", text("<http://a/1> <http://a/knows> <http://a/2> .\n")),
        ("an RDF file", text("@prefix a: <http://a/> .\n")),
        ("an RDF file", text("<?xml version='1.0'?>\n<rdf:RDF xmlns:rdf='x'>")),
        ("a file in UTF-16", b"\xff\xfe1\0 \x002\0\n\0".to_vec()),
        ("a file in UTF-16", b"1\0 \x002\0\n\0".to_vec()),
        ("a binary file of an unknown format", b"\x7fELF\x02\x01\x01\0\0\0".to_vec()),
    ]
}

fn refused(path: &str, head: &[u8]) -> String {
    refuse(path.as_ref(), head).unwrap_err().to_string()
}

#[test]
fn foreign_content_is_named_under_any_name() {
    for (name, bytes) in samples() {
        for path in ["x.txt", "x.csv", "x.parquet", "x", "-"] {
            let error = refused(path, &bytes);
            assert!(error.starts_with(&format!("cannot read {path}: this is {name}, which is not read; ")), "{error}");
        }
    }
    for format in
        TABLE.iter().filter(|format| !["a file compressed with Brotli", "a Pajek project"].contains(&format.name))
    {
        assert!(samples().iter().any(|(name, _)| *name == format.name), "no sample of {}", format.name);
    }
}

#[test]
fn foreign_content_is_named_under_compression() {
    for (name, bytes) in samples() {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut packed, &bytes).unwrap();
        let packed = packed.finish().unwrap();
        assert!(refused("x.txt.gz", &packed).contains(&format!("this is {name}, ")), "{name}");
        assert!(refused("x.gz", &bytes).contains(&format!("this is {name}, ")), "{name}");
    }
}

#[test]
fn foreign_names_are_believed_unless_numbers_begin() {
    for ending in TABLE.iter().flat_map(|format| format.endings) {
        let path = format!("x.{ending}");
        let error = refused(&path.to_uppercase(), b"a b\n");
        assert!(error.contains(&format!("the ending '.{ending}' is that of a")), "{error}");
        assert!(error.ends_with(", or say with --format what it is"), "{error}");
        assert!(refused(&path, b"").contains("the ending"), "{ending}");
        assert!(refuse(path.as_ref(), b"# edges\n1 2\n").is_ok(), "{ending}");
    }
}

#[test]
fn edge_lists_and_tables_are_not_foreign() {
    let texts = [
        "1 2\n2 3\n",
        "0 1 {}\n1 2 {'weight': 3}\n",
        "graph theory\ndigraph graph\n",
        "strict parent\nparent child\n",
        "p q 5\nq r 7\n",
        "c d\np sp 3 1\n",
        "p sp 3 1\na 1 2 3\n",
        "ORC DWARF\nDWARF ELF\n",
        "FEA1 FEA2\n",
        "GOOFY A DUCK B\n",
        "PK\tfk\n",
        "Obj1 Obj2\n",
        "dl name=x\n",
        "X\nY\n",
        "% sym unweighted\n1 2\n",
        "%%MatrixMarket matrix coordinate pattern general\n1 1 0\n",
        "source,target\na,b\n",
        "\u{feff}source,target\na,b\n",
        "\"a\",\"b\"\n",
        "<a> <b>\n",
        "<a@b.org> <c@d.org>\n",
        "[1] [2]\n",
        "{a} {b}\n",
        "*a b\n",
        "prefix suffix\n",
        "",
        "\n",
        "PAR1",
        "<?xml version='1.0'?>\n<graphml>",
        "<graphml xmlns='x'>",
        "4 3\n2 3\n",
    ];
    for text in texts {
        assert!(refuse("x".as_ref(), text.as_bytes()).is_ok(), "{text:?}");
    }
    let serialized = [&[1][..], &3_u64.to_le_bytes(), &2_u64.to_le_bytes()].concat();
    assert!(refuse("x".as_ref(), &serialized).is_ok());
}
