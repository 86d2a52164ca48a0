package jsontext

import (
	"strings"
	"testing"
)

func TestValid(t *testing.T) {
	for text, want := range map[string]bool{
		``: true, `\`: true, `"\ud83d\ude00"`: true, `"\\ud83d"`: true, `"\u00e4,\ufffd"`: true, `"\"\ud83d"`: false, `"\ude00"`: false,
		`"\ud83d`: false, `"\ud83d\u0041"`: false, "\"\xff\"": false,
		"[" + strings.Repeat("{},", maxValues-1) + "{}]": true,
		"[" + strings.Repeat("{},", maxValues) + "{}]":   false,
		`"` + strings.Repeat(`,\"`, maxValues) + `"`:     true,
	} {
		if got := Valid([]byte(text)); got != want {
			t.Errorf("Valid of %.20q, %d bytes, is %v, want %v", text, len(text), got, want)
		}
	}
}
