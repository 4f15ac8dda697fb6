//! The scenarios of `sdk/scenarios.json` against the program and a proxy (`sdk/testing/README.md`).
//!
//! `cargo xtask sdk --test` starts both and runs this; without them there is nothing to run. Each scenario is a
//! function with its name.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a test, without the harness that says so"
)]

mod examples;
mod reading;
mod resilience;
mod streams;
mod support;
mod writing;

use std::collections::BTreeSet;
use std::process::ExitCode;

use serde_json::Value;

/// The functions of the scenarios, by name.
macro_rules! scenarios {
    ($($module:ident { $($name:ident)* })*) => {
        const NAMES: &[&str] = &[$($(stringify!($name)),*),*];

        async fn run(name: &str) {
            match name {
                $($(stringify!($name) => $module::$name().await,)*)*
                name => panic!("no scenario {name}"),
            }
        }
    };
}

scenarios! {
    reading {
        settings_from_environment key_in_header_only user_agent_names_client every_operation_has_a_method
        export_is_written_in_pieces lists_are_joined_by_commas pages_equal_one_long_page max_items_ends_early pages_one_by_one
        unknown_fields_and_values_are_accepted results_carry_meta
    }
    resilience {
        retry_after_is_respected backoff_without_retry_after lost_connection_is_retried quota_exceeded_fails_at_once
        long_wait_fails_at_once cached_response_needs_no_request unchanged_response_is_reused status_is_never_cached
        cache_can_be_disabled cache_is_bounded errors_have_types unknown_code_gives_base_type
    }
    streams {
        stream_folds_to_the_lists stream_resumes_after_a_lost_connection stream_reset_is_reported
        stream_accepts_what_is_unknown stream_is_bounded stream_ends since_brings_only_changes
    }
    writing { push_counts_lines_of_whole_input push_retries_unavailable }
    examples { examples_run }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // Nextest requests the names of tests.
    if arguments.iter().any(|argument| argument == "--list") {
        return ExitCode::SUCCESS;
    }
    if std::env::var_os("LINESMAN_TEST_PROXY").is_none() {
        println!("the scenarios need a server: cargo xtask sdk --test");
        return ExitCode::SUCCESS;
    }
    // For requests by the tests themselves.
    let _chosen = rustls::crypto::ring::default_provider().install_default();
    let listed: Value = serde_json::from_str(include_str!("../../../scenarios.json")).unwrap();
    let listed = listed.as_array().unwrap().iter().filter_map(|one| one["name"].as_str());
    let known: BTreeSet<&str> = NAMES.iter().copied().collect();
    assert_eq!(known, listed.collect(), "sdk/scenarios.json and the functions differ");
    let wanted = |name: &&&str| arguments.is_empty() || arguments.iter().any(|one| one == **name);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    for name in NAMES.iter().filter(wanted) {
        // Printed above the output of a failure.
        println!("{name}");
        runtime.block_on(run(name));
    }
    ExitCode::SUCCESS
}
