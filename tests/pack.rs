//! What a bit writer packs is what a bit reader takes out, of every type that is a message; and hostile bits take neither much
//! memory nor the stack.

#![expect(clippy::unwrap_used, reason = "a test that panics has found something")]

use crate::common::{packed, unpacked};
use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use std::fmt::Debug;
use whitewater::message::{
    BitReader, BitWriter, BitsError, DEFAULT_MAX_LEN, Int, MAX_DEPTH, OWNED_PER_BIT, OWNED_START, Payload,
    shape,
};
use whitewater::{Channel, Message};

/// A field of each kind, with its value and its bounds.
#[derive(Clone, Debug, PartialEq)]
enum Field {
    Raw(u32, u32),
    Bool(bool),
    I8(i8, i8, i8),
    U16(u16, u16, u16),
    I64(i64, i64, i64),
    U64(u64),
    Float(f32),
    Bytes(Vec<u8>),
    ByteVec(Vec<u8>),
    Text(String),
    List(Vec<i32>),
    Option(Option<u32>),
    Relative(u16, u16),
    Check(u32),
}

const MAX: usize = 40;

impl Field {
    fn pack(&self, to: &mut BitWriter) -> Result<(), BitsError> {
        match self {
            Self::Raw(value, count) => to.raw((*value).into(), *count),
            Self::Bool(value) => to.bool(*value),
            Self::I8(value, min, max) => to.int(*value, *min..=*max),
            Self::U16(value, min, max) => to.int(*value, *min..=*max),
            Self::I64(value, min, max) => to.int(*value, *min..=*max),
            Self::U64(value) => to.u64(*value),
            Self::Float(value) => to.float(*value, -512.0..=512.0, 0.01),
            Self::Bytes(value) => to.bytes(value),
            Self::ByteVec(value) => to.byte_vec(value, MAX),
            Self::Text(value) => to.string(value, MAX),
            Self::List(value) => to.list(value, MAX, |to, item| to.int(*item, -1000..=1000)),
            Self::Option(value) => to.option(*value, |to, value| to.raw(value.into(), 32)),
            Self::Relative(value, base) => to.relative(*value, *base),
            Self::Check(value) => to.check(*value),
        }
    }

    /// The same field as it is read.
    fn unpack(&self, from: &mut BitReader<'_>) -> Result<Self, BitsError> {
        Ok(match self.clone() {
            Self::Raw(_, count) => Self::Raw(u32::try_from(from.raw(count)?).unwrap(), count),
            Self::Bool(_) => Self::Bool(from.bool()?),
            Self::I8(_, min, max) => Self::I8(from.int(min..=max)?, min, max),
            Self::U16(_, min, max) => Self::U16(from.int(min..=max)?, min, max),
            Self::I64(_, min, max) => Self::I64(from.int(min..=max)?, min, max),
            Self::U64(_) => Self::U64(from.u64()?),
            Self::Float(_) => Self::Float(from.float(-512.0..=512.0, 0.01)?),
            Self::Bytes(mut value) => {
                from.bytes(&mut value)?;
                Self::Bytes(value)
            }
            Self::ByteVec(_) => Self::ByteVec(from.byte_vec(MAX)?),
            Self::Text(_) => Self::Text(from.string(MAX)?),
            Self::List(_) => Self::List(from.list(MAX, |from| from.int(-1000..=1000))?),
            Self::Option(_) => {
                Self::Option(from.option(|from| from.raw(32))?.map(|bits| u32::try_from(bits).unwrap()))
            }
            Self::Relative(_, base) => Self::Relative(from.relative(base)?, base),
            Self::Check(value) => {
                from.check(value)?;
                Self::Check(value)
            }
        })
    }
}

/// A value between two bounds.
fn between<T: Int + Ord>(mut three: [T; 3]) -> (T, T, T) {
    three.sort_unstable();
    let [min, value, max] = three;
    (value, min, max)
}

