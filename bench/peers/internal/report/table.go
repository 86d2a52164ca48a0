package report

import (
	"fmt"
	"io"
	"strings"
)

// tableOf prints the head of a Markdown table and returns a function for its rows.
func tableOf(out io.Writer, columns ...string) func(cells ...string) {
	row := func(cells ...string) { fmt.Fprintf(out, "| %s |\n", strings.Join(cells, " | ")) }
	row(columns...)
	rules := make([]string, len(columns))
	for i := range rules {
		rules[i] = "---"
	}
	row(rules...)
	return row
}

// number formats a figure with three significant digits or all before the point.
func number(x float64) string {
	switch {
	case x >= 9_995_000:
		return fmt.Sprintf("%.1f M", x/1e6)
	case x >= 999_500:
		return fmt.Sprintf("%.2f M", x/1e6)
	case x >= 9_995:
		return fmt.Sprintf("%.0f k", x/1e3)
	case x >= 1000:
		return fmt.Sprintf("%.2f k", x/1e3)
	case x >= 100:
		return fmt.Sprintf("%.0f", x)
	case x >= 10:
		return fmt.Sprintf("%.1f", x)
	case x >= 1:
		return fmt.Sprintf("%.2f", x)
	default:
		return fmt.Sprintf("%.3f", x)
	}
}
