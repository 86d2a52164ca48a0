package parquetfile

import (
	"testing"

	"github.com/parquet-go/parquet-go/format"
)

// TestNullPages reads pages of version 2 that have only nulls: their values are no bytes, which
// writers do not compress.
func TestNullPages(t *testing.T) {
	const rows = 3
	levels := []byte{rows << 1, 0} // a run of zeros
	for _, codec := range []format.CompressionCodec{format.Uncompressed, format.Snappy, format.Gzip, format.Zstd} {
		c := &chunk{codec: codec, physical: format.ByteArray, optional: true, raw: levels}
		h := &format.DataPageHeaderV2{NumValues: rows, NumNulls: rows, NumRows: rows, DefinitionLevelsByteLength: int32(len(levels))}
		if err := c.dataV2(h, len(levels)); err != nil {
			t.Errorf("%v: %v", codec, err)
			continue
		}
		for range rows {
			if err := c.next(); err != nil || c.present {
				t.Errorf("%v: a value or error %v, want null", codec, err)
			}
		}
	}
}
