//! A face twin on another mesh (in the making).
