//! One node of several.

#[cfg_attr(not(test), expect(dead_code, reason = "no configuration makes a node of several yet"))]
mod news;
