//! `linesman maintenance`: switches the status `maintenance`.

use std::path::Path;

use accounts::{Actor, AuditAction, Maintenance, Need};

use crate::cli::MaintenanceCommand;
use crate::config::Config;
use crate::open;

pub(crate) fn run(
    config: &Config,
    data: &Path,
    command: &MaintenanceCommand,
) -> anyhow::Result<()> {
    open::on_store(config, data, async |registry, context| {
        let wanted = match command {
            MaintenanceCommand::On(args) => {
                let seconds = u32::try_from(args.retry_after.as_secs()).unwrap_or(u32::MAX);
                Maintenance::On { retry_after_s: seconds.max(1) }
            }
            MaintenanceCommand::Off => Maintenance::Off,
        };
        registry.set_maintenance(wanted, &Actor::command_line()).await?;
        let action = match wanted {
            Maintenance::On { .. } => AuditAction::MaintenanceOn,
            Maintenance::Off => AuditAction::MaintenanceOff,
        };
        context.settle(registry, (action, "service", ""), Need::Everywhere).await
    })
}
