//! Layers of the stack, one file each.
