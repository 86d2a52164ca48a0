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

// ErrToken reports that a continuation token is not valid.
var ErrToken = errors.New("invalid continuation token")

// A continuation token is "1!" N "!" TEXT. TEXT is a key in base64, with other characters
// in place of those with a meaning in a URL; N is its length. The service uses "-" for the
// padding; its replacements of "+" and "/" are unknown.
var (
	toToken   = strings.NewReplacer("=", "-", "+", ".", "/", "_")
	fromToken = strings.NewReplacer("-", "=", ".", "+", "_", "/")
)

// maxTokenBytes is a limit above the token of any key.
const maxTokenBytes = 8 << 10

// AppendToken appends the token of text to dst.
func AppendToken(dst []byte, text string) []byte {
	encoded := toToken.Replace(base64.StdEncoding.EncodeToString([]byte(text)))
	dst = append(dst, "1!"...)
	dst = strconv.AppendInt(dst, int64(len(encoded)), 10)
	return append(append(dst, '!'), encoded...)
}

// parseToken returns the text of a token. It may be forged: treat it like any key of a
// request.
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

// KeyToken returns the key at which a query for entities continues, nil for the first page.
// An empty parameter is ignored, since old clients send it. The error is ErrToken.
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

// tableMark separates the name and the time of creation in a table's token.
const tableMark = "\x01"

// TableTokenOf returns the token of a table.
func TableTokenOf(t store.TableInfo) string {
	text := fmt.Sprintf("%s%s%016x", edm.FoldTableName(t.Name), tableMark, int64(t.Created))
	return string(AppendToken(nil, text))
}

// TableToken returns the folded name of the table at which a query for tables continues, ""
// for the first page. A plain name is accepted too. The error is ErrToken.
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
