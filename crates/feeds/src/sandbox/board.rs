//! The final positions of a golf field: one distribution of the leaderboard, from which outright, top-N, round leader
//! and pairings are all derived, so that they agree.
//!
//! Each player's final score is assumed to be normal. On a grid of scores, the number of better players is a sum of
//! independent events (Poisson-binomial); integrating the chance of fewer than k over a player's own score gives the
//! chance of a position. Nothing is random, so the result is the same everywhere and cheap.

use super::noise::{count, normal_cdf};

/// The expected final score of a player, with its variance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Outlook {
    pub(crate) mean: f64,
    pub(crate) variance: f64,
}

/// The chance of each player to finish among the first `k`, for each requested `k`, smallest first.
pub(crate) fn places<const N: usize>(field: &[Outlook], among: [usize; N]) -> Vec<[f64; N]> {
    /// Number of grid points; 40 give chances with an error of about 0.1%.
    const POINTS: i32 = 40;
    let most = among.into_iter().max().unwrap_or(1);
    let deviation = |player: &Outlook| player.variance.max(0.04).sqrt();
    let best = field
        .iter()
        .map(|player| player.mean - 3.6 * deviation(player))
        .fold(f64::INFINITY, f64::min);
    // The requested positions are all won below the mean of the player at twice the largest of them.
    let mut means: Vec<f64> =
        field.iter().map(|player| player.mean + 1.2 * deviation(player)).collect();
    means.sort_by(f64::total_cmp);
    let worst = means.get((2 * most).min(means.len().saturating_sub(1))).copied().unwrap_or(0.0);
    let width = (worst - best) / f64::from(POINTS);
    let mut chances = vec![[0.0; N]; field.len()];
    let mut below: Vec<f64> =
        field.iter().map(|player| normal_cdf((best - player.mean) / deviation(player))).collect();
    let mut fewer = vec![0.0; most];
    let mut better = Vec::with_capacity(field.len());
    for point in 0..POINTS {
        let middle = best + width * (f64::from(point) + 0.5);
        let right = middle + width / 2.0;
        better.clear();
        better.extend(field.iter().map(|player| better_than(player, middle)));
        sum_of_events(&better, &mut fewer);
        let reach = among.map(|k| fewer.iter().take(k).sum::<f64>());
        let players = field.iter().zip(&mut chances).zip(&mut below).zip(&better);
        for (((player, chance), below), better) in players {
            let now = normal_cdf((right - player.mean) / deviation(player));
            let here = now - *below;
            *below = now;
            if here < 1e-7 {
                continue;
            }
            // The sum includes the player himself; dividing his own share out is exact for the first position and
            // close enough for the others.
            let own = 1.0 - better;
            for (slot, (reach, k)) in chance.iter_mut().zip(reach.into_iter().zip(among)) {
                let reach = if k == 1 { (reach / own.max(0.02)).min(1.0) } else { reach };
                *slot += here * reach;
            }
        }
    }
    for (at, k) in among.into_iter().enumerate() {
        settle(&mut chances, at, count(k.min(field.len())));
    }
    // A player among the first five is also among the first ten, despite the scaling.
    for chance in &mut chances {
        let mut least = 0.0_f64;
        for p in chance {
            least = least.max(*p);
            *p = least;
        }
    }
    chances
}

fn better_than(player: &Outlook, score: f64) -> f64 {
    normal_cdf((score - player.mean) / player.variance.max(0.04).sqrt())
}

/// The chances that exactly 0, 1, 2 … of the events happen, as many as `into` holds.
fn sum_of_events(events: &[f64], into: &mut [f64]) {
    into.fill(0.0);
    if let Some(first) = into.first_mut() {
        *first = 1.0;
    }
    // Only as many entries as events so far can be above zero.
    let mut seen = 0_usize;
    for &p in events {
        if p < 1e-9 {
            continue;
        }
        seen = (seen + 1).min(into.len());
        let mut carried = 0.0;
        for slot in into.iter_mut().take(seen + 1) {
            let moved = *slot * p;
            *slot += carried - moved;
            carried = moved;
        }
    }
}

/// Scales chances to the right sum, in odds rather than in chances, so that none exceeds 1.
fn settle<const N: usize>(chances: &mut [[f64; N]], at: usize, sum: f64) {
    for _ in 0..4_u8 {
        let have: f64 = chances.iter().filter_map(|p| p.get(at)).sum();
        if have <= 0.0 || (have / sum - 1.0).abs() < 1e-4 {
            return;
        }
        let by = sum / have;
        for p in chances.iter_mut().filter_map(|p| p.get_mut(at)) {
            *p = *p * by / (1.0 - *p + *p * by);
        }
    }
}

/// The chance that the first is better than the second, ignoring ties.
pub(crate) fn duel(one: Outlook, other: Outlook) -> f64 {
    let deviation = (one.variance + other.variance).max(0.3).sqrt();
    normal_cdf((other.mean - one.mean) / deviation)
}

/// The chance of each of three players to have the best score of the three.
pub(crate) fn best_of_three(three: [Outlook; 3]) -> [f64; 3] {
    let [a, b, c] = three;
    let (ab, ac, bc) = (duel(a, b), duel(a, c), duel(b, c));
    let wins = [ab * ac, (1.0 - ab) * bc, (1.0 - ac) * (1.0 - bc)];
    let sum: f64 = wins.iter().sum();
    wins.map(|p| p / sum.max(1e-9))
}

#[cfg(test)]
mod tests;
