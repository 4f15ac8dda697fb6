use super::*;

fn score(status: Status, home: Option<i32>, away: Option<i32>, winner: Option<Side>) -> Score {
    Score { status, home, away, winner, ..Score::none_yet() }
}

#[test]
fn a_score_only_goes_forward() {
    use Status::{Final, Live, Scheduled};
    let none = Score::none_yet();
    let live = score(Live, Some(7), Some(3), None);
    let over = score(Final, Some(10), Some(3), Some(Side::Home));
    assert_eq!(none.may_become(&live), Ok(()));
    assert_eq!(none.may_become(&over), Ok(()));
    assert_eq!(live.may_become(&over), Ok(()));
    assert_eq!(live.may_become(&live), Ok(()));
    assert_eq!(over.may_become(&live), Err(IllegalTransition::Status { from: Final, to: Live }));
    assert_eq!(
        live.may_become(&none),
        Err(IllegalTransition::Status { from: Live, to: Scheduled })
    );
    assert_eq!(
        live.may_become(&score(Live, Some(6), Some(3), None)),
        Err(IllegalTransition::Lower)
    );
    assert_eq!(live.may_become(&score(Live, None, Some(3), None)), Err(IllegalTransition::Lower));
    assert_eq!(
        over.may_become(&score(Final, Some(10), Some(3), Some(Side::Away))),
        Err(IllegalTransition::Winner)
    );
}

#[test]
fn swapping_twice_changes_nothing() {
    let mut one = score(Status::Final, Some(2), Some(1), Some(Side::Home));
    one.periods.push(Period { number: 1, home: 6, away: 4 });
    assert_ne!(one.clone().swapped(), one);
    assert_eq!(one.clone().swapped().swapped(), one);
}
