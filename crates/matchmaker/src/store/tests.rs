//! What both stores promise. `Redis` here is a real one, for each test its own.

use super::*;
use server::Server;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::time::sleep;

#[path = "../../tests/http/redis.rs"]
mod server;

const PATIENCE: Duration = Duration::from_secs(60);
const TERMS: Terms = Terms { lease: 60_000, reserved: 110_000 };

pub(crate) fn report(region: &str, capacity: u32, players: u32) -> Report {
    Report {
        name: "one".into(),
        addresses: vec!["192.0.2.1:4000".parse().unwrap()],
        region: region.into(),
        capacity,
        players,
        arrived: Vec::new(),
        rtt_ms: 31.5,
        loss: 0.25,
        routing_token: crate::messages::Hex(vec![1, 2]),
        draining: false,
    }
}

impl Server {
    async fn store(&self, terms: Terms) -> Store {
        self.store_of("one", terms).await
    }

    /// From now on, new connections to the other come here.
    fn take_over(&self, other: &Self) {
        std::fs::rename(self.folder.join("socket"), other.folder.join("socket")).unwrap();
    }

    async fn store_of(&self, fleet: &str, terms: Terms) -> Store {
        Store::redis(settings::Redis { url: self.url(), fleet: fleet.into() }, terms).await.unwrap()
    }
}

/// Runs a test with each store.
macro_rules! with_both {
    ($name:ident, $store:ident, $body:block) => {
        mod $name {
            use super::*;

            async fn holds($store: Arc<Store>) $body

            #[tokio::test]
            async fn in_memory() {
                holds(Arc::new(Store::memory(TERMS))).await;
            }

            #[tokio::test]
            async fn in_redis() {
                let Some(server) = Server::start(stringify!($name)).await else { return };
                holds(Arc::new(server.store(TERMS).await)).await;
            }
        }
    };
}

async fn join(store: &Store, clients: &[u64], regions: &[&str], from: Option<u64>) -> Option<u64> {
    let clients: Vec<_> = clients.iter().map(|client| Id(*client)).collect();
    let regions: Vec<_> = regions.iter().map(|region| (*region).to_owned()).collect();
    let wanted = Wanted { clients: &clients, regions: &regions, from: from.map(Id) };
    store.join(&wanted).await.unwrap().ok().map(|(id, _)| id.0)
}

async fn add(store: &Store, id: u64, report: Report) {
    assert_eq!(store.report(Id(id), report).await.unwrap(), Some(false));
}

with_both!(a_place_is_given_once_however_many_want_it_at_once, store, {
    for (id, capacity) in [(1, 30), (2, 50), (3, 20)] {
        add(&store, id, report("eu", capacity, 0)).await;
    }
    let joins = (0..1000).map(|client| {
        let store = Arc::clone(&store);
        tokio::spawn(async move { join(&store, &[client], &["eu"], None).await })
    });
    let mut taken = BTreeMap::<_, u32>::new();
    for join in joins.collect::<Vec<_>>() {
        *taken.entry(join.await.unwrap()).or_default() += 1;
    }
    let expected = [(None, 900), (Some(1), 30), (Some(2), 50), (Some(3), 20)];
    assert_eq!(taken, BTreeMap::from(expected));
    let reserved: Vec<_> = store.list().await.unwrap().iter().map(|listed| listed.reserved).collect();
    assert_eq!(reserved, [30, 50, 20]);
});

with_both!(the_fullest_server_of_the_best_region_that_has_room_is_taken, store, {
    add(&store, u64::MAX, report("eu", 10, 7)).await;
    add(&store, 2, report("eu", 10, 2)).await;
    add(&store, 3, report("us", 10, 9)).await;
    assert_eq!(join(&store, &[1, 2, 3], &["eu", "us"], None).await, Some(u64::MAX));
    assert_eq!(join(&store, &[4], &["eu", "us"], None).await, Some(2), "the other is full");
    assert_eq!(join(&store, &[5], &[], None).await, Some(3), "any region");
    assert_eq!(join(&store, &[6], &["us"], None).await, None);
    assert_eq!(join(&store, &[6], &["us", "asia", "eu"], None).await, Some(2));
    assert_eq!(join(&store, &[7], &["eu"], Some(2)).await, None, "not where they are");
    assert_eq!(join(&store, &[8, 9, 10, 11, 12, 13, 14], &[], None).await, None, "all on one server");
});

