//! Prometheus' text format, used by every part of the service.

use std::fmt::Write;

/// The `/metrics` page under construction.
#[derive(Debug, Default)]
pub struct MetricsText(String);

impl MetricsText {
    /// Begins a family of series: its name, type and help.
    pub fn family(&mut self, name: &str, kind: &str, help: &str) {
        self.line(format_args!("# HELP {name} {help}"));
        self.line(format_args!("# TYPE {name} {kind}"));
    }

    pub fn line(&mut self, line: std::fmt::Arguments<'_>) {
        // Writing to a `String` cannot fail.
        let written = writeln!(self.0, "{line}");
        debug_assert!(written.is_ok());
    }

    pub fn finish(self) -> String {
        self.0
    }
}
