//! The shapes.

use domain::Market;
use domain::Status;
use domain::message::{FeedMessage, MARKETS_MAX, OUTCOMES_MAX};

use crate::world::{World, bout, near_words, own_words, remove, score, shared_words, title, word};

/// A kind of attack: it prepares a world, and then repeats a message.
pub(crate) struct Shape {
    pub(crate) of: &'static str,
    pub(crate) name: &'static str,
    pub(crate) build: fn(&mut World),
    pub(crate) say: fn(&mut World, usize) -> Option<(String, FeedMessage)>,
}

/// Number of markets of an event near the limit.
const MARKETS: usize = MARKETS_MAX - 10;

fn golf(world: &mut World) {
    let event = world.event("golf", "g", title("Harbour Open"), 24);
    world.say("evil", &event);
}

fn evil(message: FeedMessage) -> Option<(String, FeedMessage)> {
    Some(("evil".to_owned(), message))
}

fn price(n: usize) -> i32 {
    100 + i32::try_from(n).unwrap_or(0)
}

fn names(names: impl Iterator<Item = String>) -> impl Iterator<Item = (String, Option<i32>)> {
    names.map(|name| (name, None))
}

const OUTRIGHT: (usize, Market, Option<&str>) = (0, Market::Outright, None);

/// A field with as many pairings as an event may have.
fn crowded_golf(world: &mut World) {
    golf(world);
    for n in 0..MARKETS {
        let group = format!("three-ball number {n} of a long list of them");
        let players = (0..3).map(|at| word(3000 + (n + at) % 300));
        let odds = world.odds("g", (n % 20, Market::ThreeBall, Some(&group)), names(players), 140);
        world.say("evil", &odds);
    }
}

/// A listing that is repeated with names that are nearly the same on both sides.
fn near_bout(n: usize, words: usize, len: usize) -> domain::message::Fixture {
    let of = |from| format!("{} {}", near_words(from, words - 1, len), word(7));
    bout(&of(n % 40), &of(40 + n % 37))
}

fn near_pairs(n: usize) -> domain::message::Fixture {
    let of = |from| format!("{} {}", near_words(from, 8, 9), word(7));
    let pair = |from| format!("{} / {}", of(from), of(from + 5));
    bout(&pair(n % 40), &pair(60 + n % 37))
}

/// The worst bout, listed by some feeds in different spellings.
fn crowd(world: &mut World, feeds: usize, fixture: fn(usize) -> domain::message::Fixture) {
    for feed in 0..feeds {
        for n in 0..40 {
            let listed = world.event(
                "mma",
                &format!("c-{n}"),
                fixture(n),
                24 + i64::try_from(n % 9).unwrap_or(0),
            );
            world.say(&format!("feed-{feed}"), &listed);
        }
    }
}

