//! Stylesheet, script and logo of the pages: embedded, compressed once, served under names derived from their content.

use std::sync::LazyLock;

use xxhash_rust::xxh3::xxh3_64;

use api::Asset;

const STYLE: &str = include_str!("../../assets/app.css");
const SCRIPT: &str = include_str!("../../assets/app.js");
const BOARD_STYLE: &str = include_str!("../../assets/board.css");
const BOARD: &str = include_str!("../../assets/board.js");
const DOCS_STYLE: &str = include_str!("../../assets/docs.css");
const DOCS: &str = include_str!("../../assets/docs.js");
const MARK: &str = include_str!("../../assets/mark.svg");

struct Named {
    path: String,
    asset: Asset,
}

impl Named {
    fn new(stem: &str, ending: &str, content_type: &'static str, body: &'static str) -> Self {
        let path = format!("/assets/{stem}.{:016x}.{ending}", xxh3_64(body.as_bytes()));
        Self { path, asset: Asset::new(content_type, body).immutable() }
    }
}

static ASSETS: LazyLock<[Named; 7]> = LazyLock::new(|| {
    [
        Named::new("web", "css", "text/css; charset=utf-8", STYLE),
        Named::new("web", "js", "text/javascript; charset=utf-8", SCRIPT),
        Named::new("board", "js", "text/javascript; charset=utf-8", BOARD),
        Named::new("board", "css", "text/css; charset=utf-8", BOARD_STYLE),
        Named::new("docs", "css", "text/css; charset=utf-8", DOCS_STYLE),
        Named::new("docs", "js", "text/javascript; charset=utf-8", DOCS),
        Named::new("mark", "svg", "image/svg+xml", MARK),
    ]
});

pub(crate) fn find(path: &str) -> Option<&'static Asset> {
    ASSETS.iter().find(|named| named.path == path).map(|named| &named.asset)
}

pub(crate) fn style_path() -> &'static str {
    let [style, ..] = &*ASSETS;
    &style.path
}

pub(crate) fn script_path() -> &'static str {
    let [_, script, ..] = &*ASSETS;
    &script.path
}

pub(crate) fn board_path() -> &'static str {
    let [_, _, board, ..] = &*ASSETS;
    &board.path
}

pub(crate) fn mark_path() -> &'static str {
    let [.., mark] = &*ASSETS;
    &mark.path
}

pub(crate) fn board_style_path() -> &'static str {
    let [_, _, _, style, ..] = &*ASSETS;
    &style.path
}

pub(crate) fn docs_style_path() -> &'static str {
    let [_, _, _, _, style, ..] = &*ASSETS;
    &style.path
}

pub(crate) fn docs_script_path() -> &'static str {
    let [.., script, _] = &*ASSETS;
    &script.path
}
