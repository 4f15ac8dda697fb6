//! `linesman migrate`: from a data folder to PostgreSQL.

use std::time::Instant;

use anyhow::{Context, ensure};

use crate::cli::{MigrateArgs, output};
use crate::folder::Folder;

pub(crate) fn run(args: &MigrateArgs) -> anyhow::Result<()> {
    let folder = Folder::at(&args.from);
    let path = folder.accounts();
    ensure!(path.is_file(), "{} is no data folder of linesman", args.from.display());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let _lock = folder.lock().await?;
        let begun = Instant::now();
        let mut tell = |moved: store::Transferred| {
            let (done, all) = (moved.rows, moved.of);
            output::draw_progress(&output::progress(done, all, "rows", begun.elapsed()));
        };
        let moved = store::transfer(&path, args.to.reveal(), &mut tell).await;
        output::draw_progress("");
        let moved = moved.context("nothing was moved")?;
        Ok(output::print_line(&format!("{} rows moved", moved.rows))?)
    })
}
