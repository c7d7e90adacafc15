//! The messages of a file with one record batch.

use arrow_ipc::convert::IpcSchemaEncoder;
use arrow_ipc::{
    Block, Buffer, FieldNode, FooterBuilder, MessageBuilder, MessageHeader, MetadataVersion, RecordBatchBuilder,
};
use arrow_schema::Schema;
use flatbuffers::FlatBufferBuilder;

use super::columns::{ColumnBuffers, GrowingBuffer, ListBuffers};
use crate::Result;
use crate::arrow_file::MAGIC;
use crate::write::Output;

/// The marker before the length of a message.
const CONTINUATION: [u8; 4] = [0xff; 4];
/// Each buffer begins at a multiple of this, as the format recommends for vector instructions.
const ALIGNMENT: u64 = 64;

/// Writes a batch: the columns of the vertices, and their lists of arcs as the last column of the schema.
pub(super) fn write_batch(
    schema: &Schema,
    vertices: Vec<ColumnBuffers>,
    lists: ListBuffers,
    arcs: Vec<ColumnBuffers>,
    output: &mut Output<'_>,
) -> Result<()> {
    let (num_rows, num_arcs) = (lists.num_lists as i64, lists.num_elements as i64);
    let mut nodes: Vec<FieldNode> = vertices.iter().flat_map(ColumnBuffers::nodes).collect();
    // The lists, then the struct of an arc; neither has nulls.
    nodes.extend([FieldNode::new(num_rows, 0), FieldNode::new(num_arcs, 0)]);
    nodes.extend(arcs.iter().flat_map(ColumnBuffers::nodes));
    let mut buffers: Vec<GrowingBuffer> = Vec::new();
    for column in vertices {
        buffers.extend(column.finish()?);
    }
    buffers.extend([GrowingBuffer::default(), lists.finish()?, GrowingBuffer::default()]);
    for column in arcs {
        buffers.extend(column.finish()?);
    }
    let (mut places, mut body_bytes) = (Vec::with_capacity(buffers.len()), 0);
    for buffer in &buffers {
        places.push(Buffer::new(body_bytes as i64, buffer.len() as i64));
        body_bytes += buffer.len().next_multiple_of(ALIGNMENT);
    }
    output.write(MAGIC)?;
    output.write(&[0; 2])?;
    let mut at = 8;
    at += write_header(&schema_message(schema), at, output)?;
    let header_bytes = write_header(&batch_message(num_rows, &nodes, &places, body_bytes), at, output)?;
    for buffer in buffers {
        let num_bytes = buffer.len();
        buffer.write(output)?;
        output.write(&vec![0; (num_bytes.next_multiple_of(ALIGNMENT) - num_bytes) as usize])?;
    }
    output.write(&CONTINUATION)?;
    output.write(&[0; 4])?;
    let footer = footer(schema, Block::new(at as i64, header_bytes as i32, body_bytes as i64));
    output.write(&footer)?;
    output.write(&(footer.len() as i32).to_le_bytes())?;
    output.write(MAGIC)?;
    output.flush()
}

/// Writes the header of a message at a place. Returns the bytes until its body.
fn write_header(header: &[u8], at: u64, output: &mut Output<'_>) -> Result<u64> {
    let end = (at + 8 + header.len() as u64).next_multiple_of(ALIGNMENT);
    let num_bytes = end - at - 8;
    output.write(&CONTINUATION)?;
    output.write(&(num_bytes as u32).to_le_bytes())?;
    output.write(header)?;
    output.write(&vec![0; num_bytes as usize - header.len()])?;
    Ok(end - at)
}

fn schema_message(schema: &Schema) -> Vec<u8> {
    let mut builder = FlatBufferBuilder::new();
    let header = IpcSchemaEncoder::new().schema_to_fb_offset(&mut builder, schema).as_union_value();
    let mut message = MessageBuilder::new(&mut builder);
    message.add_version(MetadataVersion::V5);
    message.add_header_type(MessageHeader::Schema);
    message.add_bodyLength(0);
    message.add_header(header);
    let message = message.finish();
    builder.finish(message, None);
    builder.finished_data().to_vec()
}

fn batch_message(num_rows: i64, nodes: &[FieldNode], places: &[Buffer], body_bytes: u64) -> Vec<u8> {
    let mut builder = FlatBufferBuilder::new();
    let (nodes, places) = (builder.create_vector(nodes), builder.create_vector(places));
    let mut batch = RecordBatchBuilder::new(&mut builder);
    batch.add_length(num_rows);
    batch.add_nodes(nodes);
    batch.add_buffers(places);
    let batch = batch.finish().as_union_value();
    let mut message = MessageBuilder::new(&mut builder);
    message.add_version(MetadataVersion::V5);
    message.add_header_type(MessageHeader::RecordBatch);
    message.add_bodyLength(body_bytes as i64);
    message.add_header(batch);
    let message = message.finish();
    builder.finish(message, None);
    builder.finished_data().to_vec()
}

fn footer(schema: &Schema, batch: Block) -> Vec<u8> {
    let mut builder = FlatBufferBuilder::new();
    let dictionaries = builder.create_vector::<Block>(&[]);
    let batches = builder.create_vector(&[batch]);
    let schema = IpcSchemaEncoder::new().schema_to_fb_offset(&mut builder, schema);
    let mut footer = FooterBuilder::new(&mut builder);
    footer.add_version(MetadataVersion::V5);
    footer.add_schema(schema);
    footer.add_dictionaries(dictionaries);
    footer.add_recordBatches(batches);
    let footer = footer.finish();
    builder.finish(footer, None);
    builder.finished_data().to_vec()
}