pub(crate) const SHAPES: [Shape; 30] = [
    Shape {
        of: "odds",
        name: "a full field, as many others who share nine words",
        build: |world| {
            golf(world);
            world.fill_field("g", (0..OUTCOMES_MAX - 1).map(shared_words));
        },
        say: |world, n| {
            let players = (0..OUTCOMES_MAX).map(|at| shared_words(10_000 + at));
            evil(world.odds("g", OUTRIGHT, names(players), price(n)))
        },
    },
    Shape {
        of: "odds",
        name: "half a field, the other half share nine words",
        build: |world| {
            golf(world);
            world.fill_field("g", (0..OUTCOMES_MAX / 2).map(shared_words));
        },
        say: |world, n| {
            let players = (0..OUTCOMES_MAX / 2).map(|at| shared_words(10_000 + at));
            evil(world.odds("g", OUTRIGHT, names(players), price(n)))
        },
    },
    Shape {
        of: "odds",
        name: "half a field, the other half nearly the same words",
        build: |world| {
            golf(world);
            world.fill_field(
                "g",
                (0..OUTCOMES_MAX / 2).map(|n| format!("{} {}", near_words(n, 9, 17), word(n / 12))),
            );
        },
        say: |world, n| {
            let name = |at| format!("{} {}", near_words(1000 + at, 9, 17), word(at / 12));
            evil(world.odds("g", OUTRIGHT, names((0..OUTCOMES_MAX / 2).map(name)), price(n)))
        },
    },
    Shape {
        of: "odds",
        name: "a new field, filled by one message",
        build: golf,
        say: |world, n| {
            let reference = format!("g-{n}");
            let event =
                world.event("golf", &reference, title(&format!("Harbour Open {}", word(n))), 24);
            world.say("evil", &event);
            let players = (0..OUTCOMES_MAX).map(shared_words);
            (n < 40).then(|| evil(world.odds(&reference, OUTRIGHT, names(players), price(n))))?
        },
    },
    Shape {
        of: "odds",
        name: "a full field, as it is known",
        build: |world| {
            golf(world);
            world.fill_field("g", (0..OUTCOMES_MAX).map(own_words));
        },
        say: |world, n| {
            evil(world.odds("g", OUTRIGHT, names((0..OUTCOMES_MAX).map(own_words)), price(n)))
        },
    },
    Shape {
        of: "odds",
        name: "a full field in capitals",
        build: |world| {
            golf(world);
            world.fill_field("g", (0..OUTCOMES_MAX).map(own_words));
        },
        say: |world, n| {
            let players = (0..OUTCOMES_MAX).map(|at| own_words(at).to_uppercase());
            evil(world.odds("g", OUTRIGHT, names(players), price(n)))
        },
    },
    Shape {
        of: "odds",
        name: "a full field in letters that unfold",
        build: |world| {
            golf(world);
            world.fill_field(
                "g",
                (0..OUTCOMES_MAX).map(|n| format!("{} {}", "\u{fdfa}".repeat(9), word(n))),
            );
        },
        say: |world, n| {
            let name = |at| format!("{} {}", "\u{fdfa}".repeat(9), word(at).to_uppercase());
            evil(world.odds("g", OUTRIGHT, names((0..OUTCOMES_MAX).map(name)), price(n)))
        },
    },
    Shape {
        of: "odds",
        name: "five hundred lines under misspelt sides",
        build: |world| {
            let event = world.event("mma", "m", near_bout(0, 10, 17), 24);
            world.say("evil", &event);
        },
        say: |world, n| {
            let home = |at: usize| format!("{} {}", near_words(at % 12, 9, 17), word(8));
            let lines = (0..OUTCOMES_MAX).map(|at| (home(at), i32::try_from(at).ok()));
            evil(world.odds("m", (0, Market::Spread, None), lines, price(n)))
        },
    },
    Shape {
        of: "odds",
        name: "five hundred spellings of the sides",
        build: |world| {
            let event = world.event("mma", "m", near_bout(0, 10, 17), 24);
            world.say("evil", &event);
        },
        say: |world, n| {
            let home =
                |at: usize| format!("{} {}", near_words(0, 9, 17), word(7) + &"x".repeat(at % 30));
            let lines = (0..OUTCOMES_MAX).map(|at| (home(at), i32::try_from(at).ok()));
            evil(world.odds("m", (0, Market::Spread, None), lines, price(n)))
        },
    },
    Shape {
        of: "odds",
        name: "a pairing of an event with 4,000 markets",
        build: crowded_golf,
        say: |world, n| {
            let players = (0..OUTCOMES_MAX)
                .map(|at| word(3000 + at % 300) + if at < 300 { "" } else { " ii" });
            evil(world.odds("g", (0, Market::Matchup, Some("one")), names(players), price(n)))
        },
    },
    Shape {
        of: "event",
        name: "look-alikes: nine long words on both sides",
        build: |_| {},
        say: |world, n| {
            let fixture = bout(&shared_words(n), &shared_words(900 + n));
            evil(world.event("mma", &format!("e-{n}"), fixture, 24))
        },
    },
    Shape {
        of: "event",
        name: "look-alikes: nearly the same words, one feed",
        build: |world| crowd(world, 1, |n| near_bout(n, 10, 17)),
        say: |world, n| evil(world.event("mma", &format!("e-{n}"), near_bout(n, 10, 17), 24)),
    },
    Shape {
        of: "event",
        name: "look-alikes: nearly the same words, ten feeds",
        build: |world| crowd(world, 10, |n| near_bout(n, 10, 17)),
        say: |world, n| evil(world.event("mma", &format!("e-{n}"), near_bout(n, 10, 17), 24)),
    },
    Shape {
        of: "event",
        name: "look-alikes: doubles, ten feeds",
        build: |world| crowd(world, 10, near_pairs),
        say: |world, n| evil(world.event("tennis", &format!("e-{n}"), near_pairs(n), 24)),
    },
    Shape {
        of: "event",
        name: "look-alikes: doubles, ten feeds, the same sport",
        build: |world| crowd(world, 10, near_pairs),
        say: |world, n| evil(world.event("mma", &format!("e-{n}"), near_pairs(n), 24)),
    },
    Shape {
        of: "event",
        name: "look-alikes: team names, ten feeds",
        build: |world| {
            for feed in 0..10 {
                for n in 0..40 {
                    let listed = world.event(
                        "american_football",
                        &format!("c-{n}"),
                        near_bout(n, 10, 17),
                        24,
                    );
                    world.say(&format!("feed-{feed}"), &listed);
                }
            }
        },
        say: |world, n| {
            evil(world.event("american_football", &format!("e-{n}"), near_bout(n, 10, 17), 24))
        },
    },
    Shape {
        of: "event",
        name: "known refs moved in time among look-alikes",
        build: |world| crowd(world, 10, |n| near_bout(n, 10, 17)),
        say: |world, n| {
            let hours = 24 + i64::try_from(n % 13).unwrap_or(0);
            let event =
                world.event("mma", &format!("c-{}", n % 40), near_bout(n % 40, 10, 17), hours);
            Some((format!("feed-{}", n % 10), event))
        },
    },
    Shape {
        of: "event",
        name: "one pair listed under thousands of refs",
        build: |world| {
            for n in 0..5_000 {
                let listed = world.event("mma", &format!("d-{n}"), near_bout(0, 10, 17), 24);
                world.say("evil", &listed);
            }
        },
        say: |world, n| {
            let event = world.event("mma", &format!("e-{n}"), near_bout(0, 10, 17), 24);
            Some((format!("feed-{}", n % 20), event))
        },
    },
    Shape {
        of: "event",
        name: "a ref that changes between two crowded pairs",
        build: |world| {
            for feed in 0..20 {
                for n in 0..2 {
                    let listed =
                        world.event("mma", &format!("d-{n}"), near_bout(20 * n, 10, 17), 24);
                    world.say(&format!("feed-{feed}"), &listed);
                }
            }
        },
        say: |world, n| evil(world.event("mma", "flip", near_bout(20 * (n % 2), 10, 17), 24)),
    },
    Shape {
        of: "event",
        name: "tournaments of a hundred words each",
        build: |world| {
            for feed in 0..10 {
                for n in 0..40 {
                    let name = (0..28).map(|at| word(n % 3 + at)).collect::<Vec<_>>().join(" ");
                    let listed = world.event(
                        "golf",
                        &format!("t-{n}"),
                        title(name.get(..200).unwrap_or(&name)),
                        24,
                    );
                    world.say(&format!("feed-{feed}"), &listed);
                }
            }
        },
        say: |world, n| {
            let name = (0..28).map(|at| word(n % 5 + at)).collect::<Vec<_>>().join(" ");
            evil(world.event(
                "golf",
                &format!("e-{n}"),
                title(name.get(..200).unwrap_or(&name)),
                24,
            ))
        },
    },
    Shape {
        of: "event",
        name: "a tournament of 4,000 markets renamed",
        build: crowded_golf,
        say: |world, n| {
            evil(world.event("golf", "g", title(&format!("Harbour Open {}", word(n % 2))), 24))
        },
    },
    Shape {
        of: "event",
        name: "a tournament of 4,000 markets that leaves and comes",
        build: |world| {
            crowded_golf(world);
            let other = world.event("golf", "g", title("Harbour Open"), 24);
            world.say("north", &other);
            let other = world.event("golf", "h", title("Mountain Classic"), 24);
            world.say("north", &other);
        },
        say: |world, n| {
            evil(world.event(
                "golf",
                "g",
                title(if n % 2 == 0 { "Mountain Classic" } else { "Harbour Open" }),
                24,
            ))
        },
    },
    Shape {
        of: "event",
        name: "names that are taught over and over",
        build: |world| {
            for n in 0..200 {
                let listed = world.event(
                    "mma",
                    &format!("t-{n}"),
                    bout("Tomas Veldt", &format!("Oskar {}", word(n))),
                    24,
                );
                world.say("north", &listed);
                let listed = world.event(
                    "mma",
                    &format!("t-{n}"),
                    bout("Tomas Feldt", &format!("Oskar {}", word(n))),
                    24,
                );
                world.say("evil", &listed);
            }
        },
        say: |world, n| {
            let fixture =
                bout(&format!("Tomas Veldt {}", word(n % 7)), &format!("Oskar {}", word(n % 200)));
            evil(world.event("mma", &format!("t-{}", n % 200), fixture, 24))
        },
    },
    Shape {
        of: "event",
        name: "events that fall together in a book of 100,000 refs",
        build: |world| {
            world.fill(50_000);
            for n in 0..300 {
                let fixture =
                    bout(&format!("Tomas {}", word(n)), &format!("Oskar {}", word(400 + n)));
                let listed = world.event("mma", &format!("t-{n}"), fixture.clone(), 24);
                world.say("north", &listed);
                let listed = world.event("mma", &format!("t-{n}"), fixture, 24 + 24 * 6);
                world.say("evil", &listed);
            }
        },
        say: |world, n| {
            let fixture = bout(&format!("Tomas {}", word(n)), &format!("Oskar {}", word(400 + n)));
            evil(world.event("mma", &format!("t-{n}"), fixture, 25))
        },
    },
    Shape {
        of: "event",
        name: "letters that unfold",
        build: |_| {},
        say: |world, n| {
            let of = |n: usize| format!("{}{}", "\u{fdfa}".repeat(60), word(n));
            evil(world.event("mma", &format!("u-{n}"), bout(&of(n), &of(900 + n)), 24))
        },
    },
    Shape {
        of: "score",
        name: "half a field of leaders, the other half nearly the same",
        build: |world| {
            golf(world);
            world.fill_field(
                "g",
                (0..OUTCOMES_MAX / 2).map(|n| format!("{} {}", near_words(n, 9, 17), word(n / 12))),
            );
        },
        say: |_, n| {
            let name = |at| format!("{} {}", near_words(1000 + at, 9, 17), word(at / 12)).into();
            let leaders = (0..OUTCOMES_MAX / 2).map(|at| (name(at), vec![price(n)]));
            evil(score("g", Status::Live, leaders.collect()))
        },
    },
    Shape {
        of: "score",
        name: "a full field of leaders with a hundred rounds each",
        build: |world| {
            golf(world);
            world.fill_field("g", (0..OUTCOMES_MAX).map(own_words));
        },
        say: |_, n| {
            let leaders = (0..OUTCOMES_MAX).map(|at| (own_words(at).into(), vec![price(n); 100]));
            evil(score("g", Status::Live, leaders.collect()))
        },
    },
    Shape {
        of: "remove",
        name: "a tournament of 4,000 markets",
        build: |world| {
            crowded_golf(world);
            let other = world.event("golf", "g", title("Harbour Open"), 24);
            world.say("north", &other);
        },
        say: |_, n| (n == 0).then(|| evil(remove("g")))?,
    },
    Shape {
        of: "remove",
        name: "look-alikes that ten feeds list",
        build: |world| crowd(world, 10, |n| near_bout(n, 10, 17)),
        say: |_, n| Some((format!("feed-{}", n % 10), remove(&format!("c-{}", n / 10)))),
    },
    Shape {
        of: "heartbeat",
        name: "of every sport",
        build: |world| world.fill(1000),
        say: |world, _| evil(world.beat()),
    },
];
