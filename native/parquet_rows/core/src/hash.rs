//! Hashes values for the index's routing runs, many at a time.

use arrow_array::{Array, BinaryArray};

use crate::error::{Error, Result};

const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;

/// For each binary value the sum of (byte + 1) times the multiplier to the power of the
/// byte's position, counted from 1, modulo 2^64. NULLs count as empty.
pub fn polynomials(values: &dyn Array) -> Result<Vec<u64>> {
    match values.as_any().downcast_ref::<BinaryArray>() {
        Some(binary) => Ok(sums(binary.offsets(), binary.value_data())),
        None => Err(Error::Argument(format!(
            "values must be binary, not {}",
            values.data_type()
        ))),
    }
}

fn sums(offsets: &[i32], data: &[u8]) -> Vec<u64> {
    let values = || {
        offsets
            .windows(2)
            .map(|ends| &data[ends[0] as usize..ends[1] as usize])
    };
    let longest = values().map(<[u8]>::len).max().unwrap_or(0);
    let mut powers = Vec::with_capacity(longest);
    let mut power = 1_u64;
    for _ in 0..longest {
        power = power.wrapping_mul(MULTIPLIER);
        powers.push(power);
    }
    values().map(|value| sum(value, &powers)).collect()
}

fn sum(value: &[u8], powers: &[u64]) -> u64 {
    value
        .iter()
        .zip(powers)
        .fold(0, |sum: u64, (&byte, power)| {
            sum.wrapping_add((u64::from(byte) + 1).wrapping_mul(*power))
        })
}
