use std::collections::HashSet;

use super::*;

const ALL: [(Circuit, u64); 6] = [
    (Circuit::Mma, 2400),
    (Circuit::Boxing, 2400),
    (Circuit::TennisMen, 2400),
    (Circuit::GolfMen, 2400),
    (Circuit::TennisWomen, 3000),
    (Circuit::GolfWomen, 3000),
];

#[test]
fn nobody_shares_a_name_not_even_when_accents_and_jr_are_dropped() {
    let fold = |name: &str| -> String {
        let plain = name.trim_end_matches(" Jr.").to_lowercase();
        plain.chars().filter(char::is_ascii).collect()
    };
    let (mut names, mut folded) = (HashSet::new(), HashSet::new());
    for (circuit, people) in ALL {
        for i in 0..people {
            let name = name(5, circuit, i);
            assert!(folded.insert(fold(&name)), "{name} twice when folded");
            assert!(names.insert(name));
        }
    }
    for (mark, least) in [("-", 200), (" Jr.", 30), ("'", 50), ("é", 50), ("ł", 1), ("ø", 50)] {
        let have = names.iter().filter(|name| name.contains(mark)).count();
        assert!(have >= least, "{have} names with {mark}");
    }
}

#[test]
fn names_begin_with_capital_letters() {
    for origin in &ORIGINS {
        let [men, women] = [origin.men, origin.women].map(|list| list.split(' '));
        assert_eq!((men.clone().count(), women.clone().count()), (16, 10), "{}", origin.men);
        for name in men.chain(women) {
            let whole = name.starts_with(char::is_uppercase) && name.ends_with(char::is_alphabetic);
            assert!(whole, "{name:?}");
        }
    }
}

#[test]
fn nobody_is_a_known_athlete() {
    const STARS: &str = "\
        Djokovic|Nadal|Federer|Alcaraz|Sinner|Medvedev|Swiatek|Świątek|Williams|Osaka|\
        Sabalenka|Gauff|McGregor|Nurmagomedov|Makhachev|Pereira|Procházka|Jones|Adesanya|\
        Usman|Volkanovski|Topuria|Fury|Usyk|Joshua|Canelo|Álvarez|Crawford|Inoue|Mayweather|\
        Pacquiao|Tyson|Woods|McIlroy|Scheffler|Rahm|Koepka|Spieth|DeChambeau|Schauffele|\
        Morikawa|Hovland|Matsuyama|Mickelson|Korda|Ashcroft|Stanley|Ferrari|Lombardi";
    for (circuit, people) in ALL {
        for i in 0..people {
            let name = name(5, circuit, i);
            let mut words = name.split([' ', '-', '\'']).skip(1);
            assert!(!words.any(|word| STARS.split('|').any(|star| star == word)), "{name}");
        }
    }
}

#[test]
fn who_came_up_stays_out_for_a_while() {
    let turns: Vec<u64> = (-1000..3000).map(|turn| at_turn(4, turn, 400)).collect();
    for window in turns.windows(1200) {
        assert_eq!(window.iter().filter(|&&who| who == window[0]).count(), 1);
    }
}
