//! What a packet costs to protect, and a stranger to look at: 1200 bytes sealed and opened by each cipher, a cookie, a token.

use criterion::{Criterion, Throughput};
use std::hint::black_box;
use std::net::SocketAddr;
use whitewater::Time;
use whitewater::session::cookie::{Claim, CookieKey, epoch_of};
use whitewater::session::seal::{Keys, Seal};

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    seals(&mut criterion);
    cookies(&mut criterion);
    #[cfg(feature = "crypto")]
    tokens(&mut criterion);
    criterion.final_summary();
}

fn seals(criterion: &mut Criterion) {
    let mut kinds = vec!["checked"];
    if cfg!(feature = "crypto") {
        kinds.extend(["ChaChaPoly", "AESGCM"]);
    }
    let mut group = criterion.benchmark_group("seal and open 1200 B");
    group.throughput(Throughput::Bytes(1200));
    for name in kinds {
        let (mut client, mut server) = ends(name);
        let body = vec![0x5a; 1200 - client.overhead()];
        let mut datagram = Vec::with_capacity(1200);
        let mut sealed = 0;
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                if sealed == (1 << 20) - 1 {
                    sealed = 0; // before the keys are updated
                    (client, server) = ends(name);
                }
                sealed += 1;
                Seal::begin(&mut datagram);
                datagram.extend_from_slice(black_box(&body));
                let pn = client.seal(Time::ZERO, 7, &mut datagram);
                assert!(pn.is_ok() && black_box(server.open(Time::ZERO, &mut datagram)).is_ok());
            });
        });
    }
    group.finish();
}

/// Both ends of a session as it begins.
fn ends(name: &str) -> (Seal, Seal) {
    let (client, server) = match name {
        #[cfg(feature = "crypto")]
        "ChaChaPoly" | "AESGCM" => {
            use whitewater::session::Cipher;
            let cipher = if name == "AESGCM" { Cipher::AesGcm } else { Cipher::ChaChaPoly };
            let client = Keys::of_client(cipher, [1; 32], [2; 32]);
            (client, Keys::of_server(cipher, [1; 32], [2; 32]))
        }
        _ => (Keys::checked([1; 8], [2; 8], 3), Keys::checked([1; 8], [2; 8], 3)),
    };
    (Seal::new(Time::ZERO, client), Seal::new(Time::ZERO, server))
}

fn cookies(criterion: &mut Criterion) {
    let key = CookieKey::new([7; 16]);
    let address = SocketAddr::from(([192, 0, 2, 1], 4000));
    let claim = Claim { address, suite: 0x201, protocol_id: 3, cid: 9 };
    let epoch = epoch_of(Time::ZERO);
    let cookie = key.mint(epoch, &claim);
    criterion.bench_function("cookie made", |bencher| bencher.iter(|| key.mint(epoch, black_box(&claim))));
    criterion.bench_function("cookie verified", |bencher| {
        bencher.iter(|| key.verify(Time::ZERO, epoch, black_box(&cookie), black_box(&claim)));
    });
}

#[cfg(feature = "crypto")]
fn tokens(criterion: &mut Criterion) {
    use whitewater::session::Suite;
    use whitewater::session::token::{Order, ServerKey, Verifier};
    let key = || ServerKey::new(5, 0, [7; 32]);
    let addresses = [SocketAddr::from(([192, 0, 2, 1], 4000))];
    let order = Order {
        protocol_id: 3,
        suite: Suite::TOKEN,
        client_id: 9,
        match_id: [0; 16],
        created: 1_900_000_000,
        expires: 1_900_000_045,
        addresses: &addresses,
        server_key: None,
        user: b"",
    };
    let Ok(token) = key().mint(&order, [1; 32], [2; 24]) else { unreachable!("the order is good") };
    let verifier = Verifier::new(3, key(), 0);
    criterion.bench_function("token verified", |bencher| {
        bencher.iter(|| {
            let grant = verifier.open(1_900_000_001, Suite::TOKEN, black_box(&token.sealed));
            assert!(black_box(grant).is_ok());
        });
    });
}
