//! What is sent, and when.

use std::time::Duration;

/// What the two ends of a session send, and what is measured.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "made for `Workload { .., ..Workload::input60() }`")]
pub struct Workload {
    /// Its name in tables.
    pub name: &'static str,
    /// What alice sends; latencies are measured for these messages.
    pub traffic: Traffic,
    /// What bob sends.
    pub answer: Answer,
    /// The run ends when this many of alice's messages have been delivered, at most all of them.
    pub wanted: u32,
    /// How long after the first message bob starts to read; latencies count from then.
    pub reads_after: Duration,
    /// When the ends and the traffic start.
    pub start: Start,
}

/// Messages of one size at a steady pace.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "three numbers with names")]
pub struct Traffic {
    /// Number of messages.
    pub count: u32,
    /// Size of each message, bytes.
    pub size: usize,
    /// Time between messages; zero: all at once.
    pub every: Duration,
}

/// What bob sends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Answer {
    /// Nothing.
    Nothing,
    /// Returns every message as soon as it arrives. The latency is then that of the round trip.
    Echo,
    /// Background traffic of his own. It is checked, but its latencies are not measured.
    Traffic(Traffic),
}

/// When the ends first flush, and when the traffic starts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Start {
    /// First flushes in the first 10 ms, traffic 20 to 30 ms after the start, at random by the seed.
    Random,
    /// At these times, as in a program that owns both ends.
    At {
        /// First flush of both ends.
        beat: Duration,
        /// First message.
        traffic: Duration,
    },
}

impl Workload {
    /// `count` messages of `size` bytes from alice to bob, one every `every`.
    #[must_use]
    pub const fn new(name: &'static str, count: u32, size: usize, every: Duration) -> Self {
        let traffic = Traffic { count, size, every };
        let (answer, reads_after, start) = (Answer::Nothing, Duration::ZERO, Start::Random);
        Self { name, traffic, answer, wanted: count, reads_after, start }
    }

    /// Player input: 60 messages of 100 bytes per second, for a minute.
    #[must_use]
    pub const fn input60() -> Self {
        Self::new("input60", 3600, 100, FRAME)
    }

    /// Player input, packed tightly: 60 messages of 16 bytes per second, for a minute.
    #[must_use]
    pub const fn tiny60() -> Self {
        Self::new("tiny60", 3600, 16, FRAME)
    }

    /// World snapshots: 20 messages of 1200 bytes per second, for a minute.
    #[must_use]
    pub const fn snap20() -> Self {
        Self::new("snap20", 1200, 1200, Duration::from_millis(50))
    }

    /// Parts of a map: 32 KiB per second, for a minute.
    #[must_use]
    pub const fn chunk32k() -> Self {
        Self::new("chunk32k", 60, 32_768, Duration::from_secs(1))
    }

    /// An occasional message: 100 bytes per second, for two minutes.
    #[must_use]
    pub const fn sparse1() -> Self {
        Self::new("sparse1", 120, 100, Duration::from_secs(1))
    }

    /// A download: 953 messages of 11,008 bytes, all at once.
    #[must_use]
    pub const fn bulk() -> Self {
        Self::new("bulk", 953, 11_008, Duration::ZERO)
    }

    /// A window that closes and reopens: 100 messages of 100 bytes per second, for 4 s, to a reader that
    /// starts after 10 s.
    #[must_use]
    pub const fn reopen() -> Self {
        let reads_after = Duration::from_secs(10);
        Self { reads_after, ..Self::new("reopen", 400, 100, Duration::from_millis(10)) }
    }

    /// A game in both directions: input from alice, snapshots from bob in the background.
    #[must_use]
    pub const fn duplex() -> Self {
        let answer = Answer::Traffic(Self::snap20().traffic);
        Self { name: "duplex", answer, ..Self::input60() }
    }

    /// KCP's own test: 8 bytes every 20 ms, echoed at once, until 1001 have come back. One loop of 1 ms
    /// updates both ends. Source: KCP test.cpp.
    #[must_use]
    pub const fn upstream() -> Self {
        let every = Duration::from_millis(20);
        let start = Start::At { beat: Duration::from_millis(1), traffic: every };
        // Messages continue while the last ones that count are in flight.
        Self { answer: Answer::Echo, wanted: 1001, start, ..Self::new("upstream", 5000, 8, every) }
    }
}

impl Traffic {
    /// When message `index` is sent, relative to the first.
    #[must_use]
    pub const fn at(&self, index: u32) -> Duration {
        self.every.saturating_mul(index)
    }
}

impl From<Traffic> for Answer {
    fn from(traffic: Traffic) -> Self {
        Self::Traffic(traffic)
    }
}

/// A frame at 60 Hz.
const FRAME: Duration = Duration::from_nanos(16_666_667);
