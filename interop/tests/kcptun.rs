//! kcptun, which is kcp-go with TCP at both ends.

use interop::cases;
use interop::kcptun::{self, Settings, counted};
use interop::program::Program;
use interop::relay::{Relay, clean, lossy};
use interop::tcp;
use std::fmt::{self, Debug, Formatter};
use std::net::SocketAddr;
use whitewater::sim::Rng;

const BYTES: usize = 300_000;
const LOSS: f64 = 0.08;

#[derive(Clone, Copy)]
struct Case {
    settings: Settings,
    loss: f64,
    seed: u64,
}

impl Case {
    fn relay(&self, server: SocketAddr) -> Relay {
        Relay::start(server, &if self.loss > 0.0 { lossy(self.loss) } else { clean() }, self.seed)
    }
}

impl Debug for Case {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Settings { crypt, fec: (data, parity) } = self.settings;
        write!(f, "{crypt:8} | {data:2},{parity} | {:.0} % loss", self.loss * 100.0)
    }
}

fn cases(ciphers: &[&'static str]) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    for &crypt in ciphers {
        for fec in [(0, 0), (10, 3)] {
            let seed = 1 + cases.len() as u64;
            cases.extend([0.0, LOSS].map(|loss| Case { settings: Settings { crypt, fec }, loss, seed }));
        }
    }
    cases
}

/// What follows can only be as good as the harness.
#[test]
fn they_have_a_stream_echoed_through_each_other() {
    if !kcptun::is_there() {
        return;
    }
    cases::run(&cases(&["aes"]), |case| {
        let target = tcp::Echo::start();
        let (mut server, address) = kcptun::server(target.address, case.settings);
        let relay = case.relay(address);
        let (mut client, address) = kcptun::client(relay.address, case.settings);
        let sent = random(case.seed);
        assert!(tcp::ask(address, &sent) == sent, "something else came back");
        format!("client {}; server {}", told(&mut client), told(&mut server))
    });
}

/// What it has counted.
fn told(program: &mut Program) -> String {
    let counted = counted(program);
    let [sent, resent, recovered] = ["OutSegs", "RetransSegs", "FECRecovered"].map(|name| counted[name]);
    format!("{sent} segments, {resent} resends, {recovered} recovered")
}

fn random(seed: u64) -> Vec<u8> {
    let mut rng = Rng::new(seed, 9);
    (0..BYTES).map(|_| rng.next_u64().to_le_bytes()[0]).collect()
}
