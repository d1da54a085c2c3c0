//! The footer of a Parquet file, and the stripped footer that is stored in its place.

use std::collections::HashMap;
use std::ops::Range;

use bytes::Bytes;
use parquet::DecodeResult;
use parquet::arrow::ARROW_SCHEMA_META_KEY;
use parquet::basic::ColumnOrder;
use parquet::file::metadata::{
    ColumnChunkMask, ColumnChunkMetaData, FileMetaData, PageIndexPolicy, ParquetMetaData,
    ParquetMetaDataBuilder, ParquetMetaDataOptions, ParquetMetaDataPushDecoder,
    ParquetMetaDataReader, ParquetMetaDataWriter, ParquetStatisticsPolicy, RowGroupMetaData,
};

use parquet::file::page_index::column_index::ColumnIndexMetaData;

use crate::bloom_filter::bloom_filter;
use crate::error::{Error, Result};
use crate::source::Source;

/// Bytes read first, from the end of a file, which usually contain the whole footer.
const TAIL_BYTES: u64 = 64 * 1024;
/// Bytes at the start of a longer footer, which usually contain all before Hudi's Bloom filter.
const HEAD_BYTES: u64 = 32 * 1024;
/// Bytes after the metadata: its length, and the magic.
const END_BYTES: u64 = 8;
/// Ends a file with a plain footer.
const FOOTER_MAGIC: &[u8] = b"PAR1";
/// Ends a file with an encrypted footer.
const ENCRYPTED_FOOTER_MAGIC: &[u8] = b"PARE";

/// The content of a footer, and the end of the file that was read with it.
pub struct Footer {
    pub metadata: ParquetMetaData,
    tail: (Range<u64>, Bytes),
}

impl Footer {
    /// Reads the footer: row groups, column chunks and schema, without any page index.
    pub fn read(source: &mut Source) -> Result<Self> {
        let size = source.size();
        let mut decoder = ParquetMetaDataPushDecoder::try_new(size)?
            .with_page_index_policy(PageIndexPolicy::Skip)
            .with_metadata_options(Some(metadata_options().into()));
        let tail_range = size.saturating_sub(TAIL_BYTES)..size;
        let tail = fetch_one(source, tail_range.clone())?;
        if tail.ends_with(ENCRYPTED_FOOTER_MAGIC) {
            return Err(Error::Malformed(
                "the footer is encrypted: encrypted Parquet files cannot be read".into(),
            ));
        }
        let metadata = match without_bloom_filter(source, &tail_range, &tail)? {
            Some(footer) => ParquetMetaDataReader::decode_metadata_with_options(
                &footer,
                Some(&metadata_options()),
            )?,
            None => {
                decoder.push_range(tail_range.clone(), tail.clone())?;
                decode(&mut decoder, source)?
            }
        };
        check_row_counts(&metadata)?;
        Ok(Self {
            metadata,
            tail: (tail_range, tail),
        })
    }

    /// Adds the offset indexes of the chunks in `wanted`, if the file has them.
    pub fn with_offset_index(
        self,
        source: &mut Source,
        wanted: ColumnChunkMask,
    ) -> Result<ParquetMetaData> {
        let mut decoder =
            ParquetMetaDataPushDecoder::try_new_with_metadata(source.size(), self.metadata)?
                .with_page_index_policy(PageIndexPolicy::Optional)
                .with_offset_index_mask(wanted)
                .with_column_index_mask(ColumnChunkMask::none());
        decoder.push_range(self.tail.0, self.tail.1)?;
        decode(&mut decoder, source)
    }

    /// The values of those of the keys that the key-value metadata has.
    pub fn values(&self, keys: &[String]) -> HashMap<String, String> {
        let pairs = self.metadata.file_metadata().key_value_metadata();
        pairs
            .into_iter()
            .flatten()
            .filter(|pair| keys.contains(&pair.key))
            .map(|pair| (pair.key.clone(), pair.value.clone().unwrap_or_default()))
            .collect()
    }

    /// The metadata with all its offset indexes, but without key-value metadata, statistics and
    /// bloom filters. Of the key-value metadata only the Arrow schema is kept, because it decides
    /// the types of the columns.
    pub fn stripped(self, source: &mut Source) -> Result<ParquetMetaData> {
        strip(self.with_offset_index(source, ColumnChunkMask::all())?)
    }
}

