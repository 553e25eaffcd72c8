//! Writing, measuring and reading agree, and nothing that is not written as it should be is read as if it were.

#![expect(clippy::unwrap_used, reason = "a test that panics has found something")]

use proptest::collection::vec;
use proptest::prelude::*;
use whitewater::message::{BitsError, Int, Measure, Read, Serialize, Stream, Write};

/// A field of each kind, with its value and its bounds.
#[derive(Clone, Debug, PartialEq)]
enum Field {
    Bits(u32, u32),
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
    Align,
    Check(u32),
}

const MAX: usize = 40;

impl Serialize for Field {
    fn serialize<S: Stream>(&mut self, stream: &mut S) -> Result<(), BitsError> {
        match self {
            Self::Bits(value, count) => stream.bits(value, *count),
            Self::Bool(value) => stream.bool(value),
            Self::I8(value, min, max) => stream.int(value, *min..=*max),
            Self::U16(value, min, max) => stream.int(value, *min..=*max),
            Self::I64(value, min, max) => stream.int(value, *min..=*max),
            Self::U64(value) => stream.u64(value),
            Self::Float(value) => stream.float(value, -512.0..=512.0, 0.01),
            Self::Bytes(value) => stream.bytes(value),
            Self::ByteVec(value) => stream.byte_vec(value, MAX),
            Self::Text(value) => stream.string(value, MAX),
            Self::List(value) => stream.vec(value, MAX, |stream, item| stream.int(item, -1000..=1000)),
            Self::Option(value) => stream.option(value, |stream, value| stream.bits(value, 32)),
            Self::Relative(value, base) => stream.relative(value, *base),
            Self::Align => stream.align(),
            Self::Check(value) => stream.check(*value),
        }
    }
}

impl Field {
    /// The same field with another value, to read into.
    fn blank(&self) -> Self {
        match self.clone() {
            Self::Bits(_, count) => Self::Bits(u32::MAX, count),
            Self::Bool(value) => Self::Bool(!value),
            Self::I8(_, min, max) => Self::I8(0, min, max),
            Self::U16(_, min, max) => Self::U16(0, min, max),
            Self::I64(_, min, max) => Self::I64(0, min, max),
            Self::U64(_) => Self::U64(1),
            Self::Float(_) => Self::Float(f32::NAN),
            Self::Bytes(value) => Self::Bytes(vec![7; value.len()]),
            Self::ByteVec(_) => Self::ByteVec(vec![7; 99]),
            Self::Text(_) => Self::Text("something longer than the bound of the string that is read".into()),
            Self::List(_) => Self::List(vec![7; 3]),
            Self::Option(value) => Self::Option(if value.is_some() { None } else { Some(7) }),
            Self::Relative(_, base) => Self::Relative(0, base),
            field @ (Self::Align | Self::Check(_)) => field,
        }
    }

    fn is_within_bounds(&self) -> bool {
        match self {
            Self::Bits(value, count) => u64::from(*value) < 1 << count,
            Self::I8(value, min, max) => (min..=max).contains(&value),
            Self::U16(value, min, max) => (min..=max).contains(&value),
            Self::I64(value, min, max) => (min..=max).contains(&value),
            Self::Float(value) => (-512.0..=512.0).contains(value),
            Self::ByteVec(value) => value.len() <= MAX,
            Self::Text(value) => value.len() <= MAX,
            Self::List(value) => value.len() <= MAX && value.iter().all(|item| item.abs() <= 1000),
            _ => true,
        }
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
        (any::<u32>(), 1..=32u32).prop_map(|(value, count)| Field::Bits(value >> (32 - count), count)),
        any::<bool>().prop_map(Field::Bool),
        any::<[i8; 3]>().prop_map(between).prop_map(|(value, min, max)| Field::I8(value, min, max)),
        any::<[u16; 3]>().prop_map(between).prop_map(|(value, min, max)| Field::U16(value, min, max)),
        any::<[i64; 3]>().prop_map(between).prop_map(|(value, min, max)| Field::I64(value, min, max)),
        any::<u64>().prop_map(Field::U64),
        (-512.0..=512.0f32).prop_map(Field::Float),
        vec(any::<u8>(), 0..20).prop_map(Field::Bytes),
        vec(any::<u8>(), 0..=MAX).prop_map(Field::ByteVec),
        "[a-zä€]{0,13}".prop_map(Field::Text),
        vec(-1000..=1000, 0..=MAX).prop_map(Field::List),
        any::<Option<u32>>().prop_map(Field::Option),
        (any::<u16>(), 0..600u16)
            .prop_map(|(base, ahead)| Field::Relative(base.wrapping_add(ahead / 2), base)),
        any::<[u16; 2]>().prop_map(|[value, base]| Field::Relative(value, base)),
        Just(Field::Align),
        any::<u32>().prop_map(Field::Check),
    ]
}

