package explorer

import (
	"html"
	"io/fs"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// The page of keys has each shortcut of the other pages.
func TestKeysPage(t *testing.T) {
	read := func(name string) string {
		text, err := embedded.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	listed := regexp.MustCompile(`\s+`).ReplaceAllString(html.UnescapeString(read("assets/pages/keys.html")), "")
	scripts, err := fs.Glob(embedded, "assets/*.js")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, name := range scripts {
		for _, call := range regexp.MustCompile(`onKey\("([^"]+)"`).FindAllStringSubmatch(read(name), -1) {
			found++
			key := call[1]
			if key == "Y" {
				key = "Shift Y"
			}
			if keys := "<kbd>" + strings.ReplaceAll(key, " ", "</kbd><kbd>") + "</kbd>"; !strings.Contains(listed, keys) {
				t.Errorf("%s: the key %q is not listed", name, call[1])
			}
		}
	}
	if found < 10 {
		t.Errorf("%d keys in %v", found, scripts)
	}
}

// Every start of a server loads the pages, and what that allocates stays in the memory of an
// idle server.
func TestLoadPagesMemory(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	p, err := loadPages("1")
	if err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 6<<20 {
		t.Errorf("%d assets took %d bytes", len(p.assets), n)
	}
}
