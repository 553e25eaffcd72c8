//! Derived messages: every kind of type and of bounds is read as it was written, hostile bytes are refused or give a value within
//! its bounds, and types whose bits mean something else have another shape.

use crate::common::{packed, unpacked};
use proptest::collection::vec;
use proptest::prelude::*;
use whitewater::Message;
use whitewater::message::{BitReader, BitWriter, BitsError, MAX_DEPTH};

const COLUMNS: u8 = 32;

#[derive(Clone, Debug, Message, PartialEq)]
struct Unit;

#[derive(Clone, Debug, Message, PartialEq)]
struct Id(u16, #[bits(-1..=1)] i8);

#[derive(Clone, Debug, Message, PartialEq)]
enum Team {
    Red,
    Green,
    Blue,
}

#[derive(Clone, Debug, Message, PartialEq)]
enum Order {
    Stop,
    Move {
        #[bits(0..=COLUMNS - 1)]
        column: u8,
        r#in: Option<Box<Unit>>,
    },
    Say(#[max_len(12)] String, bool),
    Both(Box<Self>, Vec<Self>),
    Target(Id, #[float(0.0..=360.0, 0.5)] f32),
}

#[derive(Clone, Debug, Message, PartialEq)]
struct Player<T> {
    team: Team,
    #[bits(10..=10)]
    always: u64,
    #[bits(i64::MIN..=i64::MAX)]
    score: i64,
    #[max_len(5)]
    #[bits(0..=63)]
    tiles: Vec<u8>,
    #[max_len(3, 2)]
    words: Vec<Vec<u16>>,
    #[max_len(9)]
    bytes: Option<Vec<u8>>,
    #[float(-1.0..=1.0, 0.01)]
    aim: [f32; 2],
    #[bits(-5..=5)]
    offsets: Box<[Option<i32>; 2]>,
    #[bits(0..=2)]
    few: Vec<usize>,
    inner: (T, f64, Unit),
    orders: Vec<Order>,
}

type Everything = Player<Option<u32>>;

fn team() -> impl Strategy<Value = Team> {
    prop_oneof![Just(Team::Red), Just(Team::Green), Just(Team::Blue)]
}

fn order() -> impl Strategy<Value = Order> {
    let order = prop_oneof![
        Just(Order::Stop),
        (0..COLUMNS, any::<bool>())
            .prop_map(|(column, is)| Order::Move { column, r#in: is.then(|| Box::new(Unit)) }),
        ("[a-z]{0,12}", any::<bool>()).prop_map(|(text, is)| Order::Say(text, is)),
        (any::<u16>(), -1..=1i8, 0..=720u16)
            .prop_map(|(id, side, step)| Order::Target(Id(id, side), f32::from(step) / 2.0)),
    ];
    order.prop_recursive(5, 20, 3, |order| {
        (order.clone(), vec(order, 0..3)).prop_map(|(one, more)| Order::Both(Box::new(one), more))
    })
}

prop_compose! {
    fn everything()(
        team in team(),
        score in any::<i64>(),
        tiles in vec(0..=63u8, 0..=5),
        words in vec(vec(any::<u16>(), 0..=2), 0..=3),
        bytes in prop::option::of(vec(any::<u8>(), 0..=9)),
        aim in any::<[bool; 2]>(),
        offsets in any::<[Option<i8>; 2]>(),
        few in vec(0..=2usize, 0..30),
        inner in any::<(Option<u32>, f64)>(),
        orders in vec(order(), 0..6),
    ) -> Everything {
        Player {
            team,
            always: 10,
            score,
            tiles,
            words,
            bytes,
            aim: aim.map(|is| if is { 1.0 } else { -1.0 }),
            offsets: Box::new(offsets.map(|offset| offset.map(|offset| i32::from(offset % 6)))),
            few,
            inner: (inner.0, inner.1, Unit),
            orders,
        }
    }
}

/// Reads as much as a message is, and returns the most bytes of memory that took.
fn memory_to_read<T: Message>(bytes: &[u8]) -> u64 {
    allocation_counter::measure(|| drop(T::unpack(&mut BitReader::new(bytes)))).bytes_max
}

proptest! {
    #[test]
    fn a_derived_message_is_read_as_it_was_written(value in everything()) {
        let (bytes, _) = packed(&value);
        prop_assert_eq!(unpacked::<Everything>(&bytes), Ok(value));
    }

    #[test]
    fn hostile_bytes_are_refused_or_are_the_only_coding_of_a_value(bytes in vec(any::<u8>(), 0..200)) {
        let mut from = BitReader::new(&bytes);
        if let Ok(value) = Everything::unpack(&mut from) {
            let (again, bits) = packed(&value);
            prop_assert_eq!(bits, from.position());
            let mut read = Vec::new();
            from.copy(0..bits, &mut read).unwrap();
            prop_assert_eq!(again, read);
        }
    }

    #[test]
    fn hostile_bytes_take_little_memory(
        value in everything(), flips in vec(any::<prop::sample::Index>(), 0..9), more in vec(any::<u8>(), 0..50)
    ) {
        let (mut bytes, _) = packed(&value);
        for flip in flips {
            let at = flip.index(8 * bytes.len());
            bytes[at / 8] ^= 1 << (at % 8);
        }
        bytes.extend(more);
        // An order of 48 bytes takes 3 bits, and a vector that grows has twice as much, beside what it grows out of.
        let most = 8 / 3 * 48 * 3 * bytes.len() as u64 + 1000;
        let found = memory_to_read::<Everything>(&bytes);
        prop_assert!(found <= most, "{} bytes for {}", found, bytes.len());
    }

    #[test]
    fn a_message_that_is_cut_off_is_refused(value in everything(), cut: prop::sample::Index) {
        let (bytes, bits) = packed(&value);
        let cut = BitReader::with_limit(&bytes, cut.index(bits));
        let found = Everything::unpack(&mut cut.clone());
        let is_truncated = matches!(found, Err(BitsError::Truncated { .. }));
        prop_assert!(is_truncated, "{:?}", found);
    }
}

#[test]
fn fields_have_the_bits_of_a_stream_one_after_the_other() {
    #[derive(Message)]
    struct Mixed {
        flag: bool,
        #[bits(3..=9)]
        int: u16,
        wide: i64,
        #[float(-512.0..=512.0, 0.01)]
        float: f32,
        #[max_len(20)]
        text: String,
        #[max_len(20)]
        bytes: Vec<u8>,
        #[max_len(4)]
        #[bits(-1000..=1000)]
        list: Vec<i32>,
        #[bits(0..=999)]
        some: Option<u32>,
        order: Order,
    }
    let (text, bytes, list) = ("größe".to_owned(), vec![1, 2, 255], vec![-1000, 7]);
    let mut to = BitWriter::new(Vec::new());
    let mut write = || -> Result<(), BitsError> {
        to.bool(true)?;
        to.int(5, 3u16..=9)?;
        to.int(-7, i64::MIN..=i64::MAX)?;
        to.float(-1.25, -512.0..=512.0, 0.01)?;
        to.string(&text, 20)?;
        to.byte_vec(&bytes, 20)?;
        to.list(&list, 4, |to, item| to.int(*item, -1000..=1000))?;
        to.bool(true)?; // there is a number
        to.int(500, 0..=999u32)?;
        to.int(1, 0..=4u32)?; // the number of the variant
        to.int(31, 0..=31u8)?;
        to.bool(true)
    };
    write().unwrap();
    let order = Order::Move { column: 31, r#in: Some(Box::new(Unit)) };
    let mixed =
        Mixed { flag: true, int: 5, wide: -7, float: -1.25, text, bytes, list, some: Some(500), order };
    assert_eq!(packed(&mixed).0, to.finish());
}

#[test]
fn a_variant_takes_the_bits_of_their_number_and_is_read_as_no_other() {
    let orders = [
        (Order::Stop, 3),
        (Order::Move { column: 5, r#in: None }, 3 + 5 + 1),
        (Order::Say("no".to_owned(), true), 3 + 4 + 16 + 1),
        (Order::Both(Box::new(Order::Stop), vec![Order::Stop]), 3 + 3 + 16 + 3),
        (Order::Target(Id(7, -1), 0.5), 3 + 16 + 2 + 10),
    ];
    for (kind, (order, bits)) in (0..).zip(orders) {
        let (bytes, found) = packed(&order);
        assert_eq!((found, bytes[0] & 7), (bits, kind), "{order:?}");
        assert_eq!(unpacked(&bytes), Ok(order));
    }
    for kind in 5..8 {
        assert_eq!(unpacked::<Order>(&[kind]), Err(BitsError::Kind { kind: kind.into() }));
    }
    assert_eq!(unpacked::<Team>(&[3]), Err(BitsError::Kind { kind: 3 }));
}

#[test]
fn a_value_out_of_its_bounds_is_not_written() {
    let refused = |order: Order| order.pack(&mut BitWriter::new(Vec::new())).unwrap_err();
    let column = Order::Move { column: 32, r#in: None };
    assert_eq!(refused(column), BitsError::OutOfRange { offset: 32, span: 31 });
    assert_eq!(refused(Order::Say("a".repeat(13), true)), BitsError::OutOfRange { offset: 13, span: 12 });
    let float = BitsError::Float { value: -0.5, min: 0.0, max: 360.0 };
    assert_eq!(refused(Order::Target(Id(0, 0), -0.5)), float);
    let side = BitsError::OutOfRange { offset: 3, span: 2 };
    assert_eq!(refused(Order::Target(Id(0, 2), 0.0)), side);
}

#[test]
fn a_derived_type_that_contains_itself_is_no_deeper_than_both_ends_take() {
    let nested = |depth| (0..depth).fold(Order::Stop, |order, _| Order::Both(Box::new(order), Vec::new()));
    let deepest = nested(MAX_DEPTH - 1); // and the list in it
    assert_eq!(unpacked(&packed(&deepest).0), Ok(deepest));
    let too_deep = BitsError::Depth { max: MAX_DEPTH };
    assert_eq!(nested(MAX_DEPTH + 1).pack(&mut BitWriter::new(Vec::new())), Err(too_deep));
    let mut hostile = BitWriter::new(Vec::new());
    (0..200_000).for_each(|_| hostile.kind(3, 5).unwrap());
    let stack = std::thread::Builder::new().stack_size(128 << 10);
    let read = stack.spawn(move || unpacked::<Order>(&hostile.finish())).unwrap();
    assert_eq!(read.join().unwrap(), Err(too_deep));
}

/// Items named `Shaped`, and the shape of each.
macro_rules! shapes {
    ($({ $($item:tt)* })*) => { [$({
        #[derive(Message)]
        $($item)*
        (stringify!($($item)*), <Shaped as Message>::SHAPE)
    }),*] };
}

fn assert_all_differ(shapes: &[(&str, u64)]) {
    for (at, (name, shape)) in shapes.iter().enumerate() {
        let same = shapes.iter().take(at).find(|(_, other)| other == shape);
        assert_eq!(same, None, "{name}");
    }
}

#[test]
fn bounds_and_fields_are_in_the_shape() {
    const MAX: u8 = 4;
    assert_all_differ(&shapes! {
        { struct Shaped { #[bits(0..=3)] a: u8, b: bool } }
        { struct Shaped { #[bits(0..=MAX)] a: u8, b: bool } }
        { struct Shaped { #[bits(1..=4)] a: u8, b: bool } }
        { struct Shaped { a: u8, b: bool } }
        { struct Shaped { a: u16, b: bool } }
        { struct Shaped { a: i16, b: bool } }
        { struct Shaped { b: bool, a: u8 } }
        { struct Shaped { a: u8, b: bool, c: bool } }
        { struct Shaped { a: u8 } }
        { struct Shaped { a: (u8, bool) } }
        { struct Shaped; }
        { struct Shaped { x: f32, y: f32 } }
        { struct Shaped { y: f32, x: f32 } }
        { struct Shaped(f32, f32); }
        { struct Shaped(f64, f32); }
        { struct Shaped(#[float(0.0..=1.0, 0.1)] f32); }
        { struct Shaped(#[float(0.0..=2.0, 0.1)] f32); }
        { struct Shaped(#[float(0.0..=1.0, 0.2)] f32); }
    });
}

#[test]
fn lengths_and_items_are_in_the_shape() {
    assert_all_differ(&shapes! {
        { struct Shaped(String); }
        { struct Shaped(#[max_len(9)] String); }
        { struct Shaped(Vec<u8>); }
        { struct Shaped(#[max_len(9)] Vec<u8>); }
        { struct Shaped(#[max_len(10)] Vec<u8>); }
        { struct Shaped(#[max_len(10)] #[bits(0..=9)] Vec<u8>); }
        { struct Shaped(#[max_len(10)] Vec<String>); }
        { struct Shaped(#[max_len(10, 5)] Vec<String>); }
        { struct Shaped(Option<u8>); }
        { struct Shaped([u8; 2]); }
        { struct Shaped([u8; 3]); }
    });
}

#[test]
fn variants_and_their_order_are_in_the_shape() {
    assert_all_differ(&shapes! {
        { enum Shaped { A(u8), B(u8) } }
        { enum Shaped { B(u8), A(u8) } }
        { enum Shaped { A(u8), B(u8), C } }
        { enum Shaped { A(u8), B(i8) } }
        { enum Shaped { A { x: u8 }, B(u8) } }
        { enum Shaped { A(Box<Self>), B(u8) } }
        { enum Shaped { A(Vec<Self>), B(u8) } }
    });
}

#[test]
fn the_same_bits_of_the_same_meaning_have_the_same_shape() {
    let shapes = shapes! {
        { struct Shaped { a: u8 } }
        { struct Shaped { #[bits(0..=255)] a: u32 } }
        { struct Shaped { a: Box<u8> } }
        { struct Shaped { r#a: u8 } }
    };
    assert!(shapes.iter().all(|(_, shape)| *shape == shapes[0].1), "{shapes:?}");
    assert_eq!(Player::<u8>::SHAPE, Player::<Box<u8>>::SHAPE);
    assert_ne!(Player::<u8>::SHAPE, Player::<u16>::SHAPE);
}
