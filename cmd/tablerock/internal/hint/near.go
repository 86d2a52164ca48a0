package hint

import (
	"fmt"
	"strings"
)

const (
	nearEdits = 2 // at most, between what was typed and what was meant
	mostNear  = 3 // names that are suggested
)

// Near asks whether some of names were meant by typed, which is none of them: those
// that begin with it, or differ in few characters, whatever their case. It is "" if
// there are none.
func Near(typed string, names []string) string {
	var near []string
	folded := strings.ToLower(typed)
	for _, name := range names {
		n := strings.ToLower(name)
		if len(near) < mostNear && (strings.HasPrefix(n, folded) || edits(folded, n) <= nearEdits) {
			near = append(near, name)
		}
	}
	if len(near) == 0 {
		return ""
	}
	return fmt.Sprintf(", did you mean %s", strings.Join(near, " or "))
}

// edits returns how many bytes of a have to be put in, left out or changed to make
// it b.
func edits(a, b string) int {
	row := make([]int, len(b)+1) // from what of a is done to each beginning of b
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			changed := diagonal
			if a[i] != b[j] {
				changed++
			}
			diagonal = row[j+1]
			row[j+1] = min(changed, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
