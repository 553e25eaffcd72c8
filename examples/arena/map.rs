//! The map: items on 256 x 256 tiles.

use crate::protocol::{DOWN, LEFT, Place, RIGHT, UP};

/// One byte per tile: 1 if it has an item.
pub(crate) fn draw(seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let mut next = || {
        // xorshift64
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    (0..=u16::MAX).map(|_| u8::from(next() % 8 == 0)).collect()
}

/// The number of the tile at a position.
pub(crate) fn tile(place: Place) -> u16 {
    whole(place.y) * SIDE + whole(place.x)
}

/// Takes the item on a tile. Returns whether there was one.
pub(crate) fn take(map: &mut [u8], tile: u16) -> bool {
    map.get_mut(usize::from(tile)).is_some_and(|lies| std::mem::take(lies) == 1)
}

/// The keys that lead to a nearby item.
pub(crate) fn way(map: &[u8], Place { x, y }: Place) -> u8 {
    let near = |at| i32::from(whole(at)) - SIGHT..=i32::from(whole(at)) + SIGHT;
    let nearest = near(y)
        .flat_map(|row| near(x).map(move |column| (column, row)))
        .filter(|(column, row)| lies(map, *column, *row))
        .map(|(column, row)| (column as f32 + 0.5 - x, row as f32 + 0.5 - y))
        .min_by(|a, b| (a.0.abs() + a.1.abs()).total_cmp(&(b.0.abs() + b.1.abs())));
    let (right, down) = nearest.unwrap_or((128.0 - x, 100.0 - y));
    let horizontal = if right > 0.3 { RIGHT } else { u8::from(right < -0.3) * LEFT };
    let vertical = if down > 0.3 { DOWN } else { u8::from(down < -0.3) * UP };
    horizontal | vertical
}

/// The position after pressing `keys` for a frame.
pub(crate) fn step(Place { x, y }: Place, keys: u8) -> Place {
    let by =
        |more, less| STEP * (f32::from(u8::from(keys & more > 0)) - f32::from(u8::from(keys & less > 0)));
    let within = |at: f32| at.clamp(0.0, f32::from(SIDE) - 0.1);
    Place { x: within(x + by(RIGHT, LEFT)), y: within(y + by(DOWN, UP)) }
}

/// The column or row of a position.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "from 0 to 255, or to the nearest of them"
)]
fn whole(at: f32) -> u16 {
    (at as u16).min(SIDE - 1)
}

fn lies(map: &[u8], column: i32, row: i32) -> bool {
    let (Ok(column), Ok(row)) = (u16::try_from(column), u16::try_from(row)) else { return false };
    column < SIDE && row < SIDE && map.get(usize::from(row * SIDE + column)) == Some(&1)
}

const SIDE: u16 = 256;
/// How many tiles a bot sees in each direction.
const SIGHT: i32 = 8;
/// Tiles per frame.
const STEP: f32 = 0.2;
