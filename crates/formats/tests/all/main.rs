//! Readers and writers of graph formats.

mod arrow_files;
mod bulk_files;
mod bvgraph_files;
mod compressed_inputs;
mod csv_files;
mod csv_properties;
mod dimacs_files;
mod document_files;
mod document_round_trips;
mod edge_lists;
mod generated_files;
mod graphalytics_files;
mod graphar_files;
mod graphframes_files;
mod graphml_files;
mod labeled_inputs;
mod list_files;
mod made;
mod matrix_market_files;
mod metis_files;
mod mutated_inputs;
mod parquet_files;
mod parquet_meanings;
mod reading;
mod serialized_graphs;
mod write_then_read;
