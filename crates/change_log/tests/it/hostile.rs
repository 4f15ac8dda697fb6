//! What a bad disk, a bad file and hostile bytes do to a log.

mod damage;
