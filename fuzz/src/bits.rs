//! A reader of bits refuses, or gives values within their bounds; and those are written as they were read.

use super::script::Script;
use whitewater::message::{BitsError, Measure, Read, Serialize, Stream, Write};

/// The fields of a script, each with its arguments.
pub mod op {
    /// How many bits u8.
    pub const BITS: u8 = 0;
    /// No argument.
    pub const BOOL: u8 = 1;
    /// The least u32, the span u32.
    pub const INT: u8 = 2;
    /// As the last one, with i64.
    pub const WIDE: u8 = 3;
    /// No argument.
    pub const U64: u8 = 4;
    /// Which range u8.
    pub const FLOAT: u8 = 5;
    /// How many u8.
    pub const BYTES: u8 = 6;
    /// The most u16.
    pub const BYTE_VEC: u8 = 7;
    /// The most u16.
    pub const STRING: u8 = 8;
    /// The most u16.
    pub const VEC: u8 = 9;
    /// No argument.
    pub const OPTION: u8 = 10;
    /// The base u16.
    pub const RELATIVE: u8 = 11;
    /// No argument.
    pub const ALIGN: u8 = 12;
    /// The value u32.
    pub const CHECK: u8 = 13;
    /// Fields there are.
    pub const COUNT: u8 = 14;
}

/// A field, its bounds and what was read.
#[derive(Clone, Debug)]
enum Field {
    Bits(u32, u32),
    Bool(bool),
    Int(i32, i32, i32),
    Wide(i64, i64, i64),
    U64(u64),
    Float(f32, usize),
    Bytes(Vec<u8>),
    ByteVec(Vec<u8>, usize),
    Text(String, usize),
    List(Vec<u8>, usize),
    Option(Option<u16>),
    Relative(u16, u16),
    Align,
    Check(u32),
}

/// Runs a script: how many fields u8, the fields, the bytes to read them from.
///
/// # Panics
///
/// When a value is out of its bounds, or is written otherwise than it was read.
pub fn bits_read(script: &[u8]) {
    let mut script = Script::new(script);
    let count = script.u8();
    let fields: Vec<Field> = (0..count).map(|_| field(&mut script)).collect();
    let bytes = script.bytes(usize::MAX);
    let mut read = Read::new(bytes);
    let mut done = Vec::new();
    for mut field in fields {
        let before = read.left();
        if field.serialize(&mut read).is_err() {
            break;
        }
        field.check();
        let (taken, most) = (before - read.left(), Measure::of(&mut field).expect("it is within its bounds"));
        assert!(taken <= most, "{field:?} took {taken} bits, and measures {most}");
        done.push(field);
    }
    let taken = 8 * bytes.len() - read.left().min(8 * bytes.len());
    check_written(&mut done, bytes, taken);
    let (left, padding) = (read.left(), read.padding());
    assert!(read.finish().is_err() || left == padding as usize, "{left} bits are left");
}

/// Whether the fields are written as the first bits of `bytes`, of which reading took `taken`.
fn check_written(fields: &mut [Field], bytes: &[u8], taken: usize) {
    let mut copy = vec![0; bytes.len()];
    let mut write = Write::new(&mut copy);
    for field in fields {
        field.serialize(&mut write).expect("what was read fits");
    }
    let written = 8 * bytes.len() - write.left();
    assert!(written <= taken, "{written} bits written of {taken} that were read");
    let whole = written / 8;
    assert!(write.finish() == written.div_ceil(8) && copy[..whole] == bytes[..whole]);
    let last = |bytes: &[u8]| bytes.get(whole).map(|byte| byte & ((1 << (written % 8)) - 1));
    assert_eq!(last(&copy), last(bytes), "the last bits");
}

fn field(script: &mut Script<'_>) -> Field {
    match script.u8() % op::COUNT {
        op::BITS => Field::Bits(0, script.u8().into()),
        op::BOOL => Field::Bool(false),
        op::INT => {
            let (min, span) = (script.u32().cast_signed(), script.u32());
            Field::Int(0, min, min.saturating_add_unsigned(span))
        }
        op::WIDE => {
            let [low, high, min] = [script.u32(), script.u32(), script.u32()];
            let min = i64::from(min.cast_signed()) << 32;
            Field::Wide(0, min, min.saturating_add_unsigned(u64::from(high) << 32 | u64::from(low)))
        }
        op::U64 => Field::U64(0),
        op::FLOAT => Field::Float(0.0, script.u8().into()),
        op::BYTES => Field::Bytes(vec![0; script.u8().into()]),
        op::BYTE_VEC => Field::ByteVec(Vec::new(), script.u16().into()),
        op::STRING => Field::Text(String::new(), script.u16().into()),
        op::VEC => Field::List(Vec::new(), script.u16().into()),
        op::OPTION => Field::Option(None),
        op::RELATIVE => Field::Relative(0, script.u16()),
        op::ALIGN => Field::Align,
        _ => Field::Check(script.u32()),
    }
}

