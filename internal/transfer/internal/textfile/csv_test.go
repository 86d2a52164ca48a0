package textfile

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// transcript reads a CSV text. It returns the lines and cells of each record, quoted
// cells in quotes, or its error.
func transcript(t *testing.T, c *CSV) []string {
	t.Helper()
	var got []string
	for range 1000 {
		cells, first, last, err := c.Next()
		switch bad := (*Error)(nil); {
		case err == io.EOF:
			return got
		case errors.As(err, &bad) && !bad.Final:
			got = append(got, fmt.Sprintf("%d: %v", first, err))
			continue
		case err != nil:
			return append(got, "fatal: "+err.Error())
		}
		var b strings.Builder
		fmt.Fprintf(&b, "%d-%d", first, last)
		for _, c := range cells {
			if c.Quoted {
				fmt.Fprintf(&b, " %q", c.Text)
			} else {
				fmt.Fprintf(&b, " %s", c.Text)
			}
		}
		got = append(got, b.String())
	}
	t.Fatal("the reader does not reach the end of the file")
	return nil
}

func TestCSVReader(t *testing.T) {
	const inCell = "a quote inside unquoted cell %d; quote the whole cell and write \"\" for each quote"
	const after = "text after the closing quote of cell %d; quote the whole cell and write \"\" for each quote"
	const afterLines = "text after the closing quote of cell %d, which was opened in line %d; quote the whole cell and write \"\" for each quote"
	const open = " is not closed; correct that line"
	for _, c := range []struct {
		name, in  string
		delimiter byte
		want      []string
	}{
		{"nothing", "", ',', nil},
		{"empty lines", "\n\r\n\n", ',', nil},
		{"one line", "a,b", ',', []string{"1-1 a b"}},
		{"line ends", "a,b\nc,d\r\ne,f\r\n\n\ng,h\r", ',', []string{"1-1 a b", "2-2 c d", "3-3 e f", "6-6 g h"}},
		{"empty cells", ",\n,,\na,\n,b\n", ',', []string{"1-1  ", "2-2   ", "3-3 a ", "4-4  b"}},
		{"quotes", "\"a\",\"\",\"b\"\"c\"\"\",\"\"\"\"\n\"x\",y\r\n\"\"", ',', []string{`1-1 "a" "" "b\"c\"" "\""`, `2-2 "x" y`, `3-3 ""`}},
		{"lines in quotes", "a,\"b\nc\r\nd\n\n\",e\nf,g,\"\n\"\nh\n", ',', []string{`1-5 a "b\nc\r\nd\n\n" e`, `6-7 f g "\n"`, "8-8 h"}},
		{"delimiters in quotes", "\"a,b;c\",d;e\n", ',', []string{`1-1 "a,b;c" d;e`}},
		{"semicolons", "\"a;b\",;c;;\n", ';', []string{"1: " + fmt.Sprintf(after, 1)}},
		{"other semicolons", "a,b;\"c;\"\"d\";\n", ';', []string{`1-1 a,b "c;\"d" `}},
		{"tabs", "a b\tc\t\"d\te\"\n", '\t', []string{`1-1 a b c "d\te"`}},
		{"carriage return alone", "a\rb,c\n", ',', []string{"1-1 a\rb c"}},
		{"quote inside a cell", "a,b\"c\nd,e\n", ',', []string{"1: " + fmt.Sprintf(inCell, 2), "2-2 d e"}},
		{"text after a quote", "\"a\"b,c\nd,e\n", ',', []string{"1: " + fmt.Sprintf(after, 1), "2-2 d e"}},
		{"text after quoted lines", "x,\"a\nb\"c\nd,e\n", ',', []string{"1: " + fmt.Sprintf(afterLines, 2, 1), "3-3 d e"}},
		{"unclosed quote", "a,b\nc,\"d\ne\nf", ',', []string{"1-1 a b", "fatal: lines 2 to 4 are not imported: the quote opened in line 2" + open}},
		{"unclosed quote in the second line", "\"a\nb\",\"c\n", ',', []string{"fatal: lines 1 to 2 are not imported: the quote opened in line 2" + open}},
		{"a quote at the end", "a,\"", ',', []string{"fatal: line 1 is not imported: the quote opened in line 1" + open}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := transcript(t, NewCSV(NewReader(strings.NewReader(c.in)), c.delimiter))
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("%q (-want +got):\n%s", c.in, d)
			}
			slow := transcript(t, NewCSV(NewReader(iotest.OneByteReader(strings.NewReader(c.in))), c.delimiter))
			if d := cmp.Diff(c.want, slow); d != "" {
				t.Errorf("%q byte by byte (-want +got):\n%s", c.in, d)
			}
		})
	}
}

// TestCSVLongRecords skips records above the limit, on one line and on many, and reads
// the next record.
func TestCSVLongRecords(t *testing.T) {
	long := strings.Repeat("x", MaxRecordBytes+10)
	tooLong := "2: " + errTooLong.Error()
	for _, c := range []struct {
		name, in string
		want     []string
	}{
		{"one line", "a\n" + long + "\nb\n", []string{"1-1 a", tooLong, "3-3 b"}},
		{"the last line", "a\n" + long, []string{"1-1 a", tooLong}},
		{"one line in quotes", "a\n\"" + long + "\"\nb\n", []string{"1-1 a", tooLong, "3-3 b"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := transcript(t, NewCSV(NewReader(strings.NewReader(c.in)), ','))
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
	t.Run("many lines in quotes", func(t *testing.T) {
		in := NewReader(strings.NewReader("\"" + strings.Repeat("0123456789abcde\n", MaxRecordBytes/16+100)))
		c := NewCSV(in, ',')
		const want = "line 1 and all lines after it are not imported: the quote opened in line 1 is not closed in the 16777216 bytes of a record; correct that line"
		bad := (*Error)(nil)
		if _, first, _, err := c.Next(); first != 1 || !errors.As(err, &bad) || !bad.Final || fmt.Sprint(err) != want {
			t.Errorf("line %d: %v, want line 1: %s", first, err, want)
		}
		if len(in.buf) > 4*MaxRecordBytes {
			t.Errorf("uses %d bytes for records of at most %d", len(in.buf), MaxRecordBytes)
		}
	})
}

func TestCSVReadError(t *testing.T) {
	broken := errors.New("broken disk")
	file := io.MultiReader(strings.NewReader("a,b\nc"), iotest.ErrReader(broken))
	got := transcript(t, NewCSV(NewReader(file), ','))
	if d := cmp.Diff([]string{"1-1 a b", "fatal: broken disk"}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