with_both!(whoever_asks_again_gets_the_place_they_hold_where_they_may, store, {
    add(&store, 1, report("eu", 2, 0)).await;
    assert_eq!(join(&store, &[7, 8], &["eu"], None).await, Some(1));
    add(&store, 2, report("us", 1, 0)).await;
    for clients in [&[7, 8][..], &[8, 7], &[7], &[8]] {
        for regions in [&["us", "eu"][..], &["eu"], &[]] {
            assert_eq!(join(&store, clients, regions, None).await, Some(1), "{clients:?} in {regions:?}");
        }
    }
    let reserved: Vec<_> = store.list().await.unwrap().iter().map(|listed| listed.reserved).collect();
    assert_eq!(reserved, [2, 0]);
    assert_eq!(join(&store, &[9], &["eu"], None).await, None, "they hold none");
    assert_eq!(join(&store, &[7, 9], &["eu"], None).await, None, "one of them holds none");
    assert_eq!(join(&store, &[7], &["us"], None).await, Some(2), "another region");
    assert_eq!(join(&store, &[7], &["us"], None).await, Some(2));
    assert_eq!(join(&store, &[8], &["us"], None).await, None);
    assert!(store.drain(Id(1)).await.unwrap());
    assert_eq!(join(&store, &[8], &[], None).await, None, "it drains");
    add(&store, 2, Report { arrived: vec![Id(7)], ..report("us", 1, 1) }).await;
    assert_eq!(join(&store, &[7], &["us"], None).await, None, "that place is used");
});

with_both!(whoever_has_arrived_is_counted_once, store, {
    add(&store, 1, report("eu", 2, 0)).await;
    assert_eq!(join(&store, &[7], &[], None).await, Some(1));
    add(&store, 1, Report { arrived: vec![Id(7)], ..report("eu", 2, 1) }).await;
    assert_eq!(join(&store, &[8], &[], None).await, Some(1));
    assert_eq!(join(&store, &[9], &[], None).await, None);
    add(&store, 1, report("eu", 2, 0)).await;
    assert_eq!(join(&store, &[9], &[], None).await, Some(1), "the other has left");
});

with_both!(a_server_without_a_lease_moves_nobody, store, {
    add(&store, 1, report("eu", 2, 0)).await;
    add(&store, 2, report("eu", 2, 0)).await;
    let wanted = |from| Wanted { clients: &[Id(7)], regions: &[], from: Some(Id(from)) };
    assert_eq!(store.join(&wanted(3)).await.unwrap().err(), Some(NoPlace::NoLease));
    assert!(store.drain(Id(2)).await.unwrap());
    assert_eq!(store.join(&wanted(2)).await.unwrap().unwrap().0, Id(1), "it drains");
    store.remove(Id(2)).await.unwrap();
    assert_eq!(store.join(&wanted(2)).await.unwrap().err(), Some(NoPlace::NoLease), "it has ended");
});

with_both!(a_server_that_drains_or_has_ended_gets_no_players, store, {
    add(&store, 1, report("eu", 10, 0)).await;
    add(&store, 2, Report { draining: true, ..report("eu", 10, 0) }).await;
    assert!(store.drain(Id(1)).await.unwrap());
    assert!(!store.drain(Id(3)).await.unwrap(), "there is no such server");
    assert_eq!(join(&store, &[1], &["eu"], None).await, None);
    assert_eq!(store.report(Id(1), report("eu", 10, 0)).await.unwrap(), Some(true), "it is told");
    add(&store, 2, report("eu", 10, 0)).await;
    assert_eq!(join(&store, &[1], &[], None).await, Some(2));
    store.remove(Id(2)).await.unwrap();
    assert_eq!(join(&store, &[2], &[], None).await, None);
    let list = store.list().await.unwrap();
    assert_eq!(list.iter().map(|listed| (listed.server, listed.drain)).collect::<Vec<_>>(), [(Id(1), true)]);
});

with_both!(a_server_is_listed_as_it_reported, store, {
    let said = Report { name: "<b>\"'\\u{202e} \u{20ac}".into(), ..report("eu", 10, 3) };
    add(&store, 5, said.clone()).await;
    add(&store, 5, Report { arrived: vec![Id(1), Id(2)], ..said.clone() }).await;
    let list = store.list().await.unwrap();
    let [Listed { server: Id(5), report, reserved: 0, drain: false, lease_ms }] = &list[..] else {
        panic!("{list:?}")
    };
    assert_eq!(*report, said);
    assert!((1..=TERMS.lease).contains(lease_ms), "{lease_ms}");
});

with_both!(a_server_may_change_its_region, store, {
    add(&store, 1, report("eu", 10, 0)).await;
    add(&store, 1, report("us", 10, 0)).await;
    assert_eq!(join(&store, &[1], &["eu"], None).await, None);
    assert_eq!(join(&store, &[1], &["us"], None).await, Some(1));
});

