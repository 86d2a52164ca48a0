package bench

import (
	"os"
	"strconv"
	"strings"
)

// written counts what the process has written to files so far: the bytes in calls of
// write, and those of the pages that it made dirty, because some stores write through a
// mapping. Both are 0 on systems without /proc/self/io.
type written struct{ calls, pages int64 }

func currentWritten() written {
	var w written
	data, err := os.ReadFile("/proc/self/io")
	if err != nil {
		return w
	}
	for line := range strings.Lines(string(data)) {
		name, value, _ := strings.Cut(line, ":")
		n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
		switch {
		case err != nil:
		case name == "wchar":
			w.calls = n
		case name == "write_bytes":
			w.pages = n
		}
	}
	return w
}

// since returns the bytes written since an earlier count: the greater of both kinds.
func (w written) since(earlier written) int64 {
	return max(w.calls-earlier.calls, w.pages-earlier.pages)
}