fn field() -> impl Strategy<Value = Field> {
    prop_oneof![
        (any::<u32>(), 1..=32u32).prop_map(|(value, count)| Field::Raw(value >> (32 - count), count)),
        any::<bool>().prop_map(Field::Bool),
        any::<[i8; 3]>().prop_map(between).prop_map(|(value, min, max)| Field::I8(value, min, max)),
        any::<[u16; 3]>().prop_map(between).prop_map(|(value, min, max)| Field::U16(value, min, max)),
        any::<[i64; 3]>().prop_map(between).prop_map(|(value, min, max)| Field::I64(value, min, max)),
        any::<u64>().prop_map(Field::U64),
        (-512.0..=512.0f32).prop_map(Field::Float),
        vec(any::<u8>(), 0..30).prop_map(Field::Bytes),
        vec(any::<u8>(), 0..=MAX).prop_map(Field::ByteVec),
        "[a-zä€]{0,13}".prop_map(Field::Text),
        vec(-1000..=1000, 0..=MAX).prop_map(Field::List),
        any::<Option<u32>>().prop_map(Field::Option),
        (any::<u16>(), 0..600u16)
            .prop_map(|(base, ahead)| Field::Relative(base.wrapping_add(ahead / 2), base)),
        any::<[u16; 2]>().prop_map(|[value, base]| Field::Relative(value, base)),
        any::<u32>().prop_map(Field::Check),
    ]
}

/// The bytes of fields, and how many bits they take.
fn pack(fields: &[Field]) -> (Vec<u8>, usize) {
    let mut to = BitWriter::new(vec![0xff; 3]);
    fields.iter().for_each(|field| field.pack(&mut to).unwrap());
    let bits = to.bits();
    (to.finish(), bits)
}

fn unpack(fields: &[Field], bytes: &[u8]) -> Result<Vec<Field>, BitsError> {
    let mut from = BitReader::new(bytes);
    let read = fields.iter().map(|field| field.unpack(&mut from)).collect::<Result<_, _>>()?;
    from.finish()?;
    Ok(read)
}

/// The field of both, but for what a float loses.
fn is_same(read: &Field, written: &Field) -> bool {
    match (read, written) {
        (Field::Float(read), Field::Float(written)) => (read - written).abs() <= 0.005 + 1e-4,
        _ => read == written,
    }
}

proptest! {
    #[test]
    fn what_is_unpacked_is_what_was_packed(fields in vec(field(), 0..30)) {
        let (bytes, _) = pack(&fields);
        let read = unpack(&fields, &bytes).unwrap();
        prop_assert!(read.iter().zip(&fields).all(|(read, written)| is_same(read, written)), "{read:?}");
        prop_assert_eq!(pack(&read).0, bytes, "what was read is written the same way");
    }

    #[test]
    fn nothing_is_unpacked_of_what_is_cut_off(fields in vec(field(), 1..20), cut: prop::sample::Index) {
        let (bytes, bits) = pack(&fields);
        prop_assume!(bits > 0);
        let cut = cut.index(bits);
        let mut from = BitReader::with_limit(&bytes, cut);
        let done = fields.iter().try_for_each(|field| field.unpack(&mut from).map(drop));
        prop_assert!(done.is_err(), "{cut} of {bits} bits");
        prop_assert!(unpack(&fields, &bytes[..cut / 8]).is_err());
    }

    #[test]
    fn a_flipped_bit_is_refused_or_gives_other_values(
        fields in vec(field(), 1..20), at: prop::sample::Index
    ) {
        let (mut bytes, _) = pack(&fields);
        prop_assume!(!bytes.is_empty());
        let at = at.index(8 * bytes.len());
        bytes[at / 8] ^= 1 << (at % 8);
        if let Ok(read) = unpack(&fields, &bytes) {
            prop_assert_eq!(pack(&read).0, bytes, "every value has one coding");
        }
    }

    #[test]
    fn a_writer_stops_at_its_limit(fields in vec(field(), 1..20), cut: prop::sample::Index) {
        let (whole, bits) = pack(&fields);
        prop_assume!(bits > 0);
        let cut = cut.index(bits);
        let mut to = BitWriter::with_limit(Vec::new(), cut);
        let done = fields.iter().try_for_each(|field| field.pack(&mut to));
        let is_full = matches!(done, Err(BitsError::Full { .. }));
        prop_assert!(is_full, "{:?}", done);
        prop_assert!(to.bits() <= cut && to.bits() + to.left() == cut);
        let written = to.bits();
        let mut again = BitWriter::new(Vec::new());
        again.append(&whole, written).unwrap();
        prop_assert_eq!(to.finish(), again.finish(), "what was written before stays");
    }

    #[test]
    fn packed_bits_are_copied_and_appended_at_any_place(
        before in vec(field(), 0..5), fields in vec(field(), 0..20), after in vec(field(), 0..5)
    ) {
        let all: Vec<_> = [&before[..], &fields, &after].concat();
        let ((bytes, bits), (whole, _)) = (pack(&fields), pack(&all));

        let mut to = BitWriter::new(Vec::new());
        before.iter().for_each(|field| field.pack(&mut to).unwrap());
        to.append(&bytes, bits).unwrap();
        after.iter().for_each(|field| field.pack(&mut to).unwrap());
        prop_assert_eq!(&to.finish(), &whole);

        let mut from = BitReader::new(&whole);
        before.iter().for_each(|field| drop(field.unpack(&mut from).unwrap()));
        let start = from.position();
        fields.iter().for_each(|field| drop(field.unpack(&mut from).unwrap()));
        prop_assert_eq!(from.position() - start, bits);
        let mut copy = vec![0xee];
        from.copy(start..from.position(), &mut copy).unwrap();
        prop_assert_eq!(&copy[1..], &bytes[..]);

        let mut again = BitReader::new(&whole);
        again.skip(start).unwrap();
        again.skip(bits).unwrap();
        prop_assert_eq!(again.position(), from.position());
        let rest = |mut from: BitReader<'_>| {
            after.iter().try_for_each(|field| field.unpack(&mut from).map(drop))?;
            from.finish()
        };
        prop_assert_eq!(rest(again), Ok(()));
    }
}

