//! The migrations are embedded by a macro; without this, a new file alone would not rebuild the crate.

fn main() {
    println!("cargo:rerun-if-changed=migrations");
}
