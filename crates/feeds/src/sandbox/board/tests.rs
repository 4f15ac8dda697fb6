use super::*;
use crate::sandbox::noise::{gauss, mix};

#[test]
fn places_add_up_and_agree_with_a_simulated_leaderboard() {
    let field: Vec<Outlook> =
        (0..60_u64).map(|i| Outlook { mean: 2.0 * gauss(mix(1, i)), variance: 30.0 }).collect();
    let chances = places(&field, [1, 5, 10, 20]);
    for (at, k) in [1.0, 5.0, 10.0, 20.0].into_iter().enumerate() {
        let sum: f64 = chances.iter().map(|p| p[at]).sum();
        assert!((sum / k - 1.0).abs() < 0.01, "first {k}: {sum}");
    }
    let runs = 4000_u32;
    let mut seen = vec![[0.0; 4]; field.len()];
    for run in 0..runs {
        let mut scores: Vec<(f64, usize)> = field
            .iter()
            .zip(0_u64..)
            .map(|(player, i)| {
                let luck = gauss(mix(mix(2, u64::from(run)), i));
                player.mean + player.variance.sqrt() * luck
            })
            .zip(0..)
            .collect();
        scores.sort_by(|a, b| a.0.total_cmp(&b.0));
        for (place, (_, i)) in scores.iter().enumerate() {
            for (slot, k) in seen[*i].iter_mut().zip([1, 5, 10, 20]) {
                *slot += if place < k { 1.0 / f64::from(runs) } else { 0.0 };
            }
        }
    }
    for (chance, seen) in chances.iter().zip(&seen) {
        for (p, q) in chance.iter().zip(seen) {
            assert!((p - q).abs() < 0.035, "{chance:?} {seen:?}");
        }
    }
}

#[test]
fn three_and_two_add_up() {
    let player = |mean| Outlook { mean, variance: 9.0 };
    let [a, b, c] = best_of_three([player(0.0), player(1.0), player(2.0)]);
    assert!((a + b + c - 1.0).abs() < 1e-9 && a > b && b > c);
    let p = duel(player(0.0), player(1.0));
    assert!((p + duel(player(1.0), player(0.0)) - 1.0).abs() < 1e-6 && p > 0.5);
}
