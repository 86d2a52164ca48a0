package request

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
)

// ErrToken says that a continuation token is none that the service gives.
var ErrToken = errors.New("not a continuation token")

// A continuation token is "1!" N "!" TEXT: TEXT is a key in base64 with other
// letters where base64's have a meaning in a URL, N the number of its characters.
// The service's padding is "-"; what it has for "+" and "/" was never seen.
var (
	toToken   = strings.NewReplacer("=", "-", "+", ".", "/", "_")
	fromToken = strings.NewReplacer("-", "=", ".", "+", "_", "/")
)

// maxTokenBytes is longer than the token of any key.
const maxTokenBytes = 8 << 10

// AppendToken appends the token of text to dst.
func AppendToken(dst []byte, text string) []byte {
	encoded := toToken.Replace(base64.StdEncoding.EncodeToString([]byte(text)))
	dst = append(dst, "1!"...)
	dst = strconv.AppendInt(dst, int64(len(encoded)), 10)
	return append(append(dst, '!'), encoded...)
}

// parseToken returns the text of a token that a client gives back. It may be
// forged, so that it is no more than a key in a request.
func parseToken(token string) (string, error) {
	version, rest, _ := strings.Cut(token, "!")
	length, encoded, ok := strings.Cut(rest, "!")
	if !ok || version != "1" || length != strconv.Itoa(len(encoded)) || len(encoded) > maxTokenBytes {
		return "", ErrToken
	}
	text, err := base64.StdEncoding.Strict().DecodeString(fromToken.Replace(encoded))
	if err != nil || !utf8.Valid(text) {
		return "", ErrToken
	}
	return string(text), nil
}

// KeyToken reads the place at which a query over entities goes on, nil for the
// beginning. An empty parameter counts as none, as old clients send it.
func KeyToken(query url.Values) (*edm.Key, error) {
	partition, row := query.Get("NextPartitionKey"), query.Get("NextRowKey")
	if len(query["NextPartitionKey"]) > 1 || len(query["NextRowKey"]) > 1 || partition == "" && row != "" {
		return nil, ErrToken
	}
	if partition == "" {
		return nil, nil
	}
	var key edm.Key
	var err error
	if key.Partition, err = parseToken(partition); err != nil {
		return nil, err
	}
	if row != "" {
		if key.Row, err = parseToken(row); err != nil {
			return nil, err
		}
	}
	return &key, nil
}

// tableMark stands between the name and the time of creation in a table's token.
const tableMark = "\x01"

// TableTokenOf returns the token of a table.
func TableTokenOf(t store.TableInfo) string {
	text := fmt.Sprintf("%s%s%016x", edm.FoldTableName(t.Name), tableMark, int64(t.Created))
	return string(AppendToken(nil, text))
}

// TableToken reads the folded name at which a query over tables goes on. A plain
// name is as good as a token.
func TableToken(query url.Values) (string, error) {
	token := query.Get("NextTableName")
	switch {
	case len(query["NextTableName"]) > 1:
		return "", ErrToken
	case token == "":
		return "", nil
	case edm.CheckTableName(token) == nil:
		return edm.FoldTableName(token), nil
	}
	text, err := parseToken(token)
	if err != nil {
		return "", err
	}
	name, _, _ := strings.Cut(text, tableMark)
	return edm.FoldTableName(name), nil
}
