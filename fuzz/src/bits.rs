//! A reader of bits refuses, or gives values within their bounds; and those are written as they were read.

use super::script::Script;
use whitewater::message::{BitReader, BitWriter, BitsError};

/// The fields of a script, each with its arguments.
pub mod op {
    /// How many bits u8: up to 64.
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
    /// The value u32.
    pub const CHECK: u8 = 12;
    /// Fields there are.
    pub const COUNT: u8 = 13;
}

/// A field, its bounds and what was read.
#[derive(Clone, Debug)]
enum Field {
    Bits(u64, u32),
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
    let mut reader = BitReader::new(bytes);
    let mut done = Vec::new();
    for field in fields {
        let before = reader.position();
        let Ok(field) = field.read(&mut reader) else { break };
        field.check();
        assert!(reader.position() >= before && reader.position() + reader.left() == 8 * bytes.len());
        done.push(field);
    }
    // A field that was refused may have been read in part.
    check_written(&done, bytes, reader.position());
    let (left, padding) = (reader.left(), reader.position().wrapping_neg() % 8);
    assert!(reader.finish().is_err() || left == padding, "{left} bits are left");
}

/// Whether the fields are written as the first bits of `bytes`, of which reading took `taken`.
fn check_written(fields: &[Field], bytes: &[u8], taken: usize) {
    let mut writer = BitWriter::with_limit(Vec::new(), 8 * bytes.len());
    for field in fields {
        field.write(&mut writer).expect("what was read fits");
    }
    let written = writer.bits();
    assert!(written <= taken, "{written} bits written of {taken} that were read");
    let (whole, copy) = (written / 8, writer.finish());
    assert!(copy.len() == written.div_ceil(8) && copy[..whole] == bytes[..whole]);
    let last = |bytes: &[u8]| bytes.get(whole).map(|byte| byte & ((1 << (written % 8)) - 1));
    assert!(written.is_multiple_of(8) || last(&copy) == last(bytes), "the last bits");
}

fn field(script: &mut Script<'_>) -> Field {
    match script.u8() % op::COUNT {
        op::BITS => Field::Bits(0, u32::from(script.u8()) % 66),
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
        _ => Field::Check(script.u32()),
    }
}

impl Field {
    fn write(&self, to: &mut BitWriter) -> Result<(), BitsError> {
        match self {
            Self::Bits(value, count) => to.raw(*value, *count),
            Self::Bool(value) => to.bool(*value),
            Self::Int(value, min, max) => to.int(*value, *min..=*max),
            Self::Wide(value, min, max) => to.int(*value, *min..=*max),
            Self::U64(value) => to.u64(*value),
            Self::Float(value, which) => {
                let (min, max, resolution) = FLOATS[*which % FLOATS.len()];
                to.float(*value, min..=max, resolution)
            }
            Self::Bytes(value) => to.bytes(value),
            Self::ByteVec(value, max) => to.byte_vec(value, *max),
            Self::Text(value, max) => to.string(value, *max),
            Self::List(value, max) => to.list(value, *max, |to, item| to.int(*item, 3..=9)),
            Self::Option(value) => to.option(*value, |to, value| to.int(value, 0..=999)),
            Self::Relative(value, base) => to.relative(*value, *base),
            Self::Check(value) => to.check(*value),
        }
    }

    /// The same field with what is there.
    fn read(self, from: &mut BitReader<'_>) -> Result<Self, BitsError> {
        Ok(match self {
            Self::Bits(_, count) => Self::Bits(from.raw(count)?, count),
            Self::Bool(_) => Self::Bool(from.bool()?),
            Self::Int(_, min, max) => Self::Int(from.int(min..=max)?, min, max),
            Self::Wide(_, min, max) => Self::Wide(from.int(min..=max)?, min, max),
            Self::U64(_) => Self::U64(from.u64()?),
            Self::Float(_, which) => {
                let (min, max, resolution) = FLOATS[which % FLOATS.len()];
                Self::Float(from.float(min..=max, resolution)?, which)
            }
            Self::Bytes(mut value) => {
                from.bytes(&mut value)?;
                Self::Bytes(value)
            }
            Self::ByteVec(_, max) => Self::ByteVec(from.byte_vec(max)?, max),
            Self::Text(_, max) => Self::Text(from.string(max)?, max),
            Self::List(_, max) => Self::List(from.list(max, |from| from.int(3..=9))?, max),
            Self::Option(_) => Self::Option(from.option(|from| from.int(0..=999))?),
            Self::Relative(_, base) => Self::Relative(from.relative(base)?, base),
            Self::Check(value) => {
                from.check(value)?;
                Self::Check(value)
            }
        })
    }

    /// Whether what was read is within its bounds, and owns no more memory than they allow.
    fn check(&self) {
        assert!(
            match self {
                Self::Bits(value, count) => *count == 64 || *value < 1 << count,
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
