//! FlatBuffers, read from bytes that nobody vouches for: every offset is checked before it is followed, and nothing is
//! followed twice in a circle because the schema has no recursion. What the tables mean is in `model.rs`.

use understudy_io::ParseError;

/// A file's bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bytes<'a>(pub &'a [u8]);

impl<'a> Bytes<'a> {
    fn take<const N: usize>(self, place: usize) -> Result<[u8; N], ParseError> {
        let slice = place.checked_add(N).and_then(|end| self.0.get(place..end));
        slice
            .map(|slice| slice.try_into().expect("N bytes were taken"))
            .ok_or_else(|| ParseError::new(format!("byte {place}"), "the model is truncated or damaged"))
    }

    fn u16(self, place: usize) -> Result<usize, ParseError> {
        Ok(u16::from_le_bytes(self.take(place)?).into())
    }

    fn u32(self, place: usize) -> Result<usize, ParseError> {
        Ok(u32::from_le_bytes(self.take(place)?) as usize)
    }

    /// Where an offset leads that lies at `place`.
    fn follow(self, place: usize) -> Result<usize, ParseError> {
        place
            .checked_add(self.u32(place)?)
            .filter(|target| *target < self.0.len())
            .ok_or_else(|| ParseError::new(format!("byte {place}"), "an offset leads out of the file"))
    }

    /// The table that the file begins with.
    pub fn root(self) -> Result<Table<'a>, ParseError> {
        Table::at(self, self.follow(0)?)
    }
}

/// One table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Table<'a> {
    bytes: Bytes<'a>,
    place: usize,
    /// Where its list of fields lies, and how many bytes that has.
    fields: usize,
    length: usize,
}

impl<'a> Table<'a> {
    fn at(bytes: Bytes<'a>, place: usize) -> Result<Self, ParseError> {
        let back = i32::from_le_bytes(bytes.take(place)?);
        let fields = i64::try_from(place).ok().map(|place| place - i64::from(back));
        let fields = fields.and_then(|fields| usize::try_from(fields).ok()).ok_or_else(|| {
            ParseError::new(format!("byte {place}"), "a table's fields lie outside the file")
        })?;
        let length = bytes.u16(fields)?;
        Ok(Self { bytes, place, fields, length })
    }

    /// Where a field lies; nothing where it has its default.
    fn field(&self, index: usize) -> Result<Option<usize>, ParseError> {
        let entry = 4 + 2 * index;
        if entry + 2 > self.length {
            return Ok(None);
        }
        Ok(match self.bytes.u16(self.fields + entry)? {
            0 => None,
            offset => Some(self.place + offset),
        })
    }

    pub fn i8(&self, index: usize, default: i8) -> Result<i8, ParseError> {
        Ok(match self.field(index)? {
            Some(place) => i8::from_le_bytes(self.bytes.take(place)?),
            None => default,
        })
    }

    pub fn i32(&self, index: usize, default: i32) -> Result<i32, ParseError> {
        Ok(match self.field(index)? {
            Some(place) => i32::from_le_bytes(self.bytes.take(place)?),
            None => default,
        })
    }

    pub fn u64(&self, index: usize, default: u64) -> Result<u64, ParseError> {
        Ok(match self.field(index)? {
            Some(place) => u64::from_le_bytes(self.bytes.take(place)?),
            None => default,
        })
    }

    pub fn table(&self, index: usize) -> Result<Option<Table<'a>>, ParseError> {
        let place = self.field(index)?;
        place.map(|place| Table::at(self.bytes, self.bytes.follow(place)?)).transpose()
    }

    /// Where a vector begins and how many elements of `width` bytes it has, all inside the file.
    fn vector(&self, index: usize, width: usize) -> Result<Option<(usize, usize)>, ParseError> {
        let Some(place) = self.field(index)? else { return Ok(None) };
        let start = self.bytes.follow(place)?;
        let count = self.bytes.u32(start)?;
        let end = count.checked_mul(width).and_then(|bytes| bytes.checked_add(start + 4));
        if end.is_none_or(|end| end > self.bytes.0.len()) {
            let problem = format!("a list of {count} elements runs past the end");
            return Err(ParseError::new(format!("byte {start}"), problem));
        }
        Ok(Some((start + 4, count)))
    }

    pub fn bytes(&self, index: usize) -> Result<&'a [u8], ParseError> {
        Ok(self.vector(index, 1)?.map_or(&[][..], |(start, count)| &self.bytes.0[start..start + count]))
    }

    pub fn text(&self, index: usize) -> Result<&'a str, ParseError> {
        Ok(std::str::from_utf8(self.bytes(index)?).unwrap_or("?"))
    }

    pub fn i32s(&self, index: usize) -> Result<Vec<i32>, ParseError> {
        let Some((start, count)) = self.vector(index, 4)? else { return Ok(Vec::new()) };
        (0..count).map(|i| Ok(i32::from_le_bytes(self.bytes.take(start + 4 * i)?))).collect()
    }

    pub fn tables(&self, index: usize) -> Result<Vec<Table<'a>>, ParseError> {
        let Some((start, count)) = self.vector(index, 4)? else { return Ok(Vec::new()) };
        (0..count).map(|i| Table::at(self.bytes, self.bytes.follow(start + 4 * i)?)).collect()
    }
}
