package lint

import (
	"bytes"
	"encoding/hex"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const formatPage = "docs/format.md"

var (
	exampleStart = regexp.MustCompile("^```(hex|golden) (\\S+)$")
	// hexLine is an offset, bytes in pairs of digits and, after two spaces, their
	// meaning.
	hexLine = regexp.MustCompile(`^([0-9a-f]{4}) ((?: [0-9a-f]{2})+)(?:  .*)?$`)
	// goldenLine is a name, then digits as the last word.
	goldenLine = regexp.MustCompile(`^(.+?) +([0-9A-F]+)$`)
)

// TestFormatExamples compares each worked example of docs/format.md with the
// golden file that it names. A block "hex FILE" shows parts of a file by
// their offsets; a block "golden FILE" shows lines "name: digits" of a list.
func TestFormatExamples(t *testing.T) {
	text := readRepositoryFile(t, formatPage)
	kind, name, n := "", "", 0
	var file []byte
	for i, line := range strings.Split(string(text), "\n") {
		if m := exampleStart.FindStringSubmatch(line); m != nil {
			kind, name = m[1], m[2]
			file = readRepositoryFile(t, name)
			continue
		}
		if strings.HasPrefix(line, "```") {
			kind = ""
		}
		what := ""
		switch kind {
		case "hex":
			what = checkHexLine(line, file)
		case "golden":
			what = checkGoldenLine(line, string(file))
		default:
			continue
		}
		n++
		if what != "" {
			t.Errorf("%s:%d: %q: %s: print the bytes of %s", formatPage, i+1, line, what, name)
		}
	}
	if n == 0 {
		t.Errorf("%s shows no bytes: give each format a worked example", formatPage)
	}
}

// TestFormatExampleChecks shows that the checks can fail.
func TestFormatExampleChecks(t *testing.T) {
	file := []byte("abcdef")
	for _, c := range []struct {
		line string
		ok   bool
	}{
		{"0001  62 63 64  letters", true},
		{"0005  66", true},
		{"0001  62 63 65  letters", false},
		{"0005  66 67", false},
		{"1000  66", false},
		{"no bytes", false},
	} {
		if got := checkHexLine(c.line, file); (got == "") != c.ok {
			t.Errorf("%q: got %q, want it accepted: %t", c.line, got, c.ok)
		}
	}
	if checkGoldenLine("a name  0A0B", "x: 01\na name: 0A0B\n") != "" {
		t.Error("a line of the file was refused")
	}
	if checkGoldenLine("a name  0A", "x: 01\na name: 0A0B\n") == "" || checkGoldenLine("x", "x: 01\n") == "" {
		t.Error("other digits than the file's were accepted")
	}
}

func checkHexLine(line string, file []byte) (what string) {
	m := hexLine.FindStringSubmatch(line)
	if m == nil {
		return "not an offset, pairs of digits, and two spaces before what they mean"
	}
	off, _ := strconv.ParseUint(m[1], 16, 64)
	want, _ := hex.DecodeString(strings.ReplaceAll(m[2], " ", ""))
	if off+uint64(len(want)) > uint64(len(file)) {
		return "behind the end of the file"
	}
	if got := file[off:][:len(want)]; !bytes.Equal(got, want) {
		return "the file has " + hex.EncodeToString(got)
	}
	return ""
}

func checkGoldenLine(line, file string) (what string) {
	m := goldenLine.FindStringSubmatch(line)
	if m == nil {
		return "not a name and digits"
	}
	if !strings.Contains("\n"+file, "\n"+m[1]+": "+m[2]+"\n") {
		return "the file has no such line"
	}
	return ""
}

func readRepositoryFile(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return text
}
