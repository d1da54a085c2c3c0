//! Decodes the rows of one request.

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::SchemaRef;
use bytes::Bytes;
use parquet::DecodeResult;

use crate::error::{Error, Result};
use crate::metadata::Footer;
use crate::plan::{Request, RowPlan, pages_to_read};
use crate::source::Source;

/// Reads that take no more than this are fetched in one round; larger ones hold one row group in
/// memory at a time.
const ONE_ROUND_BYTES: u64 = 32 * 1024 * 1024;

/// Rows in the order of the file, columns in the order asked for.
pub struct Rows {
    pub batches: Vec<RecordBatch>,
    pub schema: SchemaRef,
    /// Data pages decoded; a chunk without offset index counts as one.
    pub pages: u64,
}

/// Reads `rows` from `source`; its own footer is not read where a stripped one is given.
pub fn read_rows(
    source: &mut Source,
    stripped_footer: Option<Bytes>,
    rows: &[i64],
    columns: Option<&[String]>,
) -> Result<Rows> {
    let mut stripped = stripped_footer.map(Source::memory);
    let footer = Footer::read(stripped.as_mut().unwrap_or(source), false)?;
    let request = Request::new(&footer.metadata, rows, columns)?;
    let metadata = if rows.is_empty() {
        footer.metadata
    } else {
        request.load_offset_index(footer, stripped.as_mut().unwrap_or(source))?
    };
    let (mut decoder, schema) = request.decoder(metadata)?;
    let (pages, bytes) = pages_to_read(&decoder);
    if bytes <= ONE_ROUND_BYTES {
        let ranges: Vec<_> = decoder.scan_plan().map(|planned| planned.range).collect();
        source.read_ahead(&ranges)?;
    }
    let positions = request.positions();
    let mut batches = Vec::new();
    let mut decoded_rows = 0;
    loop {
        match decoder.try_decode()? {
            DecodeResult::NeedsData(ranges) => {
                let fetched = source.fetch(&ranges)?;
                decoder.push_ranges(ranges, fetched)?;
            }
            DecodeResult::Data(batch) => {
                decoded_rows += batch.num_rows();
                batches.push(arrange(&batch, &positions, &schema)?);
            }
            DecodeResult::Finished => break,
        }
    }
    if decoded_rows != rows.len() {
        return Err(Error::Malformed(format!(
            "the pages hold {decoded_rows} of the {} rows asked for",
            rows.len()
        )));
    }
    Ok(Rows {
        batches,
        schema,
        pages,
    })
}

/// What reading `rows` would take, from a stripped footer alone.
pub fn plan_rows(
    stripped_footer: Bytes,
    rows: &[i64],
    columns: Option<&[String]>,
) -> Result<RowPlan> {
    let mut stripped = Source::memory(stripped_footer);
    let footer = Footer::read(&mut stripped, false)?;
    let request = Request::new(&footer.metadata, rows, columns)?;
    let metadata = request.load_offset_index(footer, &mut stripped)?;
    request.plan(metadata)
}

fn arrange(batch: &RecordBatch, positions: &[usize], schema: &SchemaRef) -> Result<RecordBatch> {
    let columns = positions
        .iter()
        .map(|&position| batch.columns().get(position).cloned())
        .collect::<Option<Vec<_>>>()
        .ok_or_else(|| Error::Malformed("a column of the file holds no values".into()))?;
    // The row count is named for the case of no columns.
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(
        schema.clone(),
        columns,
        &options,
    )?)
}
