//! A server and its members in one process. It fails when one of them does not hear what they should, or hears what they should not.

use crate::Done;
use crate::member::Member;
use crate::room::Room;
use std::error::Error;
use std::time::{Duration, Instant};

pub(crate) fn run() -> Done {
    let mut demo = Demo { room: Room::open("127.0.0.1:0", SECRET)?, seats: Vec::new() };
    for name in ["ann", "ben", "eve"] {
        let seat = demo.join(name)?;
        let welcome = if seat == ANN { "* nobody else is here" } else { "* with you: " };
        demo.until("one was not let in", |demo| demo.has_heard(seat, welcome))?;
    }
    demo.until("ann did not see the others come", |demo| {
        demo.has_heard(ANN, "* ben comes in") && demo.has_heard(ANN, "* eve comes in")
    })?;

    demo.member(ANN)?.say("hello")?;
    demo.until("ann was not heard", |demo| {
        [BEN, EVE].iter().all(|seat| demo.has_heard(*seat, "ann: hello"))
    })?;
    if demo.member(ANN)?.say(&"long ".repeat(50)).is_ok() {
        return Err("a line of 250 bytes was taken".into());
    }

    let second = demo.join("ben")?;
    demo.until("there are two of one name", |demo| {
        demo.has_ended(second, "this name is taken, or is no name")
    })?;

    demo.room.kick("eve", "no shouting")?;
    demo.until("eve was not told why", |demo| demo.has_ended(EVE, "no shouting"))?;
    demo.until("ann did not see eve go", |demo| demo.has_heard(ANN, "* eve is gone: kicked"))?;

    demo.member(BEN)?.say("see you")?;
    demo.member(BEN)?.leave(); // what was said before arrives all the same
    demo.until("ann did not see ben go", |demo| demo.has_heard(ANN, "* ben is gone: goodbye"))?;

    demo.room.say("closing time");
    demo.until("ann did not hear the server", |demo| demo.has_heard(ANN, "server: closing time"))?;
    if !demo.has_heard(ANN, "ben: see you") || demo.has_heard(ANN, "ann: ") {
        return Err("ann did not hear what ben said last, or heard herself".into());
    }
    println!("All of them heard what they should, and nothing else.");
    Ok(())
}

struct Demo {
    room: Room,
    seats: Vec<Seat>,
}

struct Seat {
    name: &'static str,
    member: Member,
    /// What was told here, as a terminal shows it.
    heard: Vec<String>,
}

impl Demo {
    fn join(&mut self, name: &'static str) -> Result<usize, Box<dyn Error>> {
        let member = Member::join(self.room.address()?, name, SECRET)?;
        self.seats.push(Seat { name, member, heard: Vec::new() });
        Ok(self.seats.len() - 1)
    }

    fn member(&mut self, seat: usize) -> Result<&mut Member, &'static str> {
        self.seats.get_mut(seat).map(|seat| &mut seat.member).ok_or("nobody sits there")
    }

    fn has_heard(&self, seat: usize, start: &str) -> bool {
        self.seats.get(seat).is_some_and(|seat| seat.heard.iter().any(|line| line.starts_with(start)))
    }

    fn has_ended(&self, seat: usize, why: &str) -> bool {
        self.seats.get(seat).is_some_and(|seat| seat.member.end() == Some(why))
    }

    /// Goes round all of them until something is so. `otherwise` says what is wrong if it never is.
    fn until(&mut self, otherwise: &'static str, is_so: impl Fn(&Self) -> bool) -> Done {
        let start = Instant::now();
        while !is_so(self) {
            if start.elapsed() > PATIENCE {
                return Err(otherwise.into());
            }
            self.room.turn(TURN)?;
            for seat in &mut self.seats {
                for told in seat.member.turn(TURN)? {
                    println!("{:>5} reads   {told}", seat.name);
                    seat.heard.push(told.to_string());
                }
            }
        }
        Ok(())
    }
}

const SECRET: [u8; 32] = [7; 32];
/// In the order in which they come.
const ANN: usize = 0;
const BEN: usize = 1;
const EVE: usize = 2;
const TURN: Duration = Duration::from_millis(1);
/// So slow is no machine.
const PATIENCE: Duration = Duration::from_secs(30);
