package hint

import "strings"

const (
	bytesPerEdit   = 3 // a name may differ in one edit for each of these bytes,
	maxEdits       = 2 // and in no more than these
	maxSuggestions = 3
)

// Near suggests those of names that start with typed or differ from it in few edits,
// ignoring case. It returns "" if there are none.
func Near(typed string, names []string) string {
	folded := strings.ToLower(typed)
	limit := min(maxEdits, len(strings.TrimLeft(folded, "-"))/bytesPerEdit)
	var near []string
	for _, name := range names {
		n := strings.ToLower(name)
		if strings.HasPrefix(n, folded) || edits(folded, n) <= limit {
			near = append(near, name)
		}
	}
	return DidYouMean(near)
}

// DidYouMean asks whether the user meant one of the first few names. It returns "" if
// there are none.
func DidYouMean(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return ", did you mean " + strings.Join(names[:min(maxSuggestions, len(names))], " or ")
}

// edits returns the Damerau-Levenshtein distance of a and b: the least number of bytes to
// insert, delete, change or swap with the next one.
func edits(a, b string) int {
	// Row i of the table has the distances of a[:i] and the prefixes of b.
	row, before, first := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		row, before, first = first, row, before
		row[0] = i + 1
		for j := range len(b) {
			n := before[j]
			if a[i] != b[j] {
				n++
			}
			n = min(n, row[j]+1, before[j+1]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				n = min(n, first[j-1]+1)
			}
			row[j+1] = n
		}
	}
	return row[len(b)]
}
