//! A derived message of every kind of field is refused, or is a value that is packed as it was read and takes little memory.

use whitewater::Message;
use whitewater::message::{BitReader, BitWriter, BitsError, Payload};

#[derive(Debug, Message)]
struct Everything {
    kind: Kind,
    flag: bool,
    #[bits(-3..=3)]
    few: i8,
    #[bits(1..=u64::MAX)]
    wide: u64,
    size: usize,
    huge: i128,
    float: f32,
    double: f64,
    #[float(-512.0..=512.0, 0.01)]
    place: [f32; 3],
    #[max_len(20)]
    text: String,
    #[max_len(300)]
    bytes: Vec<u8>,
    #[max_len(9, 5)]
    names: Vec<String>,
    #[max_len(100)]
    #[bits(0..=4)]
    tiles: Vec<Option<u8>>,
    #[bits(0..=999)]
    score: Option<Box<u32>>,
    nothing: (),
    generic: Pair<Vec<u16>, Option<[u8; 4]>>,
    tree: Tree,
}

#[derive(Debug, Message)]
enum Kind {
    One,
    Two,
    Three,
    Four,
    Five,
}

#[derive(Debug, Message)]
struct Pair<A, B>(A, B);

#[derive(Debug, Message)]
enum Tree {
    Leaf(bool),
    Node(Box<Self>, Box<Self>),
    List(Vec<Self>),
    Named {
        #[max_len(7)]
        name: String,
        next: Option<Box<Self>>,
    },
}

/// # Panics
///
/// When a message is packed otherwise than it was read, or one way of reading it does not agree with another.
pub fn message_unpack(data: &[u8]) {
    message_unpack_measured(data, || 0);
}

/// As [`message_unpack`]; `live` returns the bytes currently allocated.
///
/// # Panics
///
/// As [`message_unpack`]; also when a value takes more memory than its bits account for.
pub fn message_unpack_measured(data: &[u8], live: fn() -> usize) {
    check::<Tree>(data, live);
    check::<Everything>(data, live);
}

fn check<T: Message>(data: &[u8], live: fn() -> usize) {
    let before = live();
    let mut from = BitReader::new(data);
    let value = T::unpack(&mut from);
    let taken = live().saturating_sub(before);
    // An item of a list takes at least a bit and at most 64 bytes, and a list grows to twice its length, 4 items at least.
    assert!(taken <= 128 * from.position() + 512, "{taken} bytes for {} bits", from.position());
    let bits = from.position();
    let skip = <T as Payload>::SKIP.expect("its bits tell where it ends");
    assert_eq!(skip(&mut BitReader::new(data)).is_ok(), value.is_ok());
    let Ok(value) = value else { return };
    let mut to = BitWriter::with_limit(vec![0xee; 5], bits);
    assert_eq!(value.pack(&mut to), Ok(()), "what was read has room");
    assert_eq!((to.bits(), to.left()), (bits, 0));
    let (mut read, written) = (Vec::new(), to.finish());
    assert_eq!(from.copy(0..bits, &mut read), Ok(()));
    assert_eq!(written, read, "it is packed as it was read");
    assert!(<T as Payload>::unpack(&written).is_ok());
    if let Some(cut) = bits.checked_sub(1) {
        let found = T::unpack(&mut BitReader::with_limit(data, cut)).map(drop);
        assert!(matches!(found, Err(BitsError::Truncated { .. })), "a bit is missing: {found:?}");
    }
}

/// Messages of both types, and what random bytes are.
#[must_use]
pub fn seeds() -> Vec<(String, Vec<u8>)> {
    let tree = || {
        Tree::Node(
            Box::new(Tree::List(vec![Tree::Leaf(true), Tree::Leaf(false)])),
            Box::new(Tree::Named { name: "a".to_owned(), next: Some(Box::new(Tree::Leaf(true))) }),
        )
    };
    let everything = |kind, score: Option<u32>| Everything {
        kind,
        flag: true,
        few: -3,
        wide: 1 << 40,
        size: 7,
        huge: -1,
        float: 1.5,
        double: -0.0,
        place: [0.0, -512.0, 1.25],
        text: "größe".to_owned(),
        bytes: vec![1, 2, 3],
        names: vec![String::new(), "Ada".to_owned()],
        tiles: vec![None, Some(4)],
        score: score.map(Box::new),
        nothing: (),
        generic: Pair(vec![1, 2], None),
        tree: tree(),
    };
    let values = [
        everything(Kind::One, None),
        everything(Kind::Two, Some(999)),
        everything(Kind::Three, None),
        everything(Kind::Four, Some(0)),
        everything(Kind::Five, None),
    ];
    let packed = |value: &dyn Fn(&mut BitWriter) -> Result<(), BitsError>| {
        let mut to = BitWriter::new(Vec::new());
        value(&mut to).map(|()| to.finish()).unwrap_or_default()
    };
    let mut seeds: Vec<_> = (0..)
        .zip(&values)
        .map(|(at, value): (u8, _)| (format!("everything-{at}"), packed(&|to| value.pack(to))))
        .collect();
    seeds.push(("tree".to_owned(), packed(&|to| tree().pack(to))));
    seeds.push(("deep".to_owned(), vec![0b0101_0101; 40]));
    seeds
}
