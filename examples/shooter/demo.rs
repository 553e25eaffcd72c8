//! A server and bots in one process, for some seconds. It fails when something does not arrive that should.

use crate::{Bot, CHAT, FRAME, Host, game};
use std::error::Error;
use std::thread;
use std::time::{Duration, Instant};

pub(crate) fn run() -> Result<(), Box<dyn Error>> {
    let host = Host::bind("127.0.0.1:0")?;
    let at = host.server.local_addr()?;
    let bots = NAMES.iter().map(|name| Bot::join(at, name)).collect::<Result<_, _>>()?;
    let mut demo = Demo { host, bots, ended: Vec::new() };

    demo.until("the level does not arrive", |demo| demo.bots.iter().all(|bot| bot.view.levels == 1))?;
    println!("-- each bot has the level, of {} bytes in one message", game::level().len());
    demo.until("inputs do not arrive", |demo| NAMES.iter().all(|name| demo.host.world.played(name) >= 180))?;
    demo.until("snapshots do not arrive", |demo| demo.bots.iter().all(|bot| bot.view.snapshots >= 60))?;
    println!("-- each has played 180 frames and seen 60 snapshots");

    let ann = demo.bots.first_mut().ok_or("ann is not there")?;
    ann.client.send(CHAT, &"over here".to_owned())?;
    demo.until("chat does not arrive", |demo| demo.have_heard("ann: over here"))?;
    println!("-- each has heard ann");

    demo.bots.last_mut().ok_or("eve is not there")?.view.cheats = true;
    demo.until("eve is not kicked", |demo| !demo.ended.is_empty())?;
    if demo.ended != ["the peer closed it, with code 1: you shoot too fast"] {
        return Err(format!("eve does not know why, but {:?}", demo.ended).into());
    }
    demo.until("the others do not know that eve was kicked", |demo| demo.have_heard("eve is gone: "))?;
    println!("-- eve knows why she was kicked, and the others that she was");

    let Demo { host, bots, ended } = demo;
    drop(host);
    let mut demo = Demo { host: Host::bind(at)?, bots, ended };
    demo.until("the bots do not come back", |demo| {
        let mut names = NAMES.iter().take(demo.bots.len());
        names.all(|name| demo.host.world.played(name) >= 60)
            && demo.bots.iter().all(|bot| bot.view.levels == 2)
    })?;
    println!("-- the server was gone for a moment; the others are back, and play");
    Ok(())
}

struct Demo {
    host: Host,
    bots: Vec<Bot>,
    /// Why bots have ended.
    ended: Vec<String>,
}

impl Demo {
    /// Plays frames until something is so. `otherwise` says what is wrong if it never is.
    fn until(
        &mut self,
        otherwise: &'static str,
        is_so: impl Fn(&Self) -> bool,
    ) -> Result<(), Box<dyn Error>> {
        let start = Instant::now();
        while !is_so(self) {
            if start.elapsed() > PATIENCE {
                return Err(otherwise.into());
            }
            self.host.frame()?;
            self.bots.retain_mut(|bot| match bot.frame() {
                Ok(()) => true,
                Err(why) => {
                    self.ended.push(why.to_string());
                    false
                }
            });
            thread::sleep(FRAME);
        }
        Ok(())
    }

    fn have_heard(&self, start: &str) -> bool {
        self.bots.iter().all(|bot| bot.view.heard.iter().any(|line| line.starts_with(start)))
    }
}

const NAMES: [&str; 4] = ["ann", "ben", "cid", "eve"];
/// So slow is no machine.
const PATIENCE: Duration = Duration::from_secs(30);
