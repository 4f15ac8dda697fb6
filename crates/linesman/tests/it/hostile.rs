//! What bad disks, copies of data folders and other users of the machine do to a service.

mod damage;
mod disk;
mod ids;
mod modes;
mod nats;
