// Package logtext makes text from clients and errors safe to write to a log.
package logtext

import (
	"strconv"
	"strings"
	"unicode"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/hint"
)

// maxPrinted limits the bytes of a text.
const maxPrinted = 4 << 10

// Printable returns s, cut to 4 KiB, with every character escaped that is neither visible nor
// a space, so that a client cannot write lines or control sequences to the log.
func Printable(s string) string {
	if len(s) > maxPrinted {
		s = s[:maxPrinted]
	}
	if strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }) < 0 {
		return s
	}
	quoted := strconv.Quote(s)
	return quoted[1 : len(quoted)-1]
}

// Advice returns the text of err and the next step on one line.
func Advice(err error) string {
	text := strings.ReplaceAll(err.Error(), "\n", "; ")
	if next := hint.Next(err); next != "" {
		text += "; " + next
	}
	return Printable(text)
}
