//! The footer of a Parquet file, and the smaller one that is kept in its place.

use std::ops::Range;

use bytes::Bytes;
use parquet::DecodeResult;
use parquet::arrow::ARROW_SCHEMA_META_KEY;
use parquet::file::metadata::{
    ColumnChunkMask, FileMetaData, PageIndexPolicy, ParquetMetaData, ParquetMetaDataBuilder,
    ParquetMetaDataOptions, ParquetMetaDataPushDecoder, ParquetMetaDataWriter,
    ParquetStatisticsPolicy, RowGroupMetaData,
};

use crate::error::{Error, Result};
use crate::source::Source;

/// Read at once from the end of a file, in the hope that it holds the footer.
const TAIL_BYTES: u64 = 64 * 1024;
/// Ends a file whose footer is encrypted, where `PAR1` ends others.
const ENCRYPTED_FOOTER_MAGIC: &[u8] = b"PARE";

/// What a footer says, and the end of the file that was read with it.
pub struct Footer {
    pub metadata: ParquetMetaData,
    tail: (Range<u64>, Bytes),
}

impl Footer {
    /// Reads the footer: row groups, column chunks and schema, without any page index.
    ///
    /// Statistics of the column chunks are left out unless `statistics`.
    pub fn read(source: &mut Source, statistics: bool) -> Result<Self> {
        let size = source.size();
        let mut decoder = ParquetMetaDataPushDecoder::try_new(size)?
            .with_page_index_policy(PageIndexPolicy::Skip)
            .with_metadata_options(Some(metadata_options(statistics).into()));
        let tail_range = size.saturating_sub(TAIL_BYTES)..size;
        let tail = fetch_one(source, tail_range.clone())?;
        if tail.ends_with(ENCRYPTED_FOOTER_MAGIC) {
            return Err(Error::Malformed(
                "the footer is encrypted: encrypted Parquet files cannot be read".into(),
            ));
        }
        decoder.push_range(tail_range.clone(), tail.clone())?;
        let metadata = decode(&mut decoder, source)?;
        check_row_counts(&metadata)?;
        Ok(Self {
            metadata,
            tail: (tail_range, tail),
        })
    }

    /// Adds the offset index, where the file has one, of the chunks in `offset_index`, and the
    /// column index of those in `column_index`.
    pub fn with_page_index(
        self,
        source: &mut Source,
        offset_index: ColumnChunkMask,
        column_index: ColumnChunkMask,
    ) -> Result<ParquetMetaData> {
        let mut decoder =
            ParquetMetaDataPushDecoder::try_new_with_metadata(source.size(), self.metadata)?
                .with_page_index_policy(PageIndexPolicy::Optional)
                .with_offset_index_mask(offset_index)
                .with_column_index_mask(column_index);
        decoder.push_range(self.tail.0, self.tail.1)?;
        decode(&mut decoder, source)
    }
}

/// The metadata of the file behind `source` with all its offset indexes, without the key-value
/// metadata and the bloom filters, as bytes that `Footer::read` reads again.
///
/// Of the key-value metadata only the Arrow schema stays, since it decides the types of the
/// columns. `column_index` keeps the column index and the statistics of the chunks.
pub fn stripped_footer(source: &mut Source, column_index: bool) -> Result<Vec<u8>> {
    let footer = Footer::read(source, column_index)?;
    let column_mask = if column_index {
        ColumnChunkMask::all()
    } else {
        ColumnChunkMask::none()
    };
    let metadata = footer.with_page_index(source, ColumnChunkMask::all(), column_mask)?;
    let stripped = strip(metadata)?;
    let mut bytes = Vec::new();
    ParquetMetaDataWriter::new(&mut bytes, &stripped)
        .with_preserve_page_index_locations(false)
        .finish()?;
    Ok(bytes)
}

/// Rows in the file.
pub fn row_count(metadata: &ParquetMetaData) -> i64 {
    metadata.file_metadata().num_rows()
}

fn metadata_options(statistics: bool) -> ParquetMetaDataOptions {
    let options = ParquetMetaDataOptions::new()
        .with_encoding_stats_policy(ParquetStatisticsPolicy::SkipAll)
        .with_size_stats_policy(ParquetStatisticsPolicy::SkipAll);
    if statistics {
        options
    } else {
        options.with_column_stats_policy(ParquetStatisticsPolicy::SkipAll)
    }
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
                return Err(Error::Malformed("the footer holds no metadata".into()));
            }
        }
    }
}

/// Row positions rest on the row counts of the row groups, so these must be sound.
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
    let mut builder = metadata.into_builder();
    let row_groups = builder
        .take_row_groups()
        .into_iter()
        .map(without_bloom_filters)
        .collect::<Result<Vec<_>>>()?;
    Ok(ParquetMetaDataBuilder::new(stripped)
        .set_row_groups(row_groups)
        .set_page_index(builder.take_page_index())
        .build())
}

fn without_bloom_filters(row_group: RowGroupMetaData) -> Result<RowGroupMetaData> {
    let mut builder = row_group.into_builder();
    let columns = builder
        .take_columns()
        .into_iter()
        .map(|column| {
            column
                .into_builder()
                .set_bloom_filter_offset(None)
                .set_bloom_filter_length(None)
                .build()
        })
        .collect::<std::result::Result<Vec<_>, _>>()?;
    Ok(builder.set_column_metadata(columns).build()?)
}
