package lint

import (
	"strings"
	"testing"
)

const designPage = "docs/design.md"

// TestDesignMap wants each row of the table of layers in the map of the design's
// page, and each library with its reason.
func TestDesignMap(t *testing.T) {
	text := string(readRepositoryFile(t, designPage))
	for _, l := range layers {
		if !strings.Contains(text, "\n| `"+l.dir+"` | ") {
			t.Errorf("%s: the map has no row of %s: say in one sentence what it is", designPage, l.dir)
		}
	}
	for dir := range packages(t) {
		if ownerOf(dir) != dir && !strings.Contains(text, "\n| `"+dir+"` | ") && !strings.HasPrefix(dir, "cmd/") {
			t.Errorf("%s: the map has no row of the room %s: say in one sentence what it is", designPage, dir)
		}
	}
	for module := range foreign {
		if !strings.Contains(text, "`"+module+"`") && !strings.Contains(text, "`"+module[strings.LastIndex(module, "/")+1:]+"`") {
			t.Errorf("%s: no reason for %s: say why, and where it is used", designPage, module)
		}
	}
}
