package backup

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/tablerock-db/tablerock/internal/corrupt"
	"github.com/tablerock-db/tablerock/internal/feature"
	"github.com/tablerock-db/tablerock/internal/filename"
)

// A manifest of a backup is one line of text and a JSON object:
//
//	tablerock-backup VERSION SUM
//	{ ... }
//
// SUM is the XXH64, in 16 hexadecimal digits, of the version in decimal digits, a line
// feed, and the object with all its white space. The object is a manifest, indented by
// two spaces, with a final line feed; a manifest has exactly one encoding.
const (
	manifestWord    = "tablerock-backup"
	manifestVersion = 1
)

// Limits of a manifest.
const (
	maxManifestBytes = 256 << 20
	maxFiles         = 1 << 20
)

// manifest lists the files of a backup.
type manifest struct {
	Directory     string    `json:"directory"` // id of the backup directory
	Account       string    `json:"account"`
	Database      string    `json:"database"` // id
	Epoch         uint64    `json:"epoch"`
	Time          time.Time `json:"time"`         // that of the id, UTC
	LastSequence  uint64    `json:"lastSequence"` // the backup has exactly the writes up to it
	LastTimestamp time.Time `json:"lastTimestamp"`
	Tables        []string  `json:"tables"`
	Files         []file    `json:"files"`
}

// file is a file of a database directory and the object that has its bytes.
type file struct {
	Name   string `json:"name"`
	Object string `json:"object"`
	Bytes  int64  `json:"bytes"`
	Hash   string `json:"xxh64"` // 16 hexadecimal digits
}

// databaseID returns the id of the database; check has decoded it.
func (m *manifest) databaseID() (id [16]byte) {
	_, _ = hex.Decode(id[:], []byte(m.Database))
	return id
}

func manifestSum(version uint64, body []byte) uint64 {
	d := xxhash.New()
	fmt.Fprintf(d, "%d\n", version)
	_, _ = d.Write(body)
	return d.Sum64()
}

func encodeManifest(m *manifest) ([]byte, error) {
	body, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return nil, err
	}
	body = append(body, '\n')
	return append(appendHead(nil, manifestVersion, body), body...), nil
}

// appendHead appends the first line of a manifest.
func appendHead(dst []byte, version uint64, body []byte) []byte {
	return fmt.Appendf(dst, "%s %d %016x\n", manifestWord, version, manifestSum(version, body))
}

// decodeManifest decodes the object of that name.
func decodeManifest(name string, src []byte) (*manifest, error) {
	head, body, _ := bytes.Cut(src, []byte("\n"))
	words := strings.Split(string(head), " ")
	if len(words) != 3 || words[0] != manifestWord {
		return nil, corrupt.Newf(name, 0, "not a manifest of a backup")
	}
	version, err := strconv.ParseUint(words[1], 10, 64)
	if err != nil || words[2] != fmt.Sprintf("%016x", manifestSum(version, body)) {
		return nil, corrupt.Newf(name, 0, "the sum is wrong")
	}
	if version != manifestVersion {
		return nil, fmt.Errorf("%s has version %d, this build reads %d: %w", name, version, manifestVersion, feature.ErrNewerFormat)
	}
	m := new(manifest)
	if err := json.Unmarshal(body, m); err != nil {
		return nil, corrupt.Newf(name, int64(len(head)+1), "%v", err)
	}
	if err := m.check(name); err != nil {
		return nil, corrupt.Newf(name, int64(len(head)+1), "%v", err)
	}
	if again, err := encodeManifest(m); err != nil || !bytes.Equal(again, src) {
		return nil, corrupt.Newf(name, int64(len(head)+1), "not in the one encoding of a manifest")
	}
	return m, nil
}

// check verifies the fields of the manifest that is the object of that name.
func (m *manifest) check(name string) error {
	if name != backupName(m.Account, backupID(m.Time)) {
		return fmt.Errorf("it is the manifest of account %q at %v", m.Account, m.Time)
	}
	for _, id := range []string{m.Directory, m.Database} {
		if b, err := hex.DecodeString(id); err != nil || len(b) != 16 {
			return fmt.Errorf("%q is not an id", id)
		}
	}
	if len(m.Files) > maxFiles {
		return fmt.Errorf("%d files, at most %d", len(m.Files), maxFiles)
	}
	seen := make(map[string]bool, len(m.Files))
	for _, f := range m.Files {
		if _, err := strconv.ParseUint(f.Hash, 16, 64); err != nil || len(f.Hash) != 16 {
			return fmt.Errorf("file %q has the hash %q", f.Name, f.Hash)
		}
		kind, _ := filename.Parse(f.Name)
		known := f.Name == filename.Manifest || kind == filename.WAL || kind == filename.SSTable
		inside := strings.HasPrefix(f.Object, m.Account+"/"+filesDir+"/") && CheckName(f.Object) == nil
		if !known || !inside || f.Bytes < 0 || seen[f.Name] {
			return fmt.Errorf("file %q of %d bytes in object %q", f.Name, f.Bytes, f.Object)
		}
		seen[f.Name] = true
	}
	if !seen[filename.Manifest] {
		return fmt.Errorf("it lists no %s", filename.Manifest)
	}
	return nil
}

// objects adds the objects of all files to a set.
func (m *manifest) objects(set map[string]bool) {
	for _, f := range m.Files {
		set[f.Object] = true
	}
}

// bytes returns the size of all files.
func (m *manifest) bytes() (n int64) {
	for _, f := range m.Files {
		n += f.Bytes
	}
	return n
}