#[test]
fn a_number_takes_the_bits_of_its_range_and_no_more() {
    let bits = |field: Field| pack(&[field]).1;
    for (max, count) in
        [(0, 0), (1, 1), (2, 2), (3, 2), (4, 3), (999, 10), (1023, 10), (1024, 11), (65_535, 16)]
    {
        assert_eq!(bits(Field::U16(0, 0, max)), count, "0 to {max}");
    }
    assert_eq!(bits(Field::I8(-1, -1, 1)), 2);
    assert_eq!(bits(Field::I64(0, i64::MIN, i64::MAX)), 64);
    assert_eq!(bits(Field::Float(0.0)), 17, "102,401 steps");
    for (ahead, count) in
        [(1, 1), (2, 4), (5, 4), (6, 7), (21, 7), (22, 12), (277, 12), (278, 20), (0, 20), (65_535, 20)]
    {
        assert_eq!(bits(Field::Relative(7u16.wrapping_add(ahead), 7)), count, "{ahead} ahead");
    }
}

#[test]
fn a_value_out_of_its_bounds_is_not_packed() {
    let out_of_range = |offset, span| Err(BitsError::OutOfRange { offset, span });
    let new = || BitWriter::new(Vec::new());
    for (field, error) in [
        (Field::Raw(8, 3), out_of_range(8, 7)),
        (Field::Raw(1, 0), out_of_range(1, 0)),
        (Field::Raw(0, 65), Err(BitsError::Bounds)),
        (Field::U16(9, 10, 12), out_of_range(u64::MAX, 2)),
        (Field::I8(0, 2, 1), Err(BitsError::Bounds)),
        (Field::ByteVec(vec![0; 41]), out_of_range(41, 40)),
        (Field::Text("a".repeat(41)), out_of_range(41, 40)),
        (Field::List(vec![0; 41]), out_of_range(41, 40)),
        (Field::Float(512.1), Err(BitsError::Float { value: 512.1, min: -512.0, max: 512.0 })),
    ] {
        assert_eq!(field.pack(&mut new()), error);
    }
    assert!(Field::Float(f32::NAN).pack(&mut new()).is_err());
    for (range, resolution) in
        [(0.0..=1.0, 0.0), (0.0..=1.0, f32::NAN), (1.0..=1.0, 0.1), (0.0..=f32::MAX, 1.0), (1.0..=0.0, -0.1)]
    {
        assert_eq!(new().float(1.0, range.clone(), resolution), Err(BitsError::Bounds));
        assert_eq!(BitReader::new(&[0; 8]).float(range, resolution), Err(BitsError::Bounds));
    }
    assert_eq!(new().kind(3, 3), Err(BitsError::Kind { kind: 3 }));
    assert_eq!(new().append(&[0; 8], 65), Err(BitsError::Truncated { need: 65, left: 64 }));
    assert_eq!(new().list(&[(); 3], 3, |_, ()| Ok(())), Err(BitsError::EmptyItem));
}

