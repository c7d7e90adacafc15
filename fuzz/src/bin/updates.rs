//! Updates, one a line, compressed or not. Values and names that were read are written and must read back equal.
#![no_main]

use std::io::Cursor;

use anden_formats::{LineValue, NextUpdate, UpdateLine, Updates, push_update_column, push_update_value};
use anden_graph::property::PropertyValue;

const MAX_LINE_BYTES: usize = 1 << 20;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Ok(mut updates) = Updates::of_bytes("updates".as_ref(), Cursor::new(input.to_vec())) else { return };
    while let Ok(NextUpdate::Found(update)) = updates.next_update() {
        let UpdateLine::SetVertexProperty { vertex, name, value } = update else { continue };
        let mut line = String::from("p");
        for text in [vertex, name] {
            line.push(' ');
            push_update_column(&mut line, text);
        }
        line.push(' ');
        let value = match value {
            LineValue::Null => PropertyValue::Null,
            LineValue::Text { text, .. } => PropertyValue::String(text),
        };
        push_update_value(&mut line, value);
        // The written form may be longer than a line may be.
        if line.len() >= MAX_LINE_BYTES {
            continue;
        }
        let mut again = Updates::of_bytes("again".as_ref(), Cursor::new(line.into_bytes())).unwrap();
        let Ok(NextUpdate::Found(UpdateLine::SetVertexProperty {
            vertex: again_vertex,
            name: again_name,
            value: found,
        })) = again.next_update()
        else {
            panic!("what was written is no update");
        };
        assert_eq!((again_vertex, again_name), (vertex, name));
        let found = match found {
            LineValue::Null => PropertyValue::Null,
            LineValue::Text { text, .. } => PropertyValue::String(text),
        };
        assert_eq!(found, value);
    }
});