/// The bytes of a local file's footer without Hudi's Bloom filter, which then is not read; None if
/// the footer is in the tail, or if there is no filter to leave out.
fn without_bloom_filter(
    source: &mut Source,
    tail_range: &Range<u64>,
    tail: &[u8],
) -> Result<Option<Vec<u8>>> {
    // Another read of a local file takes less time than copying and parsing the filter.
    let Some(length) = metadata_length(tail).filter(|_| source.local_file().is_some()) else {
        return Ok(None);
    };
    let end = tail_range.end - END_BYTES;
    let Some(start) = end
        .checked_sub(length)
        .filter(|&start| start < tail_range.start)
    else {
        return Ok(None);
    };
    let head = fetch_one(source, start..end.min(start + HEAD_BYTES))?;
    let Some(filter) = bloom_filter(&head).filter(|filter| filter.end <= length) else {
        return Ok(None);
    };
    let mut footer = head[..filter.start as usize].to_vec();
    footer.push(0); // the length of an empty value
    let rest = start + filter.end..end;
    if rest.start >= tail_range.start {
        let skipped = (rest.start - tail_range.start) as usize;
        footer.extend_from_slice(&tail[skipped..tail.len() - END_BYTES as usize]);
    } else {
        footer.extend_from_slice(&fetch_one(source, rest)?);
    }
    Ok(Some(footer))
}

/// The length of the metadata that ends with a plain footer's tail.
fn metadata_length(tail: &[u8]) -> Option<u64> {
    let end = tail.strip_suffix(FOOTER_MAGIC)?;
    let length: [u8; 4] = *end.last_chunk()?;
    Some(u64::from(u32::from_le_bytes(length)))
}

/// The column indexes of a leaf, by row group, read from the file itself in one round; None for a
/// row group without one.
pub fn column_indexes(
    metadata: &ParquetMetaData,
    source: &mut Source,
    leaf: usize,
) -> Result<Vec<Option<ColumnIndexMetaData>>> {
    let chunks = metadata.row_groups().iter().map(|group| group.column(leaf));
    let located: Vec<_> = chunks
        .map(ColumnChunkMetaData::column_index_range)
        .collect();
    let ranges: Vec<_> = located.iter().flatten().cloned().collect();
    let mut fetched = source.fetch(&ranges)?.into_iter();
    let mut found = Vec::with_capacity(located.len());
    for (row_group, range) in located.into_iter().enumerate() {
        let (Some(range), Some(bytes)) = (range.clone(), range.and_then(|_| fetched.next())) else {
            found.push(None);
            continue;
        };
        // The decoder reads all bytes between the requested indexes: request one at a time.
        let mut decoder =
            ParquetMetaDataPushDecoder::try_new_with_metadata(source.size(), metadata.clone())?
                .with_page_index_policy(PageIndexPolicy::Optional)
                .with_offset_index_mask(ColumnChunkMask::none())
                .with_column_index_mask(ColumnChunkMask::row_groups_and_columns(
                    [row_group],
                    [leaf],
                ));
        decoder.push_range(range, bytes)?;
        let indexed = decode(&mut decoder, source)?;
        let index = indexed.page_index_for_row_group(row_group);
        found.push(index.column_index(leaf).cloned());
    }
    Ok(found)
}

/// The metadata of the file behind `source` as `Footer::stripped` leaves it, as bytes that
/// `Footer::read` can read.
///
/// They contain no value of the file: they only state where the column indexes are.
pub fn stripped_footer(source: &mut Source) -> Result<Vec<u8>> {
    let stripped = Footer::read(source)?.stripped(source)?;
    let mut bytes = Vec::new();
    // The column indexes are not written: they stay in the file itself, at the same locations.
    ParquetMetaDataWriter::new(&mut bytes, &stripped)
        .with_preserve_page_index_locations(true)
        .finish()?;
    Ok(bytes)
}

/// The bytes of all columns before compression.
pub fn plain_bytes(metadata: &ParquetMetaData) -> i64 {
    let groups = metadata.row_groups().iter();
    groups.map(|group| group.total_byte_size()).sum()
}