#[test]
fn what_is_wrong_with_bits_is_named() {
    let read_one = |field: Field, bytes: &[u8]| unpack(&[field], bytes).unwrap_err();
    assert_eq!(read_one(Field::U64(0), &[0; 7]), BitsError::Truncated { need: 64, left: 56 });
    assert_eq!(read_one(Field::U16(0, 0, 9), &[10]), BitsError::OutOfRange { offset: 10, span: 9 });
    assert_eq!(read_one(Field::Bool(false), &[1, 0]), BitsError::Trailing { left: 8 });
    assert_eq!(read_one(Field::Bool(false), &[3]), BitsError::Padding { found: 1 });
    assert_eq!(read_one(Field::Check(5), &[4, 0, 0, 0]), BitsError::Check { found: 4, expected: 5 });
    assert_eq!(read_one(Field::ByteVec(vec![]), &[9]), BitsError::Truncated { need: 72, left: 2 });
    assert_eq!(read_one(Field::Text(String::new()), &[0b1100_0001, 0x3f]), BitsError::Utf8);
    assert_eq!(read_one(Field::Relative(0, 0), &[0x50, 0, 0]), BitsError::NotShortest { distance: 5 });
    assert_eq!(BitReader::new(&[3]).kind(3), Err(BitsError::Kind { kind: 3 }));
    assert_eq!(BitReader::new(&[3]).list(3, |_| Ok(())), Err(BitsError::EmptyItem));
    assert_eq!(
        BitReader::new(&[0; 2]).copy(9..17, &mut Vec::new()),
        Err(BitsError::Truncated { need: 17, left: 16 })
    );
}

/// Asserts how many bits a value takes, and that it is read as it was.
fn takes<T: Message + PartialEq + Debug>(value: T, bits: usize) {
    let (bytes, found) = packed(&value);
    assert_eq!(found, bits, "{value:?}");
    assert_eq!(unpacked::<T>(&bytes).as_ref(), Ok(&value));
}

#[test]
fn the_types_of_the_language_are_messages() {
    takes((), 0);
    takes(true, 1);
    takes((u8::MAX, i8::MIN, u16::MAX, i16::MIN), 8 + 8 + 16 + 16);
    takes((u32::MAX, i32::MIN, u64::MAX), 32 + 32 + 64);
    takes((i64::MIN, usize::MAX, isize::MIN), 3 * 64);
    takes((u128::MAX - 1, i128::MIN + 1), 256);
    takes((f32::INFINITY, -0.0, f64::MIN_POSITIVE), 32 + 64 + 64);
    takes((Some(7u8), None::<u64>), 1 + 8 + 1);
    takes([[1u8, 2, 3], [4, 5, 6]], 48);
    takes([(); 3], 0);
    takes(vec![-1i16, 2], 16 + 32);
    takes(vec![7u8; 100], 16 + 800);
    takes("smörgåsbord".to_owned(), 16 + 8 * 13);
    takes(Box::new((true, vec![String::new()])), 1 + 16 + 16);
    let nan = f32::from_bits(0x7fc0_1234);
    assert_eq!(unpacked::<f32>(&packed(&nan).0).unwrap().to_bits(), nan.to_bits());
    let long = "a".repeat(DEFAULT_MAX_LEN + 1);
    assert!(long.pack(&mut BitWriter::new(Vec::new())).is_err());
}

/// Contains itself, by boxes and by lists.
#[derive(Debug, PartialEq)]
enum Tree {
    Leaf,
    Box(Box<Self>),
    List(Vec<Self>),
}

impl Message for Tree {
    const SHAPE: u64 = shape("tree", &[]);

    fn pack(&self, to: &mut BitWriter) -> Result<(), BitsError> {
        match self {
            Self::Leaf => to.kind(0, 3),
            Self::Box(tree) => to.kind(1, 3).and_then(|()| tree.pack(to)),
            Self::List(trees) => to.kind(2, 3).and_then(|()| trees.pack(to)),
        }
    }

