package odata_test

import (
	"encoding/json"
	"encoding/xml"
	"strings"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/internal/odata"
)

func TestAppendError(t *testing.T) {
	at := time.Date(2021, 10, 19, 0, 0, 9, 811_046_000, time.FixedZone("", 2*60*60))
	const id, lines = "a455c695-df98-5678-aaaa-81d3367e5a34", `\nRequestId:a455c695-df98-5678-aaaa-81d3367e5a34\nTime:2021-10-18T22:00:09.8110460Z`
	for _, c := range []struct{ message, want string }{
		{"The specified resource does not exist.", "The specified resource does not exist."},
		{`0:Syntax error at position 7 in 'a "b" c\d'.`, `0:Syntax error at position 7 in 'a \"b\" c\\d'.`},
		{"\u8868\xff\x01", `\u8868\ufffd\u0001`},
	} {
		got := odata.AppendError([]byte("before "), "ResourceNotFound", c.message, id, at)[len("before "):]
		want := `{"odata.error":{"code":"ResourceNotFound","message":{"lang":"en-US","value":"` + c.want + lines + `"}}}`
		if string(got) != want || !json.Valid(got) {
			t.Errorf("AppendError of %q:\n got %s\nwant %s", c.message, got, want)
		}
	}
}

// TestAppendErrorXML parses documents of messages with characters that XML does not allow.
func TestAppendErrorXML(t *testing.T) {
	for _, c := range []struct{ message, want string }{
		{"a < b & c > d", "a < b & c > d"},
		{"\x01\uFFFE\uFFFF\xff|\t\u00e9\U0001F600", "\uFFFD\uFFFD\uFFFD\uFFFD|\t\u00e9\U0001F600"},
	} {
		for _, prefix := range []string{"", "m:"} {
			text := odata.AppendErrorXML(nil, prefix, "InvalidInput", c.message, "id", time.Now())
			var got struct {
				Code    string `xml:"code"`
				Message string `xml:"message"`
			}
			if err := xml.Unmarshal(text, &got); err != nil {
				t.Errorf("%q: %v in %s", c.message, err, text)
				continue
			}
			if message, _, _ := strings.Cut(got.Message, "\nRequestId:"); got.Code != "InvalidInput" || message != c.want {
				t.Errorf("%q: the document has the message %q, want %q", c.message, message, c.want)
			}
		}
	}
}