fn write(fields: &mut [Field]) -> Vec<u8> {
    let mut bytes = vec![0xff; 10_000];
    let mut stream = Write::new(&mut bytes);
    fields.iter_mut().for_each(|field| field.serialize(&mut stream).unwrap());
    let len = stream.finish();
    bytes.truncate(len);
    bytes
}

fn read(fields: &mut [Field], bytes: &[u8]) -> Result<(), BitsError> {
    let mut stream = Read::new(bytes);
    fields.iter_mut().try_for_each(|field| field.serialize(&mut stream))?;
    stream.finish()
}

fn blanks(fields: &[Field]) -> Vec<Field> {
    fields.iter().map(Field::blank).collect()
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
    fn what_is_read_is_what_was_written(mut fields in vec(field(), 0..30)) {
        let (bytes, before) = (write(&mut fields), fields.clone());
        let mut copy = blanks(&fields);
        prop_assert_eq!(read(&mut copy, &bytes), Ok(()));
        prop_assert!(copy.iter().zip(&before).all(|(read, written)| is_same(read, written)), "{copy:?}");
        prop_assert_eq!(write(&mut copy), bytes, "what was read is written the same way");
    }

    #[test]
    fn a_measure_is_exact_but_for_padding_and_never_below(
        mut fields in vec(field(), 0..30), start in 0..32usize
    ) {
        let mut bytes = vec![0; 10_000];
        let mut stream = Write::new(&mut bytes);
        (0..start).for_each(|_| stream.bool(&mut true).unwrap());
        for field in &mut fields {
            let before = stream.left();
            field.serialize(&mut stream).unwrap();
            let (written, measured) = (before - stream.left(), Measure::of(field).unwrap());
            if *field == Field::Align {
                prop_assert!(written <= 7 && measured == 7);
            } else {
                prop_assert_eq!(written, measured);
            }
        }
    }

    #[test]
    fn nothing_is_read_of_what_is_cut_off(mut fields in vec(field(), 1..20), cut: prop::sample::Index) {
        let bytes = write(&mut fields);
        prop_assume!(!bytes.is_empty());
        let cut = cut.index(bytes.len());
        prop_assert!(read(&mut blanks(&fields), &bytes[..cut]).is_err());
    }

    #[test]
    fn a_flipped_bit_is_refused_or_gives_other_values_within_their_bounds(
        mut fields in vec(field(), 1..20), at: prop::sample::Index
    ) {
        let mut bytes = write(&mut fields);
        prop_assume!(!bytes.is_empty());
        let at = at.index(8 * bytes.len());
        bytes[at / 8] ^= 1 << (at % 8);
        let mut copy = blanks(&fields);
        if read(&mut copy, &bytes).is_ok() {
            prop_assert!(copy.iter().all(Field::is_within_bounds));
            prop_assert_eq!(write(&mut copy), bytes, "every value has one coding");
        }
    }

    #[test]
    fn a_writer_stops_where_its_bytes_end(mut fields in vec(field(), 1..20), cut: prop::sample::Index) {
        let len = write(&mut fields).len();
        prop_assume!(len > 0);
        let mut bytes = vec![0; cut.index(len)];
        let mut stream = Write::new(&mut bytes);
        let done = fields.iter_mut().try_for_each(|field| field.serialize(&mut stream));
        prop_assert!(matches!(done, Err(BitsError::Full { .. })), "{done:?}");
    }
}

