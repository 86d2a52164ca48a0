package remote

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/url"
	"strings"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/odata"
	"github.com/tablerock-db/tablerock/store"
)

// appendEntity appends the JSON of an entity for a request, without its Timestamp. Every
// type but String, Boolean and Int32 is annotated: a server that parses 3.0 as an integer
// stores a Double too.
func appendEntity(dst []byte, e *edm.Entity) []byte {
	dst = append(dst, `{"PartitionKey":`...)
	dst = odata.AppendText(dst, e.Key.Partition, false)
	dst = append(dst, `,"RowKey":`...)
	dst = odata.AppendText(dst, e.Key.Row, false)
	for i := range e.Properties {
		p := &e.Properties[i]
		t := p.Value.Type()
		if t == 0 {
			continue
		}
		plain := t == edm.TypeString || t == edm.TypeBoolean || t == edm.TypeInt32
		if !plain {
			dst = odata.AppendText(append(dst, ','), p.Name, false)
			dst = append(dst[:len(dst)-1], `@odata.type":"`...)
			dst = append(append(dst, t.String()...), '"')
		}
		dst = append(odata.AppendText(append(dst, ','), p.Name, false), ':')
		switch {
		case t == edm.TypeString:
			dst = odata.AppendText(dst, p.Value.Bytes(), false)
		case plain, t == edm.TypeDouble && isFinite(p.Value):
			dst = odata.AppendValue(dst, p.Value)
		default:
			dst = append(odata.AppendValue(append(dst, '"'), p.Value), '"')
		}
	}
	return append(dst, '}')
}

func isFinite(v edm.Value) bool {
	f := math.Float64frombits(v.Word())
	return f-f == 0
}

// timestampMember begins the Timestamp of an entity in JSON. It occurs nowhere else: in a
// string its quotes would have escapes.
var timestampMember = []byte(`"Timestamp":`)

// parseEntity parses an entity of a response, with its Timestamp. The entity is valid until
// the Reset of p.
func parseEntity(p *odata.Parser, src []byte) (edm.Entity, error) {
	e, err := p.ParseEntity(src, odata.ParseOptions{})
	if err != nil {
		return e, err
	}
	at := bytes.Index(src, timestampMember)
	if at < 0 {
		return e, errors.New("the entity has no Timestamp")
	}
	text := bytes.TrimLeft(src[at+len(timestampMember):], " ")
	text, ok := bytes.CutPrefix(text, []byte(`"`))
	end := bytes.IndexByte(text, '"')
	if !ok || end < 0 {
		return e, errors.New("the Timestamp of the entity is no text")
	}
	e.Timestamp, err = edm.ParseTicks(string(text[:end]))
	return e, err
}

// ticksOf returns the time in an ETag of the form W/"datetime'...'", 0 for another one.
func ticksOf(etag string) edm.Ticks {
	text, ok := strings.CutPrefix(etag, `W/"datetime'`)
	text, end := strings.CutSuffix(text, `'"`)
	if !ok || !end {
		return 0
	}
	text, err := url.PathUnescape(text)
	if err != nil {
		return 0
	}
	t, err := edm.ParseTicks(text)
	if err != nil {
		return 0
	}
	return t
}

// resultOf returns the result of an operation that the server answered with an ETag.
func resultOf(etag string) store.Result {
	if etag == "" {
		return store.Result{}
	}
	return store.Result{Timestamp: ticksOf(etag), ETag: edm.ETag(etag)}
}

// feed is the array of objects of a response.
type feed struct{ rest []byte }

var errNoList = errors.New("the response has no list of values, as no Table server answers; check the address")

// feedOf returns the array called value of an object in JSON.
func feedOf(body []byte) (feed, error) {
	at := bytes.Index(body, []byte(`"value":`)) // in a string its quotes would have escapes
	if at < 0 {
		return feed{}, errNoList
	}
	rest := bytes.TrimLeft(body[at+len(`"value":`):], " \r\n\t")
	rest, ok := bytes.CutPrefix(rest, []byte("["))
	if !ok {
		return feed{}, errors.New("the values of the response are no list")
	}
	return feed{rest}, nil
}

// next returns the next object, nil at the end.
func (f *feed) next() ([]byte, error) {
	f.rest = bytes.TrimLeft(f.rest, " \r\n\t,")
	if len(f.rest) > 0 && f.rest[0] == ']' {
		return nil, nil
	}
	depth, quoted := 0, false
	for i := 0; i < len(f.rest); i++ {
		switch c := f.rest[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth--; depth == 0 {
				object := f.rest[:i+1]
				f.rest = f.rest[i+1:]
				return object, nil
			}
		}
	}
	return nil, errors.New("the response ends within a value; try again")
}

// tableNames returns the names in a list of tables.
func tableNames(body []byte) ([]string, error) {
	var list struct {
		Value *[]struct{ TableName string } `json:"value"`
	}
	err := json.Unmarshal(body, &list)
	if !bytes.HasPrefix(bytes.TrimSpace(body), []byte("{")) || err == nil && list.Value == nil {
		return nil, errNoList
	}
	if err != nil {
		return nil, err
	}
	var names []string
	for _, t := range *list.Value {
		if err := edm.CheckTableName(t.TableName); err != nil {
			// The service lists tables of metrics, whose names begin with $.
			if strings.HasPrefix(t.TableName, "$") {
				continue
			}
			return nil, fmt.Errorf("a name in the response: %w", err)
		}
		names = append(names, t.TableName)
	}
	return names, nil
}
