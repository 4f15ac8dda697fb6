//! The legal scores of each sport, written from the rules of the game and not from the simulator.

use domain::message::ScoreBody;
use domain::{Period, Status};

pub(crate) fn check(sport: &str, score: &ScoreBody) -> Result<(), String> {
    let numbered = score.periods.iter().zip(1..).all(|(period, number)| period.number == number);
    ensure(numbered, "periods are not numbered from 1")?;
    match sport {
        "tennis" => tennis(score),
        "american_football" => football(score),
        "golf" => golf(score),
        _ => fight(score),
    }
    .map_err(|fault| format!("{fault}: {score:?}"))
}

fn ensure(holds: bool, fault: &str) -> Result<(), String> {
    holds.then_some(()).ok_or_else(|| fault.to_owned())
}

fn numbers(score: &ScoreBody) -> Result<(i32, i32), String> {
    score.home.zip(score.away).ok_or("no numbers".to_owned())
}

fn tennis(score: &ScoreBody) -> Result<(), String> {
    let (home, away) = numbers(score)?;
    ensure(score.winner.is_none(), "tennis names no winner")?;
    let complete = |set: &Period| {
        matches!((set.home.max(set.away), set.home.min(set.away)), (6, 0..=4) | (7, 5 | 6))
    };
    let running = |set: &Period| {
        let (most, least) = (set.home.max(set.away), set.home.min(set.away));
        (0..=5).contains(&most) || (most == 6 && (5..=6).contains(&least))
    };
    let sets: Vec<&Period> = score.periods.iter().collect();
    ensure((1..=3).contains(&sets.len()), "one to three sets")?;
    let done: Vec<&&Period> = sets.iter().filter(|set| complete(set)).collect();
    let won = |f: &dyn Fn(&Period) -> bool| done.iter().filter(|set| f(set)).count();
    ensure(i32::try_from(won(&|set| set.home > set.away)) == Ok(home), "home sets")?;
    ensure(i32::try_from(won(&|set| set.away > set.home)) == Ok(away), "away sets")?;
    let (last, before) = sets.split_last().expect("at least one set");
    ensure(before.iter().all(|set| complete(set)), "a set before is open")?;
    ensure(complete(last) || running(last), "an impossible set")?;
    let over = home == 2 || away == 2;
    ensure(over == (score.status == Status::Final), "two sets end it")?;
    ensure(home <= 2 && away <= 2 && home + away <= 3, "too many sets")
}

fn football(score: &ScoreBody) -> Result<(), String> {
    let (home, away) = numbers(score)?;
    ensure((1..=5).contains(&score.periods.len()), "one to five periods")?;
    let sum = |f: fn(&Period) -> i32| score.periods.iter().map(f).sum::<i32>();
    ensure(sum(|q| q.home) == home && sum(|q| q.away) == away, "quarters do not add up")?;
    // Points come as 2, 3, 6, 7 and 8: every total but 1 is possible.
    let legal = |points: i32| points >= 0 && points != 1;
    let all = score.periods.iter();
    ensure(all.clone().all(|q| legal(q.home) && legal(q.away)), "a quarter of one point")?;
    let regulation = all.clone().take(4);
    if score.periods.len() == 5 {
        let (h, a) = regulation.fold((0, 0), |(h, a), q| (h + q.home, a + q.away));
        ensure(h == a, "overtime without a tie")?;
    }
    if score.status == Status::Final {
        ensure(score.periods.len() >= 4, "ended before the fourth quarter")?;
        ensure(home != away, "ended in a tie")?;
    }
    ensure(home <= 90 && away <= 90, "beyond belief")
}

fn fight(score: &ScoreBody) -> Result<(), String> {
    let (home, away) = numbers(score)?;
    ensure(score.periods.len() <= 12, "more than twelve rounds")?;
    let must = |round: &Period| round.home.max(round.away) == 10 && round.home.min(round.away) >= 7;
    ensure(score.periods.iter().all(must), "not by the ten-point must")?;
    if score.status == Status::Final {
        ensure(score.winner.is_some(), "ended without a winner")?;
        ensure(home + away == 1, "the winner has one, the loser none")
    } else {
        ensure(score.winner.is_none() && (home, away) == (0, 0), "won before the end")
    }
}

fn golf(score: &ScoreBody) -> Result<(), String> {
    ensure(score.home.is_none() && score.away.is_none(), "golf has no sides")?;
    ensure(score.periods.is_empty(), "golf sends leaders")?;
    let leaders = &score.leaders;
    let rounds = leaders.iter().flat_map(|(_, rounds)| rounds);
    let sane = rounds.clone().all(|strokes| (54..=95).contains(strokes));
    ensure(sane, "a round beyond belief")?;
    ensure(leaders.iter().all(|(_, rounds)| rounds.len() <= 4), "more than four rounds")?;
    let distinct: std::collections::HashSet<_> = leaders.iter().map(|(name, _)| name).collect();
    ensure(distinct.len() == leaders.len(), "somebody leads twice")?;
    if score.status == Status::Final {
        ensure(leaders.len() >= 10, "a short leaderboard")?;
        let played = leaders.first().map_or(0, |(_, rounds)| rounds.len());
        ensure(played == 4 || played == 1, "four rounds, or one for a qualifier")?;
        let same = leaders.iter().all(|(_, rounds)| rounds.len() == played);
        ensure(same, "not everybody finished")?;
        let totals: Vec<i32> = leaders.iter().map(|(_, rounds)| rounds.iter().sum()).collect();
        ensure(totals.is_sorted(), "the leaderboard is out of order")?;
    }
    Ok(())
}
