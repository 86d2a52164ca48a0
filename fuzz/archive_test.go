package fuzz

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// An archive is a sequence of files, each a line "-- NAME SIZE --" and SIZE bytes. It ends
// at the first line of another form.

const (
	maxArchiveFiles = 24
	maxArchiveBytes = 1 << 20
)

func archiveOf(files map[string][]byte) []byte {
	var b bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(&b, "-- %s %d --\n", name, len(files[name]))
		b.Write(files[name])
	}
	return b.Bytes()
}

// filesOf reads an archive. A file whose size exceeds the rest of the archive has the rest,
// so that a fuzzer can truncate and extend files.
func filesOf(archive []byte) map[string][]byte {
	files := map[string][]byte{}
	for len(files) < maxArchiveFiles {
		line, rest, ok := bytes.Cut(archive, []byte("\n"))
		if !ok || len(line) > 64 {
			return files
		}
		text, ok := strings.CutPrefix(string(line), "-- ")
		text, ok2 := strings.CutSuffix(text, " --")
		name, digits, ok3 := strings.Cut(text, " ")
		n, err := strconv.ParseUint(digits, 10, 31)
		if !ok || !ok2 || !ok3 || err != nil || !isBaseName(name) {
			return files
		}
		size := min(len(rest), int(n))
		files[name] = bytes.Clone(rest[:size])
		archive = rest[size:]
	}
	return files
}

func isBaseName(name string) bool {
	return name != "" && name != "." && name != ".." && name != "LOCK" && !strings.ContainsAny(name, "/\\\x00")
}