fn measure(field: Field) -> usize {
    Measure::of(&mut { field }).unwrap()
}

#[test]
fn a_number_takes_the_bits_of_its_range_and_no_more() {
    for (max, bits) in
        [(0, 0), (1, 1), (2, 2), (3, 2), (4, 3), (999, 10), (1023, 10), (1024, 11), (65_535, 16)]
    {
        assert_eq!(measure(Field::U16(0, 0, max)), bits, "0 to {max}");
    }
    assert_eq!(measure(Field::I8(-1, -1, 1)), 2);
    assert_eq!(measure(Field::I64(0, i64::MIN, i64::MAX)), 64);
    assert_eq!(measure(Field::Float(0.0)), 17, "102,401 steps");
    for (ahead, bits) in
        [(1, 1), (2, 4), (5, 4), (6, 7), (21, 7), (22, 12), (277, 12), (278, 20), (0, 20), (65_535, 20)]
    {
        assert_eq!(measure(Field::Relative(7u16.wrapping_add(ahead), 7)), bits, "{ahead} ahead");
    }
}

#[test]
fn a_value_out_of_its_bounds_is_not_written() {
    let out_of_range = |offset, span| Err(BitsError::OutOfRange { offset, span });
    for (mut field, error) in [
        (Field::Bits(8, 3), out_of_range(8, 7)),
        (Field::Bits(0, 0), Err(BitsError::Bounds)),
        (Field::Bits(0, 33), Err(BitsError::Bounds)),
        (Field::U16(9, 10, 12), out_of_range(u64::MAX, 2)),
        (Field::I8(0, 2, 1), Err(BitsError::Bounds)),
        (Field::ByteVec(vec![0; 41]), out_of_range(41, 40)),
        (Field::Text("a".repeat(41)), out_of_range(41, 40)),
        (Field::List(vec![0; 41]), out_of_range(41, 40)),
        (Field::Float(512.1), Err(BitsError::Float { value: 512.1, min: -512.0, max: 512.0 })),
    ] {
        let before = field.clone();
        assert_eq!(field.serialize(&mut Write::new(&mut [0; 99])), error);
        assert_eq!(field.serialize(&mut Measure::default()), error);
        assert_eq!(field, before, "and it is left alone");
    }
    assert!(Field::Float(f32::NAN).serialize(&mut Measure::default()).is_err());
    for (range, resolution) in
        [(0.0..=1.0, 0.0), (0.0..=1.0, f32::NAN), (1.0..=1.0, 0.1), (0.0..=f32::MAX, 1.0)]
    {
        assert_eq!(Measure::default().float(&mut 1.0, range, resolution), Err(BitsError::Bounds));
    }
}

#[test]
fn what_is_wrong_is_named() {
    let read_one =
        |mut field: Field, bytes: &[u8]| read(std::slice::from_mut(&mut field), bytes).unwrap_err();
    assert_eq!(read_one(Field::U64(0), &[0; 7]), BitsError::Truncated { need: 32, left: 24 });
    assert_eq!(read_one(Field::U16(0, 0, 9), &[10]), BitsError::OutOfRange { offset: 10, span: 9 });
    assert_eq!(read_one(Field::Bool(false), &[1, 0]), BitsError::Trailing { left: 8 });
    assert_eq!(read_one(Field::Bool(false), &[3]), BitsError::Padding { found: 1 });
    assert_eq!(read_one(Field::Check(5), &[4, 0, 0, 0]), BitsError::Check { found: 4, expected: 5 });
    assert_eq!(read_one(Field::ByteVec(vec![]), &[9]), BitsError::Truncated { need: 72, left: 2 });
    assert_eq!(read_one(Field::Text(String::new()), &[0b1100_0001, 0x3f]), BitsError::Utf8);
    assert_eq!(read_one(Field::Relative(0, 0), &[0x50, 0, 0]), BitsError::NotShortest { distance: 5 });
}
