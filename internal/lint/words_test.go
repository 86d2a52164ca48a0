package lint

import (
	"bufio"
	"bytes"
	"go/ast"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// standard maps words that names must not contain to the field's term. Names are
// checked word by word: atPlace and place_test.go contain the word place.
var standard = map[string]string{
	"crowd":     "overlap, read amplification",
	"extent":    "value block",
	"fate":      "visibility",
	"grave":     "tombstone",
	"heed":      "honor",
	"house":     "project",
	"moment":    "snapshot, read state",
	"piece":     "chunk",
	"place":     "position, offset, bound",
	"programme": "plan",
	"rank":      "ordinal",
	"reveal":    "publish",
	"room":      "package",
	"settle":    "wait until durable; compact fully",
	"sift":      "probe filters",
	"stranger":  "unknown file",
	"stretch":   "prefix group",
	"tally":     "fingerprint, count",
	"turn":      "partition lock",
	"twin":      "environment variable, equivalent",
	"verb":      "subcommand, method",
	"weight":    "garbage ratio, score",
}

// TestNames compares the words of every declared name, file name and package
// name with the list.
func TestNames(t *testing.T) {
	for _, s := range moduleSources(t) {
		for _, name := range []string{strings.TrimSuffix(path.Base(s.path), ".go"), s.file.Name.Name} {
			if word, term := privateWord(name); word != "" {
				complain(t, s.file.Package, "the word "+word+" in the name "+name, "say "+term)
			}
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				if word, term := privateWord(id.Name); word != "" {
					complain(t, id.Pos(), "the word "+word+" in the name "+id.Name, "say "+term)
				}
			}
			return true
		})
	}
}

// privateWord returns the first word of name that is on the list, in the singular
// or plural, and the standard term for it.
func privateWord(name string) (word, term string) {
	for _, w := range wordsOf(name) {
		for _, form := range []string{w, strings.TrimSuffix(w, "s"), strings.TrimSuffix(w, "d"), strings.TrimSuffix(w, "ed")} {
			if term, ok := standard[form]; ok {
				return w, term
			}
		}
	}
	return "", ""
}

// wordsOf splits a name in camel case or with underscores into its words, in
// lower case.
func wordsOf(name string) []string {
	var words []string
	start := 0
	runes := []rune(name)
	for i := 1; i <= len(runes); i++ {
		if i < len(runes) && unicode.IsLetter(runes[i]) && unicode.IsLetter(runes[i-1]) && !startsWord(runes, i) {
			continue
		}
		if word := strings.ToLower(string(runes[start:i])); word != "" {
			words = append(words, word)
		}
		start = i
	}
	return words
}

// startsWord reports whether a word begins at runes[i], which follows a letter.
func startsWord(runes []rune, i int) bool {
	if !unicode.IsUpper(runes[i]) {
		return false
	}
	return unicode.IsLower(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])
}

func TestWordsOf(t *testing.T) {
	for name, want := range map[string]string{
		"atPlace":         "at place",
		"HTTPTurn2":       "http turn 2",
		"place_test":      "place _ test",
		"replaceFile":     "replace file",
		"catalogTurnLock": "catalog turn lock",
	} {
		if got := strings.Join(wordsOf(name), " "); got != want {
			t.Errorf("wordsOf(%q) = %q, want %q", name, got, want)
		}
	}
	for name, want := range map[string]string{"replaced": "", "turns": "turns", "settled": "settled", "sifted": "sifted", "returns": ""} {
		if got, _ := privateWord(name); got != want {
			t.Errorf("privateWord(%q) = %q, want %q", name, got, want)
		}
	}
}

// maxLineRunes limits the lines of code and pages.
const maxLineRunes = 160

// unbreakable matches long links.
var unbreakable = regexp.MustCompile(`https?://\S{80,}`)

// TestLineLength limits the lines of every Go file, script and page.
func TestLineLength(t *testing.T) {
	for _, name := range committed(t) {
		if !slices.Contains([]string{".go", ".md", ".sh", ".mod", ".yml", ""}, path.Ext(name)) ||
			slices.Contains(strings.Split(name, "/"), "testdata") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if os.IsNotExist(err) {
			continue // deleted, and not committed yet
		}
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(bytes.NewReader(text))
		lines.Buffer(nil, len(text)+1)
		for n := 1; lines.Scan(); n++ {
			if utf8.RuneCount(lines.Bytes()) > maxLineRunes && !unbreakable.Match(lines.Bytes()) {
				t.Errorf("%s:%d: %d characters, at most %d are allowed", name, n, utf8.RuneCount(lines.Bytes()), maxLineRunes)
			}
		}
	}
}
