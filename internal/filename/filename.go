// Package filename makes and parses the names of the files in the directory of a
// database.
package filename

import (
	"fmt"
	"strconv"
	"strings"
)

// Names that occur once in a directory.
const (
	Lock         = "LOCK"
	Manifest     = "MANIFEST"
	ManifestTemp = "MANIFEST.tmp" // the next MANIFEST, before its rename
)

// Kind is a kind of file of which a directory holds many, each with a number. Its
// value is the extension of the name.
type Kind string

const (
	WAL     Kind = ".wal"     // a segment of the write-ahead log
	SSTable Kind = ".sst"     // a sorted table of entries
	Reserve Kind = ".reserve" // disk space for a full disk
	Load    Kind = ".load"    // a directory: the files of an install that wait for the archive
)

// Numbers have at least minDigits digits, without further leading zeros. maxDigits
// fits wal.MaxNumber.
const minDigits, maxDigits = 6, 18

// Make returns the name of a numbered file, such as 000012.wal.
func Make(kind Kind, number uint64) string {
	return fmt.Sprintf("%0*d%s", minDigits, number, string(kind))
}

// Parse returns the kind and number of a name that Make returned for a number from
// 1 to wal.MaxNumber. For any other name the kind is empty.
func Parse(name string) (kind Kind, number uint64) {
	for _, k := range [...]Kind{WAL, SSTable, Reserve, Load} {
		digits, ok := strings.CutSuffix(name, string(k))
		if !ok {
			continue
		}
		if len(digits) < minDigits || len(digits) > maxDigits || len(digits) > minDigits && digits[0] == '0' {
			return "", 0
		}
		if strings.Trim(digits, "0123456789") != "" { // ParseUint accepts a sign
			return "", 0
		}
		if n, err := strconv.ParseUint(digits, 10, 64); err == nil && n > 0 {
			return k, n
		}
	}
	return "", 0
}
