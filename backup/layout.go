package backup

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/tablerock-db/tablerock/internal/corrupt"
	"github.com/tablerock-db/tablerock/internal/feature"
	"github.com/tablerock-db/tablerock/internal/filename"
)

// The objects of a backup directory, and their names:
//
//	TABLEROCK-BACKUP                                    the marker
//	ACCOUNT/files/ORIGIN-NNNNNN-HASH.sst                a sorted file
//	ACCOUNT/files/DATABASE-NNNNNN-HASH.wal              the records of a log segment
//	ACCOUNT/files/DATABASE-HASH.manifest                the MANIFEST of the database
//	ACCOUNT/backups/20261122T151530.1234567Z            the manifest of a backup
//	ACCOUNT/archive/EEEEEEEE/...                        the archive of an epoch
//
// ORIGIN and DATABASE are the id of the database that wrote the file, HASH is the XXH64 of
// all its bytes, and EEEEEEEE the epoch of the database, all in lower hexadecimal digits.
// So a name belongs to one content, also after a restore, which raises the epoch.

// Names that are part of the format.
const (
	markerName = "TABLEROCK-BACKUP"
	filesDir   = "files"
	backupsDir = "backups"
	archiveDir = "archive"
	timeLayout = "20060102T150405.0000000Z"
)

// checkAccount verifies that the name of an account is an element of a name. The objects of another one would be
// among those of an account, or where no method looks for them.
func checkAccount(account string) error {
	if strings.Contains(account, "/") || CheckName(account) != nil {
		return fmt.Errorf("%q is not a name of an account", account)
	}
	return nil
}

// fileName returns the name of the object of a file.
func fileName(account string, id [16]byte, kind filename.Kind, number, hash uint64) string {
	return path.Join(account, filesDir, fmt.Sprintf("%s-%06d-%016x%s", hex.EncodeToString(id[:]), number, hash, string(kind)))
}

// listName returns the name of the object of a MANIFEST.
func listName(account string, database [16]byte, hash uint64) string {
	return path.Join(account, filesDir, fmt.Sprintf("%s-%016x.manifest", hex.EncodeToString(database[:]), hash))
}

// backupName returns the name of the manifest of a backup.
func backupName(account, id string) string { return path.Join(account, backupsDir, id) }

// backupID returns the id of a backup of that time.
func backupID(t time.Time) string { return t.UTC().Format(timeLayout) }

// parseBackupID returns the time of a backup.
func parseBackupID(id string) (time.Time, error) {
	t, err := time.Parse(timeLayout, id)
	if err != nil || backupID(t) != id {
		return time.Time{}, fmt.Errorf("%q is not the id of a backup", id)
	}
	return t, nil
}

// A marker says that a directory holds backups. Integers are little-endian.
//
//	 0  8  magic "TRBACKUP"
//	 8  4  version
//	12  4  zero
//	16 16  id of the backup directory, random
//	32  8  sum = XXH64(bytes 0 to 32)
const (
	markerMagic   = "TRBACKUP"
	markerVersion = 1
	markerLen     = 40
)

func appendMarker(dst []byte, id [16]byte) []byte {
	start := len(dst)
	dst = append(dst, markerMagic...)
	dst = binary.LittleEndian.AppendUint32(dst, markerVersion)
	dst = binary.LittleEndian.AppendUint32(dst, 0)
	dst = append(dst, id[:]...)
	return appendSum(dst, start)
}

// appendSum appends the XXH64 of dst from start on.
func appendSum(dst []byte, start int) []byte {
	return binary.LittleEndian.AppendUint64(dst, xxhash.Sum64(dst[start:]))
}

func decodeMarker(src []byte) (id [16]byte, err error) {
	if len(src) != markerLen || string(src[:8]) != markerMagic {
		return id, corrupt.Newf(markerName, 0, "not a marker of a backup directory")
	}
	if got, want := binary.LittleEndian.Uint64(src[32:]), xxhash.Sum64(src[:32]); got != want {
		return id, corrupt.Newf(markerName, 32, "sum is %x, want %x", got, want)
	}
	if v := binary.LittleEndian.Uint32(src[8:]); v != markerVersion {
		return id, fmt.Errorf("%s has version %d, this build reads %d: %w", markerName, v, markerVersion, feature.ErrNewerFormat)
	}
	if binary.LittleEndian.Uint32(src[12:]) != 0 {
		return id, corrupt.Newf(markerName, 12, "reserved bytes are not zero")
	}
	return [16]byte(src[16:]), nil
}
