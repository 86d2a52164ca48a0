package odata_test

import (
	"net/url"
	"strings"
	"testing"
	"unicode"

	"github.com/tablerock-db/tablerock/internal/odata"
)

func TestAppendKeyLink(t *testing.T) {
	for _, c := range []struct{ partition, row, want string }{
		{"a", "1", "Book(PartitionKey='a',RowKey='1')"},
		{"", "", "Book(PartitionKey='',RowKey='')"},
		{"A'aaa_bbbb2\"", "'", "Book(PartitionKey='A''aaa_bbbb2%22',RowKey='''')"},
		{"\u2211 %25", "a+b&c=d;e,f@g:h$", "Book(PartitionKey='%E2%88%91%20%2525',RowKey='a%2Bb%26c%3Dd%3Be%2Cf%40g%3Ah%24')"},
		{"-_.~!*()", "azAZ09", "Book(PartitionKey='-_.~!*()',RowKey='azAZ09')"},
	} {
		if got := string(odata.AppendKeyLink(nil, "Book", c.partition, c.row)); got != c.want {
			t.Errorf("AppendKeyLink of %q and %q: %s, want %s", c.partition, c.row, got, c.want)
		}
		if got := string(odata.AppendKeyLink(nil, "Book", []byte(c.partition), []byte(c.row))); got != c.want {
			t.Errorf("AppendKeyLink of the bytes of %q and %q: %s, want %s", c.partition, c.row, got, c.want)
		}
	}
}

// TestLinkDecodes decodes links like a client.
func TestLinkDecodes(t *testing.T) {
	for r := rune(0); r < 0x3000; r++ {
		key := "a" + string(r) + "b"
		link := string(odata.AppendKeyLink(nil, "T", key, ""))
		for _, c := range link {
			if c > unicode.MaxASCII || c <= ' ' || c == '"' || c == '\\' {
				t.Fatalf("the link of %q has the character %q: %s", key, c, link)
			}
		}
		got, err := url.PathUnescape(link)
		if want := "T(PartitionKey='" + strings.ReplaceAll(key, "'", "''") + "',RowKey='')"; err != nil || got != want {
			t.Fatalf("the link of %q is %s, which decodes to %q, %v, want %q", key, link, got, err, want)
		}
	}
}