    fn unpack(from: &mut BitReader<'_>) -> Result<Self, BitsError> {
        Ok(match from.kind(3)? {
            0 => Self::Leaf,
            1 => Self::Box(Message::unpack(from)?),
            _ => Self::List(Message::unpack(from)?),
        })
    }
}

#[test]
fn a_type_that_contains_itself_has_a_depth_that_both_ends_refuse() {
    let tree = |depth| {
        (0..depth).fold(Tree::Leaf, |tree, level| {
            if level % 2 == 0 { Tree::Box(Box::new(tree)) } else { Tree::List(vec![Tree::Leaf, tree]) }
        })
    };
    let deepest = tree(MAX_DEPTH);
    assert_eq!(unpacked(&packed(&deepest).0), Ok(deepest));
    let too_deep = Err(BitsError::Depth { max: MAX_DEPTH });
    assert_eq!(tree(MAX_DEPTH + 1).pack(&mut BitWriter::new(Vec::new())), too_deep);
    let hostile = vec![0b0101_0101; 100_000];
    assert_eq!(unpacked::<Tree>(&hostile).map(drop), too_deep);
}

#[test]
fn a_list_takes_memory_by_what_has_come_and_not_by_its_length() {
    let hostile = [0xff; 12];
    let count = |read: fn(&[u8]) -> bool| {
        let mut is_refused = false;
        let info = allocation_counter::measure(|| is_refused = read(&hostile));
        assert!(is_refused);
        info.bytes_max
    };
    assert_eq!(count(|bytes| unpacked::<Vec<u8>>(bytes).is_err()), 0);
    assert_eq!(count(|bytes| unpacked::<String>(bytes).is_err()), 0);
    assert!(count(|bytes| unpacked::<Vec<u64>>(bytes).is_err()) <= 100);
    assert!(count(|bytes| unpacked::<Vec<Vec<u8>>>(bytes).is_err()) <= 100);
    assert!(count(|bytes| unpacked::<Vec<()>>(bytes).is_err()) == 0);
}

/// An empty one takes one bit, and 808 bytes of a list.
#[derive(Debug, Message, PartialEq)]
struct Wide {
    rows: Option<[u64; 100]>,
}

#[test]
fn lists_and_boxes_of_large_items_have_a_limit_that_both_ends_keep() {
    let most = |count| OWNED_START + OWNED_PER_BIT * (16 + count);
    let count_of = |size: usize| (0..).take_while(|count| count * size <= most(*count)).last().unwrap();
    // What a peer with pointers of 64 bits has to refuse is not sent.
    let is_64 = cfg!(target_pointer_width = "64");
    let count = count_of(if is_64 { size_of::<Wide>() } else { 2 * size_of::<Wide>() });
    assert_eq!(count, if is_64 { 338 } else { 166 });
    let list = |count| (0..count).map(|_| Wide { rows: None }).collect::<Vec<_>>();
    assert_eq!(unpacked(&packed(&list(count)).0), Ok(list(count)));
    let too_many = |count: usize| move |error| matches!(error, BitsError::Memory { need, max } if need > max && max == most(count + 1));
    assert!(list(count + 1).pack(&mut BitWriter::new(Vec::new())).is_err_and(too_many(count)));
    let mut hostile = BitWriter::new(Vec::new());
    hostile.int(65_535, 0..=DEFAULT_MAX_LEN).unwrap();
    (0..65_535).for_each(|_| hostile.bool(false).unwrap());
    let hostile = hostile.finish();
    let too_many = too_many(count_of(size_of::<Wide>()));
    let info = allocation_counter::measure(|| assert!(unpacked::<Vec<Wide>>(&hostile).is_err_and(too_many)));
    assert!(info.bytes_max <= 4 * OWNED_START as u64, "{} bytes", info.bytes_max);
    // In a packet, the count begins with each message.
    let skip = <Vec<Wide> as Payload>::SKIP.unwrap();
    let (bytes, bits) = packed(&list(count));
    let mut both = BitWriter::new(Vec::new());
    (0..2).for_each(|_| both.append(&bytes, bits).unwrap());
    let both = both.finish();
    let mut from = BitReader::new(&both);
    assert!(skip(&mut from).is_ok() && from.position() == bits);
}

