//! Events in words, for every screen.

use crate::client::{Line, View};
use crate::sim::{Bonus, Event, EventKind, PlayerId, Refusal};

/// An event or a chat line, as a player reads it.
#[must_use]
pub fn line(line: &Line, view: &View) -> String {
    match line {
        Line::Event(event) => happened(event, view),
        Line::Chat { from: Some(player), text } => format!("{}: {text}", name(*player, view)),
        Line::Chat { from: None, text } => format!("a spectator: {text}"),
    }
}

/// The name of a player.
#[must_use]
pub fn name(player: PlayerId, view: &View) -> String {
    let known = view.players.iter().find(|known| known.player == player);
    known.map_or_else(|| format!("player {player}"), |known| known.name.clone())
}

fn happened(event: &Event, view: &View) -> String {
    let (who, data) = (name(event.id, view), event.data);
    let told = match event.kind {
        EventKind::Wave => format!("wave {data} begins"),
        EventKind::Pause => format!("wave {data} is over: time to spend"),
        EventKind::Coin => format!("{who} has found a coin"),
        EventKind::Exit => format!("{who} got through, {data} of the base is left"),
        EventKind::Death => format!("{who} was shot, {data} lives left"),
        EventKind::Built => format!("{who} has built turret {data}"),
        EventKind::Raised => format!("{who} has raised turret {data}"),
        EventKind::Bonus => {
            format!("{who}: {}", u8::try_from(data).ok().and_then(Bonus::of).map_or("?", bonus))
        }
        EventKind::Improved => format!("{who} has been improved"),
        EventKind::Refused => format!("refused: {}", refusal(data)),
        EventKind::Over if data == 1 => "the base stands: the builders have won".to_owned(),
        EventKind::Over => "the base has fallen: the runners have won".to_owned(),
        EventKind::Joined => format!("{who} comes in"),
        EventKind::Back => format!("{who} is back"),
        EventKind::Left => format!("{who} has left"),
    };
    if event.money > 0 { format!("{told}, +{}", event.money) } else { told }
}

/// The name of a bonus.
#[must_use]
pub const fn bonus(bonus: Bonus) -> &'static str {
    match bonus {
        Bonus::Blizzard => "blizzard",
        Bonus::Overcharge => "overcharge",
        Bonus::Bounty => "bounty",
        Bonus::Repair => "repair",
    }
}

fn refusal(code: u16) -> &'static str {
    let Some(refusal) = u8::try_from(code).ok().and_then(Refusal::of) else { return "?" };
    match refusal {
        Refusal::Role => "not what your role does",
        Refusal::Phase => "not now",
        Refusal::Taken => "there is something already",
        Refusal::Blocks => "runners need a way",
        Refusal::Money => "too dear",
        Refusal::NoTurret => "no such turret",
        Refusal::Most => "no more of it",
        Refusal::Locked => "not unlocked yet",
        Refusal::Contradiction => "these do not go together",
        Refusal::Future => "from the future",
        Refusal::Flood => "too much at once",
        Refusal::Malformed => "nobody understands it",
    }
}