/// Number of rows in the file.
pub fn row_count(metadata: &ParquetMetaData) -> i64 {
    metadata.file_metadata().num_rows()
}

fn metadata_options() -> ParquetMetaDataOptions {
    ParquetMetaDataOptions::new()
        .with_encoding_stats_policy(ParquetStatisticsPolicy::SkipAll)
        .with_size_stats_policy(ParquetStatisticsPolicy::SkipAll)
        .with_column_stats_policy(ParquetStatisticsPolicy::SkipAll)
}

fn fetch_one(source: &mut Source, range: Range<u64>) -> Result<Bytes> {
    let mut fetched = source.fetch(&[range])?;
    Ok(fetched.remove(0))
}

fn decode(
    decoder: &mut ParquetMetaDataPushDecoder,
    source: &mut Source,
) -> Result<ParquetMetaData> {
    loop {
        match decoder.try_decode()? {
            DecodeResult::Data(metadata) => return Ok(metadata),
            DecodeResult::NeedsData(ranges) => {
                let fetched = source.fetch(&ranges)?;
                decoder.push_ranges(ranges, fetched)?;
            }
            DecodeResult::Finished => {
                return Err(Error::Malformed("the footer contains no metadata".into()));
            }
        }
    }
}

/// Row positions depend on the row counts of the row groups, so these must be valid.
fn check_row_counts(metadata: &ParquetMetaData) -> Result<()> {
    let total = metadata
        .row_groups()
        .iter()
        .map(RowGroupMetaData::num_rows)
        .try_fold(0_i64, |total, rows| {
            total.checked_add(rows).filter(|_| rows >= 0)
        });
    if total != Some(row_count(metadata)) {
        return Err(Error::Malformed(format!(
            "the row groups do not add up to the {} rows of the file",
            row_count(metadata)
        )));
    }
    Ok(())
}

fn strip(metadata: ParquetMetaData) -> Result<ParquetMetaData> {
    let file = metadata.file_metadata();
    let arrow_schema = file.key_value_metadata().map(|pairs| {
        let keep = pairs
            .iter()
            .filter(|pair| pair.key == ARROW_SCHEMA_META_KEY);
        keep.cloned().collect::<Vec<_>>()
    });
    let stripped = FileMetaData::new(
        file.version(),
        file.num_rows(),
        file.created_by().map(str::to_owned),
        arrow_schema.filter(|pairs| !pairs.is_empty()),
        file.schema_descr_ptr(),
        file.column_orders().cloned(),
    );
    let ordered: Vec<bool> = (0..file.schema_descr().num_columns())
        .map(|leaf| {
            use ColumnOrder::{IEEE_754_TOTAL_ORDER, TYPE_DEFINED_ORDER};
            matches!(
                file.column_order(leaf),
                TYPE_DEFINED_ORDER(_) | IEEE_754_TOTAL_ORDER
            )
        })
        .collect();
    let mut builder = metadata.into_builder();
    let row_groups = builder
        .take_row_groups()
        .into_iter()
        .map(|row_group| strip_row_group(row_group, &ordered))
        .collect::<Result<Vec<_>>>()?;
    Ok(ParquetMetaDataBuilder::new(stripped)
        .set_row_groups(row_groups)
        .set_page_index(builder.take_page_index())
        .build())
}

/// `ordered` states for each leaf whether its column index is in the order of its type. The crate
/// that writes stripped footers claims this for every leaf.
fn strip_row_group(row_group: RowGroupMetaData, ordered: &[bool]) -> Result<RowGroupMetaData> {
    let mut builder = row_group.into_builder();
    let columns = builder
        .take_columns()
        .into_iter()
        .zip(ordered)
        .map(|(column, &ordered)| {
            let index = (column.column_index_offset(), column.column_index_length());
            let (offset, length) = if ordered { index } else { (None, None) };
            column
                .into_builder()
                .set_bloom_filter_offset(None)
                .set_bloom_filter_length(None)
                .set_column_index_offset(offset)
                .set_column_index_length(length)
                .build()
        })
        .collect::<std::result::Result<Vec<_>, _>>()?;
    Ok(builder.set_column_metadata(columns).build()?)
}
