package request

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
)

func TestTop(t *testing.T) {
	const limit = 1000
	for _, c := range []struct {
		text  string
		want  int
		given bool
		err   error
	}{
		{"", limit, false, nil},
		{"0", 0, true, nil},
		{"1000", 1000, true, nil},
		{"1001", 0, true, ErrQuery},
		{"-1", 0, true, ErrQuery},
		{"+1", 0, true, ErrQuery},
		{" 1", 0, true, ErrQuery},
		{"ten", 0, true, ErrQuery},
		{"99999999999999999999", 0, true, ErrQuery},
	} {
		got, given, err := Top(url.Values{"$top": {c.text}}, limit)
		if got != c.want || given != c.given || !errors.Is(err, c.err) {
			t.Errorf("Top(%q) = %d, %v, %v, want %d, %v, %v", c.text, got, given, err, c.want, c.given, c.err)
		}
	}
}

func TestSelection(t *testing.T) {
	for _, c := range []struct {
		text, suffix string
		names        []string
	}{
		{"", "&$select=", nil},
		{" ", "&$select=", nil},
		{"Name", "&$select=Name", []string{"Name"}},
		{" a, b ,,a", "&$select=a,%20b%20,,a", []string{"a", "b"}},
		{"a,*,b", "&$select=a,*,b", nil},
		{"*", "&$select=*", nil},
		{",", "&$select=,", nil},
		{"a,odata.etag,b@odata.type", "&$select=a,odata.etag,b@odata.type", []string{"a"}},
	} {
		suffix, names, err := Selection(url.Values{"$select": {c.text}})
		if err != nil || suffix != c.suffix || !slices.Equal(names, c.names) {
			t.Errorf("Selection(%q) = %q, %q, %v, want %q, %q", c.text, suffix, names, err, c.suffix, c.names)
		}
	}
	for _, n := range []int{maxSelected, maxSelected + 1} {
		var text strings.Builder
		for i := range n {
			fmt.Fprintf(&text, "p%d,p0,", i)
		}
		_, names, err := Selection(url.Values{"$select": {text.String()}})
		if tooMany := n > maxSelected; errors.Is(err, ErrQuery) != tooMany || !tooMany && len(names) != n {
			t.Errorf("Selection of %d names: %d names, %v", n, len(names), err)
		}
	}
	if _, names, _ := Selection(url.Values{"$select": {"odata.etag"}}); names == nil {
		t.Error("an annotation selects all properties")
	}
	if suffix, names, _ := Selection(url.Values{"$filter": {"a"}}); suffix != "" || names != nil {
		t.Errorf("without $select: %q, %q", suffix, names)
	}
}

func TestCheckOptions(t *testing.T) {
	for _, c := range []struct {
		query string
		err   error
	}{
		{"", nil},
		{"$filter=a&$select=b&$top=1&$format=c&NextRowKey=d&skip=1&skip=2", nil},
		{"$skip=1", ErrOption},
		{"%24orderby=a", ErrOption},
		{"$Top=1", ErrOption},
		{"$top=1&$top=1", ErrQuery},
		{"$top=1&$top=1&$skip=1", ErrOption},
	} {
		query, err := ParseQuery(c.query)
		if err != nil {
			t.Fatal(err)
		}
		for range 20 { // in several orders of the map
			if err := CheckOptions(query); !errors.Is(err, c.err) {
				t.Errorf("CheckOptions(%q) = %v, want %v", c.query, err, c.err)
			}
		}
	}
}
