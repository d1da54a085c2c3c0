//! Lists without a level for their elements, as Parquet's older writers store them.
//!
//! The crate does not read such a list of maps or of lists. A required group around the elements
//! changes neither the columns nor their levels, and makes it a list as the crate expects.

use std::sync::Arc;

use parquet::basic::{ConvertedType, Repetition};
use parquet::file::metadata::{FileMetaData, ParquetMetaData, ParquetMetaDataBuilder};
use parquet::schema::types::{SchemaDescriptor, Type, TypePtr};

use crate::error::Result;

/// The metadata with a level for the elements of each list of maps or lists.
pub fn with_element_levels(metadata: ParquetMetaData) -> Result<ParquetMetaData> {
    let file = metadata.file_metadata();
    let root = file.schema_descr().root_schema_ptr();
    let rewritten = with_levels(&root)?;
    if Arc::ptr_eq(&root, &rewritten) {
        return Ok(metadata);
    }
    let file = FileMetaData::new(
        file.version(),
        file.num_rows(),
        file.created_by().map(str::to_owned),
        file.key_value_metadata().cloned(),
        Arc::new(SchemaDescriptor::new(rewritten)),
        file.column_orders().cloned(),
    );
    let mut builder = metadata.into_builder();
    Ok(ParquetMetaDataBuilder::new(file)
        .set_row_groups(builder.take_row_groups())
        .set_page_index(builder.take_page_index())
        .build())
}

/// The same type, unless it contains such a list.
fn with_levels(of: &TypePtr) -> Result<TypePtr> {
    if of.is_primitive() {
        return Ok(of.clone());
    }
    let is_list = of.get_basic_info().converted_type() == ConvertedType::LIST;
    let mut fields = Vec::with_capacity(of.get_fields().len());
    for field in of.get_fields() {
        let rewritten = with_levels(field)?;
        fields.push(if is_list && is_element(field) {
            let element = group(
                &rewritten,
                Some(Repetition::REQUIRED),
                rewritten.get_fields(),
            )?;
            let level = Type::group_type_builder("list")
                .with_repetition(Repetition::REPEATED)
                .with_fields(vec![element]);
            Arc::new(level.build()?)
        } else {
            rewritten
        });
    }
    let unchanged = fields.iter().zip(of.get_fields());
    if unchanged.clone().all(|(new, old)| Arc::ptr_eq(new, old)) {
        return Ok(of.clone());
    }
    let info = of.get_basic_info();
    let repetition = info.has_repetition().then(|| info.repetition());
    group(of, repetition, &fields)
}

/// Whether the child of a list is an element of it, and itself a map or a list.
fn is_element(child: &Type) -> bool {
    use ConvertedType::{LIST, MAP, MAP_KEY_VALUE};
    let is_repeated = |of: &Type| {
        let info = of.get_basic_info();
        info.has_repetition() && info.repetition() == Repetition::REPEATED
    };
    child.is_group()
        && is_repeated(child)
        && matches!(
            child.get_basic_info().converted_type(),
            LIST | MAP | MAP_KEY_VALUE
        )
        && matches!(child.get_fields(), [only] if is_repeated(only))
}

/// The group with another repetition and other fields.
fn group(of: &Type, repetition: Option<Repetition>, fields: &[TypePtr]) -> Result<TypePtr> {
    let info = of.get_basic_info();
    let mut builder = Type::group_type_builder(of.name())
        .with_converted_type(info.converted_type())
        .with_logical_type(info.logical_type_ref().cloned())
        .with_id(info.has_id().then(|| info.id()))
        .with_fields(fields.to_vec());
    if let Some(repetition) = repetition {
        builder = builder.with_repetition(repetition);
    }
    Ok(Arc::new(builder.build()?))
}
