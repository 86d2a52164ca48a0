package textfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

const truncated = "the JSON text ends before its end: the file is truncated; copy it again"

// itemsOf returns the lines and the text of each item of an array, or its error.
func itemsOf(t *testing.T, r io.Reader) (got []string) {
	t.Helper()
	s := NewJSON(NewReader(r)).Items(true)
	for range 1000 {
		text, first, last, err := s.Next()
		switch bad := (*Error)(nil); {
		case err == io.EOF:
			return got
		case errors.As(err, &bad) && !bad.Final:
			got = append(got, fmt.Sprintf("%d: %v", first, err))
		case err != nil:
			return append(got, "fatal: "+err.Error())
		default:
			got = append(got, fmt.Sprintf("%d-%d %s", first, last, text))
		}
	}
	t.Fatal("the items have no end")
	return nil
}

func TestItems(t *testing.T) {
	const a, b = `{"T":"],}\"{["}`, `[1, [] ]`
	for _, c := range []struct {
		name, in string
		want     []string
	}{
		{"nothing", " \n", []string{"fatal: " + truncated}},
		{"no array", "{}", []string{"fatal: line 1: JSON syntax: '{' where [ is expected"}},
		{"empty", " [\n ]\n", nil},
		{"two", "[" + a + "," + b + "]", []string{"1-1 " + a, "1-1 " + b}},
		{"literals", "[null,-1.5e3 ,true\n]", []string{"1-1 null", "1-1 -1.5e3", "1-1 true"}},
		{"with lines", "\n[\n" + a + "\n,\n  {\n\"x\":\n1}\n]\n", []string{"3-3 " + a, "5-7 {\n\"x\":\n1}"}},
		{"truncated", "[1,{\"Part", []string{"1-1 1", "fatal: " + truncated}},
		{"not closed", "[" + b, []string{"1-1 " + b, "fatal: " + truncated}},
		{"no comma", "[{}{}]", []string{"1-1 {}", "fatal: line 1: JSON syntax: '{' where a comma or the end of the array is expected"}},
		{"a comma at the end", "[{},]", []string{"1-1 {}", "fatal: line 1: JSON syntax: ']' where an entity is expected"}},
		{"text after it", "[]\n[]", []string{"fatal: line 2: JSON syntax: '[' where the end of the file, after the array, is expected"}},
		{
			"a long item", "[1,\n\"" + strings.Repeat("x", MaxRecordBytes) + "\n\",\n2]",
			[]string{"1-1 1", "2: the record is longer than 16777216 bytes", "4-4 2"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if d := cmp.Diff(c.want, itemsOf(t, strings.NewReader(c.in))); d != "" {
				t.Errorf("%.100q (-want +got):\n%s", c.in, d)
			}
			if len(c.in) > 1000 {
				return
			}
			if d := cmp.Diff(c.want, itemsOf(t, iotest.OneByteReader(strings.NewReader(c.in)))); d != "" {
				t.Errorf("%q byte by byte (-want +got):\n%s", c.in, d)
			}
		})
	}
}

// TestObject reads an object with members that are skipped, decoded, and read as arrays.
func TestObject(t *testing.T) {
	const text = `{"skipped": {"a":["}"]}, "list" :[ 1,2 ] , "text": "x\u0041"}`
	for cut := range len(text) + 1 {
		var got []string
		j := NewJSON(NewReader(iotest.OneByteReader(strings.NewReader(text[:cut]))))
		err := j.Object(func(name string) error {
			got = append(got, name)
			switch name {
			case "skipped":
				return j.Skip()
			case "list":
				return j.Array(func() error {
					var n int
					defer func() { got = append(got, fmt.Sprint(n)) }()
					return j.Decode(&n)
				})
			}
			s := ""
			defer func() { got = append(got, s) }()
			return j.Decode(&s)
		})
		if cut < len(text) {
			if err != errTruncated {
				t.Errorf("%q: error %v", text[:cut], err)
			}
		} else if d := cmp.Diff([]string{"skipped", "list", "1", "2", "text", "xA"}, got); d != "" || err != nil {
			t.Errorf("error %v (-want +got):\n%s", err, d)
		}
	}
	for in, want := range map[string]string{
		`[]`: "'[' where { is expected", `{1:2}`: "'1' where the name of a member is expected", `{"a" 1}`: "'1' where : is expected",
		`{"a":1 "b":2}`: `'"' where , is expected`,
	} {
		j := NewJSON(NewReader(strings.NewReader(in)))
		if err := j.Object(func(string) error { return j.Skip() }); fmt.Sprint(err) != "line 1: JSON syntax: "+want {
			t.Errorf("%s: %v, want %s", in, err, want)
		}
	}
	j := NewJSON(NewReader(strings.NewReader(`"x"`)))
	if err := j.Decode(new(int)); !errors.As(err, new(*json.UnmarshalTypeError)) {
		t.Errorf("a text as an integer: %v", err)
	}
}

func TestIsArray(t *testing.T) {
	broken := errors.New("broken disk")
	for _, c := range []struct {
		in   io.Reader
		want bool
		err  error
	}{
		{strings.NewReader(""), false, nil},
		{strings.NewReader("\n [1"), true, nil},
		{strings.NewReader("{}"), false, nil},
		{iotest.ErrReader(broken), false, broken},
	} {
		if got, err := NewJSON(NewReader(c.in)).IsArray(); got != c.want || err != c.err {
			t.Errorf("%v, %v, want %v, %v", got, err, c.want, c.err)
		}
	}
}
