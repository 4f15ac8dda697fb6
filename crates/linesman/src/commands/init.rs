//! `linesman init`: creates a data folder without starting the service.

use std::path::Path;

use anyhow::ensure;

use crate::cli::output;
use crate::config::Config;
use crate::folder::Folder;
use crate::open;

pub(crate) fn run(config: &Config, data: &Path) -> anyhow::Result<()> {
    ensure!(
        config.cluster.is_none(),
        "`database.url` is set: a cluster's data is in its database, which `linesman serve` prepares"
    );
    let shown = data.display();
    if open::check_folder(data).is_ok() {
        return output::print_line(&format!(
            "{shown} is a data folder already; nothing was changed"
        ));
    }
    let folder = Folder::open(data)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        open::open_store(config, &folder).await?.close().await;
        anyhow::Ok(())
    })?;
    output::print_line(&format!(
        "created the data folder {shown}; `linesman serve --data {shown}` runs on it"
    ))
}
