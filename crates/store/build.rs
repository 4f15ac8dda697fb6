//! Embeds the migrations. The macro of `sqlx` for this would compile a second copy of SQLite.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    println!("cargo:rerun-if-changed=migrations");
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or(io::ErrorKind::NotFound)?);
    for database in ["sqlite", "postgres"] {
        let code = embed(&Path::new("migrations").join(database).canonicalize()?)?;
        fs::write(out.join(format!("{database}.rs")), code)?;
    }
    Ok(())
}

/// `0001_key_feed_setting.sql` is version 1, "key feed setting".
fn embed(folder: &Path) -> io::Result<String> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    files.sort();
    let mut code = String::from("const MIGRATIONS: &[migrations::Embedded] = &[\n");
    for file in files {
        let stem = file.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        let Some((version, description)) = stem.split_once('_') else {
            return Err(io::Error::other(format!("{stem}: a migration is NUMBER_DESCRIPTION.sql")));
        };
        let version: i64 = version.parse().map_err(io::Error::other)?;
        let description = description.replace('_', " ");
        writeln!(code, "    ({version}, {description:?}, include_str!({file:?})),")
            .map_err(io::Error::other)?;
    }
    code.push_str("];\n");
    Ok(code)
}
