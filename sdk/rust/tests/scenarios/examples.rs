//! The examples of the README and of the docs page are the files in `tests/examples`, and they run.

use tokio::task::spawn_blocking;

const PAGES: [(&str, &str); 2] = [
    ("README.md", include_str!("../../README.md")),
    ("docs/clients/rust.md", include_str!("../../../../docs/clients/rust.md")),
];

macro_rules! examples {
    ($($name:ident)*) => {
        $(mod $name {
            include!(concat!("../examples/", stringify!($name), ".rs"));

            pub(super) fn run() {
                main().unwrap();
            }
        })*

        type Example = (&'static str, fn(), &'static str);

        const EXAMPLES: &[Example] = &[$((
            stringify!($name),
            $name::run,
            include_str!(concat!("../examples/", stringify!($name), ".rs")),
        )),*];
    };
}

examples! { odds pages errors stream since why push }

/// A whole program.
mod arbitrage_watch {
    include!("../../../../examples/arbitrage-watch/src/main.rs");

    pub(super) fn run() {
        main().unwrap();
    }
}

pub(crate) async fn examples_run() {
    let mut shown = Vec::new();
    for (page, text) in PAGES {
        let blocks = text.split("```rust\n").skip(1);
        for block in blocks.filter_map(|block| block.split("```").next()) {
            let known = EXAMPLES.iter().find(|(_, _, source)| *source == block);
            let Some((name, ..)) = known else {
                panic!("{page} shows what is no file of tests/examples:\n{block}")
            };
            shown.push(*name);
        }
    }
    for (name, run, _) in EXAMPLES {
        assert!(shown.contains(name), "no page shows tests/examples/{name}.rs");
        spawn_blocking(*run).await.unwrap();
    }
    spawn_blocking(arbitrage_watch::run).await.unwrap();
}
