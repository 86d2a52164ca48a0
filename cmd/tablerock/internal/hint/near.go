package hint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

const (
	slipLetters = 3 // for each of them there may be one slip,
	mostSlips   = 2 // and no more than these
	mostNear    = 3 // names that are suggested
)

// Near asks whether some of names were meant by typed, which is none of them: those
// that begin with it, or differ by few slips, whatever their case. It is "" if there
// are none.
func Near(typed string, names []string) string {
	folded := strings.ToLower(typed)
	slips := min(mostSlips, len(strings.TrimLeft(folded, "-"))/slipLetters)
	var near []string
	for _, name := range names {
		n := strings.ToLower(name)
		if len(near) < mostNear && (strings.HasPrefix(n, folded) || edits(folded, n) <= slips) {
			near = append(near, name)
		}
	}
	return ask(near)
}

// Command asks which command was meant by typed, which is none of group: one of that
// name in a group below, or one that is near. It is "" if there is none.
func Command(group *cobra.Command, typed string) string {
	var below []string
	for _, c := range group.Commands() {
		if c.IsAvailableCommand() && slices.Contains(Commands(c), typed) {
			below = append(below, c.Name()+" "+typed)
		}
	}
	if len(below) > 0 {
		return ask(below)
	}
	return Near(typed, Commands(group))
}

// Commands returns the names of the commands of group.
func Commands(group *cobra.Command) []string {
	var names []string
	for _, c := range group.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return names
}

// ask asks whether one of names was meant, if there are any.
func ask(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf(", did you mean %s", strings.Join(names, " or "))
}

// edits returns how many bytes of a have to be put in, left out, changed or swapped
// with the next to make it b.
func edits(a, b string) int {
	// From what of a is done to each beginning of b, and the two rows before that.
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
