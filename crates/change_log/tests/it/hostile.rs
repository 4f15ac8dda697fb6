//! A log on a bad disk, with bad files and hostile bytes.

mod damage;