const INPUTS: Channel = Channel::unreliable(0);
const TREES: Channel<Tree> = Channel::ordered(1);

/// What is sent, and what is received of it: by bytes, by bytes that are kept, and by what a stream of bits has behind others.
fn send<P: Payload + ?Sized>(_: Channel<P>, message: &P::Sent) -> P::Received {
    let mut spare = vec![9; 3];
    let (bytes, bits) = P::pack(message, &mut spare).unwrap();
    assert_eq!(bytes.len(), bits.div_ceil(8));
    assert!(P::unpack(bytes).is_ok());
    if let Some(skip) = P::SKIP {
        let mut to = BitWriter::new(Vec::new());
        to.bool(true).unwrap();
        to.append(bytes, bits).unwrap();
        let packed = to.finish();
        let mut from = BitReader::new(&packed);
        from.bool().unwrap();
        skip(&mut from).unwrap();
        assert_eq!(from.position(), 1 + bits, "it passes over all of it");
    }
    P::unpack_owned(Bytes::copy_from_slice(bytes)).unwrap()
}

#[test]
fn a_channel_takes_what_it_carries_without_an_annotation() {
    assert_eq!(send(INPUTS, b"hello"), &b"hello"[..]);
    assert_eq!(send(INPUTS, &[]), &b""[..]);
    assert_eq!(send(INPUTS, &Vec::from(*b"hi")), &b"hi"[..]);
    assert_eq!(send(TREES, &Tree::Leaf), Tree::Leaf);
    assert_ne!(<[u8] as Payload>::SHAPE, <Tree as Payload>::SHAPE);
}

#[test]
fn bytes_that_are_kept_are_not_copied() {
    let bytes = Bytes::from_static(b"a level");
    let received = <[u8]>::unpack_owned(bytes.clone()).unwrap();
    assert_eq!(received.as_ptr(), bytes.as_ptr());
    let (mut spare, sent) = (Vec::new(), [7; 100]);
    let (packed, _) = <[u8]>::pack(&sent, &mut spare).unwrap();
    assert_eq!(packed.as_ptr(), sent.as_ptr());
}

#[test]
fn hostile_bytes_of_a_payload_are_refused() {
    assert!(<Tree as Payload>::unpack(&[0b11]).is_err());
    assert!(<Tree as Payload>::unpack(&[0, 0]).is_err(), "more than the message");
    assert!(<Tree as Payload>::SKIP.unwrap()(&mut BitReader::new(&[0b11])).is_err());
    assert!(<[u8]>::SKIP.is_none(), "any bytes may be bytes: their number is before them");
}

/// Types of serde by postcard.
#[cfg(feature = "serde")]
mod serde {
    use super::*;
    use ::serde::{Deserialize, Serialize};
    use whitewater::message::Serde;

    #[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
    struct Scores {
        players: Vec<(String, u32)>,
        best: Option<f32>,
    }

    const SCORES: Channel<Serde<Scores>> = Channel::ordered(0);

    #[test]
    fn a_channel_takes_any_type_of_serde() {
        let scores = Scores { players: vec![("Ada".to_owned(), 7)], best: Some(0.5) };
        assert_eq!(send(SCORES, &scores), scores);
        let mut spare = vec![9; 3];
        let (bytes, bits) = <Serde<Scores>>::pack(&scores, &mut spare).unwrap();
        assert_eq!((bytes.len(), bits), (11, 88));
    }

    proptest! {
        #[test]
        fn hostile_bytes_are_refused_or_are_a_value(bytes in vec(any::<u8>(), 0..50)) {
            if let Ok(scores) = <Serde<Scores>>::unpack(&bytes) {
                let mut spare = Vec::new();
                let (again, _) = <Serde<Scores>>::pack(&scores, &mut spare).unwrap();
                prop_assert_eq!(<Serde<Scores>>::unpack(again).unwrap().players, scores.players);
            }
        }
    }

    #[test]
    fn bytes_that_are_no_value_or_more_than_one_are_refused() {
        assert_eq!(<Serde<bool>>::unpack(&[2]), Err(BitsError::Serde));
        assert_eq!(<Serde<bool>>::unpack(&[1, 0]), Err(BitsError::Trailing { left: 8 }));
    }
}