#[tokio::test]
async fn replicas_share_servers_and_places_by_redis() {
    let Some(server) = Server::start("replicas").await else { return };
    let [one, other] = [server.store(TERMS).await, server.store(TERMS).await].map(Arc::new);
    add(&one, 1, report("eu", 100, 0)).await;
    let joins = (0..200).map(|client| {
        let store = Arc::clone(if client % 2 == 0 { &one } else { &other });
        tokio::spawn(async move { join(&store, &[client], &["eu"], None).await })
    });
    let mut taken = 0;
    for join in joins.collect::<Vec<_>>() {
        taken += u32::from(join.await.unwrap().is_some());
    }
    assert_eq!(taken, 100);
    assert_eq!(other.list().await.unwrap()[0].reserved, 100);
}

#[tokio::test]
async fn fleets_with_different_names_in_one_redis_know_nothing_of_each_other() {
    let Some(server) = Server::start("fleets").await else { return };
    let (one, other) = (server.store_of("one", TERMS).await, server.store_of("one-more", TERMS).await);
    add(&one, 1, report("eu", 1, 0)).await;
    assert_eq!(join(&other, &[7], &[], None).await, None);
    assert!(!other.drain(Id(1)).await.unwrap());
    assert_eq!(other.list().await.unwrap(), []);
    add(&other, 1, report("us", 5, 0)).await;
    assert_eq!(join(&other, &[7], &["us"], None).await, Some(1));
    assert_eq!(join(&one, &[8], &["eu"], None).await, Some(1));
    other.remove(Id(1)).await.unwrap();
    let list = one.list().await.unwrap();
    assert_eq!((list.len(), list[0].report.capacity, list[0].reserved), (1, 1, 1));
}

#[tokio::test]
async fn leases_and_reservations_lapse_in_redis_and_leave_nothing_behind() {
    let Some(server) = Server::start("lapse").await else { return };
    let store = server.store(Terms { lease: 300, reserved: 600 }).await;
    add(&store, 1, report("eu", 1, 0)).await;
    assert_eq!(join(&store, &[7], &["eu"], None).await, Some(1));
    let end = Instant::now() + PATIENCE;
    let has_lapsed = async || {
        assert!(Instant::now() < end, "the lease never lapses");
        store.list().await.unwrap().is_empty()
    };
    while !has_lapsed().await {
        sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(join(&store, &[8], &["eu"], None).await, None);
    while join(&store, &[8], &["eu"], None).await.is_none() {
        assert!(Instant::now() < end, "the reservation never ends");
        add(&store, 1, report("eu", 1, 0)).await;
    }
    store.remove(Id(1)).await.unwrap();
    let Store::Redis(redis) = &store else { panic!("in memory") };
    let keys = async |mut connection| redis::cmd("KEYS").arg("*").query_async(&mut connection).await;
    let left: Vec<String> = redis.ask(keys).await.unwrap();
    assert_eq!(left, [""; 0]);
}

#[tokio::test]
async fn a_redis_that_is_gone_is_an_error_and_no_place() {
    let Some(server) = Server::start("gone").await else { return };
    let store = server.store(TERMS).await;
    add(&store, 1, report("eu", 1, 0)).await;
    drop(server);
    let wanted = Wanted { clients: &[Id(1)], regions: &[], from: None };
    assert!(store.join(&wanted).await.is_err());
    assert!(store.ping().await.is_err());
}

#[tokio::test]
async fn a_connection_that_goes_silent_is_an_error_and_replaced() {
    let (Some(server), Some(next)) = (Server::start("silent").await, Server::start("next").await) else {
        return;
    };
    let store = server.store(TERMS).await;
    add(&store, 1, report("eu", 1, 0)).await;
    server.signal("STOP");
    next.take_over(&server);
    let wanted = Wanted { clients: &[Id(7)], regions: &[], from: None };
    assert!(matches!(store.join(&wanted).await, Err(StoreError::Silent)));
    add(&store, 1, report("eu", 1, 0)).await;
    assert_eq!(join(&store, &[7], &[], None).await, Some(1));
}

#[tokio::test]
async fn a_connection_to_a_redis_that_has_become_a_replica_is_an_error_and_replaced() {
    let (Some(server), Some(next)) = (Server::start("replica").await, Server::start("master").await) else {
        return;
    };
    let store = server.store(TERMS).await;
    add(&store, 1, report("eu", 1, 0)).await;
    let Store::Redis(redis) = &store else { panic!("in memory") };
    let follow = async |mut connection| {
        redis::cmd("REPLICAOF").arg(&["127.0.0.1", "1"]).exec_async(&mut connection).await
    };
    redis.ask(follow).await.unwrap();
    next.take_over(&server);
    assert!(store.report(Id(1), report("eu", 1, 0)).await.is_err());
    add(&store, 1, report("eu", 1, 0)).await;
    assert_eq!(join(&store, &[7], &[], None).await, Some(1));
}
