//! Plain arrays, for processors that have no registers of ours: compilers make of them what they can.

pub type Register = [f32; 4];
pub const NAME: &str = "four lanes";

fn each(of: impl Fn(usize) -> f32) -> Register {
    [of(0), of(1), of(2), of(3)]
}

pub fn splat(number: f32) -> Register {
    [number; 4]
}

/// # Safety
/// Four numbers can be read.
pub unsafe fn load(from: *const f32) -> Register {
    // SAFETY: promised by the caller.
    unsafe { from.cast::<Register>().read_unaligned() }
}

/// # Safety
/// A number can be read.
pub unsafe fn repeat(from: *const f32) -> Register {
    // SAFETY: promised by the caller.
    unsafe { [*from; 4] }
}

/// # Safety
/// Four numbers can be written.
pub unsafe fn store(to: *mut f32, of: Register) {
    // SAFETY: promised by the caller.
    unsafe { to.cast::<Register>().write_unaligned(of) }
}

/// # Safety
/// Three numbers can be written.
pub unsafe fn store_three(to: *mut f32, of: Register) {
    // SAFETY: promised by the caller.
    unsafe { to.cast::<[f32; 3]>().write_unaligned([of[0], of[1], of[2]]) }
}

/// # Safety
/// Four times sixteen bits can be read.
pub unsafe fn load_f16_bits(from: *const u16) -> Register {
    // SAFETY: promised by the caller.
    let bits = unsafe { from.cast::<[i16; 4]>().read_unaligned() };
    bits.map(|bits| f32::from_bits((i32::from(bits) << 13) as u32 & 0x8fff_ffff))
}

/// # Safety
/// Four times sixteen bits can be read.
pub unsafe fn load_i16(from: *const i16) -> Register {
    // SAFETY: promised by the caller.
    unsafe { from.cast::<[i16; 4]>().read_unaligned() }.map(f32::from)
}

/// # Safety
/// Four times sixteen bits can be read.
pub unsafe fn load_u16(from: *const u16) -> Register {
    // SAFETY: promised by the caller.
    unsafe { from.cast::<[u16; 4]>().read_unaligned() }.map(f32::from)
}

pub fn add(a: Register, b: Register) -> Register {
    each(|i| a[i] + b[i])
}

pub fn sub(a: Register, b: Register) -> Register {
    each(|i| a[i] - b[i])
}

pub fn mul(a: Register, b: Register) -> Register {
    each(|i| a[i] * b[i])
}

pub fn div(a: Register, b: Register) -> Register {
    each(|i| a[i] / b[i])
}

pub fn multiply_add(a: Register, b: Register, sum: Register) -> Register {
    each(|i| a[i] * b[i] + sum[i])
}

pub fn choose(by: Register, positive: Register, other: Register) -> Register {
    each(|i| if by[i] > 0.0 { positive[i] } else { other[i] })
}

pub fn clamp(x: Register, low: Register, high: Register) -> Register {
    each(|i| x[i].clamp(low[i], high[i]))
}

pub fn transpose(rows: [Register; 4]) -> [Register; 4] {
    [0, 1, 2, 3].map(|column| each(|row| rows[row][column]))
}

pub fn triples([x, y, z]: [Register; 3]) -> [Register; 3] {
    [[x[0], y[0], z[0], x[1]], [y[1], z[1], x[2], y[2]], [z[2], x[3], y[3], z[3]]]
}
