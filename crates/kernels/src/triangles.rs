//! Triangles.
