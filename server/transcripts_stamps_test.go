package server_test

import (
	"regexp"
	"strings"
)

// stamps relates the Timestamps in a transcript, which are those of a manual clock, to those of
// a store with another clock.
type stamps struct {
	live    map[string]string // the last Timestamp of the store, by that of the transcript
	written map[string]string // the request of the transcript that wrote it, by that of the store
}

// stamp matches a time, also with escaped colons; contentLength matches the length of a body,
// which can have Timestamps with more or fewer digits, and the token of a page of tables,
// which has one.
var (
	stamp         = regexp.MustCompile(`20\d\d-\d\d-\d\dT\d\d(?::|%3A)\d\d(?::|%3A)\d\d(?:\.\d{1,7})?Z`)
	contentLength = regexp.MustCompile(`Content-Length: [0-9]+|\n[0-9a-f]+\n|Nexttablename: \S+`)
)

func newStamps() *stamps { return &stamps{map[string]string{}, map[string]string{}} }

func unescaped(s string) string { return strings.ReplaceAll(s, "%3A", ":") }

// likeEscaped returns s with its colons escaped if those of other are.
func likeEscaped(s, other string) string {
	if strings.Contains(other, "%3A") {
		return strings.ReplaceAll(s, ":", "%3A")
	}
	return s
}

// request returns a request of the transcript with the Timestamps of the store.
func (s *stamps) request(text string) string {
	return stamp.ReplaceAllStringFunc(text, func(old string) string {
		if live := s.live[unescaped(old)]; live != "" {
			return likeEscaped(live, old)
		}
		return old
	})
}

// otherStamps are the requests whose responses depend on the values of Timestamps.
var otherStamps = []string{"The Timestamp in a filter and a selection"}

// secondsAndMillis is the length of a Timestamp without what tells the operations of a request
// apart.
const secondsAndMillis = len("2021-06-17T16:54:23.002")

// response returns a response with the Timestamps of the transcript, where the response of the
// transcript has them. A Timestamp of the store is always that of one request, in which
// operations may share it.
func (s *stamps) response(got, want string) string {
	expected := stamp.FindAllString(want, -1)
	i := 0
	return stamp.ReplaceAllStringFunc(got, func(old string) string {
		if i == len(expected) {
			return old
		}
		live, written := unescaped(old), unescaped(expected[i])
		i++
		request := (strings.TrimSuffix(written, "Z") + "0000")[:secondsAndMillis]
		if known, ok := s.written[live]; ok && known != request {
			return old
		}
		s.written[live], s.live[written] = request, live
		return likeEscaped(written, old)
	})
}

// withoutLengths returns a response without the lengths of its bodies.
func withoutLengths(text string) string { return contentLength.ReplaceAllString(text, "") }
