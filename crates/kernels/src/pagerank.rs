//! PageRank.
