//! The footer of a file itself, kept beside its pages for later reads.

use std::collections::HashMap;
use std::sync::Arc;

use crate::cache::{Admission, Kept, Key, PageCache};
use crate::error::Result;
use crate::file::ParquetFile;
use crate::metadata::Footer;
use crate::source::Source;

/// What the footer of a file says.
pub struct OwnFooter {
    pub file: ParquetFile,
    /// Of the key-value metadata, the values of the keys that were asked for.
    pub values: HashMap<String, String>,
    keys: Vec<String>,
}

impl OwnFooter {
    /// The footer of a file, with the values of some keys of its key-value metadata. That of a local
    /// file is kept, and taken from `cache` while the file is as it was.
    ///
    /// # Errors
    /// `Error::Io`; `Error::Malformed` if the footer is damaged or encrypted.
    pub fn read(
        source: &mut Source,
        keys: &[String],
        cache: Option<&PageCache>,
    ) -> Result<Arc<Self>> {
        // No page starts at the end of the file.
        let offset = source.size();
        let state = source.local_file().and_then(|file| file.settled_state());
        let place = state.map(|&file| Key { file, offset });
        let place = place.zip(cache.and_then(PageCache::here));
        if let Some((key, cache)) = &place
            && let Some(Kept::Footer(kept)) = cache.get(key)
            && kept.keys == keys
        {
            return Ok(kept);
        }
        let footer = Footer::read(source)?;
        let values = footer.values(keys);
        let read = Arc::new(Self {
            file: ParquetFile::new(footer.stripped(source)?)?,
            values,
            keys: keys.to_vec(),
        });
        if let Some((key, cache)) = place {
            cache.offer(key, Kept::Footer(read.clone()), Admission::SecondUse);
        }
        Ok(read)
    }

    /// Bytes of memory.
    pub fn weight(&self) -> usize {
        size_of::<Self>() + self.file.metadata().memory_size()
    }
}
