//! One file for each command.

pub(crate) mod adapters;
pub(crate) mod aliases;
pub(crate) mod backup;
pub(crate) mod events;
pub(crate) mod export;
pub(crate) mod feeds;
pub(crate) mod get;
pub(crate) mod history;
pub(crate) mod init;
pub(crate) mod keys;
pub(crate) mod maintenance;
pub(crate) mod r#match;
pub(crate) mod mcp;
pub(crate) mod migrate;
pub(crate) mod operators;
pub(crate) mod record;
pub(crate) mod replay;
pub(crate) mod serve;