impl Serialize for Field {
    fn serialize<S: Stream>(&mut self, stream: &mut S) -> Result<(), BitsError> {
        match self {
            Self::Bits(value, count) => stream.bits(value, *count),
            Self::Bool(value) => stream.bool(value),
            Self::Int(value, min, max) => stream.int(value, *min..=*max),
            Self::Wide(value, min, max) => stream.int(value, *min..=*max),
            Self::U64(value) => stream.u64(value),
            Self::Float(value, which) => {
                let (min, max, resolution) = FLOATS[*which % FLOATS.len()];
                stream.float(value, min..=max, resolution)
            }
            Self::Bytes(value) => stream.bytes(value),
            Self::ByteVec(value, max) => stream.byte_vec(value, *max),
            Self::Text(value, max) => stream.string(value, *max),
            Self::List(value, max) => stream.vec(value, *max, |stream, item| stream.int(item, 3..=9)),
            Self::Option(value) => stream.option(value, |stream, value| stream.int(value, 0..=999)),
            Self::Relative(value, base) => stream.relative(value, *base),
            Self::Align => stream.align(),
            Self::Check(value) => stream.check(*value),
        }
    }
}

impl Field {
    /// Whether what was read is within its bounds, and owns no more memory than they allow.
    fn check(&self) {
        assert!(
            match self {
                Self::Bits(value, count) => u64::from(*value) < 1 << count,
                Self::Int(value, min, max) => (min..=max).contains(&value),
                Self::Wide(value, min, max) => (min..=max).contains(&value),
                Self::Float(value, which) => {
                    let (min, max, _) = FLOATS[*which % FLOATS.len()];
                    (min..=max).contains(value)
                }
                Self::ByteVec(value, max) => value.len() <= *max && value.capacity() <= (2 * max).max(8),
                Self::Text(value, max) => value.len() <= *max && value.capacity() <= (2 * max).max(8),
                Self::List(value, max) => {
                    value.len() <= *max
                        && value.capacity() <= (2 * max).max(8)
                        && value.iter().all(|item| (3..=9).contains(item))
                }
                Self::Option(value) => value.is_none_or(|value| value <= 999),
                _ => true,
            },
            "{self:?}"
        );
    }
}

/// Least, largest, resolution.
const FLOATS: [(f32, f32, f32); 4] =
    [(-512.0, 512.0, 0.01), (0.0, 1.0, 0.001), (-1e6, 1e6, 10.0), (0.0, 360.0, 0.5)];

/// Each field on its own, all of them, and some that are refused.
#[must_use]
pub fn seeds() -> Vec<(String, Vec<u8>)> {
    let arguments = |op| -> &[u8] {
        match op {
            op::BITS => &[17],
            op::INT => &[0xf0, 0xff, 0xff, 0xff, 30, 0, 0, 0],
            op::WIDE => &[9, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0x80],
            op::FLOAT => &[1],
            op::BYTES => &[5],
            op::BYTE_VEC | op::STRING | op::VEC => &[20, 0],
            op::RELATIVE => &[7, 0],
            op::CHECK => &[1, 2, 3, 4],
            _ => &[],
        }
    };
    let fill = |seed: u8| (0..60u8).map(move |at| at.wrapping_mul(seed).wrapping_add(seed >> 2));
    let mut seeds = Vec::new();
    for op in 0..op::COUNT {
        for (name, seed) in [("zeros", 0), ("low", 1), ("mixed", 37)] {
            let mut bytes = vec![2, op];
            bytes.extend_from_slice(arguments(op));
            bytes.push(op);
            bytes.extend_from_slice(arguments(op));
            bytes.extend(fill(seed));
            seeds.push((format!("field-{op}-{name}"), bytes));
        }
    }
    let mut bytes = vec![op::COUNT];
    for op in 0..op::COUNT {
        bytes.push(op);
        bytes.extend_from_slice(arguments(op));
    }
    bytes.extend([0; 60]);
    seeds.push(("all".to_owned(), bytes));
    seeds
}
