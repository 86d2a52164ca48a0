package sharedkey

import (
	"net/http"
	"testing"
	"time"
)

// TestParseDate reads dates, and what becomes of them with each byte exchanged for
// each other, and wants what time.Parse makes of them.
func TestParseDate(t *testing.T) {
	same := func(text string) {
		t.Helper()
		want, wantErr := time.Parse(http.TimeFormat, text)
		got, err := parseDate(text)
		if len(text) != len(http.TimeFormat) {
			wantErr = errDate
		}
		if (err == nil) != (wantErr == nil) || err == nil && got != want {
			t.Errorf("parseDate(%q) = %v, %v, want %v, %v", text, got, err, want, wantErr)
		}
	}
	for _, text := range []string{
		"", "Wed, 04 Mar 2026 12:00:00 GM", "Wed, 04 Mar 2026 12:00:00 GMTx", "Wed, 04 Mar 2026 1:00:00.5 GM",
		"Wed, 29 Feb 2023 00:00:00 GMT", "Thu, 29 Feb 2024 23:59:59 GMT", "Fri, 31 Dec 9999 23:59:59 GMT", "Sat, 01 Jan 0000 00:00:00 GMT",
		"Mon, 29 Feb 1900 00:00:00 GMT", "Tue, 29 Feb 2000 00:00:00 GMT", "Sun, 30 Apr 2023 00:00:00 GMT", "Mon, 31 Apr 2023 00:00:00 GMT",
		"wed, 04 mar 2026 12:00:00 GMT", "Wed, 04 Mar 2026 12:00:00 gmt", "Wed, 04 Mar 2026 24:00:00 GMT", "Wed, 00 Mar 2026 12:00:00 GMT",
	} {
		same(text)
		text := []byte(text)
		for i, was := range text {
			for c := range 256 {
				text[i] = byte(c)
				same(string(text))
			}
			text[i] = was
		}
	}
	for at := time.Date(1999, 12, 1, 1, 2, 3, 0, time.UTC); at.Year() < 2005; at = at.Add(23*time.Hour + 57*time.Minute + 7*time.Second) {
		same(at.Format(http.TimeFormat))
	}
}
