package transfer

import (
	"path/filepath"
	"strings"
)

// formatEnds are the ends of file names by format.
var formatEnds = map[string]Format{
	".csv":     CSV,
	".tsv":     CSV,
	".jsonl":   JSONL,
	".ndjson":  JSONL,
	".json":    JSON,
	".parquet": Parquet,
}

// FormatOf returns the format and the compression that the name of a file tells. The format
// is 0 if the name tells none.
func FormatOf(name string) (Format, Compression) {
	c, inner := CompressionOf(name)
	return formatEnds[strings.ToLower(filepath.Ext(inner))], c
}

// DelimiterOf returns the delimiter of CSV that the name of a file tells: a tab for .tsv, and
// otherwise a comma.
func DelimiterOf(name string) byte {
	if _, inner := CompressionOf(name); strings.EqualFold(filepath.Ext(inner), ".tsv") {
		return '\t'
	}
	return ','
}
